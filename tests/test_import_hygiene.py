"""What must not be loaded before it is needed, and which layer may know which."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
    "detect_secrets",
    "tokenizers",
}
"""Packages that take long to import and that no first paint needs. Textual itself loads tree_sitter (0.7 ms)."""


def loaded_by(statement: str) -> set[str]:
    """Return the top-level packages in a fresh process after a statement."""
    return {name.partition(".")[0] for name in loaded_modules(statement)}


def loaded_modules(statement: str) -> set[str]:
    """Return the modules in a fresh process after a statement."""
    program = f"{statement}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("module", ["tui_agent.__main__", "tui_agent.cli.main", "tui_agent.ui.app"])
def test_nothing_heavy_is_imported_before_the_first_paint(module: str) -> None:
    assert loaded_by(f"import {module}") & HEAVY == set()


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


@pytest.mark.parametrize(
    "package", ["session.store", "context.projection", "agent.agent", "tools.registry", "model.client"]
)
def test_everything_below_the_interface_works_without_textual(package: str) -> None:
    loaded = loaded_by(f"import tui_agent.{package}")
    assert loaded & {"textual", "rich", "litellm", "openai"} == set()


def test_the_layers_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout


def test_the_first_paint_needs_nothing_of_the_agent() -> None:
    loaded = loaded_modules("import tui_agent.cli.main, tui_agent.cli.screen, tui_agent.ui.app")
    late = ("tui_agent.agent.agent", "tui_agent.model.client", "tui_agent.config", "pydantic", "sqlite3")
    assert [name for name in late if name in loaded] == []
