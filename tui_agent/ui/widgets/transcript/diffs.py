"""Diffs on the screen: side by side where there is room, else one below the other. The only place that draws them.

Colours of the language and of what changed only repeat what signs and numbers say.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.bodies import INDENT, Body, TextBody
from tui_agent.ui.widgets.transcript.code import code_cuts, part_of
from tui_agent.ui.widgets.transcript.lines import Line, StyledSpan, StyledSpans, runs_width
from tui_agent.ui.widgets.transcript.reading_diffs import DiffRow, Spans, read_diff, side_by_side

MIN_SPLIT_WIDTH: Final = 120
"""Cells from which on old and new stand side by side."""

_SIGNS: Final = {"removed": "-", "added": "+"}
_DIVIDER: Final[StyledSpan] = (" │ ", "rule")


def diff_body(diff: str, width: int) -> Body:
    """Return a unified diff as rows that fit a width; see :func:`.bodies.body_lines` for how to draw them."""
    text = sanitize.text(diff)
    body = DiffBody(text)
    # What cannot be read as a diff is shown as it is: a question must not hide anything.
    return body.fitting(width) if len(body) else TextBody(text)


class DiffBody:
    """The rows of a diff one below the other; ``fitting`` has them side by side where there is room."""

    def __init__(self, diff: str) -> None:
        self._rows = read_diff(diff)
        self._gutter = max((len(str(max(row.old, row.new))) for row in self._rows), default=1)
        self._split: SplitBody | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def fitting(self, width: int) -> Body:
        """Return the rows for lines of a width."""
        changed = any(row.partner is not None for row in self._rows)
        if width < MIN_SPLIT_WIDTH or not changed:
            return self
        if self._split is None:
            self._split = SplitBody(self._rows, self._gutter)
        return self._split

    def row(self, index: int, width: int) -> Iterator[Line]:
        row = self._rows[index]
        if row.told:
            yield _told(row)
            return
        style = _style_of(row)
        first, rest = _gutter(row, row.old if row.kind == "removed" else row.new, self._gutter)
        room = max(width - len(INDENT) - runs_width(first), 1)
        for start, end in code_cuts(row.text, room):
            prefix = ((INDENT, "text"), *(rest if start else first))
            yield DiffLine(row, (start, end), prefix=prefix, fill=style if row.kind in _SIGNS else "")


class SplitBody:
    """The rows of a diff side by side.

    The text that is selected and copied is the new one, and of lines that are gone the old one.
    """

    def __init__(self, rows: Sequence[DiffRow], gutter: int) -> None:
        self._pairs = side_by_side(rows)
        self._gutter = gutter

    def __len__(self) -> int:
        return len(self._pairs)

    def row(self, index: int, width: int) -> Iterator[Line]:
        old, new = self._pairs[index]
        if old is new and new is not None and new.told:
            yield _told(new)
            return
        # One column is left free so that both halves are the same.
        half = max((width - len(INDENT) - len(_DIVIDER[0])) // 2, self._gutter + 4)
        room = half - self._gutter - 3
        left = list(code_cuts(old.text, room)) if old else []
        right = list(code_cuts(new.text, room)) if new else []
        for number in range(max(len(left), len(right))):
            cut = left[number] if number < len(left) else None
            other = right[number] if number < len(right) else None
            if new is None and old is not None and cut is not None:
                tail = _DIVIDER, (" " * (width - len(INDENT) - half - len(_DIVIDER[0])), "text")
                gutter = _gutter(old, old.old, self._gutter)[number > 0]
                yield DiffLine(old, cut, prefix=((INDENT, "text"), *gutter), fill=_style_of(old), tail=tail)
            else:
                yield SplitLine(old, cut, new, other, half=half, gutter=self._gutter)


class DiffLine(Line):
    """A part of a row of a diff, coloured when it is drawn."""

    __slots__ = ("_cut", "_row")

    def __init__(
        self, row: DiffRow, cut: tuple[int, int], *, prefix: StyledSpans = (), fill: str = "", tail: StyledSpans = ()
    ) -> None:
        super().__init__(prefix=prefix, tail=tail, join="" if cut[0] else "\n", fill=fill)
        self._row = row
        self._cut = cut

    def content(self) -> Sequence[StyledSpan]:
        return _coloured(self._row, self._cut)

    @property
    def text(self) -> str:
        return self._row.text[self._cut[0] : self._cut[1]]


class SplitLine(Line):
    """A part of an old line, and a part of the new one beside it, which is the line's text."""

    __slots__ = ("_gutter", "_half", "_left", "_left_cut", "_right", "_right_cut")

    def __init__(
        self,
        left: DiffRow | None,
        left_cut: tuple[int, int] | None,
        right: DiffRow | None,
        right_cut: tuple[int, int] | None,
        *,
        half: int,
        gutter: int,
    ) -> None:
        going_on = (right_cut is None and left_cut is not None and left_cut[0] > 0) or bool(right_cut and right_cut[0])
        style = _style_of(right) if right is not None and right_cut is not None else ""
        super().__init__(join="" if going_on else "\n", fill=style if style in _SIGNS else "")
        self._left, self._left_cut = left, left_cut
        self._right, self._right_cut = right, right_cut
        self._half, self._gutter = half, gutter

    @property
    def prefix(self) -> StyledSpans:
        """The old line and the new one's number."""
        runs: list[StyledSpan] = []
        if self._left is not None and self._left_cut is not None:
            runs += _gutter(self._left, self._left.old, self._gutter)[self._left_cut[0] > 0]
            runs += _coloured(self._left, self._left_cut)
        style = _style_of(self._left) if self._left is not None and self._left_cut is not None else "text"
        runs.append((" " * max(self._half - runs_width(runs), 0), style if style in _SIGNS else "text"))
        runs.append(_DIVIDER)
        if self._right is not None:
            runs += _gutter(self._right, self._right.new, self._gutter)[not self._right_cut or self._right_cut[0] > 0]
        return ((INDENT, "text"), *runs)

    @prefix.setter
    def prefix(self, value: StyledSpans) -> None:
        """Ignore what the base class sets: it is made when it is drawn."""

    def content(self) -> Sequence[StyledSpan]:
        return () if self._right is None or self._right_cut is None else _coloured(self._right, self._right_cut)

    @property
    def text(self) -> str:
        if self._right is None or self._right_cut is None:
            return ""
        return self._right.text[self._right_cut[0] : self._right_cut[1]]


