"""Settings: every one with its value, where that comes from and what it means; a change is saved at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static

from tui_agent.config import ConfigError, parse_value
from tui_agent.model.naming import Standing
from tui_agent.ui import following
from tui_agent.ui.format import one_line, short_path, visible
from tui_agent.ui.handlers import choose_model
from tui_agent.ui.screens.picker import PickerScreen, Row
from tui_agent.ui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from tui_agent.setting_rows import SettingRow
    from tui_agent.ui.screens.main import MainScreen

MODELS = frozenset({"model", "small_model", "compaction.model"})
"""Settings that name a model."""


def _when(key: str) -> str:
    """Return a sentence when a change does not count at once."""
    from tui_agent.setting_rows import counts

    when = counts(key)
    return f" A change counts {when}." if when else ""


class SettingsScreen(PickerScreen[None]):
    """Lists the settings; Enter edits the highlighted one."""

    HEADING = "Settings"
    EMPTY = "No setting has this name."
    KEYS = "↑↓ move  enter change  ctrl+r back to the default  esc back"
    EDIT_KEYS = "enter save  esc leave it"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+r", "reset", "default", show=False, priority=True)]

    value = getters.query_one("#value", Input)
    about = getters.query_one("#about", Static)
    keys = getters.query_one("#keys", KeyLine)

    def __init__(self, main: MainScreen) -> None:
        super().__init__()
        self._main = main
        self._rows: dict[str, SettingRow] = {}
        self._editing: str | None = None
        self._saved: tuple[str, str] | None = None

    def compose(self) -> ComposeResult:
        """The list, what the highlighted setting is about, and a field for its value."""
        *above, keys = super().compose()
        yield from above
        yield Static("", id="about", markup=False)
        yield Input(id="value", compact=True)
        yield keys

    def on_mount(self) -> None:
        """Read the settings."""
        self.value.display = False
        self._read()
        super().on_mount()

    def _read(self) -> None:
        try:
            self._rows = {row.key: row for row in self._main.services.settings_rows()}
        except ConfigError as error:
            self._say(str(error), "error")

    # -- the list ---------------------------------------------------------------------------------------------

    def refill(self, query: str) -> None:
        """Show the settings whose key or description holds every word."""
        words = query.lower().split()
        found = [
            row for row in self._rows.values() if all(word in f"{row.key} {row.description}".lower() for word in words)
        ]
        self.show([Row(row.key, self._row(row)) for row in found], at=self.highlighted)

    def _row(self, row: SettingRow) -> Content:
        wide = self.app.size.width >= 100
        name = f"{row.key:<34}" if wide else f"{row.key:<30}"
        value = one_line(row.value, 40 if wide else 22)
        changed = row.origin != "default"
        origin = self.styled(f"  {row.origin}", "faint") if changed else ""
        return Content.assemble(name, " ", self.styled(f"{value:<12}", "strong" if changed else "faint"), origin)

    def highlight(self, key: str | None) -> None:
        """Say what the setting is about."""
        row = self._rows.get(key or "")
        about = f"{row.description}\nAccepts {row.accepts}.{_when(row.key)}" if row is not None else ""
        self._say(f"{self._saved[1]}\n{about}" if self._saved is not None and self._saved[0] == key else about)

    def _say(self, text: str, severity: str = "") -> None:
        self.about.update(visible(text))
        self.about.set_classes(f"-{severity}" if severity else "")

    # -- editing ----------------------------------------------------------------------------------------------

    def pick(self, key: str) -> None:
        """Change a setting: the next of two values, otherwise in the field."""
        row = self._rows[key]
        if not row.editable:
            path = short_path(self._main.services.config_path)
            self._say(f"{row.description}\nIt is a table: write it in {path}; /settings reload has it count.")
        elif set(row.choices) == {"true", "false"}:
            self._save(key, row.value != "true")
        else:
            self._editing = key
            self.value.display = True
            self.value.value = "" if row.value == "—" else row.value
            self.value.focus()
            self.keys.show(self.EDIT_KEYS)

    @on(Input.Submitted, "#value")
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._editing is not None:
            text = event.value.strip()
            row = self._rows[self._editing]
            # What may only be one of some words is a word, although TOML would read another kind of value.
            self._save(self._editing, None if not text else text if row.choices else parse_value(text))

    @on(Input.Changed, "#value")
    def _changed(self, event: Input.Changed) -> None:
        event.stop()

    def _save(self, key: str, value: object) -> None:
        """Save a value, None for the default; one that is not accepted changes nothing and is told of."""
        try:
            if key in MODELS and isinstance(value, str):
                self._choose(key, value)
                return
            if key == "ui.theme" and isinstance(value, str) and value in self.app.available_themes:
                self._main.use_theme(value)
            elif key == "ui.theme" and value is not None:
                self._say(f"There is no theme “{value}”; /theme shows them all.", "error")
                return
            else:
                self._main.services.save_setting(key, value)
        except (ConfigError, OSError) as error:
            self._say(str(error), "error")
            return
        self._told(key)

    @work(exclusive=True, group="model")
    async def _choose(self, key: str, name: str) -> None:
        """Save a model's name when there may be such a model."""
        if key == "model":
            if await choose_model(self._main, name):
                self._told(key, "Saved.")
            else:
                self._say(self._main.notice.message, "error")
            return
        verdict = await asyncio.to_thread(self._main.services.judge_model, name)
        if verdict is not None and verdict.standing is Standing.IMPOSSIBLE:
            self._say(verdict.sentence, "error")
            return
        self._main.services.save_setting(key, name)
        self._told(key)

    def _told(self, key: str, saved: str = "") -> None:
        """Have what was saved count as far as it can, and say from when on it does."""
        when = _when(key)
        try:
            following.follow(self._main)
        except ConfigError as error:
            when = f" It does not count yet. {error}"
        self._saved = key, saved or f"Saved.{when}"
        self._end_editing()
        self._read()
        self.refill(self.field.value.strip())

    def action_reset(self) -> None:
        """Go back to the default."""
        if (key := self._editing or self.highlighted) is not None and self._rows[key].editable:
            self._save(key, None)

    def _end_editing(self) -> None:
        self._editing = None
        self.value.display = False
        self.keys.show(self.KEYS)
        self.field.focus()

    def action_back(self) -> None:
        """Leave the value as it was, or go back."""
        if self._editing is None:
            super().action_back()
            return
        self._end_editing()
        self.highlight(self.highlighted)
