"""Modes: how much runs without a question, and what commands in the sandbox may change. Pure.

``plan`` changes nothing, ``build`` build output, ``auto-edit`` the files of the project. In the sandbox a mode is what
a command may write to, whatever the command is called. ``yolo`` runs everything that no rule denies, and is never taken
over from an earlier run.
"""

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum

from tui_agent.agent.permissions.decisions import decide, is_free, is_protected
from tui_agent.agent.permissions.rules import Action, Rule
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.sandbox.view import Grants, View, Writes


class Mode(StrEnum):
    """What a session may do without asking."""

    BUILD = "build"
    AUTO_EDIT = "auto-edit"
    PLAN = "plan"
    YOLO = "yolo"


CYCLE = (Mode.BUILD, Mode.AUTO_EDIT, Mode.PLAN)
"""Modes that a key goes through; yolo has to be named."""

MODE_HELP: dict[Mode, str] = {
    Mode.BUILD: "asks before files of the project change; commands run in the sandbox and may write build output",
    Mode.AUTO_EDIT: "changes files of the project without asking, with commands in the sandbox too",
    Mode.PLAN: "changes nothing: reads, searches, and runs commands whose changes are thrown away",
    Mode.YOLO: "runs everything that no rule denies, without asking; ends with the program",
}
"""What each mode means, for lists."""

PLAN_REFUSAL = (
    "Not run: the session is in plan mode, in which nothing is changed. Read, search and describe what you would do; "
    "the user switches to build mode when it is to be done."
)
"""What the model is told of a call that plan mode refuses."""

_ANY_FILE = PermissionNeed(Permission.EDIT, ".")
PLAN_RULE = Rule("*", "*", Action.DENY)
"""What decides a need that plan mode refuses, whatever the rules say."""


def next_mode(mode: str) -> Mode:
    """Return the mode that the key goes to from ``mode``."""
    return CYCLE[(CYCLE.index(Mode(mode)) + 1) % len(CYCLE)] if mode in CYCLE else Mode.BUILD


def resumed_mode(mode: str | None, default: str) -> str:
    """Return the mode of a session that is opened again: what it was, but never yolo."""
    return default if mode is None else Mode.BUILD if mode == Mode.YOLO else mode


def view_in_mode(rules: Iterable[Rule], mode: str) -> View:
    """Return what commands in the sandbox may change in a mode: in build also the files that may be edited."""
    edits = decide(_ANY_FILE, rules).action
    if mode == Mode.PLAN:
        return View(Writes.NOTHING)
    if mode in {Mode.AUTO_EDIT, Mode.YOLO} and edits is not Action.DENY:
        return View(Writes.PROJECT)
    return View(Writes.OUTPUTS, Grants(sources=edits is Action.ALLOW))


def is_refused_by_plan(need: PermissionNeed) -> bool:
    if need.permission.runs:
        # What the sandbox throws away has changed nothing.
        return not is_free(need) and not (need.sandboxed and not need.changes)
    return need.permission in {Permission.EDIT, Permission.MCP}


def decide_in_mode(need: PermissionNeed, rules: Iterable[Rule], mode: str, tool: str = "") -> Rule:
    rules = tuple(rules)
    if "sources" in need.changes and (mode == Mode.PLAN or view_in_mode(rules, mode).changes_sources):
        # They may change, or what changes is thrown away.
        need = replace(need, changes=tuple(change for change in need.changes if change != "sources"))
    if mode == Mode.PLAN and is_refused_by_plan(need):
        return PLAN_RULE
    rule = decide(need, rules, tool)
    if rule.action is not Action.ASK:
        return rule
    if mode == Mode.YOLO and need.permission is not Permission.DOOM_LOOP:
        return Rule("*", "*", Action.ALLOW)
    if mode == Mode.AUTO_EDIT and _is_plain_edit(need) and rule.pattern == "*":
        return Rule("edit", "*", Action.ALLOW)
    return rule


def _is_plain_edit(need: PermissionNeed) -> bool:
    """Whether a file of the project is changed that a checkpoint can take back. Files outside have an absolute path."""
    plain = need.permission is Permission.EDIT and not need.pattern.startswith("/")
    return plain and not need.changes and not is_protected(need)
