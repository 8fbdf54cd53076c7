"""Searching the conversation: every place is found and marked, and one goes from one to the next."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_stage import RealStage, real_stage
from tests.support.scripted_client import Call, Reply
from tests.support.ui_app import Stage, screen_text, send, until, write
from tests.support.ui_scenes import conversation
from tui_agent.agent.permissions import Action, Rule
from tui_agent.app.controller import Controller
from tui_agent.app.find_commands import MAX_SCANNED, find_entries
from tui_agent.app.services import OpenRequest
from tui_agent.session.entries import CheckpointEntry, FileChange, TextPart, UserEntry
from tui_agent.ui.widgets import find_bar
from tui_agent.ui.widgets.find_bar import FindBar

COMMAND = "seq 1 90; echo the xylophone; seq 91 180"


def staged(tmp_path: Path) -> RealStage:
    """Return a stage with a long output that hides a word, between answers that say it."""
    script = [
        Reply(
            "Where is the xylophone?\n\n"
            + "\n\n".join(f"Paragraph {n}." for n in range(30))
            + "\n\nXylophone again."
        ),
        Reply("I look.", (Call("bash", json.dumps({"command": COMMAND})),)),
        Reply("Found it."),
        *[Reply(f"Answer {number}.") for number in range(12)],
    ]
    return real_stage(tmp_path, script, rules=(Rule("bash", "*", Action.ALLOW),))


async def told(bar: FindBar, text: str, pilot: Any) -> None:
    await until(lambda: str(bar.status.content).startswith(text), pilot)


async def test_places_are_counted_and_gone_through_unfolding_what_hides_them(
    tmp_path: Path,
) -> None:
    stage = staged(tmp_path)
    async with stage.run(after=[f"message {number}" for number in range(14)]) as pilot:
        await pilot.press("ctrl+f")
        bar = stage.view.find_bar
        await until(lambda: bar.display and stage.app.focused is bar.field, pilot)
        await write(pilot, "XYLO")
        # The newest place is the output, whose card is folded, and whose call has the word as well.
        await told(bar, "1 of 3", pilot)
        await pilot.press("enter")
        await stage.until_text("the xylophone", pilot)
        await pilot.press("n")
        await told(bar, "2 of 3", pilot)
        await pilot.press("n")
        await told(bar, "3 of 3, line 2 of 2", pilot)
        assert "Xylophone again." in stage.text()
        assert "Where is the xylophone?" not in stage.text()
        await pilot.press("n")
        await told(bar, "3 of 3, line 1 of 2", pilot)
        assert "Where is the xylophone?" in stage.text()
        await pilot.press("n")
        await told(bar, "1 of 3", pilot)
        await pilot.press("N")
        await told(bar, "3 of 3, line 1 of 2", pilot)
        await pilot.press("escape")
        assert not bar.display
        assert stage.app.focused is stage.main.prompt
        assert stage.main.view is not None
        assert stage.main.view.transcript.query_text == ""


async def test_the_command_takes_the_text_and_one_that_is_nowhere_says_so(tmp_path: Path) -> None:
    stage = staged(tmp_path)
    async with stage.run(after=["message"]) as pilot:
        await send(pilot, "/find paragraph 7")
        bar = stage.view.find_bar
        await told(bar, "1 of 1", pilot)
        assert "Paragraph 7." in stage.text()
        await write(pilot, "zebra")
        await told(bar, "not found", pilot)
        await pilot.press("enter", "n", "escape")
        assert stage.app.focused is stage.main.prompt


async def test_old_entries_of_a_long_session_are_found_by_the_index(tmp_path: Path) -> None:
    stage = real_stage(tmp_path, [Reply("x")])
    session = stage.harness.session
    session.append_many([UserEntry(parts=(TextPart(text="the first has a xylophone"),))])
    session.append_many(
        [
            UserEntry(parts=(TextPart(text=f"message {number}"),))
            for number in range(MAX_SCANNED + 50)
        ]
    )
    last = session.append(UserEntry(parts=(TextPart(text="one more Xylophone"),)))
    session.append(
        CheckpointEntry(files=(FileChange(path="xylophone.py", before=None, after="0" * 64),))
    )
    async with stage.run():
        assert await find_entries(stage.main.controller, "xylo") == [last.id, 1], (
            "and nothing that is not shown"
        )


async def test_the_way_back_is_in_sight_on_a_narrow_screen(stage: Stage) -> None:
    async with stage.run((40, 12)) as pilot:
        stage.agent.append(*conversation())
        await pilot.pause()
        await pilot.press("ctrl+f", *"views")
        await until(lambda: "esc back" in screen_text(stage), pilot)
        await pilot.press("escape", "tab", "k")
        await until(lambda: "esc back" in screen_text(stage), pilot)


async def found(stage: Stage, pilot: Any, query: str) -> FindBar:
    """Search the conversation for ``query``, and return the find bar once it has matches."""
    stage.agent.append(*conversation())
    await pilot.pause()
    await pilot.press("ctrl+f", *query)
    bar = stage.view.find_bar
    await until(lambda: "of" in str(bar.status.content), pilot)
    return bar


async def test_a_search_that_was_ended_shows_nothing_when_it_is_done(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = asyncio.Event()
    is_done = asyncio.Event()

    async def slow(controller: Controller, query: str) -> list[int]:
        await goes_on.wait()
        is_done.set()
        return await find_entries(controller, query)

    async with stage.run() as pilot:
        stage.agent.append(*conversation())
        await pilot.pause()
        monkeypatch.setattr(find_bar, "find_entries", slow)
        await pilot.press("ctrl+f", *"view")
        bar = stage.view.find_bar
        await pilot.press("escape")
        goes_on.set()
        await is_done.wait()
        await stage.app.workers.wait_for_complete(
            [worker for worker in stage.app.workers if worker.group == "find"]
        )
        assert stage.view.transcript.focused_block is None
        assert not str(bar.status.content)


async def test_the_next_search_begins_without_the_matches_of_the_last(stage: Stage) -> None:
    async with stage.run() as pilot:
        bar = await found(stage, pilot, "view")
        await pilot.press("escape", "ctrl+f", "enter", "n")
        assert bar.display
        assert not str(bar.status.content)
        assert stage.view.transcript.query_text == ""


async def test_a_search_ends_with_its_session(stage: Stage) -> None:
    async with stage.run() as pilot:
        bar = await found(stage, pilot, "view")
        await stage.main.controller.open(OpenRequest())
        await pilot.pause()
        assert not bar.display
        assert stage.main.prompt.has_focus


async def test_a_match_is_shown_where_it_is_after_the_terminal_was_resized(tmp_path: Path) -> None:
    text = f"The xylophone.\n\n{'Some words to wrap. ' * 60}\n\nXylophone again."
    stage = real_stage(tmp_path, [Reply(text)])
    async with stage.run((120, 24), after=["go"]) as pilot:
        await pilot.press("ctrl+f", *"xylo")
        bar = stage.view.find_bar
        await told(bar, "1 of 1, line 2 of 2", pilot)
        await pilot.press("enter", "n")
        await told(bar, "1 of 1, line 1 of 2", pilot)
        await pilot.resize_terminal(85, 24)
        await pilot.pause()
        await pilot.press("N")
        await told(bar, "1 of 1, line 2 of 2", pilot)
        assert "Xylophone again." in stage.text()
