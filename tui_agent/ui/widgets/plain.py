"""Painting widgets around whose lines a style sheet draws nothing: a line painted once is the same strip ever after.

Textual puts each line of a widget together again from its styles. For those that fill the screen, and for what lies
behind them, that is a quarter of the cost of a frame; a strip that stays the same object keeps what filters and cuts
made of it.
"""

from collections.abc import Callable
from functools import lru_cache

from rich.style import Style
from textual.containers import Container
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


def plain_lines(widget: Widget, crop: Region, line: Callable[[int], Strip]) -> list[Strip] | None:
    """Return the lines of a widget as it makes them, None where its style draws more: a border, a tint, opacity."""
    styles = widget.styles
    if styles.gutter or styles.tint.a or widget.opacity != 1.0 or styles.text_opacity != 1.0:
        return None
    background, filters, filling = widget.background_colors[1], widget.get_line_filters(), _filling(widget)
    strips = []
    for y in crop.line_range:
        strip = line(y).crop_extend(crop.x, crop.right, filling)
        for line_filter in filters:
            strip = strip.apply_filter(line_filter, background)
        strips.append(strip)
    return strips


def empty_lines(widget: Widget, crop: Region) -> list[Strip] | None:
    """Return the lines of a widget that is nothing but background between others."""
    blank = _blank(crop.right, _filling(widget))
    one = plain_lines(widget, Region(crop.x, crop.y, crop.width, min(crop.height, 1)), lambda _y: blank)
    return None if one is None else one * crop.height


class Room(Container):
    """A container that shows nothing but its background."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return empty lines."""
        return empty_lines(self, crop) or super().render_lines(crop)


def _filling(widget: Widget) -> Style:
    below, own = widget.background_colors
    return Style(bgcolor=(below + own).rich_color)


@lru_cache(16)
def _blank(width: int, style: Style) -> Strip:
    return Strip.blank(width, style)
