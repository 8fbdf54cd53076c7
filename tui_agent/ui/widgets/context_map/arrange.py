"""In which order the blocks of a request are listed, and under which headings. Pure."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tui_agent.context.context_map import Block


class Order(StrEnum):
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


def arrange(
    blocks: Sequence[Block], order: Order, grouping: Grouping, folded: Container[str] = frozenset()
) -> list[Listed]:
    """Return the rows for an order and a grouping; the blocks of groups named in ``folded`` are left out."""
    places = _sorted(blocks, order)
    if grouping is Grouping.NONE:
        return [ListedBlock(place) for place in places]
    name_of = _NAMES[grouping]
    groups: dict[str, list[int]] = {}
    for place in places:
        groups.setdefault(name_of(blocks[place]), []).append(place)
    weights = {name: sum(blocks[place].tokens for place in found) for name, found in groups.items()}
    names = sorted(groups, key=lambda name: -weights[name]) if order is Order.SIZE else list(groups)
    rows: list[Listed] = []
    for name in names:
        rows.append(ListedGroup(name, tuple(groups[name]), weights[name], name in folded))
        if name not in folded:
            rows.extend(ListedBlock(place) for place in groups[name])
    return rows


def _sorted(blocks: Sequence[Block], order: Order) -> list[int]:
    places = range(len(blocks))
    match order:
        case Order.REQUEST:
            return list(places)
        case Order.SIZE:
            return sorted(places, key=lambda place: -blocks[place].tokens)
        case Order.AGE:
            return sorted(places, key=lambda place: (is_head(blocks[place]), blocks[place].age_entries, -place))


def is_head(block: Block) -> bool:
    """Whether a block is part of the head, which no edit can change."""
    return block.kind in {"system", "tool_schema"}


def kind_name(block: Block) -> str:
    """Return a block's kind in words."""
    return {"system": "prompt", "tool_schema": "tool"}.get(block.kind, block.kind.replace("_", " "))


_NAMES: dict[Grouping, Callable[[Block], str]] = {
    Grouping.KIND: kind_name,
    Grouping.TOOL: lambda block: (block.tool or "no tool") if not is_head(block) else "prompt and tools",
    Grouping.FILE: lambda block: block.path or "no file",
}
