"""Text that runs an action when the user clicks on it."""

from textual.content import Content
from textual.style import Style


def clickable(text: str, style: str, action: str) -> Content:
    """Return ``text`` in a style such as ``.status--key``. A click on it runs ``action``.

    If ``action`` is "", the text can't be clicked.
    """
    content = Content.styled(text, style)
    if not action:
        return content
    return content.stylize(Style.from_meta({"@click": action}))
