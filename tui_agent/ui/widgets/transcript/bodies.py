"""What a block shows when it is open: rows of output, numbered code, matches and diffs, laid out only where shown."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.code import Code, CodeLine, code_cuts
from tui_agent.ui.widgets.transcript.lines import Line, Runs, cells, wrap

MOST_ROWS: Final = 2_000
"""Rows a block shows inside the transcript; beyond that it offers to open the whole text."""

_WRAPPED_ROWS: Final = 4
"""Lines one very long row may take while a block shows only a part."""

INDENT: Final = "  "

_NUMBERED: Final = re.compile(r"(\d+)\t")
_MATCH: Final = re.compile(r"([^\n:]+):(\d+): ")
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")

Keep = Literal["head", "tail"]


class Body(Protocol):
    """Rows that can be laid out one by one."""

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def row(self, index: int, width: int) -> Iterator[Line]:
        """Yield the lines of a row."""
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """How much of a body to show: at most ``rows``, from the ``head`` or the ``tail``; ``None`` is everything."""

    rows: int | None
    keep: Keep = "head"

    @property
    def most(self) -> int:
        """Rows shown at most: one more than asked for, rather than hidden behind a line of its own."""
        return (MOST_ROWS if self.rows is None else self.rows) + 1


def body_lines(body: Body, width: int, window: Window) -> Iterator[Line]:
    """Yield the lines of a part of a body, with a line that tells how much is missing."""
    total = len(body)
    limit = MOST_ROWS if window.rows is None else window.rows
    action = "open" if window.rows is None else "more"
    shown = total if total <= window.most else limit
    hidden = total - shown
    first = hidden if window.keep == "tail" else 0
    if hidden and first:
        yield _more_line(hidden, "earlier", action)
    for index in range(first, first + shown):
        for count, line in enumerate(body.row(index, width)):
            if window.rows is not None and count == _WRAPPED_ROWS:
                yield Line([("…", f"muted act:{action}")], prefix=((INDENT, "text"),), join="")
                break
            yield line
    if hidden and not first:
        yield _more_line(hidden, "more", action)


def _more_line(hidden: int, word: str, action: str) -> Line:
    noun = "line" if hidden == 1 else "lines"
    hint = " · open full" if action == "open" else ""
    return Line(prefix=((INDENT, "text"), (f"… {hidden:,} {word} {noun}{hint}", f"muted act:{action}")))


class TextBody:
    """Plain rows."""

    def __init__(self, text: str, style: str = "output", indent: str = INDENT) -> None:
        self._rows = text.rstrip("\n").split("\n") if text.strip("\n") else []
        self._style = style
        self._prefix: Runs = ((indent, "text"),)

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, index: int, width: int) -> Iterator[Line]:
        """Yield the lines of a row, wrapped at spaces."""
        text = sanitize.code_line(self._rows[index])
        runs = [(text, self._style)] if text else []
        room = max(width - cells(self._prefix[0][0]), 1)
        for number, (swallowed, part) in enumerate(wrap(runs, room)):
            yield Line(part, prefix=self._prefix, join=swallowed if number else "\n")


class NumberedBody:
    """A file as the read tool shows it: rows of number, tab and text, in the colours of its language."""

    def __init__(self, text: str, path: str) -> None:
        rows = text.rstrip("\n").split("\n")
        self._numbers: list[str] = []
        code: list[str] = []
        for row in rows:
            found = _NUMBERED.match(row)
            self._numbers.append(found[1] if found else "")
            code.append(row[found.end() :] if found else row)
        self._gutter = max(map(len, self._numbers), default=0)
        name = path.rpartition("/")[2]
        self._code = Code(name if "." in name else "", "output")
        self._code.replace(0, code)

    def __len__(self) -> int:
        return len(self._numbers)

    def row(self, index: int, width: int) -> Iterator[Line]:
        """Yield the lines of a row; the number is not part of the text."""
        number = f"{INDENT}{self._numbers[index]:>{self._gutter}} "
        room = max(width - len(number) - 1, 1)
        for start, end in code_cuts(self._code.lines[index], room):
            shown = number if not start else " " * len(number)
            yield CodeLine(self._code, index, start, end, prefix=((f"{shown} ", "line-number"),))


class MatchBody(TextBody):
    """Rows of matches: path, number, text."""

    def row(self, index: int, width: int) -> Iterator[Line]:
        """Yield the lines of a match."""
        text = sanitize.code_line(self._rows[index])
        found = _MATCH.match(text)
        if found is None:
            yield from super().row(index, width)
            return
        runs = [(found[1], "path"), (f":{found[2]}: ", "line-number"), (text[found.end() :], "output")]
        for number, (swallowed, part) in enumerate(wrap(runs, max(width - len(INDENT), 1))):
            yield Line(part, prefix=self._prefix, join=swallowed if number else "\n")


@dataclass(frozen=True, slots=True)
class _DiffRow:
    number: int
    sign: str
    text: str


class DiffBody:
    """A unified diff without its head: line numbers, signs, and a colour that only repeats what the sign says."""

    def __init__(self, diff: str) -> None:
        rows = list(_diff_rows(diff.rstrip("\n").split("\n")))
        several = sum(row.sign == "file" for row in rows) > 1
        self._rows = [row for row in rows if several or row.sign != "file"]
        self._gutter = max((len(str(row.number)) for row in self._rows), default=1)

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, index: int, width: int) -> Iterator[Line]:
        """Yield the lines of a row; number and sign are not part of the text."""
        row = self._rows[index]
        if row.sign in {"⋯", "file"}:
            text = row.text if row.sign == "file" else "⋯"
            yield Line([(text, "path" if row.sign == "file" else "muted")], prefix=((INDENT, "text"),))
            return
        style = {"+": "added", "-": "removed"}.get(row.sign, "output")
        number = f"{row.number:>{self._gutter}}"
        signs = {"+": "added-sign", "-": "removed-sign"}
        sign = (f" {row.sign} ", f"{style} {signs[row.sign]}") if row.sign in signs else ("   ", style)
        first: Runs = ((INDENT, "text"), (number, f"{style} line-number"), sign)
        rest: Runs = ((INDENT, "text"), (" " * (self._gutter + 3), style))
        room = max(width - len(INDENT) - self._gutter - 3, 1)
        fill = style if row.sign in signs else ""
        for start, end in code_cuts(row.text, room):
            runs = [(row.text[start:end], style)] if end > start else []
            yield Line(runs, prefix=rest if start else first, join="" if start else "\n", fill=fill)


def _diff_rows(lines: Sequence[str]) -> Iterator[_DiffRow]:
    """Read a unified diff; how many lines a hunk has is counted, because a line may look like a file's head."""
    old = new = old_left = new_left = 0
    begun = False
    for line in lines:
        if old_left > 0 or new_left > 0:
            sign, text = line[:1], sanitize.code_line(line[1:])
            if sign == "-":
                yield _DiffRow(old, sign, text)
            elif sign == "+":
                yield _DiffRow(new, sign, text)
            elif sign != "\\":
                yield _DiffRow(new, " ", text)
            taken_old, taken_new = int(sign not in {"+", "\\"}), int(sign not in {"-", "\\"})
            old, old_left = old + taken_old, old_left - taken_old
            new, new_left = new + taken_new, new_left - taken_new
        elif hunk := _HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[3])
            old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            if begun:
                yield _DiffRow(0, "⋯", "")
            begun = True
        elif line.startswith("+++ "):
            yield _DiffRow(0, "file", line[4:])
            begun = False
