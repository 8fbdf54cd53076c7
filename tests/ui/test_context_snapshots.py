"""Pictures of what is about the context, drawn from real agents with a scripted model."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.long_walk import walked
from tests.support.real_stage import (
    SUMMARY,
    RealStage,
    map_drawn,
    real_stage,
    working_script,
    write_modules,
)
from tests.support.scripted_client import Call, Reply
from tests.support.thoroughness import pictures
from tests.support.ui_app import STILL, run_command, until
from tui_agent.config import load_config
from tui_agent.context.settings import CompactionSettings, ContextSettings, PruneSettings
from tui_agent.resources import prompt
from tui_agent.session.entries import Usage
from tui_agent.setting_rows import setting_rows
from tui_agent.tools.registry import builtin_tools
from tui_agent.ui.screens.compact import CompactPhase

PHONE, SMALL, NARROW, LARGE, WIDE = (40, 12), (80, 24), (60, 20), (120, 40), (200, 60)
DARK, LIGHT, ANSI = "textual-dark", "textual-light", "ansi-dark"
TURNS = 4

FIXED = {"system": "You are a coding agent. " * 30, "environment": "You work in a directory."}

Act = Callable[[RealStage, Any], Awaitable[None]]


async def _map(stage: RealStage, pilot: Any) -> None:
    await pilot.press("ctrl+g", "end", "up", "up", "up")
    await pilot.press("m", "enter")
    await map_drawn(stage.screen, pilot)


async def _timeline(stage: RealStage, pilot: Any) -> None:
    walked(stage.harness.session, model=stage.harness.agent.model)
    await pilot.press("ctrl+g")
    await map_drawn(stage.screen, pilot)
    await pilot.press("tab", "shift+left")
    await map_drawn(stage.screen, pilot)


async def _summary(stage: RealStage, pilot: Any) -> None:
    await pilot.press("f4", "enter")
    await until(lambda: stage.screen.phase is CompactPhase.EDIT, pilot)
    await until(lambda: stage.screen.line.display, pilot)


def _gauge_fell(stage: RealStage, tokens: int) -> None:
    """Have the gauge fall by an amount: which sizes it saw on the way depends on the machine's speed."""
    gauge, reading = stage.main.gauge, stage.main.gauge.reading
    assert reading is not None
    gauge.measure(replace(reading, size=replace(reading.size, total=reading.size.total + tokens)))
    gauge.measure(reading)


async def _markers(stage: RealStage, pilot: Any) -> None:
    await stage.harness.agent.prune()
    stage.harness.agent.edit_context(2, "pin")
    await stage.harness.agent.compact("the redirect")
    await pilot.pause()
    view = stage.main.view
    assert view is not None
    view.transcript.focus()
    await pilot.press("space")
    await until(lambda: stage.main.status.block, pilot)
    _gauge_fell(stage, 1_300)


async def _panel(stage: RealStage, pilot: Any) -> None:
    if not stage.main.view.panel.display:  # type: ignore[union-attr]
        await pilot.press("ctrl+b")
    session, agent = stage.harness.session, stage.harness.agent
    asked = [entry for entry in stage.harness.path() if entry.preview.startswith("Look at")]
    session.label(asked[1].id, "green")
    await agent.navigator.go(asked[3].parent_id)
    stage.client.script = [
        Reply(
            "",
            (
                Call(
                    "todo", '{"todos": "[x] read the view\\n[>] write a test\\n[ ] tell the team"}'
                ),
            ),
        ),
        Reply(
            "",
            (
                Call(
                    "write",
                    '{"path": "tests/test_redirect.py", "content": "def test():\\n    pass\\n"}',
                ),
            ),
        ),
        Reply("I wrote a test."),
    ]
    stage.client.requests.clear()
    await stage.say("Write a test for it.", pilot)
    await pilot.pause()
    _gauge_fell(stage, 6_456)
    transcript = stage.main.view.transcript  # type: ignore[union-attr]
    for index in range(len(transcript.model)):
        transcript.model.measured_height(
            index
        )  # the scroll bar stands where estimates put it until all is measured
    transcript.update_view()


