"""Splits texts into lines in the same way everywhere: only a line feed ends a line. Pure.

git, ripgrep, ``wc`` and compilers count lines like this. A lone carriage return, a form feed and
U+2028 are characters within a line.
"""

import io
import re


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their endings."""
    return list(io.StringIO(text, newline="\n"))


def numbered(text: str) -> list[str]:
    """Return a text's lines as tools show them: number, tab, line without trailing spaces.

    The numbers begin at 1.
    """
    return [f"{number}\t{line.rstrip()}" for number, line in enumerate(lines_of(text), 1)]


def line_at(text: str, position: int) -> int:
    """Return the number, from 1, of the line that contains a character position."""
    return text.count("\n", 0, position) + 1


def newline_of(text: str) -> str:
    r"""Return "\r\n" if more than half of a text's line endings are "\r\n", otherwise "\n"."""
    feeds = text.count("\n")
    return "\r\n" if text.count("\r\n") * 2 > feeds else "\n"


def with_newlines(text: str, newline: str) -> str:
    return re.sub(r"\r?\n", newline, text)
