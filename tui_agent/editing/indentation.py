"""Restores the file's indentation in a block that a model copied with other indentation. Pure.

Either all lines are shifted by the same white space, or their indentation differs by a factor, such
as tabs for spaces or two spaces for four.
"""

from collections.abc import Sequence
from fractions import Fraction

from tui_agent.text_files.lines import lines_of


def reindented(old: Sequence[str], file_lines: Sequence[str], new: str) -> str | None:
    """Return ``new`` with the file's indentation; None if no single shift or factor fits all lines.

    Args:
        old: the lines that the model wants to replace.
        file_lines: the lines of the file that match ``old`` if white space around them is ignored.
        new: the text to convert, indented like ``old``.
    """
    pairs: list[tuple[str, str]] = []
    for line, file_line in zip(old, file_lines, strict=True):
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
    """Return the rows with their indentation scaled by a factor and shifted by a constant.

    Factor and constant follow from ``pairs``, the indentations of each line in ``old`` and in the
    file. Returns None if one side mixes tabs and spaces, if the pairs don't fit one factor, if the
    factor is neither a whole number nor one divided by a whole number, or if a row's indentation
    can't be converted.
    """
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
