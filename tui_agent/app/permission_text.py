"""The words of a permission question and of its answers, the same on the screen and in plain mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tui_agent.app.format import one_line, plural
from tui_agent.permission import Permission, PermissionNeed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.agent.events import PermissionRequest

VERBS = {
    Permission.READ: "Read",
    Permission.EDIT: "Change",
    Permission.BASH: "Run",
    Permission.WEBFETCH: "Fetch",
    Permission.NETWORK: "Reach",
    Permission.MCP: "Use",
    Permission.TOOL: "Use",
    Permission.TASK: "Start",
    Permission.EXTERNAL_DIRECTORY: "Leave the project for",
    Permission.DOOM_LOOP: "Go on repeating",
}
_OBJECTS = {Permission.BASH: "this command", Permission.WEBFETCH: "this address", Permission.DOOM_LOOP: "this call"}
"""Objects of the question where the details below it name them."""
_REQUESTS = {
    Permission.READ: "reading",
    Permission.EDIT: "changing",
    Permission.EXTERNAL_DIRECTORY: "going to",
    Permission.WEBFETCH: "fetching",
    Permission.NETWORK: "reaching",
}
_CHANGES = {
    "sources": "changing files of the project",
    "repository": "changing the repository",
    "data": "changing what /undo cannot bring back",
}
_NEW_FILE = "--- /dev/null"
"""First line of the diff of a new file."""


def question(request: PermissionRequest) -> str:
    if request.question or not request.needs:
        return request.question or f"Use {one_line(request.tool, 40)}?"
    need = request.needs[0]
    if request.command and need.permission is Permission.NETWORK:
        return f"Let it reach {one_line(need.pattern, 80)}?"
    if request.command and request.again:
        return "Run it again with that allowed?"
    if request.command:
        return f"Use {one_line(request.tool, 80)}?" if need.permission is Permission.TOOL else "Run this command?"
    subject = _OBJECTS.get(need.permission) or one_line(request.title or need.pattern, 120)
    if need.permission is Permission.EDIT and need.detail_kind == "diff":
        return f"{'Create' if need.detail.startswith(_NEW_FILE) else 'Change'} {subject}{_amount(need.detail)}?"
    return f"{VERBS[need.permission]} {subject}?"


def _amount(diff: str) -> str:
    """Return how many lines the diff of a file adds and removes: `` (+502 lines)``, `` (+3 −1)``."""
    rows = diff.partition("\n@@")[2].splitlines()[1:]
    added, removed = (sum(row.startswith(sign) for row in rows) for sign in "+-")
    if added and removed:
        return f" (+{added} −{removed})"
    number, sign = (added, "+") if added else (removed, "−")
    return f" ({sign}{plural(number, 'line')})" if number else ""


def asked_parts(request: PermissionRequest) -> list[str]:
    """Return the parts of a command that ask, one line each; none if the whole command is one part."""
    command = request.command.strip()
    if not command or all(need.detail.strip() == command for need in request.needs):
        return []
    return list(dict.fromkeys(map(_part, request.needs)))


def _part(need: PermissionNeed) -> str:
    text = one_line(need.detail if need.detail_kind == "command" else need.pattern, 160)
    if need.permission.runs:
        changed = " and ".join(_CHANGES[change] for change in need.changes)
        return f"{changed} with {text}" if changed else text
    return f"{_REQUESTS.get(need.permission, need.permission.value)} {text}"


class Answer(NamedTuple):
    """An answer: ``name`` is once, session, deny, note, project, rule or stop."""

    name: str
    text: str
    is_possible: bool = True


def answers(request: PermissionRequest, made: Sequence[str] = ()) -> list[Answer]:
    """Return the answers to a question. "Always" names the offered rules, or ``made`` in their place."""
    from tui_agent.agent.permissions import in_words

    if request.loop:
        return [
            Answer("once", request.once),
            Answer("session", "go on, and don't ask about this repetition again"),
            Answer("deny", "no, it should try something else"),
            Answer("note", "no, and say what to do instead"),
            Answer("stop", "stop the run"),
        ]
    rules = " · ".join(one_line(in_words(rule), 160) for rule in made or request.rules)
    rows = [
        Answer("once", "yes, once"),
        Answer("session", f"always in this session: {rules or 'not for this one'}", bool(rules)),
        Answer("deny", "no"),
        Answer("note", "no, and say what to do instead"),
    ]
    if rules:
        rows += [
            Answer("project", "always, in later sessions of this project too"),
            Answer("rule", f"change the {'rule' if len(request.rules) == 1 else 'rules'} first"),
        ]
    return rows
