"""Computes which rows a segment has under a filter. The code here is pure.

A row shows one entry, or a group of successive tool calls with their results. This module doesn't
leave out the branches of subagents and former attempts; outline.py does.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from tui_agent.session.entries import KINDS, ToolResultEntry
from tui_agent.session.skeleton import SILENT_CALL, Headers

_QUIET = "".join(entry.letter for entry in KINDS.values() if entry.is_quiet)
_RESULT = ToolResultEntry.letter

# An answer that only calls tools needs no row: the rows of the results show its calls.
_CALL = f"{_RESULT}|{SILENT_CALL}(?={_RESULT})"

_ROW = re.compile(f"((?:{_CALL})(?:{_CALL}|[{_QUIET}])*)|[^{_QUIET}]".encode())
"""Matches, in a string with one letter per entry, a group of tool calls (as group 1), or any other
entry that has a row."""


class Filter(StrEnum):
    """Which entries have a row in the tree. Ctrl+O switches between the filters in this order."""

    DEFAULT = "default"
    NO_TOOLS = "no tools"
    USER_ONLY = "user only"
    LABELLED = "labelled"
    EVERYTHING = "everything"


class RowSpan(NamedTuple):
    """A row, as the offsets of its first and last entry in the segment. Both are inclusive."""

    first: int
    last: int
    is_group: bool
    """Whether the row shows tool calls: a whole group, or one call of an unfolded group."""


class Rows:
    """The rows of a segment, stored compactly because there may be 100,000.

    ``firsts`` contains the offset of the first entry of each row. ``calls`` maps the first offset of
    a row with tool calls to its last offset.
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

    ``opened`` contains the id of the first entry of each group that shows a row for each call.
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
