"""Finding the text an edit wants to replace, and replacing it; pure.

Exact text first. Where there is none, the differences that models introduce when they copy are looked past, one
kind after another: line endings, white space at line ends, typographic quotes and dashes, blank lines around it,
another indentation of the whole block, line numbers copied from ``read``, one escaping too many. A match has to be the
only one at its level, and text the edit does not mean to change stays as it is in the file.
"""

import bisect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from fractions import Fraction
from functools import cached_property, partial
from itertools import accumulate

from tui_agent.editing.diffs import Opcode, changes_between
from tui_agent.editing.text_files import lines_of, newline_of, with_newlines
from tui_agent.lazy import dataclass

# A block that a model copied with other indentation: either every line is shifted by the same white space, or every
# line's indentation is the same multiple: tabs for spaces, two spaces for four.


def reindented(old: Sequence[str], there: Sequence[str], new: str) -> str | None:
    """Return a new text with the file's indentation; None when the lines don't all differ alike.

    Args:
        old: the lines that were looked for.
        there: the lines the file has in their place, alike but for white space at their ends.
        new: the text for them, indented like ``old``.
    """
    pairs = [(_indent_of(a), _indent_of(b)) for a, b in zip(old, there, strict=True) if a.strip()]
    narrower, wider = pairs[0]
    rows = lines_of(new)
    if wider.endswith(narrower):
        prefix = wider[: len(wider) - len(narrower)]
        if all(there == prefix + here for here, there in pairs):
            return "".join(prefix + row if row.strip() else row for row in rows)
    elif narrower.endswith(wider):
        prefix = narrower[: len(narrower) - len(wider)]
        fits = all(row.startswith(prefix) for row in rows if row.strip())
        if fits and all(here == prefix + there for here, there in pairs):
            return "".join(row.removeprefix(prefix) for row in rows)
    return _rescaled(pairs, rows)


def _indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _rescaled(pairs: Sequence[tuple[str, str]], rows: Sequence[str]) -> str | None:
    """Return the text with so many of the file's characters for each of its own, and so many more."""
    used_here, used_there = ({*"".join(indents)} for indents in zip(*pairs, strict=True))
    if len(used_here) != 1 or len(used_there) != 1:
        return None
    points = {(len(here), len(there)) for here, there in pairs}
    if used_here != used_there:
        points.add((0, 0))
    (first, first_there), (last, last_there) = min(points), max(points)
    if first == last or first_there == last_there:
        return None
    factor = Fraction(last_there - first_there, last - first)
    scaled: dict[str, str] = {}
    for indent in {here for here, _there in pairs} | {_indent_of(row) for row in rows if row.strip()}:
        width = first_there + factor * (len(indent) - first)
        if width < 0 or width.denominator != 1 or not set(indent) <= used_here:
            return None
        scaled[indent] = min(used_there) * int(width)
    if 1 not in factor.as_integer_ratio() or any(scaled[here] != there for here, there in pairs):
        return None
    return "".join(scaled[_indent_of(row)] + row.lstrip(" \t") if row.strip() else row for row in rows)


# The error for an edit whose text is not in the file, or not only once: the lines it comes closest to.

_MAX_PLACES = 8
_MAX_LINES = 16
_MAX_CHARS = 200
_COMPARED_LINES = 20_000
_MIN_SIMILARITY = 0.6
_MOST_COMPARED = 200
"""Lines compared character by character with one that is not there; each takes up to 2 ms."""
_MOST_COUNTED = 100
"""Places after which it is clear that a text is not the only one."""


def closest(text: str, old: str) -> str:
    """Return a message that shows where the text comes closest to the one looked for."""
    lines, wanted = text.removesuffix("\n").split("\n")[:_COMPARED_LINES], old.strip("\n").split("\n")
    if not old.strip():
        return "old is only white space that is not in the file like that."
    start = _best_start(lines, wanted)
    if start is not None:
        return _differing(lines, wanted, start)
    sought = next(line.strip() for line in wanted if line.strip())[:_MAX_CHARS]
    begins = [line.strip()[:_MAX_CHARS] for line in lines]
    near = _most_alike(sought, begins)
    if near is None:
        return "old was not found, nor anything like it. Read the file again."
    number = begins.index(near)
    return f"old was not found. Closest is:\n{number + 1}\t{_cut(lines[number])}"


