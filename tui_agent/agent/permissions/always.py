"""The rules that "always in this session" creates: shown before they are made, and never more than was asked. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from tui_agent.agent.permissions.decisions import holds_secrets, is_protected
from tui_agent.agent.permissions.rules import Action, Rule
from tui_agent.permission import Permission, PermissionNeed

AskedNeed = tuple[PermissionNeed, Rule]
"""A need and the rule by which it is asked about."""


def session_rules(asked: Sequence[AskedNeed]) -> tuple[Rule, ...]:
    """Return the rules that "always" creates; none when one of the needs can't be allowed for more than once.

    An edit opens the project, a directory all that is in it, a command its family.
    """
    rules = [_session_rule(need, rule) for need, rule in asked]
    return () if None in rules else tuple(dict.fromkeys(rule for rule in rules if rule is not None))


def edited(rules: Sequence[Rule], patterns: Sequence[str]) -> tuple[Rule, ...]:
    """Return rules with the patterns that the user made of theirs; without any they are as offered."""
    if len(patterns) != len(rules):
        return tuple(rules)
    return tuple(
        rule if pattern == rule.pattern else replace(rule, pattern=pattern, literal=False)
        for rule, pattern in zip(rules, patterns, strict=True)
    )


def _session_rule(need: PermissionNeed, rule: Rule) -> Rule | None:
    if need.unclear or "data" in need.changes:
        return None
    name = need.permission.value
    pattern = "" if holds_secrets(need) or is_protected(need) else _family(need, rule)
    if pattern:
        return Rule(name, pattern, Action.ALLOW, "session")
    return Rule(name, need.pattern, Action.ALLOW, "session", literal=True)


def _family(need: PermissionNeed, rule: Rule) -> str:
    """Return the pattern for what belongs together with a need, "" for nothing but itself."""
    match need.permission:
        case Permission.EDIT if rule.pattern == "*" and not need.pattern.startswith("/"):
            return "*"
        case Permission.EXTERNAL_DIRECTORY if Path(need.pattern) not in {Path("/"), Path.home()}:
            return f"{need.pattern}/*"
        case Permission.BASH:
            return need.always
        case Permission.WEBFETCH if (address := urlsplit(need.pattern)).hostname and not address.username:
            return f"{address.scheme}://{address.netloc}/*"
        case _:
            return ""
