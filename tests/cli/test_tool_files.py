"""Tool files in a run without a screen: trusted ones are called, /tools and doctor tell of them, others stay unread."""

import json
from pathlib import Path

import pytest

from tests.support.in_process import Run
from tests.support.model_script import Call, Turn
from tests.support.model_server import ModelServer


@pytest.fixture(autouse=True)
def work(here: Path) -> Path:
    tools = here / ".tui-agent" / "tools"
    tools.mkdir(parents=True)
    (here / ".git").mkdir()
    (tools / "echo.py").write_text(
        "def shout(text: str) -> str:\n    'Shout a text.'\n    return text.upper()\n"
    )
    (tools / "broken.py").write_text("import os\n\nimport nothing_like_it\n")
    return here


def offered(server: ModelServer) -> list[str]:
    return [tool["function"]["name"] for tool in server.calls[0].json["tools"]]


def test_a_trusted_projects_function_is_called(tui_agent: Run, server: ModelServer) -> None:
    server.play(Turn(tool_calls=[Call("shout", '{"text": "hey"}')]), Turn("It says HEY."))

    done = tui_agent("-p", "shout", "--trust", "--json")

    assert done.code == 0, done.err
    assert "shout" in offered(server)
    results = [
        message["content"]
        for message in server.calls[-1].json["messages"]
        if message["role"] == "tool"
    ]
    assert results == ["HEY"]
    said = [json.loads(line) for line in done.out.splitlines()]
    notices = [event["message"] for event in said if "broken.py" in str(event.get("message"))]
    assert len(notices) == 1
    assert ".tui-agent/tools/broken.py:3: ModuleNotFoundError" in notices[0]


def test_one_that_is_not_trusted_is_not_read_and_that_is_said(
    tui_agent: Run, server: ModelServer
) -> None:
    server.play(Turn("no such tool"))

    done = tui_agent("-p", "shout")

    assert done.code == 0, done.err
    assert "shout" not in offered(server)
    assert done.err.count("This project's tools are not loaded") == 1
    assert "broken.py" not in done.err


def test_one_that_can_not_be_trusted_says_why(
    work: Path, tui_agent: Run, server: ModelServer
) -> None:
    (work / ".tui-agent" / "tools" / "loop.py").symlink_to("loop.py")
    server.play(Turn(text="Done."))
    ran = tui_agent("-p", "Shout.", "--trust")
    assert "loop.py cannot be read" in ran.out + ran.err
    assert "shout" not in offered(server)


def test_tools_and_doctor_tell_of_them(work: Path, tui_agent: Run) -> None:
    own = work.parent / "config" / "tools"
    own.mkdir()
    (own / "mine.py").write_text(
        "def one(number: int) -> int:\n    'Give it back.'\n    return number\n"
    )
    (own / "wrong.py").write_text("\n\ndef (:\n")
    listed = tui_agent("-p", "/tools", "--trust")
    assert "one: Give it back." in listed.out
    assert "wrong.py:3: " in listed.out
    assert ".tui-agent/tools/echo.py" in listed.out
    assert "shout: Shout a text." in listed.out
    assert "broken.py:3: ModuleNotFoundError: No module named 'nothing_like_it'" in listed.out

    state = work.parent / "data" / "trust.json"
    assert not state.exists()
    asked = tui_agent("doctor")
    assert "Not active: 2 tools" in asked.out
    assert "shout" not in asked.out


def test_skills_and_agents_are_read_before_they_are_listed(work: Path, tui_agent: Run) -> None:
    for path, kind in (("skills/tidy/SKILL.md", "name: tidy"), ("agents/poet.md", "mode: primary")):
        (work.parent / "config" / path).parent.mkdir(parents=True)
        (work.parent / "config" / path).write_text(
            f"---\n{kind}\ndescription: tidies\n---\nTidy.\n"
        )
    assert "tidy" in tui_agent("-p", "/skills").out
    assert tui_agent("-p", "/agent poet").err == ""
