"""Files are opened where they were allowed: a link put in the way meanwhile is not followed."""

import os
from pathlib import Path

import pytest

from tests.support.tooling import Workspace
from tui_agent.errors import ToolError
from tui_agent.files.inside import make_directories, open_file
from tui_agent.files.own_git import head_of
from tui_agent.permission import Permission
from tui_agent.text_files.reading import load
from tui_agent.text_files.replacing import replace_file
from tui_agent.tools.bash import BashTool
from tui_agent.tools.edit import EditTool
from tui_agent.tools.grep import GrepTool
from tui_agent.tools.ls import LsTool
from tui_agent.tools.read import ReadTool
from tui_agent.tools.write import WriteTool


@pytest.fixture
def outside(space: Workspace) -> Path:
    outside = space.root.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("theirs\n")
    return outside


def test_a_link_in_the_place_of_a_directory_or_file_is_not_followed(
    space: Workspace, outside: Path
) -> None:
    (space.root / "d").symlink_to(outside)
    (space.root / "f.txt").symlink_to(outside / "a.txt")
    for path in (space.root / "d" / "a.txt", space.root / "f.txt"):
        with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
            replace_file(path, b"mine")
        with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
            open_file(path)
        with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
            load(path, "a.txt", max_bytes=1_000)
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        make_directories(space.root / "d" / "new" / "er")
    assert [path.name for path in outside.iterdir()] == ["a.txt"]
    assert (outside / "a.txt").read_text() == "theirs\n"


def test_nothing_waits_for_a_pipe(space: Workspace) -> None:
    os.mkfifo(space.root / "pipe")
    with open_file(space.root / "pipe") as file:
        assert file.read() == b""


@pytest.mark.parametrize(
    ("tool", "permission", "arguments"),
    [
        (ReadTool(), Permission.READ, {"path": "d/a.txt"}),
        (LsTool(), Permission.READ, {"path": "d"}),
        (GrepTool(), Permission.READ, {"path": "d", "pattern": "t"}),
        (WriteTool(), Permission.EDIT, {"path": "d/new.txt", "content": "x"}),
        (
            EditTool(),
            Permission.EDIT,
            {"path": "d/a.txt", "edits": [{"old": "theirs", "new": "mine"}]},
        ),
        (BashTool(), Permission.READ, {"command": "cat d/a.txt"}),
    ],
)
async def test_a_call_stops_that_leads_elsewhere_than_when_it_was_allowed(
    space: Workspace,
    outside: Path,
    tool: object,
    permission: Permission,
    arguments: dict[str, object],
) -> None:
    space.file("d/a.txt", "theirs\n")
    space.allowed = frozenset(
        {(permission, "d"), (permission, "d/a.txt"), (permission, "d/new.txt")}
    )
    assert (await space.call(tool, **arguments)).output  # type: ignore[arg-type]
    (space.root / "d").rename(space.root / "old")
    (space.root / "d").symlink_to(outside)
    with pytest.raises(ToolError, match="which was not allowed; nothing was done"):
        await space.call(tool, **arguments)  # type: ignore[arg-type]
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"a.txt": "theirs\n"}


def test_a_branch_that_leads_out_of_the_repository_is_none(tmp_path: Path) -> None:
    (tmp_path / "x/.git/refs/heads").mkdir(parents=True)
    for place in (tmp_path, tmp_path / "x"):
        (place / "outside").write_text("1" * 40)
    for branch in ("../../../outside", "../../../../outside"):
        (tmp_path / "x/.git/HEAD").write_text(f"ref: refs/heads/{branch}\n")
        assert head_of(tmp_path / "x/.git", tmp_path / "x/.git") is None
