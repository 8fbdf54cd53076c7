"""Computes which rows of a segment are shown under a filter.

A segment is a series of entries without a branch point. A row shows one entry, or a group of
successive tool calls with their results. The code in this module has no side effects. The branches
of subagents and former attempts at an answer are left out by outline.py, not by this module.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from tui_agent.session.entries import KINDS, ToolResultEntry
from tui_agent.session.skeleton import SILENT_CALL, Headers

_QUIET = "".join(entry.letter for entry in KINDS.values() if entry.is_quiet)
_RESULT = ToolResultEntry.letter

# An answer that only calls tools needs no row, because its results' rows show the calls.
_CALL = f"{_RESULT}|{SILENT_CALL}(?={_RESULT})"

_ROW = re.compile(f"((?:{_CALL})(?:{_CALL}|[{_QUIET}])*)|[^{_QUIET}]".encode())
"""Matches one row of the tree in a string that contains one letter for each entry.

A row is a group of tool calls (captured as group 1), or a single entry that isn't hidden.
"""


class Filter(StrEnum):
    """Which entries have a row in the session tree.

    Ctrl+O switches to the next filter, in this order.
    """

    DEFAULT = "default"
    NO_TOOLS = "no tools"
    USER_ONLY = "user only"
    LABELLED = "labelled"
    EVERYTHING = "everything"


class RowSpan(NamedTuple):
    """A row of the tree, as the offsets of its first and its last entry in the segment.

    Both offsets are inclusive.
    """

    first: int
    last: int
    is_group: bool
    """Whether the row shows tool calls, either a whole group or one call of an unfolded group."""


class Rows:
    """The rows of a segment, stored in little memory because there may be 100,000 rows.

    ``firsts`` contains the offset of the first entry of each row. ``calls`` maps the first offset
    of a row with tool calls to its last offset.
    """

    __slots__ = ("calls", "firsts")

    def __init__(self, firsts: Sequence[int], calls: Mapping[int, int] | None = None) -> None:
        self.firsts = firsts
        self.calls = calls or {}

    def __len__(self) -> int:
        return len(self.firsts)

    def __getitem__(self, number: int) -> RowSpan:
        first = self.firsts[number]
        last = self.calls.get(first)
        return RowSpan(first, first, False) if last is None else RowSpan(first, last, True)  # noqa: FBT003 - a field

    def __iter__(self) -> Iterator[RowSpan]:
        return map(self.__getitem__, range(len(self.firsts)))

    def numbers(self, entries: int) -> list[int]:
        """Return the row number of each entry; -1 for entries without a row.

        ``entries`` is the number of entries.
        """
        numbers = [-1] * entries
        for number, first in enumerate(self.firsts):
            numbers[first] = number
        for first, last in self.calls.items():
            numbers[first : last + 1] = [numbers[first]] * (last + 1 - first)
        return numbers


def rows_of(
    headers: Headers,
    wanted: Filter,
    labels: Mapping[int, str],
    opened: Container[int] = frozenset(),
) -> Rows:
    """Return the rows of a segment under the filter ``wanted``.

    ``opened`` contains, for each unfolded group of tool calls, the id of the group's first entry.
    An unfolded group has a row for each call.
    """
    match wanted:
        case Filter.EVERYTHING:
            return Rows(range(len(headers)))
        case Filter.USER_ONLY:
            return Rows(headers.of_kinds(["user"]))
        case Filter.LABELLED:
            places = map(headers.position, sorted(labels))
            return Rows([at for at in places if at is not None])
        case Filter.DEFAULT | Filter.NO_TOOLS:
            pass
    with_tools = wanted is Filter.DEFAULT
    firsts: list[int] = []
    calls: dict[int, int] = {}
    for match in _ROW.finditer(headers.letters):
        start, end = match.span()
        if match.lastindex is None:
            firsts.append(start)
        elif with_tools and headers.ids[start] in opened:
            results = [at for at in range(start, end) if headers.letters[at] == ord(_RESULT)]
            firsts += results
            calls.update(zip(results, results, strict=True))
        elif with_tools:
            firsts.append(start)
            calls[start] = end - 1
    return Rows(firsts, calls)
