"""Shows the transcript with invented entries: ``python -m tests.support.transcript_demo [entries]``.

``s`` streams an answer, ``c`` runs a call, ``t`` changes the theme.
"""

import sys
from collections.abc import Iterator
from itertools import cycle
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer
from textual.widgets import Footer

from tests.support.transcript_samples import ANSWER, GeneratedSource, ListSource, every_kind
from tui_agent.context.context_status import Standing
from tui_agent.context.context_status_cache import Standings
from tui_agent.resources import style_path
from tui_agent.session.entries import AssistantEntry, TextPart, ToolMetadata
from tui_agent.ui.widgets.transcript.source import EntrySource
from tui_agent.ui.widgets.transcript.transcript import Transcript


class TranscriptDemo(App[None]):
    """One transcript and a footer."""

    CSS_PATH = [style_path("standing.tcss"), style_path("transcript.tcss")]  # noqa: RUF012 - as inherited
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "stream", "Stream"),
        Binding("c", "call", "Call"),
        Binding("t", "theme", "Theme"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, source: EntrySource) -> None:
        super().__init__()
        self._entries = source
        self._chunks: Iterator[str] = iter(())
        self._timer: Timer | None = None
        self._themes = cycle(["textual-light", "ansi-dark", "nord", "textual-dark"])

    def compose(self) -> ComposeResult:
        """Show a transcript."""
        yield Transcript()
        yield Footer()

    def on_mount(self) -> None:
        """Show the entries."""
        transcript = self.query_one(Transcript)
        transcript.set_entries(self._entries)
        transcript.set_standings(Standings(known={3: Standing.CLEARED}, edited=frozenset({3})))
        transcript.focus()

    def on_transcript_copy_requested(self, message: Transcript.CopyRequested) -> None:
        """Copy."""
        self.copy_to_clipboard(message.text)
        self.notify(f"{len(message.text)} characters copied", markup=False)

    def on_transcript_action_requested(self, message: Transcript.ActionRequested) -> None:
        """Tell what was asked for."""
        self.notify(f"{message.action} #{message.entry_id}", markup=False)

    def action_stream(self) -> None:
        """Stream an answer, a few characters at a time."""
        text = ANSWER * 3
        self._chunks = (text[start : start + 5] for start in range(0, len(text), 5))
        self._timer = self.set_interval(0.01, self._stream_one)

    def _stream_one(self) -> None:
        chunk = next(self._chunks, None)
        if chunk is not None:
            self.query_one(Transcript).live_text(chunk)
        elif self._timer is not None:
            self._timer.stop()
            transcript = self.query_one(Transcript)
            transcript.append_entry(AssistantEntry(id=1_000_000, parts=(TextPart(text=ANSWER * 3),), model="demo"))

    def action_call(self) -> None:
        """Run a call that prints something and ends."""
        transcript = self.query_one(Transcript)
        transcript.tool_started("demo", "bash", "make test", '{"command": "make test"}')
        for number in range(8):
            self.set_timer(0.4 * number, lambda number=number: transcript.tool_output("demo", f"step {number}\n"))
        self.set_timer(4, lambda: transcript.tool_finished("demo", "completed", ToolMetadata(exit_code=0), 4.0))

    def action_theme(self) -> None:
        """Change to the next theme."""
        self.theme = next(self._themes)


def main() -> None:
    """Run the demo."""
    length = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    TranscriptDemo(GeneratedSource(length) if length else ListSource(every_kind())).run()


if __name__ == "__main__":
    main()