def _most_alike(sought: str, lines: Iterable[str]) -> str | None:
    """Return the line that is most like a text; None where none is enough. Only so many are compared thoroughly."""
    matcher, best, found, left = SequenceMatcher(b=sought), _MIN_SIMILARITY, None, _MOST_COMPARED
    for line in dict.fromkeys(lines):
        matcher.set_seq1(line)
        if matcher.real_quick_ratio() < best or matcher.quick_ratio() < best:
            continue
        if (ratio := matcher.ratio()) > best or (found is None and ratio == best):
            best, found = ratio, line
        left -= 1
        if not left:
            break
    return found


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
        hint, middle = f"Lines {start + 1}-{end} differ from it in white space only, copy them exactly:", start
    elif start + offset >= end:
        hint, middle = f"The file ends after line {end}, old goes on with {_cut(old[offset].strip())!r}:", end
    else:
        middle = start + offset
        hint = f"Closest is this, but line {middle + 1} in old is {_cut(old[offset].strip())!r}:"
    first = max(start, min(middle - _MAX_LINES // 2, end - _MAX_LINES))
    numbered = (f"{place + 1}\t{_cut(lines[place])}" for place in range(first, min(end, first + _MAX_LINES)))
    return "\n".join([f"old was not found. {hint}", *numbered])


def _cut(line: str) -> str:
    line = line.removesuffix("\r")
    return line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]} [...]"


# Slips of models in a text they copy: line numbers, escapes, blank lines around it. Each
# function takes the text to find and the text to put in its place, and returns both without the slip; None where there
# is none, or where it is not the same in both, so that it may be meant.

Pair = tuple[str, str]

_NUMBERED = re.compile(r"^ *(\d+)(\t|→|: | \| )")
_FIRST_BLANKS = re.compile(r"\A(?:[ \t]*\r?\n)+")
_LAST_BLANKS = re.compile(r"(?:\r?\n[ \t]*)+\Z")

_ESCAPES = {
    "\\\\": "\\", "\\n": "\n", "\\t": "\t", '\\"': '"', "\\'": "'", "\\`": "`",
    "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&amp;": "&",
}  # fmt: skip
_ESCAPED = re.compile("|".join(map(re.escape, _ESCAPES)))


def without_line_numbers(old: str, new: str) -> Pair | None:
    """Take off the numbers that `read` and searches put in front of lines."""
    lines = old.removesuffix("\n").split("\n")
    matches = [match for line in lines if (match := _NUMBERED.match(line))]
    numbers = [int(match[1]) for match in matches]
    in_order = len(numbers) == len(lines) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    if not in_order or len({match[2] for match in matches}) != 1:
        return None
    mark = re.compile(rf"^ *\d+{re.escape(matches[0][2])}", re.MULTILINE)
    return mark.sub("", old), mark.sub("", new)


def without_blank_ends(old: str, new: str) -> Pair | None:
    if not old.strip():
        return None
    bare_old, bare_new = old, new
    for blanks in (_FIRST_BLANKS, _LAST_BLANKS):
        if blanks.search(bare_old):
            bare_old, bare_new = blanks.sub("", bare_old), blanks.sub("", bare_new)
    return None if bare_old == old else (bare_old, bare_new)


def without_escapes(old: str, new: str) -> Pair | None:
    """Undo one escaping too many, as in JSON or HTML; only of characters that are nowhere written plainly."""
    kinds = set(_ESCAPED.findall(old))
    rest = _ESCAPED.sub(lambda match: "" if match[0] in kinds else match[0], f"{old} {new}")
    if not kinds or any(_ESCAPES[kind] in rest for kind in kinds):
        return None
    plain = {kind: _ESCAPES[kind] for kind in kinds}
    bare_old, bare_new = (_ESCAPED.sub(lambda match: plain.get(match[0], match[0]), text) for text in (old, new))
    return bare_old, bare_new


_TYPOGRAPHIC = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " "),
    }
)


