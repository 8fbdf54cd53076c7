"""The prompt as a user meets it: real keys through the real application."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual import events
from textual.drivers.headless_driver import HeadlessDriver

from tests.support.drawn import drawn
from tests.support.transcript import HeldTimers
from tests.support.ui_app import (
    HOME,
    Stage,
    make_stage,
    press,
    press_at_once,
    remembered,
    screen_text,
    until,
    write,
)
from tui_agent.agent.events import RunStarted
from tui_agent.agent.mentions import has_mention
from tui_agent.app.commands import Command
from tui_agent.app.session_commands import rename
from tui_agent.session.entries import AssistantEntry, ImagePart, TextPart, UserEntry
from tui_agent.session.ids import short_id
from tui_agent.session.session import Session
from tui_agent.ui.prompting.completion import Candidate
from tui_agent.ui.prompting.sources import FileSource
from tui_agent.ui.screens.help import HelpScreen
from tui_agent.ui.widgets import prompt

PNG = drawn(size=(3, 2))


@pytest.mark.parametrize("key", ["shift+enter", "ctrl+j", "alt+enter", "shift+\r"])
async def test_new_line_keys_make_the_prompt_grow(stage: Stage, key: str) -> None:
    async with stage.run() as pilot:
        await press(pilot, "space", key, "enter")
        assert stage.agent.sent == [], "blank text is not sent"
        stage.main.prompt.reset()
        await press(pilot, "a", key, "b", key, "c")
        assert stage.main.prompt.text == "a\nb\nc"
        assert stage.main.prompt.size.height == 3
        await press(pilot, *["x", key] * 12)
        assert stage.main.prompt.size.height == 8, "it grows no further"
        assert stage.agent.sent == []


async def test_enter_after_a_backslash_makes_a_new_line(stage: Stage) -> None:
    async with stage.run() as pilot:
        await write(pilot, "one\\")
        await pilot.press("enter")
        await write(pilot, "two")
        assert stage.main.prompt.text == "one\ntwo"
        await pilot.press("enter")
        await until(lambda: stage.agent.sent, pilot)
        assert "one\ntwo" in stage.agent.sent[0][0]
        await write(pilot, "!echo a\\")
        await pilot.press("enter")
        assert stage.main.prompt.text == "!echo a\\\n"


async def steer(stage: Stage, pilot: Any, *messages: str) -> None:
    """Begin a run, and send messages that wait for its next step."""
    stage.agent.emit(RunStarted())
    await pilot.pause()
    for message in messages:
        await write(pilot, message)
        await pilot.press("enter")


async def test_during_a_run_enter_steers_and_alt_enter_queues(stage: Stage) -> None:
    async with stage.run() as pilot:
        await steer(stage, pilot, "now")
        await write(pilot, "later")
        await press(pilot, "alt+enter")
        assert stage.agent.sent == [("now", False), ("later", True)]
        shown = stage.view.waiting.render().plain
        assert "next   now" in shown
        assert "later  later" in shown


async def test_alt_up_takes_the_newest_waiting_message_back(stage: Stage) -> None:
    async with stage.run() as pilot:
        await steer(stage, pilot, "one", "two")
        await write(pilot, "rest")
        await press(pilot, "alt+up")
        assert stage.main.prompt.text == "two\nrest"
        assert stage.view.waiting.queue.steer == ("one",)


async def test_up_in_an_empty_prompt_takes_a_waiting_message_back(stage: Stage) -> None:
    async with stage.run() as pilot:
        await steer(stage, pilot, "one")
        await press(pilot, "up")
        assert stage.main.prompt.text == "one"
        assert stage.view.waiting.queue.steer == ()


async def test_enter_in_an_empty_prompt_sends_waiting_messages_now(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = list[str]()
    async with stage.run() as pilot:
        stage.agent.append(UserEntry(parts=(TextPart(text="go"),)))
        monkeypatch.setattr(stage.agent, "send_now", lambda: sent.append("now"))
        timers = HeldTimers(stage.main)
        await steer(stage, pilot, "a long message " * 12)
        await press(pilot, "enter")
        assert sent == [], "a key that bounced does not end the step"
        assert "sends now" not in screen_text(stage)
        timers.go_off()
        await pilot.pause()
        assert "enter sends now · alt+up takes back" in screen_text(stage)
        await write(pilot, "x")
        assert "sends now" not in screen_text(stage), "Enter sends the text"
        await press(pilot, "backspace", "enter")
        assert sent == ["now"]


async def test_enter_sends_only_messages_for_the_next_step_and_the_hint_is_at_them(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = list[str]()
    async with stage.run() as pilot:
        stage.agent.append(UserEntry(parts=(TextPart(text="go"),)))
        monkeypatch.setattr(stage.agent, "send_now", lambda: sent.append("now"))
        stage.agent.emit(RunStarted())
        timers = HeldTimers(stage.main)
        await write(pilot, "at the end")
        await press(pilot, "alt+enter")
        timers.go_off()
        await press(pilot, "enter")
        assert sent == [], "nothing waits for the next step"
        assert "sends now" not in screen_text(stage)
        await write(pilot, "soon")
        await press(pilot, "enter")
        timers.go_off()
        await pilot.pause()
        rows = [line for line in screen_text(stage).split("\n") if "↳" in line]
        assert ["sends now" in row for row in rows] == [True, False]
        assert ["takes back" in row for row in rows] == [False, True]


async def test_ctrl_y_inserts_what_was_deleted_last(stage: Stage) -> None:
    async with stage.run() as pilot:
        prompt = stage.main.prompt
        await write(pilot, "one two three")
        await press(pilot, "ctrl+w", "ctrl+w")
        assert prompt.text == "one "
        await press(pilot, "ctrl+y")
        assert prompt.text == "one two three", "deletions in a row are joined"
        await press(pilot, "ctrl+u", "ctrl+y", "ctrl+y")
        assert prompt.text == "one two threeone two three"
        await press(pilot, "home", "ctrl+k", "enter")
        await write(pilot, "so: ")
        await press(pilot, "ctrl+y")
        assert prompt.text == "so: one two threeone two three"


async def test_text_on_both_sides_of_the_cursor_is_inserted_in_its_order(stage: Stage) -> None:
    async with stage.run() as pilot:
        await write(pilot, "one two")
        await press(pilot, "left", "left", "left", "ctrl+k", "ctrl+u", "ctrl+y")
        assert stage.main.prompt.text == "one two"


async def test_a_deleted_paste_is_inserted_whole_after_the_prompt_was_sent(stage: Stage) -> None:
    text = "\n".join(f"line {number}" for number in range(40))
    async with stage.run() as pilot:
        await paste(stage, pilot, text)
        await press(pilot, "ctrl+u")
        await write(pilot, "hello")
        await press(pilot, "enter", "ctrl+y")
        assert stage.main.prompt.text == "[pasted 40 lines]"
        assert stage.main.prompt.full_text == text


async def test_alt_with_a_character_is_a_key_as_terminals_send_it(stage: Stage) -> None:
    async with stage.run() as pilot:
        await write(pilot, "word")
        await press(pilot, "ctrl+underscore")
        assert stage.main.prompt.text == ""
        stage.app.post_message(events.Key("alt+underscore", "_"))
        await until(lambda: stage.main.prompt.text, pilot)
        assert stage.main.prompt.text == "word"
        stage.app.post_message(events.Key("alt+a", "a"))
        await until(lambda: stage.main.prompt.selected_text == "word", pilot)


async def test_a_draft_is_put_away_and_comes_back_after_another_message(stage: Stage) -> None:
    text = "\n".join(f"line {number}" for number in range(40))
    async with stage.run() as pilot:
        prompt = stage.main.prompt
        await press(pilot, "ctrl+x", "ctrl+s")
        assert prompt.text == ""
        await write(pilot, "draft ")
        await paste(stage, pilot, text)
        await press(pilot, "ctrl+x", "ctrl+s")
        assert prompt.text == ""
        assert "ctrl+x ctrl+s brings back: draft line 0" in screen_text(stage)
        await write(pilot, "something else first")
        await press(pilot, "enter")
        await until(lambda: stage.agent.sent, pilot)
        await press(pilot, "ctrl+x", "ctrl+s")
        assert prompt.full_text == f"draft {text}"
        assert "brings back" not in screen_text(stage)


async def test_two_drafts_change_places(stage: Stage) -> None:
    async with stage.run() as pilot:
        await write(pilot, "one")
        await press(pilot, "ctrl+x", "ctrl+s")
        await write(pilot, "two")
        await press(pilot, "ctrl+x", "ctrl+s")
        assert stage.main.prompt.text == "one"
        await press(pilot, "ctrl+x", "ctrl+s")
        assert stage.main.prompt.text == "two"


PATHS = ("src/shop/cart.py", "src/shop/views.py", "my notes.txt", "run.sh")


@pytest.mark.parametrize(
    ("typed", "keys", "text"),
    [
        ("!cat cart", ("tab",), "!cat src/shop/cart.py "),
        ("!!cat cart", ("tab",), "!!cat src/shop/cart.py "),
        ("!cat notes", ("tab",), "!cat 'my notes.txt' "),
        ("!./run", ("tab",), "!./run.sh "),
        ("!cat a | grep -f=cart", ("tab",), "!cat a | grep -f=src/shop/cart.py "),
        ("!cat .py", ("tab", "down", "tab"), "!cat src/shop/views.py "),
        ("!cat .py", ("tab", "down", "enter"), "!cat src/shop/views.py "),
        ("!cat .py", ("tab", "escape", "tab", "tab"), "!cat src/shop/cart.py "),
        ("!cat nothing", ("tab", "tab"), "!cat nothing"),
    ],
)
async def test_tab_completes_a_path_in_a_shell_command(
    tmp_path: Path, typed: str, keys: tuple[str, ...], text: str
) -> None:
    stage = make_stage(tmp_path, files=PATHS)
    async with stage.run() as pilot:
        await write(pilot, typed)
        assert not stage.main.popup.display, "the list is asked for"
        for key in keys:
            await press(pilot, key)
            await stage.app.workers.wait_for_complete()
            await pilot.pause()
        assert stage.main.prompt.text == text
        assert stage.main.prompt.has_focus
        assert stage.agent.shells == []


async def test_the_list_of_paths_closes_with_its_word(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, files=PATHS)
    async with stage.run() as pilot:
        await write(pilot, "!cat .py")
        await press(pilot, "tab")
        await until(lambda: stage.main.popup.display, pilot)
        await write(pilot, " more")
        assert not stage.main.popup.display


async def test_a_question_mark_alone_shows_keys_and_stays_text(stage: Stage) -> None:
    async with stage.run() as pilot:
        await press(pilot, "question_mark")
        assert "during a run: after the step; twice: at once" in screen_text(stage)
        assert "all keys, commands and settings" in screen_text(stage)
        await press(pilot, "up", "tab")
        assert stage.main.prompt.text == "?"
        assert not stage.main.prompt.has_focus, "as the list says"
        await write(pilot, "what is this")
        assert not stage.main.popup.display
        await press(pilot, "enter")
        await until(lambda: stage.agent.sent, pilot)
        assert stage.agent.sent[0][0] == "?what is this"


async def test_enter_after_a_question_mark_opens_the_help(stage: Stage) -> None:
    async with stage.run() as pilot:
        await press(pilot, "question_mark", "enter")
        await until(lambda: isinstance(stage.app.screen, HelpScreen), pilot)


async def paste(stage: object, pilot: object, text: str) -> None:
    stage.main.prompt.post_message(events.Paste(text))  # type: ignore[attr-defined]
    await pilot.pause()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("before", "space"), [("", ""), ("look at:", " "), ("see ", "")])
async def test_a_pasted_picture_is_a_mention_after_any_text(
    stage: Stage, tmp_path: Path, before: str, space: str
) -> None:
    picture = tmp_path / "shot.png"
    picture.write_bytes(b"x")
    async with stage.run() as pilot:
        await write(pilot, before)
        await paste(stage, pilot, str(picture))
        assert stage.main.prompt.text.startswith(f"{before}{space}@")
        assert has_mention(stage.main.prompt.text)


@pytest.mark.parametrize(
    ("text", "chip"),
    [
        ("\n".join(f"line {number}" for number in range(132)), "[pasted 132 lines]"),
        ("x" * 2_100, "[pasted 2.1k characters]"),
        ("word @ me@x " * 100_000 + ".", "[pasted 1.2M characters]"),
    ],
)
async def test_a_large_paste_is_a_chip_until_it_is_sent(stage: Stage, text: str, chip: str) -> None:
    async with stage.run() as pilot:
        await write(pilot, "see: ")
        await paste(stage, pilot, text)
        assert stage.main.prompt.text == f"see: {chip}"
        assert stage.main.prompt.size.height == 1
        await press(pilot, "enter")
        assert stage.agent.sent == [(f"see: {text}", False)]


async def test_a_small_paste_is_text_without_control_characters(stage: Stage) -> None:
    async with stage.run() as pilot:
        await paste(stage, pilot, "a\x1b]52;c;AAAA\x07b\r\nc")
        assert stage.main.prompt.text == "a]52;c;AAAAb\nc"
        assert stage.agent.sent == []


async def test_a_pasted_path_of_an_image_attaches_it(tmp_path: Path) -> None:
    image = tmp_path / "shot one.png"
    image.write_bytes(PNG)
    stage = make_stage(tmp_path, cwd=tmp_path)
    async with stage.run() as pilot:
        await paste(stage, pilot, str(image).replace(" ", "\\ "))
        assert stage.main.prompt.text == f'@"{image}" '
        await pilot.press("enter")
        await until(lambda: stage.agent.sent, pilot)
        (_text, part), _later = stage.agent.sent[0]
        assert isinstance(part, ImagePart)
        assert (part.mime, part.width, part.height) == ("image/png", 3, 2)
        assert stage.store.blob(part.blob) == PNG


@pytest.mark.parametrize(
    ("typed", "expected"), [("!ls -l", ("ls -l", False)), ("!!env", ("env", True))]
)
async def test_exclamation_marks_run_a_command(
    stage: Stage, typed: str, expected: tuple[str, bool]
) -> None:
    async with stage.run() as pilot:
        await press(pilot, *typed)
        assert stage.main.prompt.has_class("-shell")
        await pilot.press("enter")
        await until(lambda: stage.agent.shells, pilot)
        assert stage.agent.shells == [expected]
        assert stage.agent.sent == []


async def test_ctrl_d_quits_only_when_the_prompt_is_empty(stage: Stage) -> None:
    async with stage.run() as pilot:
        await pilot.press("a", "b", "left", "ctrl+d")
        assert stage.main.prompt.text == "a"
        await press(pilot, "backspace", "ctrl+d")
        assert not stage.app.is_running or stage.leaving


async def test_the_editor_edits_the_whole_text_or_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make_stage(tmp_path)
    editor = tmp_path / "editor.sh"
    editor.write_text(
        '#!/bin/sh\nprintf "%s and more" "$(cat "$1")" > "$1.new" && mv "$1.new" "$1"\n'
    )
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    async with stage.run() as pilot:
        monkeypatch.setattr(HeadlessDriver, "can_suspend", property(lambda _self: True))
        monkeypatch.setattr(
            HeadlessDriver, "suspend_application_mode", lambda _self: None, raising=False
        )
        monkeypatch.setattr(
            HeadlessDriver, "resume_application_mode", lambda _self: None, raising=False
        )
        await write(pilot, "text")
        await pilot.press("ctrl+x", "ctrl+e")
        await until(lambda: "Cannot start /no/such/editor" in stage.main.notice.message, pilot)
        assert stage.main.prompt.text == "text"
        monkeypatch.setenv("VISUAL", str(editor))
        await pilot.press("ctrl+x", "ctrl+e")
        await until(lambda: stage.main.prompt.text != "text", pilot)
        assert stage.main.prompt.text == "text and more"
        editor.write_text('#!/bin/sh\nrm "$1"\n')
        await pilot.press("ctrl+x", "ctrl+e")
        await until(lambda: "Cannot read the edited file" in stage.main.notice.message, pilot)
        assert stage.main.prompt.text == "text and more"


def offered(stage: object) -> list[str]:
    popup = stage.main.popup  # type: ignore[attr-defined]
    return [str(option.prompt).split()[0] for option in popup.options] if popup.display else []


async def test_enter_on_a_command_that_needs_an_argument_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [Command("review", "an own command", argument="FILE", handler=rename)]
    monkeypatch.setattr("tui_agent.app.controller.commands_of", lambda _agent: rows)
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await press(pilot, "slash", "r", "e", "v", "enter")
        assert stage.main.prompt.text == "/review "


async def test_at_offers_files_and_enter_or_a_click_inserts_one(stage: Stage) -> None:
    async with stage.run() as pilot:
        await write(pilot, "look at @views")
        await until(lambda: offered(stage), pilot)
        assert offered(stage)[0] == "src/auth/views.py"
        await pilot.press("down", "enter")
        assert stage.main.prompt.text == "look at @tests/test_views.py "
        assert stage.agent.sent == []
        await write(pilot, "@models")
        await until(lambda: offered(stage) == ["src/auth/models.py"], pilot)
        await pilot.click("CompletionPopup", offset=(4, 0))
        await pilot.pause()
        assert stage.main.prompt.text.endswith(" @src/auth/models.py ")
        assert stage.main.prompt.has_focus


async def test_at_session_offers_the_sessions_beside_and_their_blocks(stage: Stage) -> None:
    made = stage.store.create_session(HOME, title="Fix the login")
    other = Session(stage.store, made.id, estimate=lambda _entry: 1)
    other.append(UserEntry(parts=(TextPart(text="the cookie is lost"),)))
    name = f"session:{short_id(made.id)}"
    async with stage.run() as pilot:
        await write(pilot, "see @sess")
        await until(lambda: name in offered(stage), pilot)
        await write(pilot, f"ion:{short_id(made.id)}#coo")
        await until(lambda: offered(stage) == ["#1"], pilot)
        await press(pilot, "enter")
        assert stage.main.prompt.text == f"see @{name}#1 "


async def test_escape_closes_the_list_first_and_stops_the_run_next(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.emit(RunStarted())
        await press(pilot, "slash", "m")
        assert offered(stage)
        await press(pilot, "escape")
        assert offered(stage) == []
        assert stage.main.prompt.text == "/m"
        assert stage.agent.calls == []
        await pilot.press("escape")
        assert stage.agent.calls == ["interrupt"]


async def test_a_word_that_names_nothing_is_said_to_and_enter_sends(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, files=())
    async with stage.run() as pilot:
        await write(pilot, "see @")
        await until(lambda: stage.main.popup.display, pilot)
        assert "no files in this directory yet" in str(stage.main.popup.options[0].prompt)
        await write(pilot, "nosuch")
        await until(lambda: "“nosuch”" in str(stage.main.popup.options[0].prompt), pilot)
        await pilot.press("enter")
        await until(lambda: stage.agent.sent, pilot)


async def test_a_number_sign_offers_entries_the_newest_first(stage: Stage) -> None:
    async with stage.run() as pilot:
        remembered(stage)
        said = (TextPart(text="Looking."),)
        stage.agent.append(AssistantEntry(parts=said, model="m", error="cut off"))
        stage.agent.append(AssistantEntry(parts=(), model="m", error="No key was found."))
        await write(pilot, "as in #")
        await until(lambda: offered(stage), pilot)
        assert offered(stage) == ["#6", "#5", "#3", "#2", "#1"]
        rows = [" ".join(str(option.prompt).split()) for option in stage.main.popup.options]
        assert rows[0].startswith("#6 error No key was found.")
        assert rows[1].startswith("#5 answer Looking.")
        assert rows[2].startswith("#3 you")
        await write(pilot, "logbug")
        await until(lambda: offered(stage) == ["#1"], pilot)
        await pilot.press("enter")
        assert stage.main.prompt.text == "as in #1 "


async def test_a_number_typed_in_full_is_sent_as_it_is(stage: Stage) -> None:
    async with stage.run() as pilot:
        for number in range(12):
            stage.agent.append(UserEntry(parts=(TextPart(text=f"message {number}"),)))
        await write(pilot, "as in #1")
        await until(lambda: offered(stage)[:4] == ["#12", "#11", "#10", "#1"], pilot)
        await pilot.press("enter")
        await until(lambda: stage.agent.sent, pilot)
        assert "as in #1" in str(stage.agent.sent[0])


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("/model", "/model [ID]"),
        ("/btw ", "/btw QUESTION"),
        ("/side ", "/side QUESTION"),
        ("/model x", "/model x"),
        ("/status", "/status"),
        ("/modle ", "/modle"),
    ],
)
async def test_a_typed_command_shows_its_argument_which_is_never_text(
    stage: Stage, typed: str, hint: str
) -> None:
    async with stage.run() as pilot:
        await write(pilot, typed)
        row = next(line for line in screen_text(stage).split("\n") if f"▌ {typed}".rstrip() in line)
        assert row.strip(" ▌") == hint
        await press(pilot, "right")
        assert stage.main.prompt.text == typed
        await press(pilot, "home")
        assert "[ID]" not in screen_text(stage)


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        (("ctrl+u",), "first\n"),
        (("home", "ctrl+k"), "first\n"),
        (("ctrl+a", "ctrl+k"), "first\n"),
        (("home", "x"), "first\nx" + "word " * 60),
        (("home", "end", "x"), "first\n" + "word " * 60 + "x"),
        (("up", "up", "ctrl+e", "x"), "first\n" + "word " * 60 + "x"),
        (("shift+home", "delete"), "first\n"),
    ],
)
async def test_keys_of_a_line_act_on_the_whole_line_if_it_is_wrapped(
    stage: Stage, keys: tuple[str, ...], left: str
) -> None:
    async with stage.run() as pilot:
        stage.main.prompt.set_draft("first\n" + "word " * 60)
        await press(pilot, *keys)
        assert stage.main.prompt.text == left


async def test_escape_takes_the_question_mark_away_with_the_list_of_keys(stage: Stage) -> None:
    async with stage.run() as pilot:
        await press(pilot, "question_mark")
        await until(lambda: "queue the message" in screen_text(stage), pilot)
        await press(pilot, "escape")
        assert stage.main.prompt.text == ""
        await write(pilot, "/set")
        await press(pilot, "escape")
        assert stage.main.prompt.text == "/set"


async def test_only_pastes_are_chips_after_the_editor(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    pasted = "\n".join(f"line {number}" for number in range(300))
    typed = "\n".join(f"words {number}" for number in range(300))

    async def edited(_app: object, text: str, _name: str) -> str:
        return f"{text}\n{typed}"

    monkeypatch.setattr("tui_agent.ui.widgets.prompt.edit_in_editor", edited)
    async with stage.run() as pilot:
        await write(pilot, "see: ")
        await paste(stage, pilot, pasted)
        await press(pilot, "ctrl+x", "ctrl+e")
        shown = f"see: [pasted 300 lines]\n{typed}"
        await until(lambda: stage.main.prompt.text == shown, pilot)
        await press(pilot, "enter")
        assert stage.agent.sent == [(f"see: {pasted}\n{typed}", False)]
        await press(pilot, "up")
        assert stage.main.prompt.text == shown


class SlowFiles:
    """Lets searches for files wait until the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
        """Only searches for ``query`` wait."""
        self.goes_on = asyncio.Event()
        find = FileSource.find

        async def slow(files: FileSource, asked: str) -> Sequence[Candidate]:
            if asked == query:
                await self.goes_on.wait()
            return await find(files, asked)

        monkeypatch.setattr(FileSource, "find", slow)

    async def answer(self, stage: Stage, pilot: Any) -> None:
        self.goes_on.set()
        searches = [one for one in stage.app.workers if one.group == "completion"]
        await stage.app.workers.wait_for_complete(searches)
        await pilot.pause()


