"""A screen to pick one row of a list: filter on top, rows below, keys at the bottom. Base of every such screen."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tui_agent.lazy import dataclass
from tui_agent.ui.error_boundary import PageScreen
from tui_agent.ui.widgets.key_line import KeyLine
from tui_agent.ui.widgets.options import Options

ResultT = TypeVar("ResultT")

MAX_ROWS = 200
"""Rows shown at most; typing narrows."""


@dataclass(frozen=True, slots=True)
class PickerRow:
    """One row. ``key`` identifies it to the screen; a heading cannot be picked."""

    key: str
    content: Content
    heading: bool = False


def word_offsets(text: str, words: Sequence[str]) -> tuple[int, ...]:
    return tuple(offset for word in words for offset in range(text.index(word), text.index(word) + len(word)))


class PickerList(Options):
    """Rows whose highlight stops at both ends: in a list of hundreds the other end is not what an arrow key means."""

    def action_cursor_up(self) -> None:
        if self._stands_at(0):
            self.scroll_home(animate=False)
        else:
            super().action_cursor_up()

    def action_cursor_down(self) -> None:
        if not self._stands_at(-1):
            super().action_cursor_down()

    def _stands_at(self, end: int) -> bool:
        enabled = [place for place, option in enumerate(self.options) if not option.disabled]
        return bool(enabled) and self.highlighted == enabled[end]


class PickerScreen(PageScreen[ResultT | None], Generic[ResultT]):
    """Dismissed with what was picked, None when the user went back."""

    HEADING: ClassVar[str] = ""
    PLACEHOLDER: ClassVar[str] = "Type to filter"
    EMPTY: ClassVar[str] = "Nothing matches."
    KEYS: ClassVar[str] = "↑↓ move  enter pick  esc back"

    AUTO_FOCUS = "Input"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"picker--strong", "picker--faint", "picker--match", "picker--good"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", show=False),
        Binding("up", "move('cursor_up')", "up", show=False),
        Binding("down", "move('cursor_down')", "down", show=False),
        Binding("pageup", "move('page_up')", "page up", show=False),
        Binding("pagedown", "move('page_down')", "page down", show=False),
    ]

    field = getters.query_one("#filter", Input)
    listing = getters.query_one("#rows", PickerList)
    empty = getters.query_one("#empty", Static)

    def compose(self) -> ComposeResult:
        """Heading, filter, rows, keys."""
        yield Static(self.HEADING, id="heading", markup=False)
        yield Input(placeholder=self.PLACEHOLDER, id="filter", compact=True)
        yield PickerList(id="rows", compact=True)
        yield Static(self.EMPTY, id="empty", markup=False)
        yield KeyLine(self.KEYS, id="keys")

    def on_mount(self) -> None:
        self.refill("")

    @abstractmethod
    def refill(self, query: str) -> None:
        """Find the rows for a filter and ``show`` them, now or later."""

    @abstractmethod
    def pick(self, key: str) -> None:
        """Act on the row that was picked."""

    def highlight(self, key: str | None) -> None:
        """React to the highlight moving; None: there is no row."""

    def show(self, rows: Sequence[PickerRow], *, at: str | None = None) -> None:
        """Show rows, the highlight on the one called ``at``, else on the first."""
        self.listing.set_options(Option(row.content, id=row.key, disabled=row.heading) for row in rows[:MAX_ROWS])
        if len(rows) > MAX_ROWS:
            more = self.styled(f"{len(rows) - MAX_ROWS} more: type to narrow", "faint")
            self.listing.add_option(Option(more, disabled=True))
        self.listing.display = bool(rows)
        self.empty.display = not rows
        keys = [row.key for row in rows[:MAX_ROWS]]
        if rows:
            first = next((place for place, row in enumerate(rows) if not row.heading), None)
            self.listing.highlighted = keys.index(at) if at in keys else first
            if self.listing.highlighted == 1:
                self.listing.scroll_home(animate=False)
        else:
            self.highlight(None)

    @property
    def highlighted(self) -> str | None:
        """The key of the highlighted row."""
        option = self.listing.highlighted_option
        return option.id if option is not None and self.listing.display else None

    def styled(self, text: str, name: str) -> Content:
        """Return text in one of the picker's styles: strong, faint, match or good."""
        return Content.styled(text, self.get_visual_style(f"picker--{name}", partial=True))

    def marked(self, text: str, offsets: Sequence[int]) -> Content:
        """Return text with the characters that matched marked."""
        content, style = Content(text), self.get_visual_style("picker--match", partial=True)
        for offset in offsets:
            content = content.stylize(style, offset, offset + 1)
        return content

    def action_back(self) -> None:
        if self.field.value:
            self.field.value = ""
        else:
            self.dismiss(None)

    def action_move(self, command: str) -> None:
        match command:
            case "cursor_up":
                self.listing.action_cursor_up()
            case "cursor_down":
                self.listing.action_cursor_down()
            case "page_up":
                self.listing.action_page_up()  # type: ignore[no-untyped-call]  # Textual has no types there
            case _:
                self.listing.action_page_down()  # type: ignore[no-untyped-call]  # Textual has no types there

    @on(Input.Changed, "#filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.refill(event.value.strip())

    @on(Input.Submitted, "#filter")
    def _filter_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if (key := self.highlighted) is not None:
            self.pick(key)

    @on(OptionList.OptionSelected, "#rows")
    def _row_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_id is not None:
            self.pick(event.option_id)

    @on(OptionList.OptionHighlighted, "#rows")
    def _row_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.highlight(event.option_id)
