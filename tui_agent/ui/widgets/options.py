"""Textual's option list without two of its crashes: early page keys, and clicks on removed rows."""

from textual.events import Click
from textual.widgets import OptionList


class Options(OptionList):
    """An option list in which page keys before the first layout are ignored."""

    @property
    def enabled(self) -> list[int]:
        """Indices of the options that can be chosen."""
        return [place for place, option in enumerate(self.options) if not option.disabled]

    @property
    def first_enabled(self) -> int | None:
        if enabled := self.enabled:
            return enabled[0]
        return None

    def on_click(self, event: Click) -> None:
        """Ignore a click on a row that is still drawn but whose option no longer exists."""
        if event.style.meta.get("option", 0) >= self.option_count:
            event.prevent_default()

    def _move_page(self, direction: int) -> None:
        if (self.highlighted or 0) in self._index_to_line:
            super()._move_page(direction)  # type: ignore[arg-type]
