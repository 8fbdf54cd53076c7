"""Runs of small tool calls as one row that opens: several files read, searched and listed one after another.

A run may go through several answers. Which calls are in one depends on the path only, not on what is loaded or shown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Protocol

from tui_agent.session.entries import kinds
from tui_agent.ui.widgets.transcript.blocks import Block, Fold, FoldingBlock, head_line
from tui_agent.ui.widgets.transcript.cards import CardBlock
from tui_agent.ui.widgets.transcript.items import Item
from tui_agent.ui.widgets.transcript.lines import Line, StyledSpan
from tui_agent.ui.widgets.transcript.source import LIVE
from tui_agent.ui.widgets.transcript.wording import count_text

MIN_CALLS: Final = 3
"""Calls that are worth a row of their own; fewer are clearer one by one."""

_REACH: Final = 64
"""Entries in which a run is looked for: it ends where their number is a multiple of this, so looking stays cheap."""

_BETWEEN: Final = frozenset(kinds(lambda kind: kind.follows_calls or not kind.is_shown))
"""Entries that stand between two answers without showing anything."""


class GroupBlock(FoldingBlock):
    """The row of a run of small calls; the calls are below it while it is open."""

    kind = "card"
    tight = True

    def __init__(self, first: CardBlock) -> None:
        super().__init__(f"group:{first.call_id}")
        self.members: Sequence[CardBlock] = ()
        self.places: frozenset[int] = frozenset()
        """Where the items of its calls are."""

    @property
    def running(self) -> bool:
        """Whether one of its calls runs now."""
        return any(card.running for card in self.members)

    def tick(self, now: float, *, moving: bool) -> None:
        """Show how long its running calls have been at it."""
        for card in self.members:
            if card.running:
                card.tick(now, moving=moving)

    def take(self, members: Sequence[CardBlock], places: frozenset[int]) -> None:
        """Stand for these calls."""
        self.members, self.places = tuple(members), places
        for card in members:
            card.within = self
        self.changed()

    def cycle(self) -> None:
        """Show the calls, or only the row; calls that were opened are closed with it."""
        super().cycle()
        if self.fold is Fold.CLOSED:
            for card in self.members:
                card.fold = Fold.CLOSED

    def copy_text(self) -> str:
        """Return the calls, one a line."""
        return "\n".join(f"{card.tool} {card.title}" for card in self.members)

    def _head(self, width: int) -> Iterable[Line]:
        running = next((card for card in self.members if card.running), None)
        left: list[StyledSpan] = [(running or self.members[-1]).icon]
        for place, (tool, cards) in enumerate(groupby(self.members, key=lambda card: card.tool)):
            titles = ", ".join(dict.fromkeys(card.title for card in cards if card.title))
            left += [(" · ", "muted")] if place else []
            left += [(tool, "tool act:toggle"), (f" {titles}", "title act:toggle")]
        facts: list[StyledSpan] = []
        if running is not None and running.elapsed:
            facts.append((running.elapsed, "muted"))
        if hidden := sum("restore" in card.actions for card in self.members):
            facts.append((f"{hidden} not in context", "status-warning"))
        facts.append((count_text(len(self.members), "call"), "muted"))
        yield head_line(left, facts, ((f"  {self.chevron}", "muted act:toggle"),), width)

    def _body(self, width: int) -> Iterable[Line]:  # noqa: ARG002 - as inherited
        return ()


class Items(Protocol):
    """The items of a path in their order."""

    kinds: list[str]

    def item(self, index: int) -> Item:
        """Return an item, loaded if need be."""
        ...


@dataclass(frozen=True, slots=True)
class _Segment:
    """Small calls that follow each other in one item, and whether nothing is before or behind them."""

    cards: Sequence[CardBlock]
    leads: bool
    trails: bool


def arrange(items: Items, index: int) -> frozenset[int]:
    """Put the small calls of an item into their groups, and return the places of all items that look different now."""
    item = items.item(index)
    plain = [block for block in item.blocks if not isinstance(block, GroupBlock)]
    segments = _segments(plain)
    cards = [block for block in plain if isinstance(block, CardBlock)]
    if not segments and not any(card.within for card in cards):
        return frozenset()
    changed: set[int] = set()
    heads: dict[int, GroupBlock] = {}
    grouped: set[int] = set()
    for segment in segments:
        before = _reach(items, index, -1) if segment.leads else []
        after = _reach(items, index, 1) if segment.trails else []
        members = [*(card for _, card in before), *segment.cards, *(card for _, card in after)]
        if len(members) < MIN_CALLS:
            continue
        places = frozenset({index, *(place for place, _ in (*before, *after))})
        group = _group_of(members)
        if tuple(group.members) != tuple(members) or any(card.within is not group for card in members):
            changed |= places | group.places
            group.take(members, places)
        grouped.update(map(id, members))
        if not before:
            heads[id(segment.cards[0])] = group
    for card in cards:
        if isinstance(card.within, GroupBlock) and id(card) not in grouped:
            changed |= card.within.places
            card.within = None
    blocks: list[Block] = []
    for block in plain:
        if id(block) in heads:
            blocks.append(heads[id(block)])
        blocks.append(block)
    if blocks != item.blocks:
        item.blocks[:] = blocks
        changed.add(index)
    return frozenset(changed)


def _group_of(members: Sequence[CardBlock]) -> GroupBlock:
    """Return the group the first call heads already, or a new one."""
    known = members[0].within
    if isinstance(known, GroupBlock) and known.members and known.members[0] is members[0]:
        return known
    return GroupBlock(members[0])


def _reach(items: Items, index: int, step: int) -> list[tuple[int, CardBlock]]:
    """Return the calls that go on with those at the edge of an item, in the order of the path, and their places."""
    found: list[tuple[int, CardBlock]] = []
    place = index + step
    while 0 <= place < len(items.kinds) and place // _REACH == index // _REACH:
        kind = items.kinds[place]
        if kind not in _BETWEEN:
            if kind not in {"assistant", LIVE}:
                break
            plain = [block for block in items.item(place).blocks if not isinstance(block, GroupBlock)]
            segments = _segments(plain)
            edge = segments[-1 if step < 0 else 0] if segments else None
            if edge is not None and (edge.trails if step < 0 else edge.leads):
                cards = [(place, card) for card in edge.cards]
                found = [*cards, *found] if step < 0 else [*found, *cards]
            else:
                edge = None
            if plain and (edge is None or not (edge.leads and edge.trails)):
                break
        place += step
    return found


def _segments(blocks: Sequence[Block]) -> list[_Segment]:
    found: list[_Segment] = []
    start = 0
    for place in range(len(blocks) + 1):
        if place < len(blocks) and _is_small(blocks[place]):
            continue
        if place > start:
            cards = [block for block in blocks[start:place] if isinstance(block, CardBlock)]
            found.append(_Segment(cards, leads=start == 0, trails=place == len(blocks)))
        start = place + 1
    return found


def _is_small(block: Block) -> bool:
    """Whether a block may be in a group: what the user opened by itself is not hidden again."""
    if not isinstance(block, CardBlock) or not block.small:
        return False
    return block.fold is Fold.CLOSED or (block.within is not None and block.within.fold is not Fold.CLOSED)
