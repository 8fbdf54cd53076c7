"""Chooses which lines of an overlong text to show.

They are its beginning, the lines with names that the conversation still uses, and an outline of the
rest: first whole lines, then lines cut to the names in them. The same text, names and limits always
give the same lines. The ``recall`` tool shows entries this way, and large files are shortened the
same way when they are sent again after a compaction.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from heapq import heapify, heappop, heapreplace

from tui_agent.context.anchors import find_anchors, names_in
from tui_agent.context.truncation import NOTE_BYTES, OutputLimits, fitting_bytes, utf8_size
from tui_agent.context.view import ContextView
from tui_agent.lazy import LazyPattern
from tui_agent.session.tool_traits import TraitsByName

_HEAD_SHARE = 0.05
"""Share of the output for the beginning of the text."""
_USED_SHARE = 0.1
"""Share of the room left after the beginning that goes to lines with names in use."""
_NAMES_SHARE = 0.7
"""Share of the room left after those lines that goes to lines cut to their names."""
_CUT = "… "
"""Prefix of a line that is cut to its names."""
_NUMBER_BYTES = 8
"""Bytes assumed for a line's number in the output."""
_WORD = LazyPattern(r"[\w$@][\w$@./:#-]{2,198}[\w$]")
_PLAIN = LazyPattern(r"[A-Z]?[a-z]+(?:-[a-z]+)*|[A-Z]+|[\d.:-]+")
"""Matches a word of prose or a number, which is not a name."""
_JUDGED = 200
"""Number of lines at a text's beginning from which its bytes per token are estimated."""
_LONGEST = 300
"""Maximum length, in characters, of a line that the outline shows whole."""

_ROOMY = 6_000
"""Tokens up to which a recalled entry may be three times as long as other outputs."""


def names_in_use(view: ContextView, tools: TraitsByName) -> dict[str, float]:
    """Return the names (and other anchors) in a view's entries, with their scores.

    A higher score means that the name is more likely to be used again.
    """
    return {anchor.text: anchor.score for anchor in find_anchors(view.entries, tools)}


def recall_limits(limits: OutputLimits) -> OutputLimits:
    """Return the limits of a recalled entry, which may be longer than other outputs.

    ``limits`` are those of other outputs.
    """
    return replace(limits, tokens=max(limits.tokens, min(3 * limits.tokens, _ROOMY)))


def fits(lines: Sequence[str], limits: OutputLimits) -> bool:
    return len(lines) <= limits.lines and sum(utf8_size(line) + 1 for line in lines) <= _room(
        lines, limits
    )


def outline(
    lines: Sequence[str], names: Mapping[str, float], limits: OutputLimits
) -> list[tuple[int, str]]:
    """Return (index, text) of the lines to show of a text that is too long, by ascending index.

    Lines are chosen in four rounds: the text's beginning; lines with names in use, those with the
    highest scores for their size first (a name in many lines counts less in each); lines with the
    most names that no chosen line has; the other lines, cut to such names. ``names`` are the names
    in use with their scores.
    """
    room = _room(lines, limits) - NOTE_BYTES
    head = _fitting(lines, range(len(lines)), round(room * _HEAD_SHARE), limits.lines)
    chosen = set(head)
    left = room - sum(utf8_size(lines[at]) + 1 for at in head)
    names_of = {at: _names_of(line) for at, line in enumerate(lines)}
    short = {at: found for at, found in names_of.items() if len(lines[at]) <= _LONGEST}
    spared = round(left * (1 - _USED_SHARE))
    for at in _by_value(lines, short, names):
        cost = _cost(lines[at])
        if at not in chosen and left - cost >= spared and len(chosen) < limits.lines:
            chosen.add(at)
            left -= cost
    spared = round(left * _NAMES_SHARE)
    for at in _by_new_names(lines, short, frozenset(chosen)):
        cost = _cost(lines[at])
        if cost > left - spared or len(chosen) >= limits.lines:
            break
        chosen.add(at)
        left -= cost
    shown = {at: lines[at] for at in chosen}
    said = "\n".join(shown.values())
    known = set[str]().union(*(names_of[at] for at in chosen))
    for at, found in names_of.items():
        row = ""
        for name in sorted(found - known, key=lambda name: (-len(name), name)):
            longer = f"{row}, {name}" if row else f"{_CUT}{name}"
            if _cost(longer) > left:
                break
            if name not in said and name not in row:
                row = longer
        if row and len(shown) < limits.lines:
            row = min(lines[at], row, key=len)
            shown[at] = row
            said += row
            known |= found
            left -= _cost(row)
    rest = _fitting(lines, range(len(head), len(lines)), left, limits.lines - len(shown))
    return sorted((shown | {at: lines[at] for at in rest}).items())


def _names_of(line: str) -> set[str]:
    names = names_in(line)
    names.update(word for word in _WORD.findall(line) if not _PLAIN.fullmatch(word))
    return names


def _room(lines: Sequence[str], limits: OutputLimits) -> int:
    return fitting_bytes("\n".join(lines[:_JUDGED]), limits)


def _cost(line: str) -> int:
    return utf8_size(line) + _NUMBER_BYTES


def _by_value(
    lines: Sequence[str], names_of: Mapping[int, set[str]], used: Mapping[str, float]
) -> list[int]:
    """Return the indexes of lines with names in use, best value for the line's size first."""
    places: dict[str, list[int]] = {}
    for at, names in names_of.items():
        for name in names & used.keys():
            places.setdefault(name, []).append(at)
    values: dict[int, float] = {}
    for name, found in sorted(places.items()):
        for at in found:
            values[at] = values.get(at, 0.0) + used[name] / len(found)
    return sorted(values, key=lambda at: (-values[at] / _cost(lines[at]), at))


def _by_new_names(
    lines: Sequence[str], names_of: Mapping[int, set[str]], shown: AbstractSet[int]
) -> Iterator[int]:
    """Yield the indexes of lines, starting with those with the most new names for their size.

    A name is new if it is in no line of ``shown`` and in no line yielded before.
    """
    known: set[str] = set()
    heap: list[tuple[float, int]] = []
    for at, names in names_of.items():
        if at in shown:
            known |= names
        elif names:
            heap.append((-len(names) / _cost(lines[at]), at))
    heapify(heap)
    while heap:
        worth, at = heap[0]
        now = -len(names_of[at] - known) / _cost(lines[at])
        if not now:
            heappop(heap)
        elif now > worth:
            heapreplace(heap, (now, at))
        else:
            known |= names_of[at]
            yield heappop(heap)[1]


def _fitting(lines: Sequence[str], places: range, room: int, most: int) -> list[int]:
    taken: list[int] = []
    for at in places[: max(0, most)]:
        room -= utf8_size(lines[at]) + 1
        if room < 0:
            break
        taken.append(at)
    return taken
