"""The list of blocks on the context map page, which the user can sort and group.

The list keeps the user's marks and folds; the page acts on the marked blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from tui_agent.agent.context_map import ContextBlock, ContextMap
from tui_agent.app.format import plural, tokens
from tui_agent.app.status_marks import GLYPHS, style_of
from tui_agent.app.strip_markdown import plain_preview
from tui_agent.lazy import frozen
from tui_agent.ui.bindings import hidden
from tui_agent.ui.widgets.line_list import LineList, next_member, spread
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.lines import StyledSpan

Listed: TypeAlias = "ListedBlock | ListedGroup"

_Address = tuple[str, tuple[int, ...], str]

HEAD = "prompt and tools"
"""Name of the group that contains the system prompt and the tool definitions. The group is shown
even if the list is not grouped."""

REST = "not in a block (overhead)"
"""Name of the last row, which shows the difference between the request's size and the sum of its
blocks. The row is shown only if there is a difference."""

MIN_WIDTH_FOR_AGE = 64
"""Minimum width, in cells, at which the list has a column for age. The age of a block is the number
of answers after it."""

MIN_WIDTH_FOR_SHARE = 50
"""Minimum width, in cells, at which the columns for share and cache are shown."""

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_STATE_STYLES = {"pinned": "accent", "masked": "warning", "dropped": "warning", "pruned": "faint"}


class SortOrder(StrEnum):
    """The orders in which the blocks can be listed.

    The key for sorting goes through them in this order.
    """

    REQUEST = "request order"
    SIZE = "largest first"
    AGE = "newest first"


class Grouping(StrEnum):
    """The ways of grouping blocks, in the order in which the key for grouping goes through them."""

    NONE = "none"
    KIND = "by kind"
    TOOL = "by tool"
    FILE = "by file"


@frozen
class ListedBlock:
    """A row of the list that shows one block. ``place`` is the block's index in the request."""

    place: int


@frozen
class ListedGroup:
    """The heading of a group of blocks in the list.

    ``places`` are the blocks' indices in the request. ``tokens`` is the sum of the blocks' tokens,
    and ``folded`` says whether the blocks are hidden.
    """

    name: str
    places: tuple[int, ...]
    tokens: int
    folded: bool


def arrange(
    blocks: Sequence[ContextBlock],
    order: SortOrder,
    grouping: Grouping,
    folded: Container[str] = frozenset(),
) -> list[Listed]:
    """Return the rows of the list, sorted and grouped.

    A group whose name is in ``folded`` has only a heading. If sorted by size, the group with the
    most tokens comes first; otherwise groups are in the order of their first blocks.
    """
    sort_keys: dict[SortOrder, Callable[[int], Any]] = {
        SortOrder.REQUEST: lambda place: place,
        SortOrder.SIZE: lambda place: -blocks[place].tokens,
        SortOrder.AGE: lambda place: (blocks[place].is_head, blocks[place].age_entries, -place),
    }
    places = sorted(range(len(blocks)), key=sort_keys[order])
    if grouping is Grouping.NONE:
        return _ungrouped(blocks, places, order, folded)
    groups: dict[str, list[int]] = {}
    for place in places:
        groups.setdefault(_group_of(blocks[place], grouping), []).append(place)
    weights = {}
    for name, found in groups.items():
        weights[name] = sum(blocks[place].tokens for place in found)
    if order is SortOrder.SIZE:
        names = sorted(groups, key=lambda name: -weights[name])
    else:
        names = list(groups)
    rows: list[Listed] = []
    for name in names:
        rows.append(ListedGroup(name, tuple(groups[name]), weights[name], name in folded))
        if name not in folded:
            rows.extend(ListedBlock(place) for place in groups[name])
    return rows


