"""Servers over standard input and output and over HTTP: what they offer, do, and die of."""

import asyncio
import contextlib
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.auth import OAuthToken

from tests.agent.mcp.mcp_login import OpenDoor, make_closed_server
from tests.support.mcp_place import QUICK, Place, served, until
from tests.support.mcp_server import PIXEL, make_server
from tui_agent.agent.mcp.hub import McpHub
from tui_agent.agent.mcp.oauth import TokenFile
from tui_agent.agent.mcp.records import (
    MAX_LENGTH,
    McpError,
    ServerState,
    portable_name,
    tidy_schema,
)
from tui_agent.agent.mcp.server import Circumstances, trouble_of
from tui_agent.agent.mcp.settings import (
    FoundServers,
    McpConfigError,
    McpServerSettings,
    ServerSpec,
    Timeouts,
    expanded,
    find_servers,
)
from tui_agent.errors import ToolError
from tui_agent.foreign_servers import servers_of_project
from tui_agent.session.entries import FilePart, TextPart
from tui_agent.tools.arguments import parse_arguments
from tui_agent.web.callback import free_port

by_either_way = pytest.mark.asyncio(loop_scope="module")
"""A test of the server of ``place``, which serves all of them."""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["stdio", "http"])
async def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Place]:
    """The same server, by either way. It takes a second of processor time to start."""
    tmp_path = tmp_path_factory.mktemp(request.param)
    found = Place(tmp_path)
    async with contextlib.AsyncExitStack() as stack:
        if request.param == "stdio":
            found.add_sdk_stdio()
        else:
            port = free_port()
            await stack.enter_async_context(served(make_server(tmp_path), port))
            found.add("tracker", url=f"http://127.0.0.1:{port}/mcp")
        stack.push_async_callback(found.hub.aclose)
        await found.hub.settle()
        yield found


@by_either_way
async def test_tools_are_listed_and_called(shared: Place) -> None:
    tools = shared.hub.offered(100_000, lambda _schema: 50)
    by_name = {tool.name: tool for tool in tools}
    assert list(by_name)[:2] == ["tracker_add", "tracker_crash"]
    schema = by_name["tracker_add"].schema()
    assert schema.description == "Add two numbers."
    assert schema.parameters["properties"] == {"a": {"type": "integer"}, "b": {"type": "integer"}}
    assert schema.parameters["required"] == ["a", "b"]
    result = await shared.call("tracker_add", a=2, b=40)
    assert result.output == "42"
    assert not result.is_error
    assert (await shared.call("tracker_odd_name_with_signs")).output == "odd"


@by_either_way
async def test_what_the_server_says_went_wrong_is_told_to_the_model(shared: Place) -> None:
    failed = await shared.call("tracker_fail", message="the disk is on fire")
    assert failed.is_error
    assert "the disk is on fire" in failed.output
    wrong = await shared.call("tracker_add", a="x")
    assert wrong.is_error
    assert "b" in wrong.output


@by_either_way
async def test_pictures_and_documents_come_along(shared: Place) -> None:
    result = await shared.call("tracker_picture")
    (image,) = result.attachments
    assert (image.mime, image.width, image.height) == ("image/png", 1, 1)
    assert shared.blobs[image.blob] == PIXEL
    assert "The plan is to rest." in (await shared.call("tracker_document")).output


@by_either_way
async def test_a_cancelled_call_ends_on_the_server_too(shared: Place) -> None:
    said: list[str] = []
    task = asyncio.create_task(shared.call("tracker_wait", said.append))
    await until((shared.directory / "waiting").exists)
    await until(lambda: said == ["working\n"])
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    await until((shared.directory / "cancelled").exists)
    assert (await shared.call("tracker_add", a=1, b=1)).output == "2"


