"""What a question is about: its words, and the command, diff, address or loop below them."""

from collections.abc import Iterable, Iterator

from tui_agent.agent.checkpoints.differing import ChangedFile
from tui_agent.agent.events import PermissionRequest
from tui_agent.app.format import one_line, plural, visible
from tui_agent.app.frontend import DiffPage, Output, Page
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.ui.widgets.transcript.bodies import INDENT, TextBody, Window, body_lines
from tui_agent.ui.widgets.transcript.line_view import LineView, diff_lines
from tui_agent.ui.widgets.transcript.lines import Line, crop_runs
from tui_agent.ui.widgets.transcript.reading_diffs import read_diff

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
WHAT = {Permission.BASH: "this command", Permission.WEBFETCH: "this address", Permission.DOOM_LOOP: "this call"}
"""What a question is about when the details below name it anyway."""

ABOUT = {
    Permission.READ: "reading",
    Permission.EDIT: "changing",
    Permission.EXTERNAL_DIRECTORY: "going to",
    Permission.WEBFETCH: "fetching",
    Permission.NETWORK: "reaching",
}
"""How a part of a command is named that needs more than to run."""

CHANGED = {
    "sources": "changing files of the project",
    "repository": "changing the repository",
    "data": "changing what /undo cannot bring back",
}

NEW_FILE = "--- /dev/null"
"""How the diff of a file begins that was not there."""
LOOP_RESULTS, LOOP_LINES = 3, 3
"""Results of a repeated call that are shown, and lines of each."""


def question(request: PermissionRequest) -> str:
    """Return the question in a few words."""
    if request.question:
        return request.question
    if not request.needs:
        return f"Use {one_line(request.tool, 40)}?"
    need = request.needs[0]
    if request.command:
        return _about_command(request, need)
    what = WHAT.get(need.permission) or one_line(request.title or need.pattern, 120)
    if need.permission is Permission.EDIT and need.detail_kind == "diff":
        return f"{'Create' if need.detail.startswith(NEW_FILE) else 'Change'} {what}{_amount(need.detail)}?"
    return f"{VERBS[need.permission]} {what}?"


def _about_command(request: PermissionRequest, need: PermissionNeed) -> str:
    if need.permission is Permission.NETWORK:
        return f"Let it reach {one_line(need.pattern, 80)}?"
    if request.again:
        return "Run it again with that allowed?"
    return f"Use {one_line(request.tool, 80)}?" if need.permission is Permission.TOOL else "Run this command?"


def _amount(diff: str) -> str:
    """Return how many lines a diff adds and removes: `` (+502 lines)``, `` (+3 −1)``."""
    rows = read_diff(diff)
    added, removed = (sum(row.kind == kind for row in rows) for kind in ("added", "removed"))
    if added and removed:
        return f" (+{added} −{removed})"
    number, sign = (added, "+") if added else (removed, "−")
    return f" ({sign}{plural(number, 'line')})" if number else ""


def whole_page(request: PermissionRequest) -> Page:
    """Return the page that shows all of what a question is about."""
    diffs = [need for need in request.needs if need.detail_kind == "diff"]
    if diffs:
        return DiffPage(question(request), [ChangedFile("M", need.pattern, "", need.detail) for need in diffs])
    told = [request.command, *(need.detail or need.pattern for need in request.needs), *request.loop]
    return Output(question(request), "\n\n".join(dict.fromkeys(filter(None, told))))


class PermissionDetails(LineView):
    """The full command, diff or address, as the conversation would show it. Nothing in it is markup."""

    def ask(self, request: PermissionRequest) -> None:
        """Show what the call wants: for a loop what it gave so far, for a command all of it and what of it asks."""
        if request.loop:
            self.show(lambda width: _loop_lines(request, width))
            return
        command = request.command.strip()
        if command and any(need.detail.strip() != command for need in request.needs):
            asked = list(dict.fromkeys(_asked(need) for need in request.needs))
            self.show(lambda width: [*_text_lines(command, "strong", width), *_asked_lines(asked, width)])
            return
        shown = dict.fromkeys((need.detail or need.pattern, need.detail_kind) for need in request.needs)
        self.show(lambda width: [line for text, kind in shown if text for line in _detail_lines(text, kind, width)])

    def first_change(self) -> int:
        """Return the first line that adds or removes something; 0 where none does."""
        lines = enumerate(self.lines(self.size.width))
        return next((at for at, line in lines if line.fill.startswith(("added", "removed"))), 0)


def _text_lines(text: str, style: str, width: int) -> Iterable[Line]:
    return body_lines(TextBody(visible(text), style, ""), width, Window(None))


def _detail_lines(text: str, kind: str, width: int) -> Iterable[Line]:
    if kind == "diff":
        return diff_lines(text)(width)
    return _text_lines(text, "strong" if kind == "command" else "text", width)


def _asked(need: PermissionNeed) -> str:
    """Return a part of a command that asks, on one line, with what it is about."""
    text = one_line(need.detail if need.detail_kind == "command" else need.pattern, 160)
    if need.permission.runs:
        changed = " and ".join(CHANGED[change] for change in need.changes)
        return f"{changed} with {text}" if changed else text
    return f"{ABOUT.get(need.permission, need.permission.value)} {text}"


def _asked_lines(asked: Iterable[str], width: int) -> Iterator[Line]:
    for text in asked:
        yield Line(crop_runs([("asks for  ", "muted"), (text, "text")], width))


def _loop_lines(request: PermissionRequest, width: int) -> Iterator[Line]:
    """Yield the repeated call and its last results, shortened; of a repetitive answer the repeated text."""
    yield from _text_lines(one_line(f"{request.tool} {request.title}", 400), "strong", width)
    # A repetitive answer comes with its text twice.
    first = len(request.loop) - 1 if request.question else max(0, len(request.loop) - LOOP_RESULTS)
    for number, result in enumerate(request.loop[first:], first + 1):
        kept = visible(result).strip().splitlines()
        more = f"  … {len(kept) - LOOP_LINES} more lines" if len(kept) > LOOP_LINES else ""
        name = "repeated text" if request.question else f"result {number} of {len(request.loop)}"
        yield Line([(f"{name}{more}", "muted")])
        for text in kept[:LOOP_LINES] or ["(nothing)"]:
            yield Line(crop_runs([(one_line(text), "text")], width - len(INDENT)), prefix=((INDENT, "text"),))
