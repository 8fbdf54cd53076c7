"""How much has to be written for something new: each example of tests/extending is tried in a copy of the program."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extending.bookmark_entry import ADDED

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "tests/extending"


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Put all examples into a copy of the program; returns what a look at each found, by its name."""
    copied = tmp_path_factory.mktemp("copied")
    for name in ("tui_agent", "prompts", "styles"):
        shutil.copytree(ROOT / name, copied / name)
    (copied / "tests").symlink_to(ROOT / "tests")
    shutil.copy(EXAMPLES / "lookup_tool.py", copied / "tui_agent/tools")
    shutil.copy(EXAMPLES / "greet_commands.py", copied / "tui_agent/app")
    for name, additions in ADDED.items():
        text = (copied / name).read_text()
        for anchor, before, after in additions:
            assert anchor in text, f"{name} has no {anchor!r} any more"
            text = text.replace(anchor, f"{before}{anchor}{after}", 1)
        (copied / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "tests.extending.checks"],
        cwd=copied, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4_000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("example", ["tool", "command", "entry"])
def test_an_example_works_everywhere(looks: dict[str, str], example: str) -> None:
    assert looks[example] == "ok"
