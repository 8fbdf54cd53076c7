"""The text of a permission question and its possible answers, the same in every frontend.

The agent's permission gate decides whether to ask, and which rules the answer "always" creates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tui_agent.app.format import one_line, plural
from tui_agent.permission import CHANGES_A_FILE, HOLDS_SECRETS, Permission, PermissionNeed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.agent.events import PermissionRequest

VERBS = {
    Permission.READ: "Read",
    Permission.EDIT: "Change",
    Permission.BASH: "Run",
    Permission.WEBFETCH: "Fetch",
    Permission.WEBSEARCH: "Search the web for",
    Permission.NETWORK: "Reach",
    Permission.MCP: "Use",
    Permission.TOOL: "Use",
    Permission.TASK: "Start",
    Permission.EXTERNAL_DIRECTORY: "Leave the project for",
    Permission.DOOM_LOOP: "The agent repeats itself. Run",
}
"""Beginning of the question about each permission; the question's subject follows."""
_OBJECTS = {
    Permission.BASH: "this command",
    Permission.WEBFETCH: "this address",
    Permission.DOOM_LOOP: "it again",
}
"""Words that stand for the subject in a question, because its details show the subject in full."""
_NAMED = {Permission.MCP, Permission.TOOL}
"""Permissions for which the question's subject is the name of the tool."""
_REQUESTS = {
    Permission.READ: "reading",
    Permission.EDIT: "changing",
    Permission.EXTERNAL_DIRECTORY: "going to",
    Permission.WEBFETCH: "fetching",
    Permission.NETWORK: "reaching",
}
YES_AND = "Yes, and …"
"""Placeholder of the field in which the user can add a note to an approval."""
MAX_REASON_CHARS = 200
"""Maximum length of the reason for a question, except for the number of the reasons left out."""
_MAX_REASONS_CHARS = 10_000
_REASON_SEPARATOR = ", and "
"""Text that the permission gate puts between the reasons for one question."""
_NEW_FILE = "--- /dev/null"
"""First line of every diff that creates a file."""


def change_mark(diff: str) -> str:
    """Return the mark that `ChangedFile` shows for a file's diff: A (added) or M (modified)."""
    return "A" if diff.startswith(_NEW_FILE) else "M"


def question(request: PermissionRequest) -> str:
    """Return the question about a permission request.

    This is the request's own question if it has one. Otherwise, it is made from the first
    permission that the call needs.
    """
    if request.question or not request.needs:
        return request.question or f"Use {one_line(request.tool, 40)}?"
    need = request.needs[0]
    if request.command:
        return _command_question(request, need)
    subject = _OBJECTS.get(need.permission) or one_line(request.title or need.pattern, 120)
    if need.permission in _NAMED:
        # Name only the tool, because its arguments are shown below the question.
        subject = one_line(request.tool, 80)
    if need.leads_to:
        subject = f"{subject} → {one_line(need.leads_to, 120)}"
    if need.permission is Permission.EDIT and need.detail_kind == "diff":
        return f"{'Create' if change_mark(need.detail) == 'A' else 'Change'} {subject}{_amount(need.detail)}?"
    return f"{VERBS[need.permission]} {subject}?"


def _command_question(request: PermissionRequest, need: PermissionNeed) -> str:
    if need.permission is Permission.NETWORK:
        return f"Allow network access to {one_line(need.pattern, 80)}?"
    if request.again:
        return "Run it again with that allowed?"
    if need.permission is Permission.TOOL:
        return f"Use {one_line(request.tool, 80)}?"
    return "Run this command?"


def _amount(diff: str) -> str:
    """Return the size of a diff in lines: `` (+502 lines)``, `` (+3 −1)``, or ""."""
    signs = [row[:1] for row in diff.partition("\n@@")[2].splitlines()[1:]]
    added = signs.count("+")
    removed = signs.count("-")
    if added and removed:
        return f" (+{added} −{removed})"
    if added:
        return f" (+{plural(added, 'line')})"
    if removed:
        return f" (−{plural(removed, 'line')})"
    return ""


def asked_parts(request: PermissionRequest) -> list[str]:
    """Return the parts of a shell command for which the user is asked, one line each.

    Parts that the question's reason already describes are left out. The result is empty if there is
    no command, or if the question is about the whole command line.
    """
    command = request.command.strip()
    if not command or all(need.detail.strip() == command for need in request.needs):
        return []
    # Leave out the needs with ``changes``, because the question's reason already describes them.
    return list(dict.fromkeys(_part(need) for need in request.needs if not need.changes))


