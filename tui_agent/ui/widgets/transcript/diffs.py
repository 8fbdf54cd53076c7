"""Parses unified diffs into rows, and lays them out side by side or in one column.

Diffs can be read without colors, because signs and line numbers show the same information.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import zip_longest
from typing import Final, Literal

from tui_agent.editing.diffs import BoundedMatcher
from tui_agent.lazy import dataclass
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.bodies import INDENT, Body, TextBody
from tui_agent.ui.widgets.transcript.code import Code, code_cuts, language_of_path, slice_spans
from tui_agent.ui.widgets.transcript.lines import Line, StyledSpan, StyledSpans, spans_width

MIN_SPLIT_WIDTH: Final = 120
"""Minimum width, in cells, at which a diff is shown side by side."""

_SIGNS: Final = {"removed": "-", "added": "+"}
_DIVIDER: Final[StyledSpan] = (" │ ", "rule")


DiffRowKind = Literal["context", "removed", "added", "gap", "file", "note"]
PartOffsets = tuple[tuple[int, int], ...]
"""Parts of a line, each as the offsets of its start and end in characters. The end is exclusive."""

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_PIECE: Final = re.compile(r"\w+|\s+|.")

_MIN_SIMILARITY: Final = 0.5
"""Minimum similarity of two lines, from 0 to 1, at which their differing parts are marked."""

_MAX_COMPARED_CHARS: Final = 400
"""Maximum length of a line, in characters, that is compared word by word with another line."""

_MAX_STEPS: Final = 50_000
"""Maximum number of pairs of equal words that are examined when two lines are compared."""

_NEAR: Final = 2
"""If at most this many characters separate two changed parts of a line, they are marked as one."""


@dataclass(slots=True)
class DiffRow:
    """A row of a diff.

    ``old`` and ``new`` are the row's line numbers in the two versions of the file. A number is 0 if
    the line isn't in that version. The row's text is the line at ``index`` in ``code``. Rows that
    aren't lines of a file (gaps, file names, notes) have their text in ``fixed_text``. The
    ``partner`` of a removed row is the added row that replaces it, and vice versa. It is None if
    there is no such row.
    """

    kind: DiffRowKind
    old: int = 0
    new: int = 0
    code: Code = field(default_factory=lambda: Code(""))
    index: int = 0
    fixed_text: str = ""
    partner: "DiffRow | None" = None

    @property
    def text(self) -> str:
        if self.code.lines:
            return self.code.lines[self.index]
        return self.fixed_text


class _Reader:
    """Parses a diff line by line.

    The end of a hunk is found by counting lines, because a changed line can look like a header.
    """

    def __init__(self) -> None:
        self._rows: list[DiffRow] = []
        self._old = self._new = self._old_left = self._new_left = 0
        self._codes = {"old": Code(""), "new": Code("")}
        self._lines: dict[str, list[str]] = {"old": [], "new": []}
        self._language = ""
        self._before_name = ""
        self._begun = False

    def read(self, lines: Sequence[str]) -> list[DiffRow]:
        for line in lines:
            if self._old_left > 0 or self._new_left > 0:
                self._in_hunk(line[:1], line[1:])
            else:
                self._between(line)
        self._end_hunk()
        return self._rows

    def _in_hunk(self, sign: str, text: str) -> None:
        if sign == "\\":
            self._note(text)
            return
        removed = sign == "-"
        added = sign == "+"
        if removed:
            kind: DiffRowKind = "removed"
        elif added:
            kind = "added"
        else:
            kind = "context"
        side = "old" if removed else "new"
        row = DiffRow(
            kind, 0 if added else self._old, 0 if removed else self._new, self._codes[side]
        )
        row.index = len(self._lines[side])
        self._rows.append(row)
        if not added:
            self._lines["old"].append(text)
            self._old = self._old + 1
            self._old_left = self._old_left - 1
        if not removed:
            self._lines["new"].append(text)
            self._new = self._new + 1
            self._new_left = self._new_left - 1

    def _between(self, line: str) -> None:
        if hunk := _HUNK.match(line):
            self._end_hunk()
            self._old = int(hunk[1])
            self._old_left = int(hunk[2] or 1)
            self._new = int(hunk[3])
            self._new_left = int(hunk[4] or 1)
            if self._begun:
                self._rows.append(DiffRow("gap", fixed_text="⋯"))
            self._begun = True
        elif line.startswith("--- "):
            self._before_name = line[4:]
        elif line.startswith("+++ "):
            self._end_hunk()
            name = line[4:]
            # If the file was removed, show its old name.
            if name == "/dev/null":
                path = self._before_name
            else:
                path = name
            self._language = language_of_path(path)
            self._rows.append(
                DiffRow("file", fixed_text=path.removeprefix("a/").removeprefix("b/"))
            )
            self._begun = False
        elif line.startswith("\\"):
            self._note(line[1:])

    def _note(self, text: str) -> None:
        if not text.strip().startswith("No newline"):
            self._rows.append(DiffRow("note", fixed_text=text.strip()))
            self._old_left = self._new_left = 0

    def _end_hunk(self) -> None:
        for side, code in self._codes.items():
            code.replace(0, self._lines[side])
            self._lines[side] = []
        # Create new `Code` objects, because the rows that have been read so far keep the old ones.
        self._codes = {side: Code(self._language, "output") for side in ("old", "new")}


def read_diff(text: str) -> list[DiffRow]:
    """Return the rows of a unified diff of one or more files.

    If the diff contains only one file, the row with the file's name is left out.
    """
    rows = _Reader().read(text.rstrip("\n").split("\n"))
    if sum(row.kind == "file" for row in rows) < 2:
        rows = [row for row in rows if row.kind != "file"]
    for removed, added in _changes(rows):
        for before, after in zip(removed, added, strict=False):
            before.partner = after
            after.partner = before
    return rows


def side_by_side(rows: Sequence[DiffRow]) -> list[tuple[DiffRow | None, DiffRow | None]]:
    """Return the rows of a diff as pairs of an old and a new row, to show side by side.

    Each removed row is paired with the added row that replaces it, in order. A row that is left
    over on either side is paired with None. Any other row is paired with itself.
    """
    pairs: list[tuple[DiffRow | None, DiffRow | None]] = []
    removed: list[DiffRow] = []
    added: list[DiffRow] = []
    for row in rows:
        if row.kind == "added":
            added.append(row)
            continue
        if added or row.kind != "removed":
            pairs.extend(zip_longest(removed, added))
            removed = []
            added = []
        if row.kind == "removed":
            removed.append(row)
        else:
            pairs.append((row, row))
    return [*pairs, *zip_longest(removed, added)]


def _changes(rows: Sequence[DiffRow]) -> Iterator[tuple[list[DiffRow], list[DiffRow]]]:
    """Yield each change in a diff as its removed rows and its added rows.

    Skips changes without added rows.
    """
    removed: list[DiffRow] = []
    added: list[DiffRow] = []
    for row in [*rows, DiffRow("gap")]:
        if row.kind == "added":
            added.append(row)
        else:
            if added:
                yield removed, added
                removed = []
                added = []
            if row.kind == "removed":
                removed = [*removed, row]
            else:
                removed = []


@lru_cache(maxsize=2_048)
def changed_parts(old: str, new: str) -> tuple[PartOffsets, PartOffsets]:
    """Return the parts of an old and a new line that differ, for each of the two lines.

    Both results are empty if the lines differ too much or are too long to compare.
    """
    if max(len(old), len(new)) > _MAX_COMPARED_CHARS:
        return (), ()
    before = _PIECE.findall(old)
    after = _PIECE.findall(new)
    matcher = BoundedMatcher(before, after, autojunk=False, steps=_MAX_STEPS)
    same = 0
    for block in matcher.get_matching_blocks():
        same += len("".join(before[block.a : block.a + block.size]).strip())
    if same < _MIN_SIMILARITY * min(len(old.strip()), len(new.strip())):
        return (), ()
    codes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        _part_offsets(before, [(code[1], code[2]) for code in codes]),
        _part_offsets(after, [(code[3], code[4]) for code in codes]),
    )


def _part_offsets(pieces: Sequence[str], parts: Sequence[tuple[int, int]]) -> PartOffsets:
    starts = [0]
    for piece in pieces:
        starts.append(starts[-1] + len(piece))
    offsets: list[tuple[int, int]] = []
    for first, last in parts:
        start = starts[first]
        end = starts[last]
        if offsets and start - offsets[-1][1] <= _NEAR:
            offsets[-1] = (offsets[-1][0], end)
        elif end > start:
            offsets.append((start, end))
    return tuple(offsets)


# -- drawing


def diff_body(diff: str, width: int) -> Body:
    """Return a body that shows a unified diff, side by side if ``width`` (in cells) is enough.

    A text that isn't a diff is shown unchanged.
    """
    text = sanitize.text(diff)
    body = DiffBody(text)
    # A question must not hide anything from the user, so text that can't be parsed is shown too.
    if len(body):
        return body.for_width(width)
    return TextBody(text)


class DiffBody(Body):
    """The body of a diff that is shown in one column."""

    def __init__(self, diff: str) -> None:
        self._rows: list[DiffRow] = read_diff(diff)
        self._gutter = max((len(str(max(row.old, row.new))) for row in self._rows), default=1)
        self._split: SplitBody | None = None

    def for_width(self, width: int) -> Body:
        """Return the body that shows this diff in a widget of ``width`` cells.

        The diff is shown side by side if the width is enough and at least one line replaces another
        line. Otherwise, it is shown in one column, and this body is returned.
        """
        changed = any(row.partner is not None for row in self._rows)
        if width < MIN_SPLIT_WIDTH or not changed:
            return self
        if self._split is None:
            self._split = SplitBody(self._rows, self._gutter)
        return self._split

    def row(self, index: int, width: int) -> Iterator[Line]:
        row = self._rows[index]
        if row.fixed_text:
            yield _fixed_line(row)
            return
        style = _style_of(row)
        first, rest = _gutter(row, row.old if row.kind == "removed" else row.new, self._gutter)
        room = max(width - len(INDENT) - spans_width(first), 1)
        for start, end in code_cuts(row.text, room):
            prefix = ((INDENT, "text"), *(rest if start else first))
            yield DiffLine(
                row, (start, end), prefix=prefix, fill=style if row.kind in _SIGNS else ""
            )


class SplitBody(Body):
    """The body of a diff that is shown side by side.

    The user can select and copy the new text. Old text can be selected only where no new text is
    beside it.
    """

    def __init__(self, rows: Sequence[DiffRow], gutter: int) -> None:
        self._rows: list[tuple[DiffRow | None, DiffRow | None]] = side_by_side(rows)
        self._gutter = gutter

    def row(self, index: int, width: int) -> Iterator[Line]:
        old, new = self._rows[index]
        if old is new and new is not None and new.fixed_text:
            yield _fixed_line(new)
            return
        # One cell may stay empty, because both halves of the row have the same width.
        half = max((width - len(INDENT) - len(_DIVIDER[0])) // 2, self._gutter + 4)
        room = half - self._gutter - 3
        left = []
        if old:
            left = list(code_cuts(old.text, room))
        right = []
        if new:
            right = list(code_cuts(new.text, room))
        for number in range(max(len(left), len(right))):
            cut = None
            if number < len(left):
                cut = left[number]
            other = None
            if number < len(right):
                other = right[number]
            if new is None and old is not None and cut is not None:
                tail = _DIVIDER, (" " * (width - len(INDENT) - half - len(_DIVIDER[0])), "text")
                gutter = _gutter(old, old.old, self._gutter)[number > 0]
                yield DiffLine(
                    old, cut, prefix=((INDENT, "text"), *gutter), fill=_style_of(old), tail=tail
                )
            else:
                yield SplitLine(old, cut, new, other, half=half, gutter=self._gutter)


class DiffLine(Line):
    """A row of a diff, or a part of a wrapped row. Its colors are computed when it is drawn."""

    __slots__ = ("_cut", "_row")

    def __init__(
        self,
        row: DiffRow,
        cut: tuple[int, int],
        *,
        prefix: StyledSpans = (),
        fill: str = "",
        tail: StyledSpans = (),
    ) -> None:
        super().__init__(prefix=prefix, tail=tail, join="" if cut[0] else "\n", fill=fill)
        self._row = row
        self._cut = cut

    def content(self) -> Sequence[StyledSpan]:
        return _content_spans(self._row, self._cut)

    @property
    def text(self) -> str:
        return self._row.text[self._cut[0] : self._cut[1]]


class SplitLine(Line):
    """A part of an old line, with a part of the new line beside it.

    Only the new text can be copied.
    """

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
        going_on = (right_cut is None and left_cut is not None and left_cut[0] > 0) or bool(
            right_cut and right_cut[0]
        )
        style = ""
        if right is not None and right_cut is not None:
            style = _style_of(right)
        super().__init__(join="" if going_on else "\n", fill=style if style in _SIGNS else "")
        self._left = left
        self._left_cut = left_cut
        self._right = right
        self._right_cut = right_cut
        self._half = half
        self._gutter = gutter

    @property
    def prefix(self) -> StyledSpans:
        """Everything left of the new text: the old line, the divider and the new line number."""
        spans: list[StyledSpan] = []
        if self._left is not None and self._left_cut is not None:
            spans += _gutter(self._left, self._left.old, self._gutter)[self._left_cut[0] > 0]
            spans += _content_spans(self._left, self._left_cut)
        style = "text"
        if self._left is not None and self._left_cut is not None:
            style = _style_of(self._left)
        spans.append(
            (" " * max(self._half - spans_width(spans), 0), style if style in _SIGNS else "text")
        )
        spans.append(_DIVIDER)
        if self._right is not None:
            spans += _gutter(self._right, self._right.new, self._gutter)[
                not self._right_cut or self._right_cut[0] > 0
            ]
        return ((INDENT, "text"), *spans)

    @prefix.setter
    def prefix(self, value: StyledSpans) -> None:
        """Ignore the value set by the base class, because the prefix is computed on drawing."""

    def content(self) -> Sequence[StyledSpan]:
        if self._right is None or self._right_cut is None:
            return ()
        return _content_spans(self._right, self._right_cut)

    @property
    def text(self) -> str:
        if self._right is None or self._right_cut is None:
            return ""
        return self._right.text[self._right_cut[0] : self._right_cut[1]]


def _fixed_line(row: DiffRow) -> Line:
    style = "path" if row.kind == "file" else "muted"
    return Line([(row.fixed_text, style)], prefix=((INDENT, "text"),))


def _style_of(row: DiffRow) -> str:
    if row.kind in _SIGNS:
        return row.kind
    return "output"


def _gutter(row: DiffRow, number: int, size: int) -> tuple[StyledSpans, StyledSpans]:
    """Return the text to the left of a row's first line, and the text for its other lines.

    The first line has the line number and the sign. The other lines, into which a long row is
    wrapped, have blanks. ``size`` is the width of the line number, in cells.
    """
    style = _style_of(row)
    if row.kind not in _SIGNS:
        return ((f"{number:>{size}}", "line-number"), ("   ", "text")), (
            (" " * (size + 3), "text"),
        )
    sign = (f" {_SIGNS[row.kind]} ", f"{style} {style}-sign")
    return ((f"{number:>{size}}", f"line-number {style}"), sign), ((" " * (size + 3), style),)


def _content_spans(row: DiffRow, cut: tuple[int, int]) -> StyledSpans:
    spans = row.code.spans(row.index)
    if row.kind in _SIGNS:
        marks: PartOffsets = ()
        if (partner := row.partner) is not None:
            if row.kind == "removed":
                marks, _ = changed_parts(row.text, partner.text)
            else:
                _, marks = changed_parts(partner.text, row.text)
        spans = tuple(_marked(spans, row.kind, marks))
    return slice_spans(spans, *cut)


def _marked(spans: StyledSpans, style: str, offsets: PartOffsets) -> Iterator[StyledSpan]:
    offset = 0
    for text, name in spans:
        position = offset
        end = offset + len(text)
        for start, stop in offsets:
            first = max(start, position)
            last = min(stop, end)
            if first >= last:
                continue
            if first > position:
                yield text[position - offset : first - offset], f"{name} {style}"
            yield text[first - offset : last - offset], f"{name} {style} {style}-part"
            position = last
        if position < end:
            yield text[position - offset :], f"{name} {style}"
        offset = end
