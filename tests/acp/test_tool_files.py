"""Functions of tool files in an editor: the same agent, the editor asks its person."""

from pathlib import Path
from typing import Any

from acp.schema import AllowedOutcome, RequestPermissionResponse

from tests.support.agents import make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.acp.session import EditorSession
from tui_agent.acp.updates import Prompt
from tui_agent.agent.permissions import Action, Rule
from tui_agent.app.services import OpenRequest
from tui_agent.session.entries import ToolResultEntry
from tui_agent.tools.functions.tool_files import FoundFile, ToolFiles


class Editor:
    """Says yes once, and keeps what it was asked and told."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.updates: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_more: Any
    ) -> RequestPermissionResponse:
        self.asked.append(tool_call)
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id="once"))


async def test_an_editors_person_is_asked_and_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def shout(text: str) -> str:\n    'Shout.'\n    print('warming up')\n    return text.upper()\n")
    client = ScriptedClient([Reply(calls=(Call("shout", '{"text": "hey"}'),)), Reply("Done.")])
    rules = (Rule("tool", "shout", Action.ASK, "user"),)
    files = ToolFiles(lambda: ([FoundFile(file, "mine.py")], []))
    harness = make_agent(tmp_path, client, answer=None, tool_files=files, rules=rules)
    editor: Any = Editor()
    session = EditorSession(editor, harness.services())
    await session.open(OpenRequest())

    assert await session.prompt(Prompt("shout", ())) == "end_turn"

    (result,) = [entry for entry in harness.path() if isinstance(entry, ToolResultEntry)]
    assert result.output == "HEY"
    assert len(editor.asked) == 1
    assert any("HEY" in str(update) for update in editor.updates)
    await session.aclose()
