"""Text of the program and of others as it is: nothing in it is markup."""

from textual.content import Content
from textual.widgets import Static


class PlainText(Static):
    """A static text in which square brackets are square brackets."""

    def __init__(
        self,
        content: str | Content = "",
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(content, id=id, classes=classes, markup=False)
