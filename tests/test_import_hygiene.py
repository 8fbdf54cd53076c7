"""What must not be loaded before it is needed, and which layer may know which."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer
from tests.support.terminal import Terminal

ROOT = Path(__file__).parent.parent
HEAVY = frozenset(
    ["litellm", "openai", "yaml", "tiktoken", "httpx", "aiohttp", "tree_sitter_bash", "mcp", "requests", "tokenizers"]
)
"""Packages that take long to import and that no first paint needs. Textual itself loads tree_sitter (0.7 ms)."""

MOST_OWN_MODULES = 102
"""Of the program's own, before the first paint: each takes a third of a millisecond of it."""
LOGGED_START = """
import sys
log = open(sys.argv[1], "a", buffering=1)
sys.addaudithook(lambda event, given: event == "import" and log.write(given[0] + "\\n"))
from tui_agent.cli.main import run
sys.exit(run(["-m", "openai/any"]))
"""


@cache
def loaded_modules(statement: str) -> set[str]:
    """Return the modules in a fresh process after a statement."""
    there = "sorted(name for name, module in sys.modules.items() if module)"
    program = f"{statement}\nimport json, sys; print(json.dumps({there}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


FIRST_PAINT = "import tui_agent.__main__, tui_agent.cli.main, tui_agent.cli.screen, tui_agent.ui.app"


BELOW = ("session.store", "context.projection", "agent.agent", "tools.registry", "model.client")
UNLOADED = {
    "the first paint": (FIRST_PAINT, HEAVY),
    "the command line": ("import tui_agent.__main__", {"textual"}),
    "what is below the interface": (
        f"import {', '.join(f'tui_agent.{part}' for part in BELOW)}",
        {"textual", "rich", "litellm", "openai"},
    ),
    "the first session": (
        "import tui_agent.cli.screen, tui_agent.cli.controller_wiring, tui_agent.ui.widgets.session_view",
        {"httpcore", "anyio", "markdown_it"},
    ),
    # Its patterns take as long to make as a third of the interface's modules to load.
    "what has not looked for secrets": (
        "import os, tui_agent.ui.app; from tui_agent.cli.wiring import SafeEnvironment; SafeEnvironment(os.environ)",
        {"tui_agent.secret_detector"},
    ),
}


@pytest.mark.parametrize(("statement", "unloaded"), UNLOADED.values(), ids=UNLOADED)
def test_what_is_not_needed_is_not_loaded(statement: str, unloaded: set[str]) -> None:
    assert loaded_modules(statement) & unloaded == set()


def test_the_layers_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout


def test_the_first_paint_needs_nothing_of_the_agent() -> None:
    loaded = loaded_modules(FIRST_PAINT)
    late = ("tui_agent.agent.agent", "tui_agent.model.client", "tui_agent.config", "pydantic", "sqlite3")
    assert [name for name in late if name in loaded] == []
    own = [name for name in loaded if name.startswith("tui_agent")]
    assert len(own) <= MOST_OWN_MODULES, own


def test_what_a_first_answer_needs_is_loaded_while_nobody_waits_for_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with ModelServer() as server:
        env = {
            "HOME": str(tmp_path),
            "TUI_AGENT_CONFIG_DIR": str(tmp_path / "config"),
            "TUI_AGENT_DATA_DIR": str(tmp_path / "data"),
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": server.openai_url,
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-c", LOGGED_START, str(log)]
        with Terminal(command, env=env, cwd=tmp_path) as terminal:
            needed = {"httpx", "httpcore", "anyio._backends._asyncio", "markdown_it"}
            terminal.wait_until(lambda: log.exists() and needed <= set(log.read_text().split()), str(needed))
        assert not server.calls
