"""What the prompt remembers: messages that were sent, and text that was not."""

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.support.ui_app import HOME, Stage, press, remembered, screen_text, until, write
from tui_agent.agent.events import RunEnded, RunStarted
from tui_agent.app.services import OpenRequest
from tui_agent.session.entries import ShellEntry, TextPart, UserEntry
from tui_agent.session.records import Unsent
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.ui.prompting.history import PromptHistory
from tui_agent.ui.screens.picker import PickScreen


def remember(stage: Stage, *texts: str, project: str = "") -> None:
    store = stage.store
    place = project or str(stage.services.cwd)
    session = Session(store, store.create_session(place).id, estimate=lambda _entry: 1)
    for text in texts:
        session.append(UserEntry(parts=(TextPart(text=text),)))


async def test_history_goes_back_across_sessions_and_keeps_the_draft(stage: Stage) -> None:
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


async def test_history_is_that_of_the_project_as_in_its_list(stage: Stage) -> None:
    remember(stage, "for another project", project="/elsewhere")
    async with stage.run() as pilot:
        await pilot.press("up")
        assert not stage.main.prompt.text
        await pilot.press("ctrl+r")
        await until(
            lambda: "No messages have been sent in this project" in screen_text(stage), pilot
        )


def test_each_project_keeps_what_was_added_in_it() -> None:
    stored = {"/a": ["old a"], "/b": ["old b"]}
    project = "/a"
    history = PromptHistory(lambda: stored[project])
    history.add("early")
    history.enter("/a")
    assert [history.older(""), history.older("")] == ["early", "old a"]
    project = "/b"
    history.enter("/b")
    history.add("for b")
    assert [history.older(""), history.older(""), history.older("")] == ["for b", "old b", None]
    project = "/a"
    history.enter("/a")
    assert [history.older(""), history.older(""), history.older("")] == ["early", "old a", None]


async def test_up_moves_the_cursor_before_it_goes_into_the_history(stage: Stage) -> None:
    remember(stage, "older")
    async with stage.run() as pilot:
        await pilot.press("a", "ctrl+j", "b", "up")
        assert stage.main.prompt.text == "a\nb"
        assert stage.main.prompt.cursor_location[0] == 0
        await pilot.press("up")
        assert stage.main.prompt.text == "older"


async def test_an_edited_recalled_message_becomes_the_draft(stage: Stage) -> None:
    remember(stage, "one", "two")
    async with stage.run() as pilot:
        await press(pilot, "up", "x")
        await pilot.press("up")
        assert stage.main.prompt.text == "two"
        await pilot.press("down")
        assert stage.main.prompt.text == "twox"


async def test_every_session_keeps_what_was_written_in_it(stage: Stage) -> None:
    async with stage.run() as pilot:
        remembered(stage)
        first = stage.agent.session.id
        await write(pilot, "for the first")
        await stage.main.controller.open(OpenRequest())
        assert stage.main.prompt.text == "for the first", "it may have been meant for the new one"
        remembered(stage)
        second = stage.agent.session.id
        await write(pilot, ", no: for the second")
        await stage.main.controller.open(OpenRequest(first))
        assert stage.main.prompt.text == "for the first, no: for the second"
        stage.main.prompt.set_draft("mine")
        await pilot.pause()
        stage.main.unsent.save()
        stage.store.keep_unsent(second, Unsent("yours"))
        await stage.main.controller.open(OpenRequest(second))
        assert stage.main.prompt.text == "yours"
        assert stage.main.prompt.cursor_location == (0, 5)
        await stage.main.controller.open(OpenRequest(first))
        assert stage.main.prompt.text == "mine"


async def test_what_a_new_session_left_is_there_for_the_next_one(stage: Stage) -> None:
    with Store(stage.store.path) as before:
        before.keep_unsent(str(stage.services.cwd), Unsent("left"))
    async with stage.run():
        assert stage.main.prompt.text == "left"


async def test_a_session_begun_later_does_not_get_what_another_window_left(stage: Stage) -> None:
    async with stage.run():
        remembered(stage)
        place = str(stage.services.cwd)
        with Store(stage.store.path) as other:
            other.keep_unsent(place, Unsent("of the other window"))
        await stage.main.controller.open(OpenRequest())
        assert not stage.main.prompt.text
        assert stage.store.take_unsent(place).text == "of the other window", (
            "the next program finds it"
        )


async def test_a_message_from_the_history_is_no_draft(stage: Stage) -> None:
    async with stage.run() as pilot:
        await write(pilot, "old news")
        await pilot.press("enter")
        await write(pilot, "new")
        await pilot.press("up")
        assert stage.main.prompt.text == "old news"
        stage.main.unsent.save()
    assert stage.store.take_unsent(stage.agent.session.id).text == "new"


async def queue_two(stage: Stage, pilot: Pilot[Any]) -> None:
    stage.agent.emit(RunStarted())
    await write(pilot, "steer")
    await pilot.press("enter")
    await write(pilot, "follow")
    await pilot.press("alt+enter")
    await until(lambda: len(stage.view.waiting.queue.follow_up) == 1, pilot)


