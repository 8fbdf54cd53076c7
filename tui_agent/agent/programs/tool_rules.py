"""Claude Code's grammar of rules and lists of tools, turned into our rules and names.

A rule is ``Tool`` or ``Tool(what)``; a list has rules between commas or blanks. Agents, skills and
commands of other programs use the same grammar. A piece that is not a whole known name never
becomes a glob: it restricts by a rule, or it is left out and named.

Source: Claude Code's pages on permissions and subagents.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from tui_agent.agent.mcp.records import portable_name
from tui_agent.agent.permissions import Action, Rule, RuleSyntax, Source
from tui_agent.files.globs import is_costly
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.permission import Permission
from tui_agent.tools.registry import builtin_named

SERVER_PREFIX = "mcp__"

_PIECE = LazyPattern(r"(?P<tool>[A-Za-z_][\w.-]*(?:\*[\w*]*)?)(?:\((?P<what>.*)\))?", re.DOTALL)
_WILD = LazyPattern(r"([?\[])")
_UNPORTABLE = LazyPattern(r"[^A-Za-z0-9_-]+")
_OWN_GLOB = LazyPattern(r"[a-z_][a-z0-9_.-]*\*|\*")
"""A glob that our own files may have in a list of tools: ``github_*``."""
_PERMISSIONS = {
    "bash": Permission.BASH,
    "read": Permission.READ,
    "grep": Permission.READ,
    "glob": Permission.READ,
    "ls": Permission.READ,
    "edit": Permission.EDIT,
    "write": Permission.EDIT,
    "webfetch": Permission.WEBFETCH,
    "task": Permission.TASK,
    "skill": Permission.SKILL,
}
"""The permission that ``Tool(what)`` is about, by our tool's name."""
_WHOLE = {"bash": Permission.BASH, "read": Permission.READ, "edit": Permission.EDIT}
"""The tools whose name alone stands for every tool of their permission."""
_FILES = {Permission.READ, Permission.EDIT}


class ForeignRuleError(ValueError):
    """A rule means nothing here; the message says why."""


@frozen
class RulePiece:
    """One rule, taken apart.

    ``tool`` is our tool's name or a server's; ``what`` is "" for the whole tool.
    """

    text: str
    tool: str
    what: str = ""

    @property
    def is_of_server(self) -> bool:
        return self.text.startswith(SERVER_PREFIX)

    @property
    def permission(self) -> Permission | None:
        if self.is_of_server:
            return None
        return _PERMISSIONS.get(self.tool)


@frozen
class Anchor:
    """Where relative paths of a rule begin.

    ``folder`` is the directory of a path without a beginning, ``settings`` that of one that begins
    with a slash; both are relative to the project, "" for its root, or None where they are outside.
    ``project`` and ``home`` are absolute.
    """

    folder: str | None = ""
    settings: str | None = ""
    project: str = "/"
    home: str = "/"


@frozen
class ToolList:
    """A list of tools.

    ``names`` are tools, or globs over servers' tools. ``rules`` deny the rest of a tool that the
    list allows in part. ``problems`` name the pieces that mean nothing here.
    """

    names: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    problems: tuple[str, ...] = ()


def split_list(value: object) -> list[str]:
    """Return the pieces of a list: those of YAML, or between commas and blanks outside of parentheses."""
    if isinstance(value, list | tuple):
        return [str(item).strip() for item in value if str(item).strip()]
    pieces = [""]
    depth = 0
    for character in str(value):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth <= 0 and (character == "," or character.isspace()):
            pieces.append("")
            depth = 0
        else:
            pieces[-1] += character
    return [piece for piece in pieces if piece]


def parse_piece(text: str) -> RulePiece:
    """Take one rule apart.

    Raises:
        ForeignRuleError: it names no tool that is known here.
    """
    found = _PIECE.fullmatch(text.strip())
    if found is None:
        raise ForeignRuleError(f"“{text}” is not a tool's name")
    named = found["tool"]
    what = (found["what"] or "").strip()
    if named.startswith(SERVER_PREFIX):
        return RulePiece(text.strip(), _server_tool(named))
    tool = builtin_named(named)
    if not tool:
        raise ForeignRuleError(f"there is no tool “{named}” here")
    return RulePiece(text.strip(), tool, "" if what == "*" else what)


def rules_of(text: str, action: Action, source: Source, anchor: Anchor) -> tuple[Rule, ...]:
    """Return our rules for one of Claude Code's.

    Raises:
        ForeignRuleError: it means nothing here.
    """
    piece = parse_piece(text)
    if piece.is_of_server:
        return (Rule("mcp", piece.tool, action, source),)
    if not piece.what:
        # "Edit" stands for everything that edits, and "Read" for everything that reads.
        whole = _WHOLE.get(piece.tool)
        return (Rule(whole or piece.tool, "*", action, source),)
    permission = _permission_of(piece)
    syntax = _syntax_of(permission)
    rules: list[Rule] = []
    for pattern in _patterns(piece, permission, anchor):
        rules.append(Rule(permission.value, pattern, action, source=source, syntax=syntax))
    return tuple(rules)


