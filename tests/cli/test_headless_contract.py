"""What scripts around a run without a screen rely on: events, arguments, exit codes."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.headless import run_headless
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.cli import main
from tui_agent.cli.output import ExitCode

ROOT = Path(__file__).parents[2]


async def test_running_out_of_steps_is_no_success(tmp_path: Path) -> None:
    client = ScriptedClient([Reply(calls=(Call("ls", "{}"),)), Reply("I have to stop.")])
    harness = make_agent(tmp_path, client, answer=None, max_steps=1)
    out, err = io.StringIO(), io.StringIO()
    assert await run_headless(harness, "go", out=out, err=err) == ExitCode.STOPPED
    assert "To go on: tui-agent -c" in err.getvalue()


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply("Half of it", finish="length"), "The answer was cut off"),
        (Reply("Half of it", finish="content_filter"), "content filter"),
        (Reply("", reasoning="I think."), "nothing besides its thinking"),
    ],
)
async def test_an_answer_that_is_not_whole_is_no_success(tmp_path: Path, reply: Reply, why: str) -> None:
    harness = make_agent(tmp_path, ScriptedClient([reply]), answer=None)
    out, err = io.StringIO(), io.StringIO()
    assert await run_headless(harness, "go", out=out, err=err) == ExitCode.STOPPED
    assert why in err.getvalue()
    assert out.getvalue().strip() == reply.text


def test_an_open_standard_input_is_told_of(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    script = "import sys; from tui_agent.cli import main; main.STDIN_PATIENCE = 0.05; sys.exit(main.run(sys.argv[1:]))"
    own = {"TUI_AGENT_DATA_DIR": str(tmp_path / "data"), "TUI_AGENT_CONFIG_DIR": str(tmp_path / "config")}
    with subprocess.Popen(
        [sys.executable, "-c", script, "--demo", "-p", "hello"],
        cwd=tmp_path, env={**os.environ, **own, "PYTHONPATH": str(ROOT)},
        stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        os.close(reader)
        assert process.stderr is not None
        assert process.stderr.readline() == f"{main.STILL_OPEN}\n"
        os.close(writer)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "I am a script" in out
