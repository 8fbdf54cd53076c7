"""Decides by permission rules and the mode whether a call's need is allowed, asked about or denied.

A need is one thing that a tool call wants to do (`PermissionNeed`). Within a source, the last
matching rule counts, and a stronger source overrides a weaker one. There are two exceptions. A
denial that is not built in holds unless a rule from the command line matches. Not every rule that
allows covers unusual needs (secrets, files that configure programs, commands that can't be
understood); see ``_covers``.

What a mode does without asking: ``plan`` changes nothing, ``build`` writes build output,
``auto-edit`` changes files of the project, ``yolo`` runs everything that no rule denies (but the
user may still be asked about repeated calls, and hooks may ask). In the sandbox the mode limits
where any command may write.

Also parses rules, describes them to the user, and creates the rules that a question offers. Changes
nothing, and only `files_under_rules` looks at the disk: `Gate` collects a session's rules, asks the
user and keeps the answers.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from glob import escape as glob_escape
from glob import has_magic
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from tui_agent.agent.mcp.records import SERVER_PREFIX, pattern_of_tools
from tui_agent.command_words import CommandNames, names_in
from tui_agent.files.sensitive import has_steering_part, instructs_agents, is_sensitive
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.path_checks import is_directory, is_file, normal_path, with_home
from tui_agent.permission import (
    CHANGES_A_FILE,
    HOLDS_SECRETS,
    Change,
    Permission,
    PermissionNeed,
    rule_path,
)
from tui_agent.safe_text import one_line
from tui_agent.sandbox.view import Grants, RuleOfReading, View, Writes
from tui_agent.tools.registry import BUILTIN

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Source = Literal["default", "other", "user", "project", "here", "session", "flag"]
"""Where a rule comes from, in rising precedence; ``here`` is a user's own rule for this project."""

RuleSyntax = Literal["glob", "literal", "gitignore", "domain", "project"]
"""How a rule's pattern is read: as a glob, literally, as a line of a ``.gitignore`` in the
project's root (``//`` begins an absolute path), as a glob for the host of an address, or as a glob
that matches only files of the project that are read or edited."""

STORED: dict[Source, str] = {
    "default": "built in",
    "other": "settings of another program",
    "user": "your config.toml",
    "project": ".tui-agent/config.toml of this project",
    "here": "your config.toml, for this project",
    "session": "this session, until the program ends",
    "flag": "the command line",
}
"""Where the rules of a source are stored, as shown to the user, in rising precedence."""
_STRENGTH = {source: strength for strength, source in enumerate(STORED)}

_WORDS = {
    Permission.READ: ("reading any file", "reading {}"),
    Permission.EDIT: ("all edits in this project", "edits of {}"),
    Permission.BASH: ("all commands", "the command “{}”"),
    Permission.WEBFETCH: ("all web pages", "the page {}"),
    Permission.WEBSEARCH: ("all searches of the web", "searching the web for {}"),
    Permission.NETWORK: ("reaching every host", "reaching {}"),
    Permission.MCP: ("all tools of MCP servers", "the tool {}"),
    Permission.TOOL: ("all tools in tool files", "the tool {}"),
    Permission.SKILL: ("all skills", "the skill {}"),
    Permission.TASK: ("tasks for every agent", "tasks for {}"),
    Permission.EXTERNAL_DIRECTORY: ("all directories outside the project", "the directory {}"),
    Permission.DOOM_LOOP: ("this repetition", "this repetition"),
}
"""For each permission, phrases for what a rule covers: with the pattern ``*``, and with others."""

_BELOW = {
    Permission.BASH: ("commands that begin with “{}”", " *"),
    Permission.WEBFETCH: ("all pages of {}", "/*"),
    Permission.EXTERNAL_DIRECTORY: ("{} and everything in it", "/*"),
}

# -- asking the rules ----------------------------------------------------------------------------------------
_MAX_LOOKUPS = 60_000
"""Maximum number of paths that are looked up for a command line."""
_SUBCOMMAND = LazyPattern(r"[A-Za-z][\w-]*")
_VARIABLES = LazyPattern(r"""(?:[A-Za-z_]\w*=(?:"[^"]*"|'[^']*'|[^\s'"])*(?:\s+|\Z))+""")
"""Matches the variables that are set before a command: ``NAME=VALUE``."""
_SHELL_WORDS = frozenset({"for", "select", "while", "until", "if", "case", "[["})
"""First words of loops and conditions, which are no names of programs."""

