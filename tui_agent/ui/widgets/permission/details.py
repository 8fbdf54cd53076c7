"""What a question is about: its words, and the command, diff, address or loop below them."""

from collections.abc import Iterable, Iterator

from tui_agent.agent.checkpoints.restoring import ChangedFile
from tui_agent.agent.events import PermissionRequest
from tui_agent.app.format import one_line, visible
from tui_agent.app.frontend import DiffPage, Output, Page
from tui_agent.app.permission_text import asked_parts, question
from tui_agent.ui.widgets.transcript.bodies import INDENT, TextBody, Window, body_lines
from tui_agent.ui.widgets.transcript.line_view import LineView, diff_lines
from tui_agent.ui.widgets.transcript.lines import Line, crop_runs

LOOP_RESULTS, LOOP_LINES = 3, 3
"""Results of a repeated call that are shown, and lines of each."""


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
        if asked := asked_parts(request):
            command = request.command.strip()
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
