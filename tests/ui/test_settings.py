"""The settings screen on a real file, and the user's own keys."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.binding import BindingsMap
from textual.dom import DOMNode
from textual.widgets import Input

from tests.support.ui_app import (
    STILL,
    Stage,
    emit,
    make_stage,
    press,
    run_command,
    screen_text,
    send,
    until,
    write,
)
from tui_agent.agent.events import RunStarted
from tui_agent.app import commands as commands_module
from tui_agent.app.commands import command_table
from tui_agent.app.setting_names import GROUPS, OTHERS, sentence_of, sorted_by_group
from tui_agent.config import THEMES, Config, ConfigError, load_config, set_value
from tui_agent.setting_rows import setting_rows
from tui_agent.ui.app import TuiAgentApp
from tui_agent.ui.key_help import RESERVED, Rebindable, check_keymap, rebindable_actions
from tui_agent.ui.key_order import WORD_KEYS
from tui_agent.ui.prompt_keys import PROMPT_KEYS
from tui_agent.ui.screens.context import ContextScreen
from tui_agent.ui.screens.dialogs import ChoiceScreen, ReportScreen
from tui_agent.ui.screens.help import HelpScreen
from tui_agent.ui.screens.main import MainScreen
from tui_agent.ui.screens.models import ModelPicker
from tui_agent.ui.screens.picker import ThemePicker
from tui_agent.ui.screens.settings import SettingsScreen
from tui_agent.ui.widgets.prompt import Prompt
from tui_agent.ui.widgets.transcript.pane import BlockPane


def a_stage(tmp_path: Path, text: str = "", **services: Any) -> tuple[Stage, Path]:
    path = tmp_path / "config.toml"
    path.write_text(text)

    def reread() -> tuple[str, ...]:
        load_config(path, environ={})
        return ()

    def config() -> Config:
        read = load_config(path, environ={}).config
        return read.model_copy(
            update={
                "ui": STILL.model_copy(update=read.ui.model_dump(include=read.ui.model_fields_set))
            }
        )

    stage = make_stage(
        tmp_path,
        config=config,
        settings_rows=lambda: setting_rows(load_config(path, environ={"TUI_AGENT_MAX_STEPS": "7"})),
        save_setting=lambda key, value: set_value(key, value, path) and None,
        config_path=path,
        **{"reread_settings": reread, **services},
    )
    return stage, path


async def opened(stage: Stage, pilot: Any, query: str) -> SettingsScreen:
    await run_command(stage, pilot, "settings", "")
    screen = stage.app.screen
    assert isinstance(screen, SettingsScreen)
    await write(pilot, query)
    await pilot.pause()
    return screen


async def test_it_shows_value_origin_and_meaning(tmp_path: Path) -> None:
    stage, _ = a_stage(tmp_path, '[compaction]\nthreshold = "80%"\n')
    async with stage.run() as pilot:
        await opened(stage, pilot, "compaction.threshold")
        text = screen_text(stage)
        assert "80%" in text
        assert "file" in text
        assert "Size of the next request above which compaction starts" in text
        await pilot.press("escape")
        await write(pilot, "max_steps")
        await pilot.pause()
        text = screen_text(stage)
        assert "7" in text
        assert "environment" in text
        assert "at least 1" in text


async def test_a_value_is_edited_and_saved(tmp_path: Path) -> None:
    stage, path = a_stage(tmp_path, "# mine\nunknown_key = 3\n")
    async with stage.run() as pilot:
        await opened(stage, pilot, "keep_recent")
        await pilot.press("enter")
        await pilot.press(*["backspace"] * 6)
        await send(pilot, "5000")
        saved = {"unknown_key": 3, "compaction": {"keep_recent": 5000}}
        await until(lambda: tomllib.loads(path.read_text()) == saved, pilot)
        assert "Saved." in screen_text(stage)
        assert "counts" not in screen_text(stage)
        assert "5000" in screen_text(stage)
        await press(pilot, "ctrl+r")
        await until(lambda: "keep_recent" not in path.read_text(), pilot)


async def test_a_wrong_value_is_explained_and_changes_nothing(tmp_path: Path) -> None:
    stage, path = a_stage(tmp_path)
    async with stage.run() as pilot:
        screen = await opened(stage, pilot, "prune.minimum_tokens")
        await pilot.press("enter")
        await send(pilot, "x")
        assert "is not accepted" in screen_text(stage)
        assert path.read_text() == ""
        assert stage.app.screen is screen
        await press(pilot, "enter")
        assert stage.app.screen.query_one(Input).value.endswith("x"), (
            "what was written can be mended"
        )


async def test_yes_or_no_is_changed_with_enter(tmp_path: Path) -> None:
    stage, path = a_stage(tmp_path)
    async with stage.run() as pilot:
        await opened(stage, pilot, "compaction.resume")
        await press(pilot, "enter")
        saved = {"compaction": {"resume": False}}
        await until(lambda: tomllib.loads(path.read_text()) == saved, pilot)


async def test_a_closed_set_is_chosen_from_a_list_and_the_same_again_saves_nothing(
    tmp_path: Path,
) -> None:
    stage, path = a_stage(tmp_path)
    async with stage.run() as pilot:
        await opened(stage, pilot, "prune.when")
        await press(pilot, "enter")
        assert isinstance(stage.app.screen, ChoiceScreen)
        assert "auto (current)" in screen_text(stage)
        await press(pilot, "enter")
        assert "Nothing changed." in screen_text(stage)
        assert path.read_text() == ""
        await press(pilot, "enter", "down", "enter")
        saved = {"prune": {"when": "run_end"}}
        await until(lambda: tomllib.loads(path.read_text()) == saved, pilot)
        assert "Saved." in screen_text(stage)


async def test_themes_come_as_a_list_and_an_empty_field_left_empty_changes_nothing(
    tmp_path: Path,
) -> None:
    stage, path = a_stage(tmp_path)
    async with stage.run() as pilot:
        await opened(stage, pilot, "ui.theme")
        await press(pilot, "enter")
        assert isinstance(stage.app.screen, ThemePicker)
        await press(pilot, *"nord", "enter")
        await until(lambda: stage.app.theme == "nord", pilot)
        saved = {"ui": {"theme": "nord"}}
        await until(lambda: tomllib.loads(path.read_text()) == saved, pilot)
        await pilot.press("escape")
        await write(pilot, "compaction.threshold")
        await press(pilot, "enter", "enter")
        assert "Nothing changed." in screen_text(stage)
        assert tomllib.loads(path.read_text()) == {"ui": {"theme": "nord"}}


@pytest.mark.parametrize("key", ["model", "small_model", "compaction.model"])
async def test_a_setting_that_names_a_model_is_picked_from_the_models(
    tmp_path: Path, key: str
) -> None:
    stage, path = a_stage(tmp_path)
    async with stage.run((100, 30)) as pilot:
        screen = await opened(stage, pilot, key)
        await until(lambda: screen.highlighted == key, pilot)
        await pilot.press("enter")
        await until(lambda: isinstance(stage.app.screen, ModelPicker), pilot)
        picker = stage.app.screen
        await until(lambda: picker.query_one("#rows").display, pilot)
        await send(pilot, "qwen")
        await until(lambda: "Saved." in screen_text(stage), pilot)
        assert stage.app.screen is screen
        settings = tomllib.loads(path.read_text())
        assert (
            settings["compaction"]["model"] if "." in key else settings[key]
        ) == "ollama/qwen3:4b"
        await pilot.press("ctrl+r")
        await until(lambda: "ollama" not in path.read_text(), pilot)


async def test_settings_stand_in_six_groups_as_sentences_with_on_and_off(tmp_path: Path) -> None:
    stage, _ = a_stage(tmp_path)
    async with stage.run((110, 30)) as pilot:
        screen = await opened(stage, pilot, "")
        ids = [str(option.id) for option in screen.listing.options]
        assert [one for one in ids if one.startswith("[")] == [f"[{name}]" for name in GROUPS]
        assert len(GROUPS) == 6
        await write(pilot, "after a compaction")
        await pilot.pause()
        row = next(
            line for line in screen_text(stage).split("\n") if "Continue after a compaction" in line
        )
        assert row.split()[:5] == ["Continue", "after", "a", "compaction", "on"]
        await press(pilot, "enter")
        row = next(
            line for line in screen_text(stage).split("\n") if "Continue after a compaction" in line
        )
        assert row.split()[:5] == ["Continue", "after", "a", "compaction", "off"]


def test_every_setting_has_a_sentence_of_its_own_and_a_group() -> None:
    rows = setting_rows(load_config(environ={}))
    names = [sentence_of(row) for row in rows]
    assert len(set(names)) == len(names)
    assert {
        row.key for row in rows if sentence_of(row).lower() == row.words and " " in row.words
    } == set()
    assert OTHERS not in sorted_by_group(rows)


async def test_a_broken_file_is_told_where_the_settings_would_be(tmp_path: Path) -> None:
    stage, path = a_stage(tmp_path)
    async with stage.run() as pilot:
        path.write_text("a = 1\nmodel = \n")
        await opened(stage, pilot, "")
        with pytest.raises(ConfigError) as caught:
            load_config(path)
        told = " ".join(screen_text(stage).split())
        assert "line 2" in told
        assert str(caught.value).split(": ")[-1] in told
        assert "No setting has this name" not in told
        await write(pilot, "mode")
        assert "line 2" in " ".join(screen_text(stage).split())


async def test_tables_are_left_to_the_file(tmp_path: Path) -> None:
    stage, path = a_stage(tmp_path, '[permissions]\nedit = "ask"\n')
    async with stage.run() as pilot:
        await opened(stage, pilot, "permissions")
        await press(pilot, "enter")
        assert "be edited here: change it in" in screen_text(stage)
        assert path.read_text() == '[permissions]\nedit = "ask"\n'


def test_there_is_a_row_for_every_setting_and_secrets_are_hidden(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[providers.openai]\napi_key = "sk-secret"\n')
    rows = setting_rows(load_config(path, environ={}))
    keys = [row.key for row in rows]
    assert len(keys) == len(set(keys))
    assert {"model", "compaction.auto", "prune.when", "ui.theme", "keys", "retry.attempts"} <= set(
        keys
    )
    assert "sk-secret" not in str(rows)
    assert all(row.description for row in rows)


ACTIONS = [
    Rebindable("compact", "f4", "compact", "main"),
    Rebindable("context", "ctrl+g", "context window", "main"),
    Rebindable("transcript.copy", "y", "copy", "conversation"),
    Rebindable("prompt.editor", "ctrl+x ctrl+e", "edit", "prompt"),
    Rebindable("prompt.queue", "alt+enter", "queue", "prompt"),
    Rebindable("prompt.newline", "ctrl+j,alt+enter", "new line", "prompt"),
    Rebindable("question.note", "tab", "add a note", "question"),
    Rebindable("redraw", "ctrl+l", "draw the screen again", "everywhere"),
]


@pytest.mark.parametrize(
    ("keymap", "good", "problem"),
    [
        ({"compact": "f8, f9"}, {"compact": "f8,f9"}, None),
        ({"compakt": "f6"}, {}, "Did you mean compact?"),
        ({"compact": "strg+k"}, {}, "“strg+k” is not a key"),
        ({"compact": "ctrl+ctrl+x"}, {}, "“ctrl+ctrl+x” is not a key"),
        ({"compact": "ctrl+shift+left, alt+slash"}, {"compact": "ctrl+shift+left,alt+slash"}, None),
        ({"compact": "ctrl+g"}, {"compact": "ctrl+g", "context": ""}, None),
        (
            {"compact": "ctrl+g", "context": "ctrl+g"},
            {"context": "ctrl+g"},
            "compact = “ctrl+g” is ignored",
        ),
        ({"compact": "f12", "context": "f12"}, {"compact": "f12"}, "context = “f12” is ignored"),
        ({"compact": "ctrl+x"}, {}, "can't be rebound"),
        ({"compact": ""}, {"compact": ""}, None),
        ({"compact": "ctrl+g", "context": "f4"}, {"compact": "ctrl+g", "context": "f4"}, None),
        ({"compact": "y"}, {}, "is needed for typing in the prompt"),
        ({"compact": "question_mark"}, {}, "is needed for typing in the prompt"),
        ({"prompt.editor": "y"}, {}, "is needed for typing in the prompt"),
        ({"compact": "ctrl+j"}, {"compact": "ctrl+j", "prompt.newline": "alt+enter"}, None),
        ({"prompt.editor": "ctrl+g"}, {"prompt.editor": "ctrl+g", "context": ""}, None),
        (
            {"prompt.editor": "ctrl+g", "context": "f12"},
            {"prompt.editor": "ctrl+g", "context": "f12"},
            None,
        ),
        ({"prompt.editor": "ctrl+x e, f12"}, {"prompt.editor": "ctrl+x e,f12"}, None),
        ({"prompt.editor": "ctrl+e ctrl+x"}, {}, "they begin with ctrl+x"),
        ({"compact": "ctrl+x e"}, {"compact": "ctrl+x e"}, None),
        ({"transcript.copy": "ctrl+x e"}, {}, "only the prompt can have sequences of two keys"),
        ({"question.note": "ctrl+x n"}, {}, "only the prompt can have sequences of two keys"),
        ({"redraw": "ctrl+x l"}, {}, "only the prompt can have sequences of two keys"),
        ({"redraw": "c"}, {}, "is needed for typing"),
        ({"prompt.queue": "alt+enter"}, {"prompt.queue": "alt+enter"}, None),
        ({"transcript.copy": "c"}, {"transcript.copy": "c"}, None),
        ({"compact": "escape"}, {}, "can't be rebound"),
        ({"compact": "ctrl+x escape"}, {}, "escape can't be rebound, not even in a sequence"),
        ({"compact": "ctrl+x ctrl+q"}, {}, "ctrl+q can't be rebound, not even in a sequence"),
        ({"compact": "ctrl+x ctrl+l"}, {}, "ctrl+l can't end a sequence, because it runs redraw"),
        (
            {"compact": "ctrl+x ctrl+l", "redraw": "f12"},
            {"compact": "ctrl+x ctrl+l", "redraw": "f12"},
            None,
        ),
        ({"compact": "ctrl+x f12", "redraw": "f12"}, {"redraw": "f12"}, "it runs redraw"),
        ({"compact": "ctrl+m"}, {}, "most terminals can't tell ctrl+m from enter"),
        ({"transcript.copy": "ctrl+i"}, {}, "can't tell ctrl+i from tab"),
        ({"compact": "ctrl+h"}, {}, "can't tell ctrl+h from backspace"),
        ({"compact": "ctrl+["}, {}, "can't tell ctrl+[ from escape"),
        ({"compact": "ctrl+x ctrl+m"}, {}, "can't tell ctrl+m from enter"),
    ],
)
def test_a_table_of_keys_is_checked(
    keymap: dict[str, str], good: dict[str, str], problem: str | None
) -> None:
    found, problems, _taken = check_keymap(keymap, ACTIONS)
    assert found == good
    assert (problem in problems[0]) if problem else not problems


def documented_keys() -> set[str]:
    """Return every key that the list of fixed keys names, also within its sentences."""
    found = set[str]()
    for names, text in PROMPT_KEYS:
        if names.startswith("ctrl+x "):
            found.add(names)
        elif not names.startswith(("/", "!", "any ")):
            found.update(names.split())
        found.update(re.findall(r"(?:ctrl|alt|shift)\+\S+[^\s;,.]|\bf\d+", text))
    return {key.replace("+_", "+underscore") for key in found}


def test_every_documented_key_can_be_changed_unless_it_is_needed_to_get_out() -> None:
    known = set[str]()
    for action in rebindable_actions(MainScreen.BINDINGS):
        known.update(action.keys.split(","))
    assert "ctrl+x ctrl+e" in documented_keys()
    fixed = documented_keys() - known - RESERVED
    assert {WORD_KEYS.get(key, key) for key in fixed} <= known


@pytest.mark.parametrize("owner", [Prompt, MainScreen, TuiAgentApp, BlockPane, ContextScreen])
def test_a_key_of_the_main_screen_without_a_name_is_one_that_is_needed_to_get_out(
    owner: type[DOMNode],
) -> None:
    keys = [key for key, binding in BindingsMap(owner.BINDINGS) if not binding.id]
    assert set(keys) <= RESERVED


def test_no_two_actions_have_the_same_name() -> None:
    names = [action.id for action in rebindable_actions(MainScreen.BINDINGS)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("key", ["ctrl+g", "f12", "ctrl+x e"])
async def test_the_editor_can_have_another_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    stage, _ = a_stage(tmp_path, f'[keys]\ncontext = "shift+f12"\n"prompt.editor" = "{key}"\n')

    async def edited(_app: object, text: str, _name: str) -> str:
        return f"{text} edited"

    monkeypatch.setattr("tui_agent.ui.widgets.prompt.edit_in_editor", edited)
    async with stage.run() as pilot:
        await write(pilot, "draft")
        await press(pilot, "ctrl+x", "ctrl+e")
        assert stage.main.prompt.text == "draft"
        await press(pilot, *key.split())
        await until(lambda: stage.main.prompt.text == "draft edited", pilot)


@pytest.mark.parametrize("key", ["alt+j", "ctrl+x t"])
async def test_a_command_without_a_key_can_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    stage, _ = a_stage(tmp_path, f'[keys]\ntodo = "{key}"\n')
    begun: list[str] = []
    async with stage.run() as pilot:
        monkeypatch.setattr(stage.main.controller, "begin", begun.append)
        await press(pilot, *key.split(), "t")
        await until(lambda: bool(begun), pilot)
        assert begun == ["todo"]
        assert stage.main.prompt.text == "t"
        assert stage.main.key_of("todo") == key
        assert not stage.toasts


def test_every_command_can_have_a_key() -> None:
    names = {action.id for action in rebindable_actions(MainScreen.BINDINGS)}
    assert {command.name for command in command_table()} <= names


async def test_a_taken_key_is_said_once_for_each_configuration(tmp_path: Path) -> None:
    said = []
    for thoughts in ("ctrl+t", "ctrl+t", "f4", "ctrl+t"):
        stage, _ = a_stage(tmp_path, f'[keys]\nthoughts = "{thoughts}"\n')
        async with stage.run():
            said.append([toast.partition(" now")[0] for toast in stage.toasts])
    assert said == [["ctrl+t"], [], ["f4"], ["ctrl+t"]]


async def test_a_key_of_the_prompt_that_was_given_away_does_nothing(tmp_path: Path) -> None:
    stage, _ = a_stage(tmp_path, '[keys]\n"prompt.newline" = "ctrl+l"\n')
    async with stage.run() as pilot:
        await press(pilot, "a", "ctrl+j", "ctrl+l", "b")
        assert stage.main.prompt.text == "a\nb"


async def test_an_action_has_the_users_key_and_its_own_no_longer(tmp_path: Path) -> None:
    stage, _ = a_stage(tmp_path, '[keys]\nhelp = "f12"\nnothing = "x"\n')
    async with stage.run() as pilot:
        await press(pilot, "f1")
        assert stage.app.screen is stage.main
        await pilot.press("f12")
        await until(lambda: isinstance(stage.app.screen, HelpScreen), pilot)


async def test_the_interface_follows_the_file(tmp_path: Path) -> None:
    stage, path = a_stage(tmp_path)
    async with stage.run() as pilot:
        path.write_text('[ui]\ntheme = "dracula"\nreduced_motion = false\n[keys]\nhelp = "f12"\n')
        await stage.main.controller.run("settings")
        await pilot.press("escape")
        assert stage.app.theme == "dracula"
        assert stage.app.animation_level != "none"
        await pilot.press("f12")
        await until(lambda: isinstance(stage.app.screen, HelpScreen), pilot)
        await pilot.press("escape")
        path.write_text("")
        await stage.main.controller.run("settings")
        await pilot.press("escape")
        await pilot.press("f12")
        await pilot.pause()
        assert not isinstance(stage.app.screen, ReportScreen)
        await pilot.press("f1")
        await until(lambda: isinstance(stage.app.screen, HelpScreen), pilot)


async def test_the_tree_opens_with_the_filter_that_was_just_saved(tmp_path: Path) -> None:
    stage, path = a_stage(tmp_path)
    async with stage.run() as pilot:
        path.write_text('[ui]\ntree_filter = "user only"\n')
        await pilot.press("ctrl+t")
        await until(lambda: "showing user only" in screen_text(stage), pilot)


async def test_what_is_saved_is_followed_and_what_counts_later_says_when(tmp_path: Path) -> None:
    times: list[int] = []
    stage, path = a_stage(tmp_path, reread_settings=lambda: times.append(1) or ())
    async with stage.run() as pilot:
        await opened(stage, pilot, "checkpoints.enabled")
        before = len(times)
        await press(pilot, "ctrl+r")
        assert "Nothing changed." in screen_text(stage)
        assert len(times) == before
        path.write_text("[checkpoints]\nenabled = false\n")
        await pilot.press("escape", "escape")
        await opened(stage, pilot, "checkpoints.enabled")
        before = len(times)
        assert "A change takes effect from the next session on." in screen_text(stage)
        await press(pilot, "ctrl+r")
        assert "Saved. A change takes effect from the next session on." in screen_text(stage)
        assert len(times) == before + 1


async def test_a_mistake_in_the_file_is_told(tmp_path: Path) -> None:
    stage, path = a_stage(tmp_path)
    async with stage.run() as pilot:
        path.write_text("max_steps = 0\n")
        await stage.main.controller.run("settings")
        await pilot.pause()
        assert "max_steps = 0 is not accepted" in stage.main.notice.message


async def test_what_is_odd_about_the_settings_is_told_at_the_start(tmp_path: Path) -> None:
    stage, _ = a_stage(
        tmp_path, warnings=("config.toml has a setting this version does not have: [colour].",)
    )
    async with stage.run() as pilot:
        await emit(stage, pilot, RunStarted())
        assert stage.toasts == [*stage.services.warnings]


def test_the_names_of_themes_are_those_of_the_screen(tmp_path: Path) -> None:
    assert set(make_stage(tmp_path).app.available_themes) == set(THEMES)


def test_a_theme_there_is_not_is_told_once_and_harms_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    (warning,) = load_config(path, {"TUI_AGENT_UI__THEME": "foo"}).warnings
    assert "no theme “foo” (ui.theme, set in the environment)" in warning
    assert load_config(path, {"TUI_AGENT_UI__THEME": "nord"}).warnings == ()


async def test_the_help_has_the_users_keys(tmp_path: Path) -> None:
    keys = {
        "prompt.queue": "ctrl+t",
        "take_back": "alt+t,f12",
        "transcript.open": "w",
        "prompt.yank": "alt+y",
        "tree": "f11",
    }
    stage = make_stage(tmp_path, keys=keys)
    async with stage.run((100, 40)) as pilot:
        await press(pilot, "question_mark")
        await until(lambda: "queue the message" in screen_text(stage), pilot)
        row = next(line for line in screen_text(stage).split("\n") if "queue the message" in line)
        assert "ctrl+t" in row
        assert "alt+enter" not in row
        await press(pilot, "backspace", "f1")
        assert isinstance(stage.app.screen, HelpScreen)
        text = screen_text(stage)
        assert "j k move, w opens whole outputs" in text
        assert "alt+enter" not in next(row for row in text.split("\n") if "queue the" in row)
        await write(pilot, "inserts")
        assert "alt+y inserts it" in screen_text(stage)


@pytest.mark.parametrize("letters", ["abcdefghijklm", "nopqrstuvwxyz", "0123456789"])
async def test_every_command_can_have_alt_with_a_character(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, letters: str
) -> None:
    names = [command.name for command in command_table() if command.key]
    offset = ord(letters[0])
    keys = {
        names[(offset + place) % len(names)]: f"alt+{letter}"
        for place, letter in enumerate(letters)
    }
    stage = make_stage(tmp_path, keys=keys)
    begun: list[str] = []
    async with stage.run() as pilot:
        monkeypatch.setattr(stage.main.controller, "begin", begun.append)
        for key in keys.values():
            stage.app.post_message(events.Key(key, key[-1]))
        await until(lambda: len(begun) == len(keys), pilot)
        assert begun == list(keys)
        assert stage.main.prompt.text == ""


async def test_a_key_taken_from_another_action_is_said_once(tmp_path: Path) -> None:
    stage, path = a_stage(tmp_path, '[keys]\nthoughts = "ctrl+t"\ncontext = "ctrl+k"\n')
    async with stage.run() as pilot:
        (toast,) = [toast for toast in stage.toasts if "ctrl+t" in toast]
        assert toast.startswith("ctrl+t now runs thoughts; tree has lost this key. ctrl+k now runs")
        assert toast.endswith('You can set another key in [keys], or "" for no key.')
        assert sum("ctrl+k" in toast for toast in stage.toasts) == 1
        await stage.main.controller.run("settings")
        await pilot.press("escape")
        assert sum("ctrl+t" in toast for toast in stage.toasts) == 1
        await write(pilot, "two words")
        await press(pilot, "home", "ctrl+k")
        assert stage.main.prompt.text == "two words"
        await until(lambda: isinstance(stage.app.screen, ContextScreen), pilot)
        await press(pilot, "ctrl+g")
        begun: list[str] = []
        stage.main.controller.begin = begun.append  # type: ignore[method-assign]
        await press(pilot, "ctrl+t")
        assert begun == ["thoughts"]
        path.write_text('[keys]\nthoughts = "ctrl+t"\ntree = ""\ncontext = "f12"\n')


async def test_an_action_that_lost_its_key_is_in_the_help_without_one(tmp_path: Path) -> None:
    stage = make_stage(
        tmp_path, keys={"thoughts": "ctrl+p", "compact": "ctrl+t", "mode": "ctrl+end"}
    )
    async with stage.run((100, 40)) as pilot:
        assert "ctrl+p" not in stage.main.prompt.placeholder
        await press(pilot, "question_mark")
        await press(pilot, "backspace", "f1")
        assert isinstance(stage.app.screen, HelpScreen)
        await write(pilot, "ctrl+t")
        assert "/compact" in screen_text(stage)
        assert "/tree" not in screen_text(stage)


def test_an_action_can_be_left_without_a_key() -> None:
    found = check_keymap({"compact": "ctrl+g", "context": ""}, ACTIONS)
    assert found == ({"compact": "ctrl+g", "context": ""}, [], [])


async def test_a_text_that_names_a_key_has_the_users(tmp_path: Path) -> None:
    keys = {"tree": "alt+t,f12", "newest": "alt+n", "palette": "alt+p", "race": "alt+r"}
    stage = make_stage(tmp_path, keys=keys)
    async with stage.run((130, 30)) as pilot:
        main = stage.main
        assert {name: main.key_of(name) for name in keys} == {**keys, "tree": "alt+t"}
        assert main.key_of("prompt.background") == "ctrl+x ctrl+b"
        assert main.key_of("take_back") == "alt+up"
        assert main.key_of("stats") == "/stats"
        assert "ctrl+p" not in main.prompt.placeholder
        main.status.race = "race 1 of 2"
        await until(lambda: "race 1 of 2 · alt+r" in screen_text(stage), pilot)


def texts_of(path: Path) -> list[str]:
    """Return the texts of a module, without docstrings and the keys and search words of commands."""
    tree = ast.parse(path.read_text())
    left_out = set[ast.AST]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            left_out.add(node.value)
        if isinstance(node, ast.keyword) and node.arg in {"key", "words"}:
            left_out.add(node.value)
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out
    ]


def test_no_command_names_a_key_that_may_be_another() -> None:
    named = re.compile(r"\b(?:ctrl\+[a-z]|(?:shift\+)?f\d{1,2}|shift\+tab)\b", re.IGNORECASE)
    for path in sorted(Path(commands_module.__file__).parent.glob("*.py")):
        if path.stem == "names_elsewhere":
            # Its answers are about keys of other programs.
            continue
        assert [text for text in texts_of(path) if named.search(text)] == [], path.name