@by_either_way
async def test_prompts_and_resources(shared: Place) -> None:
    [offer] = shared.hub.offers()
    (prompt,) = offer.prompts
    assert (prompt.command, prompt.description, prompt.arguments[0].name) == (
        "tracker:review",
        "Review something.",
        "subject",
    )
    assert prompt.arguments[0].required
    parts = await shared.hub.prompt("tracker", "review", {"subject": "the loop"}, shared.put_blob)
    assert parts == (TextPart(text="Please review the loop."),)
    (resource,) = offer.resources
    assert (resource.mention, resource.mime) == ("tracker:memo://today", "text/plain")
    assert await shared.hub.resource(resource.mention, shared.put_blob) == (
        FilePart(path=resource.mention, text="Tests."),
    )
    with pytest.raises(McpError):
        await shared.hub.resource("tracker:memo://never", shared.put_blob)
    with pytest.raises(McpError, match="There is no MCP server “other”"):
        await shared.hub.resource("other:x", shared.put_blob)


async def test_servers_whose_names_differ_only_in_signs_are_kept_apart(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for name in ("it", "it:too", "it too", "it:memo"):
        place.add_stdio(name)
    place.add("it:off", command=sys.executable, args=("-c", ""))
    try:
        await place.hub.settle()
        for offer in place.hub.offers():
            (resource,) = offer.resources
            (part,) = await place.hub.resource(resource.mention, place.put_blob)
            assert isinstance(part, FilePart)
            assert part.path == resource.mention
        with pytest.raises(McpError, match="it:off"):
            await place.hub.resource("it:off:memo://today", place.put_blob)
    finally:
        await place.hub.aclose()
    assert len(list((tmp_path / "log").glob("mcp-*.log"))) == 5
    assert (tmp_path / "log" / "mcp-it.log").exists()


@by_either_way
async def test_a_tool_that_comes_later_is_known(shared: Place) -> None:
    await shared.call("tracker_grow")
    await until(lambda: "tracker_grown" in {tool.name for tool in shared.hub.known()})
    assert (await shared.call("tracker_grown")).output == "new"


async def test_a_server_that_dies_is_started_again(place: Place) -> None:
    place.add_stdio()
    await place.hub.settle()
    with pytest.raises(ToolError, match="lost"):
        await place.call("tracker_crash")
    await until(lambda: len(place.pids()) == 2 and place.state() is ServerState.READY)
    assert (await place.call("tracker_add", a=1, b=2)).output == "3"
    (row,) = place.hub.status()
    assert row.restarts == 1
    pid = place.pids()[-1]
    await place.hub.aclose()
    await until(lambda: not Path(f"/proc/{pid}").exists())
    assert place.state() is ServerState.STOPPED


async def test_a_server_that_keeps_dying_is_given_up_and_can_be_restarted_by_hand(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path, Timeouts(settle=20, pauses=()))
    place.add_stdio()
    await place.hub.settle()
    with pytest.raises(ToolError):
        await place.call("tracker_crash")
    await until(lambda: place.state() is ServerState.FAILED)
    assert [notice.severity for notice in place.notices] == ["warning"]
    with pytest.raises(ToolError, match="not available"):
        await place.call("tracker_add", a=1, b=2)
    await place.hub.restart("tracker")
    await place.hub.settle()
    assert (await place.call("tracker_add", a=1, b=2)).output == "3"
    await place.hub.aclose()


MUTE = ("-c", "echo $$ > pid; while read line; do :; done")


async def test_without_a_screen_a_server_has_its_time_to_start_and_is_missed_aloud(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path, Timeouts(settle=None, starts=1_000))
    place.add("mute", command="/bin/sh", args=MUTE, start=0.2)
    place.add_stdio()
    await place.hub.settle()
    assert (place.state("mute"), place.state("tracker")) == (
        ServerState.STARTING,
        ServerState.READY,
    )
    (said,) = place.notices
    assert said.severity == "warning"
    assert said.message.startswith(
        "The MCP server mute: no answer for 0.2 s. Work continues without its tools"
    )
    place.hub.check_required()
    await place.hub.aclose()


GREETING = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked or asked["method"] == "tools/list":
        continue
    answer = {"error": {"code": -32601, "message": "no such method"}}
    if asked["method"] == "initialize":
        info = {"name": "shy", "version": "1"}
        version = asked["params"]["protocolVersion"]
        answer = {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""
"""A server that greets and then says nothing of its tools."""


async def test_the_end_does_not_wait_for_a_server_that_lists_no_tools(tmp_path: Path) -> None:
    place = Place(tmp_path, Timeouts(settle=None, starts=1_000))
    place.add("shy", command=sys.executable, args=("-c", GREETING), start=3)
    await place.hub.settle()
    assert place.state("shy") is ServerState.STARTING
    async with asyncio.timeout(20):
        await place.hub.aclose()
    assert place.state("shy") is ServerState.STOPPED


FORGETFUL = """
import json, sys
lists = 0
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"error": {"code": -32601, "message": "no such method"}}
    if asked["method"] == "initialize":
        info = {"name": "shy", "version": "1"}
        version = asked["params"]["protocolVersion"]
        capabilities = {"tools": {"listChanged": True}}
        answer = {"result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}}
    if asked["method"] == "tools/list":
        lists += 1
        if lists == 2:
            open("asked", "w").close()
            continue
        answer = {"result": {"tools": []}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
    if asked["method"] == "tools/list":
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)
"""
"""A server that says that its tools have changed, and then doesn't list them."""


async def test_the_end_does_not_wait_for_a_server_that_does_not_list_its_tools_again(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path, Timeouts(settle=20, starts=1_000))
    place.add("shy", command=sys.executable, args=("-c", FORGETFUL), start=3)
    await place.hub.settle()
    await until((tmp_path / "asked").exists)
    assert place.state("shy") is ServerState.READY
    async with asyncio.timeout(20):
        await place.hub.aclose()
    assert place.state("shy") is ServerState.STOPPED


async def test_a_restart_ends_even_if_the_page_that_began_it_is_closed(place: Place) -> None:
    place.add_stdio()
    await place.hub.settle()
    restarting = asyncio.create_task(place.hub.restart("tracker"))
    await asyncio.sleep(0)
    restarting.cancel()
    await until(lambda: len(place.pids()) == 2 and place.state() is ServerState.READY)
    assert (await place.call("tracker_add", a=1, b=2)).output == "3"


async def test_changes_of_the_servers_come_one_after_the_other(place: Place) -> None:
    place.add_stdio()
    await place.hub.settle()
    await asyncio.gather(place.hub.restart("tracker"), place.hub.restart("tracker"))
    assert place.state() is ServerState.STARTING
    place.specs.clear()
    await asyncio.gather(place.hub.reload(), place.hub.restart("tracker"))
    assert place.hub.status() == ()
    assert not any(_alive(pid) for pid in place.pids() if Path(f"/proc/{pid}").exists())


async def test_a_directory_that_is_not_there_is_named(place: Place) -> None:
    place.add_stdio(cwd="gone")
    await place.hub.settle()
    (row,) = place.hub.status()
    assert row.detail == f"there is no directory “{place.directory / 'gone'}”"
    assert "correct the server's cwd" in row.advice


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("/usr/bin/shop", "“shop” can't be executed"),
        ("/log/mcp-shop.log", "[Errno 13] Permission denied: '/log/mcp-shop.log'"),
    ],
)
def test_what_can_not_be_opened_is_named(tmp_path: Path, file: str, reason: str) -> None:
    spec = ServerSpec("shop", McpServerSettings(command="shop"), "user", tmp_path)
    error = PermissionError(13, "Permission denied", file)
    assert trouble_of(error, spec, Circumstances()).reason == reason


