"""Paints a line as a strip of a given width: margin, prefix, text, filling and tail.

The module also finds the style, the character or the selection at a cell of a painted line. Style
keys name component classes of the widget, whose colors are defined in the stylesheet.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.screen import Screen
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tui_agent.app.format import lower_case
from tui_agent.app.status_marks import GLYPHS, style_of
from tui_agent.app.status_marks import STYLES as STANDING_STYLES
from tui_agent.context.context_status import Standing
from tui_agent.lazy import frozen
from tui_agent.ui.widgets.transcript.lines import ROW_GROUNDS, Line, StyledSpan, cells, spans_width

MARGIN: Final = 2
"""Width of the margin, in cells.

One cell shows the context status (whether the model receives the entry), and one cell shows the bar
of the focused block.
"""

_RIGHT: Final = 1
_FOCUS_BAR: Final = "▎"


PREFIX: Final = "transcript--"

STYLES: Final = frozenset(
    {
        # text
        "text",
        "muted",
        "strong",
        "em",
        "strike",
        "link",
        "url",
        "code-inline",
        "bullet",
        "rule",
        "quote-bar",
        "heading1",
        "heading2",
        "heading3",
        "heading4",
        "reasoning",
        # code
        "code",
        "syntax-comment",
        "syntax-keyword",
        "syntax-string",
        "syntax-constant",
        "syntax-definition",
        "syntax-name",
        # diffs and tool output
        "output",
        "added",
        "removed",
        "added-sign",
        "removed-sign",
        "added-part",
        "removed-part",
        "line-number",
        "path",
        # blocks
        "user",
        "user-bar",
        "tool",
        "title",
        "marker",
        "action",
        "focus",
        "focused",
        "status-running",
        "status-ok",
        "status-error",
        "status-warning",
        "status-idle",
        # states of a line
        "match",
        "match-current",
        "standing-label",
        *STANDING_STYLES,
    }
)

COMPONENT_CLASSES: Final = frozenset(f"{PREFIX}{name}" for name in STYLES)

ACTION: Final = "act:"
"""The prefix of an action in a style key."""

LINK: Final = "url:"
"""The prefix of a link's address in a style key."""


class Palette(dict[str, Style]):
    """Maps style keys to the styles of a widget's component classes, and caches the styles.

    The owner must clear the palette when the widget's styles change.
    """

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self._widget = widget

    def __missing__(self, key: str) -> Style:
        if len(self) > 2_000:
            self.clear()
        classes = [f"{PREFIX}{name}" for name in key.split() if name in STYLES]
        style = self._widget.get_visual_style(*classes).rich_style
        if any(self._widget.get_component_styles(name).text_style.reverse for name in classes):
            # Textual's visual styles can't express reverse video.
            style += Style(reverse=True)
        if key == "focused":
            style = Style(bgcolor=style.bgcolor, bold=style.bold, reverse=style.reverse)
        elif address := value_in_style(key, LINK):
            style += Style(link=address)
        self[key] = style
        return style


def value_in_style(key: str, begins: str) -> str | None:
    """Return the text that follows the prefix ``begins`` in a style key, or None if there is none.

    For example, the key ``link url:/a`` and the prefix ``url:`` give ``/a``.
    """
    for part in key.split():
        if part.startswith(begins):
            return part.removeprefix(begins)
    return None


def text_width(width: int) -> int:
    """Return how many cells are left for prefix, text and tail in a row of ``width`` cells."""
    return max(width - MARGIN - _RIGHT, 1)


def tail_end(line: Line, width: int) -> int:
    """Return the cell at which a line's tail ends in a row that is ``width`` cells wide."""
    if line.extent:
        return min(MARGIN + line.extent, width - _RIGHT)
    return width - _RIGHT


@frozen
class Highlight:
    """A style for part of a line's text, from character ``start`` to ``end`` (excluded)."""

    start: int
    end: int
    style: Style


