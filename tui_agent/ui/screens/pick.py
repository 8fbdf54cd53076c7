"""One of many rows, found by typing, with all of the highlighted one below."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual import getters
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.fuzzy import FuzzySearch
from textual.widgets import Static

from tui_agent.app.format import one_line, visible
from tui_agent.app.frontend import Pick, PickRow
from tui_agent.ui.screens.picker import MAX_ROWS, PickerRow, PickerScreen, word_offsets
from tui_agent.ui.widgets.key_line import KeyLine

MAX_SCORED = 2_000
"""Rows that are scored letter by letter where none has the words as they were typed."""
FACTS_FROM = 60
"""Columns from which there is room for facts."""


def matching(rows: Sequence[PickRow], query: str) -> Iterator[tuple[PickRow, tuple[int, ...]]]:
    """Yield the rows that have all words of a query, in their order; where none has, those with its letters.

    Without a query all of them.
    """
    words = query.lower().split()
    plain = [row for row in rows if all(word in row.text.lower() for word in words)]
    if plain or not words:
        for row in plain:
            yield row, word_offsets(row.text.lower(), words)
        return
    search, wanted = FuzzySearch(), "".join(words)[:24]
    scored = [(search.match(wanted, row.text), row) for row in rows[:MAX_SCORED]]
    for match, row in sorted((item for item in scored if item[0][0] > 0), key=lambda item: -item[0][0])[:MAX_ROWS]:
        yield row, tuple(match[1])


class PickScreen(PickerScreen[str]):
    """Dismissed with the key of a row."""

    PLACEHOLDER = "Type to search"
    BINDINGS: ClassVar = []

    heading = getters.query_one("#heading", Static)
    preview = getters.query_one("#preview", VerticalScroll)
    shown = getters.query_one("#preview Static", Static)

    def __init__(self, question: Pick) -> None:
        super().__init__()
        self._question = question
        self._rows = {row.key: row for row in question.rows}

    def compose(self) -> ComposeResult:
        for part in super().compose():
            if part.id == "keys":
                with VerticalScroll(id="preview", can_focus=False):
                    yield Static(markup=False)
                yield KeyLine(f"↑↓ move  enter {self._question.confirm}  esc back", id="keys")
            else:
                yield part

    def on_mount(self) -> None:
        self.heading.update(self._question.question)

    def on_resize(self) -> None:
        self.refill(self.field.value.strip(), at=self.highlighted)

    def refill(self, query: str, *, at: str | None = None) -> None:
        """Show what fits."""
        self.show(
            [PickerRow(row.key, self._row(row, offsets)) for row, offsets in matching(self._question.rows, query)],
            at=at,
        )

    def pick(self, key: str) -> None:
        """Take it."""
        self.dismiss(key)

    def highlight(self, key: str | None) -> None:
        """Show all of the highlighted row."""
        row = self._rows.get(key or "")
        self.preview.display = row is not None and bool(row.details)
        if row is not None:
            self.shown.update(visible(row.details))
            self.preview.scroll_home(animate=False)

    def _row(self, row: PickRow, offsets: Sequence[int]) -> Content:
        facts = one_line(row.facts, 40) if self.size.width >= FACTS_FROM else ""
        room = max(16, self.size.width - len(facts) - 10)
        name = self.marked(visible(row.text), offsets).truncate(room, ellipsis=True)
        gap = " " * max(1, room - name.cell_length)
        return Content.assemble(name, gap, self.styled(facts, "faint"))
