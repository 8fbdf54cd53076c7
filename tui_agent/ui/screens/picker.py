"""Base class of pages on which the user picks a row of a filtered list, and two simple pickers."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Generic, TypeVar, cast

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from tui_agent.app.format import lower_case, one_line, visible
from tui_agent.app.frontend import Pick, PickRow
from tui_agent.ui.bindings import hidden
from tui_agent.ui.prompting.fuzzy import fuzzy_match
from tui_agent.ui.screens.page import FramedPage, ResultT
from tui_agent.ui.widgets.options import Options
from tui_agent.ui.widgets.plain_text import PlainText

MAX_ROWS = 200
"""Maximum number of rows that are shown. If there are more, the user can narrow the list by
typing."""

MAX_SCORED = 5_000
"""Maximum number of rows that are searched for fuzzy matches. This search runs only if no row
contains the typed words."""

MIN_WIDTH_FOR_FACTS = 60
"""Minimum width of the page, in cells, at which facts are shown at the right of the rows."""

RowT = TypeVar("RowT")


def has_words(text: str, words: Sequence[str]) -> bool:
    """Return True if the text contains all ``words``, ignoring case; ``words`` are in lower case."""
    text = lower_case(text)
    return all(word in text for word in words)


def word_offsets(text: str, words: Sequence[str]) -> tuple[int, ...]:
    """Return the offsets of the characters of each word's first occurrence in the text.

    Ignores case; ``words`` are in lower case, and the text has to contain them (see `has_words`).
    """
    text = lower_case(text)
    offsets: list[int] = []
    for word in words:
        offsets.extend(range(text.index(word), text.index(word) + len(word)))
    return tuple(offsets)


def matching(
    rows: Sequence[RowT],
    query: str,
    text_of: Callable[[RowT], str],
    rank: Callable[[RowT], int] = lambda _row: 0,
) -> list[tuple[RowT, tuple[int, ...]]]:
    """Return the rows whose text contains all words of a query, each with the matched offsets.

    The rows keep their order. If no row contains all words, returns at most `MAX_ROWS` rows that
    match fuzzily, sorted by ``rank``, then best match first.
    """
    words = lower_case(query).split()
    plain = [row for row in rows if has_words(text_of(row), words)]
    if plain or not words:
        return [(row, word_offsets(text_of(row), words)) for row in plain]
    wanted = "".join(words)[:24]
    scored = [(fuzzy_match(wanted, text_of(row)), row) for row in rows[:MAX_SCORED]]
    found = sorted(
        (item for item in scored if item[0].offsets),
        key=lambda item: (rank(item[1]), -item[0].score),
    )
    return [(row, match.offsets) for match, row in found[:MAX_ROWS]]


class PickerList(Options):
    """A list whose highlight stops at the first and last row, and doesn't wrap around."""

    def action_cursor_up(self) -> None:
        if self._is_at(0):
            self.scroll_home(animate=False)
        else:
            super().action_cursor_up()

    def action_cursor_down(self) -> None:
        if not self._is_at(-1):
            super().action_cursor_down()

    def _is_at(self, end: int) -> bool:
        return bool(self.enabled) and self.highlighted == self.enabled[end]


