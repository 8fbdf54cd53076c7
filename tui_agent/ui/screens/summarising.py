"""The summary of a branch that is left or merged, growing in sight."""

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import getters, work
from textual.app import ComposeResult
from textual.widgets import Static

from tui_agent.agent.navigator import NavigationError
from tui_agent.session.errors import StoreError
from tui_agent.ui.screens.dialogs import Dialog
from tui_agent.ui.widgets.transcript import sanitize

PAINT_SECONDS = 0.12
"""Time between two looks at what was written."""
TAIL = 8
"""Lines of the growing summary that are shown."""


class SummarisingScreen(Dialog[str]):
    """Dismissed with what went wrong, "" when it is done, None when Escape cancelled it: then nothing has changed."""

    KEYS: ClassVar[str] = "esc back, nothing changes"

    growing = getters.query_one("#growing", Static)

    def __init__(self, work: Callable[[Callable[[str], None]], Awaitable[object]]) -> None:
        """``work`` is given what takes the pieces of the summary."""
        super().__init__("Summarising …")
        self._summarise = work
        self._written = ""

    def body(self) -> ComposeResult:
        yield Static(id="growing", markup=False)

    def on_mount(self) -> None:
        self.set_interval(PAINT_SECONDS, self._paint)
        self._do()

    @work(group="summary")
    async def _do(self) -> None:
        problem = ""
        try:
            await self._summarise(self._write)
        except (NavigationError, StoreError) as error:
            problem = str(error) or "It did not work."
        self.dismiss(problem)

    def _write(self, piece: str) -> None:
        self._written += piece

    def _paint(self) -> None:
        lines = sanitize.text(self._written[-4_000:]).strip().split("\n")[-TAIL:]
        self.growing.update("\n".join(filter(None, lines)))

    def action_back(self) -> None:
        self.workers.cancel_node(self)
        self.dismiss(None)
