"""`Options`, an option list that avoids two crashes of Textual's `OptionList`.

Textual's list crashes if a page key is pressed before the list is first laid out, or if the user
clicks a row whose option has been removed.
"""

from textual.events import Click
from textual.widgets import OptionList


class Options(OptionList):
    """An option list that ignores early page keys, and clicks on options that have been removed."""

    @property
    def enabled(self) -> list[int]:
        """Indices of the options that are not disabled."""
        return [place for place, option in enumerate(self.options) if not option.disabled]

    @property
    def first_enabled(self) -> int | None:
        if enabled := self.enabled:
            return enabled[0]
        return None

    def on_click(self, event: Click) -> None:
        """Ignore a click on a row that is still shown although its option has been removed."""
        if event.style.meta.get("option", 0) >= self.option_count:
            event.prevent_default()

    def _move_page(self, direction: int) -> None:
        if (self.highlighted or 0) in self._index_to_line:
            super()._move_page(direction)  # type: ignore[arg-type]
