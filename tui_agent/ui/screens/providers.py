"""The providers one can log in to: type to find one, Enter picks it."""

from collections.abc import Sequence

from textual.content import Content

from tui_agent.app.format import one_line
from tui_agent.app.services import LoginRow
from tui_agent.ui.screens.picker import PickerRow, PickerScreen


class ProviderPicker(PickerScreen[str]):
    """Dismissed with a provider's id."""

    HEADING = "Log in to"
    EMPTY = "No provider has this name."

    def __init__(self, rows: Sequence[LoginRow]) -> None:
        super().__init__()
        self._rows = rows

    def refill(self, query: str) -> None:
        """Show the providers whose name or id holds what was typed."""
        wanted = query.lower()
        found = [row for row in self._rows if wanted in row.name.lower() or wanted in row.id]
        self.show([PickerRow(row.id, self._row(row)) for row in found], at=self.highlighted)

    def pick(self, key: str) -> None:
        """Take it."""
        self.dismiss(key)

    def _row(self, row: LoginRow) -> Content:
        mark = self.styled("✓ ", "good") if row.source else self.styled("· ", "faint")
        note = f"key from {row.source}" if row.source else row.variable
        return Content.assemble(mark, f"{one_line(row.name, 22):<24}", self.styled(one_line(note, 40), "faint"))
