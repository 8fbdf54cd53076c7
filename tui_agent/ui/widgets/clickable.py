"""Text that runs an action when clicked."""

from textual.content import Content
from textual.style import Style


def clickable(text: str, style: str, action: str) -> Content:
    """Return text styled as ``.status--key`` or the like; a click runs ``action``, if not ""."""
    content = Content.styled(text, style)
    if not action:
        return content
    return content.stylize(Style.from_meta({"@click": action}))
