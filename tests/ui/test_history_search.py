"""Ctrl+R finds what was sent before in the project, in any session."""

from pathlib import Path

from tests.support.ui_app import HOME, Stage, screen_text, until, write
from tui_agent.session.entries import ShellEntry, TextPart, UserEntry
from tui_agent.session.session import Session
from tui_agent.ui.screens.picker import PickScreen


def sent_before(stage: Stage, cwd: Path, *texts: str, agent: str = "") -> None:
    """Leave a session behind in which something was sent."""
    info = stage.store.create_session(cwd, title="Earlier work", agent=agent)
    session = Session(stage.store, info.id, estimate=lambda _entry: 1)
    for text in texts:
        shell = ShellEntry(command=text[1:], output="")
        session.append(shell if text.startswith("!") else UserEntry(parts=(TextPart(text=text),)))
    session.release()


async def test_every_prompt_of_the_project_is_found_and_what_was_written_is_not_lost(stage: Stage) -> None:
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