def _told(row: DiffRow) -> Line:
    style = "path" if row.kind == "file" else "muted"
    return Line([(row.told, style)], prefix=((INDENT, "text"),))


def _style_of(row: DiffRow) -> str:
    return row.kind if row.kind in _SIGNS else "output"


def _gutter(row: DiffRow, number: int, size: int) -> tuple[StyledSpans, StyledSpans]:
    """Return number and sign for the first line of a row, and what stands in their place on the others."""
    style = _style_of(row)
    if row.kind not in _SIGNS:
        return ((f"{number:>{size}}", "line-number"), ("   ", "text")), ((" " * (size + 3), "text"),)
    sign = (f" {_SIGNS[row.kind]} ", f"{style} {style}-sign")
    return ((f"{number:>{size}}", f"line-number {style}"), sign), ((" " * (size + 3), style),)


def _coloured(row: DiffRow, cut: tuple[int, int]) -> StyledSpans:
    runs = row.code.runs(row.index)
    if row.kind in _SIGNS:
        runs = tuple(_marked(runs, row.kind, row.marks()))
    return part_of(runs, *cut)


def _marked(runs: StyledSpans, style: str, spans: Spans) -> Iterator[StyledSpan]:
    offset = 0
    for text, name in runs:
        position, end = offset, offset + len(text)
        for start, stop in spans:
            first, last = max(start, position), min(stop, end)
            if first >= last:
                continue
            if first > position:
                yield text[position - offset : first - offset], f"{name} {style}"
            yield text[first - offset : last - offset], f"{name} {style} {style}-part"
            position = last
        if position < end:
            yield text[position - offset :], f"{name} {style}"
        offset = end
