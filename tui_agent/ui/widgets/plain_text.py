"""A static text that is shown verbatim: nothing in it is markup."""

from textual.content import Content
from textual.visual import VisualType
from textual.widgets import Static


class PlainText(Static):
    """A `Static` without markup: square brackets are shown as such."""

    def __init__(
        self,
        content: str | Content = "",
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(content, id=id, classes=classes, markup=False)

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Show another text.

        The screen is laid out again only if it has to be: not for the same text, and not while the
        widget is hidden.
        """
        shown = self.content
        if isinstance(content, str) and isinstance(shown, str) and content == shown:
            return
        super().update(content, layout=layout and self.display)
