"""The conversation: shows an agent's entries and events, and decides when to redraw.

The widget around the transcript passes the events to it. The transcript reads the agent and its
session, and never changes them. feed.py applies events, model.py stores the items, viewport.py
draws lines, and pane.py handles keys and the mouse. When the find bar has found text, the
transcript unfolds and shows it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeAlias

from textual.geometry import Region
from textual.reactive import var
from textual.timer import Timer

from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    EntryAppended,
    LeafMoved,
    LiveAnswer,
    ReasoningProgress,
    ToolCallProgress,
    ToolOutput,
)
from tui_agent.context.context_status_cache import Standings, standings
from tui_agent.session.entries import UserEntry
from tui_agent.ui.later import Later
from tui_agent.ui.widgets.transcript import messages
from tui_agent.ui.widgets.transcript.blocks import ActivityBlock, Block, Fold
from tui_agent.ui.widgets.transcript.build import is_rule
from tui_agent.ui.widgets.transcript.cards import CardBlock
from tui_agent.ui.widgets.transcript.feed import LiveFeed
from tui_agent.ui.widgets.transcript.groups import GroupBlock
from tui_agent.ui.widgets.transcript.model import Position, Row
from tui_agent.ui.widgets.transcript.paint import find_all
from tui_agent.ui.widgets.transcript.pane import BlockPane
from tui_agent.ui.widgets.transcript.source import EntrySource
from tui_agent.ui.widgets.transcript.turns import FoldTurns

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.agent.subagents import FinishedSubagent
    from tui_agent.app.frontend import Opened

ShownAgent: TypeAlias = "Agent | FinishedSubagent"


FLUSH_SECONDS: Final = 0.1
"""Minimum time between two updates of streamed text, in seconds."""

MAX_FLUSH_SECONDS: Final = 0.25
"""Maximum time between two updates of streamed text, in seconds.

This applies to text that arrives faster than `FAST_CHARS`.
"""

FAST_CHARS: Final = 1_500
"""Speed of streamed text, in characters per second, above which it is too fast to read."""

FLUSH_SHARE: Final = 19
"""The pause after an update of streamed text, as a multiple of the time that the update took.

With this pause, updates use 5 % of a processor core. The pause is never shorter than
`FLUSH_SECONDS` or longer than `MAX_FLUSH_SECONDS`.
"""

SPINNER_SECONDS: Final = 0.25
"""Time between two frames of a spinner, in seconds."""
ELAPSED_SECONDS: Final = 1.0
"""Time between two updates of elapsed times if animations are turned off, in seconds."""
MAX_REPEAT_DISTANCE = 64
"""Number of last items in which the id of a new entry is searched for.

