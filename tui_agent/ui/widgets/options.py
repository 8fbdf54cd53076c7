"""Textual's option list, made safe for keys before its layout and clicks on rows that are gone."""

from textual.events import Click
from textual.widgets import OptionList


class Options(OptionList):
    """A list of options to choose from."""

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
        """Ignore a click on a drawn row whose option no longer exists."""
        if event.style.meta.get("option", 0) >= self.option_count:
            event.prevent_default()

    def _move_page(self, direction: int) -> None:
        if (self.highlighted or 0) in self._index_to_line:
            super()._move_page(direction)  # type: ignore[arg-type]
