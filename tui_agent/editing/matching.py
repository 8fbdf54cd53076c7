"""Finding the text an edit wants to replace, and replacing it; pure.

Exact text first. Where there is none, the differences that models introduce when they copy are looked past, one
kind after another: line endings, white space at line ends, typographic quotes and dashes, blank lines around it,
another indentation of the whole block, line numbers copied from ``read``, one escaping too many. A match has to be the
only one at its level, and what the edit does not mean to change stays as it is in the file.
"""

import bisect
import difflib
import re
from collections.abc import Callable, Iterator

from tui_agent.editing.indentation import reindented
from tui_agent.editing.near_matches import ambiguous, closest
from tui_agent.editing.slips import Pair, without_blank_ends, without_escapes, without_line_numbers
from tui_agent.editing.text_files import lines_of, newline_of, with_newlines
from tui_agent.lazy import dataclass

_TYPOGRAPHIC = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " "),
    }
)


class NoMatchError(Exception):
    """The text to replace is not there, or not only there; the message tells the model what is."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """One thing to replace: ``old`` by ``new``, everywhere if ``everywhere``."""

    old: str
    new: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Replaced:
    """A text after a replacement. ``loosely`` says what had to be looked past, empty for an exact match."""

    text: str
    count: int
    loosely: str = ""


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class _Level:
    """One way to look past differences; finds places that may overlap, in order."""

    name: str
    find: Callable[[str, Replacement], list[_Span]]


def replace(text: str, wanted: Replacement) -> Replaced:
    """Return the text with the replacement made.

    Raises:
        NoMatchError: there is no such text, or there are several and ``everywhere`` is not set.
    """
    for level in _LEVELS:
        spans = level.find(text, wanted)
        if not spans:
            continue
        if len(spans) > 1 and not wanted.everywhere:
            raise NoMatchError(ambiguous([line_at(text, span.start) for span in spans]))
        chosen = list(_apart(spans))
        return Replaced(_spliced(text, chosen), len(chosen), level.name)
    raise NoMatchError(closest(text, wanted.old))


def line_at(text: str, position: int) -> int:
    """Return the number of the line that a position is in, counted from 1."""
    return text.count("\n", 0, position) + 1


# -- levels -------------------------------------------------------------------------------------------------


def _exact(text: str, wanted: Replacement) -> list[_Span]:
    spans = []
    for start in _occurrences(text, wanted.old):
        end = start + len(wanted.old)
        spans.append(_Span(start, end, with_newlines(wanted.new, _newline_near(text, start, end))))
    return spans


def _folding(fold: "_Fold") -> Callable[[str, Replacement], list[_Span]]:
    def find(text: str, wanted: Replacement) -> list[_Span]:
        folded, old = fold.folded(text), fold.folded(wanted.old).text
        at_line_end = fold.trims_line_ends and old != wanted.old and not old.endswith("\n")
        spans = []
        for found in _occurrences(folded.text, old):
            found_end = found + len(old)
            if at_line_end and folded.text[found_end : found_end + 1] not in {"", "\n"}:
                continue
            start, end = folded.original(found), folded.original_end(found_end)
            spans.append(_Span(start, end, _keeping_unchanged(text, (start, end), wanted)))
        return spans

    return find


def _indented(text: str, wanted: Replacement) -> list[_Span]:
    """Match whole lines whose indentation differs alike on every line."""
    lines, old = lines_of(text), lines_of(wanted.old)
    key = [_folded_line(line) for line in old]
    first = next((index for index, line in enumerate(key) if line), None)
    if first is None:
        return []
    starts = _offsets(lines)
    spans = []
    for index, line in enumerate(lines):
        begin = index - first
        window = lines[max(begin, 0) : begin + len(old)]
        if _folded_line(line) != key[first] or begin < 0 or [_folded_line(row) for row in window] != key:
            continue
        moved_old, moved_new = (reindented(old, window, part) for part in (wanted.old, wanted.new))
        if moved_old is None or moved_new is None:
            continue
        start, end = starts[begin], starts[begin] + sum(map(len, window))
        if not wanted.old.endswith("\n"):
            end -= len(window[-1]) - len(window[-1].rstrip("\r\n"))
        new = _keeping_unchanged(text, (start, end), Replacement(moved_old, moved_new))
        spans.append(_Span(start, end, new))
    return spans


def _without(
    slip: Callable[[str, str], Pair | None], levels: "tuple[_Level, ...]"
) -> Callable[[str, Replacement], list[_Span]]:
    """Match a text without what was put into it by mistake, by other levels."""

    def find(text: str, wanted: Replacement) -> list[_Span]:
        pair = slip(wanted.old, wanted.new)
        if pair is None or not pair[0]:
            return []
        return next((spans for level in levels if (spans := level.find(text, Replacement(*pair)))), [])

    return find


def _whole_lines(find: Callable[[str, Replacement], list[_Span]]) -> Callable[[str, Replacement], list[_Span]]:
    """Match whole lines only: what was taken off at the ends of the text were line breaks."""

    def whole(text: str, span: _Span) -> bool:
        return text[: span.start][-1:] in {"", "\n"} and text[span.end :].lstrip(" \t\r")[:1] in {"", "\n"}

    return lambda text, wanted: [span for span in find(text, wanted) if whole(text, span)]


# -- folding: a text with differences taken out, and the way back -------------------------------------------


@dataclass(frozen=True, slots=True)
class _Folded:
    """A text without some spans. ``cuts`` are positions in it, ``removed`` how much was cut up to each."""

    text: str
    cuts: list[int]
    removed: list[int]

    def original(self, position: int) -> int:
        """Return where a character of the folded text is in the original."""
        index = bisect.bisect_right(self.cuts, position)
        return position + (self.removed[index - 1] if index else 0)

    def original_end(self, position: int) -> int:
        """Return the end of a span: what was cut right after it does not belong to it."""
        index = bisect.bisect_left(self.cuts, position)
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


_LINE_ENDS = re.compile(r"\r(?=\n)")
_TRAILING = re.compile(r"[ \t\r]+(?=\n|\Z)")

_CLOSE = (
    _Level("", _exact),
    _Level("line endings", _folding(_Fold(_LINE_ENDS))),
    _Level("white space at line ends", _folding(_Fold(_TRAILING, trims_line_ends=True))),
    _Level("typographic characters", _folding(_Fold(_TRAILING, typographic=True, trims_line_ends=True))),
)
_INDENTED = _Level("indentation", _indented)
_LEVELS = (
    *_CLOSE,
    _Level("blank lines around it", _whole_lines(_without(without_blank_ends, _CLOSE))),
    _INDENTED,
    _Level("blank lines and indentation", _whole_lines(_without(without_blank_ends, (_INDENTED,)))),
    _Level("line numbers", _without(without_line_numbers, (*_CLOSE, _INDENTED))),
    _Level("escapes", _without(without_escapes, (*_CLOSE, _INDENTED))),
)


# -- making the new text ------------------------------------------------------------------------------------


def _keeping_unchanged(text: str, span: tuple[int, int], wanted: Replacement) -> str:
    """Return the new text for a loose match: lines that the edit leaves alone are taken from the file."""
    newline = _newline_near(text, *span)
    found, old, new = (part.split("\n") for part in (text[span[0] : span[1]], wanted.old, wanted.new))
    if len(found) != len(old):
        return with_newlines(wanted.new, newline)
    out: list[str] = []
    plain_old, plain_new = _without_carriages(old), _without_carriages(new)
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(
        None, plain_old, plain_new, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            out += [line.removesuffix("\r") for line in found[start:end]]
        else:
            out += plain_new[new_start:new_end]
    return newline.join(out)


def _without_carriages(lines: list[str]) -> list[str]:
    return [line.removesuffix("\r") for line in lines]


def _newline_near(text: str, start: int, end: int) -> str:
    """Return the line ending of the lines a span touches; of the whole text when they have none."""
    after = text.find("\n", max(start, end - 1))
    near = text[start : after + 1] if after >= 0 else text[start:end]
    return newline_of(near) if "\n" in near else newline_of(text)


def _apart(spans: list[_Span]) -> Iterator[_Span]:
    end = -1
    for span in spans:
        if span.start >= end:
            yield span
            end = span.end


def _spliced(text: str, spans: list[_Span]) -> str:
    out, position = [], 0
    for span in spans:
        out += [text[position : span.start], span.new]
        position = span.end
    return "".join([*out, text[position:]])


def _occurrences(text: str, wanted: str) -> list[int]:
    found: list[int] = []
    position = text.find(wanted) if wanted else -1
    while position >= 0:
        found.append(position)
        position = text.find(wanted, position + 1)
    return found


def _offsets(lines: list[str]) -> list[int]:
    offsets, total = [], 0
    for line in lines:
        offsets.append(total)
        total += len(line)
    return offsets


def _folded_line(line: str) -> str:
    return line.strip().translate(_TYPOGRAPHIC)
