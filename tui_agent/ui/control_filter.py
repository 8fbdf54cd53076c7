"""The last thing every line of the screen goes through: nothing that a terminal would act on gets past it.

Widgets make text visible themselves, where it matters what is hidden. This holds for those that were forgotten.
"""

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from tui_agent.safe_text import ACTING


class ControlCharacterFilter(LineFilter):
    """Drops control characters and marks that reorder a line. They have no width, so the line keeps its own."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - as inherited
        """Return the segments without them; the very same list when there are none."""
        for segment in segments:
            if ACTING.search(segment.text):
                break
        else:
            return segments
        return [
            segment if segment.control else Segment(ACTING.sub("", segment.text), segment.style) for segment in segments
        ]
