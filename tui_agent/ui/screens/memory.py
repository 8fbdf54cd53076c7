"""The memory page, which shows proposed changes as a diff and, below them, the lines kept so far.

The `MemoryView` makes the changes; this page calls it in threads.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import getters, on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui_agent.app.format import plural, visible
from tui_agent.app.frontend import Output, TextLine
from tui_agent.app.memory_view import NOTHING
from tui_agent.errors import UserFacingError
from tui_agent.ui.bindings import hidden
from tui_agent.ui.screens.page import FramedPage
from tui_agent.ui.widgets.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_agent.app.controller import Controller
    from tui_agent.app.memory_view import MemoryRow, MemoryView

_STYLES = {"+": "added", "-": "removed", " ": "kept"}


class MemoryScreen(FramedPage[None]):
    """The page that shows the project's memory, with keys to accept, drop and edit its lines."""

    HEADING = "Memory of this project"
    KEYS = "t take  x drop  e edit  u undo  enter show the source  ↑↓ move  esc back"
    AUTO_FOCUS = "OptionList"
    BINDINGS = [
        hidden("t", "take", "take"),
        hidden("x,delete", "drop", "drop"),
        hidden("e", "edit", "edit"),
        hidden("u", "undo", "undo"),
    ]
    COMPONENT_CLASSES = {
        "memory--added",
        "memory--removed",
        "memory--kept",
        "memory--facts",
        "memory--foreign",
        "memory--heading",
    }

    listing = getters.query_one(Options)

    def __init__(self, controller: Controller, view: MemoryView) -> None:
        super().__init__()
        self._controller = controller
        self._view = view

    def body(self) -> ComposeResult:
        yield Options(id="lines", compact=True)

    def on_mount(self) -> None:
        self._draw()

    @property
    def _row(self) -> MemoryRow | None:
        option = self.listing.highlighted_option
        rows = (*self._view.proposed, *self._view.kept)
        for row in rows:
            if option is not None and row.key == option.id:
                return row
        return None

    def _draw(self) -> None:
        view = self._view
        at = self.listing.highlighted
        self.listing.set_options(self._options())
        self.show_facts("" if view.proposed or view.kept else NOTHING)
        first = self.listing.first_enabled
        if at is None or first is None:
            self.listing.highlighted = first
            return
        last = len(self.listing.options) - 1
        at = min(max(at, first), last)
        if self.listing.options[at].disabled:
            at += 1 if at < last else -1
        self.listing.highlighted = at

    def _options(self) -> Iterator[Option]:
        view = self._view
        if view.proposed:
            yield self._title_row(f"Proposed: {plural(len(view.proposed), 'line')}, not sent yet")
            yield from map(self._option, view.proposed)
        if view.kept:
            gap = "\n" if view.proposed else ""
            yield self._title_row(f"{gap}{view.kept_heading}")
            yield from map(self._option, view.kept)

    def _title_row(self, text: str) -> Option:
        return Option(Content.styled(text, ".memory--heading"), disabled=True)

    def _option(self, row: MemoryRow) -> Option:
        parts: list[Content] = []
        for mark, text in row.diff:
            parts.append(Content.styled(visible(f"{mark} {text}\n"), f".memory--{_STYLES[mark]}"))
        style = "foreign" if row.line.is_foreign else "facts"
        sign = "! " if row.line.is_foreign else ""
        facts = Content.styled(visible(f"    {sign}{row.facts}"), f".memory--{style}")
        return Option(Content.assemble(*parts, facts), id=row.key)

    # -- keys

    def action_take(self) -> None:
        self._answer(self._view.take)

    def action_drop(self) -> None:
        self._answer(self._view.drop)

    def action_edit(self) -> None:
        row = self._row
        if row is not None:
            self._controller.soon(self._edit(row))

    def action_undo(self) -> None:
        self._controller.soon(self._do(self._view.undo, then=""))

    @on(OptionList.OptionSelected)
    def _selected(self) -> None:
        row = self._row
        if row is not None:
            self._controller.soon(self._show_source(row.line.source))

    async def _show_source(self, source: str) -> None:
        """Show the text of the entry that a line of the memory comes from, or why there is none."""
        if "#" not in source:
            self.notice.say_briefly("This line was written by hand.")
            return
        text = await asyncio.to_thread(self._view.text_of, source)
        if text is None:
            self.notice.say_briefly(f"{source} no longer exists: its session was deleted.")
            return
        self._controller.show(Output(source, text))

    def _answer(self, act: Callable[[MemoryRow], str]) -> None:
        row = self._row
        if row is not None:
            self._controller.soon(self._do(lambda: act(row)))

    async def _edit(self, row: MemoryRow) -> None:
        text = await self._controller.ask(TextLine("Keep the line as", row.line.shown, "keep"))
        if text is not None:
            await self._do(lambda: self._view.edit(row, text))

    async def _do(self, act: Callable[[], str], then: str = " Press u to undo it.") -> None:
        """Call ``act``, which changes the memory, in a thread; then read and show the memory again.

        Shows the sentence that ``act`` returns, followed by ``then``. After an error, shows only
        the error's text.
        """
        try:
            said = f"{await asyncio.to_thread(act)}{then}"
            await asyncio.to_thread(self._view.read)
        except UserFacingError as error:
            said = str(error)
        if self.is_attached:
            self._draw()
            self.notice.say_briefly(said)