If one of them already shows the entry, the new entry is ignored.
"""


class Transcript(BlockPane, can_focus=True):
    """Shows the entries from the root of the session tree to the leaf, and the agent's activity.

    Only the visible items and the items up to a page away are loaded and laid out. The heights of
    all other items are estimates. When an estimate is corrected, the visible lines don't move. No
    timer runs while nothing changes.
    """

    FOCUS_ON_CLICK = False
    has_new: var[bool] = var(False, init=False)  # noqa: FBT003 - how Textual spells it
    """Whether something was added below the visible lines after the user scrolled up."""

    def __init__(self, *, clock: Callable[[], float] = perf_counter) -> None:
        super().__init__()
        self._feed = LiveFeed(self.model, clock)
        self._clock = clock
        self._agent: ShownAgent | None = None
        self._activity: Callable[[int], str] | None = None
        self._flushing = Later(self, self._flush)
        self._next_flush = 0.0
        self._seen_written = 0
        self._seen_at = 0.0
        self._holds_changes = self._standings_changed = False
        self._spinner: Timer | None = None

    # -- display

    def open(self, agent: ShownAgent) -> None:
        """Show the session of another agent, and forget which folds the user has chosen."""
        self._agent = agent
        # Folds are stored by entry id, and entries of other sessions have the same ids.
        self.model.folds.clear()
        self._feed.written = 0
        self.reopen()

    def reopen(self) -> None:
        """Load the agent's entries again, and show them with the answer that is being streamed."""
        if self._agent is not None:
            self.model.running = self._agent.running
            self.model.set_counter(self._agent.counter)
            session = self._agent.session
            self.set_entries(EntrySource(session.path_outline(), session.entries))
            self.set_standings(standings(self._agent.session.active_path()))
            written = self._feed.written
            live = self._agent.live or LiveAnswer()
            if live.reasoning:
                self.apply(ReasoningProgress(live.reasoning))
            if live.text:
                self.apply(AnswerDelta(live.text))
            for call in live.calls:
                self.apply(call)
            # Don't count the characters of the streamed answer twice: unless the agent was just
            # opened, they were counted when they arrived.
            self._feed.written = max(written, self._feed.written - written)
            self.show_activity(self._activity)

    def refresh_standings(self) -> None:
        """Update the context status (whether the model receives it) and the size of each entry.

        During a `together` block, the update is delayed until the end of the block.
        """
        if self._holds_changes:
            self._standings_changed = True
        elif self._agent is not None:
            if self.model.set_counter(self._agent.counter):
                self.update_view()
            before = self.model.standings or Standings()
            self.set_standings(before.grown(self._agent.session.active_path()))

    def set_entries(self, source: EntrySource | None, *, from_start: bool = False) -> None:
        """Replace all entries with those of ``source``. If ``source`` is None, remove all entries.

        If ``from_start`` is True, the view scrolls to the start. Otherwise, the entry at the top of
        the view stays there. If ``source`` doesn't contain that entry, or if the view was at the
        end, the view scrolls to the end.
        """
        anchor = self._anchor_id()
        self._feed.clear()
        self.model.open(source)
        self._leave_block()
        index = None
        if anchor is not None and not from_start:
            index = self.model.index_of(anchor)
        self.following = index is None and not from_start
        if index is None:
            self.top = Position(0)
        else:
            self.top = Position(index, self.top.line)
        self.has_new = False
        self.update_view()

    def _leave_block(self) -> None:
        """Remove the focus from the focused block, which may no longer exist."""
        if self.focused_block is not None:
            self.focused_block = None
            self.post_message(messages.BlockFocused(None))

    def _anchor_id(self) -> int | None:
        """Return the id of the item at the top of the view.

        Returns None while the view stays at the end to follow new text.
        """
        if self.following or self.top.index >= len(self.model):
            return None
        return self.model.ids[self.top.index]

    def set_standings(self, found: Standings | None) -> None:
        """Show for each entry whether the model receives it.

        If ``found`` is None, stop showing this.
        """
        if found is self.model.standings:
            return
        for index in self.model.set_standings(found):
            self.model.remeasure(index)
        self.update_view()

    def show_activity(self, describe: Callable[[int], str] | None) -> None:
        """Show an activity line with the text that ``describe`` returns.

        ``describe`` receives the number of characters that the model has written in this run. If
        ``describe`` is None, the activity line is removed.
        """
        self._activity = describe
        feed = self._feed
        block = None
        if describe is not None:
            block = ActivityBlock(lambda: describe(feed.written))
        feed.show_activity(block)
        self._show_changes()

    def fold_turns(self, how: FoldTurns) -> None:
        """Set which parts of finished turns are folded, and redraw the conversation."""
        self.model.fold_finished(how)
        self.update_view()

    def show_model_view(self, model_text: Callable[[int], str] | None) -> None:
        """Show only what the model sees, or everything if ``model_text`` is None.

        ``model_text`` takes an entry's id and returns the text that the model receives for the
        entry. The view keeps the entry at its top. If the view is at the end, it stays at the end.
        """
        with self._same_place():
            self.model.show_model_view(model_text)

    def toggle_open(self, what: "Opened") -> bool:
        """Open all outputs or all thoughts, or fold them again.

        Return True if they are now open.
        """
        with self._same_place():
            return self.model.toggle_open(what)

    @contextmanager
    def _same_place(self) -> Iterator[None]:
        """Keep the view's position while the ``with`` block changes blocks.

        The entry at the top of the view stays there. If the view was at the end, it stays at the
        end.
        """
        anchor = self._anchor_id()
        yield
        self._leave_block()
        if anchor is not None and (index := self.model.index_of(anchor)) is not None:
            self.top = Position(index)
        self.update_view()

    def apply(self, event: AgentEvent) -> None:
        """Show an event of the agent. Events that don't concern the conversation are ignored."""
        match event:
            case LeafMoved():
                self.reopen()
            case AnswerDelta() | ReasoningProgress() | ToolCallProgress() | ToolOutput():
                self._feed.stream(event)
                self._flush_soon()
            case EntryAppended(entry=entry):
                # When the leaf has moved, the path may already contain entries whose events arrive
                # later.
                if isinstance(entry, UserEntry) and not self.following:
                    self.model.keep_turn_open(len(self.model) - 1)
                if entry.id not in self.model.ids[-MAX_REPEAT_DISTANCE:]:
                    self._feed.append(entry)
                self._show_changes()
                self.refresh_standings()
            case _:
                self._feed.apply(event)
                self._show_changes()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Delay the layout until the ``with`` block ends, so that its events share one layout."""
        self._holds_changes = True
        try:
            yield
        finally:
            self._holds_changes = False
            if self._standings_changed:
                self._standings_changed = False
                self.refresh_standings()
            if self._feed.pending:
                self._flush_soon()
            self._show_changes()

    def show_notice(self, message: str) -> None:
        """Show a notice, which is a line that isn't an entry, instead of the previous one.

        If the text is empty, remove the notice.
        """
        self._feed.notice(message)
        self._show_changes()

    # -- flushing

    @property
    def pause(self) -> float:
        """Number of seconds until streamed text may be shown again.

        It is 0 or negative if streamed text may be shown now.
        """
        return self._next_flush - self._clock()

    def _flush_soon(self) -> None:
        """Show the streamed text now, or at the end of the pause that follows each update.

        Does nothing in a `together` block, because `together` calls this method when the block
        ends.
        """
        if self._flushing.is_waiting or self._holds_changes:
            return
        wait = self.pause
        if wait <= 0:
            self._flush()
        else:
            self._flushing.after(wait)

    def _flush(self) -> None:
        self._flushing.stop()
        started = self._clock()
        self._feed.flush()
        self._show_changes()
        now = self._clock()
        written = self._feed.written - self._seen_written
        seconds = now - self._seen_at
        self._seen_written = self._feed.written
        self._seen_at = now
        least = FLUSH_SECONDS
        if written > FAST_CHARS * seconds:
            least = MAX_FLUSH_SECONDS
        self._next_flush = now + min(max(least, FLUSH_SHARE * (now - started)), MAX_FLUSH_SECONDS)

    def _show_changes(self) -> None:
        """Lay out the items that have changed, and redraw them.

        Sets `has_new` if the user has scrolled up, and lines were added in or below the item at the
        top of the view. Does nothing during a `together` block.
        """
        if self._holds_changes:
            return
        changed = sorted(self._feed.changed)
        self._feed.changed.clear()
        if not changed:
            return
        before = self.model.heights.total
        seen = None
        if not self.following:
            for y, row in enumerate(self.visible_rows()):
                if row.block is not None:
                    seen = (row, y)
                    break
        for index in changed:
            if index < len(self.model):
                self.model.remeasure(index)
        if seen is not None:
            self._keep_seen(*seen)
        if (
            not self.following
            and self.model.heights.total > before
            and changed[-1] >= self.top.index
        ):
            self.has_new = True
        self.update_view()
        self._run_spinner()

    def _keep_seen(self, row: Row, y: int) -> None:
        """Keep a row at the line ``y`` of the view, even if its item has grown above the row."""
        if row.index >= len(self.model) or row.block is None:
            return
        item = self.model.item(row.index)
        if row.block not in item.blocks or row.block.hidden or not item.width:
            return
        line = item.start_of(row.block) + row.block_line
        if line != row.item_line:
            self.top = self._position_above(Position(row.index, line), y)

    def watch_following(self, following: bool) -> None:  # noqa: FBT001 - called by Textual
        if following:
            self.has_new = False

    # -- the icon of running calls

    def _run_spinner(self) -> None:
        """Start the timer if a spinner or an elapsed time is visible. Otherwise, stop the timer."""
        wanted = bool(self._spinning_rows())
        if wanted and self._spinner is None:
            moving = self.app.animation_level != "none"
            self._spinner = self.set_interval(
                SPINNER_SECONDS if moving else ELAPSED_SECONDS, self._spin
            )
        elif not wanted and self._spinner is not None:
            self._spinner.stop()
            self._spinner = None

    def _spinning_rows(self) -> list[tuple[int, CardBlock | GroupBlock | ActivityBlock]]:
        if not self._feed.working:
            return []
        rows = []
        for y, row in enumerate(self.visible_rows()):
            if (
                isinstance(row.block, CardBlock | GroupBlock | ActivityBlock)
                and row.block.running
                and row.block_line == 0
            ):
                rows.append((y, row.block))
        return rows

    def _spin(self) -> None:
        rows = self._spinning_rows()
        for y, card in rows:
            card.tick(self._clock(), moving=self.app.animation_level != "none")
            self.refresh(Region(0, y, self.size.width, 1))
        if rows:
            self._rows = None
        else:
            self._run_spinner()

    def update_view(self) -> None:
        """Update the view, and start the timer if a spinner has come into view."""
        super().update_view()
        if self._spinner is None:
            self._run_spinner()

    # -- search

    def lines_with(self, entry_id: int, query: str) -> list[int]:
        """Unfold blocks of an entry that hide a text, and return the lines that contain the text.

        The result contains line numbers in the entry's item. It is empty if the entry isn't part of
        the conversation, or if every occurrence of the text is split by a line break.
        """
        if (index := self.model.index_of(entry_id)) is None:
            return []
        self.model.reveal(index)
        self.model.measured_height(index)
        for block in self._blocks_of(index, entry_id):
            self._open_group(block)
            # Unfold the block until the text is visible. If the block doesn't contain the text,
            # restore its fold.
            before = block.fold
            while block.foldable and not self._lines_holding(block, query):
                is_open = block.fold is Fold.FULL
                block.choose_fold(before if is_open else Fold(block.fold + 1))
                self.model.folds[self.model.ids[index], block.key] = block.fold
                if is_open:
                    break
        self.model.remeasure(index)
        # When items are measured, their blocks may be replaced.
        item = self.model.item(index)
        found = []
        for block in self._blocks_of(index, entry_id):
            if not block.hidden:
                start = item.start_of(block)
                found += [start + at for at in self._lines_holding(block, query)]
        return found

    def _lines_holding(self, block: Block, query: str) -> list[int]:
        lines = enumerate(block.lines(self.model.width))
        return [at for at, line in lines if any(find_all(line.text, query))]

    def _open_group(self, block: Block) -> None:
        if block.hidden and isinstance(block.group, GroupBlock):
            block.group.cycle()
            self.model.refold_group(block.group)

    def _blocks_of(self, index: int, entry_id: int) -> list[Block]:
        """Return the blocks in an item that show a given entry.

        If no block names this entry, returns all blocks of the item.
        """
        return self._blocks_named(index, entry_id) or list(self.model.item(index).blocks)

    def _blocks_named(self, index: int, entry_id: int) -> list[Block]:
        blocks = self.model.item(index).blocks
        found = []
        for block in blocks:
            if block.entry is not None and block.entry[0] == entry_id:
                found.append(block)
        return found

    def show_line(self, entry_id: int, line: int) -> None:
        """Scroll a line of an entry's item to the middle of the view, and focus its block."""
        if (index := self.model.index_of(entry_id)) is None:
            return
        self.model.reveal(index)
        self.scroll_to_position(self._position_above(Position(index, line), self.page_height // 2))
        block, _at, _line = self.model.item(index).at(line, self.model.width)
        if block is not None:
            self._focus(index, block, scroll=False)

    def jump_to(self, entry_id: int) -> bool:
        """Scroll to an entry and focus it. Unfold the group or turn that hides it, if any.

        If the entry isn't part of the conversation, does nothing and returns False.
        """
        index = self.model.index_of(entry_id)
        if index is None:
            return False
        # For a compaction, jump to its horizontal rule, which may be in another item.
        rules = self.model.rules.items()
        for at, ones in rules:
            if any(one.id == entry_id for one in ones):
                index = at
                break
        self.model.reveal(index)
        self.model.measured_height(index)
        item = self.model.item(index)
        own = [block for block in item.shown if not is_rule(block)]
        target = next(iter(self._blocks_named(index, entry_id) or own or item.blocks), None)
        if target is None:
            self.scroll_to_position(Position(index))
        else:
            self._open_group(target)
            self._focus(index, target, at_top=True)
        return True
