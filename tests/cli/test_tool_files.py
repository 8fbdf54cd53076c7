"""Tool files in a run without a screen: trusted ones are called, /tools and doctor tell of them, others stay unread."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.model_script import Call, Turn
from tests.support.model_server import ModelServer, serving

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving() as running:
        yield running


@pytest.fixture
def work(tmp_path: Path, server: ModelServer) -> Path:
    project = tmp_path / "work"
    tools = project / ".tui-agent" / "tools"
    tools.mkdir(parents=True)
    (project / ".git").mkdir()
    (tools / "echo.py").write_text("def shout(text: str) -> str:\n    'Shout a text.'\n    return text.upper()\n")
    (tools / "broken.py").write_text("import os\n\nimport nothing_like_it\n")
    (tmp_path / "config").mkdir()
    table = f'[models."openai/m"]\nbase_url = "{server.openai_url}"\ncontext_window = 32000\n'
    (tmp_path / "config" / "config.toml").write_text(f'model = "openai/m"\n{table}')
    return project


def tui_agent(work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    home = work.parent
    environ = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(home),
        "TUI_AGENT_CONFIG_DIR": str(home / "config"), "TUI_AGENT_DATA_DIR": str(home / "data"),
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "tui_agent", *arguments],
        cwd=work, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip


def offered(server: ModelServer) -> list[str]:
    return [tool["function"]["name"] for tool in server.calls[0].json["tools"]]


def test_a_trusted_projects_function_is_called(work: Path, server: ModelServer) -> None:
    server.play(Turn(tool_calls=[Call("shout", '{"text": "hey"}')]), Turn("It says HEY."))

    done = tui_agent(work, "-p", "shout", "--trust", "--json")

    assert done.returncode == 0, done.stderr
    assert "shout" in offered(server)
    results = [message["content"] for message in server.calls[-1].json["messages"] if message["role"] == "tool"]
    assert results == ["HEY"]
    said = [json.loads(line) for line in done.stdout.splitlines()]
    notices = [event["message"] for event in said if "broken.py" in str(event.get("message"))]
    assert len(notices) == 1
    assert ".tui-agent/tools/broken.py:3: ModuleNotFoundError" in notices[0]


def test_one_that_is_not_trusted_is_not_read_and_that_is_said(work: Path, server: ModelServer) -> None:
    server.play(Turn("no such tool"))

    done = tui_agent(work, "-p", "shout")

    assert done.returncode == 0, done.stderr
    assert "shout" not in offered(server)
    assert done.stderr.count("Tools of this project are not read") == 1
    assert "broken.py" not in done.stderr


def test_one_that_can_not_be_trusted_says_why(work: Path, server: ModelServer) -> None:
    (work / ".tui-agent" / "tools" / "loop.py").symlink_to("loop.py")
    server.play(Turn(text="Done."))
    ran = tui_agent(work, "-p", "Shout.", "--trust")
    assert "loop.py cannot be read" in ran.stdout + ran.stderr
    assert "shout" not in offered(server)


def test_tools_and_doctor_tell_of_them(work: Path) -> None:
    listed = tui_agent(work, "-p", "/tools", "--trust")
    assert ".tui-agent/tools/echo.py" in listed.stdout
    assert "shout: Shout a text." in listed.stdout
    assert "broken.py:3: ModuleNotFoundError: No module named 'nothing_like_it'" in listed.stdout

    state = work.parent / "data" / "trust.json"
    assert not state.exists()
    asked = tui_agent(work, "doctor")
    assert "Not active: 2 tools" in asked.stdout
    assert "shout" not in asked.stdout


def test_doctor_names_the_line_of_a_users_file(work: Path) -> None:
    own = work.parent / "config" / "tools"
    own.mkdir()
    (own / "mine.py").write_text("def one(number: int) -> int:\n    'Give it back.'\n    return number\n")
    (own / "wrong.py").write_text("\n\ndef (:\n")
    done = tui_agent(work, "doctor")
    assert done.returncode == 1
    assert "mine.py: one" in done.stdout
    assert "wrong.py:3: " in done.stdout
