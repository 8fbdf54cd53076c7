"""`LineView`, a widget that shows lines as the conversation does, such as a diff in a question."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tui_agent.ui.widgets.transcript.diffs import diff_body
from tui_agent.ui.widgets.transcript.lines import Line
from tui_agent.ui.widgets.transcript.paint import (
    COMPONENT_CLASSES,
    Palette,
    offset_strip,
    paint,
    selected_part,
    text_width,
)

MakeLines = Callable[[int], Iterable[Line]]
"""A function that takes a width in cells and returns lines that fit in this width."""


def diff_lines(diff: str, width: int) -> Iterator[Line]:
    """Return the lines that show a unified diff, side by side if ``width`` (in cells) is enough."""
    body = diff_body(diff, width)
    return chain.from_iterable(body.row(index, width) for index in range(len(body)))


class LineView(Widget):
    """Shows lines at their full height. The container around the widget scrolls it if necessary."""

    ALLOW_SELECT = True
    COMPONENT_CLASSES = set(COMPONENT_CLASSES)
    DEFAULT_CSS = "LineView { height: auto; }"

    def __init__(self) -> None:
        super().__init__()
        self._make: MakeLines = lambda _width: ()
        self._palette = Palette(self)
        self._lines: Sequence[Line] = ()
        self._made_for = 0
        self._painting = False

    def show(self, make: MakeLines) -> None:
        """Show the lines that ``make`` returns for the widget's width.

        If the width changes, ``make`` is called again.
        """
        self._make = make
        self._made_for = 0
        self.refresh(layout=True)

    def lines(self, width: int) -> Sequence[Line]:
        """Return the lines for a widget of ``width`` cells.

        The lines for the last width are cached.
        """
        if width != self._made_for:
            self._lines = list(self._make(text_width(width)))
            self._made_for = width
        return self._lines

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - as inherited
        return len(self.lines(width))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._palette.clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Paint the lines of the widget in the region ``crop``.

        A flag is set while painting, because Textual also calls ``render_line`` to find the text
        under the mouse.
        """
        self._painting = True
        try:
            return super().render_lines(crop)
        finally:
            self._painting = False

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        lines = self.lines(width)
        if y >= len(lines):
            return Strip.blank(width, self._palette["text"])
        if not self._painting:
            return offset_strip(lines[y], width, y)
        selected = selected_part(lines[y], y, self.text_selection, self.screen)
        return paint(lines[y], width, self._palette, highlights=selected)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text, and the line feed that separates it from other widgets' text.

        Line numbers and diff signs are left out, and wrapped lines are joined.
        """
        parts: list[str] = []
        for y, line in enumerate(self._lines):
            span = selection.get_span(y)
            if span is not None:
                if span[1] == -1:
                    end = len(line.text)
                else:
                    end = span[1]
                parts += [line.join if parts else "", line.text[span[0] : end]]
        return "".join(parts), "\n"
