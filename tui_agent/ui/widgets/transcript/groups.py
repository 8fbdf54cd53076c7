"""Groups successive small tool calls, such as reads and searches, in one row.

The user can unfold the row to see the calls. A group may contain calls from several answers. Its
members depend only on the entries of the conversation, and not on which items are loaded. model.py
stores the folds of groups, and calls `update_groups` whenever it measures an item. `update_groups`
inserts or removes the groups' rows in items, and sets `Block.group`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tui_agent.app import format as wording
from tui_agent.context.context_status import Standing, together
from tui_agent.lazy import frozen
from tui_agent.session.entries import ToolStatus, kinds
from tui_agent.ui.widgets.transcript.blocks import AnswerBlock, Block, Fold, FoldingBlock, head_line
from tui_agent.ui.widgets.transcript.cards import RUNNING, WAITING, CardBlock
from tui_agent.ui.widgets.transcript.flows import MAX_TEXT_WIDTH
from tui_agent.ui.widgets.transcript.items import Item
from tui_agent.ui.widgets.transcript.lines import Line, StyledSpan
from tui_agent.ui.widgets.transcript.source import LIVE

MIN_CALLS: Final = 3
"""Minimum number of tool calls in a group. If there are fewer, they are shown one by one."""

_MAX_SPAN: Final = 64
"""The interval, in items, at which groups end.

No group extends across an index that is a multiple of this number. Therefore, only a few items must
be searched to find the members of a group.
"""

_BETWEEN: Final = frozenset(kinds(lambda kind: kind.follows_calls or not kind.is_shown))
"""Kinds of entries that don't end a group of tool calls.

