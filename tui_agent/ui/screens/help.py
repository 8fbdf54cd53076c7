"""The help page: keys of the prompt, and a searchable list of every command, key and setting.

The page returns the chosen row, and the main screen runs its command.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets.option_list import Option

from tui_agent.app.commands import command_uses
from tui_agent.app.format import dotted, lower_case, one_line
from tui_agent.config import ConfigError
from tui_agent.lazy import frozen
from tui_agent.setting_rows import UNSET
from tui_agent.ui.key_help import rebindable_actions
from tui_agent.ui.prompt_keys import prompt_keys
from tui_agent.ui.screens.picker import PickerScreen, has_words, word_offsets
from tui_agent.ui.widgets.plain_text import PlainText

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from textual.binding import BindingType

    from tui_agent.app.controller import Controller

MAX_KEYS_ABOVE = 10
"""Number of the prompt's keys that are shown above the list."""
MIN_HEIGHT_FOR_KEYS = 20
"""Minimum height of the screen, in rows, at which the help shows keys above the list."""
MIN_WIDTH_FOR_KEY_COLUMN = 60
"""Minimum width of the screen, in cells, at which the list has a column for keys."""
SMALL_WORD = 2
"""Maximum length, in letters, of the short words (such as do, I and a) that a search ignores if it
also has longer words."""
NAME_CELLS = 20
KEY_CELLS = 14


@frozen
class HelpRow:
    """A row of the help page's list.

    Choosing it runs ``command`` with ``arguments``. If ``command`` is "", choosing it only closes
    the help.
    """

    id: str
    name: str
    keys: str
    text: str
    command: str = ""
    arguments: str = ""
    needs_argument: bool = False
    """Whether the command needs an argument. If so, choosing the row doesn't run the command, but
    puts it into the prompt."""
    also: str = ""
    """Further text in which a search looks for its words."""


def help_rows(
    controller: Controller, own: Sequence[BindingType], keymap: Mapping[str, str]
) -> Iterator[HelpRow]:
    """Yield the rows of the help: commands, the most used first, then keys, then settings.

    ``own`` are the main screen's bindings, ``keymap`` the user's keys by action id. Settings are
    omitted if they can't be read.
    """
    used = command_uses(controller.services.state_dir)
    for command in sorted(
        controller.commands, key=lambda row: -used[row.name] * (row.name != "help")
    ):
        name = f"/{command.name} {command.argument}".strip()
        keys = keymap.get(command.name, command.key)
        yield HelpRow(
            f"/{command.name}",
            name,
            keys,
            command.help,
            command=command.name,
            needs_argument=command.needs_argument,
            also=", ".join(filter(None, (*command.aliases, command.words))),
        )
    actions = rebindable_actions(own)
    for keys, text in prompt_keys(actions, keymap):
        yield HelpRow(f"key {keys}", "key", keys, text)
    names = {command.name for command in controller.commands}
    for action in (action for action in actions if action.id not in names):
        yield HelpRow(
            f"name {action.id}", action.id, keymap.get(action.id, action.keys), action.help
        )
    try:
        settings = controller.services.settings_rows()
    except ConfigError:
        return
    for row in settings:
        if row.value == UNSET:
            value = ""
        else:
            value = one_line(row.value, 12)
        meaning = row.description.replace("``", "")
        yield HelpRow(
            f"setting {row.key}",
            row.key,
            value,
            meaning,
            command="settings",
            arguments=row.key,
        )


def best_matches(rows: Sequence[HelpRow], words: Sequence[str]) -> list[HelpRow]:
    """Return the rows that contain the most words; among them, only the rows with the rarest words.

    ``words`` are in lower case. Words of at most `SMALL_WORD` letters are ignored if there are
    longer words. Returns all rows if there are no words, [] if no row contains any of them.
    """
    long = [word for word in words if len(word) > SMALL_WORD] or words
    texts = [f"{row.name} {row.keys} {row.text} {row.also}" for row in rows]
    words_in = []
    rows_with: Counter[str] = Counter()
    for text in texts:
        found = [word for word in long if has_words(text, [word])]
        words_in.append(found)
        rows_with.update(found)
    weights = []
    for found in words_in:
        weights.append((len(found), sum(1 / rows_with[word] for word in found)))
    best = max(weights, default=(0, 0))
    if words and not best[0]:
        return []
    return [row for row, weight in zip(rows, weights, strict=True) if weight == best]


