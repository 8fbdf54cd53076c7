"""Indentation of a block that a model copied otherwise than the file has it: how the two differ, and the way back.

Either every line is shifted by the same white space, or every line's indentation is the same multiple: tabs for
spaces, two spaces for four.
"""

from collections.abc import Sequence
from fractions import Fraction

from tui_agent.editing.text_files import lines_of
from tui_agent.lazy import dataclass


def reindented(old: Sequence[str], there: Sequence[str], new: str) -> str | None:
    """Return a new text with the file's indentation; None when the lines don't all differ alike.

    Args:
        old: the lines that were looked for.
        there: the lines the file has in their place, alike but for white space at their ends.
        new: the text for them, indented like ``old``.
    """
    pairs = [(indent_of(a), indent_of(b)) for a, b in zip(old, there, strict=True) if a.strip()]
    shifted = _shifted(pairs, new)
    return _rescaled(pairs, new) if shifted is None else shifted


def indent_of(line: str) -> str:
    """Return the white space a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def _shifted(pairs: Sequence[tuple[str, str]], new: str) -> str | None:
    narrower, wider = pairs[0]
    if wider.endswith(narrower):
        prefix = wider[: len(wider) - len(narrower)]
        if any(there != prefix + here for here, there in pairs):
            return None
        return "".join(prefix + line if line.strip() else line for line in lines_of(new))
    if narrower.endswith(wider):
        prefix = narrower[: len(narrower) - len(wider)]
        if any(here != prefix + there for here, there in pairs):
            return None
        rows = lines_of(new)
        if any(row.strip() and not row.startswith(prefix) for row in rows):
            return None
        return "".join(row.removeprefix(prefix) for row in rows)
    return None


def _rescaled(pairs: Sequence[tuple[str, str]], new: str) -> str | None:
    known = dict(pairs)
    scale = _scale_of(known)
    if scale is None or any(known[here] != there for here, there in pairs):
        return None
    rows = []
    for line in lines_of(new):
        indent = indent_of(line)
        wanted = known.get(indent, scale.applied(indent)) if line.strip() else indent
        if wanted is None:
            return None
        rows.append(wanted + line[len(indent) :])
    return "".join(rows)


@dataclass(frozen=True, slots=True)
class _Scale:
    """So many of one character for each of another, and so many more."""

    here: str
    there: str
    factor: Fraction
    more: Fraction

    def applied(self, indent: str) -> str | None:
        """Return what an indentation becomes; None where that is no whole number of characters."""
        width = self.factor * len(indent) + self.more
        fits = set(indent) <= {self.here} and width >= 0 and width.denominator == 1
        return self.there * int(width) if fits else None


def _scale_of(known: dict[str, str]) -> _Scale | None:
    """Return the scale by which all of some indentations became others."""
    used_here, used_there = set("".join(known)), set("".join(known.values()))
    if len(used_here) != 1 or len(used_there) != 1:
        return None
    points = {(len(here), len(there)) for here, there in known.items()}
    if used_here != used_there:
        points.add((0, 0))
    (first, first_there), (last, last_there) = min(points), max(points)
    if first == last or first_there == last_there:
        return None
    factor = Fraction(last_there - first_there, last - first)
    scale = _Scale(used_here.pop(), used_there.pop(), factor, first_there - factor * first)
    steady = 1 in {factor.numerator, factor.denominator}
    return scale if steady and all(factor * here + scale.more == there for here, there in points) else None
