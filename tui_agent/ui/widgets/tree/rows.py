"""Which rows a segment has under a filter. Pure; a row is one entry, or a run of tool calls with their results."""

from bisect import bisect_right
from collections.abc import Container, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from tui_agent.session.records import EntryHeader


class Filter(StrEnum):
    """What the tree shows, in the order ctrl+o goes through."""

    DEFAULT = "default"
    NO_TOOLS = "no tools"
    USER_ONLY = "user only"
    LABELLED = "labelled"
    EVERYTHING = "everything"


class Row(NamedTuple):
    """Offsets of the first and last entry of a row in its segment."""

    first: int
    last: int
    is_run: bool
    """Whether it is about tool calls: a run of them, or one of a run that was opened."""


class Rows:
    """The rows of a segment, in few objects: there may be 100,000.

    ``firsts`` are the offsets of first entries, ``calls`` the last ones of rows about tool calls by the first.
    """

    __slots__ = ("calls", "firsts")

    def __init__(self, firsts: Sequence[int], calls: Mapping[int, int] | None = None) -> None:
        self.firsts = firsts
        self.calls = calls or {}

    def __len__(self) -> int:
        return len(self.firsts)

    def __getitem__(self, number: int) -> Row:
        first = self.firsts[number]
        last = self.calls.get(first)
        return Row(first, first, False) if last is None else Row(first, last, True)  # noqa: FBT003 - a field

    def __iter__(self) -> Iterator[Row]:
        return map(self.__getitem__, range(len(self.firsts)))

    def at_or_above(self, offset: int) -> int:
        """Return the number of the row an entry is in, or of the nearest above it; -1 when there is none."""
        return bisect_right(self.firsts, offset) - 1

    def numbers(self, entries: int) -> list[int]:
        """Return for each of a segment's entries which row shows it, -1 for those without."""
        numbers = [-1] * entries
        for number, first in enumerate(self.firsts):
            numbers[first] = number
        for first, last in self.calls.items():
            numbers[first : last + 1] = [numbers[first]] * (last + 1 - first)
        return numbers


QUIET_KINDS = frozenset({"system", "checkpoint", "model_change", "mode_change", "context_edit"})
"""Kinds that only "everything" shows."""


def is_silent_call(headers: Sequence[EntryHeader], offset: int) -> bool:
    """Whether an answer only calls tools, so that the results under it say the same.

    Its preview is then the first call, as ``tool {arguments}``.
    """
    if offset + 1 >= len(headers) or headers[offset + 1].kind != "tool_result":
        return False
    preview = headers[offset].preview
    return not preview or preview.partition(" ")[2].startswith("{")


def rows_of(
    headers: Sequence[EntryHeader],
    wanted: Filter,
    labels: Mapping[int, str],
    opened: Container[int] = frozenset(),
) -> Rows:
    """Return the rows of a segment. ``opened`` holds the first entry's id of runs that are shown call by call."""
    match wanted:
        case Filter.EVERYTHING:
            return Rows(range(len(headers)))
        case Filter.USER_ONLY:
            return Rows([at for at, header in enumerate(headers) if header.kind == "user"])
        case Filter.LABELLED:
            return Rows([at for at, header in enumerate(headers) if header.id in labels] if labels else ())
        case _:
            return _grouped(headers, with_tools=wanted is Filter.DEFAULT, opened=opened)


def _grouped(headers: Sequence[EntryHeader], *, with_tools: bool, opened: Container[int]) -> Rows:
    firsts: list[int] = []
    calls: dict[int, int] = {}
    start = -1

    def close(end: int) -> None:
        if not with_tools:
            return
        run = {start: end - 1}
        if headers[start].id in opened:
            run = {at: at for at in range(start, end) if headers[at].kind == "tool_result"}
        firsts.extend(run)
        calls.update(run)

    for offset, header in enumerate(headers):
        kind = header.kind
        if kind in QUIET_KINDS:
            continue
        if kind == "tool_result" or (kind == "assistant" and is_silent_call(headers, offset)):
            start = offset if start < 0 else start
            continue
        if start >= 0:
            close(offset)
            start = -1
        firsts.append(offset)
    if start >= 0:
        close(len(headers))
    return Rows(firsts, calls)