def _ungrouped(
    blocks: Sequence[ContextBlock], places: Sequence[int], order: SortOrder, folded: Container[str]
) -> list[Listed]:
    """Return a row for each block in the order of ``places``, and a group for prompt and tools.

    The group contains the system prompt and the tool definitions. It comes first in request order
    and last if sorted by age. If sorted by size, its position depends on the sum of its tokens.
    """
    others = [place for place in places if not blocks[place].is_head]
    head = tuple(place for place in places if blocks[place].is_head)
    rows: list[Listed] = [ListedBlock(place) for place in others]
    if not head:
        return rows
    weight = sum(blocks[place].tokens for place in head)
    heading: list[Listed] = [ListedGroup(HEAD, head, weight, HEAD in folded)]
    if HEAD not in folded:
        heading.extend(ListedBlock(place) for place in head)
    smaller = next(
        (at for at, place in enumerate(others) if blocks[place].tokens < weight), len(rows)
    )
    match order:
        case SortOrder.REQUEST:
            at = 0
        case SortOrder.AGE:
            at = len(rows)
        case _:
            at = smaller
    return rows[:at] + heading + rows[at:]


def kind_name(block: ContextBlock) -> str:
    return {"system": "prompt", "tool_schema": "tool"}.get(block.kind, block.kind.replace("_", " "))


def _group_of(block: ContextBlock, grouping: Grouping) -> str:
    """Return the name of the group that contains a block: its kind, file or tool.

    Which of these it is depends on ``grouping``.
    """
    if grouping is Grouping.KIND:
        return kind_name(block)
    if grouping is Grouping.FILE:
        return block.path or "no file"
    if block.is_head:
        return HEAD
    return block.tool or "no tool"


def bar(share: float, width: int) -> str:
    """Return a bar that is ``width`` cells long and filled to ``share`` (0 to 1), as text.

    If the share is above 0, at least an eighth of a cell is filled.
    """
    eighths = min(width * 8, max(1 if share > 0 else 0, round(share * width * 8)))
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