class PickerScreen(FramedPage[ResultT], Generic[ResultT]):
    """Base class of pages with a filtered list. Their result is the value that the user picked.

    Subclasses define ``refill``. `show_note` shows, below the list, a note about the highlighted
    row.
    """

    PLACEHOLDER = "Type to filter"
    EMPTY = "Nothing matches."
    KEYS = "↑↓ move  enter pick  esc back"

    AUTO_FOCUS = "Input"
    COMPONENT_CLASSES = {
        "picker--strong",
        "picker--faint",
        "picker--match",
        "picker--good",
    }
    BINDINGS = [
        hidden("up", "move('cursor_up')", "up"),
        hidden("down", "move('cursor_down')", "down"),
        hidden("pageup", "move('page_up')", "page up"),
        hidden("pagedown", "move('page_down')", "page down"),
    ]

    field = getters.query_one("#filter", Input)
    listing = getters.query_one("#rows", PickerList)
    empty = getters.query_one("#empty", PlainText)
    about = getters.query_one("#about", VerticalScroll)

    def body(self) -> ComposeResult:
        yield Input(placeholder=self.PLACEHOLDER, id="filter", compact=True)
        yield PickerList(id="rows", compact=True)
        yield PlainText(self.EMPTY, id="empty")
        with VerticalScroll(id="about", can_focus=False):
            yield PlainText()

    def on_mount(self) -> None:
        self.show_note("")
        self.refill("")

    refill: Callable[..., object]
    """Find the rows that match a filter text, and pass them to `show`. ``at`` is the id of the row
    to highlight."""

    def redraw(self) -> None:
        """Search again and draw the rows, with the highlight on the same row as before."""
        self.refill(self.typed, at=self.highlighted)

    def on_resize(self) -> None:
        self.redraw()

    def pick(self, key: str) -> None:
        """Handle a picked row.

        By default, close the page with ``key``, the row's id, as the result.
        """
        self.dismiss(cast("ResultT", key))

    def highlight(self, key: str | None) -> None:
        """Called when another row is highlighted; by default, do nothing.

        ``key`` is the row's id; None if no rows are shown.
        """

    def show_note(self, text: str, tone: str = "") -> None:
        """Show a note below the list, or hide it if the text is "".

        ``tone`` is the note's style class.
        """
        self.about.query_one(PlainText).update(visible(text))
        self.about.display = bool(text)
        self.about.set_classes(f"-{tone}" if tone else "")
        self.about.scroll_home(animate=False)

    def show(self, rows: Iterable[Option], *, count: int, at: str | None = None) -> None:
        """Show at most `MAX_ROWS` rows; highlight the row with the id ``at``, else the first.

        ``count`` is the number of rows that can be picked. Only the rows that are shown are taken
        from ``rows``, so that an iterator can create them one by one.
        """
        shown = list(islice(rows, MAX_ROWS))
        left = count - sum(not row.disabled for row in shown)
        self.listing.set_options(shown)
        if len(shown) == MAX_ROWS and left:
            more = self.styled(f"{left} more: type to narrow", "faint")
            self.listing.add_option(Option(more, disabled=True))
        self.listing.display = bool(shown)
        self.empty.display = not shown
        if not shown:
            self.highlight(None)
            return
        ids = [row.id for row in shown]
        if at in ids:
            self.listing.highlighted = ids.index(at)
        else:
            self.listing.highlighted = self.listing.first_enabled
        if self.listing.highlighted == 1:
            self.listing.scroll_home(animate=False)

    def heading_row(self, name: str, style: str) -> Option:
        """Return a row that shows a heading and can't be picked.

        ``style`` is one of the names that `styled` takes.
        """
        return Option(self.styled(visible(name), style), id=f"[{name}]", disabled=True)

    @property
    def typed(self) -> str:
        return self.field.value.strip()

    @property
    def highlighted(self) -> str | None:
        option = self.listing.highlighted_option
        if option is not None and self.listing.display:
            return option.id
        return None

    def styled(self, text: str, name: str) -> Content:
        """Return a text in one of the picker's styles: strong, faint, match or good."""
        return Content.styled(text, f".picker--{name}")

    def marked(self, text: str, offsets: Sequence[int]) -> Content:
        content = Content(text)
        for offset in offsets:
            content = content.stylize(".picker--match", offset, offset + 1)
        return content

    def action_back(self) -> None:
        if self.field.value:
            self.field.value = ""
        else:
            self.dismiss(None)

    def action_move(self, command: str) -> None:
        getattr(self.listing, f"action_{command}")()

    @on(Input.Changed, "#filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        self.refill(event.value.strip())

    @on(Input.Submitted, "#filter")
    def _filter_submitted(self) -> None:
        if (key := self.highlighted) is not None:
            self.pick(key)

    @on(OptionList.OptionSelected, "#rows")
    def _row_selected(self, event: OptionList.OptionSelected) -> None:
        if event.option_id is not None:
            self.pick(event.option_id)

    @on(OptionList.OptionHighlighted, "#rows")
    def _row_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self.highlight(event.option_id)


class PickScreen(PickerScreen[str]):
    """A picker that asks the question of a `Pick`. Its result is the key of the picked row."""

    PLACEHOLDER = "Type to search"

    def __init__(self, question: Pick) -> None:
        super().__init__(question.question, f"↑↓ move  enter {question.confirm}  esc back")
        self._question = question
        self._rows = {row.key: row for row in question.rows}

    def refill(self, query: str, *, at: str | None = None) -> None:
        found = matching(self._question.rows, query, lambda row: row.text)
        rows = (Option(self._row(row, offsets), id=row.key) for row, offsets in found)
        self.show(rows, count=len(found), at=at)

    def highlight(self, key: str | None) -> None:
        row = self._rows.get(key or "")
        self.show_note(row.details if row is not None else "")

    def _row(self, row: PickRow, offsets: Sequence[int]) -> Content:
        if self.size.width >= MIN_WIDTH_FOR_FACTS:
            facts = one_line(row.facts, 40)
        else:
            facts = ""
        room = max(16, self.size.width - len(facts) - 5)
        name = self.marked(visible(row.text), offsets).truncate(room, ellipsis=True)
        gap = " " * max(1, room - name.cell_length)
        return Content.assemble(name, gap, self.styled(facts, "faint"))


class ThemePicker(PickerScreen[str]):
    """The theme picker, which applies a theme as soon as it is highlighted.

    Its result is the picked theme's name. Going back restores the previous theme.
    """

    HEADING = "Theme"
    KEYS = "↑↓ preview  enter keep  esc back"

    def __init__(self) -> None:
        super().__init__()
        self._before = self.app.theme

    def refill(self, query: str, *, at: str | None = None) -> None:
        rows = []
        for name, theme in sorted(self.app.available_themes.items()):
            if query.lower() in name:
                tone = self.styled("dark" if theme.dark else "light", "faint")
                rows.append(Option(Content.assemble(f"{name:<24}", tone), id=name))
        self.show(rows, count=len(rows), at=at or self.app.theme)

    def highlight(self, key: str | None) -> None:
        if key is not None:
            self.app.theme = key

    def action_back(self) -> None:
        self.app.theme = self._before
        self.dismiss(None)
