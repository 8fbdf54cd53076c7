"""Tools switched off and on, what is said of a server that is not there, and giving a login up."""

from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.agent.mcp.mcp_login import OpenDoor, make_closed_server
from tests.support.mcp_place import Place, served, until
from tui_agent.agent.mcp.records import LoginState, McpError, ServerState
from tui_agent.agent.mcp.settings import McpConfigError, McpServerSettings
from tui_agent.errors import ToolError
from tui_agent.web.callback import free_port


@pytest.mark.parametrize(
    ("before", "on", "after"),
    [
        ({}, False, (None, ("add",))),
        ({"allow": ("add", "fail")}, False, (("fail",), ())),
        ({"allow": ("a*",)}, False, (("a*",), ("add",))),
        ({"deny": ("add",)}, True, (None, ())),
        ({"allow": ("fail",)}, True, (("fail", "add"), ())),
        ({"allow": (), "deny": ("add",)}, True, (("add",), ())),
    ],
)
def test_switching_changes_as_little_as_it_can(
    before: dict[str, tuple[str, ...]], on: bool, after: tuple[object, object]
) -> None:
    settings = McpServerSettings(command="x", **before)  # type: ignore[arg-type]
    switched = settings.switched("add", on=on)
    assert (switched.allow, switched.deny) == after
    assert switched.offers("add") is on


async def test_a_tool_of_a_project_stays_off_when_the_settings_are_read_again(
    place: Place,
) -> None:
    place.add_stdio()
    place.specs = [replace(spec, source="project") for spec in place.specs]
    await place.hub.settle()
    place.hub.switch("tracker", "add", on=False)
    await place.hub.reload()
    assert "tracker_add" not in place.hub.ready_names()
    place.hub.switch("tracker", "add", on=True)
    await place.hub.reload()
    assert "tracker_add" in place.hub.ready_names()


def test_a_pattern_that_denies_is_not_worked_around() -> None:
    with pytest.raises(McpConfigError, match="turned off by a pattern"):
        McpServerSettings(command="x", deny=("a*",)).switched("add", on=True)


async def test_a_tool_that_is_off_is_not_offered_not_found_and_refused(place: Place) -> None:
    place.add_stdio(allow=("add", "fail"))
    await place.hub.settle()
    place.hub.switch("tracker", "add", on=False)
    assert [tool.name for tool in place.hub.offered(100_000, lambda _schema: 1)] == ["tracker_fail"]
    tool = next(tool for tool in place.hub.known() if tool.name == "tracker_add")
    with pytest.raises(ToolError, match="The user turned"):
        tool.needs(None, None)  # type: ignore[arg-type]
    found = await place.call("mcp", action="search", query="add numbers")
    assert "tracker_add" not in found.output
    with pytest.raises(McpError, match="There is no MCP server"):
        place.hub.switch("other", "add", on=True)


async def test_a_reload_with_other_tools_leaves_the_server_running(place: Place) -> None:
    place.add_stdio("zebra", allow=("add",))
    place.add_stdio("ant", allow=("add",))
    await place.hub.settle()
    pids = set(place.pids())
    for name in ("zebra", "ant"):
        spec = place.specs.pop(0)
        place.add(name, **{**spec.settings.model_dump(), "deny": ("add",), "allow": None})
    await place.hub.reload()
    assert set(place.pids()) == pids
    assert [row.name for row in place.hub.status()] == ["zebra", "ant"]
    assert "zebra_add" not in {tool.name for tool in place.hub.offered(100_000, lambda _schema: 1)}
    assert "zebra_fail" in {tool.name for tool in place.hub.offered(100_000, lambda _schema: 1)}


async def test_what_is_wrong_is_said_with_what_to_do(place: Place, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("x")
    place.add("missing", command="/nowhere/at-all")
    place.add("plain", command=str(tmp_path / "notes"))
    place.add("unset", command="${NOT_SET_ANYWHERE}")
    place.add("shy", command="/bin/sh", args=("-c", "echo 'no licence' >&2; exit 1"))
    place.add("off", command="true", enabled=False)
    place.add("refused", url=f"http://127.0.0.1:{free_port()}/mcp")
    await place.hub.settle()
    said = {row.name: (row.detail, row.advice) for row in place.hub.status()}
    assert said["missing"][0] == "there is no program “/nowhere/at-all”"
    assert "correct the server's command in config.toml" in said["missing"][1]
    assert "can't be executed" in said["plain"][0]
    assert "Set it in the environment" in said["unset"][1]
    assert "no licence" in said["shy"][0]
    assert {row.name for row in place.hub.status() if row.state is not ServerState.FAILED} == {
        "off"
    }
    assert place.hub.offered(100_000, lambda _schema: 1) == ()
    assert len(place.notices) == 5
    assert said["refused"][0].startswith("nothing answers at http://127.0.0.1")


async def test_a_refusal_over_http_names_its_status(place: Place) -> None:
    port = free_port()
    keyed = {"Authorization": "Bearer wrong"}
    place.add("vault", url=f"http://127.0.0.1:{port}/mcp", headers=keyed)
    place.add("lost", url=f"http://127.0.0.1:{port}/elsewhere", headers=keyed)
    async with served(make_closed_server(OpenDoor(), f"http://127.0.0.1:{port}"), port):
        await place.hub.settle()
        said = {row.name: (row.detail, row.advice) for row in place.hub.status()}
    assert said["vault"] == (
        "it refused access (401 Unauthorized)",
        "Correct the server's headers in config.toml.",
    )
    assert said["lost"][0] == "it answered 404 Not Found"


async def test_a_login_that_is_given_up_is_asked_for_again(place: Place) -> None:
    port = free_port()
    place.add("vault", url=f"http://127.0.0.1:{port}/mcp")
    place.add_stdio()
    changes: list[ServerState] = []
    place.hub.watchers.append(lambda: changes.append(place.state("vault")))

    async def log_in() -> None:
        await until(lambda: place.state("vault") is ServerState.LOGIN)
        row = next(row for row in place.hub.status() if row.name == "vault")
        assert row.login is LoginState.WAITING
        async with httpx.AsyncClient(follow_redirects=True) as browser:
            await browser.get(row.detail)
        await until(lambda: place.state("vault") is ServerState.READY)

    async with served(make_closed_server(OpenDoor(), f"http://127.0.0.1:{port}"), port):
        place.hub.start()
        await log_in()
        assert (
            next(row for row in place.hub.status() if row.name == "vault").login
            is LoginState.SIGNED_IN
        )
        await place.hub.sign_out("vault")
        await log_in()
        with pytest.raises(McpError, match="has no login to delete"):
            await place.hub.sign_out("tracker")
    assert {ServerState.LOGIN, ServerState.READY} <= set(changes)
