"""What a letter typed costs: it is the most frequent thing that happens."""

import asyncio
from pathlib import Path
from typing import Any

from textual import events
from textual.widget import Widget

from tests.support.real_stage import RealStage, real_stage, working_script, write_modules
from tests.support.ui_app import press
from tests.test_walks import CallLog

MAX_CALLS = 24
"""The boundary of errors is one for each message. Three draw a frame's background, not some hundred of Textual."""


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
