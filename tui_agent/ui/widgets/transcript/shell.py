"""Commands the user ran with ``!``: the command, and the end of what it printed."""

from collections.abc import Iterable

from tui_agent.session.entries import ShellEntry
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.blocks import Fold, FoldingBlock, head_line
from tui_agent.ui.widgets.transcript.bodies import TextBody, Window, body_lines
from tui_agent.ui.widgets.transcript.lines import Line, StyledSpan

_ROWS = 12


class ShellBlock(FoldingBlock):
    """A command of the user and its output."""

    kind = "shell"

    def __init__(self, entry: ShellEntry) -> None:
        super().__init__("shell")
        self._entry = entry
        self._output = sanitize.output(entry.output)
        self._rows = TextBody(self._output)
        self.foldable = len(self._rows) > 0
        self.fold = Fold.PART

    def cycle(self) -> None:
        """Show everything after a part, and nothing after everything."""
        if self.fold is Fold.PART and len(self._rows) <= _ROWS + 1:
            self.fold = Fold.CLOSED
        else:
            self.fold = Fold((self.fold + 1) % len(Fold))

    def copy_text(self) -> str:
        """Return the output, or the command when it printed nothing."""
        return self._output or sanitize.text(self._entry.command)

    def _head(self, width: int) -> Iterable[Line]:
        entry = self._entry
        left: list[StyledSpan] = [("$ ", "user-bar act:toggle"), (sanitize.line(entry.command), "title act:toggle")]
        facts: list[StyledSpan] = []
        if entry.exit_code:
            facts.append((f"exit {entry.exit_code}", "status-warning"))
        if entry.excluded:
            facts.append(("not shown to the model", "muted"))
        end = ((f"  {self.chevron}", "muted act:toggle"),) if self.foldable else ()
        yield head_line(left, facts, end, width)

    def _body(self, width: int) -> Iterable[Line]:
        return body_lines(self._rows, width, Window(None if self.fold is Fold.FULL else _ROWS, "tail"))
