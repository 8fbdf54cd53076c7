"""The settings page: shows each setting's value, origin and meaning; saves and applies changes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual import work
from textual.content import Content
from textual.widgets.option_list import Option

from tui_agent.app.context_commands import reread_settings
from tui_agent.app.format import lower_case, one_line, short_path, tokens, visible
from tui_agent.app.frontend import Choice, Question, TextLine, ThemeChoice
from tui_agent.app.model_commands import ask_for_model, choose_model
from tui_agent.app.setting_names import sentence_of, sorted_by_group, value_of
from tui_agent.config import ConfigError, parse_value
from tui_agent.errors import UserFacingError
from tui_agent.model.naming import NameStanding
from tui_agent.setting_rows import UNSET, SettingRow, takes_effect
from tui_agent.ui.bindings import hidden
from tui_agent.ui.screens.picker import PickerScreen, has_words

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller

MODEL_SETTINGS = frozenset({"model", "small_model", "compaction.model"})
"""Keys of settings that name a model."""


def _when_effective(key: str) -> str:
    """Return a sentence, after a space, that says when a change of the setting takes effect.

    Returns "" if it takes effect at once.
    """
    when = takes_effect(key)
    if when:
        return f" A change takes effect {when}."
    return ""


def _value_text(row: SettingRow) -> str:
    if row.value == UNSET:
        return ""
    return row.value


class SettingsScreen(PickerScreen[None]):
    """The settings page. Enter changes the highlighted setting."""

    HEADING = "Settings"
    EMPTY = "No setting has this name."
    KEYS = "↑↓ move  enter change  ctrl+r back to the default  esc back"
    BINDINGS = [hidden("ctrl+r", "reset", "default", priority=True)]

    def __init__(self, controller: Controller, query: str = "") -> None:
        """Create the page; ``query`` is the initial filter."""
        super().__init__()
        self._query = query
        self._controller = controller
        self._rows: dict[str, SettingRow] = {}
        self._saved = ("", "")
        """Key of the setting that was changed last, and the sentence that is shown about that
        change."""
        self._refused = ("", "")
        """Key of the setting whose last typed value was not accepted, and that value."""

    def on_mount(self) -> None:
        self.field.value = self._query
        self._read()

    def _read(self) -> None:
        problem = ""
        try:
            self._rows = {row.key: row for row in self._controller.services.settings_rows()}
        except ConfigError as error:
            self._rows = {}
            problem = str(error)
        self.empty.update(visible(problem or self.EMPTY))

    # -- the list

    def refill(self, query: str, *, at: str | None = None) -> None:
        at = at or self.highlighted
        words = lower_case(query).split()
        if not words:
            self.show(self._grouped(), count=len(self._rows), at=at)
            return
        rows = []
        for row in self._rows.values():
            text = f"{row.key} {row.words} {sentence_of(row)} {row.description}"
            if has_words(text, words):
                rows.append(Option(self._row(row), id=row.key))
        self.show(rows, count=len(rows), at=at)

    def _grouped(self) -> Iterator[Option]:
        """Yield a row for every setting, with a heading before each group of settings."""
        for name, rows in sorted_by_group(list(self._rows.values())).items():
            yield self.heading_row(name, "strong")
            for row in rows:
                yield Option(self._row(row), id=row.key)

    def _row(self, row: SettingRow) -> Content:
        """Return a setting's row: its name, value, origin and, in a wide terminal, its key."""
        room = self.app.size.width
        if room >= 76:
            cells = 38
        else:
            cells = min(28, room - 16)
        name = Content(sentence_of(row)).truncate(cells, ellipsis=True)
        changed = row.origin != "default"
        if room >= 120:
            longest = 40
        else:
            longest = min(20, room - cells - 6)
        value = Content(one_line(self._current_value(row), longest))
        if changed:
            origin = f"  {row.origin}"
        else:
            origin = ""
        beside = ""
        if room >= 100:
            beside = f"  {row.key}"
        gap = " " * (cells + 2 - name.cell_length)
        facts = self.styled(f"{origin}{beside}", "faint")
        return Content.assemble(
            name, gap, self.styled(f"{value.plain:<20}", "strong" if changed else "faint"), facts
        )

    def _current_value(self, row: SettingRow) -> str:
        """Return a setting's value as text; if it is not set, the value that is used instead.

        That value is known only for the theme, the model and the compaction threshold.
        """
        agent = self._controller.agent
        if row.value != UNSET:
            return value_of(row)
        if row.key == "ui.theme":
            return f"{self.app.theme} (auto)"
        if row.key == "model" and agent is not None:
            return f"{agent.model} (chosen)"
        if row.key == "compaction.threshold" and agent is not None:
            return f"{tokens(agent.context_size().threshold or 0)} (auto)"
        return value_of(row)

    def highlight(self, key: str | None) -> None:
        about = ""
        if (row := self._rows.get(key or "")) is not None:
            about = f"{row.description}\nAccepts {row.accepts}.{_when_effective(row.key)} In config.toml: {row.key}."
        saved, said = self._saved
        if saved == key:
            about = f"{said}\n{about}"
        self.show_note(about)

    # -- editing

    def pick(self, key: str) -> None:
        """Change the picked setting: toggle it, or ask for its value.

        For a table or list, say where it can be edited.
        """
        row = self._rows[key]
        if not row.editable:
            path = short_path(self._controller.services.config_path)
            self.show_note(
                f"{row.description}\nThis can't be edited here: change it in {path}, then open this page again."
            )
        elif set(row.choices) == {"true", "false"}:
            self._save(key, row.value != "true")
        else:
            self._controller.soon(self._change(row))

    async def _change(self, row: SettingRow) -> None:
        if row.key in MODEL_SETTINGS:
            text = await ask_for_model(self._controller, _value_text(row))
        else:
            text = await self._controller.ask(self._question(row))
        self._save_typed(row.key, text)

    def _question(self, row: SettingRow) -> Question[str]:
        if row.key == "ui.theme":
            return ThemeChoice()
        if row.choices:
            answers = [(choice, choice) for choice in row.choices if choice != row.value]
            if row.value in row.choices:
                answers.insert(0, (row.value, f"{row.value} (current)"))
            return Choice(sentence_of(row), answers, row.description)
        text = _value_text(row)
        if self._refused[0] == row.key:
            text = self._refused[1]
        return TextLine(sentence_of(row), text, "save", f"Accepts {row.accepts}.")

    def _save_typed(self, key: str, text: str | None) -> None:
        if text == _value_text(self._rows[key]):
            self._saved = (key, "Nothing changed.")
            self.highlight(key)
        elif text is not None:
            self._refused = (key, text)
            self._save(key, parse_value(text) if text else None)

    def _save(self, key: str, value: object) -> None:
        """Save and apply the value of a setting; if it is not accepted, show why.

        The value None restores the default.
        """
        try:
            if key in MODEL_SETTINGS and isinstance(value, str):
                self._save_model(key, value)
                return
            if key == "ui.theme" and isinstance(value, str) and value in self.app.available_themes:
                self._controller.frontend.use_theme(value)
                self._controller.services.save_setting(key, value)
            elif key == "ui.theme" and value is not None:
                self.show_note(f"There is no theme “{value}”; /theme shows them all.", "error")
                return
            else:
                self._controller.services.save_setting(key, value)
        except (ConfigError, OSError) as error:
            self.show_note(str(error), "error")
            return
        self._show_saved(key)

    @work(exclusive=True, group="model")
    async def _save_model(self, key: str, name: str) -> None:
        if key == "model":
            try:
                changed = await choose_model(self._controller, name)
            except UserFacingError as error:
                self.show_note(str(error), "error")
            else:
                self._show_saved(key, "Saved." if changed else "Nothing changed.")
            return
        verdict = await asyncio.to_thread(self._controller.services.judge_model, name)
        if verdict.standing is NameStanding.IMPOSSIBLE:
            self.show_note(verdict.sentence, "error")
            return
        self._controller.services.save_setting(key, name)
        self._show_saved(key)

    def _show_saved(self, key: str, saved: str = "") -> None:
        """Apply the saved settings.

        Show ``saved`` or, if that is "", say when the settings take effect.
        """
        when = _when_effective(key)
        try:
            reread_settings(self._controller)
        except ConfigError as error:
            when = f" The change is not in effect yet. {error}"
        self._saved = (key, saved or f"Saved.{when}")
        self._refused = ("", "")
        self._read()
        self.redraw()

    def action_reset(self) -> None:
        if (key := self.highlighted) is not None and self._rows[key].editable:
            if self._rows[key].origin == "default":
                self._save_typed(key, _value_text(self._rows[key]))  # says “Nothing changed.”
            else:
                self._save(key, None)
