"""Source code with syntax colours that are computed a few lines at a time, and only for lines that are looked at.

Code is lexed in chunks of ``CHUNK`` lines. The lexer's state is carried from chunk to chunk and starts afresh every
``RESET`` lines, so that colours at any line cost a bounded amount of work and never depend on what was looked at
before, or on whether the code arrived in one piece.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from pygments.lexer import Lexer, RegexLexer  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename  # type: ignore[import-untyped]
from pygments.token import Token, Whitespace  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.lines import Line, Run, Runs, cells

CHUNK: Final = 50
"""Lines lexed at a time."""

RESET: Final = 400
"""Lines after which the lexer starts afresh."""

LONG_LINE: Final = 1_000
"""Characters from which on a line's chunk stays plain: such code is generated, and lexers are slow on it."""

_STYLES: Final = {
    Token.Comment: "syntax-comment",
    Token.Generic.Deleted: "removed",
    Token.Generic.Inserted: "added",
    Token.Generic.Heading: "syntax-keyword",
    Token.Generic.Subheading: "syntax-name",
    Token.Keyword: "syntax-keyword",
    Token.Keyword.Constant: "syntax-constant",
    Token.Name.Attribute: "syntax-name",
    Token.Name.Builtin: "syntax-name",
    Token.Name.Builtin.Pseudo: "syntax-constant",
    Token.Name.Class: "syntax-definition",
    Token.Name.Constant: "syntax-constant",
    Token.Name.Decorator: "syntax-name",
    Token.Name.Function: "syntax-definition",
    Token.Name.Function.Magic: "syntax-definition",
    Token.Name.Tag: "syntax-keyword",
    Token.Literal.Number: "syntax-constant",
    Token.Literal.String: "syntax-string",
    Token.Operator.Word: "syntax-keyword",
}


@lru_cache(maxsize=512)
def _style_of(kind: Any) -> str:
    while kind is not None:
        style = _STYLES.get(kind)
        if style is not None:
            return style
        kind = kind.parent
    return ""


