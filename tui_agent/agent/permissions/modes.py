"""Modes: how much runs without a question. Pure.

``build`` asks as configured. ``auto-edit`` also changes files of the project unasked. ``plan`` changes nothing: only
what reads runs. ``yolo`` runs everything that no rule denies, and is never taken over from an earlier run.
"""

from collections.abc import Iterable
from enum import StrEnum

from tui_agent.agent.permissions.decisions import decide, is_free, is_protected
from tui_agent.agent.permissions.rules import Action, Rule
from tui_agent.tools.permission import Permission, PermissionNeed


class Mode(StrEnum):
    """What a session may do without asking."""

    BUILD = "build"
    AUTO_EDIT = "auto-edit"
    PLAN = "plan"
    YOLO = "yolo"


CYCLE = (Mode.BUILD, Mode.AUTO_EDIT, Mode.PLAN)
"""Modes that a key goes through; yolo has to be named."""

MODE_HELP: dict[Mode, str] = {
    Mode.BUILD: "asks before it changes files or runs commands that do more than read",
    Mode.AUTO_EDIT: "changes files of the project without asking; commands ask",
    Mode.PLAN: "changes nothing: reads, searches, and runs only commands that read",
    Mode.YOLO: "runs everything that no rule denies, without asking; ends with the program",
}
"""What each mode means, for lists."""

PLAN_REFUSAL = (
    "Not run: the session is in plan mode, in which nothing is changed. Read, search and describe what you would do; "
    "the user switches to build mode when it is to be done."
)
"""What the model is told of a call that plan mode refuses."""

_CHANGES = frozenset({Permission.EDIT, Permission.BASH, Permission.MCP})
_PLAN_RULE = Rule("*", "*", Action.DENY)


def next_mode(mode: str) -> Mode:
    """Return the mode that the key goes to from ``mode``."""
    return CYCLE[(CYCLE.index(Mode(mode)) + 1) % len(CYCLE)] if mode in CYCLE else Mode.BUILD


def resumed_mode(mode: str | None, default: str) -> str:
    """Return the mode of a session that is opened again: what it was, but never yolo."""
    return default if mode is None else Mode.BUILD if mode == Mode.YOLO else mode


def is_refused_by_plan(need: PermissionNeed) -> bool:
    """Whether plan mode refuses a need, whatever the rules say."""
    return need.permission in _CHANGES and not is_free(need)


def decide_in_mode(need: PermissionNeed, rules: Iterable[Rule], mode: str, tool: str = "") -> Rule:
    """Return the rule that decides a need in a mode."""
    rules = tuple(rules)
    if mode == Mode.PLAN and is_refused_by_plan(need):
        return _PLAN_RULE
    rule = decide(need, rules, tool)
    if rule.action is not Action.ASK:
        return rule
    if mode == Mode.YOLO and need.permission is not Permission.DOOM_LOOP:
        return Rule("*", "*", Action.ALLOW)
    if mode == Mode.AUTO_EDIT and _is_plain_edit(need) and rule.pattern == "*":
        return Rule("edit", "*", Action.ALLOW)
    if mode == Mode.AUTO_EDIT and _edits_inside(need) and rule.source == "default":
        return Rule("bash", "*", Action.ALLOW)
    return rule


def _is_plain_edit(need: PermissionNeed) -> bool:
    """Whether a file of the project is changed that rules nothing. Files outside have an absolute path."""
    return need.permission is Permission.EDIT and not need.pattern.startswith("/") and not is_protected(need)


def _edits_inside(need: PermissionNeed) -> bool:
    """Whether a command changes files of the project, and is held by a sandbox while it does."""
    return need.permission is Permission.BASH and need.sandboxed and need.inside == "edits" and not need.unclear
