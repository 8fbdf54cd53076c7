"""Parses Claude Code's permission rules and lists of tools, and converts them for this program.

A rule is ``Tool`` or ``Tool(what)``; rules in a list are separated by commas or spaces. Agents,
skills and commands of other programs use the same syntax. A rule with parentheses is converted to
one of this program's rules; if that is not possible, it is reported and left out.

Source: Claude Code's documentation of permissions and subagents.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from tui_agent.agent.mcp.records import SERVER_PREFIX, pattern_of_tools
from tui_agent.agent.permissions import Action, Rule, RuleSyntax, Source
from tui_agent.files.globs import is_costly
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.permission import Permission
from tui_agent.tools.registry import builtin_named

_PIECE = LazyPattern(r"(?P<tool>[A-Za-z_][\w.-]*(?:\*[\w*]*)?)(?:\((?P<what>.*)\))?", re.DOTALL)
_WILD = LazyPattern(r"([?\[])")
_OWN_GLOB = LazyPattern(r"[a-z_][a-z0-9_.-]*\*|\*")
"""Matches a glob in a list of tools, such as ``github_*``; valid only in this program's own files."""
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
"""The permission for a rule ``Tool(what)``, by this program's name for the tool."""
_WHOLE = {"bash": Permission.BASH, "read": Permission.READ, "edit": Permission.EDIT}
"""Tools whose name alone in a rule stands for all tools with their permission."""
_FILES = {Permission.READ, Permission.EDIT}


class ForeignRuleError(ValueError):
    """Raised if a rule can't be converted to a rule of this program; the message says why."""


@frozen
class RulePiece:
    """One parsed permission rule of Claude Code.

    ``text`` is the rule as written. ``tool`` is this program's name for the tool; in a rule about
    an MCP server, the name of one of its tools or a glob for several. ``what`` is the text in
    parentheses, "" for the whole tool.
    """

    text: str
    tool: str
    what: str = ""

    @property
    def is_of_server(self) -> bool:
        """Whether the rule is about the tools of an MCP server."""
        return self.text.startswith(SERVER_PREFIX)

    @property
    def permission(self) -> Permission | None:
        """Permission of the rule's tool.

        None if the tool can only be allowed or denied as a whole.
        """
        if self.is_of_server:
            return None
        return _PERMISSIONS.get(self.tool)


@frozen
class Anchor:
    """The directories to which the paths in a rule are relative.

    ``folder`` is for paths without a leading slash, ``settings`` for those with one. Both are
    relative to the project: "" for its root, None if they are outside. ``project`` and ``home`` are
    absolute.
    """

    folder: str | None = ""
    settings: str | None = ""
    project: str = "/"
    home: str = "/"


@frozen
class ToolList:
    """A parsed list of tools.

    ``names`` are names of whole tools, and globs for tools of MCP servers. ``rules`` deny parts of
    tools; for a list of allowed tools, they deny everything but the allowed parts. ``problems``
    contains a clause for each entry that was left out.
    """

    names: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    problems: tuple[str, ...] = ()


def split_list(value: object) -> list[str]:
    """Return the entries of a list of tools: a list, or a text split at commas and spaces.

    Commas and spaces in parentheses don't split a text.
    """
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
    """Parse one rule. Raises ForeignRuleError if the rule names no known tool."""
    found = _PIECE.fullmatch(text.strip())
    if found is None:
        raise ForeignRuleError(f"“{text}” is not a tool's name")
    named = found["tool"]
    what = (found["what"] or "").strip()
    if named.startswith(SERVER_PREFIX):
        return RulePiece(text.strip(), _server_tool(named))
    tool = builtin_named(named)
    if not tool:
        raise ForeignRuleError(f"there is no tool “{named}”")
    return RulePiece(text.strip(), tool, "" if what == "*" else what)


