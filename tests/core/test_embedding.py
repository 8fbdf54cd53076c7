"""The context engine as docs/embedding.md describes it: its example runs, and nothing else is loaded."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.parsed import parsed
from tui_agent import core

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "docs" / "examples" / "embedding" / "small_agent.py"
FLOORS = {"core", "context", "session"}
"""The only packages of the program that the engine may load."""
LOADED = "\nimport sys; print('LOADED', *sorted(sys.modules))"


def run_program(text: str, cwd: Path, *arguments: str) -> str:
    """Run a program as a user of the engine would; returns what it prints."""
    (cwd / "program.py").write_text(text, encoding="utf-8")
    env = {"HOME": str(cwd), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "program.py", *arguments],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def sizes(printed: str) -> dict[str, int]:
    return {
        name: int(number)
        for name, number in re.findall(r"^([\w ]+): (\d+)$", printed, re.MULTILINE)
    }


def test_the_small_agent_makes_room_takes_it_back_and_moves(tmp_path: Path) -> None:
    printed = run_program(EXAMPLE.read_text(encoding="utf-8"), tmp_path, "sessions.db")
    found = sizes(printed)
    assert "compacted" in printed
    assert found["after"] < found["before"] / 2
    assert found["taken back"] == found["before"]
    assert found["moved to"] == 2


def test_the_example_uses_nothing_but_the_public_names() -> None:
    for node in ast.walk(parsed(EXAMPLE.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tui_agent"):
            assert node.module == "tui_agent.core"
            assert {alias.name for alias in node.names} <= set(core.__all__)


def test_the_document_names_everything_public_and_its_block_runs(tmp_path: Path) -> None:
    assert [name for name in core.__all__ if not re.search(rf"\b{name}s?\b", DOCUMENT)] == []
    (block,) = re.findall(r"^```python\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
    run_program(block, tmp_path)


def test_it_loads_no_other_part_of_the_program(tmp_path: Path) -> None:
    printed = run_program("import tui_agent.core" + LOADED, tmp_path)
    loaded = printed.partition("LOADED ")[2].split()
    own = {name.split(".")[1] for name in loaded if name.startswith("tui_agent.")}
    packages = {path.parent.name for path in (ROOT / "tui_agent").glob("*/__init__.py")}
    assert own & packages <= FLOORS
    assert not {"asyncio", "httpx", "textual"} & set(loaded)
