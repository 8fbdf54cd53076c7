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
    pairs = [(_indent_of(a), _indent_of(b)) for a, b in zip(old, there, strict=True) if a.strip()]
    narrower, wider = pairs[0]
    rows = lines_of(new)
    if wider.endswith(narrower):
        prefix = wider[: len(wider) - len(narrower)]
        if all(there == prefix + here for here, there in pairs):
            return "".join(prefix + row if row.strip() else row for row in rows)
    elif narrower.endswith(wider):
        prefix = narrower[: len(narrower) - len(wider)]
        fits = all(row.startswith(prefix) for row in rows if row.strip())
        if fits and all(here == prefix + there for here, there in pairs):
            return "".join(row.removeprefix(prefix) for row in rows)
    return _rescaled(pairs, rows)


def _indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _rescaled(pairs: Sequence[tuple[str, str]], rows: Sequence[str]) -> str | None:
    """Return the text with so many of the file's characters for each of its own, and so many more."""
    used_here, used_there = ({*"".join(indents)} for indents in zip(*pairs, strict=True))
    if len(used_here) != 1 or len(used_there) != 1:
        return None
    points = {(len(here), len(there)) for here, there in pairs}
    if used_here != used_there:
        points.add((0, 0))
    (first, first_there) = min(points)
    (last, last_there) = max(points)
    if first == last or first_there == last_there:
        return None
    factor = Fraction(last_there - first_there, last - first)
    scaled: dict[str, str] = {}
    indents = {here for here, _there in pairs}
    indents.update(_indent_of(row) for row in rows if row.strip())
    for indent in indents:
        width = first_there + factor * (len(indent) - first)
        if width < 0 or width.denominator != 1 or not set(indent) <= used_here:
            return None
        scaled[indent] = min(used_there) * int(width)
    if 1 not in factor.as_integer_ratio() or any(scaled[here] != there for here, there in pairs):
        return None
    out: list[str] = []
    for row in rows:
        indent = _indent_of(row)
        if row.strip():
            out.append(scaled[indent] + row.removeprefix(indent))
        else:
            out.append(row)
    return "".join(out)
