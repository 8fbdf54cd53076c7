"""Creates the error message for an edit whose text isn't in the file: the closest lines. Pure."""

from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher

_MAX_LINES = 16
"""Maximum number of the file's lines that an error message shows."""
_MAX_CHARS = 200
"""Maximum characters of a line in an error message."""
_COMPARED_LINES = 20_000
"""Number of lines, from the file's beginning, that are searched for similar lines."""
_MIN_SIMILARITY = 0.6
"""Minimum ratio of `SequenceMatcher` for a line to count as similar."""
_MAX_COMPARED = 200
"""Maximum number of lines compared character by character; each comparison takes up to 2 ms."""


def closest(text: str, old: str) -> str:
    """Return the error message for the text ``old``, which wasn't found in the file's ``text``.

    It shows the file's lines that are most like ``old``, with their numbers from 1, or says that no
    line is similar.
    """
    lines = text.removesuffix("\n").split("\n")[:_COMPARED_LINES]
    wanted = old.strip("\n").split("\n")
    if not old.strip():
        return "old is only white space, and the file doesn't have exactly that."
    start = _best_start(lines, wanted)
    if start is not None:
        return _differing(lines, wanted, start)
    sought = old.strip().partition("\n")[0].strip()[:_MAX_CHARS]
    begins = [line.strip()[:_MAX_CHARS] for line in lines]
    near = _most_alike(sought, begins)
    if near is None:
        return "old was not found, and no line is similar to it. Read the file again."
    number = begins.index(near)
    return f"old was not found. The closest line is:\n{number + 1}\t{_cut(lines[number])}"


def _most_alike(sought: str, lines: Iterable[str]) -> str | None:
    """Return the line that is most similar to ``sought``; None if no line is similar.

    Of equally similar lines, the first is returned. At most ``_MAX_COMPARED`` promising lines are
    compared character by character.
    """
    matcher = SequenceMatcher(b=sought)
    best = _MIN_SIMILARITY
    found = None
    left = _MAX_COMPARED
    for line in dict.fromkeys(lines):
        matcher.set_seq1(line)
        if matcher.real_quick_ratio() < best or matcher.quick_ratio() < best:
            continue
        if (ratio := matcher.ratio()) > best or (found is None and ratio == best):
            best = ratio
            found = line
        left -= 1
        if not left:
            break
    return found


def _best_start(lines: list[str], old: list[str]) -> int | None:
    """Return the index of the line at which most lines match if ``old`` begins there.

    White space around lines is ignored. Returns None if the file contains no line of ``old``.
    """
    places: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        places.setdefault(line.strip(), []).append(index)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(old):
        for index in places.get(line.strip(), [])[:100]:
            if line.strip() and index >= offset:
                votes[index - offset] += 1
    return min(votes, key=lambda start: (-votes[start], start), default=None)


def _differing(lines: list[str], old: list[str], start: int) -> str:
    end = min(start + len(old), len(lines))
    offset = _first_difference(lines[start:end], old)
    if offset is None:
        hint = f"Lines {start + 1}-{end} differ from old only in white space. Copy them exactly:"
        middle = start
    elif start + offset >= end:
        rest = _cut(old[offset].strip())
        hint = f"The file ends after line {end}, but old continues with {rest!r}:"
        middle = end
    else:
        middle = start + offset
        hint = (
            f"The closest is this, but line {middle + 1} in old is {_cut(old[offset].strip())!r}:"
        )
    first = max(start, min(middle - _MAX_LINES // 2, end - _MAX_LINES))
    last = min(end, first + _MAX_LINES)
    numbered = [f"{place + 1}\t{_cut(lines[place])}" for place in range(first, last)]
    return "\n".join([f"old was not found. {hint}", *numbered])


def _first_difference(lines: list[str], old: list[str]) -> int | None:
    """Return the index of the first line of ``old`` that differs from ``lines``; None if all match.

    White space around lines is ignored. A line of ``old`` beyond the end of ``lines`` counts as
    different.
    """
    for at, line in enumerate(old):
        if at >= len(lines) or lines[at].strip() != line.strip():
            return at
    return None


def _cut(line: str) -> str:
    line = line.removesuffix("\r")
    if len(line) <= _MAX_CHARS:
        return line
    return f"{line[:_MAX_CHARS]} [...]"