def rules_of(text: str, action: Action, source: Source, anchor: Anchor) -> tuple[Rule, ...]:
    """Convert ``text``, a rule in Claude Code's syntax, to rules of this program.

    Raises ForeignRuleError if it can't be converted.
    """
    piece = parse_piece(text)
    if piece.is_of_server:
        return (Rule("mcp", piece.tool, action, source),)
    if not piece.what:
        # "Edit" stands for all tools that edit, and "Read" for all tools that read.
        whole = _WHOLE.get(piece.tool)
        return (Rule(whole or piece.tool, "*", action, source),)
    permission = _permission_of(piece)
    syntax = _syntax_of(permission)
    rules: list[Rule] = []
    for pattern in _patterns(piece, permission, anchor):
        rules.append(Rule(permission.value, pattern, action, source=source, syntax=syntax))
    return tuple(rules)


def allowed_tools(value: object, source: Source, *, own: bool) -> ToolList:
    """Parse a list of allowed tools; a list without any known tool allows nothing.

    With ``own`` the list is from one of this program's files: it may contain globs (``github_*``),
    and unknown names count as tools of MCP servers or tool files.
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
                names[text.lower()] = None  # an MCP server's tool, or a tool of a tool file
            else:
                problems.append(f"tools: {error}; left out")
    rules: list[Rule] = []
    for permission, kept in limits.items():
        if permission not in whole:
            rules.append(_limited(permission, kept, source))
    return ToolList(tuple(names), tuple(rules), tuple(problems))


def denied_tools(value: object, source: Source) -> ToolList:
    """Parse a list of forbidden tools: ``names`` are whole tools, ``rules`` deny parts of tools."""
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
    """Return a rule that denies everything under a permission except the patterns ``kept``."""
    syntax = _syntax_of(permission)
    return Rule(
        permission.value, "*", Action.DENY, source=source, syntax=syntax, unless=tuple(kept)
    )


def _permission_of(piece: RulePiece) -> Permission:
    if piece.permission is None:
        raise ForeignRuleError(
            f"“{piece.text}”: {piece.tool} can only be allowed or denied as a whole"
        )
    return piece.permission


def _syntax_of(permission: Permission) -> RuleSyntax:
    if permission in _FILES:
        return "gitignore"
    return "domain" if permission is Permission.WEBFETCH else "glob"


def _patterns(piece: RulePiece, permission: Permission, anchor: Anchor) -> Iterable[str]:
    """Convert the text in a rule's parentheses to patterns.

    Raises ForeignRuleError if that is not possible.
    """
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
    """Return the glob for a rule's command; ``git:*`` is an older spelling of ``git *``."""
    if text.endswith(":*"):
        text = f"{text.removesuffix(':*')} *"
    return "*".join(verbatim(part) for part in text.split("*"))


def verbatim(text: str) -> str:
    """Return a glob that matches a text literally, except for its stars."""
    return _WILD.sub(r"[\1]", text)


def _names_in(text: str) -> Iterator[str]:
    """Yield the comma-separated names in a text, each without a trailing star (any arguments)."""
    for name in text.split(","):
        if plain := name.strip().removesuffix("*").removesuffix(":").strip():
            yield verbatim(plain)


def _file_pattern(piece: RulePiece, anchor: Anchor) -> str:
    """Return a rule's path as a ``.gitignore`` pattern, relative to the project's root.

    In the rule, ``//`` begins an absolute path, ``~/`` one in the home directory, and ``/`` one
    relative to ``anchor.settings``. Raises ForeignRuleError if the path can't be converted.
    """
    text = piece.what
    if is_costly(text):
        raise ForeignRuleError(f"“{piece.text}”: it has too many asterisks")
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
        # As in .gitignore, a bare name matches at any depth.
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
    """Return the pattern for an absolute path, relative to the project's root if it is inside."""
    if ".." in path.split("/"):
        path = os.path.normpath(path)
    inside = f"{anchor.project.rstrip('/')}/"
    if path.startswith(inside):
        return f"/{path.removeprefix(inside)}"
    return f"/{path}"


def _server_tool(named: str) -> str:
    """Return this program's name for ``mcp__SERVER__TOOL``; a glob if it has a star or no tool."""
    try:
        return pattern_of_tools(named)
    except ValueError as error:
        raise ForeignRuleError(str(error)) from None
