"""Finds the text that an edit wants to replace, and replaces it. Pure.

The exact text is tried first. If the file doesn't contain it, differences that models introduce
when they copy are ignored, one kind after another: line endings, white space at line ends,
typographic quotes and dashes, blank lines around the text, another indentation of the whole block,
line numbers copied from ``read``, one level of escapes too many, several lines written as one. The
first kind with a match is used. It must have only one match, unless all are to be replaced. Text
that the edit doesn't change stays as it is in the file.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate

from tui_agent.editing.closest import closest
from tui_agent.editing.folding import LINE_ENDINGS, LINE_ENDS, PLAIN_CHARACTERS, TYPOGRAPHIC, Fold
from tui_agent.editing.indentation import reindented
from tui_agent.editing.new_text import NewText
from tui_agent.editing.slips import Pair, without_blank_ends, without_escapes, without_line_numbers
from tui_agent.lazy import frozen
from tui_agent.text_files.encodings import odd_bytes_shown, with_odd_bytes
from tui_agent.text_files.lines import line_at, lines_of

_MAX_PLACES = 8
_MAX_COUNTED = 100
"""Number of matches after which counting stops, unless all matches are to be replaced."""

_MAX_COMPARED = 1_000_000
"""Maximum number of lines whose indentation is compared, so that an edit doesn't take too long."""

_MAX_JOINED = 8
"""Maximum number of a file's lines that a model may have written as one line."""

_LINE_END = re.compile(r"[ \t\r]*+(?:\n|\Z)")


class NoMatchError(Exception):
    """Raised if the text to replace is missing or not unique; the message shows where to look."""


@frozen
class Replacement:
    """A replacement of the only occurrence of ``old`` with ``new``, or of all if ``everywhere``."""

    old: str
    new: str
    everywhere: bool = False


@frozen
class Replaced:
    """The text after a replacement.

    ``count`` is the number of replaced matches. ``loosely`` names the kind of difference that was
    ignored, such as "indentation"; "" for an exact match.
    """

    text: str
    count: int
    loosely: str = ""


@frozen
class _Span:
    start: int
    end: int
    new: str


Find = Callable[[str, Replacement], list[_Span]]
"""Returns the matches of a text in order, ignoring one kind of difference. They may overlap."""


def replace(text: str, wanted: Replacement) -> Replaced:
    """Return the text with ``wanted`` replaced. Of overlapping matches, the first is replaced.

    Raises:
        NoMatchError: the text isn't found; or it is found several times, and ``everywhere`` isn't
            set; or bytes that aren't text would be lost.
    """
    # A model sees bytes that aren't text as U+FFFD; positions are the same in what it sees.
    shown = text if wanted.old in text else odd_bytes_shown(text)
    loosely, spans = _places(shown, wanted)
    if len(spans) > 1 and not wanted.everywhere:
        raise NoMatchError(_several(text, spans))
    out: list[str] = []
    position = 0
    count = 0
    for span in spans:
        if span.start < position:
            continue  # This match overlaps the previous one.
        new: str | None = span.new
        if shown is not text:
            new = with_odd_bytes(span.new, text[span.start : span.end])
        if new is None:
            raise NoMatchError(
                "old has bytes that are not text, shown as \ufffd; new must keep all of them, or none."
            )
        out += [text[position : span.start], new]
        position = span.end
        count += 1
    return Replaced("".join([*out, text[position:]]), count, loosely)


def _places(text: str, wanted: Replacement) -> tuple[str, list[_Span]]:
    """Return the matches, preceded by the kind of difference that had to be ignored ("" for none).

    Raises:
        NoMatchError: there is no match of any kind.
    """
    for loosely, find in _LEVELS:
        spans = find(text, wanted)
        if spans:
            return loosely, spans
    raise NoMatchError(closest(text, wanted.old))


def _several(text: str, spans: list[_Span]) -> str:
    lines = ", ".join(str(line_at(text, span.start)) for span in spans[:_MAX_PLACES])
    more = ", ..." if len(spans) > _MAX_PLACES else ""
    if len(spans) < _MAX_COUNTED:
        times = f"{len(spans)} times"
    else:
        times = f"at least {_MAX_COUNTED} times"
    return f"old occurs {times} (lines {lines}{more}). Add lines around it to make it unique, or set all to true."


# -- levels ------------------------------------------------------------------------------------


def _exact(text: str, wanted: Replacement) -> list[_Span]:
    made = NewText(text, wanted.old, wanted.new)
    size = len(wanted.old)
    spans = []
    for start in _occurrences(text, wanted):
        spans.append(_Span(start, start + size, made.plain(start, start + size)))
    return spans


def _in_folded(fold: Fold, text: str, wanted: Replacement) -> list[_Span]:
    folded = fold.folded(text)
    old = fold.folded(wanted.old).text
    ends_line = fold.trims_line_ends and old != wanted.old and not old.endswith("\n")
    made = NewText(text, wanted.old, wanted.new)
    spans: list[_Span] = []
    for found in _occurrences(folded.text, Replacement(old, "", wanted.everywhere)):
        found_end = found + len(old)
        if ends_line and folded.text[found_end : found_end + 1] not in {"", "\n"}:
            continue
        start = folded.start_in_original(found)
        end = folded.end_in_original(found_end)
        spans.append(_Span(start, end, made.keeping_unchanged(start, end)))
    return spans


