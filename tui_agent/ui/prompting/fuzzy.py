"""How well letters fit a text, as fzf scores it: word starts and capitals count, gaps cost. Pure.

Textual's search tries all ways to match, whose number grows exponentially with the length of the
text. Here the best way is found in steps that grow with the number of places at which a letter
stands. Source of the points: https://github.com/junegunn/fzf, ``algo.go``.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tui_agent.lazy import frozen

_LETTER = 16
_CASE = 1
"""A letter that is written the same, capital or not."""
_CONSECUTIVE = 4
_FIRST_FACTOR = 2
"""How much more the start of a word counts for the first letter."""
_NAME_START = 10
_WORD_START = 8
_CAPITAL = 7
_GAP = 3
_GAP_LETTER = 1
_SEPARATORS = frozenset("_-. :,#()[]")


@frozen
class Match:
    """A way to match: its score and the offsets of the letters, in order.

    Without letters nothing matched.
    """

    score: float = 0.0
    offsets: tuple[int, ...] = ()


class _Place(NamedTuple):
    """A letter of the query at a place of the text, with the best score of all letters up to it."""

    at: int
    score: int
    run: int
    """Bonus of the letter with which the run of letters up to this one begins: it counts for the
    whole run."""
    before: "_Place | None" = None


def fuzzy_match(query: str, text: str) -> Match:
    """Return the best way to find the letters of a query in a text in their order, case aside."""
    wanted = query.lower()
    lower = text.lower()
    if not wanted or len(lower) != len(text) or len(wanted) != len(query):
        # Some capitals become two letters.
        at = lower.find(wanted)
        if wanted and at >= 0:
            return Match(float(_LETTER), (at,))
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
    """Return a match with its offsets in a longer text."""
    return replace(match, offsets=tuple(offset + by for offset in match.offsets))


def _places_of(
    letter: str, written: str, *, text: str, lower: str, before: Sequence[_Place] | None
) -> list[_Place]:
    """Return the places of a letter after those of the one before; ``before`` is None for the first letter."""
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
    """Return a place that follows the better of the one right before it and the best one further away."""
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
    """Return the place that is worth more to all later ones: each letter in between costs the same."""
    if one is None or other.score + _GAP_LETTER * other.at > one.score + _GAP_LETTER * one.at:
        return other
    return one


def _bonus(text: str, at: int) -> int:
    """Return what a place is worth by what stands before it."""
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
