"""The mark of each standing, in the margin, the tree, the map and the gauge alike."""

from typing import Final

from tui_agent.context.context_status import Standing

GLYPHS: Final = {
    Standing.SENT: "▏",
    Standing.PINNED: "◆",
    Standing.SUMMARISED: "▒",
    Standing.CLEARED: "┊",
    Standing.HIDDEN: "×",
    Standing.UNSENT: " ",
}
"""One cell for each: the usual case is a thin line, and the others differ from it without colour
too."""


def style_of(standing: Standing) -> str:
    """Return the name of the style a standing is drawn in, which every widget has as a component class."""
    return f"standing-{standing.name.lower()}"


STYLES: Final = tuple(style_of(standing) for standing in Standing)
"""The names of all of them."""
