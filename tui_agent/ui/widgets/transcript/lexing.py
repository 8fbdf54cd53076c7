"""Computes syntax colors with Pygments, one chunk of code at a time.

The lexing of a chunk starts in the state that the lexer had at the end of the previous chunk.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from pygments.lexer import Lexer, RegexLexer  # type: ignore[import-untyped]  # Pygments has no types
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename  # type: ignore[import-untyped]  # Pygments has no types
from pygments.token import Token, Whitespace  # type: ignore[import-untyped]  # Pygments has no types
from pygments.util import ClassNotFound  # type: ignore[import-untyped]  # Pygments has no types

from tui_agent.ui.widgets.transcript.lines import StyledSpan, StyledSpans, span_of
from tui_agent.ui.widgets.transcript.time_limit import limited

_SECONDS: Final = 0.2
"""Maximum processor time for a chunk, in seconds. Some lexers take minutes for unusual code."""

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
    """Return the Pygments lexer for a language or file name.

    Returns None if Pygments has no such lexer.
    """
    try:
        find: Callable[..., Lexer] = get_lexer_by_name
        if "." in language:
            find = get_lexer_for_filename
        return find(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def highlight_lines(
    language: str, lines: Sequence[str], state: tuple[str, ...], base: str
) -> tuple[list[StyledSpans], tuple[str, ...]]:
    """Return the spans of each line, and the lexer's state after the last line.

    Syntax styles are added to the style ``base``. ``language`` may also be a file name. If Pygments
    has no lexer for the language, the spans have only the style ``base``. ``state`` is the lexer's
    state before the first line.

    Raises:
        TooLongError: the lexer took more than 0.2 seconds of processor time.
    """
    lexer = _lexer(language)
    if lexer is None:
        return [span_of(line, base) for line in lines], state
    with limited(_SECONDS):
        text = "\n".join(lines) + "\n"
        # Only plain regex lexers can start in a state other than the initial one.
        if (
            isinstance(lexer, RegexLexer)
            and type(lexer).get_tokens_unprocessed is RegexLexer.get_tokens_unprocessed
        ):
            tokens, state = _lex_from(lexer, text, state)
        else:
            tokens = [(kind, value) for _, kind, value in lexer.get_tokens_unprocessed(text)]
            state = ("root",)
    return _split_rows(tokens, base, len(lines)), state


def _split_rows(tokens: Iterable[tuple[Any, str]], base: str, count: int) -> list[StyledSpans]:
    rows: list[StyledSpans] = []
    row: list[StyledSpan] = []
    for kind, value in tokens:
        name = _style_of(kind)
        style = base
        if name:
            style = f"{base} {name}"
        first, *others = value.split("\n")
        if first:
            row.append((first, style))
        for part in others:
            rows.append(_merged(row))
            row = []
            if part:
                row = [(part, style)]
    if row:
        rows.append(_merged(row))
    return rows[:count]


def _merged(row: list[StyledSpan]) -> StyledSpans:
    """Return the spans of a row, with adjacent spans of the same style merged."""
    merged: list[StyledSpan] = []
    for text, style in row:
        if merged and merged[-1][1] == style:
            merged[-1] = (merged[-1][0] + text, style)
        else:
            merged.append((text, style))
    return tuple(merged)


def _lex_from(
    lexer: RegexLexer, text: str, state: tuple[str, ...]
) -> tuple[list[tuple[Any, str]], tuple[str, ...]]:
    """Lex as ``RegexLexer.get_tokens_unprocessed`` does, but start in the given state.

    Returns the tokens as (kind, text), and the lexer's state after the last token.
    """
    definitions: dict[str, Any] = lexer._tokens  # noqa: SLF001 - there is no public way to the rules
    stack = list(state)
    tokens: list[tuple[Any, str]] = []
    position = 0
    length = len(text)
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
    if isinstance(change, int):
        del stack[max(len(stack) + change, 1) :]
        return
    for name in change if isinstance(change, tuple) else (change,):
        if name == "#pop":
            if len(stack) > 1:
                stack.pop()
        else:
            stack.append(stack[-1] if name == "#push" else name)
