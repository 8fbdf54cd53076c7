"""What files tell the agent, through the whole program: what a provider is really sent."""

import itertools
import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.knowledge import EXAMPLES, skill, write
from tests.support.model_script import Call, Fault, Turn
from tests.support.model_server import ModelServer
from tests.support.place import MODEL, Place
from tests.support.wire_blocks import blocks
from tui_agent.context.tokens import TokenCounter

FIRST_REQUEST_TOKENS = 2_500
"""QUALITY.md's limit for the first request with every built-in tool."""


@pytest.fixture(autouse=True)
def _nothing_is_left(place: Place) -> Iterator[None]:
    """Take away what a test puts beside the configuration: the place is shared."""
    yield
    (place.root / "config/AGENTS.md").unlink(missing_ok=True)
    for folder in ("config/commands", "config/prompts", "config/agents", ".claude"):
        shutil.rmtree(place.root / folder, ignore_errors=True)


def sent(server: ModelServer) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(server.calls[-1].body)
    return body


def test_the_first_request_with_everything_built_in_is_small(
    place: Place, warm_server: ModelServer
) -> None:
    skill(place.project / ".agents/skills")
    warm_server.play(Turn(text="Hello."))
    assert place.run("-p", "hi", "--trust").returncode == 0
    body = sent(warm_server)
    tools = [tool["function"] for tool in body["tools"]]
    assert {"read", "bash", "task", "skill", "todo", "recall"} <= {tool["name"] for tool in tools}
    counter = TokenCounter("openai/gpt-4o")
    text = json.dumps({"tools": body["tools"], "messages": body["messages"]}, ensure_ascii=False)
    assert counter.text(text) <= FIRST_REQUEST_TOKENS


def test_prompt_instructions_commands_skills_and_files_reach_the_model(
    place: Place, warm_server: ModelServer
) -> None:
    write(place.project / "AGENTS.md", "Use tabs in this project.")
    write(place.root / "config/AGENTS.md", "The user prefers short answers.")
    write(place.root / "config/prompts/system.md", "You are a parrot.")
    write(
        place.root / "config/commands/explain.md",
        "Explain @notes.txt to !`echo a child`. $ARGUMENTS",
    )
    write(place.project / "notes.txt", "relativity")
    skill(place.root / ".claude/skills", "slides", "Use it for slides.")
    warm_server.play(Turn(text="Well."))
    assert place.run("-p", "/explain slowly").returncode == 0
    messages = json.dumps(sent(warm_server)["messages"], ensure_ascii=False)
    for piece in (
        "You are a parrot.", "Use tabs in this project.", "prefers short answers", "- slides: Use it for slides.",
        "to a child. slowly", "relativity",
    ):  # fmt: skip
        assert piece in messages
    assert "You are tui-agent" not in messages


def test_an_agent_of_the_users_is_named_on_the_command_line(
    place: Place, warm_server: ModelServer
) -> None:
    shutil.copytree(EXAMPLES / "agents", place.root / "config/agents")
    warm_server.play(Turn(text="No mistakes."))
    assert place.run("-p", "hi", "--agent", "reviewer").returncode == 0
    body = sent(warm_server)
    assert '"You review changes to code.' in json.dumps(body["messages"][0]["content"])
    assert {tool["function"]["name"] for tool in body["tools"]} == {
        "read",
        "grep",
        "glob",
        "bash",
        "recall",
    }
    wrong = place.run("-p", "hi", "--mode", "poet")
    assert wrong.returncode == 2
    assert "There is no mode or primary agent “poet”. Choose one of: build" in wrong.stderr
    assert "reviewer" in wrong.stderr


def test_a_missing_file_is_said_and_the_message_sent(
    place: Place, warm_server: ModelServer
) -> None:
    warm_server.play(Turn(text="Which?"))
    done = place.run("-p", "look at @src/gone.py")
    assert done.returncode == 0
    assert "no such file: src/gone.py" in done.stderr
    assert "@src/gone.py" in json.dumps(sent(warm_server)["messages"])


def test_a_project_nobody_trusts_runs_nothing(place: Place, warm_server: ModelServer) -> None:
    write(place.project / ".tui-agent/commands/run.md", "Ran !`touch ran`")
    done = place.run("-p", "/run")
    assert done.returncode == 1
    assert "Trust the project first" in done.stderr
    assert not (place.project / "ran").exists()


CLAUDE = "anthropic/claude-sonnet-4-5"


@pytest.mark.parametrize("model", [CLAUDE, pytest.param(MODEL, marks=pytest.mark.nightly)])
def test_each_process_goes_on_with_the_bytes_of_the_one_before(
    place: Place, warm_server: ModelServer, model: str
) -> None:
    place.configure(
        warm_server.openai_url,
        more=f'[models."{CLAUDE}"]\nbase_url = "{warm_server.url}"\napi_key = "sk-of-the-test"\n',
    )
    write(place.project / "AGENTS.md", "Be careful.")
    write(place.project / "sub" / "AGENTS.md", "Be very careful here.")
    write(place.project / "sub" / "file.txt", "text\n")
    warm_server.play(
        Turn(
            text="I look.", reasoning="Where?", tool_calls=(Call("read", {"path": "sub/file.txt"}),)
        ),
        Turn(text="First."),
        Turn(text="Second, it goes on and on.", fault=Fault("stall", after=6)),
        Turn(tool_calls=(Call("bash", {"command": "echo it runs; sleep 9"}),)),
        Turn(text="Third."),
        Turn(text="Fourth."),
    )
    common = ("--allow", "bash", "-m", model)
    assert place.run("-p", "the first", *common).returncode == 0
    write(place.project / "AGENTS.md", "Be careful, from now on.")
    place.killed("answer_delta", "-c", "-p", "the second", *common)
    place.killed("tool_output", "-c", "-p", "the third", *common)
    assert place.run("-c", "-p", "the fourth", *common).returncode == 0
    assert place.run("-c", "-p", "the fifth", *common).returncode == 0
    sent = [blocks(request.json) for request in warm_server.calls]
    assert len(sent) == 6
    for before, after in itertools.pairwise(sent):
        assert after[: len(before)] == before
    whole = "\n".join(sent[-1])
    assert "Be careful." in whole
    assert "interrupted" in whole
    assert "the fifth" in sent[-1][-1]


def test_what_is_kept_is_sent_in_later_sessions_and_what_is_proposed_is_not(
    place: Place, warm_server: ModelServer
) -> None:
    place.move_to_new_project()
    note = Call("remember", {"note": "ports: The server listens on 8081."})
    warm_server.play(Turn(tool_calls=(note,)), Turn(text="Proposed."), Turn(text="Hello."))
    done = place.run("-p", "which port is it?")
    assert done.returncode == 0
    assert "Proposed for the memory: 1 line. Decide with /memory." in done.stderr
    assert place.run("-p", "hi").returncode == 0
    assert "8081" not in json.dumps(sent(warm_server)["messages"])
    assert "+ ports: The server listens on 8081." in place.run("-p", "/memory").stdout
    assert place.run("-p", "/memory take ports").returncode == 0
    warm_server.play(Turn(text="Hello."))
    assert place.run("-p", "hi").returncode == 0
    assert "- ports: The server listens on 8081." in json.dumps(sent(warm_server)["messages"])
    assert not list(place.project.iterdir()), "nothing is written into the project"
    place.move_to_new_project()
    warm_server.play(Turn(text="Hello."))
    assert place.run("-p", "hi").returncode == 0
    assert "8081" not in json.dumps(sent(warm_server)["messages"])
