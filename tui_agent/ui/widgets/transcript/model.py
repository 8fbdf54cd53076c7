"""The model of a transcript: loads the entries of a path as items, and computes their lines.

A path consists of the entries from the root of the session tree to the leaf. An item contains the
blocks that show one entry. The model needs no screen. It owns the items, their heights, the folds
and the context statuses, and decides which entries, turns and groups are hidden or folded. feed.py
adds the streamed answer and running calls. viewport.py asks the model to measure visible items. The
model never changes the session.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tui_agent.agent.permissions import Mode
from tui_agent.app.commands import key_of
from tui_agent.app.format import tokens
from tui_agent.context.context_status import Standing, together
from tui_agent.context.context_status_cache import Standings
from tui_agent.context.tokens import TokenCounter
from tui_agent.lazy import frozen
from tui_agent.session.entries import (
    CompactionEntry,
    Entry,
    ModeChangeEntry,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
    kinds,
)
from tui_agent.session.records import Outlines
from tui_agent.tools.registry import tool_traits
from tui_agent.ui.widgets.transcript import turns
from tui_agent.ui.widgets.transcript.blocks import (
    AnswerBlock,
    Block,
    EndingBlock,
    Fold,
    MarkerBlock,
    ModelTextBlock,
    UserBlock,
)
from tui_agent.ui.widgets.transcript.build import (
    BuildContext,
    belongs_to_compaction,
    blocks_of,
    compaction_note,
    is_rule,
    mark_problems,
)
from tui_agent.ui.widgets.transcript.cards import CardBlock
from tui_agent.ui.widgets.transcript.groups import GroupBlock, update_groups
from tui_agent.ui.widgets.transcript.items import Item, ItemCache, needs_gap
from tui_agent.ui.widgets.transcript.lines import Line
from tui_agent.ui.widgets.transcript.source import HIDDEN, LIVE, LIVE_ID, EntrySource, estimate

if TYPE_CHECKING:
    from tui_agent.app.frontend import Opened

_LOAD_AHEAD: Final = 12
"""When an item is loaded, this many items on each side of it are loaded, too."""

_DIALOGUE: Final = frozenset(kinds(lambda kind: kind.is_dialogue))

_MESSAGES: Final = frozenset(kinds(lambda kind: kind.is_message is not False)) - {"compaction"}

_LINELESS: Final = HIDDEN | {"tool_result"}
"""Kinds of items that usually show no lines.

