"""The agent for editors: a client of the protocol on the other side of real pipes, the real agent, a scripted model."""

import asyncio
import base64
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from acp import PROTOCOL_VERSION, RequestError, helpers, spawn_agent_process
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    EnvVariable,
    HttpMcpServer,
    McpServerStdio,
    RequestPermissionResponse,
    TextResourceContents,
)

from tests.support.drawn import drawn
from tests.support.model_script import Call, Turn, status
from tests.support.model_server import ModelServer
from tests.support.place import MODEL, Place

PNG = base64.b64encode(drawn(size=(2, 3))).decode()
PATIENCE = 100


@dataclass
class Editor:
    """What an editor would show, and how it answers questions."""

    answer: str | None = "once"
    updates: list[Any] = field(default_factory=list)
    questions: list[tuple[Any, list[Any]]] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_more: Any
    ) -> RequestPermissionResponse:
        self.questions.append((tool_call, options))
        self.asked.set()
        if self.answer is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=self.answer)
        )

    def of(self, kind: str) -> list[Any]:
        return [update for update in self.updates if update.session_update == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update.content.text for update in self.of(kind))

    def on_connect(self, conn: Any) -> None:
        pass


@contextlib.asynccontextmanager
async def connected(
    place: Place, editor: Editor, *arguments: str, unstable: bool = False
) -> AsyncIterator[Any]:
    command = (sys.executable, "-m", "tui_agent", "acp", *arguments)
    spawned = spawn_agent_process(
        editor, *command, env=place.env, cwd=place.project, use_unstable_protocol=unstable
    )
    async with asyncio.timeout(PATIENCE), spawned as (agent, process):
        yield agent
        process.stdin.close()
        assert await process.wait() == 0


