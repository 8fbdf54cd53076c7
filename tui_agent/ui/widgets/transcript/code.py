"""Source code with syntax colors. The colors are computed only for lines that are shown.

Code is lexed in chunks of `CHUNK` lines. The lexer's state at the end of a chunk is passed to the
next one, and it is reset every `RESET` lines. Computing the colors of a line therefore takes a
bounded amount of work. The colors depend neither on which lines were shown before, nor on the
pieces in which the code arrived.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tui_agent.ui.widgets.transcript.lines import Line, StyledSpan, StyledSpans, cells, span_of
from tui_agent.ui.widgets.transcript.sanitize import TAB_SIZE
from tui_agent.ui.widgets.transcript.time_limit import TooLongError

CHUNK: Final = 50
"""Number of lines that are lexed together."""
RESET: Final = 400
"""Number of lines after which the lexer starts again in its initial state."""

LONG_LINE: Final = 1_000
"""Maximum length of a line of code, in characters, that is shown in color.

If a chunk contains a longer line, the whole chunk has no colors.
"""

PLAIN: Final = frozenset({"", "text", "txt", "plain", "plaintext"})


def language_of_path(path: str) -> str:
    """Return the name to use as `Code.language` for a file.

    This is the file's name, or "" if the name has no extension.
    """
    name = path.rstrip().rpartition("/")[2]
    if "." in name:
        return name
    return ""


class Code:
    """Lines of code in one language, to which more lines can be added.

    The caller must sanitize the lines. ``language`` is a language name that Pygments knows, or a
    file name. ``base`` is the style of code that has no syntax color.
    """

    def __init__(self, language: str, base: str = "code") -> None:
        self.language = language
        self.base = base
        self.lines: list[str] = []
        self._chunks: dict[int, list[StyledSpans]] = {}
        self._states: dict[int, tuple[str, ...]] = {}

    def replace(self, start: int, lines: Iterable[str]) -> None:
        """Replace all lines from the index ``start`` to the end with ``lines``."""
        del self.lines[start:]
        self.lines.extend(line.expandtabs(TAB_SIZE) for line in lines)
        first = start // CHUNK
        for chunk in [chunk for chunk in self._chunks if chunk >= first]:
            del self._chunks[chunk]
        for chunk in [chunk for chunk in self._states if chunk > first]:
            del self._states[chunk]

    def spans(self, index: int) -> StyledSpans:
        """Return the line at an index as spans with syntax colors. The result is cached."""
        chunk = index // CHUNK
        rows = self._chunks.get(chunk)
        if rows is None:
            rows = self._chunks[chunk] = self._colour(chunk)
        place = index - chunk * CHUNK
        if place < len(rows):
            return rows[place]
        return ()

    def _colour(self, chunk: int) -> list[StyledSpans]:
        lines = self.lines[chunk * CHUNK : (chunk + 1) * CHUNK]
        if self.language in PLAIN or any(len(line) > LONG_LINE for line in lines):
            return [span_of(line, self.base) for line in lines]
        # Import Pygments only now, when the first code is drawn.
        from tui_agent.ui.widgets.transcript.lexing import highlight_lines

        state: tuple[str, ...] = ("root",)
        if chunk % (RESET // CHUNK):
            if chunk not in self._states:
                self.spans((chunk - 1) * CHUNK)
            state = self._states.get(chunk, state)
        try:
            rows, self._states[chunk + 1] = highlight_lines(self.language, lines, state, self.base)
        except TooLongError:
            self.language = ""
            return self._colour(chunk)
        return rows


class CodeLine(Line):
    """A line of code, or a part of a wrapped line. Its colors are computed when it is drawn."""

    __slots__ = ("_code", "_end", "_index", "_start")

    def __init__(  # noqa: PLR0913 - a line is made once, all of it
        self,
        code: Code,
        index: int,
        start: int,
        end: int,
        *,
        prefix: StyledSpans = (),
        tail: StyledSpans = (),
        lead: str = "",
    ) -> None:
        super().__init__(
            prefix=prefix,
            tail=tail,
            join="" if start else "\n",
            lead="" if start else lead,
            fill=code.base,
        )
        self._code = code
        self._index = index
        self._start = start
        self._end = end

    def content(self) -> Sequence[StyledSpan]:
        spans = self._code.spans(self._index)
        if not self._start and self._end >= len(self._code.lines[self._index]):
            return spans
        return slice_spans(spans, self._start, self._end)

    @property
    def block(self) -> str:
        """The text of the whole code block that contains this line."""
        return "\n".join(self._code.lines)

    @property
    def text(self) -> str:
        return self._code.lines[self._index][self._start : self._end]


def code_cuts(line: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end offset of each part into which a line of code is wrapped.

    Each part is at most ``width`` cells wide. An empty line consists of one empty part.
    """
    if line.isascii():
        for start in range(0, max(len(line), 1), width):
            yield start, min(start + width, len(line))
        return
    start = used = 0
    for index, character in enumerate(line):
        size = cells(character)
        if used + size > width and index > start and size:
            yield start, index
            start = index
            used = 0
        used += size
    yield start, len(line)


def slice_spans(spans: StyledSpans, start: int, end: int) -> StyledSpans:
    """Return the part of ``spans`` between two character offsets."""
    found: list[StyledSpan] = []
    offset = 0
    for text, style in spans:
        part = text[max(start - offset, 0) : max(end - offset, 0)]
        if part:
            found.append((part, style))
        offset += len(text)
    return tuple(found)
