"""Blocks that a model copied with other indentation; pure.

Either every line is shifted by the same white space, or every line's indentation is the same
multiple: tabs for spaces, two spaces for four.
"""

from collections.abc import Sequence
from fractions import Fraction

from tui_agent.text_files.lines import lines_of


def reindented(old: Sequence[str], there: Sequence[str], new: str) -> str | None:
    """Return a new text with the file's indentation; None when the lines don't all differ alike.

    Args:
        old: the lines that were looked for.
        there: the lines the file has in their place, alike but for white space at their ends.
        new: the text for them, indented like ``old``.
    """
    pairs: list[tuple[str, str]] = []
    for line, file_line in zip(old, there, strict=True):
        if line.strip():
            pairs.append((_indent_of(line), _indent_of(file_line)))
    narrower, wider = pairs[0]
    rows = lines_of(new)
    if wider.endswith(narrower):
        prefix = wider.removesuffix(narrower)
        if all(there == prefix + here for here, there in pairs):
            return "".join(prefix + row if row.strip() else row for row in rows)
    elif narrower.endswith(wider):
        prefix = narrower.removesuffix(wider)
        fits = all(row.startswith(prefix) for row in rows if row.strip())
        if fits and all(here == prefix + there for here, there in pairs):
            return "".join(row.removeprefix(prefix) for row in rows)
    return _rescaled(pairs, rows)


def _indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _rescaled(pairs: Sequence[tuple[str, str]], rows: Sequence[str]) -> str | None:
    """Return the text with so many of the file's characters for each of its own, and so many more."""
    used_here: set[str] = set()
    used_there: set[str] = set()
    points: set[tuple[int, int]] = set()
    for here, there in pairs:
        used_here.update(here)
        used_there.update(there)
        points.add((len(here), len(there)))
    if len(used_here) != 1 or len(used_there) != 1:
        return None
    if used_here != used_there:
        points.add((0, 0))
    (first, first_there) = min(points)
    (last, last_there) = max(points)
    if first == last or first_there == last_there:
        return None
    factor = Fraction(last_there - first_there, last - first)
    scaled: dict[str, str] = {}
    indents = {_indent_of(row) for row in rows if row.strip()}
    for indent in indents.union(dict(pairs)):
        width = first_there + factor * (len(indent) - first)
        if width < 0 or width.denominator != 1 or not set(indent) <= used_here:
            return None
        scaled[indent] = min(used_there) * int(width)
    if 1 not in factor.as_integer_ratio():
        return None
    for here, there in pairs:
        if scaled[here] != there:
            return None
    out: list[str] = []
    for row in rows:
        indent = _indent_of(row)
        if row.strip():
            out.append(scaled[indent] + row.removeprefix(indent))
        else:
            out.append(row)
    return "".join(out)
