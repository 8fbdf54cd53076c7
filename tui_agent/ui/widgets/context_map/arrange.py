"""In which order the blocks of a request are listed, and under which headings. Pure."""

from collections.abc import Callable, Container, Sequence
from enum import StrEnum

from tui_agent.agent.context_map import ContextBlock
from tui_agent.lazy import dataclass


class SortOrder(StrEnum):
    """What blocks are sorted by, in the order the key goes through."""

    REQUEST = "request order"
    SIZE = "largest first"
    AGE = "newest first"


class Grouping(StrEnum):
    """What blocks are gathered under, in the order the key goes through."""

    NONE = "not grouped"
    KIND = "by kind"
    TOOL = "by tool"
    FILE = "by file"


@dataclass(frozen=True, slots=True)
class ListedBlock:
    """A row that is a block. ``place`` is where it stands in the request."""

    place: int


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A row that is a heading over blocks, given by their places."""

    name: str
    places: tuple[int, ...]
    tokens: int
    folded: bool


Listed = ListedBlock | ListedGroup

HEAD = "prompt and tools"
"""The heading over the head, which is there in the list that is not grouped too."""
REST = "not attributed"
"""The last row, where what was measured is not the sum of the blocks."""


def arrange(
    blocks: Sequence[ContextBlock], order: SortOrder, grouping: Grouping, folded: Container[str] = frozenset()
) -> list[Listed]:
    """Return the rows for an order and a grouping; the blocks of groups named in ``folded`` are left out."""
    places = _sorted(blocks, order)
    if grouping is Grouping.NONE:
        return _ungrouped(blocks, places, order, folded)
    name_of = _NAMES[grouping]
    groups: dict[str, list[int]] = {}
    for place in places:
        groups.setdefault(name_of(blocks[place]), []).append(place)
    weights = {name: sum(blocks[place].tokens for place in found) for name, found in groups.items()}
    names = sorted(groups, key=lambda name: -weights[name]) if order is SortOrder.SIZE else list(groups)
    rows: list[Listed] = []
    for name in names:
        rows.append(ListedGroup(name, tuple(groups[name]), weights[name], name in folded))
        if name not in folded:
            rows.extend(ListedBlock(place) for place in groups[name])
    return rows


def _ungrouped(
    blocks: Sequence[ContextBlock], places: Sequence[int], order: SortOrder, folded: Container[str]
) -> list[Listed]:
    """Return all blocks one under the other, the head's under a heading that stands where the head belongs."""
    rows: list[Listed] = [ListedBlock(place) for place in places if not blocks[place].is_head]
    head = tuple(place for place in places if blocks[place].is_head)
    if not head:
        return rows
    weight = sum(blocks[place].tokens for place in head)
    heading: list[Listed] = [ListedGroup(HEAD, head, weight, HEAD in folded)]
    if HEAD not in folded:
        heading.extend(ListedBlock(place) for place in head)
    smaller = next((at for at, row in enumerate(rows) if _is_smaller(row, blocks, weight)), len(rows))
    at = {SortOrder.REQUEST: 0, SortOrder.AGE: len(rows), SortOrder.SIZE: smaller}[order]
    return rows[:at] + heading + rows[at:]


def _is_smaller(row: Listed, blocks: Sequence[ContextBlock], weight: int) -> bool:
    return isinstance(row, ListedBlock) and blocks[row.place].tokens < weight


def _sorted(blocks: Sequence[ContextBlock], order: SortOrder) -> list[int]:
    places = range(len(blocks))
    match order:
        case SortOrder.REQUEST:
            return list(places)
        case SortOrder.SIZE:
            return sorted(places, key=lambda place: -blocks[place].tokens)
        case SortOrder.AGE:
            return sorted(places, key=lambda place: (blocks[place].is_head, blocks[place].age_entries, -place))


def kind_name(block: ContextBlock) -> str:
    return {"system": "prompt", "tool_schema": "tool"}.get(block.kind, block.kind.replace("_", " "))


_NAMES: dict[Grouping, Callable[[ContextBlock], str]] = {
    Grouping.KIND: kind_name,
    Grouping.TOOL: lambda block: (block.tool or "no tool") if not block.is_head else HEAD,
    Grouping.FILE: lambda block: block.path or "no file",
}