def paint(
    line: Line,
    width: int,
    palette: Palette,
    *,
    standing: Standing | None = None,
    focused: str | None = None,
    highlights: Sequence[Highlight] = (),
) -> Strip:
    """Return a line as a strip of ``width`` cells. A sign in the margin shows its context status.

    If the line belongs to the focused block, ``focused`` is the text to show at the right edge if
    there is room for it. For other lines, ``focused`` is None.
    """
    ground = f" {line.fill}" if line.fill in ROW_GROUNDS else ""
    base = palette[f"text{ground}"]
    rail = bar = Segment(" ", base)
    if standing is not None:
        rail = Segment(GLYPHS[standing], palette[f"{style_of(standing)}{ground}"])
    if focused is not None:
        bar = Segment(_FOCUS_BAR, palette[f"focus{ground}"])
    segments = [rail, bar]
    used = MARGIN
    for text, style in line.prefix:
        segments.append(Segment(text, palette[style]))
        used += cells(text)
    spans = line.content()
    plain = (Segment(text, palette[style]) for text, style in spans)
    for segment in _highlighted(spans, palette, highlights) if highlights else plain:
        segments.append(segment)
        used += cells(segment.text)
    tail = line.tail
    if focused and tail_end(line, width) - used - spans_width(tail) > len(focused) + 1:
        tail = ((f"{focused} " if tail else focused, "marker"), *tail)
    tail_width = spans_width(tail)
    space = tail_end(line, width) - used - tail_width
    if space > 0:
        segments.append(Segment(" " * space, palette[line.fill] if line.fill else base))
        used += space
    for text, style in tail:
        segments.append(Segment(text, palette[style]))
        used += cells(text)
    if used < width:
        segments.append(Segment(" " * (width - used), base))
        used = width
    if focused is not None:
        # Diffs and code keep their own background color.
        tint = palette["focused"]
        tinted = []
        for text, own, _ in segments:
            shown = own or base
            if shown.bgcolor == base.bgcolor:
                shown += tint
            tinted.append(Segment(text, shown))
        segments = tinted
    strip = Strip(segments, used)
    return strip.adjust_cell_length(width, base)


def offset_strip(line: Line, width: int, row_id: int) -> Strip:
    """Return a line without styles, as a strip that contains the offsets for Textual's selection.

    ``row_id`` is the line's number in selections. The cells before the text have the offset of the
    first character, so that the user can also start a selection there.
    """
    segments: list[Segment] = []
    before = MARGIN + spans_width(line.prefix)
    start = Style.from_meta({"offset": (0, row_id)})
    segments.extend(Segment(" ", start) for _ in range(before))
    position = 0
    for text, _ in line.content():
        segments.append(Segment(text, Style.from_meta({"offset": (position, row_id)})))
        position += len(text)
    used = before + spans_width(line.content())
    if used < width:
        segments.append(Segment(" " * (width - used)))
    return Strip(segments).adjust_cell_length(width)


def style_at(line: Line, x: int, width: int) -> str:
    """Return the style key at the cell ``x`` of a line that is painted ``width`` cells wide.

    Returns "" if the cell has no style key.
    """
    text = (*line.prefix, *line.content())
    tail = line.tail
    for position, spans in ((MARGIN, text), (tail_end(line, width) - spans_width(tail), tail)):
        for part, style in spans:
            if position <= x < position + cells(part):
                return style
            position += cells(part)  # noqa: PLW2901 - the walk from left to right
    return ""


def text_index_at(line: Line, x: int) -> int:
    """Return the index of the character at the cell ``x`` in the line's text.

    Returns 0 for a cell before the text, and the length of the text for a cell after it.
    """
    position = MARGIN + spans_width(line.prefix)
    text = line.text
    for index, character in enumerate(text):
        position += cells(character)
        if x < position:
            return index
    return len(text)


def selected_part(
    line: Line, y: int, selection: Selection | None, screen: Screen[object]
) -> list[Highlight]:
    """Return the selected part of a line as a list with one highlight.

    If no part of the line is selected, the list is empty. ``y`` is the line's number in the
    selection.
    """
    span = None
    if selection is not None:
        span = selection.get_span(y)
    if span is None:
        return []
    style = screen.get_component_rich_style("screen--selection")
    if screen.app.no_color:
        style = Style(reverse=True)
    elif screen.get_component_styles("screen--selection").color.a == 0:
        # In most themes, the selection's color is transparent, so the text keeps its own color.
        style = Style(bgcolor=style.bgcolor)
    return [Highlight(span[0], len(line.text) if span[1] == -1 else span[1], style)]


def _highlighted(
    spans: Sequence[StyledSpan], palette: Palette, highlights: Sequence[Highlight]
) -> Iterator[Segment]:
    offset = 0
    for text, key in spans:
        end = offset + len(text)
        cuts = {offset, end}
        for highlight in highlights:
            cuts.update(cut for cut in (highlight.start, highlight.end) if offset < cut < end)
        places = sorted(cuts)
        for start, stop in pairwise(places):
            style = palette[key]
            for highlight in highlights:
                if highlight.start <= start < highlight.end:
                    style = style + highlight.style
            yield Segment(text[start - offset : stop - offset], style)
        offset = end


def find_all(text: str, query: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end offset of each occurrence of ``query`` in a text, ignoring case.

    Yields nothing if ``query`` is empty.
    """
    if query:
        for match in re.finditer(re.escape(lower_case(query)), lower_case(text)):
            yield match.span()
