"""A server that the sandbox keeps something from: the message names it, and the setting that gives it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.contained import SYSTEM_PATH, Contained, needs_layer
from tests.support.mcp_place import PLAIN_SERVER, QUICK
from tui_agent.agent.mcp.hub import McpHub
from tui_agent.agent.mcp.records import ServerState
from tui_agent.agent.mcp.sandbox_limits import SandboxLimits, directories_of
from tui_agent.agent.mcp.server import error_line
from tui_agent.agent.mcp.settings import (
    ConnectionContext,
    FoundServers,
    McpServerSettings,
    ServerSpec,
)

LINKED_SERVER = (
    PLAIN_SERVER.read_text()
    + """

import pathlib
assert pathlib.Path(__file__).resolve().with_name("part.py").exists()
"""
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
        found.explanation("")
        == f"it can't see {tool} in the sandbox: add it to [sandbox] read in config.toml"
    )
    said = (
        f"Error: Cannot find module '{lost}'\n at /usr/bin/env /dev/null "
        f"{tmp_path}/nowhere {box.root}/src/inside.js:3"
    )
    assert str(lost) in found.explanation(said)
    assert "add them to [sandbox] read" in found.explanation(said)
    assert (
        SandboxLimits(box.root, ("env",), sees, {}).explanation("bye /usr/bin/env /dev/null") == ""
    )
    assert (
        SandboxLimits(box.root, ("env",), sees, {"npm.corp": "No command reaches it."}).explanation(
            ""
        )
        == "No command reaches it"
    )


@asynccontextmanager
async def hub_of(box: Contained, program: Path, scratch: Path) -> AsyncIterator[McpHub]:
    """Give the hub of a project's server "tracker", which is a Python program, and close it."""
    settings = McpServerSettings(command="python3", args=(str(program), "/tmp"), sandboxed=True)
    spec = ServerSpec("tracker", settings, "project", box.root)
    around = ConnectionContext(
        {},
        {"PATH": SYSTEM_PATH, "HOME": str(box.home)},
        scratch / "log",
        scratch / "tokens",
        sandbox=lambda _project: box.sandbox,
    )
    hub = McpHub(lambda: FoundServers((spec,)), around, QUICK)
    try:
        yield hub
    finally:
        await hub.aclose()


@needs_layer
async def test_a_server_reads_what_the_user_lets_it_read(tmp_path: Path) -> None:
    box = Contained(tmp_path / "home")
    program = box.file("tools/server.py", PLAIN_SERVER.read_text(), at=box.home)
    async with hub_of(box, program, tmp_path) as hub:
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


@pytest.mark.parametrize(
    ("link", "target", "marks", "directories"),
    [
        ("", "tools/x/index.js", [], ["tools/x"]),
        ("", "tools/x/dist/index.js", ["tools/x/package.json"], ["tools/x"]),
        ("", "index.js", [], ["index.js"]),
        ("t/node_modules/.bin/s", "t/node_modules/s/dist/s.js", [], ["t/node_modules"]),
        (
            "npm/bin/s",
            "npm/lib/node_modules/s/node_modules/d/s.js",
            ["npm/lib/node_modules/s/package.json"],
            ["npm/bin", "npm/lib/node_modules"],
        ),
        (".local/bin/s", "uv/s/bin/s", ["uv/s/pyvenv.cfg"], [".local/bin", "uv/s"]),
        ("s", "uv/s/bin/s", ["uv/s/pyvenv.cfg"], ["s", "uv/s"]),
    ],
)
def test_the_directories_of_a_program_hold_its_package(
    tmp_path: Path, link: str, target: str, marks: list[str], directories: list[str]
) -> None:
    for name in (target, *marks):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    path = tmp_path / target
    if link:
        path = tmp_path / link
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(tmp_path / target)

    found = directories_of([path], tmp_path)

    assert found == tuple(tmp_path / name for name in directories)


def test_a_linked_home_directory_is_never_offered(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "lib").mkdir(parents=True)
    (real / "index.js").touch()
    home = tmp_path / "home"
    home.symlink_to(real)
    for place in (home, real):
        assert directories_of([place / "index.js"], home) == (place / "index.js",)
        assert directories_of([place, tmp_path], home) == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["server", "{path}"], ""),
        (["server", "--config={path}"], ""),
        (["server"], "Cannot read {path}."),
        (["server"], "open('{path}') failed"),
    ],
)
def test_a_hidden_path_is_found_however_it_is_written(
    tmp_path: Path, words: list[str], said: str
) -> None:
    path = tmp_path / "settings.json"
    path.touch()
    command = tuple(word.format(path=path) for word in words)
    limits = SandboxLimits(tmp_path / "project", command, lambda _: False, {})
    assert limits.hidden(said.format(path=path)) == (path,)


@needs_layer
async def test_a_linked_server_reads_its_package(tmp_path: Path) -> None:
    box = Contained(tmp_path / "home")
    box.file("tools/node_modules/s/dist/part.py", at=box.home)
    program = box.file("tools/node_modules/s/dist/s.py", LINKED_SERVER, at=box.home)
    link = box.home / "tools/node_modules/.bin/s"
    link.parent.mkdir()
    link.symlink_to("../s/dist/s.py")
    async with hub_of(box, link, tmp_path) as hub:
        await hub.settle()
        (failed,) = hub.status()
        assert failed.hidden == (link,)
        assert program.exists()
        await hub.let_read("tracker", directories_of(failed.hidden, box.home))
        await hub.settle()
        assert hub.status()[0].state is ServerState.READY


NODE = """node:internal/modules/esm/resolve:283
    throw new ERR_MODULE_NOT_FOUND(
          ^

Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/a/lib.js' imported from /a/.bin/s
    at finalizeResolution (node:internal/modules/esm/resolve:283:11) {
  code: 'ERR_MODULE_NOT_FOUND',
  url: 'file:///a/lib.js'
}

Node.js v22.11.0
"""
REQUIRED = """Error: Cannot find module 'x'
Require stack:
- /a/s.js
    at Module.load (node:internal:1) {
  requireStack: [ '/a/s.js' ]
}

Node.js v22.11.0
"""
PYTHON = """Traceback (most recent call last):
  File "/a/s.py", line 1, in <module>
    import x
ModuleNotFoundError: No module named 'x'
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (NODE, "Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/a/lib.js' imported from /a/.bin/s"),
        (REQUIRED, "Error: Cannot find module 'x'"),
        (PYTHON, "ModuleNotFoundError: No module named 'x'"),
        ("[12:00] ended\nno database\n[12:01] ended\n", "no database"),
        ("[shop] no key\n    at main (s.js:1)\n[info] said to the client\n", "[shop] no key"),
        ("[standard output] x\n", ""),
        ("}\n", "}"),
        ("", ""),
    ],
)  # fmt: skip
def test_the_line_with_the_error_is_shown(text: str, words: str) -> None:
    assert error_line(text) == words
