"""Lines of a text, counted in one way everywhere: only a line feed ends a line. Pure.

So do git, ripgrep, ``wc`` and compilers. A lone carriage return, a form feed and U+2028 are
characters of their line.
"""

import io
import re


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their endings."""
    return list(io.StringIO(text, newline="\n"))


def numbered(text: str) -> list[str]:
    """Return the lines of a text as tools show them: number from 1, tab, line without its ending."""
    return [f"{number}\t{line.rstrip()}" for number, line in enumerate(lines_of(text), 1)]


def line_at(text: str, position: int) -> int:
    """Return the number of the line that a position is in, counted from 1."""
    return text.count("\n", 0, position) + 1


def newline_of(text: str) -> str:
    """Return the line ending that most lines of a text have; a line feed when there is none."""
    feeds = text.count("\n")
    return "\r\n" if text.count("\r\n") * 2 > feeds else "\n"


def with_newlines(text: str, newline: str) -> str:
    return re.sub(r"\r?\n", newline, text)
