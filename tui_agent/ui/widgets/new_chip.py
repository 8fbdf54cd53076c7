"""Says that something arrived below what the user is reading."""

from textual.message import Message
from textual.widgets import Static

from tui_agent.lazy import dataclass
from tui_agent.ui.edge import Guarded


class NewChip(Guarded, Static):
    """A few words under the conversation; a click goes to its end."""

    ALLOW_SELECT = False

    @dataclass
    class Pressed(Message):
        """The user wants to see what is new."""

    def __init__(self) -> None:
        super().__init__("↓ new  ctrl+end", markup=False)
        self.display = False

    def on_click(self) -> None:
        """Go there."""
        self.post_message(self.Pressed())
