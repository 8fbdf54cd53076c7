"""The main screen: sessions, the agent's events, commands."""

import asyncio
import re
import string
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.widgets import Static

from tests.support import settled
from tests.support.thoroughness import NIGHTLY
from tests.support.ui_app import (
    STILL,
    Stage,
    emit,
    make_app,
    make_stage,
    press,
    press_at_once,
    run_command,
    screen_text,
    send,
    until,
    write,
)
from tui_agent.agent.events import (
    HookAwaited,
    Notice,
    QueueChanged,
    RequestStarted,
    RetryScheduled,
    RunEnded,
    RunStarted,
    ToolFinished,
    ToolStarted,
)
from tui_agent.agent.message_queue import QueuedMessage
from tui_agent.app.commands import command_table
from tui_agent.app.controller import READ_ONLY
from tui_agent.app.names_elsewhere import ELSEWHERE
from tui_agent.app.services import AppServices, FirstView, Look, OpenRequest
from tui_agent.app.unsent import place_of
from tui_agent.resources import style_path
from tui_agent.safe_text import ACTING
from tui_agent.session.entries import (
    AssistantEntry,
    ShellEntry,
    TextPart,
    ToolMetadata,
    Usage,
    UserEntry,
)
from tui_agent.session.errors import StoreBusy, StoreFull, StoreReadOnly
from tui_agent.session.reading import EntryReader
from tui_agent.session.session import Session
from tui_agent.ui.app import FIRST_STYLES, LATER_STYLES, SESSION_STYLES, TuiAgentApp
from tui_agent.ui.screens.compact import CompactScreen
from tui_agent.ui.screens.help import HelpScreen
from tui_agent.ui.screens.models import ModelPicker
from tui_agent.ui.widgets.transcript.transcript import Transcript


def user(text: str) -> UserEntry:
    return UserEntry(parts=(TextPart(text=text),))


def answer(text: str, *, cached: int = 0) -> AssistantEntry:
    usage = Usage(input=1_000 - cached, cache_read=cached, output=50)
    return AssistantEntry(
        parts=(TextPart(text=text),), model="anthropic/claude-sonnet-4-5", usage=usage, cost=0.01
    )


async def test_the_status_line_says_what_goes_on_and_ticks_only_then(stage: Stage) -> None:
    async with stage.run() as pilot:
        assert stage.main.status.ticking is None
        await emit(stage, pilot, RunStarted(), RequestStarted(1, "m"))
        assert "◐ working 0 s · esc stops it" in screen_text(stage)
        assert "esc interrupt" in screen_text(stage)
        assert stage.main.status.ticking is not None
        await emit(stage, pilot, RetryScheduled(2, 4, 12.0, "busy"))
        assert "retry in 12 s, attempt 2 of 4: busy · esc stops it" in screen_text(stage)
        await emit(stage, pilot, RunEnded("done"))
        assert stage.main.status.ticking is None
        assert "esc interrupt" not in screen_text(stage)
        assert "working" not in screen_text(stage)


async def test_a_cache_is_told_of_once_it_gave_something(stage: Stage) -> None:
    async with stage.run() as pilot:
        for cached, share in ((0, None), (500, 0.5), (0, 0.0)):
            stage.agent.append(user("question"), answer("yes", cached=cached))
            await until(lambda share=share: stage.main.gauge.reading.cache_share == share, pilot)
        assert "cache 0%" in screen_text(stage)


async def test_what_to_do_about_a_full_context_is_told_whole_and_its_error_once(
    stage: Stage,
) -> None:
    error = "The request is larger than some/model takes (9,000 tokens of 8,192)."
    advice = "What you can do: /context: see what fills the context."
    async with stage.run() as pilot:
        failed = answer("").model_copy(update={"error": error, "finish": "error"})
        stage.agent.append(user("question"), failed)
        await emit(stage, pilot, RunStarted(), RunEnded("stopped", f"{error} {advice}"))
        await until(lambda: stage.main.notice.message == advice, pilot)


