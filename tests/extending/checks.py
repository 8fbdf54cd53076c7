"""What is looked at in a copy of the program that has an example more: ``python -m tests.extending.checks``."""

import asyncio
import io
import json
import tempfile
import traceback
from pathlib import Path
from typing import Any

from tests.support.agents import make_agent
from tests.support.headless import run_headless
from tests.support.real_stage import real_stage
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tests.support.ui_app import make_stage, screen_text, until
from tui_agent.app.exporting import ExportFormat, ExportOrder, export_text
from tui_agent.app.importing import import_all
from tui_agent.session.entries import TextPart, ToolResultEntry, UserEntry
from tui_agent.ui.screens.tree import TreeScreen


async def look_at_a_tool(place: Path) -> None:
    """The model is offered it and can call it, a rule can name it, and the conversation shows it."""
    from tui_agent.agent.permissions import Action, parse_rule

    assert parse_rule("lookup", Action.ALLOW).permission == "lookup"
    replies = [Reply("", (Call("define", '{"word": "leaf"}'),)), Reply("That is a leaf.")]
    stage = real_stage(place, replies)
    async with stage.run() as pilot:
        await stage.say("what is a leaf?", pilot)
        assert "lookup" in [tool.name for tool in stage.client.requests[0].tools]
        result = next(entry for entry in stage.harness.path() if isinstance(entry, ToolResultEntry))
        assert result.output == "The entry the next one is appended to.", result.output
        await stage.until_text("define leaf", pilot)


async def look_at_a_command(place: Path) -> None:
    """It works on the screen, in an editor and in a run without either, and its refusal is a sentence in all."""
    from tests.acp.test_editor_session import Editor
    from tui_agent.acp.session import EditorSession
    from tui_agent.acp.updates import Prompt
    from tui_agent.app.services import OpenRequest

    stage = real_stage(place / "screen", [])
    async with stage.run() as pilot:
        await pilot.press(*"/gre")
        await stage.until_text("say hello", pilot)
        await pilot.press(*"et", "space", *"Ada", "enter")
        await stage.until_text("Hello, Ada.", pilot)

    class Listening(Editor):
        told = ""

        async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
            self.told += str(getattr(getattr(update, "content", ""), "text", ""))

    editor = Listening()
    session = EditorSession(
        editor, make_agent(place / "editor", ScriptedClient([]), answer=None).services()
    )  # type: ignore[arg-type]
    await session.open(OpenRequest())
    assert await session.prompt(Prompt("/greet Ada", ())) == "end_turn"
    assert await session.prompt(Prompt("/greet nobody", ())) == "end_turn"
    assert "Hello, Ada." in editor.told
    assert "There is nobody to greet." in editor.told
    await session.aclose()

    out, err = io.StringIO(), io.StringIO()
    harness = make_agent(place / "headless", ScriptedClient([]), answer=None)
    assert await run_headless(harness, "/greet Ada", out=out) == 0
    assert out.getvalue() == "Hello, Ada.\n"
    assert await run_headless(harness, "/greet nobody", err=err) == 1
    assert err.getvalue() == "There is nobody to greet.\n"


async def look_at_an_entry(place: Path) -> None:
    """It is stored, and the conversation, the tree and the exports show it; an export comes back as it was."""
    from tui_agent.session.entries import BookmarkEntry  # type: ignore[attr-defined]  # the example has it

    stage = make_stage(place)
    async with stage.run() as pilot:
        stage.agent.append(
            UserEntry(parts=(TextPart(text="begin"),)), BookmarkEntry(note="worth keeping")
        )
        await until(lambda: "Bookmark: worth keeping" in screen_text(stage), pilot)
        await pilot.press("ctrl+t")
        await until(lambda: isinstance(stage.app.screen, TreeScreen), pilot)
        await until(lambda: "worth keeping" in screen_text(stage), pilot)
    store, session = stage.store, stage.agent.session.id
    for form in (ExportFormat.MARKDOWN, ExportFormat.HTML, ExportFormat.JSON):
        assert "worth keeping" in export_text(store, ExportOrder(session, form), {}), form
    text = export_text(store, ExportOrder(session, ExportFormat.JSON), {})
    path = place / "copy.jsonl"
    path.write_text(text.replace(session, "019b0000-0000-7000-8000-000000000000"), encoding="utf-8")
    _told, imported, failed = import_all(store, path)
    assert (len(imported), failed) == (1, 0)


CHECKS = {"tool": look_at_a_tool, "command": look_at_a_command, "entry": look_at_an_entry}


def main() -> None:
    """Do the checks, and print what each found: "ok", or why not."""
    found = {}
    for check, look in CHECKS.items():
        with tempfile.TemporaryDirectory() as directory:
            for name in ("screen", "editor", "headless"):
                (Path(directory) / name).mkdir()
            try:
                asyncio.run(look(Path(directory)))
            except Exception:  # noqa: BLE001 - it is told
                found[check] = traceback.format_exc()[-4_000:]
            else:
                found[check] = "ok"
    print(json.dumps(found))


if __name__ == "__main__":
    main()
