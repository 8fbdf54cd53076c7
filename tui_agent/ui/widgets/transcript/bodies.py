"""The bodies of blocks (output, numbered code, to-dos, matches). They are laid out row by row."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from tui_agent.ui.widgets.transcript.code import Code, CodeLine, code_cuts, language_of_path
from tui_agent.ui.widgets.transcript.lines import Line, StyledSpans, cells, wrapped
from tui_agent.ui.widgets.transcript.sanitize import TAB_SIZE

MAX_ROWS: Final = 2_000
"""Maximum number of rows of a body in the transcript. A separate page can show a longer body."""

_WRAPPED_ROWS: Final = 4
"""Maximum number of lines for one long row while a block shows only a part of its body."""

INDENT: Final = "  "

OPEN_WHOLE_HINT: Final = ("o whole", "action act:open")
"""The hint to open a whole output. The text names the key; the style contains the click action."""

_NUMBERED: Final = re.compile(r"(\d+)\t")
_MATCH: Final = re.compile(r"([^\n:]+):(\d+): ")

_TODO: Final = re.compile(r"\[([ >x-])\] ")
_TODO_STYLES: Final = {
    " ": ("○", "status-idle", "text"),
    ">": ("◐", "status-running", "strong"),
    "x": ("●", "status-ok", "muted"),
    "-": ("–", "status-idle", "muted strike"),
}
"""For each mark in the to-do tool's output: the mark shown, its style, and the to-do's style."""

Keep = Literal["head", "tail", "ends"]
"""Which rows of a long body are shown: the first, the last, or both (then the last `_END_ROWS`)."""

_END_ROWS: Final = 3


class Body:
    """Rows of text that are laid out one by one."""

    _rows: Sequence[Any]

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, index: int, width: int) -> Iterator[Line]:
        """Yield the lines of the row at an index, wrapped to ``width`` cells."""
        raise NotImplementedError


def body_lines(
    body: Body, width: int, rows: int | None = None, keep: Keep = "head", *, opens: bool = False
) -> Iterator[Line]:
    """Yield the lines of up to ``rows`` rows of a body. If it has more rows, ``keep`` says which.

    An extra line says how many rows are left out; a single row is never left out. With ``opens``,
    the extra line offers to open the whole text. A row is cut after `_WRAPPED_ROWS` lines.

    If ``rows`` is None, up to `MAX_ROWS` rows are shown, no row is cut, and the extra line always
    makes the offer.
    """
    total = len(body)
    limit = rows
    action = "more"
    if limit is None:
        limit = MAX_ROWS
        action = "open"
    shown = total if total <= limit + 1 else limit
    hidden = total - shown
    last = 0
    if hidden and keep == "tail":
        last = shown
    elif hidden and keep == "ends":
        last = min(_END_ROWS, shown)
    note = f"… {hidden:,} {'earlier' if keep == 'tail' else 'more'} lines"
    whole: StyledSpans = ()
    if opens or action == "open":
        whole = ((" · ", "muted"), OPEN_WHOLE_HINT)
    more = Line(prefix=((INDENT, "text"), (note, f"muted act:{action}"), *whole))
    for index in (*range(shown - last), *range(total - last, total)):
        if hidden and index == total - last:
            yield more
        for count, line in enumerate(body.row(index, width)):
            if rows is not None and count == _WRAPPED_ROWS:
                yield Line([("…", f"muted act:{action}")], prefix=((INDENT, "text"),), join="")
                break
            yield line
    if hidden and not last:
        yield more


class TextBody(Body):
    """Plain text in one style, one row for each line."""

    def __init__(self, text: str, style: str = "output", indent: str = INDENT) -> None:
        if text.strip("\n"):
            self._rows: list[str] = text.rstrip("\n").split("\n")
        else:
            self._rows = []
        self._style = style
        self._prefix: StyledSpans = ((indent, "text"),)

    def row(self, index: int, width: int) -> Iterator[Line]:
        text = self._rows[index].expandtabs(TAB_SIZE)
        spans = []
        if text:
            spans = [(text, self._style)]
        room = max(width - cells(self._prefix[0][0]), 1)
        yield from wrapped(spans, room, self._prefix, self._prefix)


class NumberedBody(Body):
    """Lines of a file as the read tool returns them (number, tab, text), with syntax colors."""

    def __init__(self, text: str, path: str) -> None:
        self._rows: list[str] = []  # The line numbers; the texts are in `_code`.
        code: list[str] = []
        for row in text.rstrip("\n").split("\n"):
            found = _NUMBERED.match(row)
            self._rows.append(found[1] if found else "")
            code.append(row[found.end() :] if found else row)
        self._gutter = max(map(len, self._rows), default=0)
        self._code = Code(language_of_path(path), "output")
        self._code.replace(0, code)

    def row(self, index: int, width: int) -> Iterator[Line]:
        """Yield the lines of a row. The line number is a prefix, so it isn't copied."""
        number = f"{INDENT}{self._rows[index]:>{self._gutter}} "
        room = max(width - len(number) - 1, 1)
        for start, end in code_cuts(self._code.lines[index], room):
            if not start:
                shown = number
            else:
                shown = " " * len(number)
            yield CodeLine(self._code, index, start, end, prefix=((f"{shown} ", "line-number"),))


class TodoBody(TextBody):
    """A to-do list, with the marks that the side panel uses."""

    def row(self, index: int, width: int) -> Iterator[Line]:
        found = _TODO.match(self._rows[index])
        if found is None:
            yield from super().row(index, width)
            return
        mark, style, words = _TODO_STYLES[found[1]]
        first = (*self._prefix, (f"{mark} ", style))
        rest = (*self._prefix, (INDENT, "text"))
        yield from wrapped(
            [(self._rows[index][found.end() :], words)], max(width - 4, 1), first, rest
        )


class MatchBody(TextBody):
    """Search matches, one per row: path, line number and text."""

    def row(self, index: int, width: int) -> Iterator[Line]:
        text = self._rows[index].expandtabs(TAB_SIZE)
        found = _MATCH.match(text)
        if found is None:
            yield from super().row(index, width)
            return
        spans = [
            (found[1], "path"),
            (f":{found[2]}: ", "line-number"),
            (text[found.end() :], "output"),
        ]
        yield from wrapped(spans, max(width - len(INDENT), 1), self._prefix, self._prefix)
