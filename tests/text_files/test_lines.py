"""Lines are counted in one way: only a line feed ends one."""

from pathlib import Path

import pytest

from tests.support.tooling import Workspace
from tui_agent.agent.attachments import load_message
from tui_agent.session.entries import FilePart
from tui_agent.text_files.lines import line_at, lines_of, numbered
from tui_agent.tools.edit import EditTool
from tui_agent.tools.grep import GrepTool
from tui_agent.tools.read import ReadTool

NO_ENDS = ["\r", "\f", "\v", "\x1c", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("character", NO_ENDS)
async def test_every_way_to_a_line_counts_the_same(character: str, space: Workspace) -> None:
    text = f"a\nb{character}c\r\nTARGET é\n"
    space.file("f.txt", text)
    assert lines_of(text)[2] == "TARGET é\n"
    assert numbered(text)[2] == "3\tTARGET é"
    assert line_at(text, text.index("TARGET")) == 3
    assert "3\tTARGET é" in (await space.call(ReadTool(), path="f.txt")).output.split("\n")
    assert (await space.call(GrepTool(), pattern="TARGET")).output == "f.txt:3: TARGET é"
    assert await mentioned("f.txt:3-3", space.root) == "3\tTARGET é"
    changed = await space.call(EditTool(), path="f.txt", edits=[{"old": "TARGET", "new": "target"}])
    assert "3\ttarget é" in changed.output.split("\n")


async def mentioned(name: str, root: Path) -> str:
    """Return what travels with a message that names a file."""
    prepared = await load_message(f"see @{name}", root, None, lambda _data: "")  # type: ignore[arg-type]  # it names no entry
    part = prepared.parts[1]
    assert isinstance(part, FilePart)
    return part.text
