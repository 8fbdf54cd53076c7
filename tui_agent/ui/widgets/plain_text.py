"""`PlainText`, a static widget that shows its text literally, even if it looks like markup."""

from textual.content import Content
from textual.visual import VisualType
from textual.widgets import Static


class PlainText(Static):
    """A `Static` that doesn't parse markup: square brackets are shown as they are."""

    def __init__(
        self,
        content: str | Content = "",
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(content, id=id, classes=classes, markup=False)

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Replace the displayed text.

        Does nothing if the widget already shows this string. The screen is laid out again only if
        the widget is visible.
        """
        shown = self.content
        if isinstance(content, str) and isinstance(shown, str) and content == shown:
            return
        super().update(content, layout=layout and self.display)
