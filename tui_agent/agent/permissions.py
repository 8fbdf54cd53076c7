"""Decides whether a call may run: rules, their precedence, and the rules that an answer creates. Pure.

A rule names a permission, a pattern and an action. The last matching rule wins, and sources follow each other from
weak to strong: default, user, project, session, flag. Reading inside the project is free by default; files that
usually hold secrets, everything outside the project, edits and commands ask.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Literal

from tui_agent.tools.base import Permission, PermissionNeed
from tui_agent.tools.paths import is_sensitive

Source = Literal["default", "user", "project", "session", "flag"]


class Action(StrEnum):
    """What a rule says."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class RuleError(ValueError):
    """A rule is written wrongly; the message says what is accepted."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``permission`` and ``pattern`` may be globs; ``literal`` takes the pattern as it stands.

    A literal pattern is what an answer to a question creates: a command may hold ``*`` without meaning it.
    """

    permission: str
    pattern: str
    action: Action
    source: Source = "default"
    literal: bool = False

    def matches(self, need: PermissionNeed) -> bool:
        """Whether the rule speaks about a need."""
        if not fnmatchcase(need.permission.value, self.permission):
            return False
        if self.literal:
            return need.pattern == self.pattern
        return self.pattern == "*" or fnmatchcase(need.pattern, self.pattern)

    def __str__(self) -> str:
        """The rule as people read it: ``allow bash: git status``."""
        return f"{self.action.value} {self.permission}: {self.pattern}"


_STRENGTH: dict[Source, int] = {"default": 0, "user": 1, "project": 2, "session": 3, "flag": 4}

DEFAULT_RULES: tuple[Rule, ...] = (
    Rule("*", "*", Action.ASK),
    Rule("read", "*", Action.ALLOW),
)


def decide(need: PermissionNeed, rules: Iterable[Rule]) -> Rule:
    """Return the rule that decides a need: the last that matches, of the strongest source.

    A default never allows reading a file that usually holds secrets.
    """
    winner = Rule("*", "*", Action.ASK)
    for rule in sorted(rules, key=lambda rule: _STRENGTH[rule.source]):
        too_weak = rule.source == "default" and rule.action is Action.ALLOW and holds_secrets(need)
        if rule.matches(need) and not too_weak:
            winner = rule
    return winner


def holds_secrets(need: PermissionNeed) -> bool:
    """Whether a read is of a file that usually holds keys."""
    return need.permission is Permission.READ and is_sensitive(PurePath(need.pattern))


def reason_for(need: PermissionNeed, rule: Rule) -> str:
    """Say in a few words why a need is asked about."""
    if holds_secrets(need):
        return f"{need.pattern} usually holds secrets"
    match need.permission:
        case Permission.EXTERNAL_DIRECTORY:
            return f"{need.pattern} is outside the project"
        case Permission.EDIT:
            return "it changes a file"
        case Permission.BASH:
            return "it runs a command"
        case _:
            return f"the rule “{rule}” asks"


def session_rules(needs: Sequence[PermissionNeed]) -> tuple[Rule, ...]:
    """Return the rules that "always in this session" creates for the needs of one call.

    Edits are allowed in the whole project, directories with everything in them; a command only as it stands.
    """
    return tuple(dict.fromkeys(_session_rule(need) for need in needs))


def _session_rule(need: PermissionNeed) -> Rule:
    match need.permission:
        case Permission.EDIT:
            return Rule("edit", "*", Action.ALLOW, "session")
        case Permission.EXTERNAL_DIRECTORY:
            return Rule("external_directory", need.pattern, Action.ALLOW, "session", literal=True)
        case _:
            return Rule(need.permission.value, need.pattern, Action.ALLOW, "session", literal=True)


def parse_rule(text: str, action: Action, source: Source = "flag") -> Rule:
    """Read ``PERMISSION`` or ``PERMISSION:PATTERN`` as given on the command line.

    Raises:
        RuleError: the permission is unknown or the pattern empty.
    """
    permission, separator, pattern = text.partition(":")
    permission = permission.strip()
    known = [member.value for member in Permission]
    if permission not in (*known, "*"):
        raise RuleError(f"“{permission}” is no permission; use one of {', '.join(known)} or *.")
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
            rule = parse_rule(f"{permission}:{pattern}", Action(action), source)
            rules.append(rule)
    # A table has no order that people rely on; the catch-all pattern comes first so that others overrule it.
    return tuple(sorted(rules, key=lambda rule: rule.pattern != "*"))