class NoMatchError(Exception):
    """The text to replace is not there, or not only there; the message tells the model the closest text."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """One thing to replace: ``old`` by ``new``, everywhere if ``everywhere``."""

    old: str
    new: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Replaced:
    """A text after a replacement. ``loosely`` names the differences ignored, empty for an exact match."""

    text: str
    count: int
    loosely: str = ""


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    new: str


Find = Callable[[str, Replacement], list[_Span]]
"""Finds places that may overlap, in order; looks past one kind of differences."""


def replace(text: str, wanted: Replacement) -> Replaced:
    """Return the text with the replacement made.

    Raises:
        NoMatchError: there is no such text, or there are several and ``everywhere`` is not set.
    """
    for loosely, find in _LEVELS:
        spans = find(text, wanted)
        if not spans:
            continue
        if len(spans) > 1 and not wanted.everywhere:
            lines = ", ".join(str(line_at(text, span.start)) for span in spans[:_MAX_PLACES])
            more = ", ..." if len(spans) > _MAX_PLACES else ""
            times = f"{len(spans)} times" if len(spans) < _MOST_COUNTED else f"at least {_MOST_COUNTED} times"
            raise NoMatchError(
                f"old is there {times} (lines {lines}{more}). "
                "Add lines around it to name one place, or set all to true."
            )
        out, position, count = [], 0, 0
        for span in spans:
            if span.start >= position:  # those that overlap one before are left as they are
                out += [text[position : span.start], span.new]
                position, count = span.end, count + 1
        return Replaced("".join([*out, text[position:]]), count, loosely)
    raise NoMatchError(closest(text, wanted.old))


def line_at(text: str, position: int) -> int:
    """Return the number of the line that a position is in, counted from 1."""
    return text.count("\n", 0, position) + 1


# -- levels -------------------------------------------------------------------------------------------------


def _exact(text: str, wanted: Replacement) -> list[_Span]:
    made = _Maker(text, wanted)
    size = len(wanted.old)
    return [_Span(start, start + size, made.plain(start, start + size)) for start in _occurrences(text, wanted)]


def _in_folded(fold: "_Fold", text: str, wanted: Replacement) -> list[_Span]:
    folded, old = fold.folded(text), fold.folded(wanted.old).text
    at_line_end = fold.trims_line_ends and old != wanted.old and not old.endswith("\n")
    made = _Maker(text, wanted)
    spans = []
    for found in _occurrences(folded.text, Replacement(old, "", wanted.everywhere)):
        found_end = found + len(old)
        if at_line_end and folded.text[found_end : found_end + 1] not in {"", "\n"}:
            continue
        start, end = folded.original(found), folded.original(found_end, is_end=True)
        spans.append(_Span(start, end, made.keeping_unchanged(start, end)))
    return spans


def _indented(text: str, wanted: Replacement) -> list[_Span]:
    lines, old = lines_of(text), lines_of(wanted.old)
    folded, key = ([line.strip().translate(_TYPOGRAPHIC) for line in part] for part in (lines, old))
    first = next((index for index, line in enumerate(key) if line), None)
    if first is None:
        return []
    starts = [0, *accumulate(map(len, lines))]
    most = len(lines) if wanted.everywhere else _MOST_COUNTED
    spans: list[_Span] = []
    after = 0
    for index, line in enumerate(folded):
        begin = index - first
        if line != key[first] or begin < after or folded[begin : begin + len(old)] != key:
            continue
        window = lines[begin : begin + len(old)]
        moved_old, moved_new = (reindented(old, window, part) for part in (wanted.old, wanted.new))
        if moved_old is None or moved_new is None:
            continue
        start, end = starts[begin], starts[begin] + sum(map(len, window))
        if not wanted.old.endswith("\n"):
            end -= len(window[-1]) - len(window[-1].rstrip("\r\n"))
        new = _Maker(text, Replacement(moved_old, moved_new)).keeping_unchanged(start, end)
        spans.append(_Span(start, end, new))
        after = begin + len(old) if wanted.everywhere else 0
        if len(spans) == most:
            break
    return spans


def _without(
    slip: Callable[[str, str], Pair | None], others: Iterable[Find], text: str, wanted: Replacement
) -> list[_Span]:
    """Match a text without its slips, in other ways."""
    pair = slip(wanted.old, wanted.new)
    if pair is None or not pair[0]:
        return []
    bare = Replacement(*pair, wanted.everywhere)
    spans = next((spans for other in others if (spans := other(text, bare))), [])
    if slip is not without_blank_ends:
        return spans
    # Only line breaks were taken off at the ends of the text, so only whole lines count.
    return [
        span
        for span in spans
        if text[max(span.start - 1, 0) : span.start] in {"", "\n"} and _LINE_END.match(text, span.end)
    ]


# -- folding: a text with differences taken out, and the way back -------------------------------------------


@dataclass(frozen=True, slots=True)
class _Folded:
    """A text without some spans. ``cuts`` are positions in it, ``removed`` how much was cut up to each."""

    text: str
    cuts: list[int]
    removed: list[int]

    def original(self, position: int, *, is_end: bool = False) -> int:
        """Return the place in the whole text; a part cut right after the end of a span does not belong to it."""
        index = (bisect.bisect_left if is_end else bisect.bisect_right)(self.cuts, position)
        return position + (self.removed[index - 1] if index else 0)


@dataclass(frozen=True, slots=True)
class _Fold:
    pattern: re.Pattern[str]
    typographic: bool = False
    trims_line_ends: bool = False

    def folded(self, text: str) -> _Folded:
        pieces, cuts, removed = [], [], []
        total = position = 0
        for match in self.pattern.finditer(text):
            pieces.append(text[position : match.start()])
            cuts.append(match.start() - total)
            total += match.end() - match.start()
            removed.append(total)
            position = match.end()
        pieces.append(text[position:])
        folded = "".join(pieces)
        # The table replaces one character by one, so positions stay.
        return _Folded(folded.translate(_TYPOGRAPHIC) if self.typographic else folded, cuts, removed)


_FEED = re.compile("\n")
_LINE_ENDS = re.compile(r"\r(?=\n)")
_LINE_END = re.compile(r"[ \t\r]*+(?:\n|\Z)")
_TRAILING = re.compile(r"(?<![ \t\r])[ \t\r]++(?=\n|\Z)")  # tried once for each run of white space

_CLOSE: dict[str, Find] = {
    "": _exact,
    "line endings": partial(_in_folded, _Fold(_LINE_ENDS)),
    "white space at line ends": partial(_in_folded, _Fold(_TRAILING, trims_line_ends=True)),
    "typographic characters": partial(_in_folded, _Fold(_TRAILING, typographic=True, trims_line_ends=True)),
}
_LEVELS: tuple[tuple[str, Find], ...] = (
    *_CLOSE.items(),
    ("blank lines around it", partial(_without, without_blank_ends, _CLOSE.values())),
    ("indentation", _indented),
    ("blank lines and indentation", partial(_without, without_blank_ends, [_indented])),
    ("line numbers", partial(_without, without_line_numbers, [*_CLOSE.values(), _indented])),
    ("escapes", partial(_without, without_escapes, [*_CLOSE.values(), _indented])),
)


# -- making the new text ------------------------------------------------------------------------------------


class _Maker:
    """Makes the new text for each match of one replacement; their common part is computed once."""

    def __init__(self, text: str, wanted: Replacement) -> None:
        self._text = text
        self._wanted = wanted
        self._feeds = [match.start() for match in _FEED.finditer(text)]
        self._newline = newline_of(text)
        self._with: dict[str, str] = {}
        self._old, self._new = (
            [line.removesuffix("\r") for line in part.split("\n")] for part in (wanted.old, wanted.new)
        )

    def plain(self, start: int, end: int) -> str:
        """Return the new text with the line endings around a match."""
        newline = self._newline_near(start, end)
        if newline not in self._with:
            self._with[newline] = with_newlines(self._wanted.new, newline)
        return self._with[newline]

    def keeping_unchanged(self, start: int, end: int) -> str:
        """Return the new text for a loose match: lines that the edit leaves alone are taken from the file."""
        found = self._text[start:end].split("\n")
        if len(found) != len(self._old):
            return self.plain(start, end)
        out: list[str] = []
        for tag, old_start, old_end, new_start, new_end in self._changes:
            if tag == "equal":
                out += [line.removesuffix("\r") for line in found[old_start:old_end]]
            else:
                out += self._new[new_start:new_end]
        return self._newline_near(start, end).join(out)

    @cached_property
    def _changes(self) -> list[Opcode]:
        return changes_between(self._old, self._new)

    def _newline_near(self, start: int, end: int) -> str:
        """Return the line ending of the lines a span touches; of the whole text when they have none."""
        first = bisect.bisect_left(self._feeds, start)
        feeds = self._feeds[first : bisect.bisect_left(self._feeds, max(start, end - 1)) + 1]
        if not feeds:
            return self._newline
        pairs = sum(feed > start and self._text[feed - 1] == "\r" for feed in feeds)
        return "\r\n" if pairs * 2 > len(feeds) else "\n"


def _occurrences(text: str, wanted: Replacement) -> Iterator[int]:
    """Return where a text is: everywhere without overlaps, otherwise until it is clear that there are several."""
    step = len(wanted.old) if wanted.everywhere else 1
    position = text.find(wanted.old) if wanted.old else -1
    counted = 0
    while position >= 0 and (wanted.everywhere or counted < _MOST_COUNTED):
        yield position
        counted += 1
        position = text.find(wanted.old, position + step)
