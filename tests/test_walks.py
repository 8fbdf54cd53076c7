"""The walks in docs/architecture.md are what really happens: each is done on the real program, and compared."""

import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Self

import pytest
from textual import events
from textual.widget import Widget

import tui_agent
from tests.support.real_stage import SUMMARY, RealStage, real_stage, working_script, write_modules
from tests.support.scripted_client import Reply
from tests.support.ui_app import press, until
from tests.ui.test_race_live import one_green, over, racing_stage, start
from tui_agent.ui.screens.dialogs import ChoiceScreen
from tui_agent.ui.screens.tree import TreeScreen

OURS = Path(tui_agent.__file__).parent
ARCHITECTURE = Path(__file__).parents[1] / "docs/architecture.md"
LONG = " ".join(f"word{number}" for number in range(3_000))


class CallLog:
    """The calls of functions of the program while it is open; one that waits and goes on is one call."""

    def __init__(self) -> None:
        self._frames: dict[FrameType, str] = {}

    def __enter__(self) -> Self:
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(OURS)):
            place = Path(code.co_filename).relative_to(OURS).as_posix()
            self._frames.setdefault(frame, f"{place} {code.co_qualname}")

    @property
    def calls(self) -> list[str]:
        """The functions, ``agent/loop.py Loop.run``, in the order they were called."""
        return list(self._frames.values())


def walks() -> dict[str, list[str]]:
    """Return the functions of each walk of the document, by its heading."""
    text = ARCHITECTURE.read_text().partition("\n## Walks\n")[2].partition("\n## ")[0]
    parts = re.split(r"^### (.+)$", text, flags=re.MULTILINE)[1:]
    return {
        name: re.findall(r"`([\w/]+\.py [\w.]+)`", body)
        for name, body in zip(*[iter(parts)] * 2, strict=True)
    }


def missing(walk: list[str], calls: list[str]) -> str:
    """Return the first function of a walk that was not called after those before it, "" when all were."""
    rest = iter(calls)
    return next((step for step in walk if step not in rest), "")


async def inline(work: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Do at once what otherwise a thread does, so that there is one order."""
    return work(*arguments, **named)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RealStage:
    write_modules(tmp_path)
    answers = [Reply(f"{number} {LONG}") for number in range(4)]
    made = real_stage(tmp_path, [*working_script(1), *answers, Reply(SUMMARY)])
    monkeypatch.setattr(asyncio, "to_thread", inline)
    return made


def idle(stage: RealStage, kind: str) -> Callable[[], bool]:
    """Return whether the agent is idle after an entry of a kind."""
    harness = stage.harness
    return lambda: (
        not harness.agent.running and bool(harness.path()) and harness.path()[-1].kind == kind
    )


async def test_a_prompt_and_a_tool_result(stage: RealStage) -> None:
    prompt, result, *_ = walks().values()
    assert [len(walk) > 8 for walk in walks().values()] == [True] * 5
    async with stage.run() as pilot:
        await pilot.press(*"look")
        with CallLog() as log:
            await pilot.press("enter")
            await until(idle(stage, "assistant"), pilot)
            await pilot.pause()
    assert missing(prompt, log.calls) == ""
    assert missing(result, log.calls) == ""


async def test_a_compaction_and_a_move(stage: RealStage) -> None:
    _, _, compaction, move, _ = walks().values()
    async with stage.run() as pilot:
        for number in range(5):
            await stage.say(f"question {number} {LONG}", pilot)
        with CallLog() as log:
            stage.main.controller.begin("compact", "the redirect")
            await until(idle(stage, "compaction"), pilot)
            await pilot.pause()
        assert missing(compaction, log.calls) == ""
        await pilot.press("ctrl+t")
        await until(lambda: isinstance(stage.screen, TreeScreen), pilot)
        await pilot.press("up", "up", "up")
        with CallLog() as log:
            await pilot.press("enter")
            await until(lambda: isinstance(stage.screen, ChoiceScreen), pilot)
            await pilot.press("enter")
            await until(lambda: stage.screen is stage.main, pilot)
            await pilot.pause()
        assert missing(move, log.calls) == ""


async def test_a_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *_, race = walks().values()
    monkeypatch.setattr(asyncio, "to_thread", inline)
    stage = racing_stage(tmp_path, one_green)
    async with stage.run() as pilot:
        with CallLog() as log:
            await start(stage, pilot, runners=2)
            await over(stage, pilot)
            await pilot.press("home", "t")
            await until(lambda: stage.screen is stage.main, pilot)
    assert missing(race, log.calls) == ""


MAX_CALLS = 30
"""The boundary of errors is one for each message. Three draw a frame's background, not some hundred of Textual.
Six look for the styles of the prompt's parts."""


async def typed(stage: RealStage, letter: str) -> list[str]:
    """Return what is called for a letter, from the terminal until its line is drawn."""
    drawn = asyncio.Event()
    prompt = stage.main.prompt
    render = Widget.render_lines

    def render_lines(widget: Widget, crop: Any) -> Any:
        strips = render(widget, crop)
        if widget is prompt and any(prompt.text in strip.text for strip in strips):
            drawn.set()
        return strips

    Widget.render_lines = render_lines  # type: ignore[method-assign]  # what is drawn is known only there
    try:
        with CallLog() as log:
            stage.app.post_message(events.Key(letter, letter))
            await asyncio.wait_for(drawn.wait(), 60)
            for _ in range(20):
                await asyncio.sleep(0)
    finally:
        Widget.render_lines = render  # type: ignore[method-assign]
    return log.calls


async def test_a_letter_makes_few_calls(tmp_path: Path) -> None:
    write_modules(tmp_path)
    stage = real_stage(tmp_path, working_script(1))
    async with stage.run() as pilot:
        await stage.say("look at it", pilot)
        await press(pilot, "h", "e")
        # A timer can fall into one of them.
        names = min([await typed(stage, letter) for letter in "llo there"], key=len)
        assert len(names) <= MAX_CALLS, names
        assert not [name for name in names if "command" in name.lower() or "check_action" in name]
        assert stage.main.prompt.text == "hello there"
