"""What the tests of subcommands have in common."""

import sys
from pathlib import Path

import pytest

from tests.support.in_process import Run, in_process
from tests.support.model_server import ModelServer


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which somebody works who has no settings, no sessions, no key, and nothing to type."""
    for name in ("DATA", "CONFIG"):
        monkeypatch.setenv(f"TUI_AGENT_{name}_DIR", str(tmp_path / name.lower()))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    # No test touches the keyring of whoever runs it.
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr(sys, "stdin", (tmp_path / "nothing").open("w+"))
    return work


@pytest.fixture
def tui_agent(here: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs the program here, with the scripted server as its model."""
    config = here.parent / "config"
    config.mkdir()
    table = f'[models."openai/m"]\nbase_url = "{server.openai_url}"\ncontext_window = 32000\n'
    (config / "config.toml").write_text(f'model = "openai/m"\n{table}')
    return in_process(capsys)
