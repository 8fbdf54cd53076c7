"""How much has to be written for something new: each example of tests/extending is tried in a copy of the program."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "tests/extending"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return a directory with a copy of the program, and its tests beside it."""
    for name in ("tui_agent", "prompts", "styles"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    return tmp_path


def check(copied: Path, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.extending.checks", name],
        cwd=copied, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stdout.strip().endswith("ok"), done.stderr[-4_000:]


def test_a_tool_is_one_file(copied: Path) -> None:
    shutil.copy(EXAMPLES / "lookup_tool.py", copied / "tui_agent/tools")
    check(copied, "tool")


def test_a_command_is_one_file(copied: Path) -> None:
    shutil.copy(EXAMPLES / "greet_commands.py", copied / "tui_agent/app")
    check(copied, "command")


def test_a_kind_of_entry_is_three_files(copied: Path) -> None:
    patch = (EXAMPLES / "bookmark_entry.patch").read_text()
    assert len(re.findall(r"^\+\+\+ ", patch, re.MULTILINE)) <= 3
    done = subprocess.run(
        ["git", "apply", "-C1", "--recount", "-"], cwd=copied, input=patch, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, f"tests/extending/bookmark_entry.patch has to follow the code: {done.stderr}"
    check(copied, "entry")
