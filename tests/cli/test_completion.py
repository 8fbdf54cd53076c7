"""Completion in shells and the manual page: both follow the parser."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tui_agent.cli.main import run

ROOT = Path(__file__).parents[2]

BASH = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_shtab_tui_agent
echo "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "tui-agent" in script
    assert "sessions" in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("tui-agent sess", ["sessions"]),
        ("tui-agent sessions ex", ["export"]),
        ("tui-agent --effort m", ["minimal", "medium", "max"]),
        ("tui-agent --resum", ["--resume"]),
        ("tui-agent sessions export --format m", ["markdown"]),
    ],
)
def test_bash_completes_commands_options_and_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, expected: list[str]
) -> None:
    run(["completion", "bash"])
    script = tmp_path / "completion.bash"
    script.write_text(capsys.readouterr().out, encoding="utf-8")
    command = BASH.format(script=script, words=words)
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.split() == expected


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