def allowed_tools(value: object, source: Source, *, own: bool) -> ToolList:
    """Read a list of tools that may be used.

    ``own``: our own files may have globs (``github_*``). A list in which nothing is known allows
    nothing.
    """
    names: dict[str, None] = {}
    limits: dict[Permission, list[str]] = {}
    whole: set[Permission] = set()
    problems: list[str] = []
    for text in split_list(value):
        if own and _OWN_GLOB.fullmatch(text.lower()):
            names[text.lower()] = None
            continue
        try:
            piece = parse_piece(text)
            if piece.what:
                permission = _permission_of(piece)
                patterns = _patterns(piece, permission, Anchor())
                limits.setdefault(permission, []).extend(patterns)
            elif piece.permission is not None:
                whole.add(piece.permission)
            names[piece.tool] = None
        except ForeignRuleError as error:
            if own and text.replace("_", "").replace("-", "").isalnum():
                names[text.lower()] = None  # a server's tool, or one of a tool file
            else:
                problems.append(f"tools: {error}; left out")
    rules: list[Rule] = []
    for permission, kept in limits.items():
        if permission not in whole:
            rules.append(_limited(permission, kept, source))
    return ToolList(tuple(names), tuple(rules), tuple(problems))


def denied_tools(value: object, source: Source) -> ToolList:
    """Read a list of tools that may not be used: ``names`` are whole tools, ``rules`` deny a part of one."""
    names: dict[str, None] = {}
    rules: list[Rule] = []
    problems: list[str] = []
    for text in split_list(value):
        try:
            piece = parse_piece(text)
            if piece.what:
                rules += rules_of(text, Action.DENY, source, Anchor())
            else:
                names[piece.tool] = None
        except ForeignRuleError as error:
            problems.append(f"disallowedTools: {error}; left out")
    return ToolList(tuple(names), tuple(rules), tuple(problems))


def _limited(permission: Permission, kept: Sequence[str], source: Source) -> Rule:
    """Return the rule that denies everything of a permission but what some patterns name."""
    syntax = _syntax_of(permission)
    return Rule(
        permission.value, "*", Action.DENY, source=source, syntax=syntax, unless=tuple(kept)
    )


def _permission_of(piece: RulePiece) -> Permission:
    if piece.permission is None:
        raise ForeignRuleError(f"“{piece.text}”: {piece.tool} is allowed or denied as a whole")
    return piece.permission


def _syntax_of(permission: Permission) -> RuleSyntax:
    if permission in _FILES:
        return "gitignore"
    return "domain" if permission is Permission.WEBFETCH else "glob"


def _patterns(piece: RulePiece, permission: Permission, anchor: Anchor) -> Iterable[str]:
    """Return our patterns for the words in a rule's parentheses."""
    if permission in _FILES:
        return (_file_pattern(piece, anchor),)
    if permission is Permission.WEBFETCH:
        host = piece.what.removeprefix("domain:").strip().lower()
        if not piece.what.startswith("domain:") or not host:
            raise ForeignRuleError(f"“{piece.text}”: write WebFetch(domain:HOST)")
        return (host,)
    if permission is Permission.BASH:
        return (_command_pattern(piece.what),)
    return tuple(_names_in(piece.what))


def _command_pattern(text: str) -> str:
    """Return the glob for a command.

    A blank before the last star ends a word; ``:*`` is an older spelling of that.
    """
    if text.endswith(":*"):
        text = f"{text.removesuffix(':*')} *"
    return "*".join(_verbatim(part) for part in text.split("*"))


def _verbatim(text: str) -> str:
    """Return a glob for a text as it stands."""
    return _WILD.sub(r"[\1]", text)


def _names_in(text: str) -> Iterator[str]:
    """Yield the names between commas. ``name *`` is the name with any argument."""
    for name in text.split(","):
        if plain := name.strip().removesuffix("*").removesuffix(":").strip():
            yield _verbatim(plain)


def _file_pattern(piece: RulePiece, anchor: Anchor) -> str:
    """Return a pattern as in ``.gitignore``, from the project's root.

    One that begins with ``//`` is absolute.
    """
    text = piece.what
    if is_costly(text):
        raise ForeignRuleError(f"“{piece.text}”: it has too many stars")
    if text.endswith("\\"):
        raise ForeignRuleError(f"“{piece.text}”: it ends with a backslash")
    if text.startswith("//"):
        return _from_root(text.removeprefix("/"), anchor)
    if text.startswith("~/"):
        return _from_root(f"{anchor.home}{text.removeprefix('~')}", anchor)
    if text.startswith("/"):
        base = anchor.settings
        text = text.removeprefix("/")
    elif "/" in text.rstrip("/"):
        base = anchor.folder
        text = text.removeprefix("./")
    else:
        # As in .gitignore, a name alone is looked for at any depth.
        base = anchor.folder
        text = f"**/{text}"
    if base is None:
        raise ForeignRuleError(f"“{piece.text}”: its path is outside the project")
    if ".." in text.split("/"):
        return _from_root(f"{anchor.project}/{base}/{text}", anchor)
    if base:
        return f"/{base}/{text}"
    return f"/{text}"


def _from_root(path: str, anchor: Anchor) -> str:
    """Return the pattern for an absolute path.

    In the project it is relative to that, as needs are.
    """
    if ".." in path.split("/"):
        path = os.path.normpath(path)
    inside = f"{anchor.project.rstrip('/')}/"
    if path.startswith(inside):
        return f"/{path.removeprefix(inside)}"
    return f"/{path}"


def _server_tool(named: str) -> str:
    """Return our name, or a glob over our names, for ``mcp__SERVER__TOOL``."""
    server, _separator, tool = named.removeprefix(SERVER_PREFIX).partition("__")
    if not server:
        raise ForeignRuleError(f"“{named}” names no server")
    if "*" in server:
        raise ForeignRuleError(f"“{named}”: a server is named whole")
    if not tool:
        return f"{portable_name(server, '')}*"
    # A star is no letter of a portable name: the parts between stars are made portable one by one.
    parts = [_UNPORTABLE.sub("_", part) for part in tool.split("*")]
    if len(parts) == 1:
        return portable_name(server, tool)
    return portable_name(server, "") + "*".join(parts)