_OF_PATHS = frozenset({Permission.READ, Permission.EDIT, Permission.EXTERNAL_DIRECTORY})
"""Permissions whose patterns are paths, in which ``~`` is the home directory."""

_NO_NAME = "it"
"""What a question calls a command that has no name."""

_MAX_NAMED = 5
"""Maximum number of changed files that a question names."""

_CHANGED: dict[Change, str] = {
    "sources": "files of the project",
    "repository": "the git repository",
}

PLAN_REFUSAL = (
    "Not run: the session is in plan mode, in which nothing is changed. Read, search and describe what you would do; "
    "the user switches to build mode when it is to be done."
)
"""Text that the model receives as the result of a call that plan mode refuses."""

_GOES_ON = r"[\w./:#@$&(\[+=%~-]"
"""Matches a character that can continue an address, so that the text before it is only part of a
longer address."""

_ANY_FILE = PermissionNeed(Permission.EDIT, ".")


class Action(StrEnum):
    """What a permission rule decides: to allow, to ask or to deny."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class RuleError(ValueError):
    """Raised for an invalid rule; the message says how to write it."""


@frozen
class FilesUnderRules:
    """The needs for the files in a command line that rules deny or ask about.

    If ``is_complete`` is False, the command is so long or complicated that files may be missing.
    """

    needs: tuple[PermissionNeed, ...]
    is_complete: bool


@frozen
class Rule:
    """A permission rule: what to do about needs that match ``permission`` and ``pattern``.

    ``permission`` is the name of a permission or a tool, or a glob for such names; ``syntax`` says
    how ``pattern`` is read. The rule doesn't apply to needs that match a pattern in ``unless``.
    ``origin`` is the file and line of another program's rule.

    Two endings match more than they would in a glob: ``git status *`` also matches ``git status``,
    and ``/srv/data/*`` also matches the directory itself.
    """

    permission: str
    pattern: str
    action: Action
    source: Source = "default"
    syntax: RuleSyntax = "glob"
    unless: tuple[str, ...] = ()
    origin: str = ""

    @property
    def is_in_users_file(self) -> bool:
        """Whether the rule is stored in the user's own config.toml."""
        return self.source in {"user", "here"}

    def matches(self, need: PermissionNeed, tool: str = "") -> bool:
        """Return True if the rule applies to a permission need of a tool.

        ``tool`` is the tool's name; "" if unknown. A rule that asks or denies also applies to the
        need's other spellings (``aliases``). Of the rules that allow, only two kinds apply to more
        than the pattern: rules with the name of an MCP server, and rules about the network that
        match every command of the line (``commands``).
        """
        if need.permission is Permission.MCP and self._is_about_server(need):
            return True
        if not self.covers(need.permission) and not self.names_tool(tool):
            return False
        if self._spares(need):
            return False
        return self._fits(need.pattern, self.pattern, need) or self._fits_alias(need)

    def _fits_alias(self, need: PermissionNeed) -> bool:
        if need.permission is Permission.MCP:
            return False
        if self.action is Action.ALLOW:
            # The host can be reached by all commands of the line, so the rule must match them all.
            return bool(need.commands) and all(
                self._fits(text, self.pattern, need) for text in need.commands
            )
        return any(self._fits(text, self.pattern, need) for text in need.aliases)

    def _is_about_server(self, need: PermissionNeed) -> bool:
        """Return True if the rule names a tool's MCP server, or is a ``tool`` rule for the tool."""
        if self.permission == Permission.TOOL:
            return self.pattern == need.pattern
        return self.permission == Permission.MCP and self.pattern in need.aliases

    def covers(self, permission: Permission) -> bool:
        """Return True if the rule's ``permission`` is this permission or a glob for it."""
        return fnmatchcase(permission.value, self.permission)

    @property
    def is_against_some(self) -> bool:
        """Whether the rule asks or denies, but not for everything: its pattern isn't ``*``."""
        return self.action is not Action.ALLOW and self.pattern != "*"

    def names_tool(self, tool: str) -> bool:
        """Return True if the rule's ``permission`` is the tool's name, or a glob that matches it.

        Returns False if ``permission`` is the name of a permission, even if a tool has the same
        name.
        """
        if not tool or self.permission in set(Permission):
            return False
        return fnmatchcase(tool, self.permission)

    def _spares(self, need: PermissionNeed) -> bool:
        """Return True if a pattern in ``unless`` excludes a permission need from the rule.

        Always returns False for a command that can't be understood.
        """
        if need.unclear:
            return False
        return any(self._fits(need.pattern, pattern, need) for pattern in self.unless)

    def _fits(self, text: str, pattern: str, need: PermissionNeed) -> bool:
        if pattern == "*" and self.syntax not in {"literal", "project"}:
            return True
        match self.syntax:
            case "project":
                is_about_file = need.permission in {Permission.READ, Permission.EDIT}
                return is_about_file and not text.startswith("/") and fnmatchcase(text, pattern)
            case "literal":
                return text == pattern
            case "gitignore":
                return _fits_file(text, pattern)
            case "domain":
                return fnmatchcase(urlsplit(text).hostname or "", pattern)
            case "glob":
                return _fits_glob(text, pattern, need.permission)

    def __str__(self) -> str:
        """Return the rule as the user writes it: ``allow bash: git status``."""
        spared = ""
        if self.unless:
            spared = f" (not {', '.join(self.unless)})"
        return f"{self.action.value} {self.permission}: {self.pattern}{spared}"


def _fits_glob(text: str, pattern: str, permission: Permission) -> bool:
    if permission in _OF_PATHS:
        pattern = with_home(pattern)
    if permission is Permission.EXTERNAL_DIRECTORY:
        directory = pattern.rstrip("*").rstrip("/")
        return fnmatchcase(text, pattern) or fnmatchcase(text, directory)
    if fnmatchcase(text, pattern):
        return True
    ends_in_arguments = permission is Permission.BASH and pattern.endswith(" *")
    return ends_in_arguments and fnmatchcase(text, pattern.removesuffix(" *"))


@lru_cache(maxsize=512)
def _file_spec(pattern: str) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern])


def _fits_file(path: str, pattern: str) -> bool:
    """Return True if a line of ``.gitignore`` matches a file or a directory above it."""
    if pattern.startswith("//") != path.startswith("/"):
        return False
    return _file_spec(f"/{pattern.lstrip('/')}").match_file(path.lstrip("/"))


def in_words(rule: str) -> str:
    """Return a phrase for the user that says what a rule allows: "edits of docs/*".

    ``rule`` is the rule's text. A rule that asks or denies (``deny bash: rm *``), or that names a
    tool, is returned unchanged.
    """
    action, _, rest = rule.partition(" ")
    name, _, pattern = rest.partition(": ")
    if action != Action.ALLOW or name not in set(Permission):
        return rule
    permission = Permission(name)
    everything, one = _WORDS[permission]
    if pattern == "*":
        return everything
    words, ending = _BELOW.get(permission, ("", ""))
    if words and pattern.endswith(ending):
        return words.format(pattern.removesuffix(ending).removeprefix("https://"))
    return one.format(pattern)


DEFAULT_RULES: tuple[Rule, ...] = (
    Rule("*", "*", Action.ASK),
    Rule("read", "*", Action.ALLOW),
    Rule("skill", "*", Action.ALLOW),
)


def parse_rule(text: str, action: Action, source: Source = "flag") -> Rule:
    """Parse ``PERMISSION`` or ``PERMISSION:PATTERN``; PERMISSION may also be the name of a tool.

    ``mcp__SERVER__TOOL``, as Claude Code writes it, is a rule about that tool of an MCP server.

    Raises:
        RuleError: the permission is unknown, the pattern is empty, or ``mcp__…`` names no server or
            has a pattern other than ``*``.
    """
    permission, separator, pattern = text.partition(":")
    permission = permission.strip()
    if permission.startswith(SERVER_PREFIX):
        named = _tools_of_server(permission)
        if separator and pattern.strip() != "*":
            raise RuleError(f"A rule about a server's tool takes no pattern; write mcp:{named}.")
        return Rule("mcp", named, action, source)
    known = [member.value for member in Permission]
    names = {*known, *BUILTIN}
    # MCP tools are unknown when rules are read; their names have a separator or are globs.
    if permission not in names and not any(mark in permission for mark in "*_/."):
        raise RuleError(
            f"“{permission}” is not a permission; use one of {', '.join(known)}, a tool's name, or *."
        )
    if separator and not pattern.strip():
        raise RuleError(
            f"“{text}” has an empty pattern; write {permission}:PATTERN, for example {permission}:*."
        )
    return Rule(permission, pattern.strip() or "*", action, source)


def _tools_of_server(named: str) -> str:
    try:
        return pattern_of_tools(named)
    except ValueError as error:
        raise RuleError(f"{error}; write mcp:SERVER or mcp:SERVER_TOOL.") from None


def rules_from_table(table: dict[str, str | dict[str, str]], source: Source) -> tuple[Rule, ...]:
    """Return the rules of a ``[permissions]`` table.

    Rules with a catch-all pattern come first; apart from that, the rules are in written order.

    Raises:
        RuleError: an action is unknown, or `parse_rule` refuses a permission with its pattern.
    """
    rules: list[Rule] = []
    for permission, value in table.items():
        patterns = value.items() if isinstance(value, dict) else [("*", value)]
        for pattern, action in patterns:
            if action not in set(Action):
                raise RuleError(
                    f"permissions.{permission} = “{action}” is not allowed; use allow, ask or deny."
                )
            rules.append(parse_rule(f"{permission}:{pattern}", Action(action), source))
    # The order of a table must not matter, so catch-all patterns come first, to be overridden.
    return tuple(sorted(rules, key=lambda rule: rule.pattern != "*"))


def decide(need: PermissionNeed, rules: Iterable[Rule], tool: str = "") -> Rule:
    """Return the rule that decides on a permission need, whatever the mode.

    If no rule matches, returns a catch-all rule that asks. ``tool`` is the name of the call's tool.
    If a catch-all rule asks, a command known to be harmless is allowed anyway. If that catch-all
    rule is built in, calls that the sandbox confines are allowed, too. A rule that asks about or
    denies all edits says nothing about the files that a confined command writes.
    """
    verdicts: dict[Source, Rule] = {}
    rules = tuple(rules)
    is_confined_edit = need.permission is Permission.EDIT and is_contained(need, rules)
    for rule in rules:
        if is_confined_edit and rule.action is not Action.ALLOW and rule.pattern == "*":
            continue
        if rule.matches(need, tool) and _covers(rule, need):
            verdicts[rule.source] = rule
    winner = _winner(verdicts) or Rule("*", "*", Action.ASK)
    if winner.action is Action.ASK and winner.pattern == "*" and is_harmless(need):
        return Rule("bash", "*", Action.ALLOW)
    if winner.action is Action.ASK and winner.source == "default" and is_contained(need, rules):
        return Rule(need.permission.value, "*", Action.ALLOW)
    return winner


def also_relative(rules: Iterable[Rule], project: Path) -> Iterator[Rule]:
    """Yield the rules, and a copy of each rule that names project files by their absolute path.

    In the copy, the path is relative to the project, because needs name the project's files this
    way. The copy matches nothing else, not even if its path is ``*``.
    """
    start = f"{project.as_posix()}/"
    for rule in rules:
        yield rule
        pattern = with_home(rule.pattern)
        is_about_files = rule.covers(Permission.READ) or rule.covers(Permission.EDIT)
        if is_about_files and rule.syntax in {"glob", "literal"} and pattern.startswith(start):
            inside = pattern.removeprefix(start)
            if rule.syntax == "literal":
                inside = glob_escape(inside)
            if inside == "*":
                inside = "**"  # what has the pattern "*" counts as a rule for everything
            unless = tuple(spared.removeprefix(start) for spared in rule.unless)
            yield replace(rule, pattern=inside, unless=unless, syntax="project")


def _winner(verdicts: Mapping[Source, Rule]) -> Rule | None:
    """Return the rule that decides on a permission need; None if no rule matches.

    ``verdicts`` contains the last matching rule of each source. A denial that is not built in wins,
    unless a rule from the command line matches; otherwise the rule of the strongest source wins.
    """
    denied: list[Rule] = []
    for rule in verdicts.values():
        if rule.action is Action.DENY and rule.source != "default":
            denied.append(rule)
    if denied and "flag" not in verdicts:
        return min(denied, key=_strength)
    return max(verdicts.values(), key=_strength, default=None)


def _strength(rule: Rule) -> int:
    return _STRENGTH[rule.source]


def files_under_rules(
    command: str, reading: RuleOfReading, project: Path, cwd: Path
) -> FilesUnderRules:
    """Return the needs for the files in a command line that ``reading`` denies or asks about.

    Files that ``reading`` asks about are skipped if they don't exist. Relative names are taken from
    ``cwd``, and from the directories that the command changes to (``cd``). Of these, only files
    that exist count. Names in quotes may have spaces, and names after ``@`` count, too, because
    ``curl`` reads such files. Files that the command reaches without naming them are left to the
    sandbox.
    """
    # After a ``cd``, PWD is another directory. As ".", it means each directory in turn.
    names = names_in(command, {**os.environ, "PWD": "."})
    paths = dict.fromkeys(normal_path(cwd, word) for word in names.words)
    lookups = _paths_after_moves(names, cwd)
    for path in islice(lookups, _MAX_LOOKUPS):
        if path not in paths and is_file(path):
            paths[path] = None
    needs: list[PermissionNeed] = []
    for file in map(Path, paths):
        name = rule_path(file, project)
        said = reading(name)
        if said == Action.DENY or (said == Action.ASK and is_file(file)):
            needs.append(PermissionNeed(Permission.READ, name, detail=command, secret=True))
    is_complete = names.is_complete and next(lookups, None) is None
    return FilesUnderRules(tuple(needs), is_complete)


def _paths_after_moves(names: CommandNames, cwd: Path) -> Iterator[str]:
    """Yield the paths that a command's words mean in the directories that the command changes to.

    A directory that doesn't exist may be created by the command. It will not contain files that
    exist now, but a name with ``..`` may lead out of it.
    """
    leading_out = [word for word in names.words if ".." in word]
    for folder in _folders_after_moves(names, cwd):
        words: Iterable[str] = names.words
        if not is_directory(folder):
            words = leading_out
        for word in words:
            yield normal_path(folder, word)


def _folders_after_moves(names: CommandNames, cwd: Path) -> Iterator[str]:
    """Yield the directories that a command can change to, whatever the order of its moves.

    From a directory that doesn't exist, only the move that is written next is followed.
    """
    reached = [str(cwd)]
    for moved in names.moves:
        reached.append(normal_path(reached[-1], moved))
    found = dict.fromkeys(reached)
    waiting = list(found)
    for folder in waiting:
        if folder != str(cwd):
            yield folder
        if not is_directory(folder):
            continue
        for moved in dict.fromkeys(names.moves):
            further = normal_path(folder, moved)
            if further not in found:
                found[further] = None
                waiting.append(further)


def refusal_of_tool(tool: str, rules: Iterable[Rule]) -> Rule | None:
    """Return the rule that denies a tool by its name, whatever its calls need; None if none does.

    Rules about permissions don't count, even if they deny everything that the tool needs.
    """
    verdicts: dict[Source, Rule] = {}
    for rule in rules:
        if rule.pattern == "*" and rule.permission != "*" and rule.names_tool(tool):
            verdicts[rule.source] = rule
    winner = _winner(verdicts)
    if winner is None or winner.action is not Action.DENY:
        return None
    return winner


def is_harmless(need: PermissionNeed) -> bool:
    """Return True if a permission need is for a command that is known to be harmless."""
    return need.permission is Permission.BASH and need.harmless and not need.unclear


def is_contained(need: PermissionNeed, rules: Iterable[Rule]) -> bool:
    """Return True if a need is for a call that the sandbox confines to what the mode allows.

    Also returns True for a redirection of such a call, which writes a file of the project. Returns
    False for a command that can't be understood if there are rules that ask about or deny
    particular commands, because it might contain one of these.
    """
    if not need.sandboxed or need.changes:
        return False
    if need.permission is Permission.EDIT:
        return True
    if not need.permission.is_confinable:
        return False
    if not need.unclear:
        return True
    return not any(rule.is_against_some and rule.covers(need.permission) for rule in rules)


def is_named(address: str, said: Iterable[str]) -> bool:
    """Return True if a text in ``said`` contains exactly this address, except for a final slash.

    A longer address does not count, because the model could leak something in a query that it adds.
    """
    bare = re.escape(address.rstrip("/"))
    return any(re.search(rf"{bare}/?[.:]*(?!{_GOES_ON})", text) for text in said)


def holds_secrets(need: PermissionNeed) -> bool:
    """Return True if the need is for reading a file that contains or usually holds secrets."""
    return need.permission is Permission.READ and (
        need.secret or is_sensitive(PurePath(need.pattern))
    )


def is_protected(need: PermissionNeed) -> bool:
    """Return True if the need is to change a file that configures programs or may hold secrets."""
    if need.permission is not Permission.EDIT:
        return False
    path = PurePath(need.pattern)
    return has_steering_part(path) or is_sensitive(path)


def _covers(rule: Rule, need: PermissionNeed) -> bool:
    """Return True if a rule that matches a permission need may decide on it.

    A rule that asks or denies may always decide. A rule that allows doesn't decide on a command
    with an option that the rule does not cover. A command that can't be understood is covered only
    by a catch-all that is not built in. Secrets and protected files are covered only by rules that
    are not built in, and by a catch-all only if it comes from the user's settings or the command
    line.
    """
    if rule.action is not Action.ALLOW:
        return True
    if need.exceeds and rule.pattern == need.exceeds:
        return False
    meant = rule.source in {"user", "here", "flag"}
    if need.unclear:
        return rule.pattern == "*" and rule.source != "default"
    if holds_secrets(need) or is_protected(need):
        return rule.source != "default" and (rule.pattern != "*" or meant)
    return True


def reasons_for(asked: Sequence[tuple[PermissionNeed, Rule]], changed: Sequence[str] = ()) -> str:
    """Return, as one clause, why the user is asked about a call: the reasons for all its needs.

    ``changed`` are the files of the project that the call is known to change.
    """
    changes: list[Change] = []
    programs: list[str] = []
    written: list[str] = []
    others: list[str] = []
    for need, rule in asked:
        if not need.changes or not need.may_change_files:
            others.append(reason_for(need, rule))
            continue
        changes += need.changes
        if need.permission is Permission.EDIT:
            written.append(need.pattern)
        else:
            programs.append(_program(need))
    if changes:
        files = changed or (() if programs else written)
        others.insert(0, _changes_in_words(changes, files, programs))
    return ", and ".join(dict.fromkeys(others))


def _changes_in_words(
    changes: Iterable[Change], files: Sequence[str], programs: Iterable[str]
) -> str:
    """Return a clause that says what commands change.

    ``files`` are the changed files of the project, () if they aren't known. ``programs`` are the
    names of the commands.
    """
    words = dict(_CHANGED)
    if files:
        shown = [one_line(name, 80) for name in files[:_MAX_NAMED]]
        if len(files) > _MAX_NAMED:
            shown.append("other files")
        words["sources"] = ", ".join(shown)
    said = " and ".join(words[change] for change in dict.fromkeys(changes))
    names = ", ".join(name for name in dict.fromkeys(programs) if name != _NO_NAME)
    if names:
        return f"changes {said} ({names})"
    return f"changes {said}"


def reason_for(need: PermissionNeed, rule: Rule) -> str:
    """Return, as a clause, why the user is asked about a permission need."""
    if holds_secrets(need) or is_protected(need):
        return f"{need.pattern} {_danger(need)}"
    if need.changes:
        return f"{_program(need)} changes {_changed(need)}"
    if need.unclear:
        return need.unclear
    if need.exceeds:
        return f"it has an option that the rule “{need.exceeds}” does not cover"
    if need.permission is Permission.MCP and rule.source == "default":
        return "it calls a tool of an MCP server"
    shows_change = need.detail_kind == "diff"
    known = {
        Permission.EXTERNAL_DIRECTORY: f"{need.pattern} is outside the project",
        Permission.EDIT: CHANGES_A_FILE if shows_change else f"it changes {need.pattern}",
        Permission.BASH: f"it runs {_program(need)}",
        Permission.TOOL: "it runs a function of a tool file",
        Permission.NETWORK: f"it wants to reach {need.pattern} on the network",
        Permission.WEBSEARCH: "the query leaves this machine",
    }
    return known.get(need.permission, f"the rule “{rule}” asks")


def _danger(need: PermissionNeed) -> str:
    """Return a verb phrase that says why reading or changing a special file is dangerous."""
    if need.permission is Permission.READ and need.secret:
        return "holds a secret"
    if need.permission is Permission.READ or is_sensitive(PurePath(need.pattern)):
        return HOLDS_SECRETS
    if instructs_agents(PurePath(need.pattern).name):
        return "is a file of instructions that agents follow"
    return "is a file that other programs run or read as settings"


def _changed(need: PermissionNeed) -> str:
    if "data" in need.changes:
        return f"{need.pattern}, which /undo can't bring back"
    return " and ".join([_CHANGED[change] for change in need.changes])


def _program(need: PermissionNeed) -> str:
    """Return the name of a need's command (``ruff format``) or tool; "it" if there is no name.

    Variables that are set before the command are left out. Loops and conditions have no name.
    """
    if need.permission is Permission.TOOL:
        return need.pattern
    if need.permission is not Permission.BASH:
        return _NO_NAME
    words = need.pattern[_end_of_variables(need.pattern) :].split()[:2]
    if not words or words[0] in _SHELL_WORDS or words[0].startswith("(("):
        return _NO_NAME
    if len(words) > 1 and not _SUBCOMMAND.fullmatch(words[1]):
        words.pop()
    return " ".join(words)


def _end_of_variables(command: str) -> int:
    """Return the index after the variables that are set before a command; 0 if there are none."""
    variables = _VARIABLES.match(command)
    return 0 if variables is None else variables.end()


class Mode(StrEnum):
    """A mode: how much a session may do without asking the user."""

    BUILD = "build"
    AUTO_EDIT = "auto-edit"
    PLAN = "plan"
    YOLO = "yolo"


CYCLE = (Mode.BUILD, Mode.AUTO_EDIT, Mode.PLAN)
"""Modes that the mode key cycles through; yolo has to be chosen by name."""

MODE_HELP: dict[Mode, str] = {
    Mode.BUILD: "asks before files of the project change; commands run in the sandbox and may write build output",
    Mode.AUTO_EDIT: "changes files of the project without asking, also by commands in the sandbox",
    Mode.PLAN: "changes nothing: reads, searches, and runs commands whose changes are thrown away",
    Mode.YOLO: "runs everything that no rule denies; only repeated calls and hooks still ask; ends with the program",
}
"""Clauses that describe the modes to the user."""
PLAN_RULE = Rule("*", "*", Action.DENY)
"""The rule that `decide_in_mode` returns for permission needs that plan mode refuses."""


def next_mode(mode: str) -> Mode:
    """Return the mode that the mode key changes to; ``build`` if ``mode`` is not in the cycle."""
    if mode in CYCLE:
        return CYCLE[(CYCLE.index(Mode(mode)) + 1) % len(CYCLE)]
    return Mode.BUILD


def view_in_mode(rules: Iterable[Rule], mode: str) -> View:
    """Return what commands in the sandbox can read and change; the mode and the rules decide it."""
    rules = tuple(rules)
    edits = decide(_ANY_FILE, rules).action
    reading = rule_of_reading(rules)
    if mode == Mode.PLAN:
        return View(Writes.NOTHING, reading=reading)
    if mode in {Mode.AUTO_EDIT, Mode.YOLO} and edits is not Action.DENY:
        return View(Writes.PROJECT, reading=reading)
    return View(Writes.OUTPUTS, Grants(sources=edits is Action.ALLOW), reading)


@frozen
class _RuleOfReading:
    """Returns "ask" or "deny" for a file that the rules don't allow reading, otherwise "".

    Each group of rules decides independently; the strictest decision counts.
    """

    groups: tuple[tuple[Rule, ...], ...]

    def __call__(self, path: str) -> str:
        need = PermissionNeed(Permission.READ, path)
        decisions: set[Action] = set()
        for rules in self.groups:
            if any(rule.is_against_some and rule.matches(need) for rule in rules):
                decisions.add(decide(need, rules).action)
        for action in (Action.DENY, Action.ASK):
            if action in decisions:
                return action.value
        return ""


def rule_of_reading(rules: Iterable[Rule]) -> RuleOfReading | None:
    """Return the function with which the sandbox decides whether a command may read a file.

    Returns None if no rule asks about or denies particular files; a rule for all files is not
    applied to commands. Rules whose permission is a glob that matches ``read`` count, too: they can
    hide more files from commands, but can't show a file that the rules of ``read`` itself hide.
    """
    covering = tuple(rule for rule in rules if rule.covers(Permission.READ))
    own = tuple(rule for rule in covering if rule.permission == Permission.READ.value)
    groups: list[tuple[Rule, ...]] = []
    for group in dict.fromkeys((own, covering)):
        if any(rule.is_against_some for rule in group):
            groups.append(group)
    if not groups:
        return None
    return _RuleOfReading(tuple(groups))


def decide_in_mode(need: PermissionNeed, rules: Iterable[Rule], mode: str, tool: str = "") -> Rule:
    """Return the rule that decides on a permission need in a mode.

    Returns `PLAN_RULE` for what plan mode refuses. ``tool`` is the name of the call's tool. If the
    rules ask, yolo mode allows everything except doom loops (repeated calls). If a catch-all rule
    asks, auto-edit mode allows ordinary edits of the project's files.
    """
    rules = tuple(rules)
    if "sources" in need.changes:
        left = tuple(change for change in need.changes if change != "sources")
        # The mode allows changes of sources, or the sandbox throws them away.
        if mode == Mode.PLAN or view_in_mode(rules, mode).changes_sources:
            need = replace(need, changes=left)
    if mode == Mode.PLAN and _is_refused_in_plan(need):
        return PLAN_RULE
    rule = decide(need, rules, tool)
    if rule.action is not Action.ASK:
        return rule
    if mode == Mode.YOLO and need.permission is not Permission.DOOM_LOOP:
        return Rule("*", "*", Action.ALLOW)
    if mode == Mode.AUTO_EDIT and rule.pattern == "*" and _is_plain_edit(need):
        return Rule("edit", "*", Action.ALLOW)
    return rule


def _is_refused_in_plan(need: PermissionNeed) -> bool:
    # Changes that the sandbox throws away do not count as changes.
    if need.sandboxed and not need.changes:
        return False
    if not need.permission.is_confinable:
        return need.permission in {Permission.EDIT, Permission.MCP}
    return not is_harmless(need)


def _is_plain_edit(need: PermissionNeed) -> bool:
    """Return True if the need is for an ordinary edit of a project file, which /undo restores."""
    if need.permission is not Permission.EDIT or need.pattern.startswith("/"):
        return False
    return not need.changes and not is_protected(need)


# -- answers -------------------------------------------------------------------------------------------------


def offered_rules(asked: Sequence[tuple[PermissionNeed, Rule]]) -> tuple[Rule, ...]:
    """Return the rules that would allow these permission needs for the rest of the session.

    ``asked`` contains each need with the rule that asks about it. Returns () if any need is a
    command that can't be understood, or a change that /undo can't restore.

    A rule may cover more than its need: all files of the project, a directory's content, commands
    with the same beginning.
    """
    if any(need.unclear or "data" in need.changes for need, _rule in asked):
        return ()
    rules: list[Rule] = []
    for need, rule in asked:
        offered = Rule(
            need.permission.value, need.pattern, Action.ALLOW, source="session", syntax="literal"
        )
        family = _family(need, rule)
        if family and not holds_secrets(need) and not is_protected(need):
            offered = replace(offered, pattern=family, syntax="glob")
        if offered not in rules:
            rules.append(offered)
    return tuple(rules)


def edited(rules: Sequence[Rule], patterns: Sequence[str]) -> tuple[Rule, ...]:
    """Return the offered rules with the patterns replaced by the user's, in the same order.

    There must be one pattern for each rule; otherwise, the rules are returned unchanged.
    """
    if len(patterns) != len(rules):
        return tuple(rules)
    return tuple(
        rule if pattern == rule.pattern else replace(rule, pattern=pattern, syntax="glob")
        for rule, pattern in zip(rules, patterns, strict=True)
    )


def _family(need: PermissionNeed, rule: Rule) -> str:
    """Return the pattern for a rule that covers a permission need and similar ones.

    Returns "" if a rule can cover only this need.
    """
    match need.permission:
        case Permission.EDIT if rule.pattern == "*" and need.detail_kind == "diff":
            # A command that writes a file gets a rule for only this file.
            return "" if need.pattern.startswith("/") else "*"
        case Permission.EXTERNAL_DIRECTORY if Path(need.pattern) not in {Path("/"), Path.home()}:
            return _all_below(need.pattern)
        case Permission.BASH:
            return need.always
        case Permission.WEBSEARCH:
            return "*"
        case Permission.WEBFETCH if (
            address := urlsplit(need.pattern)
        ).hostname and not address.username:
            return _all_below(f"{address.scheme}://{address.netloc}")
        case _:
            return ""


def _all_below(place: str) -> str:
    """Return the glob for everything below ``place``, a directory or host.

    Returns "" if ``place`` contains wildcards.
    """
    if has_magic(place):
        return ""
    return f"{place}/*"
