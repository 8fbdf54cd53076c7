"""A text without differences that don't matter to an edit, and the way back; pure."""

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
"""Characters that models write plainly; each stands for one, so that places stay."""

_CARRIAGE_RETURNS = re.compile(r"\r(?=\n)")
_TRAILING = re.compile(r"(?<![ \t\r])[ \t\r]++(?=\n|\Z)")  # tried once for each run of white space


@frozen
class Folded:
    """A text without some spans.

    ``cuts`` are positions in it, ``removed`` how much was cut up to each.
    """

    text: str
    cuts: list[int]
    removed: list[int]

    def start_in_original(self, position: int) -> int:
        return self._moved(position, cuts_before=bisect.bisect_right(self.cuts, position))

    def end_in_original(self, position: int) -> int:
        """Return the place of the end of a span; a part cut right after it does not belong to it."""
        return self._moved(position, cuts_before=bisect.bisect_left(self.cuts, position))

    def _moved(self, position: int, *, cuts_before: int) -> int:
        if cuts_before == 0:
            return position
        return position + self.removed[cuts_before - 1]


@frozen
class Fold:
    """A kind of differences: what is cut, and whether typographic characters count as plain ones."""

    pattern: re.Pattern[str]
    typographic: bool = False
    trims_line_ends: bool = False

    def folded(self, text: str) -> Folded:
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
