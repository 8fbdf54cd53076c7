"""A static text that is shown verbatim: nothing in it is markup."""

from textual.content import Content
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
