"""Which rows a segment has under a filter. Pure; a row is one entry, or a run of tool calls with their results."""

from collections.abc import Container, Mapping, Sequence
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
) -> list[Row]:
    """Return the rows of a segment. ``opened`` holds the first entry's id of runs that are shown call by call."""
    match wanted:
        case Filter.EVERYTHING:
            return [Row(offset, offset, False) for offset in range(len(headers))]  # noqa: FBT003 - a field
        case Filter.USER_ONLY:
            return [Row(at, at, False) for at, header in enumerate(headers) if header.kind == "user"]  # noqa: FBT003
        case Filter.LABELLED:
            if not labels:
                return []
            return [Row(at, at, False) for at, header in enumerate(headers) if header.id in labels]  # noqa: FBT003
        case _:
            return _grouped(headers, with_tools=wanted is Filter.DEFAULT, opened=opened)


def _grouped(headers: Sequence[EntryHeader], *, with_tools: bool, opened: Container[int]) -> list[Row]:
    rows: list[Row] = []
    start = -1

    def close(end: int) -> None:
        if not with_tools:
            return
        if headers[start].id in opened:
            rows.extend(Row(at, at, True) for at in range(start, end) if headers[at].kind == "tool_result")  # noqa: FBT003
        else:
            rows.append(Row(start, end - 1, True))  # noqa: FBT003 - a field

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
        rows.append(Row(offset, offset, False))  # noqa: FBT003 - a field
    if start >= 0:
        close(len(headers))
    return rows