They show nothing between two answers.
"""

_MAX_TITLES = 100

_NOT_FAILED: Final = frozenset({WAITING, RUNNING, ToolStatus.COMPLETED})


class GroupBlock(FoldingBlock):
    """The row that stands for a group of small tool calls.

    While it is open, the calls are shown below.

    ``members`` are the cards of the calls and the short answers between them. ``item_indices`` are
    the indices of the items that contain the members.
    """

    kind = "card"
    tight = True
    opened_with = "outputs"

    def __init__(self, first: CardBlock) -> None:
        super().__init__(f"group:{first.call_id}")
        self.members: Sequence[Block] = ()
        self.item_indices: frozenset[int] = frozenset()

    @property
    def cards(self) -> list[CardBlock]:
        return [block for block in self.members if isinstance(block, CardBlock)]

    @property
    def running(self) -> bool:
        return any(card.running for card in self.cards)

    def tick(self, now: float, *, moving: bool) -> None:
        for card in self.cards:
            if card.running:
                card.tick(now, moving=moving)

    @property
    def standing(self) -> Standing | None:
        return together(card.standing for card in self.cards if card.standing is not None)

    def set_members(self, members: Sequence[Block], places: frozenset[int]) -> None:
        """Set the group's members and the indices of their items.

        Afterwards, each member refers to this group.
        """
        self.members = tuple(members)
        self.item_indices = places
        for block in members:
            block.group = self
        self.invalidate()

    def cycle(self) -> None:
        """Open or close the group. Closing the group also folds the cards in it."""
        super().cycle()
        if self.fold is Fold.CLOSED:
            for card in self.cards:
                card.fold = Fold.CLOSED

    def copy_text(self) -> str:
        return "\n".join(f"{card.tool} {card.title}" for card in self.cards)

    def _head(self, width: int) -> Iterable[Line]:
        cards = self.cards
        running = next((card for card in cards if card.running), None)
        counted = Counter(card.tool for card in cards)
        counts = ", ".join(f"{tool} {self._count(tool, count)}" for tool, count in counted.items())
        # More titles than `_MAX_TITLES` never fit in the line.
        titles = ", ".join(dict.fromkeys(card.title for card in cards[:_MAX_TITLES] if card.title))
        left: list[StyledSpan] = [(running or cards[-1]).icon, (counts, "tool act:toggle")]
        left.append((f"  {titles}", "muted act:toggle"))
        yield head_line(
            left, self._facts(running), ((f"  {self.chevron}", "muted act:toggle"),), width
        )

    def _count(self, tool: str, count: int) -> str:
        same = [card for card in self.cards if card.tool == tool]
        if count > 1 and all(card.title == same[0].title for card in same):
            return f"{count:,} times"
        return wording.plural(count, same[0].traits.runs_of)

    def _facts(self, running: CardBlock | None) -> list[StyledSpan]:
        cleared = tokens = 0
        counts = Counter[str]()
        for card in self.cards:
            cleared += "restore" in card.actions
            tokens += card.tokens
            if card.metadata.count is not None:
                counts[card.traits.counts] += card.metadata.count
        facts: list[StyledSpan] = []
        if running is not None and running.elapsed:
            facts.append((running.elapsed, "muted"))
        if cleared:
            facts.append((f"{cleared} {Standing.CLEARED.value}", "standing-label"))
        if len(counts) == 1:
            [(unit, count)] = counts.items()
            facts.append((wording.plural(count, unit), "muted"))
        if tokens:
            facts.append((wording.token_count(tokens), "muted"))
        return facts


@frozen
class _Segment:
    """Successive blocks of an item that can become members of a group.

    ``leads`` is True if the item begins with these blocks, and ``trails`` is True if it ends with
    them.
    """

    blocks: Sequence[Block]
    leads: bool
    trails: bool


def update_groups(
    kinds: Sequence[str], item_at: Callable[[int], Item], index: int
) -> frozenset[int]:
    """Update the groups that contain calls of the item at ``index``.

    Returns the indices of the items that changed. ``kinds`` are the kinds of all items.
    """
    item = item_at(index)
    plain = _ungrouped(item)
    segments = _segments(plain)
    if not segments and not any(block.group for block in plain):
        return frozenset()
    changed: set[int] = set()
    heads: dict[int, GroupBlock] = {}
    grouped: set[int] = set()
    for segment in segments:
        run = _group_blocks(segment, kinds, item_at, index)
        members = [block for _, block in run]
        if sum(isinstance(block, CardBlock) for block in members) < MIN_CALLS:
            continue
        places = frozenset(place for place, _ in run)
        group = _group_of(members)
        is_whole = all(block.group is group for block in members)
        if not is_whole or tuple(group.members) != tuple(members):
            changed |= places | group.item_indices
            group.set_members(members, places)
        grouped.update(map(id, members))
        if run[0][0] == index:
            heads[id(members[0])] = group
    blocks: list[Block] = []
    for block in plain:
        if isinstance(block.group, GroupBlock) and id(block) not in grouped:
            changed |= block.group.item_indices
            block.group = None
            block.invalidate()
        if id(block) in heads:
            blocks.append(heads[id(block)])
        blocks.append(block)
    if blocks != item.blocks:
        item.blocks[:] = blocks
        changed.add(index)
    return frozenset(changed)


def _ungrouped(item: Item) -> list[Block]:
    return [block for block in item.blocks if not isinstance(block, GroupBlock)]


def _group_blocks(
    segment: _Segment, kinds: Sequence[str], item_at: Callable[[int], Item], index: int
) -> list[tuple[int, Block]]:
    """Return the blocks of the group that a segment belongs to, each with the index of its item.

    Blocks from the answers before and after are included. Text before the first call is not, so the
    list may be empty. ``kinds`` are the kinds of all items. ``index`` is the index of the item that
    contains the segment.
    """
    run = [(index, block) for block in segment.blocks]
    if segment.leads:
        run = [*_continuation(kinds, item_at, index, -1), *run]
    if segment.trails:
        run += _continuation(kinds, item_at, index, 1)
    # Text before the first call introduces the calls, so it must stay visible outside the group.
    while run and not isinstance(run[0][1], CardBlock):
        run.pop(0)
    return run


def _group_of(members: Sequence[Block]) -> GroupBlock:
    first = members[0]
    known = first.group
    if isinstance(known, GroupBlock) and known.members and known.members[0] is first:
        return known
    assert isinstance(first, CardBlock), "a group begins with a call"  # noqa: S101 - see _group_blocks
    return GroupBlock(first)


def _continuation(
    kinds: Sequence[str], item_at: Callable[[int], Item], index: int, step: int
) -> list[tuple[int, Block]]:
    """Return the small blocks in other items that continue the group of an item.

    ``step`` is -1 for the blocks before the item, and 1 for the blocks after it. Each block is
    returned with the index of its item. The order is that of the conversation.
    """
    found: list[tuple[int, Block]] = []
    place = index + step
    while 0 <= place < len(kinds) and place // _MAX_SPAN == index // _MAX_SPAN:
        kind = kinds[place]
        if kind not in _BETWEEN:
            if kind not in {"assistant", LIVE}:
                break
            plain = _ungrouped(item_at(place))
            segments = _segments(plain)
            edge = None
            if segments:
                edge = segments[-1 if step < 0 else 0]
            if edge is not None and (edge.trails if step < 0 else edge.leads):
                blocks = [(place, block) for block in edge.blocks]
                if step < 0:
                    found = [*blocks, *found]
                else:
                    found = [*found, *blocks]
            else:
                edge = None
            if plain and (edge is None or not (edge.leads and edge.trails)):
                break
        place += step
    return found


def _segments(blocks: Sequence[Block]) -> list[_Segment]:
    found: list[_Segment] = []
    start = 0
    for index in range(len(blocks) + 1):
        if index < len(blocks) and _is_small(blocks, index):
            continue
        if index > start:
            found.append(
                _Segment(blocks[start:index], leads=start == 0, trails=index == len(blocks))
            )
        start = index + 1
    return found


def _is_small(blocks: Sequence[Block], index: int) -> bool:
    """Return True if a block can be part of a group of small tool calls.

    This is true for a call that only reads, has not failed, and is folded or already in an open
    group. It is also true for a short answer of one line that such a call directly follows.
    """
    block = blocks[index]
    if isinstance(block, AnswerBlock):
        follows = index + 1 < len(blocks) and isinstance(blocks[index + 1], CardBlock)
        text = block.document.source.strip()
        is_brief = block.document.finished and len(text) <= MAX_TEXT_WIDTH and "\n" not in text
        return follows and is_brief and _is_small(blocks, index + 1)
    # Only tools that read files or pages have ``counts``.
    if (
        not isinstance(block, CardBlock)
        or not block.traits.counts
        or block.status not in _NOT_FAILED
    ):
        return False
    return block.fold is Fold.CLOSED or (
        block.group is not None and block.group.fold is not Fold.CLOSED
    )