def _indented(text: str, wanted: Replacement) -> list[_Span]:
    lines = lines_of(text)
    old = lines_of(wanted.old)
    starts = [0, *accumulate(map(len, lines))]
    most = _MAX_COUNTED
    if wanted.everywhere:
        most = len(lines)
    spans: list[_Span] = []
    after = 0
    compared = 0
    for begin in _alike_but_for_ends(lines, old):
        if begin < after:
            continue
        compared += len(old)
        if compared > _MAX_COMPARED:
            break
        window = lines[begin : begin + len(old)]
        moved_old = reindented(old, window, wanted.old)
        if moved_old is None:
            continue
        moved_new = reindented(old, window, wanted.new)
        if moved_new is None:
            continue
        end = starts[begin] + sum(map(len, window))
        if not wanted.old.endswith("\n"):
            end -= len(window[-1]) - len(window[-1].rstrip("\r\n"))
        new = NewText(text, moved_old, moved_new).keeping_unchanged(starts[begin], end)
        spans.append(_Span(starts[begin], end, new))
        after = 0
        if wanted.everywhere:
            after = begin + len(old)
        if len(spans) == most:
            break
    return spans


def _alike_but_for_ends(lines: list[str], old: list[str]) -> Iterator[int]:
    """Yield each index in ``lines`` at which a match of all lines of ``old`` starts.

    Leading and trailing white space of each line is ignored, and typographic characters match their
    plain forms. Yields nothing if ``old`` is blank.
    """
    folded = _stripped(lines)
    key = _stripped(old)
    first = next((index for index, line in enumerate(key) if line), None)
    if first is None:
        return
    for index, line in enumerate(folded):
        begin = index - first
        if line == key[first] and begin >= 0 and folded[begin : begin + len(old)] == key:
            yield begin


def _stripped(lines: list[str]) -> list[str]:
    return [line.strip().translate(TYPOGRAPHIC) for line in lines]


def _on_one_line(text: str, wanted: Replacement) -> list[_Span]:
    """Find whole lines of the file that the model wrote as one line (``def f(): return 1``)."""
    old = " ".join(wanted.old.split())
    if "\n" in wanted.old.strip() or " " not in old:
        return []
    lines = lines_of(text)
    bare = [" ".join(line.split()) for line in lines]
    starts = [0, *accumulate(map(len, lines))]
    spans: list[_Span] = []
    for begin, line in enumerate(bare):
        end = None
        if line:
            end = _end_of_joined(bare, begin, old)
        indent = lines[begin][: len(lines[begin]) - len(lines[begin].lstrip())]
        new = wanted.new.strip()
        if end is None or (indent and "\n" in new):
            continue
        last = lines[end].rstrip("\r\n")
        span = (starts[begin], starts[end] + len(last))
        made = NewText(text, wanted.old, indent + new)
        spans.append(_Span(*span, made.plain(*span)))
    return spans


def _end_of_joined(bare: list[str], begin: int, old: str) -> int | None:
    """Return the index of the line at which ``old`` ends if it begins at the line ``begin``.

    Returns None if ``old`` doesn't consist of two to ``_MAX_JOINED`` whole lines, joined by spaces.
    """
    joined = bare[begin]
    for end in range(begin + 1, min(begin + _MAX_JOINED, len(bare))):
        if not old.startswith(joined):
            return None
        joined = f"{joined} {bare[end]}".rstrip()
        if joined == old:
            return end
    return None


def _without(
    slip: Callable[[str, str], Pair | None], others: Iterable[Find], text: str, wanted: Replacement
) -> list[_Span]:
    """Remove a model's slip, such as line numbers, from the wanted text, and match the rest.

    Returns the matches of the first of ``others`` that finds any; [] if the text has no such slip.
    """
    pair = slip(wanted.old, wanted.new)
    if pair is None or not pair[0]:
        return []
    bare = Replacement(*pair, wanted.everywhere)
    spans: list[_Span] = []
    for other in others:
        spans = spans or other(text, bare)
    if slip is not without_blank_ends:
        return spans
    # The removed blank lines show that whole lines are meant, so other matches don't count.
    return [span for span in spans if _is_whole_lines(text, span)]


def _is_whole_lines(text: str, span: _Span) -> bool:
    begins_line = text[max(span.start - 1, 0) : span.start] in {"", "\n"}
    return begins_line and _LINE_END.match(text, span.end) is not None


def _occurrences(text: str, wanted: Replacement) -> Iterator[int]:
    """Yield the positions at which ``wanted.old`` occurs.

    With ``everywhere``, yields all occurrences that don't overlap; otherwise at most
    ``_MAX_COUNTED`` occurrences, which may overlap.
    """
    step = 1
    if wanted.everywhere:
        step = len(wanted.old)
    position = -1
    if wanted.old:
        position = text.find(wanted.old)
    counted = 0
    while position >= 0 and (wanted.everywhere or counted < _MAX_COUNTED):
        yield position
        counted += 1
        position = text.find(wanted.old, position + step)


_CLOSE: dict[str, Find] = {
    "": _exact,
    "line endings": partial(_in_folded, LINE_ENDINGS),
    "white space at line ends": partial(_in_folded, LINE_ENDS),
    "typographic characters": partial(_in_folded, PLAIN_CHARACTERS),
}
_LEVELS: tuple[tuple[str, Find], ...] = (
    *_CLOSE.items(),
    ("blank lines around it", partial(_without, without_blank_ends, _CLOSE.values())),
    ("indentation", _indented),
    ("blank lines and indentation", partial(_without, without_blank_ends, [_indented])),
    ("line numbers", partial(_without, without_line_numbers, [*_CLOSE.values(), _indented])),
    ("escapes", partial(_without, without_escapes, [*_CLOSE.values(), _indented])),
    ("line breaks", _on_one_line),
)
