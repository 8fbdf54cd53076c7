"""Decides what the rules say about a need. Pure.

Within a source the last matching rule counts, and a stronger source overrules a weaker one. Two things are firmer:
what a rule denies stays denied unless a flag of this very run allows it, and a catch-all never covers what is out of
the ordinary (secrets, the files that rule the program itself, commands that can't be understood).
"""

from collections.abc import Iterable
from pathlib import PurePath

from tui_agent.agent.permissions.rules import STRENGTH, Action, Rule, Source
from tui_agent.tools.permission import Permission, PermissionNeed
from tui_agent.tools.sensitive import is_sensitive, rules_programs

_NOBODY = Rule("*", "*", Action.ASK)


def decide(need: PermissionNeed, rules: Iterable[Rule], tool: str = "") -> Rule:
    """Return the rule that decides a need; its action is ``ask`` when none does."""
    verdicts: dict[Source, Rule] = {}
    for rule in rules:
        if rule.matches(need, tool) and _covers(rule, need):
            verdicts[rule.source] = rule
    flag = verdicts.get("flag")
    denied = [rule for rule in verdicts.values() if rule.action is Action.DENY and rule.source != "default"]
    if denied and flag is None:
        return min(denied, key=lambda rule: STRENGTH[rule.source])
    winner = max(verdicts.values(), key=lambda rule: STRENGTH[rule.source], default=_NOBODY)
    if winner.action is Action.ASK and winner.pattern == "*" and is_free(need):
        return Rule("bash", "*", Action.ALLOW)
    if winner.action is Action.ASK and winner.source == "default" and is_contained(need):
        return Rule("bash", "*", Action.ALLOW)
    return winner


def refusal_of_tool(tool: str, rules: Iterable[Rule]) -> Rule | None:
    """Return the rule that forbids a tool as such, also where a call needs nothing else."""
    last: Rule | None = None
    for rule in sorted(rules, key=lambda rule: STRENGTH[rule.source]):
        if rule.pattern == "*" and rule.permission != "*" and rule.names_tool(tool):
            last = rule
    return last if last is not None and last.action is Action.DENY else None


def is_free(need: PermissionNeed) -> bool:
    """Whether a need is a command that only reads."""
    return need.permission is Permission.BASH and need.harmless and not need.unclear


def is_contained(need: PermissionNeed) -> bool:
    """Whether a need is a command that builds or tests, and is held by a sandbox while it does.

    A rule of the user's own that says ask, for all commands too, is stronger than this.
    """
    return need.permission is Permission.BASH and need.sandboxed and need.inside == "builds" and not need.unclear


def holds_secrets(need: PermissionNeed) -> bool:
    """Whether a file is read that usually holds keys."""
    return need.permission is Permission.READ and is_sensitive(PurePath(need.pattern))


def is_protected(need: PermissionNeed) -> bool:
    """Whether a file is changed that rules what programs do here, or that usually holds keys."""
    if need.permission is not Permission.EDIT:
        return False
    path = PurePath(need.pattern)
    return rules_programs(path) or is_sensitive(path)


def _covers(rule: Rule, need: PermissionNeed) -> bool:
    """Whether a rule that matches may decide: one that allows everything may not have meant this."""
    if rule.action is not Action.ALLOW:
        return True
    meant = rule.source in {"user", "flag"}
    if need.unclear:
        return rule.pattern == "*" and rule.source != "default"
    if holds_secrets(need) or is_protected(need):
        return rule.source != "default" and (rule.pattern != "*" or meant)
    return True


def reason_for(need: PermissionNeed, rule: Rule) -> str:
    """Say in a few words why a need is asked about."""
    if need.unclear:
        return need.unclear
    secret = holds_secrets(need) or (is_protected(need) and is_sensitive(PurePath(need.pattern)))
    if secret or is_protected(need):
        return f"{need.pattern} {'usually holds secrets' if secret else 'rules what programs do here'}"
    known = {
        Permission.EXTERNAL_DIRECTORY: f"{need.pattern} is outside the project",
        Permission.EDIT: "it changes a file",
        Permission.BASH: "it runs a command, held by the sandbox" if need.sandboxed else "it runs a command",
        Permission.NETWORK: "it wants out of the sandbox to the network",
    }
    return known.get(need.permission, f"the rule “{rule}” asks")