async def test_what_waits_is_kept_and_comes_back_into_the_prompt(stage: Stage) -> None:
    async with stage.run() as pilot:
        remembered(stage)
        session = stage.agent.session.id
        await queue_two(stage, pilot)
        stage.agent.emit(RunEnded("done"))
        await stage.main.controller.open(OpenRequest())
        assert stage.main.prompt.text == ""
        await stage.main.controller.open(OpenRequest(session))
        assert stage.main.prompt.text == "steer\n\nfollow"
        assert "2 waiting messages" in stage.main.notice.message
        assert stage.agent.sent == []


async def test_what_waits_in_a_session_that_works_stays_there(stage: Stage) -> None:
    async with stage.run() as pilot:
        remembered(stage)
        agent = stage.agent
        await queue_two(stage, pilot)
        await stage.main.controller.open(OpenRequest())
        await stage.main.controller.open(OpenRequest(agent.session.id))
        assert stage.main.agent is agent
        assert stage.main.prompt.text == ""
        assert agent.queue.snapshot().follow_up == ("follow",)


async def test_a_text_that_could_not_be_saved_stays_in_the_prompt(stage: Stage) -> None:
    async with stage.run() as pilot:
        remembered(stage)
        second = stage.store.create_session(HOME).id
        Session(stage.store, second, estimate=lambda _entry: 1).append(
            UserEntry(parts=(TextPart(text="hello"),))
        )
        stage.store.keep_unsent(second, Unsent("of the second"))
        first = stage.agent.session
        other = Session(stage.store, first.id, estimate=lambda _entry: 1)
        other.hold(take_over=True)
        first.check_for_take_over()
        await write(pilot, "typed since")
        await stage.main.controller.open(OpenRequest(second))
        assert stage.main.prompt.text == "of the second\ntyped since"


async def test_undo_and_redo_are_a_chain_of_keys_or_commands(stage: Stage) -> None:
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
        await until(lambda: stage.main.prompt.text == "and the README", pilot)
        await pilot.press("up", "up")
        assert stage.main.prompt.text == "write a test for it", (
            "what made room for a command is in the history"
        )
        await pilot.press("f6")
        await until(lambda: stage.agent.session.leaf == 4, pilot)


async def test_a_restored_text_that_was_touched_is_the_users(stage: Stage) -> None:
    async with stage.run() as pilot:
        remembered(stage)
        await pilot.press("f5")
        await until(lambda: stage.main.prompt.text == "and the README", pilot)
        await write(pilot, " or/and more")
        assert stage.main.prompt.text == "and the README or/and more"
        await pilot.press("f6")
        await until(lambda: stage.agent.session.leaf == 4, pilot)
        assert stage.main.prompt.text == "and the README or/and more"


def sent_before(stage: Stage, cwd: Path, *texts: str, agent: str = "") -> None:
    """Leave a session behind in which something was sent."""
    info = stage.store.create_session(cwd, title="Earlier work", agent=agent)
    session = Session(stage.store, info.id, estimate=lambda _entry: 1)
    for text in texts:
        shell = ShellEntry(command=text[1:], output="")
        session.append(shell if text.startswith("!") else UserEntry(parts=(TextPart(text=text),)))
    session.release()


async def test_every_prompt_of_the_project_is_found_and_what_was_written_is_not_lost(
    stage: Stage,
) -> None:
    sent_before(stage, HOME, "find the login bug", "!make test")
    sent_before(stage, HOME / "web", "fix the redirect\nand test it")
    sent_before(stage, Path("/home/ada/other"), "nothing of this project")
    sent_before(stage, HOME, "what a subagent was told", agent="explore")
    async with stage.run() as pilot:
        await write(pilot, "half a thought")
        await pilot.press("ctrl+r")
        await until(lambda: isinstance(stage.app.screen, PickScreen), pilot)
        await pilot.pause()
        picker = stage.app.screen
        assert isinstance(picker, PickScreen)
        rows = [str(option.prompt).split("  ")[0] for option in picker.listing.options]
        assert sorted(rows) == ["!make test", "find the login bug", "fix the redirect and test it"]
        await write(pilot, "rdrct")
        await until(lambda: picker.listing.option_count == 1, pilot)
        assert "in “Earlier work”" in screen_text(stage), "all of it is shown below"
        await pilot.press("enter")
        await until(lambda: stage.main.prompt.text == "fix the redirect\nand test it", pilot)
        await pilot.press("up", "up")
        assert stage.main.prompt.text == "half a thought"


async def test_a_draft_that_was_put_away_is_kept_with_its_session(stage: Stage) -> None:
    async with stage.run() as pilot:
        remembered(stage)
        session = stage.agent.session.id
        await write(pilot, "for later")
        await press(pilot, "ctrl+x", "ctrl+s")
        await write(pilot, "now")
        stage.main.unsent.save()
        assert stage.store.take_unsent(session).text == "for later\n\nnow"


@pytest.mark.parametrize("how", ["undone", "put back", "cleaned"])
async def test_a_draft_outlives_what_comes_while_the_history_is_shown(
    stage: Stage, how: str
) -> None:
    async with stage.run() as pilot:
        await write(pilot, "old news")
        await pilot.press("enter")
        await write(pilot, "new")
        await pilot.press("up")
        assert stage.main.prompt.text == "old news"
        match how:
            case "undone":
                stage.main.restore_message("before")
                wanted = "before\nnew"
            case "put back":
                stage.main.put_back("before")
                wanted = "before\nnew"
            case _:
                stage.main.rewrite_typed(lambda text: text.replace("news", "***"))
                wanted = "new"
        assert stage.main.prompt.text == wanted
