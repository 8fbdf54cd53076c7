"""Styled spans of text, the lines that consist of them, and the wrapping of spans into lines.

A style is written as a key, which consists of names of component classes without their prefix,
separated by spaces (“text strong”). A key may also contain ``url:…`` (a link) or ``act:…`` (the
action for a click). paint.py turns the keys into styles.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from rich.cells import cell_len, get_character_cell_size

StyledSpan = tuple[str, str]
"""A piece of text, and the key of its style."""

StyledSpans = tuple[StyledSpan, ...]

ROW_GROUNDS: Final = frozenset({"user"})
"""Styles whose background fills the whole row of the screen, including the margin."""

_NOT_FIRST: Final = frozenset(
    "、。，．・：；？！）」』】〕〉》…ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ!),.:;?]}%"
)
"""Characters that must not begin a line of Chinese or Japanese text."""

_NOT_LAST: Final = frozenset("（「『【〔〈《([{")
"""Characters that must not end a line of Chinese or Japanese text."""

_width = lru_cache(maxsize=8192)(get_character_cell_size)


class Line:
    """A line of the conversation on the screen, without its margin.

    ``spans`` is the text. ``prefix`` is decoration to the left of the text, such as an indent, a
    quote bar or a line number, which is neither selected nor copied. ``tail`` is a text that ends
    at the right edge, or at the cell ``extent`` if that isn't 0. ``fill`` is the style of the empty
    rest of the row. A style in `ROW_GROUNDS` fills the row from edge to edge.

    Two texts are used only for copying. ``join`` is inserted between the previous line and this
    one. It is a line feed, or the spaces that were dropped when the text was wrapped. ``lead``,
    such as the bullet of a list item, is inserted before the line.
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
        """Return the spans of the line's text.

        The colors of a line of code are computed only when this is called.
        """
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
    """Return text as a tuple with one span, or as an empty tuple if the text is empty."""
    return ((text, style),) if text else ()


def cells(text: str) -> int:
    """Return the width of a text, in cells."""
    if text.isascii():
        return len(text)
    return cell_len(text)


def spans_width(spans: Iterable[StyledSpan]) -> int:
    return sum(cells(text) for text, _ in spans)


def crop(text: str, width: int) -> str:
    """Return text cut to ``width`` cells. If it was cut, it ends with an ellipsis."""
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


def crop_start(text: str, width: int) -> str:
    """Return the end of a text, at most ``width`` cells wide.

    If the text was cut, the result begins with an ellipsis.
    """
    return crop(text[::-1], width)[::-1]


def crop_spans(spans: Sequence[StyledSpan], width: int) -> StyledSpans:
    """Return spans cut to ``width`` cells in total. If they were cut, they end with an ellipsis."""
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
    """Wrap spans into lines of at most ``width`` cells, at spaces and between wide characters.

    For each line, yields the spaces that were dropped before it, and its spans. A word that is
    longer than a line is split. A line break depends only on the text up to the first character
    that doesn't fit. Therefore, when text is added, only the last line must be wrapped again.
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
    """Return the spans of the last line that `wrap` yields, with its trailing spaces."""
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
    """Wrap spans into lines.

    ``first`` is the prefix of the first line, and ``rest`` is the prefix of all other lines.
    """
    for number, (swallowed, part) in enumerate(wrap(spans, width)):
        yield Line(part, prefix=rest if number else first, join=swallowed if number else "\n")


class _Slicer:
    """Cuts several parts out of spans while reading the spans only once.

    The parts must therefore be requested in ascending order.
    """

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
    """Yield the start and end offset of each line of an ASCII text wrapped to ``width`` cells."""
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
    """Yield the start and end offset of each line after wrapping a text to ``width`` cells.

    The text may contain any characters.
    """
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
    """Return True if a line may be broken after ``character``, which is ``size`` cells wide."""
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
