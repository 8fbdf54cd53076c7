"""Tables that fit: columns share the width by what they need, cells wrap, and a table too narrow becomes a list."""

from collections.abc import Iterator
from typing import Literal

from tui_agent.lazy import dataclass
from tui_agent.ui.widgets.transcript.lines import Line, StyledSpan, StyledSpans, runs_width, wrap

Alignment = Literal["left", "center", "right"]

_GAP = 2
_MIN_COLUMN_WIDTH = 6
"""Cells below which a column is not worth reading, unless its content is that short."""


@dataclass(slots=True)
class TableData:
    """Cells as runs; the first row is the head."""

    rows: list[list[list[StyledSpan]]]
    alignments: list[Alignment]


def table_lines(table: TableData, width: int) -> Iterator[Line]:
    """Yield the lines of a table of at most ``width`` cells."""
    natural = [
        max((runs_width(row[column]) for row in table.rows if column < len(row)), default=0)
        for column in range(len(table.alignments))
    ]
    widths = _share(natural, width - _GAP * (len(natural) - 1))
    if widths is None:
        yield from _as_list(table, width)
        return
    for index, row in enumerate(table.rows):
        yield from _row_lines(row, widths, table.alignments)
        if not index:
            yield Line([((" " * _GAP).join("─" * size for size in widths), "rule")])


def _share(natural: list[int], room: int) -> list[int] | None:
    """Return column widths that fit: narrow columns get what they need, the others share the rest.

    None when some column would become too narrow to read.
    """
    widths = [max(size, 1) for size in natural]
    open_columns = set(range(len(widths)))
    while sum(widths) > room and open_columns:
        rest = room - sum(widths[column] for column in range(len(widths)) if column not in open_columns)
        fair = rest // len(open_columns)
        satisfied = {column for column in open_columns if widths[column] <= fair}
        if satisfied:
            open_columns -= satisfied
            continue
        if fair < _MIN_COLUMN_WIDTH:
            return None
        extra = rest - fair * len(open_columns)
        for place, column in enumerate(sorted(open_columns)):
            widths[column] = fair + (1 if place < extra else 0)
        break
    return widths if sum(widths) <= room else None


def _row_lines(row: list[list[StyledSpan]], widths: list[int], alignments: list[Alignment]) -> Iterator[Line]:
    columns = [
        [part for _, part in wrap(row[column] if column < len(row) else [], width)]
        for column, width in enumerate(widths)
    ]
    for index in range(max(map(len, columns), default=1)):
        runs: list[StyledSpan] = []
        for column, parts in enumerate(columns):
            last = column == len(columns) - 1
            part = parts[index] if index < len(parts) else ()
            runs.extend(_aligned(part, widths[column], alignments[column], last=last))
            if not last:
                runs.append((" " * _GAP, "text"))
        yield Line(runs)


def _aligned(part: StyledSpans, width: int, alignment: Alignment, *, last: bool) -> Iterator[StyledSpan]:
    room = max(width - runs_width(part), 0)
    before = {"left": 0, "center": room // 2, "right": room}[alignment]
    if before:
        yield " " * before, "text"
    yield from part
    if room - before and not last:
        yield " " * (room - before), "text"


def _as_list(table: TableData, width: int) -> Iterator[Line]:
    """Yield each row as lines of "head: cell", with a gap between rows."""
    head, *rows = table.rows
    for index, row in enumerate(rows or [[]]):
        if index:
            yield Line()
        for column, title in enumerate(head):
            cell = row[column] if column < len(row) else []
            runs = [*title, (": ", "muted"), *cell]
            for number, (swallowed, part) in enumerate(wrap(runs, width)):
                yield Line(part, join=swallowed if number else "\n")