For example, a tool result is shown in the item of its tool call.
"""

_NEVER_LOADED: Final = HIDDEN | {LIVE}

_NOTHING: Final = EntrySource(Outlines((), (), ()), lambda _ids: ())

_NOT_SEEN: Final = frozenset({Standing.SUMMARISED, Standing.HIDDEN, Standing.UNSENT})

_ADDED_BLOCKS: Final = (GroupBlock, ModelTextBlock, turns.TurnBlock)
"""Classes of the blocks that the model adds itself. All other blocks are built from entries."""

_TODO_LIST_REACH: Final = 200
"""Maximum number of recent tool results in which the newest to-do list is searched for."""

_MAX_PRUNES: Final = 2
"""At most this many prunes directly before a compaction can belong to the compaction."""

_MAX_RESULT_DISTANCE: Final = 512
"""Maximum distance, in entries, between an answer and the result of one of its tool calls."""

_KEYS: "Final[Mapping[Opened, tuple[str, ...]]]" = MappingProxyType(
    {"outputs": ("call:", "shell", "group:", turns.KEY), "thinking": ("reasoning:",)}
)
"""Prefixes of the keys of blocks that the user can open together with a single command."""

_HEIGHTS: Final = 512
"""Number of heights in each chunk of a `HeightIndex`, which stores the sum of each chunk."""


def is_todo_list(result: ToolResultEntry) -> bool:
    """Return True if a tool result belongs to a call that successfully wrote the to-do list."""
    return tool_traits()[result.tool].state == "list" and result.status is ToolStatus.COMPLETED


@frozen
class Position:
    """A line in the conversation: the index of its item, and its number in the item, from 0."""

    index: int
    line: int = 0


@frozen
class Row:
    """A line of the conversation, with the item and the block that contain it.

    ``index`` is the index of the item. ``item_line`` is the line's number in the item, and
    ``block_line`` is its number in the block. In a gap between blocks, ``block`` is None.
    """

    index: int
    item_line: int
    block: Block | None
    block_line: int
    line: Line


class HeightIndex:
    """The heights of all items in lines, with a sum for each chunk of `_HEIGHTS` items.

    Changing a height takes constant time. With the sums, finding the first line of an item, or the
    item at a line, takes microseconds.
    """

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights: list[int] = list(heights)
        self._sums: list[int] = [
            sum(self._heights[start : start + _HEIGHTS])
            for start in range(0, len(self._heights), _HEIGHTS)
        ]
        self.total: int = sum(self._sums)

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    def __setitem__(self, index: int, height: int) -> None:
        change = height - self._heights[index]
        if change:
            self._heights[index] = height
            self._sums[index // _HEIGHTS] += change
            self.total += change

    def append(self, height: int) -> None:
        if len(self._heights) % _HEIGHTS == 0:
            self._sums.append(0)
        self._heights.append(height)
        self._sums[-1] += height
        self.total += height

    def pop(self) -> None:
        height = self._heights.pop()
        self._sums[-1] -= height
        self.total -= height
        if len(self._heights) % _HEIGHTS == 0:
            self._sums.pop()

    def offset(self, index: int) -> int:
        """Return the number of the line at which an item begins.

        For the index after the last item, this is `total`, the number of all lines.
        """
        chunk = index // _HEIGHTS
        return sum(self._sums[:chunk]) + sum(self._heights[chunk * _HEIGHTS : index])

    def find(self, line: int) -> tuple[int, int]:
        """Return the index of the item that contains a line, and the line's number in the item.

        If the line number is out of range, the first or the last line is used. Returns (0, 0) if
        there are no lines.
        """
        if not self.total:
            return 0, 0
        line = min(max(line, 0), self.total - 1)
        sums = list(accumulate(self._sums))
        chunk = bisect_right(sums, line)
        if chunk:
            line -= sums[chunk - 1]
        start = chunk * _HEIGHTS
        totals = list(accumulate(self._heights[start : start + _HEIGHTS]))
        index = bisect_right(totals, line)
        return start + index, line - (totals[index - 1] if index else 0)


class TranscriptModel:
    """The items of a conversation. Most items show an entry on the path from the root to the leaf.

    A few items, such as notices, have no entry. Items are loaded when they are needed. Until then,
    their heights are estimates.
    """

    def __init__(self, width: int = 80) -> None:
        self.width = width
        self.heights = HeightIndex()
        self.standings: Standings | None = None
        """Context statuses of the entries (whether the model receives them). None if not shown."""
        self.counter: TokenCounter | None = None
        """Counts the tokens of entries for the current model.

        If this is None, the stored sizes are used.
        """
        self.ids = array("q")
        """Ids of the items, in ascending order."""
        self.kinds: list[str] = []
        """Kinds of the items: the kind of the entry, or `LIVE` for an item without an entry."""
        self._sizes = array("q")
        self.pinned: set[int] = set()
        """Indices of items that stay loaded, because they aren't stored or can still change."""
        self._cache = ItemCache(self.pinned)
        self._measured: set[int] = set()
        self.folds: dict[tuple[int, str], Fold] = {}
        """The folds that the user has chosen, by item id and block key.

        They are applied whenever an item is loaded.
        """
        self.opened: set[Opened] = set()
        """The kinds of blocks that the user has unfolded together with a single command.

        Some of these blocks may have been folded again.
        """
        self.running = False
        """Whether the agent is running, so that tool calls may still receive their results."""

        self.model_text: Callable[[int], str] | None = None
        """Returns the text that the language model receives for the entry with the given id.

        If this is set, only what the language model sees is shown. If it is None, everything is
        shown.
        """

        self.first_mode = ""
        """The mode that applies until the session's first mode change. Empty if it is unknown."""
        self.shows_key_hints = False
        """Whether the newest answer shows hints for keys of the main screen."""
        self.key_of: Callable[[str], str] = key_of
        """Returns the display text of the key for an action of the main screen."""
        self.fold_turns: turns.FoldTurns = "off"
        """How much of a finished turn is folded: nothing, the work, or also the last answer."""
        self._starts: dict[int, bool] = {}
        """A cache: for the index of an item, whether the item begins a turn."""
        self._last_turn: turns.Turn | None = None
        """A cache of the turn that `turn_at` found last."""
        self._newest_start = -1
        """A cache: index of the message that began the newest turn, or -1 if it is unknown."""

        self._newest_todo_list: int | None = None
        """A cache of the id of the tool result that contains the newest to-do list.

        It is 0 if no result contains one, and None if the id must be searched for.
        """

        self.source = _NOTHING
        self.rules: dict[int, list[CompactionEntry]] = {}
        """The compactions, by the index of the item that contains the compaction's horizontal rule.

        The rule is drawn before the item's other blocks. If an index has several compactions, only
        the rule of the newest one is drawn.
        """
        self._regrouped: set[int] = set()
        """Indices of items to measure again because their groups of tool calls have changed."""

    def __len__(self) -> int:
        return len(self.ids)

    # -- content

    def open(self, source: EntrySource | None) -> None:
        """Replace all items with the entries of ``source``, and keep the folds that the user chose.

        If ``source`` is None, all items are removed.
        """
        self.source = source or _NOTHING
        headers = self.source.headers
        self.ids = array("q", headers.ids)
        self.kinds = list(headers.kinds)
        self._sizes = array("q", headers.sizes)
        self._cache.clear()
        self.pinned.clear()
        self._clear_turns()
        self._newest_todo_list = None
        self._estimate()
        self.rules.clear()
        if compactions := headers.of_kind("compaction"):
            for entry in self.source.load(compactions):
                if isinstance(entry, CompactionEntry):
                    self.rules.setdefault(self._rule_place(entry), []).append(entry)

    def add_rule(self, entry: CompactionEntry) -> int:
        """Add the horizontal rule of a new compaction.

        Return the index of the item that contains the rule.

        This item is the first visible one that the compaction keeps, or the compaction's own item
        if there is none.
        """
        index = self._rule_place(entry)
        self.rules.setdefault(index, []).append(entry)
        if (item := self._cache.use(index)) is not None:
            own = [block for block in item.blocks if not is_rule(block)]
            item.blocks[:] = [*self._rules_at(index), *own]
        return index

    def _rule_place(self, entry: CompactionEntry) -> int:
        """Return the index of the item that shows a compaction's rule. See `add_rule`."""
        own = bisect_left(self.ids, entry.id)
        if entry.first_kept_id is None:
            start = own
        else:
            start = bisect_left(self.ids, entry.first_kept_id)
        if start >= len(self.ids) or self.ids[start] != entry.first_kept_id:
            return own
        if start and self.kinds[start - 1] == "compaction":
            # When the summary is edited, a new compaction replaces the previous one, whose own item
            # is empty.
            start -= 1
        for at in range(start, own):
            if self.kinds[at] not in _LINELESS:
                return at
        return own

    def _rules_at(self, index: int) -> list[Block]:
        """Return a list with the horizontal rule of the newest compaction at an index.

        The list is empty if there is no compaction.
        """
        context = BuildContext(count_summarised=self.count_summarised)
        found = []
        for entry in self.rules.get(index, ())[-1:]:
            found.extend(blocks_of(entry, context))
        return found

    def resize(self, width: int) -> None:
        """Set the width of the conversation, in cells.

        All heights become estimates until the items are measured again.
        """
        if width != self.width:
            self.width = width
            self._estimate()

    def _estimate(self) -> None:
        heights = [
            estimate(kind, size, self.width)
            for kind, size in zip(self.kinds, self._sizes, strict=True)
        ]
        found = self.standings
        if self.model_text is not None and found is not None:
            # Entries that the language model doesn't see take up no lines, whether they are loaded
            # or not.
            for index, (entry_id, kind) in enumerate(zip(self.ids, self.kinds, strict=True)):
                if (
                    kind != LIVE
                    and entry_id < found.boundary
                    and found.of(entry_id, kind) in _NOT_SEEN
                ):
                    heights[index] = 0
        if self._folds_turns and "outputs" not in self.opened:
            turns.zero_hidden_heights(self.kinds, heights)
        self.heights = HeightIndex(heights)
        self._measured.clear()

    def append(self, item: Item) -> int:
        """Add an item at the end, and return its index.

        The height of the item is 0 until it is measured.
        """
        index = len(self.ids)
        self.ids.append(item.id)
        self.kinds.append(item.kind)
        self._sizes.append(0)
        self.heights.append(0)
        if item.kind == "user":
            self._last_turn = None
            self._newest_start = -1
        self._cache.put(index, item)
        self._apply_folds(item)
        if item.kind == LIVE:
            self.pinned.add(index)
        return index

    def replace(self, index: int, item: Item) -> None:
        """Replace the item at an index with another, which isn't pinned.

        The caller must measure the new item afterwards.
        """
        self.ids[index] = item.id
        self.kinds[index] = item.kind
        self.pinned.discard(index)
        self._cache.put(index, item)

    def remove_last(self) -> Item | None:
        """Remove the last item. Return the removed item if it was loaded, otherwise None."""
        index = len(self.ids) - 1
        self._measured.discard(index)
        for values in (self.ids, self.kinds, self._sizes):
            values.pop()
        self.heights.pop()
        self.pinned.discard(index)
        return self._cache.pop(index, None)

    def index_of(self, entry_id: int) -> int | None:
        """Return the index of the item that shows an entry.

        Returns None if the entry isn't on the path to the leaf. A tool result is shown by the item
        of the answer that contains the tool call.
        """
        index = bisect_left(self.ids, entry_id)
        if index >= len(self.ids) or self.ids[index] != entry_id:
            return None
        if self.kinds[index] == "tool_result":
            owner = self.owner_of(index)
            if owner is None:
                return index
            return owner
        return index

    def owner_of(self, index: int) -> int | None:
        """Return the index of the last answer before an index, or None if there is none nearby."""
        for place in range(index - 1, max(index - _MAX_RESULT_DISTANCE, -1), -1):
            if self.kinds[place] == "assistant":
                return place
        return None

    # -- loading

    def item(self, index: int) -> Item:
        """Return the item at an index. If it isn't loaded, load it and some of its neighbors.

        If the item shows nothing itself, it has no blocks.
        """
        item = self._cache.use(index)
        if item is None:
            self._load(index)
            item = self._cache.use(index)
        if item is not None:
            return item
        return Item(self.ids[index], self.kinds[index], [])

    def entry_of(self, index: int, block: Block) -> int:
        """Return the id of the entry that a block shows. The block is in the item at ``index``."""
        if block.entry is not None:
            return block.entry[0]
        return self.ids[index]

    def loaded(self) -> list[tuple[int, Item]]:
        """Return all items that are loaded, each with its index."""
        return list(self._cache.items())

    def _is_missing(self, index: int) -> bool:
        """Return True if the item at an index must be loaded from the source.

        Returns False if the item is in the cache, or if items of its kind are never loaded. Also
        returns False for a tool result whose answer is nearby, because the answer is loaded
        together with its results.
        """
        if index in self._cache or self.kinds[index] in _NEVER_LOADED:
            return False
        return self.kinds[index] != "tool_result" or self.owner_of(index) is None

    def _load(self, index: int) -> None:
        start = max(index - _LOAD_AHEAD, 0)
        end = min(index + _LOAD_AHEAD + 1, len(self.ids))
        wanted = [place for place in range(start, end) if self._is_missing(place)]
        if index not in wanted:
            return
        results = {}
        places = set(wanted)
        for place in wanted:
            if self.kinds[place] == "assistant":
                results[place] = self._places_after_answer(place)
                places.update(results[place])
        ids = [self.ids[place] for place in sorted(places)]
        # Entries that are damaged are missing from the result.
        entries = {entry.id: entry for entry in self.source.load(ids)}
        for place in wanted:
            entry_id = self.ids[place]
            if place in self._cache:
                continue
            if entry_id not in entries:
                text = f"#{entry_id} could not be read; the other entries are intact"
                lost = MarkerBlock("damaged", text, icon="!", style="status-warning")
                self._cache.put(place, Item(entry_id, self.kinds[place], [lost]))
                continue
            found = (entries.get(self.ids[result]) for result in results.get(place, ()))
            self._build_item(place, entries[entry_id], list(filter(None, found)))

    def _places_after_answer(self, index: int) -> list[int]:
        """Return the indices of tool results and user messages between an answer and the next one.

        Only entries within `_MAX_RESULT_DISTANCE` of the answer are searched.
        """
        found: list[int] = []
        for place in range(index + 1, min(index + _MAX_RESULT_DISTANCE, len(self.ids))):
            if self.kinds[place] == "assistant":
                break
            if self.kinds[place] in {"tool_result", "user"}:
                found.append(place)
        return found

    def _build_item(self, index: int, entry: Entry, results: Sequence[Entry] = ()) -> None:
        by_call = {}
        for result in results:
            if isinstance(result, ToolResultEntry):
                by_call[result.call_id] = result
        following = self._dialogue_after(index)
        context = BuildContext(
            by_call,
            self.count_summarised,
            live=self.running
            and "assistant" not in self.kinds[index + 1 : index + 1 + _MAX_RESULT_DISTANCE],
            newest=not following,
            shows_key_hints=self.shows_key_hints,
            key_of=self.key_of,
            running=self.running and not following,
            was_retried=following == "assistant",
            size_of=self.size_of,
            load=self.source.load,
        )
        if self.is_hidden_mode_change(index, entry) or self.belongs_to_compaction(index, entry):
            own: list[Block] = []
        elif isinstance(entry, CompactionEntry):
            # The compaction's rule is in the item of the first entry that the compaction keeps.
            if self._rule_place(entry) == index:
                own = []
            else:
                own = [compaction_note(entry)]
        else:
            own = blocks_of(entry, context)
        for block in own:
            if (
                isinstance(block, CardBlock)
                and block.traits.state == "list"
                and block.entry is not None
            ):
                block.is_outdated = block.entry[0] < self.newest_todo_list()
                block.fold_by_default()
        for follower in results:
            if isinstance(follower, UserEntry):
                mark_problems(own, follower.diagnostics)
        blocks = [*self._rules_at(index), *own]
        places: list[int] = []
        if by_call:
            places = [
                at for at in self._places_after_answer(index) if self.kinds[at] == "tool_result"
            ]
        item = Item(entry.id, entry.kind, blocks, places)
        self._apply_folds(item)
        self._cache.put(index, item)

    def is_hidden_mode_change(self, index: int, entry: Entry) -> bool:
        """Return True if an entry is a mode change that is not shown.

        Of successive mode changes with nothing visible between them, only the last is shown. If the
        last change returns to the mode before the first change, it isn't shown either, unless that
        mode is yolo.
        """
        if not isinstance(entry, ModeChangeEntry):
            return False
        after = range(index + 1, len(self.kinds))
        shown = (self.kinds[at] for at in after if self.kinds[at] not in HIDDEN)
        if next(shown, "") == entry.kind:
            return True
        return entry.mode == self._mode_before(index) and entry.mode != Mode.YOLO

    def mode_changes_before(self, index: int) -> list[int]:
        """Return the indices of the successive mode changes that come before the item at an index.

        The search ends at the first visible entry.
        """
        found = []
        for at in range(index - 1, -1, -1):
            if self.kinds[at] == "mode_change":
                found.append(at)
            elif self.kinds[at] not in HIDDEN:
                break
        return found

    def _mode_before(self, index: int) -> str:
        """Return the mode that applied before a series of mode changes.

        ``index`` is the index of the last mode change in the series.
        """
        start = min([index, *self.mode_changes_before(index)])
        for at in range(start - 1, -1, -1):
            if self.kinds[at] == "mode_change":
                for entry in self.source.load([self.ids[at]]):
                    if isinstance(entry, ModeChangeEntry):
                        return entry.mode
        return self.first_mode

    def forget_prunes(self, index: int) -> set[int]:
        """Unload the prune entries directly before a compaction's item, and return their indices.

        At most `_MAX_PRUNES` of them are unloaded, and pinned items are not. When these items are
        loaded again, prunes that belong to the compaction have no blocks, because the compaction's
        rule stands for them.
        """
        prunes: set[int] = set()
        for at in range(index - 1, max(index - _MAX_PRUNES, 0) - 1, -1):
            if self.kinds[at] != "prune":
                break
            if at not in self.pinned:
                prunes.add(at)
                self._cache.pop(at, None)
        return prunes

    def belongs_to_compaction(self, index: int, entry: Entry) -> bool:
        """Return True if an entry isn't shown because it belongs to a compaction.

        The compaction's horizontal rule is shown instead. Always returns False while only what the
        language model sees is shown.
        """
        if self.model_text is not None:
            return False
        before = next((kind for kind in reversed(self.kinds[:index]) if kind not in HIDDEN), "")
        following = (kind for kind in self.kinds[index + 1 : index + 3] if kind != entry.kind)
        return belongs_to_compaction(entry, before, next(following, ""))

    def _dialogue_after(self, index: int) -> str:
        """Return the kind of the first message or answer after the item at an index.

        Returns "" if no message or answer follows.
        """
        for at in range(index + 1, len(self.kinds)):
            if self.kinds[at] in _DIALOGUE:
                return self.kinds[at]
        return ""

    def withdraw_offers(self, index: int, *, was_retried: bool) -> int | None:
        """Remove the key hints and the offer to retry from the last answer before an index.

        This is called when another entry follows that answer. ``was_retried`` is True if this entry
        is an answer. If there is no message between the two answers, both answer the same request,
        so a failure of the first is marked as retried. Returns the index of the changed answer, or
        None if nothing has changed.
        """
        place = self.owner_of(index)
        if place is None or (item := self._cache.use(place)) is None:
            return None
        was_retried = was_retried and self._dialogue_after(place) in {"", "assistant"}
        changed = False
        for block in item.blocks:
            if isinstance(block, AnswerBlock):
                changed |= block.set_key_hints("")
            elif isinstance(block, EndingBlock):
                changed |= block.withdraw_retry(was_retried=was_retried)
        return place if changed else None

    def count_summarised(self, entry: CompactionEntry) -> int:
        """Return how many messages, answers and tool results a compaction has summarised.

        These are the ones before the first entry that the compaction kept.
        """
        end = bisect_left(
            self.ids, entry.id if entry.first_kept_id is None else entry.first_kept_id
        )
        end = min(end, bisect_left(self.ids, entry.id))
        return sum(kind in _MESSAGES for kind in self.kinds[:end])

    # -- what the model sees

    def show_model_view(self, model_text: Callable[[int], str] | None) -> None:
        """Show only what the language model sees, or everything if ``model_text`` is None.

        The function is stored as the attribute ``model_text``. Afterwards, all heights are
        estimates, and only pinned items are still loaded.
        """
        self.model_text = model_text
        for index, item in list(self._cache.items()):
            if index not in self.pinned:
                del self._cache[index]
                continue
            item.blocks[:] = [
                block for block in item.blocks if not isinstance(block, _ADDED_BLOCKS)
            ]
            for block in item.blocks:
                block.left_out = False
                block.group = None
                block.invalidate()
        self._estimate()

    def _reduce_to_model_text(self, item: Item, model_text: Callable[[int], str]) -> None:
        """Show what the language model receives, and hide the blocks that it doesn't see.

        For a compaction, the model receives the summary, which is shown after the compaction's
        rule. For an entry that was removed from the context, it receives a placeholder.
        """
        blocks: list[Block] = []
        for block in item.blocks:
            if isinstance(block, ModelTextBlock):
                continue
            entry_id, kind = block.entry or (item.id, item.kind)
            if is_rule(block):
                block.left_out = self.standings is None or entry_id != self.standings.compaction
                block.fold = Fold.CLOSED
                if not block.left_out:
                    blocks += [block, ModelTextBlock(model_text(entry_id), (entry_id, kind))]
                    continue
            elif item.kind != LIVE:
                block.left_out = block.standing not in {Standing.SENT, Standing.PINNED}
                if block.standing is Standing.CLEARED and not any(
                    one.key == f"model-text:{entry_id}" for one in blocks
                ):
                    blocks.append(ModelTextBlock(model_text(entry_id), (entry_id, kind)))
            blocks.append(block)
        if blocks != item.blocks:
            item.blocks[:] = blocks
            self._set_item_standings(item)

    # -- folding and states

    def toggle_open(self, what: "Opened") -> bool:
        """Open all blocks of a kind, or restore their default folds.

        Return True if they are now open.

        Afterwards, folds that the user chose for single blocks of this kind are forgotten, and all
        heights are estimates.
        """
        self.opened ^= {what}
        for at, key in list(self.folds):
            if key.startswith(_KEYS[what]):
                del self.folds[at, key]
        self.show_model_view(self.model_text)
        for item in self._cache.values():
            for block in item.blocks:
                if block.opened_with == what:
                    block.open_with_others(is_open=what in self.opened)
        return what in self.opened

    def apply_opened(self, block: Block) -> None:
        """Open a new block if the user has chosen to open all blocks of its kind."""
        if block.opened_with in self.opened:
            block.open_with_others(is_open=True)

    def _apply_folds(self, item: Item) -> None:
        for block in item.blocks:
            self.apply_opened(block)
            fold = self.folds.get((item.id, block.key))
            if fold is not None:
                block.choose_fold(fold)

    def size_of(self, entry: Entry) -> int:
        """Return the size of an entry, in tokens of the current model.

        The context map shows the same size.
        """
        if self.counter is None or not entry.tokens:
            return entry.tokens
        return self.counter.entry(entry)

    def set_counter(self, counter: TokenCounter) -> bool:
        """Set the token counter.

        Return True if the sizes on a loaded card have changed.
        """
        if counter == self.counter:
            return False
        cards = []
        for item in self._cache.values():
            for block in item.blocks:
                if isinstance(block, CardBlock):
                    cards.append(block)
        said = [tokens(card.tokens) for card in cards]
        self.counter = counter
        changed = [
            card for card, before in zip(cards, said, strict=True) if tokens(card.tokens) != before
        ]
        for card in changed:
            card.invalidate()
        return bool(changed)

    def set_standings(self, standings: Standings | None) -> list[int]:
        """Set the context statuses, which say for each entry whether the model receives it.

        Return the indices of the loaded items whose lines have changed.
        """
        if standings is self.standings:
            return []
        before = self.standings
        self.standings = standings
        if self.model_text is not None and (
            before is None or standings is None or before.differs_from(standings)
        ):
            self.show_model_view(self.model_text)
        return [
            index for index, item in sorted(self._cache.items()) if self._set_item_standings(item)
        ]

    def _set_item_standings(self, item: Item) -> bool:
        """Set the context status of an item's blocks. Return True if any lines have changed."""
        found = self.standings
        changed = False
        for block in item.blocks:
            if isinstance(block, turns.TurnBlock):
                index = self.index_of(item.id)
                block.work_standing = None
                if index is not None and (turn := self.turn_at(index)) is not None:
                    block.work_standing = self._standing_of(turn)
                continue
            entry_id, kind = block.entry or (item.id, item.kind)
            standing: Standing | None = None
            if found is not None and not block.is_sendable:
                standing = Standing.UNSENT
            elif found is not None and kind != LIVE:
                standing = found.of(entry_id, kind)
            elif found is not None and entry_id == LIVE_ID:
                standing = Standing.SENT
            changed |= block.set_standing(
                standing, edited=found is not None and entry_id in found.edited
            )
        return changed

    # -- the to-do list

    def newest_todo_list(self) -> int:
        """Return the id of the newest tool result that wrote the to-do list, or 0 if there is none.

        Only the last `_TODO_LIST_REACH` tool results are searched.
        """
        if self._newest_todo_list is None:
            self._newest_todo_list = self._todo_list_before(LIVE_ID)
        return self._newest_todo_list

    def _todo_list_before(self, entry_id: int) -> int:
        ids = zip(self.ids, self.kinds, strict=True)
        results = []
        for at, kind in ids:
            if kind == "tool_result" and at < entry_id:
                results.append(at)
        loaded = self.source.load(results[-_TODO_LIST_REACH:])
        lists = (one.id for one in loaded if isinstance(one, ToolResultEntry) and is_todo_list(one))
        return max(lists, default=0)

    def replace_todo_list(self, result: ToolResultEntry) -> int | None:
        """Fold the previous to-do list if a new tool result wrote the to-do list.

        Returns the index of the item with the previous list, or None if nothing changed.
        """
        if not is_todo_list(result):
            return None
        before = self._newest_todo_list
        if before is None:
            before = self._todo_list_before(result.id)
        self._newest_todo_list = result.id
        index = self.index_of(before)
        if index is None:
            return None
        item = self._cache.use(index)
        for block in item.blocks if item is not None else ():
            if (
                isinstance(block, CardBlock)
                and block.entry is not None
                and block.entry[0] == before
            ):
                block.outdate()
        return index

    # -- finished turns

    @property
    def _folds_turns(self) -> bool:
        return self.fold_turns != "off" and self.model_text is None

    def _clear_turns(self) -> None:
        self._starts.clear()
        self._last_turn = None
        self._newest_start = -1

    def fold_finished(self, how: turns.FoldTurns) -> None:
        """Set which parts of finished turns are folded.

        Afterwards, all heights are estimates.
        """
        if how != self.fold_turns:
            self.fold_turns = how
            self.show_model_view(self.model_text)

    def _starts_turn(self, index: int) -> bool:
        """Return True if the item at an index is a message that begins a turn."""
        known = self._starts.get(index)
        if known is None:
            blocks = self.item(index).blocks
            known = any(isinstance(block, UserBlock) and block.starts_turn for block in blocks)
            self._starts[index] = known
        return known

    def turn_at(self, index: int) -> turns.Turn | None:
        """Return the finished turn that contains the item at an index.

        Returns None if there is no such turn, if the turn has no tool calls, or if finished turns
        are not folded.
        """
        if not self._folds_turns or index >= len(self.kinds):
            return None
        if self._last_turn is not None and index in self._last_turn:
            return self._last_turn
        if self._newest_start < 0:
            last = len(self.kinds) - 1
            self._newest_start = turns.turn_start(self.kinds, self._starts_turn, last) or 0
        if index >= self._newest_start:
            return None
        turn = turns.turn_at(self.kinds, self._starts_turn, index)
        if turn is None or not turn.calls:
            return None
        self._last_turn = turn
        return turn

    def _is_open(self, turn: turns.Turn) -> bool:
        key = (self.ids[turn.start], turns.KEY)
        preset = Fold.FULL if "outputs" in self.opened else Fold.CLOSED
        return self.folds.get(key, preset) is not Fold.CLOSED

    def keep_turn_open(self, index: int) -> None:
        """Don't fold the turn of an item when the turn ends, because the user is reading it."""
        index = min(index, len(self.kinds) - 1)
        start = turns.turn_start(self.kinds, self._starts_turn, index)
        if start is not None and self.fold_turns != "off":
            self.folds.setdefault((self.ids[start], turns.KEY), Fold.FULL)

    def end_turn(self, index: int) -> set[int]:
        """Fold the turn before the message at an index, if that turn is finished.

        Returns the indices of the turn's items that still have lines. They must be measured again.
        """
        turn = None
        if index:
            turn = self.turn_at(index - 1)
        if turn is None:
            return set()
        self._reset_heights(turn)
        return {at for at in range(turn.start, turn.end) if at not in self._measured}

    def refold_turn(self, index: int) -> None:
        """Update the heights of a turn's items after the user has folded or unfolded the turn.

        ``index`` is the index of any item in the turn.
        """
        turn = self.turn_at(index)
        if turn is not None:
            self._reset_heights(turn)

    def reveal(self, index: int) -> None:
        """Unfold the turn that contains the item at an index, if it hides blocks of this item."""
        turn = self.turn_at(index)
        if turn is None or self._is_open(turn) or index == turn.start:
            return
        self.measure(index)
        if turns.is_hidden_entirely(turn, self.kinds, index) or any(
            block.left_out for block in self.item(index).blocks
        ):
            self.folds[self.ids[turn.start], turns.KEY] = Fold.FULL
            self._reset_heights(turn)
            self.measure(turn.start)

    def _reset_heights(self, turn: turns.Turn) -> None:
        """Set the heights of a turn's hidden items to 0. Its other items must be measured again.

        If the turn is unfolded, the heights of all its items become estimates.
        """
        is_open = self._is_open(turn)
        for index in range(turn.start, turn.end):
            kind = self.kinds[index]
            if (
                not is_open
                and index not in self.rules
                and turns.is_hidden_entirely(turn, self.kinds, index)
            ):
                self.heights[index] = 0
                self._measured.add(index)
                continue
            self._measured.discard(index)
            if is_open and kind != LIVE:
                self.heights[index] = estimate(kind, self._sizes[index], self.width)

    def _fold_turn(self, index: int, item: Item) -> bool:
        """Hide or show an item's blocks, depending on its turn. Return True if the turn is folded.

        If the item is the first of its turn, also adds the line that represents the folded turn, or
        removes that line if there is no such turn.
        """
        turn = self.turn_at(index)
        line = turns.turn_block_of(item.blocks)
        if turn is None:
            if line is not None:
                item.blocks.remove(line)
            return False
        is_folded = not self._is_open(turn)
        if index == turn.start:
            if line is None:
                line = turns.TurnBlock(
                    turn.calls, lambda: self._results_of(turn), lambda: self._seconds_of(turn)
                )
                item.blocks.append(line)
            line.choose_fold(Fold.CLOSED if is_folded else Fold.FULL)
        elif is_folded:
            turns.hide_blocks(turn, index, item.kind, item.blocks, self.fold_turns)
        else:
            for block in item.blocks:
                block.left_out = False
        return is_folded

    def _results_of(self, turn: turns.Turn) -> Sequence[Entry]:
        """Return the newest tool results of a turn, at most `turns.MAX_LOOKED_AT`."""
        found = []
        for at in range(turn.start, turn.end):
            if self.kinds[at] == "tool_result":
                found.append(self.ids[at])
        return self.source.load(found[-turns.MAX_LOOKED_AT :])

    def _seconds_of(self, turn: turns.Turn) -> float:
        """Return the time from a turn's message to its last answer, in seconds.

        Returns 0 if the message or the answer can't be read.
        """
        entries = self.source.load([self.ids[turn.start], self.ids[turn.answer]])
        if len(entries) == 2:
            return (entries[-1].created_at - entries[0].created_at) / 1_000
        return 0.0

    def _standing_of(self, turn: turns.Turn) -> Standing | None:
        found = self.standings
        if found is None:
            return None
        places = []
        for at in range(turn.start + 1, turn.end):
            if self.kinds[at] in {"assistant", "tool_result"}:
                places.append(at)
        newest = places[-turns.MAX_LOOKED_AT :]
        return together(found.of(self.ids[at], self.kinds[at]) for at in newest)

    # -- heights

    def measure(self, index: int) -> int:
        """Lay out an item, and return its height in lines.

        First, blocks in a folded turn are hidden. If the turn isn't folded, small tool calls are
        grouped. If the view shows what the language model sees, the blocks are replaced by what it
        receives.
        """
        turn = self.turn_at(index)
        is_hidden = turn is not None and not self._is_open(turn) and index not in self.rules
        if turn is not None and is_hidden and turns.is_hidden_entirely(turn, self.kinds, index):
            self.heights[index] = 0
            self._measured.add(index)
            return 0
        item = self.item(index)
        if self.model_text is None and not self._fold_turn(index, item):
            self._regrouped |= update_groups(self.kinds, self.item, index)
        self._set_item_standings(item)
        if self.model_text is not None:
            self._reduce_to_model_text(item, self.model_text)
        for block in item.blocks:
            if isinstance(block, GroupBlock):
                preset = Fold.FULL if "outputs" in self.opened else block.fold
                block.fold = self.folds.get((item.id, block.key), preset)
        height = item.lay_out(self.width, gap=self._gap_before(index))
        self.heights[index] = height
        self._measured.add(index)
        for result in item.results:
            self.heights[result] = 0
            self._measured.add(result)
        return height

    def measured_height(self, index: int) -> int:
        """Return an item's height in lines.

        The item is measured unless it has already been measured at this width.
        """
        if index in self._measured:
            item = None
            if self.heights[index]:
                item = self._cache.use(index)
            if not self.heights[index] or (item is not None and item.width == self.width):
                return self.heights[index]
        return self.measure(index)

    def _gap_before(self, index: int) -> bool:
        """Return True if an empty line separates an item from the visible item before it."""
        previous = next((place for place in range(index - 1, -1, -1) if self.heights[place]), None)
        if previous is None:
            return False
        item = self._cache.use(index)
        first = None
        if item is not None:
            first = next(iter(item.shown), None)
        if first is None:
            return False
        before = self._cache.use(previous)
        if before is None and first.tight and (owner := self.owner_of(index)) is not None:
            # Whether there is a gap depends on the previous call, so that call must be loaded.
            before = self.item(owner)
        if before is not None:
            shown = before.shown
        else:
            shown = []
        if shown:
            return needs_gap(shown[-1], first)
        return True

    def remeasure(self, index: int) -> None:
        """Measure an item that has changed, and all items whose height depends on it.

        These are the items whose groups of tool calls have changed, and the next item, because the
        empty line before it depends on the changed item.
        """
        self.measure(index)
        # The changed item may contain a call that belongs to a group in earlier items.
        others = self._regrouped - {index}
        self._regrouped = set()
        for place in sorted(others):
            if place in self._cache:
                self.measure(place)
        self._regrouped.clear()
        following = next(
            (place for place in range(index + 1, len(self.ids)) if self.heights[place]), None
        )
        if following is not None and following in self._measured and following in self._cache:
            self.measure(following)

    def refold_group(self, group: GroupBlock) -> None:
        """Store the fold that the user chose for a group of tool calls, and measure its items."""
        for index in sorted(group.item_indices):
            if index < len(self.ids):
                self.folds[self.ids[index], group.key] = group.fold
                self.measure(index)

    # -- lines

    def rows(self, top: Position, count: int) -> Iterator[Row]:
        """Yield up to ``count`` lines, beginning at the position ``top``.

        The items of these lines are loaded and measured if necessary.
        """
        index = top.index
        line = top.line
        while count > 0 and index < len(self.ids):
            height = self.measured_height(index)
            if height:
                item = self.item(index)
            else:
                item = None
            while item is not None and line < height and count > 0:
                block, block_line, shown = item.at(line, self.width)
                yield Row(index, line, block, block_line, shown)
                line = line + 1
                count = count - 1
            index = index + 1
            line = 0
