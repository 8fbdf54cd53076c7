"""Fuzzy matching with scores like those of fzf, as pure functions.

Letters at the start of a word and capitals earn points, and gaps cost points. Textual's own search
is exponential in the length of the text; this one is linear in the number of times that the query's
letters occur. Source of the points: https://github.com/junegunn/fzf, ``algo.go``.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tui_agent.app.format import lower_case
from tui_agent.lazy import frozen

_LETTER = 16
_CASE = 1
"""Extra points for a matching letter if its case matches, too."""
_CONSECUTIVE = 4
_FIRST_FACTOR = 2
"""Factor by which the bonus of the query's first letter is multiplied."""
_NAME_START = 10
_WORD_START = 8
_CAPITAL = 7
_GAP = 3
_GAP_LETTER = 1
_SEPARATORS = frozenset("_-. :,#()[]")


@frozen
class Match:
    """The score of a fuzzy match, and the offsets of the matched letters in the text.

    If nothing matched, the score is 0 and there are no offsets.
    """

    score: float = 0.0
    offsets: tuple[int, ...] = ()


class _Place(NamedTuple):
    """A place where a query letter occurs in the text.

    ``score`` is the best score of the query up to that letter.
    """

    at: int
    score: int
    run: int
    """Bonus for each letter in the run of adjacent matching letters that ends at this letter."""
    before: "_Place | None" = None


def fuzzy_match(query: str, text: str) -> Match:
    """Find the letters of a query in a text, in order and ignoring case; return the best match.

    Returns an empty match if the text does not contain the letters, or the query is empty.
    """
    wanted = lower_case(query)
    lower = lower_case(text)
    if not wanted:
        return Match()
    places: list[_Place] = []
    for index, letter in enumerate(wanted):
        row = _places_of(
            letter, query[index], text=text, lower=lower, before=places if index else None
        )
        if not row:
            return Match()
        places = row
    best = max(places, key=_score_of)
    return Match(float(best.score), _offsets(best))


def shifted(match: Match, by: int) -> Match:
    """Return a match with all its offsets increased by ``by``."""
    return replace(match, offsets=tuple(offset + by for offset in match.offsets))


def _places_of(
    letter: str, written: str, *, text: str, lower: str, before: Sequence[_Place] | None
) -> list[_Place]:
    """Return the places of a query letter in the text, in order, each with its best score.

    ``before`` contains the places of the query's previous letter; it is None for the first letter.
    Only occurrences after the first of these places count. ``written`` is the letter as the user
    wrote it.
    """
    row: list[_Place] = []
    passed = 0
    nearest: _Place | None = None
    at = lower.find(letter, before[0].at + 1 if before else 0)
    while at >= 0:
        own = _LETTER + (_CASE if text[at] == written else 0)
        bonus = _bonus(text, at)
        if before is None:
            row.append(_Place(at, own + _FIRST_FACTOR * bonus, bonus))
        else:
            while passed < len(before) and before[passed].at < at - 1:
                nearest = _better(nearest, before[passed])
                passed += 1
            adjacent = None
            if passed < len(before) and before[passed].at == at - 1:
                adjacent = before[passed]
            row.append(_joined(at, own, bonus, adjacent, nearest))
        at = lower.find(letter, at + 1)
    return row


def _joined(
    at: int, own: int, bonus: int, adjacent: _Place | None, nearest: _Place | None
) -> _Place:
    """Return the `_Place` of a letter at ``at`` that continues a match of the previous letters.

    The previous letter's place is ``adjacent``, directly before ``at``, or ``nearest``, the best
    place before a gap, whichever gives the higher score. ``own`` are the letter's points without
    its ``bonus``.
    """
    follows = None
    if adjacent is not None:
        run = max(adjacent.run, bonus)
        follows = _Place(at, adjacent.score + own + max(run, _CONSECUTIVE), run, adjacent)
    if nearest is None:
        return follows or _Place(at, own + bonus, bonus)
    gap = at - nearest.at - 1
    leaps = _Place(at, nearest.score + own + bonus - _GAP - _GAP_LETTER * gap, bonus, nearest)
    if follows is None or leaps.score > follows.score:
        return leaps
    return follows


def _better(one: _Place | None, other: _Place) -> _Place:
    """Return the place that gives the higher score if the next letter matches after a gap."""
    if one is None or other.score + _GAP_LETTER * other.at > one.score + _GAP_LETTER * one.at:
        return other
    return one


def _bonus(text: str, at: int) -> int:
    """Return the bonus for a match at the letter at ``at``.

    The letter has a bonus if it starts a name, word, number or run of capitals; otherwise the bonus
    is 0.
    """
    before = "/"
    if at:
        before = text[at - 1]
    if before == "/":
        return _NAME_START
    if before in _SEPARATORS:
        return _WORD_START
    letter = text[at]
    is_start = (letter.isupper() and not before.isupper()) or (
        letter.isdigit() and not before.isdigit()
    )
    return _CAPITAL if is_start else 0


def _score_of(place: _Place) -> int:
    return place.score


def _offsets(last: _Place) -> tuple[int, ...]:
    found: list[int] = []
    place: _Place | None = last
    while place is not None:
        found.append(place.at)
        place = place.before
    return tuple(reversed(found))
