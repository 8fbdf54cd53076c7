"""The header line of the screen: the session's title, its directory and its git branch."""

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from tui_agent.app.format import one_line

MIN_TERMINAL_SIZE = Size(30, 8)
"""Minimum size of a usable terminal, in columns and rows."""


class SessionHeader(Widget):
    """Shows the session's title on the left, and its directory and git branch on the right."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {
        "session-header--title",
        "session-header--place",
        "session-header--cramped",
    }

    title: reactive[str] = reactive("")
    directory: reactive[str] = reactive("")
    branch: reactive[str] = reactive("")
    note: reactive[str] = reactive("")
    """Text after the title, such as “read only” or how to leave a subagent; "" for none."""

    cramped: reactive[bool] = reactive(default=False)
    """Whether the terminal is smaller than `MIN_TERMINAL_SIZE`. If so, the header shows only the
    size that is needed."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        self.set_reactive(SessionHeader.directory, directory)

    def render(self) -> Content:
        """Return the content of the header line.

        If it doesn't fit, the start of the directory is cut first, then the end of the title. If
        `cramped`, the line only says how large the terminal has to be.
        """
        width = self.size.width
        if self.cramped:
            return Content.styled(
                f"▲ needs {MIN_TERMINAL_SIZE.width}×{MIN_TERMINAL_SIZE.height}",
                ".session-header--cramped",
            )
        title = one_line(self.title) or "New session"
        if self.note:
            title = f"{title} · {self.note}"
        place = self.directory + (f" ({one_line(self.branch, 40)})" if self.branch else "")
        room = max(12, width - min(cell_len(title), width // 2) - 2)
        if cell_len(place) > room:
            place = "…" + set_cell_size(place[::-1], room - 1).rstrip()[::-1]
        space = max(1, width - cell_len(place) - 2)
        if cell_len(title) > space:
            title = set_cell_size(title, space - 1).rstrip() + "…"
        gap = max(2, width - cell_len(title) - cell_len(place))
        return Content.assemble(
            (title, ".session-header--title"),
            " " * gap,
            (place, ".session-header--place"),
        )
