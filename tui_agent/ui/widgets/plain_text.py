"""`PlainText`, a static text that is shown literally, even if it looks like markup."""

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
        """Replace the text.

        Does nothing if the new text equals the current string. While the widget is hidden, the
        screen is not laid out again.
        """
        shown = self.content
        if isinstance(content, str) and isinstance(shown, str) and content == shown:
            return
        super().update(content, layout=layout and self.display)
