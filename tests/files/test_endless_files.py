"""Ripgrep and git in a repository whose ignore files never end. Every run is under a memory limit of its own."""

import asyncio
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tooling import Workspace
from tui_agent.files import ripgrep
from tui_agent.files.own_git import run_git
from tui_agent.tools.glob import GlobTool
from tui_agent.tools.grep import GrepTool


@pytest.fixture(autouse=True)
def few_bytes() -> Iterator[None]:
    """Let nothing that a test starts take the machine's memory, whatever the program forgets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (4 * 2**30, hard))
    yield
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@pytest.mark.parametrize("name", [".gitignore", ".ignore", "below/.ignore", "below/.gitignore"])
async def test_an_ignore_file_without_end_ends(space: Workspace, name: str) -> None:
    space.file("a.txt", "needle\n")
    space.file("below/b.txt", "needle\n")
    (space.root / name).symlink_to("/dev/zero")
    found = await space.call(GrepTool(), pattern="needle")
    assert found.output == "a.txt:1: needle\nbelow/b.txt:1: needle"
    listed = await space.call(GlobTool(), pattern="**/*.txt")
    assert sorted(listed.output.split()) == ["a.txt", "below/b.txt"]
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert largest < 2 * 2**20, "kilobytes"


@pytest.mark.parametrize("name", ["below/.ignore", "below/.gitignore", "below/.rgignore"])
async def test_an_ignore_file_that_is_a_pipe_holds_up_nothing(
    space: Workspace, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep, "LONG", 0.05)
    space.file("a.txt", "needle\n")
    space.file("below/b.txt", "needle\n")
    os.mkfifo(space.root / name)
    async with asyncio.timeout(20):
        found = await space.call(GrepTool(), pattern="needle")
        assert found.output == "a.txt:1: needle\nbelow/b.txt:1: needle"
        listed = await space.call(GlobTool(), pattern="**/*.txt")
    assert sorted(listed.output.split()) == ["a.txt", "below/b.txt"]


def test_git_is_given_no_more_memory_than_it_needs(space: Workspace) -> None:
    Path(space.root / ".gitattributes").symlink_to("/dev/zero")
    run_git(space.root, "status", "--porcelain")
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 2 * 2**20
