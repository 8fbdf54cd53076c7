"""Wraps text that has two columns, such as keys and their descriptions, and aligns the columns."""

import re
from typing import Final

from rich.cells import cell_len
from textual._wrap import compute_wrap_offsets
from textual.content import Content
from textual.geometry import Size

from tui_agent.ui.widgets.plain_text import PlainText

_COLUMN: Final = re.compile(r"^(\s*\S.*? {2,})\S")
_MIN_WIDTH: Final = 16
"""Minimum width, in cells, of the second column.

If less room is left, the second column is shown below the first.
"""
_BELOW: Final = 2
"""Indentation, in cells, of a second column that is shown below the first."""


def wrap_columns(text: Content, width: int) -> Content:
    """Wrap ``text`` to ``width`` cells, and indent wrapped lines to the start of the second column.

    The second column begins after the first gap of two or more spaces in a line. A line with only
    one column is wrapped with its own indentation.
    """
    parts = []
    for line in text.split("\n", allow_blank=True):
        parts.extend(_wrapped(line, max(width, 1)))
    return Content("\n").join(parts)


def _wrapped(line: Content, width: int) -> list[Content]:
    if line.cell_length <= width:
        return [line]
    column = _COLUMN.match(line.plain)
    if column:
        start = column.end(1)
    else:
        start = len(line.plain) - len(line.plain.lstrip())
    indent = cell_len(line.plain[:start])
    if indent > _BELOW and width - indent < _MIN_WIDTH:
        if column:
            before = [line[:start].rstrip()]
        else:
            before = []
        return [*before, *_wrapped(Content.assemble(" " * _BELOW, line[start:]), width)]
    offsets = compute_wrap_offsets(line.plain[start:], max(1, width - indent), 4)
    first, *others = line.divide([start + offset for offset in offsets])
    return [first.rstrip(), *(Content.assemble(" " * indent, other.rstrip()) for other in others)]


class HangingText(PlainText):
    """Static text in two columns, wrapped to the width of the widget by `wrap_columns`."""

    def get_content_width(self, container: Size, viewport: Size) -> int:  # noqa: ARG002 - as inherited
        """Return the width of the longest line, plus one cell for the container's scroll bar."""
        return max(cell_len(line) for line in self._whole.plain.split("\n")) + 1

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - as inherited
        return len(wrap_columns(self._whole, width).plain.split("\n"))

    def render(self) -> Content:
        return wrap_columns(self._whole, self.size.width)

    @property
    def _whole(self) -> Content:
        if isinstance(self.content, Content):
            return self.content
        return Content(str(self.content))
