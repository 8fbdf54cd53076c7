"""`Item`, which contains and lays out the blocks of one entry, and the cache of loaded items."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from tui_agent.ui.widgets.transcript.blocks import Block, Fold
from tui_agent.ui.widgets.transcript.lines import Line

_KEPT_ITEMS: Final = 400

BLANK: Final = Line()


class Item:
    """The blocks that show one entry, and the line at which each block begins.

    The lines are known after the first layout. If blocks of the item are cards of tool calls,
    ``results`` contains the indices, in the transcript's model, of the tool results that the cards
    show.
    """

    __slots__ = ("blocks", "height", "id", "kind", "results", "starts", "width")

    def __init__(
        self, entry_id: int, kind: str, blocks: list[Block], results: Sequence[int] = ()
    ) -> None:
        self.id = entry_id
        self.kind = kind
        self.blocks = blocks
        self.results = tuple(results)
        self.starts: list[int] = []
        self.height = 0
        self.width = 0
        """The width, in cells, of the last layout, or 0 if the item hasn't been laid out yet."""

    def lay_out(self, width: int, *, gap: bool) -> int:
        """Lay out the blocks for a width in cells. Return the height of the item in lines.

        If ``gap`` is True, an empty line precedes the first visible block.
        """
        line = 0
        starts: list[int] = []
        previous: Block | None = None
        for block in self.blocks:
            if block.hidden:
                starts.append(line)
                continue
            if gap if previous is None else needs_gap(previous, block):
                line += 1
            starts.append(line)
            line += len(block.lines(width))
            previous = block
        self.starts = starts
        self.height = line
        self.width = width
        return line

    def at(self, line: int, width: int) -> tuple[Block | None, int, Line]:
        """Return the block at a line of the item, the line's number in the block, and the line.

        In a gap between blocks, the block is None, the number is 0 and the line is empty.
        """
        for block, start in zip(reversed(self.blocks), reversed(self.starts), strict=True):
            if line >= start and not block.hidden:
                lines = block.lines(width)
                if line - start < len(lines):
                    return block, line - start, lines[line - start]
                break
        return None, 0, BLANK

    @property
    def shown(self) -> list[Block]:
        """The blocks of the item that are not hidden."""
        return [block for block in self.blocks if not block.hidden]

    def start_of(self, block: Block) -> int:
        """Return the number of the item's line at which a block began in the last layout."""
        return self.starts[self.blocks.index(block)]

    def block(self, key: str) -> Block | None:
        for block in self.blocks:
            if block.key == key:
                return block
        return None


def needs_gap(previous: Block, following: Block) -> bool:
    """Return True if an empty line separates two successive blocks.

    There is no empty line between a group's row and its first member, or between members of
    different kinds in a group. A closed ``tight`` block isn't separated from the next block of the
    same kind either.
    """
    if following.group is not None and following.group is previous:
        return False
    if (
        following.group is not None
        and following.group is previous.group
        and previous.kind != following.kind
    ):
        return False
    return not (previous.tight and previous.kind == following.kind and previous.fold is Fold.CLOSED)


class ItemCache(OrderedDict[int, Item]):
    """The items that are loaded, by index.

    A full cache drops the least recently used item that isn't pinned.
    """

    def __init__(self, pinned: set[int]) -> None:
        super().__init__()
        self._pinned = pinned

    def use(self, index: int) -> Item | None:
        """Return the item at an index, and mark it as recently used.

        Returns None if it isn't loaded.
        """
        item = self.get(index)
        if item is not None:
            self.move_to_end(index)
        return item

    def put(self, index: int, item: Item) -> None:
        """Add an item.

        If the cache is full, drop the least recently used item that isn't pinned.
        """
        self[index] = item
        self.move_to_end(index)
        if len(self) > _KEPT_ITEMS + len(self._pinned):
            for place in list(self)[: len(self) - _KEPT_ITEMS]:
                if place not in self._pinned and place != index:
                    del self[place]
                    break
