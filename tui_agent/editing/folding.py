"""Normalises texts for comparison ("folds" them), and maps positions back to the original. Pure."""

import bisect
import re

from tui_agent.lazy import frozen

TYPOGRAPHIC = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " "),
    }
)
"""Maps typographic characters to the plain ones that models write instead, one to one, so that
positions stay the same."""

_CARRIAGE_RETURNS = re.compile(r"\r(?=\n)")
_TRAILING = re.compile(r"(?<![ \t\r])[ \t\r]++(?=\n|\Z)")  # tries each run of white space once


@frozen
class Folded:
    """A text after some spans were removed from it."""

    text: str
    """The original text without the removed spans. Typographic characters may be replaced."""
    cuts: list[int]
    """Positions in ``text`` at which spans of the original were removed, in ascending order."""
    removed: list[int]
    """For each position in ``cuts``, the total number of characters removed up to there, including
    the span at this position."""

    def start_in_original(self, position: int) -> int:
        """Return where a span starts in the original, after any text removed at ``position``."""
        return self._moved(position, cuts_before=bisect.bisect_right(self.cuts, position))

    def end_in_original(self, position: int) -> int:
        """Return where a span ends in the original, before any text removed at ``position``."""
        return self._moved(position, cuts_before=bisect.bisect_left(self.cuts, position))

    def _moved(self, position: int, *, cuts_before: int) -> int:
        if cuts_before == 0:
            return position
        return position + self.removed[cuts_before - 1]


@frozen
class Fold:
    """A kind of difference that is ignored when searching for a text, such as white space."""

    pattern: re.Pattern[str]
    """Matches the spans that the fold removes from a text."""
    typographic: bool = False
    """Whether typographic characters are replaced with plain ones."""
    trims_line_ends: bool = False
    """Whether the pattern removes white space at line ends."""

    def folded(self, text: str) -> Folded:
        """Normalise a text by removing the differences that this fold ignores."""
        pieces: list[str] = []
        cuts: list[int] = []
        removed: list[int] = []
        total = 0
        position = 0
        for match in self.pattern.finditer(text):
            pieces.append(text[position : match.start()])
            cuts.append(match.start() - total)
            total += match.end() - match.start()
            removed.append(total)
            position = match.end()
        pieces.append(text[position:])
        joined = "".join(pieces)
        if self.typographic:
            joined = joined.translate(TYPOGRAPHIC)
        return Folded(joined, cuts, removed)


LINE_ENDINGS = Fold(_CARRIAGE_RETURNS)
LINE_ENDS = Fold(_TRAILING, trims_line_ends=True)
PLAIN_CHARACTERS = Fold(_TRAILING, typographic=True, trims_line_ends=True)