async def test_a_failed_run_is_one_sentence_with_the_key_that_helps(stage: Stage) -> None:
    async with stage.run() as pilot:
        await emit(
            stage,
            pilot,
            RunStarted(),
            RunEnded("error", "The key was refused: set ANTHROPIC_API_KEY. [/x]"),
        )
        assert "✗ The key was refused: set ANTHROPIC_API_KEY. [/x]  f8 retry" in screen_text(stage)
        await press(pilot, "f8")
        assert stage.agent.calls == []  # nothing was ever sent: there is nothing to retry
        stage.agent.append(user("hi"))
        await press(pilot, "f8")
        assert stage.agent.calls == ["retry"]
        assert not stage.main.notice.display
        error = "The provider has no such model."
        stage.agent.append(AssistantEntry(parts=(), model="m", finish="error", error=error))
        await emit(stage, pilot, RunStarted(), RunEnded("error", error))
        assert screen_text(stage).count(error) == 1
        assert f"✗ {error} · f8 retry" in screen_text(stage), (
            "said once, where the conversation ends"
        )
        assert not stage.main.notice.display


async def test_warnings_that_a_run_takes_from_the_screen_can_be_read_again(stage: Stage) -> None:
    async with stage.run((100, 24)) as pilot:
        await emit(
            stage, pilot, *(Notice(f"Problem {number}.", "warning", "mcp") for number in range(4))
        )
        assert stage.main.notice.message == "Problem 1.\nProblem 2.\nProblem 3."
        assert "/doctor" not in screen_text(stage)
        await emit(stage, pilot, RunStarted())
        assert "Problem 3." not in screen_text(stage)
        assert "▲ 4 /doctor" in screen_text(stage)
        await stage.main.controller.run("doctor", "")
        await until(lambda: stage.app.screen is not stage.main, pilot)
        await pilot.pause()
        assert all(f"Problem {number}." in screen_text(stage) for number in range(4))
        await press(pilot, "escape")
        assert "▲" not in screen_text(stage)
        await emit(stage, pilot, Notice("One more.", "warning"), Notice("Something else."))
        assert stage.main.notice.message == "Something else."