async def test_a_required_server_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    place = Place(tmp_path, Timeouts(settle=0, pauses=()))
    place.add("gone", command="/nowhere/at-all", required=True)
    place.add("off", command="/nowhere/at-all", required=True, enabled=False)
    await place.hub.settle()
    with pytest.raises(
        McpError, match=r"^The MCP server gone is required but not available: there is no program"
    ):
        place.hub.check_required()
    await place.hub.aclose()


async def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    place = Place(tmp_path, Timeouts(settle=20, starts=1))
    place.add("mute", command="/bin/sh", args=MUTE, start=0.2)
    await place.hub.settle()
    (row,) = place.hub.status()
    assert (row.state, row.detail) == (ServerState.FAILED, "it did not answer within 0.2 s")
    assert "starts an MCP server on standard output" in row.advice
    assert row.detail in place.notices[0].message
    pid = int((tmp_path / "pid").read_text())
    await until(lambda: not Path(f"/proc/{pid}").exists())
    await place.hub.aclose()


async def test_a_call_that_takes_too_long_is_ended(place: Place) -> None:
    place.add_stdio(timeout=0.2)
    await place.hub.settle()
    with pytest.raises(ToolError, match=r"did not answer within 0\.2 s"):
        await place.call("tracker_wait")
    await until((place.directory / "cancelled").exists)


