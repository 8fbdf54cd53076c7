"""The beginning of what the model is shown of a block."""

from textual.content import Content
from textual.widget import Widget

from tui_agent.ui.edge import Guarded
from tui_agent.ui.widgets.transcript import sanitize

_CHARS_PER_CELL = 2


class BlockPreview(Guarded, Widget):
    """Shows one line of facts, and as much of the text as there is room for."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"block-preview--facts"}  # noqa: RUF012 - as inherited

    def __init__(self) -> None:
        super().__init__()
        self._facts = ""
        self._text = ""

    def show(self, facts: str, text: str) -> None:
        """Show another block."""
        self._facts = sanitize.line(facts)
        self._text = text
        self.refresh()

    def render(self) -> Content:
        """Draw what fits; more is not even looked at."""
        room = self.size.width * self.size.height * _CHARS_PER_CELL
        text = sanitize.output(self._text[:room]).expandtabs(4)
        lines = text.split("\n")[: self.size.height]
        facts = Content.styled(self._facts, self.get_visual_style("block-preview--facts", partial=True))
        return Content("\n").join([facts.truncate(self.size.width, ellipsis=True), Content("\n".join(lines))])