async def test_a_full_disk_gives_the_text_back(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.failing = StoreFull("There is no room left on the disk.")
        await send(pilot, "keep me")
        assert "There is no room left on the disk." in screen_text(stage)
        assert stage.main.prompt.text == "keep me"


async def test_a_full_disk_keeps_what_was_typed_meanwhile(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.failing = StoreFull("There is no room left on the disk.")
        await write(pilot, "the next thought")
        stage.main.controller.outbox.submit("keep me")
        await pilot.pause()
        assert stage.main.prompt.text == "keep me\nthe next thought"


async def test_what_waits_in_the_queue_is_shown_and_counted(stage: Stage) -> None:
    async with stage.run() as pilot:
        await emit(stage, pilot, RunStarted(), QueueChanged(tuple("abcdef"), ("g",)))
        assert "and 4 more" in screen_text(stage)
        await emit(stage, pilot, QueueChanged())
        assert not stage.view.waiting.display


async def test_a_message_whose_hooks_run_is_shown_and_saved(stage: Stage) -> None:
    async with stage.run() as pilot:
        waiting = QueueChanged(("next one",), (), ("first", "second"))
        stage.agent.queue.checked = (QueuedMessage((TextPart(text="first"),), follow_up=False),)
        await emit(stage, pilot, RunStarted(), waiting, HookAwaited("user_prompt", "guard", 1.0))
        shown = screen_text(stage)
        assert "↳ hook   first" in shown
        assert "↳ hook   second" in shown
        assert "hook “guard” 1 s" in shown
        lines = {line.split()[2]: line for line in shown.splitlines() if "↳" in line}
        assert "enter" in lines["next"] or "takes back" in lines["next"]
        assert "enter" not in lines["second"]
        store = stage.services.store
        assert store.take_unsent(place_of(stage.agent)).waiting == ("first",)
        await emit(stage, pilot, QueueChanged(checked=("second",)))
        assert "takes back" not in screen_text(stage)
        stage.agent.queue.checked = ()


async def test_what_waits_when_a_run_is_stopped_comes_back_into_the_prompt(stage: Stage) -> None:
    async with stage.run() as pilot:
        for text in ("go", "and the tests", "then the docs"):
            stage.agent.submit(text, follow_up="docs" in text)
        await write(pilot, "half a")
        await pilot.press("escape")
        await until(lambda: stage.main.prompt.text != "half a", pilot)
        assert stage.main.prompt.text == "and the tests\n\nthen the docs\nhalf a"
        assert (
            stage.main.notice.message
            == "The 2 waiting messages are back in the prompt and not sent."
        )
        assert not stage.view.waiting.display
        assert not stage.agent.queue


async def test_the_terminals_focus_restyles_nothing_but_what_had_the_focus(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage.run() as pilot:
        app, restyled = stage.app, list[str]()
        monkeypatch.setattr(
            Transcript, "notify_style_update", lambda pane: restyled.append(pane.css_identifier)
        )
        assert stage.main.prompt.has_focus
        app.post_message(events.AppBlur())
        await until(lambda: not stage.main.prompt.has_focus, pilot)
        assert not stage.main.check_action("step_back", ())
        app.post_message(events.AppFocus())
        app.post_message(events.AppFocus())
        await until(lambda: stage.main.prompt.has_focus, pilot)
        assert restyled == []
        stage.main.add_class("-anything")
        await until(lambda: bool(restyled), pilot)


async def test_what_is_typed_sent_or_pressed_before_the_session_is_there_does_its_work_then(
    stage: Stage,
) -> None:
    gate = asyncio.Event()

    async def load() -> tuple[AppServices, FirstView]:
        await gate.wait()
        return stage.services, FirstView()

    app = TuiAgentApp(load, Look(STILL.theme, STILL.reduced_motion))
    async with app.run_test() as pilot:
        await send(pilot, "early")
        assert app.main.prompt.text == ""
        await press(pilot, "f1")
        assert app.screen is app.main
        gate.set()
        await until(lambda: stage.agents and stage.agent.sent, pilot)
        assert stage.agent.sent == [("early", False)]
        await until(lambda: isinstance(app.screen, HelpScreen), pilot)


async def test_what_is_sent_while_no_session_can_be_opened_comes_back_and_tries_again(
    stage: Stage,
) -> None:
    really, locked = stage.services.open_session, True

    def open_session(request: OpenRequest) -> Session:
        if locked:
            raise StoreBusy("Another program keeps the session file locked.")
        return really(request)

    stage.services.open_session = open_session  # type: ignore[method-assign]
    app = make_app(stage.services)
    async with app.run_test() as pilot:
        await until(lambda: "locked" in app.main.notice.message, pilot)
        await send(pilot, "a thought")
        await until(lambda: app.main.prompt.text == "a thought", pilot)
        locked = False
        await pilot.press("enter")
        await until(lambda: stage.agents and stage.agent.sent, pilot)
        assert stage.agent.sent == [("a thought", False)]


async def test_what_is_sent_when_nothing_can_be_saved_any_more_stays_in_the_prompt(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage.run((100, 30)) as pilot:
        stage.store.path.unlink()
        with pytest.raises(StoreReadOnly):
            stage.store.rename(stage.agent.session.id, "a title")
        monkeypatch.setattr(type(stage.agent.session), "read_only", property(lambda _session: True))
        await send(pilot, "a thought")
        await until(lambda: "was deleted or replaced" in stage.main.notice.message, pilot)
        assert stage.main.prompt.text == "a thought"
        assert stage.agent.sent == []


async def test_ports_that_cannot_be_had_end_the_program_with_their_reason(tmp_path: Path) -> None:
    async def load() -> tuple[AppServices, FirstView]:
        raise StoreFull("There is no room left on the disk.")

    app = TuiAgentApp(load, Look(STILL.theme, STILL.reduced_motion))
    async with app.run_test() as pilot:
        await until(lambda: app._exit, pilot)
    assert str(app.failure) == "There is no room left on the disk."
    assert app.return_value == 1


def test_nothing_about_sessions_is_imported_before_the_first_paint() -> None:
    program = (
        "import sys, tui_agent.ui.app\n"
        "print([name for name in ('pydantic', 'sqlite3', 'markdown_it', 'pygments') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


async def test_it_starts_with_a_prompt_of_the_command_line(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, start=FirstView(prompt="do it"))
    async with stage.run() as pilot:
        await until(lambda: stage.agents and stage.agent.sent, pilot)
        assert stage.agent.sent == [("do it", False)]


async def test_one_goes_on_writing_while_a_long_session_is_forked_or_added_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def held_up(work: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: go_on.wait(20) and work(*given)

    monkeypatch.setattr(EntryReader, "load", held_up(EntryReader.load))
    monkeypatch.setattr(stage.store, "fork", held_up(stage.store.fork))
    monkeypatch.setattr(settled, "HELD_BACK", 0.0)
    async with stage.run() as pilot:
        stage.agent.append(user("a"), answer("b"))
        ends = {
            "cost": lambda: "1 request" in screen_text(stage),
            "fork": lambda: len(stage.agents) == 2,
        }
        for command, is_done in ends.items():
            go_on.clear()
            stage.main.prompt.reset()
            stage.main.controller.begin(command)
            await write(pilot, f"during {command}")
            await until(lambda command=command: f"during {command}" in screen_text(stage), pilot)
            go_on.set()
            await until(is_done, pilot)
            await pilot.press("escape")


async def test_a_session_read_only_takes_no_message(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)

    def open_session(request: OpenRequest) -> Session:
        known = stage.store.create_session("/home/ada/src/shop").id
        return Session(stage.store, known, estimate=lambda _entry: 1, read_only=True)

    stage = make_stage(tmp_path, open_session=open_session, close_session=lambda _session: None)
    async with stage.run() as pilot:
        await send(pilot, "hello")
        assert stage.agent.sent == []
        text = screen_text(stage)
        assert "read only" in text
        assert "fork continues in a copy" in text
        for command in ("compact", "prune"):
            stage.main.notice.clear()
            await run_command(stage, pilot, command)
            assert stage.app.screen is stage.main, "no summary is paid for that can't be kept"
            assert stage.main.notice.message == READ_ONLY


async def test_an_unknown_command_is_answered_with_close_names(stage: Stage) -> None:
    async with stage.run() as pilot:
        await send(pilot, "/modle")
        assert "There is no command /modle. Did you mean /mode or /model?" in screen_text(stage)
        await send(pilot, "/stop")
        assert "There is no command /stop. Escape stops the agent" in screen_text(stage)
        await send(pilot, "/Share this")
        assert stage.main.notice.message.endswith("type a space first.")
        assert stage.agent.sent == []


async def test_enter_runs_no_command_that_only_resembles_what_was_typed(stage: Stage) -> None:
    async with stage.run() as pilot:
        for typed, found in (
            ("/unsandboxed", "/outside "),
            ("/approve", "/mode "),
            ("/cmpct", "/compact "),
        ):
            await send(pilot, typed)
            assert stage.main.prompt.text == found
            assert stage.app.screen is stage.main
            stage.main.prompt.reset()
        await send(pilot, "/hotkeys")
        await until(lambda: isinstance(stage.app.screen, HelpScreen), pilot)


NAMES = {
    name: command.name for command in command_table() for name in (command.name, *command.aliases)
}


async def test_enter_sends_each_name_that_is_typed_in_full(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = list[str]()

    async def remember(text: str, **_named: object) -> None:
        sent.append(text.strip())

    async with stage.run() as pilot:
        monkeypatch.setattr(stage.main.controller.outbox, "send", remember)
        names = [*NAMES] if NIGHTLY else [*NAMES][::5]
        for name in names:
            await send(pilot, f"/{name}")
            await pilot.pause()
            assert stage.main.prompt.text == "", name
        assert sent == [f"/{NAMES[name]}" for name in names]


def test_other_programs_names_are_no_commands_and_name_only_commands_there_are() -> None:
    names = {name for command in command_table() for name in (command.name, *command.aliases)}
    assert not names & set(ELSEWHERE)
    for text in ELSEWHERE.values():
        assert set(re.findall(r"(?<!\w)/([a-z]+)", text)) <= names


async def test_a_command_of_another_program_is_answered_and_none_is_prefilled(stage: Stage) -> None:
    async with stage.run() as pilot:
        for typed, answer in (
            ("/rc", "Everything runs on this machine."),
            ("/daemon", "/detach lets the agent continue without this terminal"),
            ("/personality", "/style chooses how answers are written."),
            ("/experimentals", "/help lists all commands."),
        ):
            await send(pilot, typed)
            said = f"There is no command {typed}. {answer}"
            assert stage.main.notice.message.startswith(said)
            stage.main.prompt.reset()


async def test_every_command_runs_without_an_argument(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.append(user("hi"), answer("there"))
        for command in command_table():
            if command.name in {"quit", "new", "fork"}:
                continue
            await run_command(stage, pilot, command.name, "")
            while len(stage.app.screen_stack) > 1:
                stage.app.pop_screen()
                await pilot.pause()
        assert stage.app.is_running


async def test_the_compact_button_is_clicked(stage: Stage) -> None:
    async with stage.run((100, 24)) as pilot:
        await pilot.click("Gauge", offset=(94, 0))
        await until(lambda: isinstance(stage.app.screen, CompactScreen), pilot)


async def test_letters_that_do_nothing_to_a_block_go_to_the_prompt(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.append(user("first"), answer("a"))
        await pilot.pause()
        stage.view.transcript.focus()
        await until(lambda: "esc back" in str(stage.main.status.render()), pilot)
        await pilot.press("n", "y")
        assert stage.view.transcript.has_focus, "bound letters stay"
        await until(lambda: stage.app.clipboard == "a", pilot)
        await press(pilot, "g", "o", "n", "e")
        assert stage.main.prompt.text == "gone"
        assert stage.main.prompt.has_focus
        await until(lambda: "esc back" not in str(stage.main.status.render()), pilot)


@pytest.mark.daily(1)
@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("row", [0, 2, 4])
async def test_whoever_clicked_and_types_writes(stage: Stage, row: int, running: bool) -> None:
    async with stage.run() as pilot:
        stage.agent.append(user("first"), answer("a"), user("second"), answer("b"))
        if running:
            stage.agent.emit(RunStarted())
        await pilot.pause()
        stage.view.transcript.focus()
        for letter in string.ascii_letters:
            await pilot.click("Transcript", offset=(6, row))
            await press(pilot, letter)
        assert stage.main.prompt.text == string.ascii_letters
        assert stage.agent.calls == []
        assert stage.app.screen is stage.main


@pytest.mark.parametrize("letter", ["r", "u", "b", "s"])
async def test_no_single_letter_costs_money_or_moves(stage: Stage, letter: str) -> None:
    async with stage.run() as pilot:
        stage.agent.append(user("first"), answer("a"))
        leaf = stage.agent.session.leaf
        await press(pilot, "tab", "k", letter)
        assert (stage.agent.calls, stage.agent.session.leaf) == ([], leaf)
        assert stage.app.screen is stage.main
        await press(pilot, "o", "k")
        assert stage.main.prompt.text in {f"{letter}ok", "ok"}, (
            "the words are whole, or the letter is told of"
        )


async def test_escape_leaves_the_conversation_first_and_the_run_last(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.append(user("first"), answer("a"))
        stage.agent.emit(RunStarted())
        await press(pilot, "tab", "k", "escape")
        assert stage.agent.calls == []
        assert stage.main.prompt.has_focus
        await press(pilot, "ctrl+f", *"fir", "escape")
        assert stage.agent.calls == []
        assert stage.main.prompt.has_focus
        await press(pilot, "escape")
        assert stage.agent.calls == ["interrupt"]


async def test_undo_during_a_run_is_refused(stage: Stage) -> None:
    async with stage.run() as pilot:
        stage.agent.append(user("first"))
        await emit(stage, pilot, RunStarted())
        await run_command(stage, pilot, "undo", "")
        assert stage.agent.session.leaf == 1
        assert "press Escape first" in screen_text(stage)
        await emit(stage, pilot, RunEnded("done"))
        assert "press Escape first" not in screen_text(stage)


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (200, 50)])
async def test_one_help_finds_and_runs_commands_the_most_used_first(
    stage: Stage, size: tuple[int, int]
) -> None:
    async with stage.run(size) as pilot:
        await pilot.press("f1")
        await until(lambda: isinstance(stage.app.screen, HelpScreen), pilot)
        assert ("during a run: queue the message" in screen_text(stage)) == (size[1] >= 20)
        await pilot.resize_terminal(40, 12)
        await until(lambda: "Type to find" in screen_text(stage), pilot)
        press_at_once(stage.app, *"cost")
        await until(lambda: "/cost" in screen_text(stage), pilot)
        assert stage.app.screen.highlighted == "/cost"
        await pilot.press("enter")
        await until(lambda: "nothing yet" in screen_text(stage), pilot)
        await pilot.press("escape", "ctrl+p")
        await until(lambda: isinstance(stage.app.screen, HelpScreen), pilot)
        assert stage.app.screen.highlighted in {"/cost", "/help"}
        assert stage.main.controller.commands[0].name not in {"cost", "help"}
        press_at_once(stage.app, *"transcript.copy")
        await until(lambda: stage.app.screen.highlighted == "name transcript.copy", pilot)


WANTED = {
    "approve": "/mode",
    "always approve": "/permissions",
    "merge": "/tree",
    "queue a message": "key alt+enter",
    "stop": "key escape ctrl+c",
    "continue after a crash": "/sessions",
    "shell": "key !command",
    "whole output": "key tab",
    "delete": "/sessions",
    "go back": "/rewind",
    "how do I copy a code block": "/copy",
    "turn off automatic compaction": "/settings",
    "sandbox off": "/outside",
    "attach an image": "key /name @file #12",
}
"""What somebody types who does not know the name yet, and a row that leads there."""


async def test_help_finds_what_is_called_otherwise(stage: Stage) -> None:
    async with stage.run((80, 24)) as pilot:
        await pilot.press("ctrl+p")
        await until(lambda: isinstance(stage.app.screen, HelpScreen), pilot)
        screen = stage.app.screen
        for words, row in WANTED.items():
            screen.refill(words)
            assert row in {option.id for option in screen.listing.options[:4]}, words
        screen.refill("xyzzy")
        assert not screen.listing.display
        screen.refill("merge")
        await until(lambda: "also: merge, fork, label" in screen_text(stage), pilot)


async def test_the_popup_finds_commands_by_other_words(stage: Stage) -> None:
    async with stage.run() as pilot:
        await write(pilot, "/merge")
        await until(lambda: stage.main.popup.display, pilot)
        assert str(stage.main.popup.options[0].prompt).startswith("/tree ")


async def test_a_click_on_the_model_opens_its_page(stage: Stage) -> None:
    async with stage.run() as pilot:
        row = screen_text(stage).split("\n")[-1]
        await pilot.click(offset=(row.index("claude"), 23))
        await until(lambda: isinstance(stage.app.screen, ModelPicker), pilot)


def test_names_keys_and_aliases_are_unique() -> None:
    names = [name for command in command_table() for name in (command.name, *command.aliases)]
    keys = [command.key for command in command_table() if command.key]
    assert len(names) == len(set(names))
    assert len(keys) == len(set(keys))


async def test_a_terminal_that_is_too_small_says_so_until_it_is_larger(stage: Stage) -> None:
    async with stage.run((60, 20)) as pilot:
        assert "needs" not in screen_text(stage)
        await pilot.resize_terminal(60, 7)
        await until(lambda: "▲ needs 30×8" in screen_text(stage), pilot)
        await pilot.resize_terminal(20, 20)
        await until(lambda: stage.main.header.size.width < 20, pilot)
        await until(lambda: "▲ needs 30×8" in screen_text(stage), pilot)
        await write(pilot, "still")
        assert stage.main.prompt.text == "still"
        await pilot.resize_terminal(30, 8)
        await until(lambda: "needs" not in screen_text(stage), pilot)


async def test_styles_read_after_the_first_paint_change_nothing_of_it(stage: Stage) -> None:
    every = (*FIRST_STYLES, *SESSION_STYLES, *LATER_STYLES)
    assert sorted(every) == sorted(path.name for path in style_path("").glob("*.tcss"))
    async with stage.run():
        main = stage.app.main
        for widget in (
            main,
            main.header,
            main.body,
            main.notice,
            main.popup,
            main.prompt,
            main.gauge,
            main.status,
        ):
            painted = dict(widget.styles.base.get_rules())
            stage.app.stylesheet.apply(widget)
            assert widget.styles.base.get_rules() == painted, widget


async def test_the_key_that_stops_a_command_is_offered_no_longer_than_the_command_runs(
    stage: Stage,
) -> None:
    async with stage.run() as pilot:
        command = asyncio.ensure_future(asyncio.Event().wait())
        stage.agent.shell_tasks.add(command)
        stage.agent.emit(ToolStarted("$1", "$", "ls", ""))
        await until(lambda: "interrupt" in screen_text(stage), pilot)
        await emit(
            stage, pilot, ToolFinished("$1", "$", "completed", ToolMetadata(exit_code=0), 0.1)
        )
        stage.agent.shell_tasks.clear()
        command.cancel()
        stage.agent.append(ShellEntry(command="ls", output=""))
        await until(lambda: "interrupt" not in screen_text(stage), pilot)


async def test_what_is_sent_from_further_up_is_seen_and_a_command_leaves_the_place(
    stage: Stage,
) -> None:
    async with stage.run((80, 24)) as pilot:
        for number in range(30):
            stage.agent.append(user(f"question {number}"), answer(f"answer {number}"))
        transcript = stage.view.transcript
        await pilot.press("ctrl+home")
        await until(lambda: not transcript.following, pilot)
        await send(pilot, "/status")
        await until(
            lambda: not stage.main.prompt.text and stage.app.screen is not stage.main, pilot
        )
        await pilot.press("escape")
        await until(lambda: stage.app.screen is stage.main, pilot)
        assert not transcript.following
        await send(pilot, "and this?")
        await until(lambda: stage.agent.sent, pilot)
        assert transcript.following


EVIL = "left\x1b]0;owned\x07\x1b[2J\u202eright"


async def test_titles_notices_and_pickers_show_what_they_were_given_harmless(stage: Stage) -> None:
    async with stage.run((120, 30)) as pilot:
        stage.agent.session.set_title(EVIL)
        stage.main.refresh_facts()
        stage.main.say(EVIL)
        await pilot.pause()
        text = screen_text(stage)
        assert text.count("left␛]0;owned") == 2
        await stage.app.screen.mount(
            Static(EVIL, markup=False)
        )  # a widget that forgets to make its text harmless
        stage.app.notify(EVIL, markup=False)
        await pilot.pause()
        await pilot.pause()
        assert screen_text(stage).count("right") > text.count("right")
        assert ACTING.search(screen_text(stage)) is None
        await press(pilot, "ctrl+s")
        await pilot.pause()
        assert ACTING.search(screen_text(stage)) is None


async def test_the_branch_is_read_again_when_files_may_have_changed(tmp_path: Path) -> None:
    branch = "main*"
    asked = 0

    async def checked_out(_root: Path) -> str:
        nonlocal asked
        asked += 1
        return branch

    stage = make_stage(tmp_path, branch=checked_out)
    async with stage.run() as pilot:
        stage.agent.append(user("first"), answer("a"))
        await until(lambda: "(main*)" in screen_text(stage), pilot)
        before = asked
        await stage.main.controller.begin("label", "here")
        await pilot.pause()
        assert asked == before, "no file changed"
        branch = "main"
        await press(pilot, "f5")
        await until(lambda: "(main)" in screen_text(stage), pilot)
        branch = "other"
        stage.agent.append(ShellEntry(command="git switch other", output=""))
        await until(lambda: "(other)" in screen_text(stage), pilot)