async def test_processes_get_their_variables_and_no_others(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_TOKEN", "hidden")
    place.add_stdio(env={"GIVEN": "${SECRET}-${MISSING:-fallback}"})
    await place.hub.settle()
    said = (await place.call("tracker_variables", names=["GIVEN", "OTHER_TOKEN", "SECRET"])).output
    assert said == "GIVEN=s3cret-fallback OTHER_TOKEN=None SECRET=None"


async def test_too_many_tools_are_offered_through_one(place: Place) -> None:
    place.add_stdio("tracker", "--many", "200")
    await place.hub.settle()
    assert len(place.hub.offered(1_000_000, lambda _schema: 100)) > 200

    def listed(window: int) -> str:
        (search,) = place.hub.offered(
            window, lambda schema: len(schema.description) // 4 if schema.name == "mcp" else 120
        )
        assert search.name == "mcp"
        return search.description

    assert "\n- tracker_add: Add two numbers." in listed(200_000)
    assert ", tracker_report_117, " in listed(50_000)
    assert "tracker (2" in listed(20_000)
    loaded = await place.call("mcp", action="search", query="tracker_add, tracker_report_5")
    assert [line.split(":")[0] for line in loaded.output.splitlines()[:4:2]] == [
        "tracker_add",
        "tracker_report_5",
    ]
    found = await place.call("mcp", action="search", query="report topic117")
    assert found.output.startswith("tracker_report_117: ")
    assert '"title"' in found.output
    called = await place.call(
        "mcp", action="call", name="tracker_report_117", arguments={"title": "x"}
    )
    assert called.output == "report 117: x, 1 pages"
    (search,) = place.hub.offered(100_000, lambda _schema: 100)
    tool, arguments = search.resolve(
        parse_arguments(
            search, '{"action": "call", "name": "tracker_report_3", "arguments": {"title": "y"}}'
        )
    )
    needs = tool.needs(arguments, None)  # type: ignore[arg-type]
    assert [(need.permission.value, need.pattern) for need in needs] == [
        ("mcp", "tracker_report_3")
    ]
    with pytest.raises(ToolError, match="Search for it first"):
        await place.call("mcp", action="call", name="tracker_nothing")
    assert "No tool matches" in (await place.call("mcp", action="search", query="zeppelin")).output


async def test_a_server_says_when_its_parameters_are_sent(place: Place) -> None:
    place.add_stdio("often", schemas="always")
    place.add_stdio("rare", schemas="on_demand")
    place.add_stdio("some")
    await place.hub.settle()

    def offered(window: int) -> set[str]:
        return {tool.name.split("_")[0] for tool in place.hub.offered(window, lambda _schema: 100)}

    assert offered(100_000) == {"often", "some", "mcp"}
    assert offered(8_000) == {"often", "mcp"}
    status = place.hub.status(lambda _schema: 100, window=8_000)
    assert [row.on_demand for row in status] == [False, True, True]


async def test_an_http_server_that_was_restarted_is_reached_again(
    place: Place, tmp_path: Path
) -> None:
    port = free_port()
    place.add("tracker", url=f"http://127.0.0.1:{port}/mcp")
    async with served(make_server(tmp_path), port):
        await place.hub.settle()
        assert (await place.call("tracker_add", a=1, b=2)).output == "3"
    async with served(make_server(tmp_path), port):

        async def works() -> bool:
            with contextlib.suppress(ToolError):
                return (await place.call("tracker_add", a=1, b=2)).output == "3"
            return False

        async with asyncio.timeout(60):
            while not await works():
                await asyncio.sleep(0.02)


async def test_a_reload_starts_what_is_new_ends_what_is_gone_and_leaves_the_rest(
    place: Place,
) -> None:
    place.add_stdio("one")
    place.add_stdio("two")
    await place.hub.settle()
    before = set(place.pids())
    place.specs.pop()
    place.add_stdio("three")
    await place.hub.reload()
    assert {row.name: row.state for row in place.hub.status()} == {
        "one": ServerState.READY,
        "three": ServerState.READY,
    }
    assert not any(tool.name.startswith("two_") for tool in place.hub.known())
    alive = {pid for pid in before if Path(f"/proc/{pid}").exists() and _alive(pid)}
    assert len(alive) == 1


def _alive(pid: int) -> bool:
    return "Z (zombie)" not in Path(f"/proc/{pid}/status").read_text()


async def test_a_process_killed_from_outside_is_noticed_without_a_call(place: Place) -> None:
    place.add_stdio()
    await place.hub.settle()
    os.kill(place.pids()[0], signal.SIGKILL)
    await until(lambda: len(place.pids()) == 2 and place.state() is ServerState.READY)


OURS = {"tracker": McpServerSettings(command="ours")}


def project(tmp_path: Path, servers: object) -> Path:
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return tmp_path


def found_in(project: Path, own: Mapping[str, McpServerSettings] | None = None) -> FoundServers:
    return find_servers(own or {}, project, of_project=servers_of_project(project, [project]))


def test_a_project_cant_take_the_place_of_the_users_server(tmp_path: Path) -> None:
    here = project(tmp_path, {"build": {"command": "evil"}, "tracker": {"command": "theirs"}})
    found = found_in(here, OURS)
    assert [(spec.name, spec.source) for spec in found.specs] == [
        ("tracker", "user"),
        ("build", "project"),
    ]
    assert found.specs[0].settings.command == "ours"


def test_what_is_wrong_in_a_projects_file_is_said_and_the_rest_is_used(tmp_path: Path) -> None:
    here = project(
        tmp_path, {"good": {"type": "http", "url": "https://x.test/mcp"}, "bad": {"args": []}}
    )
    found = found_in(here)
    assert [spec.name for spec in found.specs] == ["good"]
    assert found.specs[0].transport == "http"
    assert "bad: it has neither a command nor a url" in found.problems[0]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"mcpServers": 3}'])