async def test_a_list_that_was_closed_stays_closed_when_its_search_ends(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowFiles(monkeypatch, "view")
    async with stage.run() as pilot:
        await write(pilot, "look at @vie")
        await until(lambda: offered(stage), pilot)
        press_at_once(stage.app, "w", "escape")
        await until(lambda: not stage.main.popup.display)
        await slow.answer(stage, pilot)
        assert not stage.main.popup.display


async def test_only_tab_picks_the_only_candidate(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowFiles(monkeypatch, "READ")
    async with stage.run() as pilot:
        press_at_once(stage.app, *"!cat READ", "tab", *["backspace"] * 9, *"see @READM")
        await until(lambda: offered(stage) == ["README.md"])
        await slow.answer(stage, pilot)
        assert stage.main.prompt.text == "see @READM"


async def test_the_second_column_of_the_list_is_straight_with_wide_characters(
    tmp_path: Path,
) -> None:
    stage = make_stage(tmp_path, files=("设计文档.md", "design-notes.md"))
    async with stage.run() as pilot:
        await write(pilot, "see @")
        await until(lambda: len(offered(stage)) > 1, pilot)
        columns = set()
        for option in stage.main.popup.options:
            label, _, _ = str(option.prompt).rpartition("  ")
            columns.add(cell_len(label))
        assert len(columns) == 1


async def test_a_message_put_back_while_the_editor_was_open_is_in_the_history(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def edit(_app: object, text: str, _name: str) -> str:
        stage.main.put_back("refused")
        return f"{text}, edited"

    monkeypatch.setattr(prompt, "edit_in_editor", edit)
    async with stage.run() as pilot:
        await write(pilot, "draft")
        await press(pilot, "ctrl+x", "ctrl+e")
        assert stage.main.prompt.text == "draft, edited"
        await press(pilot, "up")
        assert stage.main.prompt.text == "refused\ndraft"


@pytest.mark.parametrize("width", [50, 80])
async def test_each_waiting_message_is_one_line_with_wide_characters(
    stage: Stage, width: int
) -> None:
    async with stage.run((width, 24)) as pilot:
        await steer(stage, pilot, "汉字" * 60, "汉字" * 60)
        lines = stage.view.waiting.render().plain.split("\n")
        assert all(cell_len(line) <= width for line in lines)
        assert stage.view.waiting.size.height == len(lines) == 2
