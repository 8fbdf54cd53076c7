"""Pick a theme, with each shown as the highlight passes it."""

from textual.content import Content

from tui_agent.ui.screens.picker import PickerRow, PickerScreen


class ThemePicker(PickerScreen[str]):
    """Dismissed with the name of a theme; going back restores the one before."""

    HEADING = "Theme"
    KEYS = "↑↓ preview  enter keep  esc back"

    def __init__(self) -> None:
        super().__init__()
        self._before = self.app.theme

    def refill(self, query: str) -> None:
        """Show the themes whose name holds the query; the current one is highlighted."""
        names = sorted(name for name in self.app.available_themes if query.lower() in name)
        rows = []
        for name in names:
            kind = "dark" if self.app.available_themes[name].dark else "light"
            text = Content.assemble(f"{name:<24}", self.styled(kind, "faint"))
            rows.append(PickerRow(name, text))
        self.show(rows, at=self.app.theme)

    def highlight(self, key: str | None) -> None:
        """Preview."""
        if key is not None:
            self.app.theme = key

    def pick(self, key: str) -> None:
        """Keep it."""
        self.dismiss(key)

    def action_back(self) -> None:
        self.app.theme = self._before
        self.dismiss(None)
