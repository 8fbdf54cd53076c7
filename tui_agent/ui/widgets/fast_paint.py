"""Paints plain widgets (no border, tint or opacity) faster than Textual does, by caching lines.

In each frame, Textual computes the style of every line again; for large widgets this takes a
quarter of the frame's time. If a line's strip is the same object as in the last frame, Textual also
reuses the filtered and cropped strips made from that object.

The module also contains `paint_now`, which draws a change without waiting for the next frame.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.containers import Container
from textual.filter import LineFilter
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from textual.scrollbar import ScrollBar


def plain_lines(widget: Widget, crop: Region, line: Callable[[int], Strip]) -> list[Strip] | None:
    """Return the lines of a widget within ``crop``, faster than Textual would.

    ``line`` returns the line with a given number. Returns None if the widget has a border, tint or
    opacity, because only Textual can draw these.
    """
    if not _is_plain(widget):
        return None
    below, background = widget.background_colors
    filters = widget.get_line_filters()
    filling = Style(bgcolor=(below + background).rich_color)
    return [
        _filtered(line(y).crop_extend(crop.x, crop.right, filling), filters, background)
        for y in crop.line_range
    ]


def empty_lines(widget: Widget, crop: Region) -> list[Strip] | None:
    """Return blank lines that fill ``crop`` with the widget's background color.

    Returns None if the widget has a border, tint or opacity, because only Textual can draw these.
    """
    if not _is_plain(widget):
        return None
    return [
        _empty(crop.width, *widget.background_colors, tuple(widget.get_line_filters()))
    ] * crop.height


def paint_now(widget: Widget) -> None:
    """Draw a widget's changes immediately instead of in the next frame.

    Use it for changes that the user is waiting for, because the next frame may be 8 ms away, and
    other work may delay it further. Does nothing while another screen covers the widget's screen.
    """
    screen = widget.screen
    screen._dirty_widgets.add(widget)  # noqa: SLF001 - Textual has no public way to draw at once
    screen._on_timer_update()  # noqa: SLF001 - as above


class BackgroundContainer(Container):
    """A container that only shows a background. It is drawn faster than Textual's `Container`."""

    def render_lines(self, crop: Region) -> list[Strip]:
        return empty_lines(self, crop) or super().render_lines(crop)


def bar_lines(bar: "ScrollBar", crop: Region) -> list[Strip]:
    """Return the lines of a scroll bar within ``crop``, reusing cached strips if possible."""
    from textual.scrollbar import ScrollBarRender  # imported only when needed, as in Textual itself

    match bar.render():
        case (
            ScrollBarRender(
                style=Style(color=RichColor() as colour, bgcolor=RichColor() as back)
            ) as drawn
        ) if (
            crop.bottom
            <= bar.size.height  # During a layout, Textual may ask for more lines than the bar has.
        ):
            look = drawn.virtual_size, drawn.window_size, drawn.position, drawn.thickness
            cells = drawn.render_bar(bar.size.height, *look, True, back, colour).segments  # noqa: FBT003
            base = bar.rich_style
            return plain_lines(bar, crop, lambda y: _cell(cells[y], base)) or type(
                bar
            ).render_lines(bar, crop)
        case _:
            return type(bar).render_lines(bar, crop)


@lru_cache(64)
def _cell(segment: Segment, base: Style) -> Strip:
    return Strip(Segment.apply_style([segment], base))


def _is_plain(widget: Widget) -> bool:
    styles = widget.styles
    return not styles.gutter and not styles.tint.a and widget.opacity == styles.text_opacity == 1.0


@lru_cache(32)
def _empty(width: int, below: Color, background: Color, filters: tuple[LineFilter, ...]) -> Strip:
    return _filtered(
        Strip.blank(width, Style(bgcolor=(below + background).rich_color)), filters, background
    )


def _filtered(strip: Strip, filters: Sequence[LineFilter], background: Color) -> Strip:
    for line_filter in filters:
        strip = strip.apply_filter(line_filter, background)
    return strip
