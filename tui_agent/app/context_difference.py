"""Formats a side-by-side comparison of the contexts at two entries, with tokens and prices.

`tui_agent.agent.context_map.change_between` compares the two contexts. All
functions are pure.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from tui_agent.agent.context_map import ContextBlock, ContextMap, change_between
from tui_agent.app.format import money, one_line, plural, tokens, visible
from tui_agent.app.frontend import Heading
from tui_agent.lazy import frozen

_WIDTH = 37
"""Width of each side of the comparison, in characters."""
_SIZE_WIDTH = 7
_LEAST_LABEL = 8


@frozen
class Side:
    """One side of the comparison: the request that would be sent if ``entry_id`` were the leaf.

    ``dollars`` is its uncached price, None if unknown.
    """

    entry_id: int
    model: str
    shown: ContextMap
    dollars: float | None = None

    @property
    def name(self) -> str:
        return f"#{self.entry_id}"


def difference_lines(left: Side, right: Side) -> Iterator[str]:
    """Yield the lines of the comparison.

    They show sizes, prices, blocks on only one side, and blocks that are sent differently.
    """
    change = change_between(left.shown, right.shown)
    yield Heading(_row(left.name, right.name))
    yield _row(_size(left), _size(right))
    yield _row(_price(left), _price(right))
    if left.model != right.model:
        yield _row(left.model, right.model)
    shared = [block for block in left.shown.blocks if block not in change.went]
    yield f"In both: {_sum(shared)}"
    yield ""
    yield Heading(
        _row(
            f"only in {left.name}: {_sum(change.went)}",
            f"only in {right.name}: {_sum(change.came)}",
        )
    )
    for one, other in zip_longest(change.went, change.came):
        yield _row(_block(one), _block(other))
    if not (change.went or change.came):
        yield "Both have the same blocks."
    if change.changed:
        yield ""
        yield Heading("In both, sent differently")
    for one, other in change.changed:
        yield _row(f"{_block(one)}", f"{_state(one)} → {_state(other)}, {tokens(other.tokens)}")


def _row(left: str, right: str) -> str:
    return f"{_fitted(left)} │ {_fitted(right)}".rstrip()


def _fitted(text: str) -> str:
    return f"{visible(text)[:_WIDTH]:<{_WIDTH}}"


def _size(side: Side) -> str:
    size = side.shown.size
    return f"{tokens(size.total)} of {tokens(size.window)} tokens ({size.percent:.0f}%)"


def _price(side: Side) -> str:
    if side.dollars is None:
        return "price unknown"
    return f"~{money(side.dollars)} for a request, uncached"


def _sum(blocks: Sequence[ContextBlock]) -> str:
    return f"{plural(len(blocks), 'block')}, {tokens(sum(block.tokens for block in blocks))}"


def _block(block: ContextBlock | None) -> str:
    if block is None:
        return ""
    address = f"#{block.origin[0]} " if block.origin and not block.is_head else ""
    size = tokens(block.tokens)
    room = max(_LEAST_LABEL, _WIDTH - len(address) - _SIZE_WIDTH)
    return f"{address}{one_line(block.label, room):<{room}} {size:>6}"


def _state(block: ContextBlock) -> str:
    if block.edited:
        return "edited"
    if block.state == "live":
        return "in context"
    return block.state.word
