"""The widget of the session tree: draws the lines of an outline, moves the cursor, folds branches.

The widget owns the outline, which contains the user's options. Each change of an option creates a
new outline. The screen that contains the widget does the search, and moves the leaf when the user
has chosen an entry.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from textual import events
from textual.message import Message

from tui_agent.app.status_marks import GLYPHS, style_of
from tui_agent.context.context_status import Standing, together
from tui_agent.context.context_status_cache import Standings
from tui_agent.lazy import dataclass
from tui_agent.session.entries import AssistantEntry, Entry, RaceRunner, kinds
from tui_agent.session.skeleton import Headers
from tui_agent.ui.bindings import hidden
from tui_agent.ui.widgets.line_list import LineList, spread
from tui_agent.ui.widgets.transcript.lines import StyledSpan, cells, spans_width
from tui_agent.ui.widgets.tree.outline import LineKind, Outline, TreeLine, TreeOptions
from tui_agent.ui.widgets.tree.rows import Filter
from tui_agent.ui.widgets.tree.search_matches import Hits
from tui_agent.ui.widgets.tree.segments import TreeIndex
from tui_agent.ui.widgets.tree.wording import RowTexts, split_at_words

_STYLES: Final = (
    "guide",
    "mark",
    "user",
    "assistant",
    "aside",
    "label",
    "here",
    "status-ok",
    "status-error",
    "status-warning",
    "status-running",
    "status-idle",
)
_NO_STANDINGS: Final = Standings()
"""Context statuses to use when no status is known."""
_NO_RUNNERS: Final[Mapping[int, RaceRunner]] = {}
_MARK: Final = "• "
_GROUP_KINDS: Final = frozenset(kinds(lambda kind: kind.follows_calls or kind is AssistantEntry))


class SessionTree(LineList):
    """Shows the entries of a session as a tree. Posts messages, and never changes the session.

    The cursor stays on its entry when branches are folded or entries are added.
    """

    COMPONENT_CLASSES = {f"line-list--{name}" for name in _STYLES}
    BINDINGS = [
        hidden("j", "move(1)", "down"),
        hidden("g", "go(0)", "start"),
        hidden("G", "go(-1)", "end"),
        hidden("left,h", "close", "fold"),
        hidden("right", "open", "unfold"),
        hidden("shift+enter,c", "choose(True)", "continue from here"),
        hidden("space", "screen.preview", "preview"),
    ]

    @dataclass
    class Chosen(Message):
        """Posted when the user chooses an entry to move to."""

        entry_id: int
        continue_from_here: bool
        """Whether to move to the entry itself, even if it is a message of the user.

        Otherwise, choosing a user's message moves to the entry before it, so that the user can edit
        the message and send it again.
        """

    def __init__(
        self,
        load: Callable[[int], Entry | None],
        clock: Callable[[], float],
        shown: Filter = Filter.DEFAULT,
    ) -> None:
        """``load`` returns an entry by its id, or None if it can't be read."""
        super().__init__()
        self._load = load
        self._clock = clock
        self.outline = Outline(TreeIndex(Headers.of(()), None), TreeOptions(filter=shown))
        self.hits: Hits | None = None
        self.standings = Standings()
        self._query: tuple[str, ...] = ()
        self._clicked: tuple[LineKind, int] | None = None
        """The line clicked last, as its kind and entry. None if no line was clicked.

        A double click counts only if both clicks are on the same line.
        """
        self._texts = RowTexts(self.outline.index, {}, load, clock())

    # -- display

    @property
    def view(self) -> TreeOptions:
        return self.outline.view

    @property
    def line(self) -> TreeLine | None:
        return self.outline.line(self.cursor)

    def has_failed(self, entry_id: int) -> bool:
        """Return True if an entry is an answer that ended with an error."""
        entry = self._load(entry_id)
        return isinstance(entry, AssistantEntry) and entry.error is not None

    def show(
        self,
        index: TreeIndex,
        labels: Mapping[int, str],
        standings: Standings = _NO_STANDINGS,
        *,
        at: int | None = None,
        runners: Mapping[int, RaceRunner] = _NO_RUNNERS,
    ) -> None:
        """Show the tree of a session, and move the cursor to the entry with the id ``at``.

        If ``at`` is None, the cursor stays on its entry. ``labels`` maps entry ids to labels.
        ``runners`` contains the agents of an active race, each by the id of the last entry in its
        branch.
        """
        self.standings = standings
        line = self.line
        was_fold = at is None and line is not None and line.what is LineKind.FOLD
        view = replace(self.view, labels=dict(labels))
        self._texts = RowTexts(index, dict(labels), self._load, self._clock(), runners)
        self._apply(Outline(index, view), self._place(at), on_fold=was_fold)

    def set_options(self, view: TreeOptions, *, at: int | None = None) -> None:
        """Show the same tree with other options, and move the cursor to an entry.

        ``at`` is the id of the entry. If it is None, the cursor stays on its entry.
        """
        self._apply(Outline(self.outline.index, view, self.outline), self._place(at))

    def _place(self, at: int | None) -> int | None:
        """Return ``at``, or the id of the entry under the cursor if ``at`` is None."""
        if at is None and self.line is not None:
            return self.line.entry
        return at

    def _apply(self, outline: Outline, entry: int | None, *, on_fold: bool = False) -> None:
        top = self.cursor - round(self.scroll_y)
        before = self.outline
        self.outline = outline
        if self.hits is not None and (
            outline.index is not before.index or not outline.has_rows_of(before)
        ):
            self.hits = Hits(outline, self.hits.ids)
        y = outline.find(entry)
        line = outline.line(y)
        if on_fold and line is not None and line.is_folded and line.what is not LineKind.FOLD:
            y += 1
        self.set_count(outline.total, cursor=y)
        # Keep the row under the cursor at the same height on the screen.
        self.scroll_to(y=max(self.cursor - top, 0), animate=False, immediate=True, force=True)
        self._show_cursor()

    # -- the cursor

    def go_to_entry(self, entry_id: int) -> None:
        """Unfold the branches that hide an entry, and move the cursor to this entry."""
        view = self.outline.revealing(entry_id)
        if view is not self.view:
            self.set_options(view, at=entry_id)
            self.centre()
        else:
            self.cursor = self.outline.find(entry_id)

    def centre(self) -> None:
        """Scroll the cursor's line to the middle of the screen."""
        height = self.scrollable_content_region.height
        self.scroll_to(
            y=max(self.cursor - height // 2, 0), animate=False, immediate=True, force=True
        )

    # -- folding

    def action_close(self) -> None:
        """Fold the group or branch at the cursor.

        If nothing can be folded, move the cursor up to the start of a branch.
        """
        line = self.line
        opened = self._opened_group()
        if line is None:
            return
        if opened is not None:
            self.set_options(replace(self.view, opened=self.view.opened - {opened}), at=opened)
        elif line.what is LineKind.FOLD:
            self.cursor = self.cursor - 1
        elif line.can_fold and not line.is_folded:
            self.set_options(self.view.folded(line.segment.key, folded=True))
        else:
            self.cursor = self.outline.branch_point_above(self.cursor)

    def action_open(self) -> None:
        """Unfold the branch or group at the cursor.

        If nothing can be unfolded, move the cursor down to a branch point.
        """
        line = self.line
        if line is None:
            return
        if line.is_folded:
            first = line.segment.headers.ids[line.row.first]
            self.set_options(self.view.folded(line.segment.key, folded=False), at=first)
        elif (
            line.what is LineKind.GROUP
            and line.row.last > line.row.first + 1
            and self._opened_group() is None
        ):
            run = line.segment.headers.ids[line.row.first]
            last = line.segment.headers.ids[line.row.first + 1]
            self.set_options(replace(self.view, opened=self.view.opened | {run}), at=last)
        else:
            self.cursor = self.outline.branch_point_below(self.cursor)

    def action_toggle_branch(self) -> None:
        line = self.line
        if line is not None and (line.is_folded or not line.can_fold):
            self.action_open()
        else:
            self.action_close()

    def _opened_group(self) -> int | None:
        line = self.line
        if line is None or line.what is not LineKind.GROUP or not self.view.opened:
            return None
        headers = line.segment.headers
        for offset in range(line.row.first, -1, -1):
            if headers.ids[offset] in self.view.opened:
                return headers.ids[offset]
            if headers[offset].kind not in _GROUP_KINDS:
                break
        return None

    def action_choose(self, continue_from_here: bool = False) -> None:  # noqa: FBT001, FBT002 - a key's argument
        if (line := self.line) is not None:
            self.post_message(self.Chosen(line.entry, continue_from_here))

    # -- search

    def show_hits(self, query: str, hits: Hits | None) -> None:
        """Mark the rows that are hits of a search, and the words of ``query`` in them.

        ``hits`` is None if no search is active.
        """
        if hits:
            self._query = tuple(word for word in query.split() if any(map(str.isalnum, word)))
        else:
            self._query = ()
        self.hits = hits
        self.refresh()

    # -- mouse

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        event.stop()
        event.prevent_default()
        index = self.index_at(offset.y)
        if index is None:
            line = None
        else:
            line = self.outline.line(index)
        if index is None or line is None:
            return
        self.cursor = index
        before = self._clicked
        self._clicked = line.what, line.entry
        if line.what is LineKind.FOLD and event.chain == 1:
            self.action_open()
        elif event.chain == 2 and self._clicked == before:
            # If the first click unfolded a branch, another line is here now, and it must not be
            # chosen.
            self.action_choose()

    # -- drawing

    def row(self, index: int, width: int) -> Sequence[StyledSpan]:
        line = self.outline.line(index)
        if line is None:
            return ()
        tail = self._texts.tail(line, width, is_here=index == self.outline.here)
        used = 2 + cells(line.guide) + len(_MARK)
        tail_width = spans_width(tail)
        if tail_width > width - used - 8:
            tail = tail[-1:]
            tail_width = spans_width(tail)
        room = width - used - tail_width - (2 if tail else 0) - 1
        standing = standing_of(line, self.standings)
        spans: list[StyledSpan] = [
            (GLYPHS[standing], style_of(standing)),
            (line.guide, "guide"),
            (_MARK if line.active else "  ", "mark"),
        ]
        text = self._texts.text(line, max(room, 0))
        if not line.active:
            text = [(part, "aside" if style == "text" else style) for part, style in text]
        ids = line.segment.headers.ids[line.row.first : line.row.last + 1]
        is_hit = (
            self.hits is not None
            and line.what is not LineKind.FOLD
            and not self.hits.ids.isdisjoint(ids)
        )
        if is_hit:
            text = self._marked(text)
        spans += text
        return spread([run for run in spans if run[0]], tail, width - 2)

    def _marked(self, spans: list[StyledSpan]) -> list[StyledSpan]:
        """Return the spans of a row with the search words highlighted (in the style ``match``).

        If no search word occurs in the row, the entry matched elsewhere, and the last span is
        highlighted.
        """
        found = []
        marked = []
        for text, style in spans:
            for piece, is_word in split_at_words(text, self._query):
                found.append((piece, style))
                marked.append((piece, f"{style} match" if is_word else style))
        if marked != found or not spans:
            return marked
        text, style = spans[-1]
        return [*spans[:-1], (text, f"{style} match")]


def standing_of(line: TreeLine, standings: Standings) -> Standing:
    """Return the context status of a line's entry, that is, whether the model receives the entry.

    The status is ``UNSENT`` if the entry isn't on the path to the leaf. For a group of calls,
    `together` combines the statuses of the results.
    """
    if not line.active:
        return Standing.UNSENT
    last = min(line.row.last, line.segment.active - 1)
    headers = line.segment.headers[line.row.first : last + 1]
    if line.what is not LineKind.GROUP:
        return standings.of(headers.ids[-1], headers.kind(len(headers) - 1))
    results = headers.of_kinds(["tool_result"])
    return together(
        standings.of(headers.ids[at], headers.kind(at)) for at in results or range(len(headers))
    )
