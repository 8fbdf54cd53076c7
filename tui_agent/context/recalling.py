"""What ``recall`` shows of an entry that is longer than one output may be: its beginning, and the lines in use.

The same text, names and limits give the same lines.
"""

from collections.abc import Mapping, Sequence

from tui_agent.context.anchors import Anchor, find_anchors, names_in
from tui_agent.context.truncation import NOTE_BYTES, OutputLimits, fitting_bytes, utf8_size
from tui_agent.context.view import ContextView
from tui_agent.session.tool_traits import TraitsByName

_HEAD_SHARE = 0.4
"""Share of the room for the beginning of the text."""
_NUMBER_BYTES = 8
"""About what a line's number takes."""
_JUDGED = 200
"""Lines from which is judged how many bytes a token has."""
_LONGEST = 300
"""Characters of a line beyond which it is shown only where it was asked for."""


def names_in_use(view: ContextView, tools: TraitsByName) -> dict[str, float]:
    """Return the names that a view's messages hold, with how likely each is to be used again."""
    anchors: Sequence[Anchor] = find_anchors(view.entries, tools)
    return {anchor.text: anchor.score for anchor in anchors}


def shown_part(text: str, names: Mapping[str, float], limits: OutputLimits) -> str:
    lines = text.split("\n")
    if fits(lines, limits):
        return text
    return "\n".join(lines[at] for at in lines_to_show(lines, names, limits))


def fits(lines: Sequence[str], limits: OutputLimits) -> bool:
    return len(lines) <= limits.lines and sum(utf8_size(line) + 1 for line in lines) <= _room(lines, limits)


def lines_to_show(lines: Sequence[str], names: Mapping[str, float], limits: OutputLimits) -> list[int]:
    """Return the positions of the lines to show of a text that is too long, ascending.

    The beginning first; then the lines in which names in use stand, those worth most for what they take. A name that
    stands in many lines says less of each. What is left of the room goes on from the beginning.
    """
    room = _room(lines, limits) - NOTE_BYTES
    most = limits.lines
    head = _fitting(lines, range(len(lines)), round(room * _HEAD_SHARE), most)
    left = room - sum(utf8_size(lines[at]) + 1 for at in head)
    chosen = set(head)
    for at in _by_value(lines, len(head), names):
        cost = utf8_size(lines[at]) + _NUMBER_BYTES
        if cost <= left and len(chosen) < most:
            chosen.add(at)
            left -= cost
    return sorted(chosen | set(_fitting(lines, range(len(head), len(lines)), left, most - len(chosen))))


def _room(lines: Sequence[str], limits: OutputLimits) -> int:
    return fitting_bytes("\n".join(lines[:_JUDGED]), limits)


def _by_value(lines: Sequence[str], start: int, names: Mapping[str, float]) -> list[int]:
    """Return the positions from ``start`` on of lines that hold names, those worth most for their length first."""
    places: dict[str, list[int]] = {}
    for at in range(start, len(lines)):
        if len(lines[at]) <= _LONGEST:
            for name in names_in(lines[at]):
                if name in names:
                    places.setdefault(name, []).append(at)
    values: dict[int, float] = {}
    for name, found in places.items():
        for at in found:
            values[at] = values.get(at, 0.0) + names[name] / len(found)
    return sorted(values, key=lambda at: (-values[at] / (utf8_size(lines[at]) + _NUMBER_BYTES), at))


def _fitting(lines: Sequence[str], places: range, room: int, most: int) -> list[int]:
    taken: list[int] = []
    for at in places[: max(0, most)]:
        room -= utf8_size(lines[at]) + 1
        if room < 0:
            break
        taken.append(at)
    return taken
