"""What runs unasked is really harmless: random commands judged free are run, and nothing else starts or changes."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.bypass_project import make_project
from tui_agent.agent.permissions import DEFAULT_RULES, Action, decide
from tui_agent.tools.shell.needs import command_needs

STRANGER = "zqstranger"
"""A program nobody listed; it leaves a mark when it runs."""

PIECES = st.sampled_from(
    [
        "ls", "cat", "echo", "head", "wc", "git log", "find .", "sed -n", "p", "sort", "-o", "grep -r",
        "awk", "true", "test",
        STRANGER, f"$({STRANGER})", f"`{STRANGER}`", f";{STRANGER}", f"\n{STRANGER}",
        f"|{STRANGER}", f"&{STRANGER}",
        "README.md", "src/app.py", "-l", "x", "$x", '"$x"', "'a b'", "a\\ b", "$(", "`", ")", "(", "((", "))", "{", "}",
        ";", ";;", "&", "&&", "|", "||", "\n", " ",
        "#", " # ", "!", "<", ">", ">>", "<<EOF", "<<'EOF'", "EOF", "\nEOF\n",
        "<<<", "2>&1", "/dev/null", "<(", ">(", "[", "[[", "]]", "]", "if", "then", "fi", "for x in a", "do", "done",
        "while", "case x in", "x)", "esac", "f()", "A=1", "${x}", "${x:-", "${x@P}", "$((", "\\", "\\\n",
        "\\ ", "'", '"',
        "$'", "*", "{a,b}", "eval", "sh -c", "time", "-exec", "\\;", "xargs", "env", "command", "exec", ".env",
    ]
)  # fmt: skip


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("free")
    make_project(root)
    (root / "bin").mkdir()
    stranger = root / "bin" / STRANGER
    stranger.write_text(f"#!/bin/sh\necho ran >> '{root}/mark'\n")
    stranger.chmod(0o755)
    return root


def contents(project: Path) -> list[tuple[str, bytes]]:
    return [
        (str(path), path.read_bytes())
        for path in sorted(project.rglob("*"))
        if path.is_file() and ".git/" not in str(path)
    ]


@settings(max_examples=1_500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.tuples(PIECES, st.sampled_from(["", " "])), min_size=1, max_size=10))
def test_what_is_free_starts_no_stranger_and_changes_nothing(ground: Path, parts: list[tuple[str, str]]) -> None:
    project = ground / "project"
    command = "".join(piece + space for piece, space in parts)
    if any(decide(need, DEFAULT_RULES).action is not Action.ALLOW for need in command_needs(command, project, project)):
        return
    before = contents(project)
    environment = {"PATH": f"{ground / 'bin'}:{os.defpath}", "HOME": str(ground)}
    subprocess.run(
        ["timeout", "-k", "1", "3", "bash", "-c", command],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert not (ground / "mark").exists(), command
    assert contents(project) == before, command


def test_the_stranger_leaves_its_mark_when_it_runs(ground: Path) -> None:
    environment = {"PATH": f"{ground / 'bin'}:{os.defpath}"}
    subprocess.run(["bash", "-c", STRANGER], env=environment, check=True)
    assert (ground / "mark").exists()
    (ground / "mark").unlink()