def details_of(request: PermissionRequest) -> list[tuple[str, str]]:
    """Return what a call would do, as texts, each with its kind (``PermissionNeed.detail_kind``).

    Of a command, this is the whole command line with its redirections, whatever parts of it need
    permission. No text is returned twice.
    """
    details: dict[str, str] = {}
    for need in request.needs:
        is_of_command = need.may_change_files and need.permission is not Permission.TOOL
        if request.command and is_of_command:
            details.setdefault(request.command.strip(), "command")
        else:
            details.setdefault(need.detail or need.pattern, need.detail_kind)
    return list(details.items())


def _part(need: PermissionNeed) -> str:
    text = one_line(need.detail if need.detail_kind == "command" else need.pattern, 160)
    if need.permission.is_confinable:
        return text
    return f"{_REQUESTS.get(need.permission, need.permission.value)} {text}"


class Answer(NamedTuple):
    """An answer to a permission question; ``key`` is the key that chooses it.

    The names are once, session, deny, note (deny with a message), project, rule (edit the rules
    first) and stop. An answer that is not possible is shown, but can't be chosen.
    """

    name: str
    key: str
    text: str
    is_possible: bool = True


def answers(request: PermissionRequest, made: Sequence[str] = ()) -> list[Answer]:
    """Return the answers to offer.

    The answer "always" shows the rules in ``made`` or, if that is empty, the request's own rules.
    """
    from tui_agent.agent.permissions import in_words

    if request.loop:
        return [
            Answer("once", "y", request.once),
            Answer("session", "a", "keep going"),
            Answer("deny", "n", "no, try something else"),
            Answer("note", "e", "no, but …"),
            Answer("stop", "s", "stop the run"),
        ]
    rules = " · ".join(one_line(in_words(rule), 160) for rule in made or request.rules)
    rows = [
        Answer("once", "y", "yes, once"),
        Answer(
            "session",
            "a",
            f"always in this session: {rules or 'not possible for this call'}",
            bool(rules),
        ),
        Answer("deny", "n", "no"),
        Answer("note", "e", "no, but …"),
    ]
    if rules:
        rows += [
            Answer("project", "p", "always in this project"),
            Answer("rule", "r", f"edit the {'rule' if len(request.rules) == 1 else 'rules'}…"),
        ]
    return rows


def first_answers(request: PermissionRequest) -> tuple[str, ...]:
    """Return the names of the three answers that are shown before the other answers."""
    if request.loop:
        return ("once", "deny", "stop")
    if request.rules:
        return ("once", "session", "deny")
    return ("once", "deny", "note")


def note_hint(name: str) -> str:
    """Return the placeholder of the field for a note to an answer; "" if it takes no note."""
    if name in {"once", "session", "project"}:
        return YES_AND
    if name in {"deny", "note"}:
        return "What should the agent do instead?"
    return ""


def is_risky(request: PermissionRequest) -> bool:
    """Return True if a permission should not be given lightly.

    This is the case if the call may destroy data or continues a doom loop, or if no rule can be
    saved for it.
    """
    loses = any("data" in need.changes for need in request.needs)
    return loses or bool(request.loop) or not request.rules


def _shortened(reason: str) -> str:
    """Return a reason cut to `MAX_REASON_CHARS`, if possible between two of the joined reasons."""
    if len(reason) <= MAX_REASON_CHARS:
        return reason
    first, *others = reason.split(_REASON_SEPARATOR)
    shown = one_line(first, MAX_REASON_CHARS)
    for count, part in enumerate(others):
        longer = f"{shown}{_REASON_SEPARATOR}{part}"
        if len(longer) > MAX_REASON_CHARS:
            left = plural(len(others) - count, "more reason")
            return f"{shown}{_REASON_SEPARATOR}{left}"
        shown = longer
    return shown


def why(request: PermissionRequest) -> str:
    """Return the reason for the question in one line.

    Returns "" if the user can already see it in the question or its diff.
    """
    reason = _shortened(one_line(request.reason, _MAX_REASONS_CHARS))
    if len(request.needs) != 1 or request.loop:
        return reason
    need = request.needs[0]
    if (
        need.permission is Permission.EDIT
        and need.detail_kind == "diff"
        and reason == CHANGES_A_FILE
    ):
        return ""
    if need.permission is Permission.NETWORK and request.command:
        return ""
    if reason == f"{need.pattern} {HOLDS_SECRETS}":
        return "It may hold secrets."
    return reason
