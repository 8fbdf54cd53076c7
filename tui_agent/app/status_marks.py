"""Glyphs and styles of the context status of entries, for the margin, the tree, the map and the gauge."""

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
"""One-cell glyph for each context status, distinguishable without colour."""


def style_of(standing: Standing) -> str:
    """Return the component class that styles a context status in every widget."""
    return f"standing-{standing.name.lower()}"


STYLES: Final = tuple(style_of(standing) for standing in Standing)
"""Component classes of all context statuses."""