Running = tuple[Editor, Any]
"""An editor and the agent it talks to."""
shared_loop = pytest.mark.asyncio(loop_scope="module")
"""For what asks the one agent that runs as long as the tests of this file."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(_warm_place: Place) -> AsyncIterator[Running]:
    """An editor and the agent of the shared user, which is as warm as its model host."""
    editor = Editor()
    command = (sys.executable, "-m", "tui_agent", "acp")
    async with spawn_agent_process(editor, *command, env=_warm_place.env, cwd=_warm_place.root) as (
        agent,
        process,
    ):
        await agent.initialize(protocol_version=PROTOCOL_VERSION)
        yield editor, agent
        process.stdin.close()
        assert await process.wait() == 0


@contextlib.asynccontextmanager
async def session_of(
    running: Running, place: Place, *, answer: str | None = "once", servers: Sequence[Any] = ()
) -> AsyncIterator[tuple[Editor, Any, str]]:
    """A new session of the agent that runs, whose editor has seen nothing yet."""
    editor, agent = running
    editor.__dict__.update(Editor(answer).__dict__)
    async with asyncio.timeout(PATIENCE):
        session = await agent.new_session(cwd=str(place.project), mcp_servers=list(servers))
        yield editor, agent, session.session_id
        await agent.close_session(session_id=session.session_id)


@contextlib.asynccontextmanager
async def loaded_of(
    running: Running, place: Place, session: str
) -> AsyncIterator[tuple[Editor, Any, Any]]:
    """A session of another program, loaded by the agent that runs."""
    editor, agent = running
    editor.__dict__.update(Editor().__dict__)
    async with asyncio.timeout(PATIENCE):
        loaded = await agent.load_session(
            cwd=str(place.project), session_id=session, mcp_servers=[]
        )
        yield editor, agent, loaded
        await agent.close_session(session_id=session)


async def begin(agent: Any, place: Place) -> Any:
    await agent.initialize(protocol_version=PROTOCOL_VERSION)
    return await agent.new_session(cwd=str(place.project), mcp_servers=[])


def say(text: str) -> list[Any]:
    return [helpers.text_block(text)]


def requests(server: ModelServer) -> str:
    """Return every request that was sent, the one for a title among them."""
    return json.dumps([call.json for call in server.calls])


@shared_loop
async def test_a_turn_streams_and_the_session_can_be_loaded_again(
    running: Running, place: Place, warm_server: ModelServer
) -> None:
    editor = Editor()
    async with connected(place, editor) as agent:
        hello = await agent.initialize(protocol_version=PROTOCOL_VERSION)
        assert hello.agent_capabilities.load_session
        assert hello.agent_capabilities.prompt_capabilities.image
        session = await agent.new_session(cwd=str(place.project), mcp_servers=[])
        assert session.modes.current_mode_id == "build"
        assert session.config_options[0].current_value == MODEL
        done = await agent.prompt(session_id=session.session_id, prompt=say("hello there"))
        assert done.stop_reason == "end_turn"
        assert editor.text() == "You said: hello there"
        assert editor.of("usage_update")[-1].size == 100_000
        assert "compact" in [
            row.name for row in editor.of("available_commands_update")[0].available_commands
        ]
        assert session.session_id in [
            row.session_id for row in (await agent.list_sessions()).sessions
        ]
    async with loaded_of(running, place, session.session_id) as (again, agent, _loaded):
        assert again.text("user_message_chunk") == "hello there"
        assert again.text() == "You said: hello there"
        await agent.prompt(session_id=session.session_id, prompt=say("and more"))
        assert "You said: hello there" in requests(warm_server)


@shared_loop
async def test_calls_are_shown_asked_about_and_come_with_their_diff(
    running: Running, place: Place, warm_server: ModelServer
) -> None:
    (place.project / "a.txt").write_text("one\ntwo\n")
    edit = {"path": "a.txt", "old": "two", "new": "three"}
    calls = (Call("read", {"path": "a.txt"}), Call("edit", edit))
    warm_server.play(*(Turn(tool_calls=(call,)) for call in calls), Turn(text="Done."))
    async with session_of(running, place) as (editor, agent, session):
        await agent.prompt(session_id=session, prompt=say("change it"))
    assert (place.project / "a.txt").read_text() == "one\nthree\n"
    [(asked, options)] = editor.questions
    assert [option.kind for option in options] == [
        "allow_once",
        "allow_always",
        "allow_always",
        "reject_once",
    ]
    assert asked.kind == "edit"
    assert asked.content[0].type == "diff"
    starts = editor.of("tool_call")
    assert [(start.kind, start.status) for start in starts] == [
        ("read", "pending"),
        ("edit", "pending"),
    ]
    ends = [update for update in editor.of("tool_call_update") if update.status == "completed"]
    assert [end.tool_call_id for end in ends] == [start.tool_call_id for start in starts]
    assert asked.tool_call_id == starts[1].tool_call_id
    assert ends[1].locations[0].path == str(place.project / "a.txt")
    assert (ends[1].content[0].old_text, ends[1].content[0].new_text) == (
        "one\ntwo\n",
        "one\nthree\n",
    )
    assert editor.text() == "Done."


@shared_loop
@pytest.mark.parametrize("answer", ["deny", None])
async def test_a_refused_call_is_not_run(
    running: Running, place: Place, warm_server: ModelServer, answer: str | None
) -> None:
    warm_server.play(
        Turn(tool_calls=(Call("bash", {"command": "touch made; rm x"}),)), Turn(text="I could not.")
    )
    async with session_of(running, place, answer=answer) as (editor, agent, session):
        await agent.prompt(session_id=session, prompt=say("make it"))
    assert editor.questions
    assert not (place.project / "made").exists()
    assert [update.status for update in editor.of("tool_call_update")][-1] == "failed"


@shared_loop
async def test_cancel_stops_and_the_prompt_is_answered(
    running: Running, place: Place, warm_server: ModelServer
) -> None:
    warm_server.play(
        Turn(tool_calls=(Call("bash", {"command": "echo go; sleep 300"}),)), Turn(text="again")
    )
    async with session_of(running, place) as (editor, agent, session):
        running = asyncio.ensure_future(agent.prompt(session_id=session, prompt=say("wait")))
        async with asyncio.timeout(60):
            while not [
                update for update in editor.of("tool_call_update") if update.status == "in_progress"
            ]:
                await asyncio.sleep(0.01)
        await agent.cancel(session_id=session)
        assert (await running).stop_reason == "cancelled"
        assert (
            await agent.prompt(session_id=session, prompt=say("go on"))
        ).stop_reason == "end_turn"


@shared_loop
async def test_images_and_resources_travel_with_a_prompt(
    running: Running, place: Place, warm_server: ModelServer
) -> None:
    resource = TextResourceContents(
        uri=(place.project / "b.py").as_uri(), text="def unsaved(): ..."
    )
    blocks = [
        helpers.text_block("look at "),
        helpers.resource_block(resource),
        helpers.image_block(PNG, "image/png"),
        helpers.resource_link_block("c.py", (place.project / "c.py").as_uri()),
    ]
    async with session_of(running, place) as (_editor, agent, session):
        await agent.prompt(session_id=session, prompt=blocks)
        with pytest.raises(RequestError, match="not valid base64"):
            await agent.prompt(session_id=session, prompt=[helpers.image_block("%%", "image/png")])
    sent = requests(warm_server)
    assert "look at b.py c.py" in sent
    assert "def unsaved()" in sent


@shared_loop
async def test_modes_and_models_are_chosen(running: Running, place: Place) -> None:
    async with session_of(running, place) as (editor, agent, session):
        await agent.set_session_mode(session_id=session, mode_id="plan")
        answer = await agent.set_config_option(config_id="model", session_id=session, value="demo")
        assert answer.config_options[0].current_value == "demo"
        answer = await agent.set_config_option(config_id="effort", session_id=session, value="high")
        assert [option.current_value for option in answer.config_options] == ["demo", "high"]
        for option, value, why in (
            ("model", "nosuch", "no model “nosuch”"),
            ("effort", "much", "an effort that the model supports"),
        ):
            with pytest.raises(RequestError, match=why):
                await agent.set_config_option(config_id=option, session_id=session, value=value)
        with pytest.raises(RequestError, match="no mode"):
            await agent.set_session_mode(session_id=session, mode_id="magic")
    assert editor.of("current_mode_update")[-1].current_mode_id == "plan"


@shared_loop
async def test_a_session_begun_in_plan_mode_is_loaded_in_it_without_the_flag(
    running: Running, place: Place, warm_server: ModelServer
) -> None:
    warm_server.play(
        Turn(tool_calls=(Call("write", {"path": "made", "content": "x"}),)), Turn(text="a plan")
    )
    editor = Editor()
    async with connected(place, editor, "--mode", "plan") as agent:
        session = await begin(agent, place)
        assert session.modes.current_mode_id == "plan"
        await agent.prompt(session_id=session.session_id, prompt=say("make it"))
    assert not editor.questions
    assert not (place.project / "made").exists()
    async with loaded_of(running, place, session.session_id) as (_editor, agent, loaded):
        assert loaded.modes.current_mode_id == "plan"
        fresh = await agent.new_session(cwd=str(place.project), mcp_servers=[])
        assert fresh.modes.current_mode_id == "build"
        await agent.close_session(session_id=fresh.session_id)


@shared_loop
async def test_servers_of_the_editor_are_used(
    running: Running, place: Place, warm_server: ModelServer
) -> None:
    server = McpServerStdio(
        name="notes", command=sys.executable, args=["-m", "tests.support.mcp_server", str(place.root)],
        env=[EnvVariable(name="PYTHONPATH", value=str(Path(__file__).resolve().parents[2]))],
    )  # fmt: skip
    async with session_of(running, place, servers=[server]) as (_editor, agent, session):
        # A server that takes longer to start than a request waits for is there when another mode asks what there is.
        for mode in ("plan", "build") * 5:
            await agent.prompt(session_id=session, prompt=say("hello"))
            if "notes_" in requests(warm_server):
                break
            await agent.set_session_mode(session_id=session, mode_id=mode)
    assert "notes_" in requests(warm_server)


@shared_loop
async def test_commands_of_the_desk_work_in_an_editor(
    running: Running, place: Place, warm_server: ModelServer
) -> None:
    async with session_of(running, place) as (editor, agent, session):

        async def typed(text: str) -> str:
            before = len(editor.text())
            done = await agent.prompt(session_id=session, prompt=say(text))
            assert done.stop_reason == "end_turn"
            return editor.text()[before:]

        await typed("hello there")
        offered = {row.name for row in editor.of("available_commands_update")[0].available_commands}
        assert {"undo", "redo", "mode", "fork", "prune", "cost", "rename", "compact"} <= offered
        assert not {"quit", "theme", "settings"} & offered
        assert "turn “hello there”" in await typed("/undo")
        assert "Redone" in await typed("/redo")
        assert "plan: changes nothing" in await typed("/mode plan")
        assert editor.of("current_mode_update")[-1].current_mode_id == "plan"
        assert "1 request" in await typed("/cost")
        assert "No old tool output" in await typed("/prune")
        assert "◀ here" in await typed("/tree")
        assert "as “ports”" in await typed("/remember ports: The server listens on 8081.")
        assert "ports: The server listens on 8081." in await typed("/memory")
        assert "Undone" in await typed("/memory undo")
        assert "full-screen program" in await typed("/permissions")
        assert "There is no mode" in await typed("/mode nonsense")


@shared_loop
async def test_what_goes_wrong_is_an_error_of_the_protocol(
    running: Running, place: Place, warm_server: ModelServer
) -> None:
    async with session_of(running, place) as (editor, agent, session):
        with pytest.raises(RequestError, match="not the absolute path of a directory"):
            await agent.new_session(cwd="/nowhere/at/all", mcp_servers=[])
        with pytest.raises(RequestError, match="not open here"):
            await agent.prompt(session_id="nobody", prompt=say("hello"))
        with pytest.raises(RequestError, match="no session") as caught:
            await agent.load_session(cwd=str(place.project), session_id="nobody", mcp_servers=[])
        assert caught.value.code == -32002
        with pytest.raises(RequestError, match="empty"):
            await agent.prompt(session_id=session, prompt=say(" "))
        warm_server.play(status(401, "Incorrect API key provided"))
        with pytest.raises(RequestError, match="key"):
            await agent.prompt(session_id=session, prompt=say("hello"))
        warm_server.play(Turn(text="said once more"))
        await agent.prompt(session_id=session, prompt=say("/retry"))
        assert editor.text().endswith("said once more")  # the turn ends when the run does


@shared_loop
async def test_every_server_that_can_not_be_used_is_an_error(
    running: Running, place: Place
) -> None:
    _editor, agent = running
    for server, why in (
        (McpServerStdio(name="x", command="", args=[], env=[]), "either a command or a url"),
        (HttpMcpServer(type="http", name="x", url="ftp://x", headers=[]), "must begin with http"),
    ):
        with pytest.raises(RequestError, match=why):
            async with asyncio.timeout(PATIENCE):
                await agent.new_session(cwd=str(place.project), mcp_servers=[server])


@shared_loop
@pytest.mark.parametrize("method", ["load_session", "resume_session"])
async def test_a_session_without_a_prompt_can_be_opened_again_and_deleted(
    running: Running, place: Place, method: str
) -> None:
    _editor, agent = running
    async with asyncio.timeout(PATIENCE):
        session = await agent.new_session(cwd=str(place.project), mcp_servers=[])
        again = getattr(agent, method)
        opened = await again(cwd=str(place.project), session_id=session.session_id, mcp_servers=[])
        assert opened.modes.current_mode_id == "build"
        request = {"sessionId": session.session_id}
        await agent._conn.send_request("session/delete", request)
        with pytest.raises(RequestError, match="no session"):
            await agent._conn.send_request("session/delete", request)


@shared_loop
async def test_a_directory_is_known_by_its_real_path(running: Running, place: Place) -> None:
    link = place.root / "linked"
    link.symlink_to(place.project)
    _editor, agent = running
    async with asyncio.timeout(PATIENCE):
        session = await agent.new_session(cwd=str(link), mcp_servers=[])
        for path in (link, place.project):
            found = await agent.list_sessions(cwd=str(path))
            assert session.session_id in [info.session_id for info in found.sessions]
        with pytest.raises(RequestError, match="not a cursor"):
            await agent.list_sessions(cursor="nonsense")
        await agent.close_session(session_id=session.session_id)


async def test_agents_of_the_user_are_modes(own_place: Place) -> None:
    agents = own_place.root / "config" / "agents"
    agents.mkdir()
    (agents / "rev.md").write_text("---\ndescription: reviews\nmode: primary\n---\nReview.\n")
    async with connected(own_place, Editor(), "--demo") as agent:
        session = await begin(agent, own_place)
        modes = {mode.id: mode.description for mode in session.modes.available_modes}
        assert modes["rev"] == "reviews"
        for mode in ("rev", "plan", "rev", "build"):
            await agent.set_session_mode(session_id=session.session_id, mode_id=mode)


async def test_invalid_settings_are_named_when_a_key_is_looked_for(own_place: Place) -> None:
    config = own_place.root / "config" / "config.toml"
    config.write_text("")
    async with connected(own_place, Editor()) as agent:
        await agent.initialize(protocol_version=0)
        config.write_text("model = 5\n")
        with pytest.raises(RequestError, match="it takes text in quotes"):
            await agent.authenticate(method_id="keys")


async def test_the_demo_needs_no_key(own_place: Place) -> None:
    editor = Editor()
    async with connected(own_place, editor, "--demo") as agent:
        session = await begin(agent, own_place)
        done = await agent.prompt(session_id=session.session_id, prompt=say("hello"))
        assert done.stop_reason == "end_turn"
        assert editor.text()


def test_standard_output_is_the_protocol_s_alone(own_place: Place) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    done = own_place.run("acp", "--debug", stdin=json.dumps(request) + "\n")
    assert done.returncode == 0
    [line] = done.stdout.splitlines()
    assert json.loads(line)["result"]["agentInfo"]["name"] == "tui-agent"


async def test_an_open_session_follows_changed_settings_with_the_next_prompt(
    place: Place, warm_server: ModelServer
) -> None:
    editor = Editor()
    async with connected(place, editor) as agent:
        session = await begin(agent, place)
        await agent.prompt(session_id=session.session_id, prompt=say("one"))
        assert editor.of("usage_update")[-1].size == 100_000
        assert (
            place.run("config", "set", f'models."{MODEL}".context_window', "20000").returncode == 0
        )
        await agent.prompt(session_id=session.session_id, prompt=say("two"))
        assert editor.of("usage_update")[-1].size == 20_000
        broken = place.root / "config" / "config.toml"
        kept = broken.read_text()
        broken.write_text(f"{kept}\n[oops")
        for text in ("three", "four"):
            await agent.prompt(session_id=session.session_id, prompt=say(text))
        assert editor.of("usage_update")[-1].size == 20_000
        told = editor.text("agent_thought_chunk")
        assert told.count("is not valid TOML") == 1
        assert "The settings were not changed." in told
    assert editor.text().endswith("You said: four")
