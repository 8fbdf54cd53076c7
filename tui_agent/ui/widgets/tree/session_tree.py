"""The widget of the session tree: draws the lines of an outline, moves the cursor, folds, and follows the mouse."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar, Final

from rich.segment import Segment as Piece
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui_agent.app.status_marks import GLYPHS, style_of
from tui_agent.app.status_marks import STYLES as STANDING_STYLES
from tui_agent.context.context_status import Standing, together
from tui_agent.context.context_status_cache import Standings
from tui_agent.session.entries import AssistantEntry, Entry, RaceRunner, kinds
from tui_agent.session.skeleton import Headers
from tui_agent.ui.widgets.transcript.lines import StyledSpan, cells
from tui_agent.ui.widgets.tree.outline import LineKind, Outline, TreeLine, TreeOptions
from tui_agent.ui.widgets.tree.rows import Filter
from tui_agent.ui.widgets.tree.search_matches import Hits
from tui_agent.ui.widgets.tree.segments import TreeIndex
from tui_agent.ui.widgets.tree.wording import RowTexts, pieces

_PREFIX: Final = "session-tree--"
_STYLES: Final = (
    "text", "faint", "guide", "mark", "user", "assistant", "aside", "label", "here", "match", "cursor",
    "status-ok", "status-error", "status-warning", "status-running", "status-idle", *STANDING_STYLES,
)  # fmt: skip
NONE_KNOWN: Final = Standings()
"""The standings of a tree that nothing is known of."""
NOBODY: Final[Mapping[int, RaceRunner]] = {}
_MARK: Final = "• "
_STEP: Final = frozenset(kinds(lambda kind: kind.follows_calls or kind is AssistantEntry))


class SessionTree(ScrollView, can_focus=True):
    """Shows a tree of entries; posts messages and changes nothing itself.

    The row under the cursor is known by its entry, so it stays the same one when branches fold or entries come.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"{_PREFIX}{name}" for name in _STYLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False, id="tree.up"),
        Binding("down,j", "move(1)", "down", show=False, id="tree.down"),
        Binding("pageup", "page(-1)", "page up", show=False, id="tree.page_up"),
        Binding("pagedown", "page(1)", "page down", show=False, id="tree.page_down"),
        Binding("home,g", "go_to('start')", "start", show=False, id="tree.start"),
        Binding("end,G", "go_to('end')", "end", show=False, id="tree.end"),
        Binding("left,h", "close", "fold", show=False, id="tree.close"),
        Binding("right", "open", "unfold", show=False, id="tree.open"),
        Binding("enter", "choose", "go", show=False, id="tree.choose"),
        Binding("shift+enter,c", "choose(True)", "continue from here", show=False, id="tree.continue"),
    ]

    class Highlighted(Message):
        """The cursor is on another row."""

        def __init__(self, tree: "SessionTree") -> None:
            super().__init__()
            self.tree = tree

        @property
        def control(self) -> "SessionTree":
            return self.tree

    class Chosen(Message):
        """The user wants to go to an entry."""

        def __init__(self, tree: "SessionTree", entry_id: int, *, continue_from_here: bool) -> None:
            super().__init__()
            self.tree = tree
            self.entry_id = entry_id
            self.continue_from_here = continue_from_here
            """Stay at a message of the user instead of editing it."""

        @property
        def control(self) -> "SessionTree":
            return self.tree

    def __init__(
        self, load: Callable[[int], Entry | None], clock: Callable[[], float], shown: Filter = Filter.DEFAULT
    ) -> None:
        super().__init__()
        self._load = load
        self._clock = clock
        self._styles: dict[tuple[str, ...], Style] = {}
        self.outline = Outline(TreeIndex(Headers.of(()), None), TreeOptions(filter=shown))
        """What is shown."""
        self.cursor = 0
        """The line keys act on."""
        self.hits: Hits | None = None
        """What a search found."""
        self.standings = Standings()
        """How the model has the entries of the path."""
        self._query: tuple[str, ...] = ()
        self._words = RowTexts(self.outline.index, {}, load, clock())

    # -- what is shown

    @property
    def view(self) -> TreeOptions:
        """What the user chose to see."""
        return self.outline.view

    @property
    def line(self) -> TreeLine | None:
        """The line under the cursor, None in an empty tree."""
        return self.outline.line(self.cursor)

    def has_failed(self, entry_id: int) -> bool:
        """Whether an entry is an answer that ended with an error."""
        entry = self._load(entry_id)
        return isinstance(entry, AssistantEntry) and entry.error is not None

    def show(
        self,
        index: TreeIndex,
        labels: Mapping[int, str],
        standings: Standings = NONE_KNOWN,
        *,
        at: int | None = None,
        runners: Mapping[int, RaceRunner] = NOBODY,
    ) -> None:
        """Show an index; the cursor goes to the entry ``at``, else it stays where it is.

        ``runners`` are those of a race that is not over, by the last entry of their branches.
        """
        self.standings = standings
        line = self.line
        entry = at if at is not None or line is None else line.entry
        was_fold = at is None and line is not None and line.what is LineKind.FOLD
        view = replace(self.view, labels=dict(labels))
        self._words = RowTexts(index, dict(labels), self._load, self._clock(), runners)
        self._apply(Outline(index, view), entry, on_fold=was_fold)

    def see(self, view: TreeOptions, *, at: int | None = None) -> None:
        """Show the same entries in another way."""
        line = self.line
        entry = at if at is not None or line is None else line.entry
        self._apply(Outline(self.outline.index, view, self.outline), entry)

    def _apply(self, outline: Outline, entry: int | None, *, on_fold: bool = False) -> None:
        top = self.cursor - round(self.scroll_y)
        before, self.outline = self.outline, outline
        if self.hits is not None and (outline.index is not before.index or not outline.has_rows_of(before)):
            self.hits = Hits(outline, self.hits.ids)
        y = outline.find(entry)
        line = outline.line(y)
        if on_fold and line is not None and line.is_folded and line.what is not LineKind.FOLD:
            y += 1
        self.virtual_size = Size(self.scrollable_content_region.width, outline.total)
        self.cursor = min(y, max(outline.total - 1, 0))
        # The row stays where the eye is, not where the list begins.
        self.scroll_to(y=max(self.cursor - top, 0), animate=False, immediate=True, force=True)
        self._into_view()
        self.refresh()
        self.post_message(self.Highlighted(self))

    def change_filter(self) -> Filter:
        """Show more, or less; returns what is shown now."""
        filters = list(Filter)
        wanted = filters[(filters.index(self.view.filter) + 1) % len(filters)]
        self.see(replace(self.view, filter=wanted))
        return wanted

    # -- the cursor

    def move_to(self, y: int) -> None:
        """Put the cursor on a line; repaints the two lines that change."""
        y = max(0, min(y, self.outline.total - 1))
        if y == self.cursor or not self.outline.total:
            return
        before, self.cursor = self.cursor, y
        for line in (before, y):
            self._refresh_line(line)
        self._into_view()
        self.post_message(self.Highlighted(self))

    def go_to_entry(self, entry_id: int) -> None:
        """Put the cursor on an entry, unfolding what hides it."""
        view = self.outline.revealing(entry_id)
        if view is not self.view:
            self.see(view, at=entry_id)
            self._centre()
        else:
            self.move_to(self.outline.find(entry_id))

    def _refresh_line(self, y: int) -> None:
        top = round(self.scroll_y)
        if top <= y < top + self.size.height:
            self.refresh(Region(0, y - top, self.size.width, 1))

    def _into_view(self) -> None:
        height = self.scrollable_content_region.height
        top = round(self.scroll_y)
        if not height or top <= self.cursor < top + height:
            return
        y = self.cursor if self.cursor < top else self.cursor - height + 1
        self.scroll_to(y=y, animate=False, immediate=True, force=True)

    def _centre(self) -> None:
        height = self.scrollable_content_region.height
        self.scroll_to(y=max(self.cursor - height // 2, 0), animate=False, immediate=True, force=True)

    def centre(self) -> None:
        """Bring the cursor's line to the middle of the window."""
        self._centre()

    def action_move(self, lines: int) -> None:
        self.move_to(self.cursor + lines)

    def action_page(self, pages: int) -> None:
        """Move by pages; one line stays for orientation."""
        self.move_to(self.cursor + pages * max(self.scrollable_content_region.height - 1, 1))

    def action_go_to(self, where: str) -> None:
        self.move_to(0 if where == "start" else self.outline.total - 1)

    # -- folding

    def action_close(self) -> None:
        """Close a run of calls, fold a branch, or go up to where the branch goes off."""
        line, opened = self.line, self._opened_run()
        if line is None:
            return
        if opened is not None:
            self.see(self.view.toggled(opened), at=opened)
        elif line.what is LineKind.FOLD:
            self.move_to(self.cursor - 1)
        elif line.can_fold and not line.is_folded:
            self.see(self.view.folded(line.segment.key, folded=True))
        else:
            head = self.outline.head_of(self.cursor)
            self.move_to(head if head != self.cursor else self.outline.branch_point_above(self.cursor))

    def action_open(self) -> None:
        """Open a run of calls, unfold a branch, or go on to the next branch point."""
        line = self.line
        if line is None:
            return
        if line.is_folded:
            first = line.segment.headers.ids[line.row.first]
            self.see(self.view.folded(line.segment.key, folded=False), at=first)
        elif line.what is LineKind.RUN and line.row.last > line.row.first + 1 and self._opened_run() is None:
            run, last = line.segment.headers.ids[line.row.first], line.segment.headers.ids[line.row.first + 1]
            self.see(self.view.toggled(run), at=last)
        else:
            self.move_to(self.outline.branch_point_below(self.cursor))

    def action_toggle_branch(self) -> None:
        line = self.line
        if line is not None and (line.is_folded or not line.can_fold):
            self.action_open()
        else:
            self.action_close()

    def _opened_run(self) -> int | None:
        """Return the first entry of the open run the cursor is in."""
        line = self.line
        if line is None or line.what is not LineKind.RUN or not self.view.opened:
            return None
        headers = line.segment.headers
        for offset in range(line.row.first, -1, -1):
            if headers.ids[offset] in self.view.opened:
                return headers.ids[offset]
            if headers[offset].kind not in _STEP:
                break
        return None

    def action_choose(self, continue_from_here: bool = False) -> None:  # noqa: FBT001, FBT002 - a key's argument
        if (line := self.line) is not None:
            self.post_message(self.Chosen(self, line.entry, continue_from_here=continue_from_here))

    # -- search

    def show_hits(self, query: str, hits: Hits | None) -> None:
        """Mark what a search found."""
        self._query = tuple(word for word in query.split() if any(map(str.isalnum, word))) if hits else ()
        self.hits = hits
        self.refresh()

    # -- mouse

    def on_click(self, event: events.Click) -> None:
        """Select; a second click goes there."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        event.stop()
        y = offset.y + round(self.scroll_y)
        line = self.outline.line(y)
        if line is None:
            return
        self.move_to(y)
        if event.chain == 2 or (event.chain == 1 and line.what is LineKind.FOLD):
            if line.what is LineKind.FOLD:
                self.action_open()
            else:
                self.action_choose()

    # -- drawing

    def on_resize(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, self.outline.total)
        self._into_view()

    def notify_style_update(self) -> None:
        """Forget colours, because the theme or the widget's state changed."""
        super().notify_style_update()
        self._styles.clear()

    def on_focus(self) -> None:
        self._refresh_line(self.cursor)

    def on_blur(self) -> None:
        """Show the cursor as it is without the focus."""
        self._refresh_line(self.cursor)

    def render_line(self, y: int) -> Strip:
        """Draw a line."""
        width = self.scrollable_content_region.width
        at = y + round(self.scroll_y)
        line = self.outline.line(at)
        if line is None:
            return Strip.blank(width, self._style())
        return self._draw(line, width, at)

    def _draw(self, line: TreeLine, width: int, at: int) -> Strip:
        over = ("cursor",) if at == self.cursor else ()
        tail = self._words.tail(line, width, is_here=at == self.outline.here)
        used = 2 + cells(line.guide) + len(_MARK)
        tail_width = sum(cells(text) for text, _ in tail)
        if tail_width > width - used - 8:
            tail, tail_width = tail[-1:], sum(cells(text) for text, _ in tail[-1:])
        room = width - used - tail_width - (2 if tail else 0) - 1
        standing = standing_of(line, self.standings)
        runs: list[StyledSpan] = [
            (GLYPHS[standing], style_of(standing)),
            (line.guide, "guide"),
            (_MARK if line.active else "  ", "mark"),
        ]
        text = self._words.text(line, max(room, 0))
        if not line.active:
            text = [(part, "aside" if style == "text" else style) for part, style in text]
        is_hit = self.hits is not None and self._is_hit(line)
        runs += self._marked(text) if is_hit else text
        used += sum(cells(part) for part, _ in text)
        runs.append((" " * max(width - used - tail_width - 1, 0), "text"))
        runs += [*tail, (" ", "text")]
        strip = Strip([Piece(part, self._style(style, *over)) for part, style in runs if part])
        return strip.adjust_cell_length(width, self._style(*over))

    def _is_hit(self, line: TreeLine) -> bool:
        if self.hits is None or line.what is LineKind.FOLD:
            return False
        return self.hits.within(line.segment.headers.ids[line.row.first : line.row.last + 1])

    def _marked(self, runs: list[StyledSpan]) -> list[StyledSpan]:
        """Return the runs with the words searched for marked; without any of them in sight, all of it is."""
        found = [(piece, is_word, style) for text, style in runs for piece, is_word in pieces(text, self._query)]
        if any(is_word for _, is_word, _ in found):
            return [(piece, f"{style} match" if is_word else style) for piece, is_word, style in found]
        return [
            (text, f"{style} match" if position == len(runs) - 1 else style)
            for position, (text, style) in enumerate(runs)
        ]

    def _style(self, *names: str) -> Style:
        style = self._styles.get(names)
        if style is None:
            classes = [f"{_PREFIX}{part}" for name in names for part in name.split()]
            style = self._styles[names] = self.get_visual_style(*classes).rich_style
        return style


def standing_of(line: TreeLine, standings: Standings) -> Standing:
    """Return how the model has what a line shows; nothing of it beside the path."""
    if not line.active:
        return Standing.UNSENT
    last = min(line.row.last, line.segment.active - 1)
    headers = line.segment.headers[line.row.first : last + 1]
    if line.what is not LineKind.RUN:
        return standings.of(headers.ids[-1], headers.kind(len(headers) - 1))
    results = headers.of_kinds(["tool_result"])
    return together(standings.of(headers.ids[at], headers.kind(at)) for at in results or range(len(headers)))
