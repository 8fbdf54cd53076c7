"""The glyph and the style class of each context status of entries, shared by all widgets."""

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
"""Glyph of each context status, one cell wide, so that they can be told apart without colour."""


def style_of(standing: Standing) -> str:
    """Return the component class that styles a context status in every widget."""
    return f"standing-{standing.name.lower()}"


STYLES: Final = tuple(style_of(standing) for standing in Standing)
"""All component classes that `style_of` can return."""
