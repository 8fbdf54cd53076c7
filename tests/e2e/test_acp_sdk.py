"""Every stable method of the protocol, asked by the official TypeScript SDK and by the Python one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from acp import PROTOCOL_VERSION, RequestError
from acp.schema import (
    AcceptElicitationResponse,
    ClientCapabilities,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    FileSystemCapabilities,
    ReadTextFileResponse,
    WriteTextFileResponse,
)

from tests.e2e.test_acp import Editor, connected, requests, say
from tests.support import neighbours
from tests.support.model_script import Call, Turn
from tests.support.model_server import ModelServer
from tests.support.place import Place

EDITOR = Path(__file__).parents[1] / "support/editor.mjs"


@pytest.mark.neighbours
def test_the_typescript_sdk_goes_through_every_method(
    place: Place, warm_server: ModelServer
) -> None:
    node, sdk = neighbours.program("node"), neighbours.package("@agentclientprotocol/sdk")
    (place.project / "a.txt").write_text("one\ntwo\n")
    warm_server.play(
        Turn(tool_calls=(Call("read", {"path": "a.txt"}),)),
        Turn(tool_calls=(Call("edit", {"path": "a.txt", "old": "not saved", "new": "changed"}),)),
        Turn(text="Done."),
        *[Turn(text="A title")] * 3,
    )
    command = (sys.executable, "-m", "tui_agent", "acp")
    ran = subprocess.run(
        [node, EDITOR, place.project, sdk, *command],
        cwd=place.project, env=place.env, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert [method["id"] for method in told["hello"]["authMethods"]] == ["keys", "terminal"]
    assert set(told["hello"]["agentCapabilities"]["sessionCapabilities"]) >= {
        "list",
        "delete",
        "resume",
        "close",
    }
    assert told["modes"] == ["build", "auto-edit", "plan", "yolo"]
    assert told["stops"] == ["end_turn"] * 3, told
    assert (place.project / "a.txt").read_text() == "one\nchanged\n"
    assert told["writes"] == ["one\nnot saved\n"]
    assert "not saved" in requests(warm_server)
    assert told["chosen"] == {"model": "openai/gpt-5-mini", "effort": "high"}
    assert told["forked"]
    assert "not open here" in told["closed"]["message"]
    assert "user_message_chunk" not in told["resumed"]
    assert told["loaded"] >= 1
    assert told["listed"] == [True]
    assert told["authenticated"] is None
    assert told["unknown"]["code"] == -32602
    kinds = {update["sessionUpdate"] for update in told["updates"]}
    assert kinds >= {
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
        "config_option_update",
        "usage_update",
    }
    compactions = [
        update for update in told["updates"] if update["sessionUpdate"] == "compaction_update"
    ]
    assert [update["status"] for update in compactions][:1] == ["in_progress"]
    assert {update["compactionId"] for update in compactions[:2]} == {
        compactions[0]["compactionId"]
    }


class Zed(Editor):
    """An editor with a file open that is not saved, and with forms."""

    text_of: str = "one\nnot saved\n"

    async def read_text_file(self, session_id: str, path: str, **_more) -> ReadTextFileResponse:
        return ReadTextFileResponse(content=self.text_of)

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_more
    ) -> WriteTextFileResponse:
        Path(path).write_text(content)
        return WriteTextFileResponse()

    async def create_elicitation(self, message: str, mode, **_more) -> AcceptElicitationResponse:
        self.questions.append((message, [mode]))
        return AcceptElicitationResponse(action="accept", content={"answer": "Our shop"})


ABLE = ClientCapabilities(
    fs=FileSystemCapabilities(read_text_file=True, write_text_file=True),
    elicitation=ElicitationCapabilities(form=ElicitationFormCapabilities()),
)


async def test_the_python_sdk_reads_unsaved_text_and_resumes(
    place: Place, warm_server: ModelServer
) -> None:
    (place.project / "a.txt").write_text("one\ntwo\n")
    warm_server.play(Turn(tool_calls=(Call("read", {"path": "a.txt"}),)), *[Turn(text="Read.")] * 4)
    editor = Zed()
    async with connected(place, editor, unstable=True) as agent:
        await agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=ABLE)
        session = await agent.new_session(cwd=str(place.project), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=say("read it"))
        assert "not saved" in requests(warm_server)
        assert (place.project / "a.txt").read_text() == "one\ntwo\n"
        await agent.close_session(session_id=session.session_id)
        with pytest.raises(RequestError, match="not open here"):
            await agent.close_session(session_id=session.session_id)
        before = len(editor.updates)
        resumed = await agent.resume_session(
            cwd=str(place.project), session_id=session.session_id, mcp_servers=[]
        )
        assert resumed.modes.current_mode_id == "build"
        assert not [
            one for one in editor.updates[before:] if one.session_update == "user_message_chunk"
        ]
        forked = await agent.fork_session(
            cwd=str(place.project), session_id=session.session_id, mcp_servers=[]
        )
        assert forked.session_id != session.session_id
        done = await agent.prompt(session_id=forked.session_id, prompt=say("/compact"))
        assert done.stop_reason == "end_turn"
        await agent.prompt(session_id=forked.session_id, prompt=say("/rename"))
        titles = {row.session_id: row.title for row in (await agent.list_sessions()).sessions}
        assert titles[forked.session_id] == "Our shop"


async def test_without_a_key_the_editor_is_told_to_log_in(own_place: Place) -> None:
    (own_place.root / "config" / "config.toml").write_text("")
    async with connected(own_place, Editor()) as agent:
        hello = await agent.initialize(protocol_version=PROTOCOL_VERSION)
        assert [method.id for method in hello.auth_methods] == ["keys"]
        for request in (
            lambda: agent.new_session(cwd=str(own_place.project), mcp_servers=[]),
            lambda: agent.authenticate(method_id="keys"),
        ):
            with pytest.raises(RequestError, match="No provider's API key was found") as caught:
                await request()
            assert caught.value.code == -32000
        assert own_place.run("config", "set", "providers.openai.api_key", "sk-x").returncode == 0
        await agent.authenticate(method_id="keys")
        assert (await agent.new_session(cwd=str(own_place.project), mcp_servers=[])).session_id