def _sort_key(row: HelpRow, words: Sequence[str]) -> tuple[bool, bool]:
    """Return a key by which search results are sorted.

    Commands whose name begins with one of the words come first, then rows that contain all words.
    """
    is_named = any(row.name.startswith(f"/{word}") for word in words)
    has_all = has_words(f"{row.name} {row.text}", words)
    return not is_named, not has_all


def details_of(row: HelpRow) -> str:
    """Return a row's full text, which is cut off in the list: name, keys, help and search words."""
    name = dotted(row.name, row.keys.replace(",", " "))
    also = row.also and f"also: {row.also}"
    return "\n".join(filter(None, (name, row.text, also)))


class HelpScreen(PickerScreen[HelpRow]):
    """The help page, with a search field. Its result is the row that the user chose."""

    HEADING = "Help"
    PLACEHOLDER = "Type to find commands, keys, settings"
    KEYS = "↑↓ move  enter run  esc back"

    def __init__(self, rows: Sequence[HelpRow], *, with_keys: bool, query: str = "") -> None:
        """Create the page; ``query`` is the initial text of the search field.

        With ``with_keys``, keys of the prompt are shown above the list until the user types.
        """
        super().__init__()
        self._rows = {row.id: row for row in rows}
        self._with_keys = with_keys
        self._query = query

    def on_mount(self) -> None:
        self.field.value = self._query

    def body(self) -> ComposeResult:
        keys = [row for row in self._rows.values() if row.name == "key"]
        yield PlainText(
            "\n".join(f"{row.keys:<21} {row.text}" for row in keys[:MAX_KEYS_ABOVE]), id="here"
        )
        yield from super().body()

    def refill(self, query: str, *, at: str | None = None) -> None:
        words = lower_case(query).split()
        self.query_one("#here").display = (
            self._with_keys and not words and self.app.size.height >= MIN_HEIGHT_FOR_KEYS
        )
        found = best_matches(list(self._rows.values()), words)
        # If there is no room to show the keys above the list, show them first in the list.
        keys_first = self._with_keys and not words and not self.query_one("#here").display
        if keys_first:
            found.sort(key=lambda row: row.name != "key")
        else:
            found.sort(key=lambda row: _sort_key(row, words))
        rows = (Option(self._row(row, words), id=row.id) for row in found)
        self.show(rows, count=len(found), at=at)

    def pick(self, key: str) -> None:
        self.dismiss(self._rows[key])

    def highlight(self, key: str | None) -> None:
        row = self._rows.get(key or "")
        if row is None or self.query_one("#here").display:
            self.show_note("")
        else:
            self.show_note(details_of(row))

    def _row(self, row: HelpRow, words: Sequence[str]) -> Content:
        wide = self.app.size.width >= MIN_WIDTH_FOR_KEY_COLUMN
        if wide:
            cells = NAME_CELLS
        else:
            cells = NAME_CELLS - 6
        if row.name == "key" and not wide:
            shown = row.keys
        else:
            shown = row.name
        name = Content(shown).truncate(cells, ellipsis=True).plain
        keys = Content(row.keys.replace(",", " ")).truncate(KEY_CELLS, ellipsis=True).plain
        found = [word for word in words if has_words(row.text, [word])]
        text = self.marked(row.text, word_offsets(row.text, found))
        column = ""
        if wide:
            column = f"{keys:<{KEY_CELLS}} "
        return Content.assemble(
            self.styled(f"{name:<{cells}} ", "strong"), self.styled(column, "faint"), text
        )