@lru_cache(maxsize=128)
def _lexer(language: str) -> Lexer | None:
    """Return the lexer of a language or file name, or None when there is none (then code stays plain)."""
    if language in {"", "text", "txt", "plain", "plaintext", "console-output"}:
        return None
    try:
        find: Callable[..., Lexer] = get_lexer_for_filename if "." in language else get_lexer_by_name
        return find(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


class Code:
    """Growing lines of code of one language. Lines are harmless and hold no tabs."""

    def __init__(self, language: str, base: str = "code") -> None:
        self.language = language
        self.base = base
        self.lines: list[str] = []
        self._chunks: dict[int, list[Runs]] = {}
        self._states: dict[int, tuple[str, ...]] = {}

    def replace(self, start: int, lines: Iterable[str]) -> None:
        """Put ``lines`` in the place of everything from line ``start`` on."""
        del self.lines[start:]
        self.lines.extend(sanitize.code_line(line) for line in lines)
        first = start // CHUNK
        for chunk in [chunk for chunk in self._chunks if chunk >= first]:
            del self._chunks[chunk]
        for chunk in [chunk for chunk in self._states if chunk > first]:
            del self._states[chunk]

    def runs(self, index: int) -> Runs:
        """Return the coloured text of a line."""
        chunk = index // CHUNK
        rows = self._chunks.get(chunk)
        if rows is None:
            rows = self._chunks[chunk] = self._colour(chunk)
        place = index - chunk * CHUNK
        return rows[place] if place < len(rows) else ()

    def _colour(self, chunk: int) -> list[Runs]:
        lines = self.lines[chunk * CHUNK : (chunk + 1) * CHUNK]
        lexer = _lexer(self.language)
        if lexer is None or any(len(line) > LONG_LINE for line in lines):
            return [((line, self.base),) if line else () for line in lines]
        tokens, state = _lex(lexer, "\n".join(lines) + "\n", self._state_before(chunk))
        self._states[chunk + 1] = state
        return _split_rows(tokens, self.base, len(lines))

    def _state_before(self, chunk: int) -> tuple[str, ...]:
        if chunk % (RESET // CHUNK) == 0:
            return ("root",)
        if chunk not in self._states:
            self.runs((chunk - 1) * CHUNK)
        return self._states.get(chunk, ("root",))


class CodeLine(Line):
    """A part of a line of code, coloured when it is drawn."""

    __slots__ = ("_code", "_end", "_index", "_start")

    def __init__(self, code: Code, index: int, start: int, end: int, *, prefix: Runs = (), lead: str = "") -> None:
        super().__init__(prefix=prefix, join="" if start else "\n", lead="" if start else lead, fill=code.base)
        self._code = code
        self._index = index
        self._start = start
        self._end = end

    def content(self) -> Sequence[Run]:
        """Return the text with its colours."""
        runs = self._code.runs(self._index)
        if not self._start and self._end >= len(self._code.lines[self._index]):
            return runs
        return _part(runs, self._start, self._end)

    @property
    def text(self) -> str:
        """The text without looking at colours."""
        return self._code.lines[self._index][self._start : self._end]


def code_cuts(line: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield where a line of code is cut to fit; code folds anywhere, because its spaces mean something."""
    if line.isascii():
        for start in range(0, max(len(line), 1), width):
            yield start, min(start + width, len(line))
        return
    start = used = 0
    for index, character in enumerate(line):
        size = cells(character)
        if used + size > width and index > start and size:
            yield start, index
            start, used = index, 0
        used += size
    yield start, len(line)


def _part(runs: Runs, start: int, end: int) -> Runs:
    found: list[Run] = []
    offset = 0
    for text, style in runs:
        part = text[max(start - offset, 0) : max(end - offset, 0)]
        if part:
            found.append((part, style))
        offset += len(text)
    return tuple(found)


def _split_rows(tokens: Iterable[tuple[Any, str]], base: str, count: int) -> list[Runs]:
    rows: list[Runs] = []
    row: list[Run] = []
    for kind, value in tokens:
        name = _style_of(kind)
        style = f"{base} {name}" if name else base
        first, *others = value.split("\n")
        if first:
            row.append((first, style))
        for part in others:
            rows.append(_merged(row))
            row = [(part, style)] if part else []
    if row:
        rows.append(_merged(row))
    return rows[:count]


def _merged(row: list[Run]) -> Runs:
    """Join neighbours of one style: lexers split text into more pieces than there are colours."""
    merged: list[Run] = []
    for text, style in row:
        if merged and merged[-1][1] == style:
            merged[-1] = (merged[-1][0] + text, style)
        else:
            merged.append((text, style))
    return tuple(merged)


def _lex(lexer: Lexer, text: str, state: tuple[str, ...]) -> tuple[list[tuple[Any, str]], tuple[str, ...]]:
    """Return the tokens of ``text`` and the state behind it.

    Only plain regular-expression lexers can go on from a state; others start afresh with each chunk.
    """
    if isinstance(lexer, RegexLexer) and type(lexer).get_tokens_unprocessed is RegexLexer.get_tokens_unprocessed:
        return _lex_from(lexer, text, state)
    return [(kind, value) for _, kind, value in lexer.get_tokens_unprocessed(text)], ("root",)


def _lex_from(lexer: RegexLexer, text: str, state: tuple[str, ...]) -> tuple[list[tuple[Any, str]], tuple[str, ...]]:
    """Do what ``RegexLexer.get_tokens_unprocessed`` does, and tell the state at the end, which it keeps to itself."""
    definitions: dict[str, Any] = lexer._tokens  # noqa: SLF001
    stack = list(state)
    tokens: list[tuple[Any, str]] = []
    position, length = 0, len(text)
    while position < length:
        for match_rule, action, change in definitions[stack[-1]]:
            match = match_rule(text, position)
            if match is None:
                continue
            if action is not None:
                if type(action) is type(Token):
                    tokens.append((action, match.group()))
                else:
                    tokens.extend((kind, value) for _, kind, value in action(lexer, match))
            position = match.end()
            if change is not None:
                _change_state(stack, change)
            break
        else:
            if text[position] == "\n":
                stack = ["root"]
                tokens.append((Whitespace, "\n"))
            else:
                tokens.append((Token.Text, text[position]))
            position += 1
    return tokens, tuple(stack)


def _change_state(stack: list[str], change: Any) -> None:
    """Apply one of the state changes a lexer's rule may name."""
    if isinstance(change, int):
        del stack[max(len(stack) + change, 1) :]
        return
    for name in change if isinstance(change, tuple) else (change,):
        if name == "#pop":
            if len(stack) > 1:
                stack.pop()
        else:
            stack.append(stack[-1] if name == "#push" else name)
