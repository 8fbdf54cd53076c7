"""Permission rules: what they say, how they are written, and where they come from. Pure."""

import os
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Literal

from tui_agent.lazy import dataclass
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.tools.registry import BUILTIN

Source = Literal["default", "user", "project", "here", "session", "flag"]
"""Where a rule is from, weak to strong. ``here`` is the user's own for this project."""

STRENGTH: dict[Source, int] = {"default": 0, "user": 1, "project": 2, "here": 3, "session": 4, "flag": 5}

STORED: dict[Source, str] = {
    "default": "built in",
    "user": "your config.toml",
    "project": ".tui-agent/config.toml of this project",
    "here": "your config.toml, for this project",
    "session": "this session, until the program ends",
    "flag": "the command line",
}
"""Where rules of a source are kept, in words."""


class Action(StrEnum):
    """What a rule says."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class RuleError(ValueError):
    """A rule is written wrongly; the message says what is accepted."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``permission`` (or the name of a tool) and ``pattern`` may be globs; ``literal`` takes the pattern as it stands.

    Two endings mean a little more than a glob: ``git status *`` is also ``git status`` without arguments, and
    ``/srv/data/*`` is also the directory itself.
    """

    permission: str
    pattern: str
    action: Action
    source: Source = "default"
    literal: bool = False

    def matches(self, need: PermissionNeed, tool: str = "") -> bool:
        """Whether the rule speaks about what a tool needs.

        A rule that allows has to match the need as it is; one against it also matches its other spellings. The other
        spelling of a host is the command that wants it: either may be named.
        """
        if not self.is_about(need.permission.value) and not self.names_tool(tool):
            return False
        named = self.action is Action.ALLOW and need.permission is not Permission.NETWORK
        texts = (need.pattern,) if named else (need.pattern, *need.aliases)
        return any(self._fits(text, need.permission) for text in texts)

    def is_about(self, name: str) -> bool:
        """Whether the rule names a permission or tool."""
        return fnmatchcase(name, self.permission)

    def names_tool(self, tool: str) -> bool:
        """Whether the rule names a tool. ``read`` and others are permissions, whatever tools are called."""
        return bool(tool) and self.permission not in set(Permission) and fnmatchcase(tool, self.permission)

    def _fits(self, text: str, permission: Permission) -> bool:
        if self.literal:
            return text == self.pattern
        if self.pattern == "*":
            return True
        if permission is Permission.EXTERNAL_DIRECTORY:
            pattern = os.path.expanduser(self.pattern)  # noqa: PTH111 - a pattern, not a path
            return fnmatchcase(text, pattern) or fnmatchcase(text, pattern.removesuffix("*").rstrip("*").rstrip("/"))
        return fnmatchcase(text, self.pattern) or (
            permission is Permission.BASH
            and self.pattern.endswith(" *")
            and fnmatchcase(text, self.pattern.removesuffix(" *"))
        )

    def __str__(self) -> str:
        """The rule as it is written: ``allow bash: git status``."""
        return f"{self.action.value} {self.permission}: {self.pattern}"


_ALL = {
    Permission.READ: "reading any file",
    Permission.EDIT: "all edits in this project",
    Permission.BASH: "all commands",
    Permission.WEBFETCH: "all web pages",
    Permission.NETWORK: "reaching every host",
    Permission.MCP: "all tools of servers",
    Permission.TOOL: "all tools in files",
    Permission.TASK: "tasks for every agent",
    Permission.EXTERNAL_DIRECTORY: "all directories outside the project",
}
_ONE = {
    Permission.READ: "reading {}",
    Permission.EDIT: "edits of {}",
    Permission.BASH: "the command “{}”",
    Permission.WEBFETCH: "the page {}",
    Permission.NETWORK: "reaching {}",
    Permission.MCP: "the tool {}",
    Permission.TOOL: "the tool {}",
    Permission.TASK: "tasks for {}",
    Permission.EXTERNAL_DIRECTORY: "the directory {}",
    Permission.DOOM_LOOP: "this repetition",
}
_BELOW = {
    Permission.BASH: ("commands that begin with “{}”", " *"),
    Permission.WEBFETCH: ("all pages of {}", "/*"),
    Permission.EXTERNAL_DIRECTORY: ("{} and all that is in it", "/*"),
}


def in_words(rule: str) -> str:
    """Return what a rule that allows is about, in words; others as they are written (``deny bash: rm *``)."""
    action, _, rest = rule.partition(" ")
    name, _, pattern = rest.partition(": ")
    if action != Action.ALLOW or name not in set(Permission):
        return rule
    permission = Permission(name)
    if pattern == "*" and permission in _ALL:
        return _ALL[permission]
    words, ending = _BELOW.get(permission, ("", ""))
    if words and pattern.endswith(ending):
        return words.format(pattern.removesuffix(ending).removeprefix("https://"))
    return _ONE[permission].format(pattern)


DEFAULT_RULES: tuple[Rule, ...] = (
    Rule("*", "*", Action.ASK),
    Rule("read", "*", Action.ALLOW),
)


def parse_rule(text: str, action: Action, source: Source = "flag") -> Rule:
    """Read ``PERMISSION`` or ``PERMISSION:PATTERN`` as given on the command line; a tool's name will do as well.

    Raises:
        RuleError: the permission is unknown or the pattern empty.
    """
    permission, separator, pattern = text.partition(":")
    permission = permission.strip()
    known = [member.value for member in Permission]
    names = {*known, *BUILTIN}
    # Tools of MCP servers are not known when rules are read; their names hold a separator or are globs.
    if permission not in names and not any(mark in permission for mark in "*_/."):
        raise RuleError(f"“{permission}” is not a permission; use one of {', '.join(known)}, a tool's name, or *.")
    if separator and not pattern.strip():
        raise RuleError(f"“{text}” has an empty pattern; write {permission}:PATTERN, for example {permission}:*.")
    return Rule(permission, pattern.strip() or "*", action, source)


def rules_from_table(table: dict[str, str | dict[str, str]], source: Source) -> tuple[Rule, ...]:
    """Turn the ``[permissions]`` table of a config file into rules, in the order written.

    Raises:
        RuleError: an action or permission is unknown.
    """
    rules: list[Rule] = []
    for permission, value in table.items():
        patterns = value.items() if isinstance(value, dict) else [("*", value)]
        for pattern, action in patterns:
            if action not in set(Action):
                raise RuleError(f"permissions.{permission} = “{action}” is not allowed; use allow, ask or deny.")
            rules.append(parse_rule(f"{permission}:{pattern}", Action(action), source))
    # A table has no order that people rely on; the catch-all pattern comes first so that others overrule it.
    return tuple(sorted(rules, key=lambda rule: rule.pattern != "*"))
