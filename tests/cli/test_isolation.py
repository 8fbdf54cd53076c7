"""A project's code never runs in the program, however that is started; commands keep the variables that name it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tui_agent.isolation import CODE_VARIABLES, isolated_module

ROOT = Path(__file__).parents[2]
MARK = "open(f'{__file__}.ran', 'w').close()\n"
MODULES = ("sitecustomize", "usercustomize", "re", "threading", "httpx", "pydantic", "textual")
BEFORE_THE_PROGRAM = {"sitecustomize.py", "usercustomize.py", "re.py"}
"""Loaded by Python itself, or by what starts a module of it, where PYTHONPATH names their directory."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with modules that are called like those the program loads, and say when they run."""
    place = tmp_path / "project"
    place.mkdir()
    for name in MODULES:
        (place / f"{name}.py").write_text(MARK)
    return place


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """The command ``tui-agent`` as it is installed: beside its Python."""
    place = tmp_path / "bin"
    place.mkdir()
    shutil.copy(ROOT / "scripts" / "tui-agent", place / "tui-agent")
    python = place / "python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return place / "tui-agent"


def start(words: list[str], project: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    own = {name: value for name, value in os.environ.items() if name not in CODE_VARIABLES}
    own |= {
        "TUI_AGENT_DATA_DIR": str(project.parent / "data"),
        "TUI_AGENT_CONFIG_DIR": str(project.parent / "config"),
    }
    return subprocess.run(
        words,
        cwd=project,
        env=own | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def ran(project: Path) -> set[str]:
    return {path.stem for path in project.glob("*.ran")}


@pytest.mark.daily(1)
@pytest.mark.parametrize("path", [".", "{project}", "", "lib:.", "{project}/src:{project}"])
@pytest.mark.parametrize("linked", [False, True])
def test_the_command_runs_nothing_of_a_project(
    command: Path, project: Path, path: str, linked: bool
) -> None:
    if linked:  # as pipx and uv do
        shown = project.parent / "shown"
        shown.mkdir()
        (shown / "tui-agent").symlink_to(os.path.relpath(command, shown))
        command = shown / "tui-agent"
    done = start(
        [str(command), "--demo", "-p", "hello"], project, PYTHONPATH=path.format(project=project)
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "I am a script" in done.stdout
    assert ran(project) == set()


def test_as_a_module_it_loads_nothing_of_the_working_directory(project: Path) -> None:
    done = start([sys.executable, "-m", "tui_agent", "--demo", "-p", "hello"], project)
    assert (done.returncode, done.stderr) == (0, "")
    assert ran(project) == set()


@pytest.mark.parametrize("path", [".", "{project}"])
def test_as_a_module_it_begins_anew_without_the_variables(project: Path, path: str) -> None:
    done = start(
        [sys.executable, "-m", "tui_agent", "--demo", "-p", "hello"],
        project,
        PYTHONPATH=path.format(project=project),
    )
    assert "I am a script" in done.stdout, done.stderr
    assert ran(project) <= BEFORE_THE_PROGRAM


def test_processes_of_its_own_run_nothing_of_a_project(project: Path) -> None:
    words = list(isolated_module("tui_agent.web.markdown", "https://example.org/"))
    done = start(words, project, PYTHONPATH=".", PYTHONSAFEPATH="")
    assert (done.returncode, done.stderr) == (0, "")
    assert ran(project) == set()
