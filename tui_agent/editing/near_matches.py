"""What an edit is told whose text is not in the file, or not only once: the lines it comes closest to, as they are."""

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence

_MAX_PLACES = 8
_MAX_LINES = 16
_MAX_CHARS = 200
_COMPARED_LINES = 20_000
_MIN_SIMILARITY = 0.6


def ambiguous(numbers: Sequence[int]) -> str:
    """Return a message that names the lines a text is at; in order."""
    more = ", ..." if len(numbers) > _MAX_PLACES else ""
    return (
        f"old is there {len(numbers)} times (lines {', '.join(map(str, numbers[:_MAX_PLACES]))}{more}). "
        "Add lines around it to name one place, or set all to true."
    )


def closest(text: str, old: str) -> str:
    """Return a message that shows where the text comes closest to what was looked for."""
    lines, wanted = text.removesuffix("\n").split("\n")[:_COMPARED_LINES], old.strip("\n").split("\n")
    if not old.strip():
        return "old is only white space that is not in the file like that."
    start = _best_start(lines, wanted)
    if start is not None:
        return _differing(lines, wanted, start)
    sought = next(line.strip() for line in wanted if line.strip())
    near = difflib.get_close_matches(sought, {line.strip() for line in lines}, n=1, cutoff=_MIN_SIMILARITY)
    if not near:
        return "old was not found, nor anything like it. Read the file again."
    number = next(index for index, line in enumerate(lines) if line.strip() == near[0])
    return "\n".join(["old was not found. Closest is:", *_numbered(lines, range(number, number + 1))])


def _best_start(lines: list[str], old: list[str]) -> int | None:
    """Return the index at which most lines of ``old`` are where they should be."""
    places: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        places.setdefault(line.strip(), []).append(index)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(old):
        if line.strip():
            votes.update(index - offset for index in places.get(line.strip(), ())[:100] if index >= offset)
    return min(votes, key=lambda start: (-votes[start], start)) if votes else None


def _differing(lines: list[str], old: list[str], start: int) -> str:
    end = min(start + len(old), len(lines))
    offset = next(
        (at for at, line in enumerate(old) if start + at >= end or lines[start + at].strip() != line.strip()), None
    )
    if offset is None:
        told, middle = f"Lines {start + 1}-{end} differ from it in white space only, copy them exactly:", start
    elif start + offset >= end:
        told, middle = f"The file ends after line {end}, old goes on with {_short(old[offset])}:", end
    else:
        told, middle = (
            f"Closest is this, but line {start + offset + 1} in old is {_short(old[offset])}:",
            start + offset,
        )
    first = max(start, min(middle - _MAX_LINES // 2, end - _MAX_LINES))
    return "\n".join([f"old was not found. {told}", *_numbered(lines, range(first, min(end, first + _MAX_LINES)))])


def _numbered(lines: Sequence[str], places: Iterable[int]) -> list[str]:
    """Return lines as `read` shows them, so that they can be copied."""
    return [f"{place + 1}\t{_cut(lines[place])}" for place in places]


def _short(line: str) -> str:
    return repr(_cut(line.strip()))


def _cut(line: str) -> str:
    line = line.removesuffix("\r")
    return line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]} [...]"