async def _settings(stage: RealStage, pilot: Any) -> None:
    await run_command(stage, pilot, "settings", "")
    await pilot.press(*"ui.", "down")


SCENES: dict[str, Act] = {
    "map": _map,
    "map_asks": lambda _stage, pilot: pilot.press("ctrl+g", "V", "v", "end", "up", "x"),
    "timeline": _timeline,
    "request": lambda _stage, pilot: pilot.press("ctrl+g", "o", "slash", *"module_1"),
    "compact": lambda _stage, pilot: pilot.press("f4"),
    "summary": _summary,
    "markers": _markers,
    "panel": _panel,
    "settings": _settings,
}

PICTURES = pictures(
    *((name, SMALL, DARK) for name in SCENES),
    ("timeline", PHONE, DARK),
    ("map_asks", LARGE, LIGHT),
    ("panel", SMALL, ANSI),
    nightly=(
        ("timeline", LARGE, DARK),
        *((name, NARROW, DARK) for name in ("compact", "summary")),
        ("markers", LARGE, DARK),
        ("map", WIDE, DARK),
        ("panel", WIDE, LIGHT),
    ),
)


def scene_stage(tmp_path: Path, theme: str) -> RealStage:
    """Return a stage whose agent has worked for some turns; everything that differs between runs is held still."""
    (tmp_path / "stage").mkdir()
    (tmp_path / "config.toml").write_text('[compaction]\nthreshold = "80%"\n')
    write_modules(tmp_path, TURNS)
    # A command's time is on its card: reading takes none.
    script = [
        replace(reply, calls=tuple(Call("read", '{"path": "module_0.py"}') for _ in reply.calls))
        if reply.text == ""
        else reply
        for reply in working_script(TURNS)
    ]
    script = [*script, Reply(SUMMARY, usage=Usage(input=4_000, output=120), cost=0.02)]
    services = {
        "settings": STILL.model_copy(update={"theme": theme}),
        "cache_miss_cost": lambda _model, tokens: tokens * 2.7e-6,
        "settings_rows": lambda: setting_rows(load_config(tmp_path / "config.toml", environ={})),
    }
    # A summary that is prepared meanwhile takes replies of the script, as early as it can.
    by_hand = ContextSettings(
        compaction=CompactionSettings(auto=False),
        prune=PruneSettings(when="off", step_budget=2_000),
    )
    tools = tuple(
        tool for tool in builtin_tools() if tool.name in {"read", "write", "bash", "todo"}
    )
    stage = real_stage(
        tmp_path, script, services=services, window=16_000, settings=by_hand, tools=tools
    )
    # Where, on what and when the test runs is not part of a picture, nor how the prompt is worded.
    now = stage.harness.agent.ports.clock()
    stage.harness.agent.ports.clock = lambda: now
    stage.harness.agent.ports.prompt = lambda name: FIXED.get(name) or prompt(name)
    return stage


async def play(stage: RealStage, pilot: Any, name: str) -> None:
    await until(lambda: stage.main.agent is not None, pilot)
    for turn in range(TURNS):
        await stage.say(f"Look at module {turn} and say why it drops the query.", pilot)
    await SCENES[name](stage, pilot)
    await pilot.pause()
    stage.main.header.directory = "~/src/shop"
    await pilot.pause()


@pytest.mark.parametrize(("name", "size", "theme"), PICTURES)
def test_picture(
    snap_compare: Any, tmp_path: Path, name: str, size: tuple[int, int], theme: str
) -> None:
    stage = scene_stage(tmp_path, theme)
    assert snap_compare(
        stage.app, terminal_size=size, run_before=lambda pilot: play(stage, pilot, name)
    )