def test_a_projects_file_that_is_none_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / ".mcp.json").write_text(text)
    found = found_in(tmp_path)
    assert ".mcp.json" in found.problems[0]
    hub = McpHub(lambda: found)
    hub.start()
    assert hub.problems == found.problems


def test_variables_are_filled_in_everywhere() -> None:
    settings = McpServerSettings(
        url="https://${HOST}/mcp", headers={"Authorization": "Bearer ${KEY:-none}"}
    )
    filled = expanded(settings, {"HOST": "x.test"})
    assert (filled.url, filled.headers) == ("https://x.test/mcp", {"Authorization": "Bearer none"})
    with pytest.raises(McpConfigError, match="HOST is not set"):
        expanded(settings, {})


@given(st.text(min_size=1, max_size=90), st.text(min_size=1, max_size=90), st.booleans())
def test_names_are_what_every_provider_takes(server: str, tool: str, taken: bool) -> None:
    plain = portable_name(server, tool)
    name = portable_name(server, tool, taken={plain} if taken else ())
    assert name.replace("-", "_").isascii()
    assert name.replace("-", "_").isidentifier()
    assert len(name) <= MAX_LENGTH
    assert (name == plain) is not taken


def test_names_that_differ_only_in_what_is_left_out_are_told_apart() -> None:
    first = portable_name("s", "a.b")
    assert portable_name("s", "a/b", taken={first}) != first
    assert portable_name("s", "x" * 100 + "1") != portable_name("s", "x" * 100 + "2")


