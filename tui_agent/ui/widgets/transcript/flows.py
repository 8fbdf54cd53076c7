"""Flows (the paragraphs, code, tables and rules of a document), and their layout as lines.

Flows don't depend on the width of the screen. The columns of a table share the available width
according to their content. If the columns would be too narrow, the table is shown as a list.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from tui_agent.lazy import dataclass
from tui_agent.ui.widgets.transcript.code import Code, CodeLine, code_cuts
from tui_agent.ui.widgets.transcript.lines import (
    Line,
    StyledSpan,
    StyledSpans,
    cells,
    last_cut,
    spans_width,
    wrap,
    wrapped,
)

MIN_TEXT_WIDTH = 8
"""Minimum width of text, in cells.

If nested lists or quotes leave less space, their bullets and quote bars are left out.
"""
MAX_TEXT_WIDTH = 100
"""Maximum width of prose, in cells. Code, tables and diffs may use the whole width."""
COPY: StyledSpan = ("copy", "muted code act:code")
"""The hint on the first line of a code block. A click on it copies the code."""

Alignment = Literal["left", "center", "right"]
Flow: TypeAlias = "TextFlow | CodeFlow | TableFlow | RuleFlow"

_GAP = 2
_MIN_COLUMN_WIDTH = 6
"""Minimum width of a table column, in cells, unless its content is narrower."""


@dataclass(slots=True)
class Frame:
    """The decoration to the left of a flow's lines, such as bullets and quote bars.

    ``first`` is drawn before the first line, and ``rest`` before all other lines. When lines are
    copied, ``first_lead`` and ``rest_lead`` replace the decoration, for example ``> `` instead of
    the bar of a quote.
    """

    first: StyledSpans = ()
    rest: StyledSpans = ()
    first_lead: str = ""
    rest_lead: str = ""
    outer: StyledSpans = ()
    """The decoration of the empty line above the flow, such as the bars of quotes around it."""


@dataclass(slots=True)
class TextFlow:
    """A paragraph or heading. It consists of rows, and each row is wrapped on its own.

    If ``gap`` is True, an empty line precedes the paragraph or heading. If ``joins`` is True, its
    first row continues the last line of the flow before it.
    """

    rows: list[list[StyledSpan]]
    frame: Frame = field(default_factory=Frame)
    gap: bool = False
    joins: bool = False


@dataclass(slots=True)
class CodeFlow:
    """A part of the lines of ``code``, from the index ``start`` up to and excluding ``end``."""

    code: Code
    start: int
    end: int
    frame: Frame = field(default_factory=Frame)
    gap: bool = False


@dataclass(slots=True)
class TableFlow:
    """A table. A cell is a list of spans, and the first row contains the titles of the columns."""

    rows: list[list[list[StyledSpan]]]
    alignments: list[Alignment]
    frame: Frame = field(default_factory=Frame)
    gap: bool = False


@dataclass(slots=True)
class RuleFlow:
    """A horizontal rule."""

    frame: Frame = field(default_factory=Frame)
    gap: bool = False


class LineBuilder:
    """Lays out flows, one after another, as ``lines`` of at most ``width`` cells."""

    def __init__(self, width: int) -> None:
        self.width = max(width, 1)
        self.lines: list[Line] = []
        self._open_row: StyledSpans = ()
        """The spans of the last line with trailing spaces. The next flow may continue it."""

        self._mark: tuple[int, Line | None, StyledSpans] = (0, None, ())

    def mark(self) -> None:
        """Remember where the lines end now, so that `rewind` can remove the lines added later."""
        self._mark = (len(self.lines), self.lines[-1] if self.lines else None, self._open_row)

    def rewind(self) -> None:
        """Remove all lines that were added since the last call of `mark`."""
        count, last, self._open_row = self._mark
        del self.lines[count:]
        if last is not None:
            del self.lines[count - 1 :]
            self.lines.append(last)

    def feed(self, flow: Flow) -> None:
        """Lay out a flow, and append its lines."""
        joins = isinstance(flow, TextFlow) and flow.joins and bool(self.lines)
        if flow.gap and self.lines and not joins:
            self.lines.append(Line(prefix=flow.frame.outer))
        frame = flow.frame
        if self.width - max(spans_width(frame.first), spans_width(frame.rest)) < min(
            MIN_TEXT_WIDTH, self.width
        ):
            frame = Frame()
        match flow:
            case TextFlow():
                self._feed_text(flow, frame, joins=joins)
            case CodeFlow():
                self._feed_code(flow, frame)
            case TableFlow():
                prefix = frame.first
                lead = frame.first_lead
                for line in table_lines(flow, self.width - spans_width(frame.rest)):
                    line.prefix = (*prefix, *line.prefix)
                    line.lead = lead
                    self.lines.append(line)
                    prefix = frame.rest
                    lead = frame.rest_lead
            case RuleFlow():
                width = self.width - spans_width(frame.rest)
                self.lines.append(
                    Line([("─" * width, "rule")], prefix=frame.first, lead=frame.first_lead)
                )

    def _feed_text(self, flow: TextFlow, frame: Frame, *, joins: bool) -> None:
        prefix = frame.first
        lead = frame.first_lead
        for index, row in enumerate(flow.rows):
            spans: Sequence[StyledSpan] = row
            join = "\n"
            if joins and not index:
                spans = [*self._open_row, *row]
                last = self.lines.pop()
                prefix = last.prefix
                lead = last.lead
                join = last.join
            width = min(self.width, MAX_TEXT_WIDTH) - max(
                spans_width(prefix), spans_width(frame.rest)
            )
            first = True
            for swallowed, part in wrap(spans, width):
                if first:
                    self.lines.append(Line(part, prefix=prefix, lead=lead, join=join))
                    first = False
                else:
                    self.lines.append(Line(part, prefix=frame.rest, join=swallowed))
            self._open_row = last_cut(spans, width)
            prefix = frame.rest
            lead = frame.rest_lead

    def _feed_code(self, flow: CodeFlow, frame: Frame) -> None:
        pad: StyledSpan = (" ", flow.code.base)
        rest = (*frame.rest, pad)
        width = max(self.width - spans_width(rest) - 1, 1)
        prefix = (*frame.first, pad)
        lead = frame.first_lead
        lines = flow.code.lines
        for index in range(flow.start, flow.end):
            for start, end in code_cuts(lines[index], width):
                has_room = not index and not start and cells(lines[0]) + cells(COPY[0]) + 2 <= width
                tail: StyledSpans = ()
                if has_room:
                    tail = (COPY,)
                self.lines.append(
                    CodeLine(flow.code, index, start, end, prefix=prefix, tail=tail, lead=lead)
                )
                prefix = rest
            lead = frame.rest_lead


def table_lines(table: TableFlow, width: int) -> Iterator[Line]:
    """Yield the lines of a table.

    If the columns would be too narrow, the cells are shown as a list instead.
    """
    natural = [0] * len(table.alignments)
    for row in table.rows:
        for column, cell in enumerate(row[: len(natural)]):
            natural[column] = max(natural[column], spans_width(cell))
    widths = _share(natural, width - _GAP * (len(natural) - 1))
    if widths is None:
        # The table is shown as a list: each cell is on a line of its own, after its column's title.
        head, *rows = table.rows
        for index, row in enumerate(rows or [[]]):
            if index:
                yield Line()
            for column, title in enumerate(head):
                cell = []
                if column < len(row):
                    cell = row[column]
                yield from wrapped([*title, (": ", "muted"), *cell], width)
        return
    for index, row in enumerate(table.rows):
        yield from _row_lines(row, widths, table.alignments)
        if not index:
            yield Line([((" " * _GAP).join("─" * size for size in widths), "rule")])


def _share(natural: list[int], room: int) -> list[int] | None:
    """Return column widths that fit in ``room`` cells, or None if a column would be too narrow.

    ``natural`` contains the width of the widest cell in each column. A column that needs less than
    an equal share is as wide as its widest cell. The other columns share the remaining width
    equally.
    """
    widths = [max(size, 1) for size in natural]
    open_columns = set(range(len(widths)))
    while sum(widths) > room and open_columns:
        closed = [width for column, width in enumerate(widths) if column not in open_columns]
        rest = room - sum(closed)
        fair = rest // len(open_columns)
        satisfied = {column for column in open_columns if widths[column] <= fair}
        if satisfied:
            open_columns -= satisfied
            continue
        if fair < _MIN_COLUMN_WIDTH:
            return None
        extra = rest - fair * len(open_columns)
        for index, column in enumerate(sorted(open_columns)):
            widths[column] = fair + (1 if index < extra else 0)
        break
    if sum(widths) <= room:
        return widths
    return None


def _row_lines(
    row: list[list[StyledSpan]], widths: list[int], alignments: list[Alignment]
) -> Iterator[Line]:
    columns = []
    for column, width in enumerate(widths):
        cell = row[column] if column < len(row) else []
        columns.append([part for _, part in wrap(cell, width)])
    for index in range(max(map(len, columns), default=1)):
        spans: list[StyledSpan] = []
        for column, parts in enumerate(columns):
            last = column == len(columns) - 1
            if index < len(parts):
                part = parts[index]
            else:
                part = ()
            room = max(widths[column] - spans_width(part), 0)
            before = {"left": 0, "center": room // 2, "right": room}[alignments[column]]
            if last:
                after = 0
            else:
                after = room - before + _GAP
            spans += [(" " * before, "text"), *part, (" " * after, "text")]
        yield Line([run for run in spans if run[0]])
