"""Finding the text an edit wants to replace, and replacing it; pure.

Exact text first. Where there is none, the differences that models introduce when they copy are looked past, one
kind after another: line endings, white space at line ends, typographic quotes and dashes, blank lines around it,
another indentation of the whole block, line numbers copied from ``read``, one escaping too many. A match has to be the
only one at its level, and text the edit does not mean to change stays as it is in the file.
"""

import bisect
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import accumulate

from tui_agent.editing.closest import closest
from tui_agent.editing.diffs import Opcode, changes_between
from tui_agent.editing.indentation import reindented
from tui_agent.editing.slips import Pair, without_blank_ends, without_escapes, without_line_numbers
from tui_agent.lazy import dataclass
from tui_agent.text_files.encodings import odd_bytes_shown, with_odd_bytes
from tui_agent.text_files.lines import line_at, lines_of, newline_of, with_newlines

_TYPOGRAPHIC = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " "),
    }
)


_MAX_PLACES = 8
_MOST_COUNTED = 100
"""Places after which it is clear that a text is not the only one."""


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
    # A model sees odd bytes as U+FFFD; positions are the same in the text that it sees.
    shown = text if wanted.old in text else odd_bytes_shown(text)
    loosely, spans = _places(shown, wanted)
    if len(spans) > 1 and not wanted.everywhere:
        raise NoMatchError(_several(text, spans))
    out: list[str] = []
    position = 0
    count = 0
    for span in spans:
        if span.start < position:
            continue  # It overlaps one before, and is left as it is.
        new = span.new if shown is text else with_odd_bytes(span.new, text[span.start : span.end])
        if new is None:
            raise NoMatchError("old has bytes that are not text, shown as \ufffd; new must keep all of them, or none.")
        out += [text[position : span.start], new]
        position = span.end
        count += 1
    return Replaced("".join([*out, text[position:]]), count, loosely)


def _places(text: str, wanted: Replacement) -> tuple[str, list[_Span]]:
    """Return the places of a text, and the differences that were ignored to find them.

    Raises:
        NoMatchError: there is none.
    """
    for loosely, find in _LEVELS:
        spans = find(text, wanted)
        if spans:
            return loosely, spans
    raise NoMatchError(closest(text, wanted.old))


def _several(text: str, spans: list[_Span]) -> str:
    lines = ", ".join(str(line_at(text, span.start)) for span in spans[:_MAX_PLACES])
    more = ", ..." if len(spans) > _MAX_PLACES else ""
    times = f"{len(spans)} times" if len(spans) < _MOST_COUNTED else f"at least {_MOST_COUNTED} times"
    return f"old is there {times} (lines {lines}{more}). Add lines around it to name one place, or set all to true."


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