def test_schemas_lose_what_says_nothing_but_no_field() -> None:
    schema = {
        "$schema": "x",
        "title": "Args",
        "properties": {"title": {"title": "Title", "type": "string"}},
    }
    assert tidy_schema(schema) == {"properties": {"title": {"type": "string"}}}


@pytest.fixture
async def vault(tmp_path: Path) -> AsyncIterator[tuple[OpenDoor, str]]:
    door, port = OpenDoor(), free_port()
    address = f"http://127.0.0.1:{port}"
    async with served(make_closed_server(door, address), port):
        yield door, f"{address}/mcp"


async def visit(place: Place) -> str:
    """Be the user's browser: open the address that the program showed, and go where one is sent."""
    await until(lambda: any("log in" in notice.message for notice in place.notices))
    assert place.state("vault") is ServerState.LOGIN
    url = place.notices[-1].message.rpartition(" ")[2]
    async with httpx.AsyncClient(follow_redirects=True) as browser:
        return (await browser.get(url)).text


async def logged_in(tmp_path: Path, url: str) -> Place:
    """Return a place whose user has logged in to the server at ``url``."""
    place = Place(tmp_path)
    place.add("vault", url=url)
    settling = asyncio.create_task(place.hub.settle())
    assert "You are logged in" in await visit(place)
    await settling
    return place


async def test_the_user_logs_in_once_and_private_tokens_renew(
    tmp_path: Path, vault: tuple[OpenDoor, str]
) -> None:
    door, url = vault
    place = await logged_in(tmp_path, url)
    assert (await place.call("vault_look")).output == "gold"
    await place.hub.aclose()
    (file,) = (tmp_path / "tokens").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    for renewed in (0, 1):
        again = Place(tmp_path, QUICK)
        again.add("vault", url=url)
        await again.hub.settle()
        assert (await again.call("vault_look")).output == "gold"
        assert (again.notices, door.refreshed) == ([], renewed)
        await again.hub.aclose()
        table = json.loads(file.read_text())
        file.write_text(json.dumps({**table, "tokens": {**table["tokens"], "expires_at": 1}}))
        door.access.clear()


async def test_a_server_is_ready_again_after_a_login_that_became_necessary_later(
    tmp_path: Path, vault: tuple[OpenDoor, str]
) -> None:
    door, url = vault
    place = await logged_in(tmp_path, url)
    door.access.clear()
    door.refresh.clear()
    place.notices.clear()
    calling = asyncio.create_task(place.call("vault_look"))
    await visit(place)
    assert len(place.notices) == 1
    assert (await calling).output == "gold"
    await until(lambda: place.state("vault") is ServerState.READY)
    await place.hub.aclose()


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"tokens": {}, "client": {}}',
        '{"tokens": {"token": {"access_token": 1}}, "client": {"redirect_uris": 1}}',
        '{"tokens": [], "client": {"redirect_uris": ["http://127.0.0.1:99999999/"]}}',
    ],
)
async def test_a_damaged_file_of_tokens_asks_for_a_login(tmp_path: Path, text: str) -> None:
    url = "https://tracker.example/mcp"
    tokens = TokenFile("tracker", url, tmp_path)
    await tokens.set_tokens(OAuthToken(access_token="a", token_type="Bearer", expires_in=600))
    assert (await tokens.get_tokens()) is not None
    (file,) = tmp_path.iterdir()
    file.write_text(text)
    assert await tokens.get_tokens() is None
    assert await tokens.get_client_info() is None
    assert tokens.port() is None
