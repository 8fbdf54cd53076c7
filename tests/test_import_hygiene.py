"""What must not be loaded before it is needed, and which layer may know which."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.support.model_server import ModelServer
from tests.support.terminal import Terminal

ROOT = Path(__file__).parent.parent
HEAVY = {
    "litellm",
    "openai",
    "yaml",
    "tiktoken",
    "httpx",
    "aiohttp",
    "tree_sitter_bash",
    "mcp",
    "requests",
    "tokenizers",
}
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


def loaded_by(statement: str) -> set[str]:
    """Return the top-level packages in a fresh process after a statement."""
    return {name.partition(".")[0] for name in loaded_modules(statement)}


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


def test_nothing_heavy_is_imported_before_the_first_paint() -> None:
    assert loaded_by(FIRST_PAINT) & HEAVY == set()


def test_what_finds_secrets_is_not_loaded_before_something_is_looked_through() -> None:
    """Its patterns take as long to make as a third of the interface's modules to load."""
    statement = (
        "import os, tui_agent.ui.app, tui_agent.cli.wiring; "
        "from tui_agent.processes.environment import SafeEnvironment; "
        "from tui_agent.cli.extensions import Extensions; SafeEnvironment(os.environ)"
    )
    assert "tui_agent.secret_detector" not in loaded_modules(statement)


def test_the_command_line_does_not_load_the_user_interface() -> None:
    assert "textual" not in loaded_by("import tui_agent.__main__")


def test_everything_below_the_interface_works_without_textual() -> None:
    parts = ("session.store", "context.projection", "agent.agent", "tools.registry", "model.client")
    loaded = loaded_by(f"import {', '.join(f'tui_agent.{part}' for part in parts)}")
    assert loaded & {"textual", "rich", "litellm", "openai"} == set()


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


def test_the_first_session_is_open_before_what_sends_requests_is_loaded() -> None:
    loaded = loaded_by(
        "import tui_agent.cli.screen, tui_agent.cli.controller_wiring, tui_agent.ui.widgets.session_view"
    )
    assert loaded & {"httpcore", "anyio", "markdown_it"} == set()


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
