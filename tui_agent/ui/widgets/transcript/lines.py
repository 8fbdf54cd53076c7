"""Runs of styled text, lines made of runs, and the wrapping of text into lines.

A style is a key: names of component classes without their prefix, separated by spaces (“text
strong”). A key may also contain ``url:…`` (a link) or ``act:…`` (an action of a click); see
:mod:`.paint`.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from rich.cells import cell_len, get_character_cell_size

StyledSpan = tuple[str, str]

StyledSpans = tuple[StyledSpan, ...]

ROW_GROUNDS: Final = frozenset({"user"})
"""Styles whose background fills the whole row, including the margin."""

_NOT_FIRST: Final = frozenset(
    "、。，．・：；？！）」』】〕〉》…ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ!),.:;?]}%"
)
"""Characters that must not begin a line of Chinese or Japanese text."""

_NOT_LAST: Final = frozenset("（「『【〔〈《([{")
"""Characters that must not end a line of Chinese or Japanese text."""

_width = lru_cache(maxsize=8192)(get_character_cell_size)


class Line:
    """A line on screen, without its margin.

    ``prefix`` is decoration that is neither selected nor copied: indent, quote bar, line number.
    ``spans`` is the text. ``tail`` is at the right edge, or ends at the cell ``extent`` if that is
    not 0. ``join`` is the text between the previous line and this one when copied: a line feed, or
    the spaces dropped by wrapping. ``lead`` is copied before a line that is not a continuation,
    such as a list item's bullet. ``fill`` is the style of the rest of the row; one of `ROW_GROUNDS`
    fills it from edge to edge.
    """

    __slots__ = ("extent", "fill", "join", "lead", "prefix", "spans", "tail")

    def __init__(  # noqa: PLR0913 - a line is made once, all of it
        self,
        spans: Sequence[StyledSpan] = (),
        *,
        prefix: StyledSpans = (),
        tail: StyledSpans = (),
        join: str = "\n",
        lead: str = "",
        fill: str = "",
        extent: int = 0,
    ) -> None:
        self.spans = spans
        self.extent = extent
        self.prefix = prefix
        self.tail = tail
        self.join = join
        self.lead = lead
        self.fill = fill

    def content(self) -> Sequence[StyledSpan]:
        """Return the runs of the line; lines of code compute their colors here."""
        return self.spans

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.content())

    def __repr__(self) -> str:
        parts = (
            "".join(text for text, _ in self.prefix),
            self.text,
            "".join(text for text, _ in self.tail),
        )
        return f"Line({' | '.join(parts)!r})"


def span_of(text: str, style: str) -> StyledSpans:
    """Return a text as one run, or no run if it is empty."""
    return ((text, style),) if text else ()


def cells(text: str) -> int:
    if text.isascii():
        return len(text)
    return cell_len(text)


def spans_width(spans: Iterable[StyledSpan]) -> int:
    return sum(cells(text) for text, _ in spans)


def crop(text: str, width: int) -> str:
    """Return a text cut to ``width`` cells; a cut text ends in an ellipsis."""
    if cells(text) <= width:
        return text
    if width <= 0:
        return ""
    taken = 0
    for index, character in enumerate(text):
        taken += _width(character)
        if taken > width - 1:
            return text[:index] + "…"
    return text


def crop_spans(spans: Sequence[StyledSpan], width: int) -> StyledSpans:
    """Return runs cut to ``width`` cells in total; if cut, they end in an ellipsis."""
    if spans_width(spans) <= width:
        return tuple(spans)
    kept: list[StyledSpan] = []
    for text, style in spans:
        size = cells(text)
        if size >= width:
            kept.append((crop(text + " ", width), style))
            break
        kept.append((text, style))
        width -= size
    return tuple(kept)


def wrap(spans: Sequence[StyledSpan], width: int) -> Iterator[tuple[str, StyledSpans]]:
    """Wrap runs into lines of at most ``width`` cells, at spaces and between wide characters.

    A word longer than a line is split. Yields, for each line, the spaces dropped before it and the
    line's runs. Where a line breaks depends only on the text up to the first character that does
    not fit, so that the wrapping of a growing text can continue from the start of the last line.
    """
    text = "".join(part for part, _ in spans)
    if len(text) <= width and text.isascii():
        yield "", tuple(spans)
        return
    if text.isascii():
        cuts = _ascii_cuts(text, width)
    else:
        cuts = _wide_cuts(text, width)
    previous_end = 0
    slicer = _Slicer(spans)
    for start, end in cuts:
        yield text[previous_end:start], slicer.slice(start, end)
        previous_end = end


def last_cut(spans: Sequence[StyledSpan], width: int) -> StyledSpans:
    """Return the runs of the last line that `wrap` makes, but with its trailing spaces."""
    text = "".join(part for part, _ in spans)
    if len(text) <= width and text.isascii():
        return tuple(spans)
    start = 0
    for start, _ in _ascii_cuts(text, width) if text.isascii() else _wide_cuts(text, width):  # noqa: B007 - only the last one is wanted
        pass
    return _Slicer(spans).slice(start, len(text))


def wrapped(
    spans: Sequence[StyledSpan], width: int, first: StyledSpans = (), rest: StyledSpans = ()
) -> Iterator["Line"]:
    for number, (swallowed, part) in enumerate(wrap(spans, width)):
        yield Line(part, prefix=rest if number else first, join=swallowed if number else "\n")


class _Slicer:
    """Cuts parts out of runs in one pass, by character offsets that have to ascend."""

    def __init__(self, spans: Sequence[StyledSpan]) -> None:
        self._runs = spans
        self._index = 0
        self._start = 0

    def slice(self, start: int, end: int) -> StyledSpans:
        spans = self._runs
        found: list[StyledSpan] = []
        while self._index < len(spans):
            text, style = spans[self._index]
            stop = self._start + len(text)
            if stop > start:
                part = text[max(start - self._start, 0) : end - self._start]
                if part:
                    found.append((part, style))
                if stop > end:
                    break
            self._index += 1
            self._start = stop
        return tuple(found)


def _ascii_cuts(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each wrapped line of an ASCII text."""
    start = 0
    length = len(text)
    while length - start > width:
        limit = start + width
        if text[limit] == " ":
            cut = limit
        else:
            cut = text.rfind(" ", start, limit)
        if cut <= start or text[start:cut].isspace():
            yield start, limit
            start = limit
            continue
        yield start, start + len(text[start:cut].rstrip(" "))
        start = _skip_spaces(text, cut)
    if start < length or not length:
        yield start, length


def _wide_cuts(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each wrapped line of a text with characters of any width."""
    start = index = column = 0
    opportunity = -1
    inked = False
    length = len(text)
    while index < length:
        character = text[index]
        size = _width(character)
        if size and column + size > width and index > start:
            if character == " " and inked:
                end = index
                following = _skip_spaces(text, index)
            elif opportunity > start:
                end = opportunity
                following = opportunity
            else:
                end = index
                following = index
            yield start, (start + len(text[start:end].rstrip(" "))) if inked else end
            start = index = following
            column = 0
            opportunity = -1
            inked = False
            continue
        column += size
        index += 1
        if character == " ":
            if inked:
                opportunity = index
        else:
            inked = True
            if index < length and _may_break(character, size, text[index]):
                opportunity = index
    if start < length or not length:
        yield start, length


def _may_break(character: str, size: int, following: str) -> bool:
    """Return whether a line may break between two characters that are not spaces."""
    if following == " ":
        return False
    following_size = _width(following)
    if not following_size or 2 not in {size, following_size}:
        return False
    return following not in _NOT_FIRST and character not in _NOT_LAST


def _skip_spaces(text: str, index: int) -> int:
    length = len(text)
    while index < length and text[index] == " ":
        index += 1
    return index
