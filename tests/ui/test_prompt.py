"""The prompt as a user meets it: real keys through the real application."""

from pathlib import Path

import pytest
from textual import events

from tests.support.ui_app import Stage, make_stage, until, write
from tui_agent.agent.events import RunStarted
from tui_agent.session.entries import FilePart, ImagePart, ModeChangeEntry, TextPart, UserEntry
from tui_agent.session.store import Store
from tui_agent.session.unsent import Unsent
from tui_agent.ui.commands import Command
from tui_agent.ui.handlers import rename
from tui_agent.ui.services import OpenRequest
from tui_agent.ui.widgets.prompt import Prompt

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d494844520000000300000002080200000012f1d6"
    "d70000000c4944415478da6360606000000004000185d1a7430000000049454e44ae426082"
)


async def test_enter_sends_and_empties_the_prompt(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await write(pilot, "fix it")
        await pilot.press("enter")
        await pilot.pause()
        assert stage.agent.sent == [("fix it", False)]
        assert stage.main.prompt.text == ""
        assert [message.text for message in stage.of(Prompt.Sent)] == ["fix it"]


@pytest.mark.parametrize("key", ["shift+enter", "ctrl+j", "shift+\r"])
async def test_new_line_keys_make_the_prompt_grow(tmp_path: Path, key: str) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.press("a", key, "b", key, "c")
        await pilot.pause()
        assert stage.main.prompt.text == "a\nb\nc"
        assert stage.main.prompt.size.height == 3
        assert stage.agent.sent == []


async def test_the_prompt_grows_to_eight_lines_at_most(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.press(*["x", "ctrl+j"] * 12)
        await pilot.pause()
        assert stage.main.prompt.size.height == 8


async def test_blank_text_is_not_sent(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.press("space", "ctrl+j", "enter")
        await pilot.pause()
        assert stage.agent.sent == []


async def test_during_a_run_enter_steers_and_alt_enter_queues(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        stage.agent.emit(RunStarted())
        await pilot.pause()
        await write(pilot, "now")
        await pilot.press("enter")
        await write(pilot, "later")
        await pilot.press("alt+enter")
        await pilot.pause()
        assert stage.agent.sent == [("now", False), ("later", True)]
        shown = stage.view.waiting.render().plain
        assert "next   now" in shown
        assert "later  later" in shown


async def test_alt_up_takes_the_newest_waiting_message_back(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        stage.agent.emit(RunStarted())
        await pilot.pause()
        await write(pilot, "one")
        await pilot.press("enter")
        await write(pilot, "two")
        await pilot.press("enter")
        await write(pilot, "rest")
        await pilot.press("alt+up")
        await pilot.pause()
        assert stage.main.prompt.text == "two\nrest"
        assert stage.view.waiting.queue.steer == ("one",)


async def test_alt_enter_without_a_run_is_a_new_line(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.press("a", "alt+enter", "b")
        await pilot.pause()
        assert stage.main.prompt.text == "a\nb"
        assert stage.agent.sent == []


# -- history ------------------------------------------------------------------------------------------------


def remember(stage: object, *texts: str) -> None:
    store = stage.store  # type: ignore[attr-defined]
    from tui_agent.session.session import Session

    session = Session(store, store.create_session("/elsewhere").id, estimate=lambda _entry: 1)
    for text in texts:
        session.append(UserEntry(parts=(TextPart(text=text),)))


async def test_history_goes_back_across_sessions_and_keeps_the_draft(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    remember(stage, "oldest", "newer")
    async with stage.run() as pilot:
        await write(pilot, "draft")
        await pilot.press("up")
        assert stage.main.prompt.text == "newer"
        await pilot.press("up")
        assert stage.main.prompt.text == "oldest"
        await pilot.press("up")
        assert stage.main.prompt.text == "oldest"
        await pilot.press("down", "down")
        assert stage.main.prompt.text == "draft"


async def test_up_moves_the_cursor_before_it_goes_into_the_history(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    remember(stage, "older")
    async with stage.run() as pilot:
        await pilot.press("a", "ctrl+j", "b", "up")
        assert stage.main.prompt.text == "a\nb"
        assert stage.main.prompt.cursor_location[0] == 0
        await pilot.press("up")
        assert stage.main.prompt.text == "older"


async def test_an_edited_recalled_message_becomes_the_draft(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    remember(stage, "one", "two")
    async with stage.run() as pilot:
        await pilot.press("up", "x")
        await pilot.pause()
        await pilot.press("up")
        assert stage.main.prompt.text == "two"
        await pilot.press("down")
        assert stage.main.prompt.text == "twox"


async def test_what_was_sent_is_the_newest_in_the_history(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await write(pilot, "first")
        await pilot.press("enter")
        await pilot.pause()
        await pilot.press("up")
        assert stage.main.prompt.text == "first"


# -- pastes -------------------------------------------------------------------------------------------------


async def paste(stage: object, pilot: object, text: str) -> None:
    stage.main.prompt.post_message(events.Paste(text))  # type: ignore[attr-defined]
    await pilot.pause()  # type: ignore[attr-defined]


async def test_a_large_paste_is_a_chip_until_it_is_sent(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    text = "\n".join(f"line {number}" for number in range(132))
    async with stage.run() as pilot:
        await write(pilot, "see: ")
        await paste(stage, pilot, text)
        assert stage.main.prompt.text == "see: [pasted 132 lines]"
        assert stage.main.prompt.size.height == 1
        await pilot.press("enter")
        await pilot.pause()
        assert stage.agent.sent == [(f"see: {text}", False)]


async def test_a_small_paste_is_text_without_control_characters(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await paste(stage, pilot, "a\x1b]52;c;AAAA\x07b\r\nc")
        assert stage.main.prompt.text == "a]52;c;AAAAb\nc"
        assert stage.agent.sent == []


async def test_backspace_removes_a_whole_chip(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.press("x")
        await paste(stage, pilot, "y\n" * 50)
        await pilot.press("backspace")
        assert stage.main.prompt.text == "x"


async def test_two_different_pastes_of_one_size_both_arrive(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await paste(stage, pilot, "a\n" * 20)
        await paste(stage, pilot, "b\n" * 20 + "end")
        await pilot.press("enter")
        await pilot.pause()
        assert stage.agent.sent == [("a\n" * 20 + "b\n" * 20 + "end", False)]


async def test_a_huge_paste_does_not_go_through_the_text_area(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    text = "word @ me@x " * 100_000
    async with stage.run() as pilot:
        await paste(stage, pilot, text)
        assert len(stage.main.prompt.text) < 40
        await pilot.press("enter")
        await pilot.pause()
        assert stage.agent.sent == [(text.strip(), False)]


# -- attachments --------------------------------------------------------------------------------------------


async def test_mentioned_files_travel_with_the_message(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember")
    stage = make_stage(tmp_path, cwd=tmp_path)
    async with stage.run() as pilot:
        await write(pilot, "read @notes.txt, and @nothing")
        await pilot.press("enter")
        await until(lambda: stage.agent.sent, pilot)
        assert stage.agent.sent == [
            (
                (
                    TextPart(text="read @notes.txt, and @nothing"),
                    FilePart(path="notes.txt", text="remember"),
                ),
                False,
            )
        ]


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


# -- completion ---------------------------------------------------------------------------------------------


def offered(stage: object) -> list[str]:
    popup = stage.main.popup  # type: ignore[attr-defined]
    return [str(option.prompt).split()[0] for option in popup.options] if popup.is_open else []


async def test_slash_offers_commands_and_enter_runs_the_highlighted_one(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.press("slash", "h", "e")
        await pilot.pause()
        assert offered(stage)[0] == "/help"
        await pilot.press("enter")
        await pilot.pause()
        assert type(stage.app.screen).__name__ == "ReportScreen"
        assert stage.main.prompt.text == ""


async def test_tab_completes_a_command_without_running_it(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.press("slash", "r", "e", "n", "tab")
        await pilot.pause()
        assert stage.main.prompt.text == "/rename "
        assert offered(stage) == []


async def test_enter_on_a_command_that_needs_an_argument_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [Command("review", "an own command", rename, "Review", argument="FILE")]
    monkeypatch.setattr("tui_agent.ui.screens.main.available", lambda _agent: rows)
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.press("slash", "r", "e", "v", "enter")
        await pilot.pause()
        assert stage.main.prompt.text == "/review "


async def test_at_offers_files_and_enter_inserts_one(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await write(pilot, "look at @views")
        await until(lambda: offered(stage), pilot)
        assert offered(stage)[0] == "src/auth/views.py"
        await pilot.press("down", "enter")
        assert stage.main.prompt.text == "look at @tests/test_views.py "
        assert stage.agent.sent == []


async def test_typing_goes_on_while_the_files_are_listed(tmp_path: Path) -> None:
    import asyncio

    gate = asyncio.Event()

    async def slow(_root: Path) -> list[str]:
        await gate.wait()
        return ["src/late.py"]

    stage = make_stage(tmp_path, list_files=slow)
    async with stage.run() as pilot:
        await write(pilot, "@la")
        assert stage.main.prompt.text == "@la"
        assert offered(stage) == []
        gate.set()
        await until(lambda: offered(stage), pilot)
        assert offered(stage) == ["src/late.py"]


async def test_escape_closes_the_list_first_and_stops_the_run_next(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        stage.agent.emit(RunStarted())
        await pilot.press("slash", "m")
        await pilot.pause()
        assert offered(stage)
        await pilot.press("escape")
        await pilot.pause()
        assert offered(stage) == []
        assert stage.main.prompt.text == "/m"
        assert stage.agent.calls == []
        await pilot.press("escape")
        assert stage.agent.calls == ["interrupt"]


async def test_a_click_takes_a_completion(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await write(pilot, "@models")
        await until(lambda: offered(stage), pilot)
        await pilot.click("CompletionPopup", offset=(4, 0))
        await pilot.pause()
        assert stage.main.prompt.text == "@src/auth/models.py "
        assert stage.main.prompt.has_focus


async def test_no_completion_inside_a_word_or_for_an_address(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await write(pilot, "me@views and a/b")
        await pilot.pause()
        assert offered(stage) == []


async def test_a_word_that_names_nothing_is_said_to_and_enter_sends(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, files=())
    async with stage.run() as pilot:
        await write(pilot, "see @")
        await until(lambda: stage.main.popup.is_open, pilot)
        assert "no files here yet" in str(stage.main.popup.options[0].prompt)
        await write(pilot, "nosuch")
        await until(lambda: "“nosuch”" in str(stage.main.popup.options[0].prompt), pilot)
        await pilot.press("enter")
        await until(lambda: stage.agent.sent, pilot)


def remembered(stage: Stage) -> None:
    """Let the open session have a few entries."""
    for text in ("find the login bug", "write a test for it", "and the README"):
        stage.agent.append(UserEntry(parts=(TextPart(text=text),)))
    stage.agent.append(ModeChangeEntry(mode="plan"))


async def test_a_number_sign_offers_entries_the_newest_first(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        remembered(stage)
        await write(pilot, "as in #")
        await until(lambda: offered(stage), pilot)
        assert offered(stage) == ["#3", "#2", "#1"]
        assert "you" in str(stage.main.popup.options[0].prompt)
        await write(pilot, "logbug")
        await until(lambda: offered(stage) == ["#1"], pilot)
        await pilot.press("enter")
        assert stage.main.prompt.text == "as in #1 "


async def test_a_number_typed_in_full_is_sent_as_it_is(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        for number in range(12):
            stage.agent.append(UserEntry(parts=(TextPart(text=f"message {number}"),)))
        await write(pilot, "as in #1")
        await until(lambda: offered(stage)[:4] == ["#12", "#11", "#10", "#1"], pilot)
        await pilot.press("enter")
        await until(lambda: stage.agent.sent, pilot)
        assert "as in #1" in str(stage.agent.sent[0])


# -- what was not sent --------------------------------------------------------------------------------------


async def test_every_session_keeps_what_was_written_in_it(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        remembered(stage)
        first = stage.agent.session.id
        await write(pilot, "for the first")
        await stage.main.open(OpenRequest())
        assert stage.main.prompt.text == "for the first", "it may have been meant for the new one"
        remembered(stage)
        second = stage.agent.session.id
        await write(pilot, ", no: for the second")
        await stage.main.open(OpenRequest(first))
        assert stage.main.prompt.text == "for the first, no: for the second"
        stage.main.prompt.set_draft("mine")
        await pilot.pause()
        stage.main.unsent.save()
        stage.store.keep_unsent(second, Unsent("yours"))
        await stage.main.open(OpenRequest(second))
        assert stage.main.prompt.text == "yours"
        assert stage.main.prompt.cursor_location == (0, 5)
        await stage.main.open(OpenRequest(first))
        assert stage.main.prompt.text == "mine"


async def test_what_a_new_session_left_is_there_for_the_next_one(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    with Store(stage.store.path) as before:
        before.keep_unsent(str(stage.services.cwd), Unsent("left"))
    async with stage.run():
        assert stage.main.prompt.text == "left"


async def test_a_message_from_the_history_is_no_draft(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await write(pilot, "old news")
        await pilot.press("enter")
        await write(pilot, "new")
        await pilot.press("up")
        assert stage.main.prompt.text == "old news"
        stage.main.unsent.save()
    assert stage.store.take_unsent(stage.agent.session.id).text == "new"


async def test_what_waits_is_kept_and_comes_back_into_the_prompt(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        remembered(stage)
        session = stage.agent.session.id
        stage.agent.emit(RunStarted())
        await write(pilot, "steer")
        await pilot.press("enter")
        await write(pilot, "follow")
        await pilot.press("alt+enter")
        await until(lambda: len(stage.view.waiting.queue.follow_up) == 1, pilot)
        await stage.main.open(OpenRequest())
        assert stage.main.prompt.text == ""
        await stage.main.open(OpenRequest(session))
        assert stage.main.prompt.text == "steer\n\nfollow"
        assert "2 messages" in stage.main.notice.message
        assert stage.agent.sent == []


async def test_undo_and_redo_are_a_chain_of_keys_or_commands(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        remembered(stage)
        await pilot.press("f5")
        await until(lambda: stage.main.prompt.text == "and the README", pilot)
        assert stage.agent.session.leaf == 2
        await write(pilot, "/undo")
        await pilot.press("enter")
        await until(lambda: stage.main.prompt.text == "write a test for it", pilot)
        assert stage.agent.session.leaf == 1
        await write(pilot, "/redo")
        await pilot.press("enter")
        await until(lambda: stage.agent.session.leaf == 2, pilot)
        await until(lambda: stage.main.prompt.text == "", pilot)
        await pilot.press("up", "up")
        assert stage.main.prompt.text == "write a test for it", "what made room for a command is in the history"
        await pilot.press("f6")
        await until(lambda: stage.agent.session.leaf == 4, pilot)


async def test_a_restored_text_that_was_touched_is_the_users(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        remembered(stage)
        await pilot.press("f5")
        await until(lambda: stage.main.prompt.text == "and the README", pilot)
        await write(pilot, " or/and more")
        assert stage.main.prompt.text == "and the README or/and more"
        await pilot.press("f6")
        await until(lambda: stage.agent.session.leaf == 4, pilot)
        assert stage.main.prompt.text == "and the README or/and more"


# -- shell, quitting, editor --------------------------------------------------------------------------------


@pytest.mark.parametrize(("typed", "expected"), [("!ls -l", ("ls -l", False)), ("!!env", ("env", True))])
async def test_exclamation_marks_run_a_command(tmp_path: Path, typed: str, expected: tuple[str, bool]) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.press(*typed)
        await pilot.pause()
        assert stage.main.prompt.has_class("-shell")
        await pilot.press("enter")
        await until(lambda: stage.agent.shells, pilot)
        assert stage.agent.shells == [expected]
        assert stage.agent.sent == []


async def test_ctrl_d_quits_only_when_the_prompt_is_empty(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.press("a", "b", "left", "ctrl+d")
        assert stage.main.prompt.text == "a"
        await pilot.press("backspace", "ctrl+d")
        await pilot.pause()
        assert not stage.app.is_running or stage.app._exit


async def test_the_editor_edits_the_whole_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = make_stage(tmp_path)
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf "%s and more" "$(cat "$1")" > "$1.new" && mv "$1.new" "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    async with stage.run() as pilot:
        monkeypatch.setattr(type(stage.app._driver), "can_suspend", property(lambda _self: True))
        monkeypatch.setattr(type(stage.app._driver), "suspend_application_mode", lambda _self: None, raising=False)
        monkeypatch.setattr(type(stage.app._driver), "resume_application_mode", lambda _self: None, raising=False)
        await write(pilot, "text")
        await pilot.press("ctrl+e")
        await until(lambda: stage.main.prompt.text != "text", pilot)
        assert stage.main.prompt.text == "text and more"


async def test_an_editor_that_does_not_exist_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        monkeypatch.setattr(type(stage.app._driver), "can_suspend", property(lambda _self: True))
        monkeypatch.setattr(type(stage.app._driver), "suspend_application_mode", lambda _self: None, raising=False)
        monkeypatch.setattr(type(stage.app._driver), "resume_application_mode", lambda _self: None, raising=False)
        await write(pilot, "text")
        await pilot.press("ctrl+e")
        await until(lambda: stage.main.notice.message, pilot)
        assert "Cannot start /no/such/editor" in stage.main.notice.message
        assert stage.main.prompt.text == "text"
