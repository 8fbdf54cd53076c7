"""A server that the sandbox keeps something from: the message names it, and the setting that gives it."""

from functools import partial
from pathlib import Path

from tests.support.contained import SYSTEM_PATH, Contained, needs_layer
from tests.support.mcp_place import PLAIN_SERVER, QUICK
from tui_agent.agent.mcp.hub import McpHub
from tui_agent.agent.mcp.records import ServerState
from tui_agent.agent.mcp.sandbox_limits import SandboxLimits
from tui_agent.agent.mcp.settings import (
    ConnectionContext,
    FoundServers,
    McpServerSettings,
    ServerSpec,
)


@needs_layer
def test_paths_that_are_there_and_not_in_the_view_are_named(tmp_path: Path) -> None:
    box = Contained(tmp_path / "home")
    tool, lost = box.file("tools/x/index.js", at=box.home), box.file("lib/own.js", at=box.home)
    box.file("src/inside.js")
    sees = partial(box.sandbox.shows, project=box.root)
    found = SandboxLimits(
        box.root, ("/usr/bin/env", str(tool), "/", "src/inside.js", "--port=1"), sees, {}
    )
    assert (
        found.lacks("")
        == f"it can't see {tool} in the sandbox: add it to [sandbox] read in config.toml"
    )
    said = (
        f"Error: Cannot find module '{lost}'\n at /usr/bin/env /dev/null "
        f"{tmp_path}/nowhere {box.root}/src/inside.js:3"
    )
    assert str(lost) in found.lacks(said)
    assert SandboxLimits(box.root, ("env",), sees, {}).lacks("bye /usr/bin/env /dev/null") == ""
    assert (
        SandboxLimits(box.root, ("env",), sees, {"npm.corp": "No command reaches it."}).lacks("")
        == "No command reaches it"
    )


@needs_layer
async def test_a_server_reads_what_the_user_lets_it_read(tmp_path: Path) -> None:
    box = Contained(tmp_path / "home")
    program = box.file("tools/server.py", PLAIN_SERVER.read_text(), at=box.home)
    settings = McpServerSettings(command="python3", args=(str(program), "/tmp"), sandboxed=True)
    spec = ServerSpec("tracker", settings, "project", box.root)
    around = ConnectionContext(
        {},
        {"PATH": SYSTEM_PATH, "HOME": str(box.home)},
        tmp_path / "log",
        tmp_path / "tokens",
        sandbox=lambda _project: box.sandbox,
    )
    hub = McpHub(lambda: FoundServers((spec,)), around, QUICK)
    try:
        await hub.settle()
        (failed,) = hub.status()
        assert failed.state is ServerState.FAILED
        assert failed.hidden == (program,)
        assert failed.remedy == "allow"
        await hub.let_read("tracker", failed.hidden)
        await hub.settle()
        (ready,) = hub.status()
        assert ready.state is ServerState.READY
        assert not ready.hidden
        await hub.reload()
        assert hub.status()[0].state is ServerState.READY
    finally:
        await hub.aclose()
