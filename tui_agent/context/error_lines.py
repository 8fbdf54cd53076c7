"""Which lines of an output look like errors, and which of them tell the most. Pure."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

_WORDS = (
    "error", "exception", "traceback", "fatal", "panic", "fail", "assert", "segmentation fault", "undefined",
    "unresolved", "not found", "no such", "denied", "refused", "cannot", "unable to", "abort", "timed out",
    "core dumped", "out of memory", "killed", "conflict", "err!", "not ok", "caused by", "not used", "redeclared",
    "missing return", "✕", "✗", "✘",
)  # fmt: skip
"""Looked for first: a search for plain words is far faster on a huge log than a pattern for each line."""

_ERROR = re.compile(
    r"error|exception\b|traceback|\bfatal\b|\bpanic|\bfail(?:ed|ing|ure|ures|s)?\b|assert(?:ion)?\b|segmentation fault"
    r"|\bundefined\b|\bunresolved\b|\bnot found\b|\bno such\b|\bdenied\b|\brefused\b|\bcannot\b|\bunable to\b"
    r"|\babort(?:ed|ing)?\b|\btimed out\b|core dumped|out of memory|\bkilled\b|\bconflict\b|\berr!|\bnot ok\b"
    r"|\bcaused by\b|\b(?:and|is) not used\b|\bredeclared\b|\bmissing return\b|[✕✗✘]",
    re.IGNORECASE,
)
_NO_ERROR = re.compile(
    r"\b(?:0|no|without) (?:errors?|fail\w*|exceptions?)\b|\b(?:errors?|fail\w*)[:=] ?0\b", re.IGNORECASE
)
_FINE = re.compile(r"\bPASS(?:ED)?\b|^\s*(?:test .* \.\.\. )?ok\b|[✓✔√]")
"""Tests that went well: many are named after errors."""

_CLEAR = re.compile(
    r"(?i:(?:error|exception|fatal|panic)(?:\[\w+\])?: )|(?i:\berror [A-Z]{1,4}\d+)|^E  +\S|^Traceback|\bFAIL(?:ED)?\b"
    r"|\bpanicked at\b|^\s*not ok\b|\b(?:ERR!|Caused by:)|\[ERROR\]|undefined reference|\*\*\* \[|[✕✗✘]"
    r"|(?i:segmentation fault|core dumped|out of memory|\bkilled\b)"
)
_PLACE = re.compile(
    r"^\s*(?:[\w.-]*[/\\])*[\w-][\w.-]*\.\w{1,5}:\d+(?P<column>:\d+)?: (?!\s*(?:warning|note|info|debug)\b)",
    re.IGNORECASE,
)
"""A file and a line before a message, as compilers and tests name them."""

_PLACED = re.compile(r"\.\w{1,5}:\d+(?::\d+)?: ")
_POINTER = re.compile(r"\s*--> \S+:\d+")
"""Where the line before it happened, as Rust's compiler says it."""

_MAX_LINE_CHARS = 2_000
"""Characters of a line."""

_MAX_LINES_JUDGED = 8_000
"""Of more lines with a word of an error in them, those in between are not looked at."""

_MAX_SIMILAR_LINES = 3
"""So many lines that differ in numbers only go before others."""


def error_looking(lines: Sequence[str]) -> list[int]:
    """Return the positions of lines that look like errors, ascending."""
    lowered = [line.lower() for line in lines]
    ends = list(accumulate(len(line) + 1 for line in lowered))
    text = "\n".join(lowered)
    found: set[int] = set()
    for word in _WORDS:
        at = text.find(word)
        while at >= 0:
            line = bisect_right(ends, at)
            found.add(line)
            at = text.find(word, ends[line])
    placed = {bisect_right(ends, match.start()) for match in _PLACED.finditer(text)}
    bad = {at for at in _first_and_last(sorted(found), _MAX_LINES_JUDGED) if _looks_bad(lines[at])}
    return sorted(bad | {at for at in placed if _PLACE.match(lines[at][:_MAX_LINE_CHARS])})


def most_informative(lines: Sequence[str], most: int) -> list[int]:
    """Return the positions of at most so many error-looking lines, those that tell the most first.

    What is surely an error goes before what only has a word of one in it, and the third of its kind before the
    fourth. Of too many of a rank the first and the last are taken.
    """
    ranks: dict[int, list[int]] = {rank: [] for rank in range(4)}
    seen: Counter[str] = Counter()
    for at in error_looking(lines):
        line = lines[at][:_MAX_LINE_CHARS]
        kind = re.sub(r"\d+", "0", line.strip())
        seen[kind] += 1
        ranks[2 * (seen[kind] > _MAX_SIMILAR_LINES) + (not _is_clear(line))].append(at)
    chosen: list[int] = []
    for found in ranks.values():
        chosen += _with_pointers(_first_and_last(found, most - len(chosen)), lines)
    return chosen[:most]


def _first_and_last(found: list[int], most: int) -> list[int]:
    if len(found) <= most:
        return found
    last = most // 4
    return [*found[: most - last], *found[len(found) - last :]] if most > 0 else []


def _with_pointers(found: Iterable[int], lines: Sequence[str]) -> list[int]:
    positions: list[int] = []
    for at in found:
        positions.append(at)
        if at + 1 < len(lines) and _POINTER.match(lines[at + 1]):
            positions.append(at + 1)
    return positions


def _is_clear(line: str) -> bool:
    place = _PLACE.match(line)
    return _CLEAR.search(line) is not None or (place is not None and place["column"] is not None)


def _looks_bad(line: str) -> bool:
    head = _NO_ERROR.sub("", line[:_MAX_LINE_CHARS])
    return _ERROR.search(head) is not None and not _FINE.search(head)