class BlockList(LineList):
    """Lists the blocks of a context map. The user can sort, group, fold and mark them by keys."""

    HEADED = True
    BINDINGS = [
        hidden("left", "fold(True)", "fold"),
        hidden("right", "fold(False)", "unfold"),
        hidden("space", "mark", "mark"),
    ]

    def __init__(self) -> None:
        super().__init__(id="blocks")
        self.shown: ContextMap | None = None
        self.order = SortOrder.REQUEST
        self.grouping = Grouping.NONE
        self._folded: set[str] = {HEAD}
        self.rows: list[Listed] = []
        self._new: frozenset[_Address] = frozenset()
        self._marked: set[_Address] = set()
        self._largest = 1
        """Number of tokens for which a bar is full: the size of the largest block or group."""

    def show(self, shown: ContextMap, new: Iterable[ContextBlock] = ()) -> None:
        """List the blocks of a context map, with the blocks in ``new`` marked as new.

        The cursor moves to the first new block, if any. Otherwise it stays on its block. At the
        first call, it moves to the last block, unless the request contains only the system prompt
        and the tools.
        """
        self._new = frozenset(block.address for block in new)
        kept = self._address(self._at(self.cursor))
        begins = self.shown is None and any(not block.is_head for block in shown.blocks)
        self.shown = shown
        newest = None
        for place, block in enumerate(shown.blocks):
            if block.address in self._new:
                newest = place
                break
        if newest is None and begins:
            newest = len(shown.blocks) - 1
        self._arrange(kept if newest is None else shown.blocks[newest].address)

    def arrange_by_next(self, by: Literal["order", "grouping"]) -> None:
        """Switch to the next order or grouping. After the last one comes the first.

        A new grouping unfolds all groups, except that `Grouping.NONE` folds the group of the system
        prompt and the tools.
        """
        if by == "order":
            self.order = next_member(SortOrder, self.order)
        else:
            self.grouping = next_member(Grouping, self.grouping)
            if self.grouping is Grouping.NONE:
                self._folded = {HEAD}
            else:
                self._folded = set()
        self._arrange(self._address(self._at(self.cursor)))

    def action_fold(self, folded: bool) -> None:  # noqa: FBT001 - as the binding says it
        at = next(
            (at for at in range(self.cursor, -1, -1) if isinstance(self._at(at), ListedGroup)), None
        )
        group = self._at(at)
        if at is None or not isinstance(group, ListedGroup) or group.folded is folded:
            return
        if not set(self.places) <= set(group.places):
            return
        (self._folded.add if folded else self._folded.discard)(group.name)
        self.rows = self._arranged()
        self.set_count(len(self.rows), cursor=at)

    def action_mark(self) -> None:
        """Mark the blocks of the row under the cursor, and move the cursor down.

        If all of them are marked already, unmark them instead.
        """
        addresses = {self._blocks[place].address for place in self.places}
        if addresses <= self._marked:
            self._marked = self._marked - addresses
        else:
            self._marked = self._marked | addresses
        self.refresh()
        self.action_move(1)

    @property
    def _blocks(self) -> Sequence[ContextBlock]:
        if self.shown is None:
            return ()
        return self.shown.blocks

    @property
    def marked_places(self) -> tuple[int, ...]:
        """Indices of the marked blocks in the request, in order."""
        places = []
        for place, block in enumerate(self._blocks):
            if block.address in self._marked:
                places.append(place)
        return tuple(places)

    @property
    def places(self) -> tuple[int, ...]:
        """Indices in the request of the block under the cursor; of all blocks if it is a group."""
        row = self._at(self.cursor)
        if isinstance(row, ListedBlock):
            return (row.place,)
        if row is not None:
            return row.places
        return ()

    @property
    def block(self) -> ContextBlock | None:
        """The block under the cursor; None if the cursor is on a group's heading."""
        row = self._at(self.cursor)
        if self.shown and isinstance(row, ListedBlock):
            return self.shown.blocks[row.place]
        return None

    @property
    def group(self) -> ListedGroup | None:
        """The group whose heading is under the cursor; None if the cursor is on a block."""
        row = self._at(self.cursor)
        if isinstance(row, ListedGroup):
            return row
        return None

    def _at(self, index: int | None) -> Listed | None:
        if index is not None and 0 <= index < len(self.rows):
            return self.rows[index]
        return None

    def _address(self, row: Listed | None) -> _Address | str | None:
        if isinstance(row, ListedGroup):
            return row.name
        if self.shown and row:
            return self.shown.blocks[row.place].address
        return None

    def _arranged(self) -> list[Listed]:
        blocks = self._blocks
        folded: Container[str] = ()
        if any(not block.is_head for block in blocks):
            folded = self._folded
        rows = arrange(blocks, self.order, self.grouping, folded)
        drift = 0
        if self.shown is not None and rows:
            drift = self.shown.size.total - self.shown.estimate
        if drift:
            return [*rows, ListedGroup(REST, (), drift, folded=True)]
        return rows

    def _arrange(self, kept: _Address | str | None) -> None:
        self.rows = self._arranged()
        weights = [block.tokens for block in self._blocks]
        for row in self.rows:
            if isinstance(row, ListedGroup) and row.name != REST:
                weights.append(row.tokens)
        self._largest = max(weights, default=0) or 1
        cursor = next((at for at, row in enumerate(self.rows) if self._address(row) == kept), None)
        self.set_count(
            len(self.rows),
            cursor=cursor if cursor is not None else min(self.cursor, len(self.rows)),
        )

    # -- painting

    def heading(self, width: int) -> Sequence[StyledSpan]:
        if width < MIN_WIDTH_FOR_SHARE:
            return [(f"  {'tokens':>7}  {'entry':>7}  what", "heading")]
        age = "  age" if width >= MIN_WIDTH_FOR_AGE else ""
        return [
            (
                f"  {'tokens':>7}  {'share':<{self._bar_width(width)}}{age}  cache {'entry':>7}  what",
                "heading",
            )
        ]

    def row(self, index: int, width: int) -> Sequence[StyledSpan]:
        row = self._at(index)
        if isinstance(row, ListedGroup):
            return self._group_row(row, width)
        if self.shown and row:
            return self._block_row(self.shown.blocks[row.place], width)
        return ()

    @staticmethod
    def _bar_width(width: int) -> int:
        if width >= 120:
            return 14
        if width >= MIN_WIDTH_FOR_AGE:
            return 8
        return 5

    def _group_row(self, group: ListedGroup, width: int) -> list[StyledSpan]:
        total = 1
        if self.shown:
            total = self.shown.size.total
        mark = "▸" if group.folded else "▾"
        if group.name == REST:
            sign = "−" if group.tokens < 0 else ""
            return [(f"  {sign + tokens(abs(group.tokens)):>7}  ", "faint"), (REST, "faint")]
        left: list[StyledSpan] = [
            (f"  {tokens(group.tokens):>7}  ", "strong"),
            (bar(group.tokens / self._largest, self._bar_width(width)), "bar"),
            (f"  {mark} {sanitize.line(group.name)}", "strong"),
            (f"  {plural(len(group.places), 'block')}", "faint"),
        ]
        return spread(left, [(f"{group.tokens / max(1, total):.0%} ", "faint")], width)

    def _block_row(self, block: ContextBlock, width: int) -> list[StyledSpan]:
        address = "·"
        if block.kind not in {"system", "tool_schema"} and block.origin:
            address = f"#{block.origin[0]}"
        quiet = block.state in {"masked", "dropped", "pruned"}
        left: list[StyledSpan] = [
            (GLYPHS[block.standing], style_of(block.standing)),
            (f" {tokens(block.tokens):>7}  ", "faint" if quiet else "text"),
        ]
        if width >= MIN_WIDTH_FOR_SHARE:
            left.append((bar(block.tokens / self._largest, self._bar_width(width)), "bar"))
        if width >= MIN_WIDTH_FOR_AGE:
            age = ""
            if block.age_entries or block.age_steps:
                age = str(block.age_steps)
            left.append((f" {age:>4}", "faint"))
        if width >= MIN_WIDTH_FOR_SHARE:
            left.append(
                ("    ● " if block.cached else "    ○ ", "good" if block.cached else "faint")
            )
        if block.tool and block.kind == "tool_result":
            name = sanitize.line(block.tool)
        else:
            name = kind_name(block)
        left += [
            (f"{address:>7}  ", "faint"),
            (f"{name} ", "faint" if quiet else "strong"),
            (plain_preview(block.kind, sanitize.line(_label(block))), "faint" if quiet else "text"),
        ]
        new: list[StyledSpan] = []
        if block.address in self._new:
            new = [("new ", "good")]
        marked: list[StyledSpan] = []
        if block.address in self._marked:
            marked = [("✓ marked ", "accent")]
        return spread(left, [*_state(block), *new, *marked], width)


def _label(block: ContextBlock) -> str:
    """Return a block's label without the words that the name column shows already.

    These words are the tool's name for a tool result, and the word “tool” for a tool schema.
    """
    label = block.label
    if block.tool:
        if block.kind == "tool_result":
            label = label.removeprefix("tool ").removeprefix(block.tool).lstrip()
        if block.kind == "tool_schema":
            label = label.removeprefix("tool ")
    return label


def _state(block: ContextBlock) -> list[StyledSpan]:
    edited: list[StyledSpan] = []
    if block.edited:
        edited = [("edited ", "accent")]
    if block.state == "live":
        return edited
    if block.hidden:
        hidden = f" · {tokens(block.hidden)} hidden"
    else:
        hidden = ""
    return [*edited, (f"{block.state.word}{hidden} ", _STATE_STYLES[block.state])]
