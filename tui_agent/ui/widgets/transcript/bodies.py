"""The bodies of blocks, such as output, numbered code, to-do lists and search matches.

A body is laid out row by row, so only the rows that are shown are laid out.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from tui_agent.ui.widgets.transcript.code import Code, CodeLine, code_cuts, language_of_path
from tui_agent.ui.widgets.transcript.lines import Line, StyledSpans, cells, wrapped
from tui_agent.ui.widgets.transcript.sanitize import TAB_SIZE

MAX_ROWS: Final = 2_000
"""Maximum number of rows of a body that the conversation shows.

A separate screen can show a longer body.
"""

_WRAPPED_ROWS: Final = 4
"""Maximum number of lines that one long row may take up while only a part of the body is shown."""

INDENT: Final = "  "

OPEN_WHOLE_HINT: Final = ("o whole", "action act:open")
"""The hint on which a click opens the whole output. Its text names the key for the same action."""

_NUMBERED: Final = re.compile(r"(\d+)\t")
_MATCH: Final = re.compile(r"([^\n:]+):(\d+): ")

_TODO: Final = re.compile(r"\[([ >x-])\] ")
_TODO_STYLES: Final = {
    " ": ("○", "status-idle", "text"),
    ">": ("◐", "status-running", "strong"),
    "x": ("●", "status-ok", "muted"),
    "-": ("–", "status-idle", "muted strike"),
}
"""For each mark in the to-do tool's output: the mark to show, its style and the text's style."""

Keep = Literal["head", "tail", "ends"]
"""Which rows of a long body are shown: the first rows, the last rows, or some of both.

For “ends”, these are the first rows and the last `_END_ROWS` rows.
"""

_END_ROWS: Final = 3


class Body:
    """Base class of bodies, which consist of rows of text that are laid out one by one."""

    _rows: Sequence[Any]

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, index: int, width: int) -> Iterator[Line]:
        """Yield the lines of the row at ``index``, wrapped to ``width`` cells."""
        raise NotImplementedError


def body_lines(
    body: Body, width: int, rows: int | None = None, keep: Keep = "head", *, opens: bool = False
) -> Iterator[Line]:
    """Yield the lines of up to ``rows`` rows of a body.

    If the body has more rows, ``keep`` says which of them are shown, and an extra line says how
    many are left out. A single row is never left out. If ``opens`` is True, the extra line offers
    to open the whole text. A row is cut after `_WRAPPED_ROWS` lines.

    If ``rows`` is None, up to `MAX_ROWS` rows are shown and no row is cut. The extra line always
    offers to open the whole text.
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
    """A body of plain text in one style, with one row for each line of the text."""

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
        self._rows: list[
            str
        ] = []  # These are the line numbers. The texts of the lines are in `_code`.
        code: list[str] = []
        for row in text.rstrip("\n").split("\n"):
            found = _NUMBERED.match(row)
            self._rows.append(found[1] if found else "")
            code.append(row[found.end() :] if found else row)
        self._gutter = max(map(len, self._rows), default=0)
        self._code = Code(language_of_path(path), "output")
        self._code.replace(0, code)

    def row(self, index: int, width: int) -> Iterator[Line]:
        """Yield the lines of a row.

        The line number is part of the line's prefix, which isn't copied with the text.
        """
        number = f"{INDENT}{self._rows[index]:>{self._gutter}} "
        room = max(width - len(number) - 1, 1)
        for start, end in code_cuts(self._code.lines[index], room):
            if not start:
                shown = number
            else:
                shown = " " * len(number)
            yield CodeLine(self._code, index, start, end, prefix=((f"{shown} ", "line-number"),))


class TodoBody(TextBody):
    """A body with a to-do list, which uses the same marks as the side panel."""

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
    """A body with search matches. Each row shows a path, a line number and the matching text."""

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
