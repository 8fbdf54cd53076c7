"""Ripgrep and git in a repository whose ignore files never end. Every run is under a memory limit of its own."""

import asyncio
import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tests.support.tooling import Workspace
from tui_agent.config import ConfigError, read_table
from tui_agent.errors import ToolError
from tui_agent.files import ripgrep
from tui_agent.files.own_git import run_git
from tui_agent.session.entries import ToolResultEntry, ToolStatus
from tui_agent.tools.glob import GlobTool
from tui_agent.tools.grep import GrepTool

MOST_KILOBYTES = 2 * 2**20
"""Memory that a program may take that is given a file without an end."""


@pytest.fixture(autouse=True)
def few_bytes() -> Iterator[None]:
    """Let nothing that a test starts take the machine's memory, whatever the program forgets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    # Of all children of this process, those of earlier tests among them.
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    resource.setrlimit(resource.RLIMIT_DATA, (4 * 2**30, hard))
    yield
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert taken <= max(before, MOST_KILOBYTES)


@pytest.mark.parametrize("kind", ["endless", "pipe"])
@pytest.mark.parametrize(
    "name", [".gitignore", "below/.ignore", "below/.gitignore", "below/.rgignore"]
)
async def test_an_ignore_file_that_never_ends_holds_up_nothing(
    space: Workspace, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep, "PIPE_CHECK_DELAY", 0.05)
    space.file("a.txt", "needle\n")
    space.file("below/b.txt", "needle\n")
    if kind == "pipe":
        os.mkfifo(space.root / name)
    else:
        (space.root / name).symlink_to("/dev/zero")
    async with asyncio.timeout(60):
        with pytest.raises(ToolError, match="ripgrep can't be used in this directory"):
            await space.call(GrepTool(), pattern="needle")
        listed = await space.call(GlobTool(), pattern="**/*.txt")
    assert sorted(listed.output.split()) == ["a.txt", "below/b.txt"]


@pytest.mark.parametrize("kind", ["device", "pipe"])
async def test_a_change_of_what_is_no_file_ends(tmp_path: Path, kind: str) -> None:
    """Edits are watched by checkers, which look at what was there before."""
    path = "/dev/full" if kind == "device" else str(tmp_path / "pipe")
    if kind == "pipe":
        os.mkfifo(path)
    calls = (
        Call("write", json.dumps({"path": path, "content": "x"})),
        Call("edit", json.dumps({"path": path, "edits": [{"old": "a", "new": "b"}]})),
    )
    harness = make_agent(tmp_path, ScriptedClient([Reply(calls=calls), Reply("Done.")]))
    assert (await harness.say("go")).reason == "done"
    results = [entry for entry in harness.path() if isinstance(entry, ToolResultEntry)]
    assert [entry.status for entry in results] == [ToolStatus.ERROR, ToolStatus.ERROR]


def test_settings_that_never_end_are_no_settings(tmp_path: Path) -> None:
    (tmp_path / "config.toml").symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match="not a regular file"):
        read_table(tmp_path / "config.toml")


def test_git_is_given_no_more_memory_than_it_needs(space: Workspace) -> None:
    Path(space.root / ".gitattributes").symlink_to("/dev/zero")
    run_git(space.root, "status", "--porcelain")
