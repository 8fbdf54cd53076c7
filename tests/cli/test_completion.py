"""Completion in shells and the manual page: both follow the parser."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tui_agent.cli.main import run

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "tui-agent" in script
    assert "sessions" in script


def test_the_manual_page_is_up_to_date() -> None:
    """`python scripts/man_page.py` writes it."""
    done = subprocess.run([sys.executable, "scripts/man_page.py", "--check"], cwd=ROOT, check=False, timeout=60)
    assert done.returncode == 0, "run: python scripts/man_page.py"


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_the_manual_page_is_set_without_a_warning() -> None:
    command = ["groff", "-ww", "-man", "-Tutf8", "-rLL=80n", "docs/man/tui-agent.1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    assert "…" in done.stdout
