"""Paints widgets without border, tint or opacity faster than Textual, by reusing painted lines.

Textual composes each line of a widget from its styles in every frame. For large widgets that takes
a quarter of the time of a frame. If a line's strip is the same object in each frame, Textual also
reuses its filtered and cropped versions.
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
    """Return the lines of a widget within ``crop``, made by ``line`` from the row number.

    None if the widget has a border, tint or opacity; Textual has to draw it then.
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
    """Return blank lines in the widget's background for all of ``crop``.

    None if the widget has a border, tint or opacity; Textual has to draw it then.
    """
    if not _is_plain(widget):
        return None
    return [
        _empty(crop.width, *widget.background_colors, tuple(widget.get_line_filters()))
    ] * crop.height


def paint_now(widget: Widget) -> None:
    """Draw a widget's changes on the screen at once, not in the next frame.

    For what the user is waiting for: a frame takes up to 8 ms to begin, and other work gets in
    between. Does nothing while another screen covers the widget's.
    """
    screen = widget.screen
    screen._dirty_widgets.add(widget)  # noqa: SLF001 - Textual has no public way to draw at once
    screen._on_timer_update()  # noqa: SLF001 - as above


class BackgroundContainer(Container):
    """A container that draws only a background behind its children, faster than Textual's own."""

    def render_lines(self, crop: Region) -> list[Strip]:
        return empty_lines(self, crop) or super().render_lines(crop)


def bar_lines(bar: "ScrollBar", crop: Region) -> list[Strip]:
    """Return the lines of a scroll bar within ``crop``, with cached strips where possible."""
    from textual.scrollbar import ScrollBarRender  # as late as Textual loads it

    match bar.render():
        case (
            ScrollBarRender(
                style=Style(color=RichColor() as colour, bgcolor=RichColor() as back)
            ) as drawn
        ) if (
            crop.bottom
            <= bar.size.height  # a layout may ask for more lines than the bar had when it was last measured
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
