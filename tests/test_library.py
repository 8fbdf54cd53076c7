"""The library as docs/library.md tells of it: what is public, its example, its blocks, what it leaves alone."""

import ast
import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tui_agent
from tests.support.drawn import drawn
from tests.support.model_script import Call, Turn
from tests.support.model_server import ModelServer
from tests.support.parsed import parsed
from tui_agent import (
    Agent,
    AgentEvent,
    AnswerDelta,
    AssistantEntry,
    LibraryError,
    PermissionRequest,
    Session,
    ToolOutput,
    ToolResultEntry,
    UserFacingError,
)

ROOT = Path(__file__).parent.parent
DOCUMENT = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
EXAMPLE = ROOT / "docs" / "examples" / "library" / "word_count.py"
ADDRESS = "http://localhost:11434/v1"
LOADED = "\nimport sys; print('LOADED', sorted({name.partition('.')[0] for name in sys.modules}))"
PNG = drawn()


def run_program(text: str, cwd: Path, *arguments: str) -> str:
    """Run a program as a user of the library would, with a home of its own; returns what it prints."""
    home = cwd / "home"
    home.mkdir(exist_ok=True)
    (cwd / "program.py").write_text(text)
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "program.py", *arguments],
        cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not any(home.rglob("*.toml")), "nothing of the user's is made"
    return done.stdout


def public_imports(text: str) -> set[str]:
    names = set()
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tui_agent"):
            assert node.module == "tui_agent"
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("tui_agent.") for alias in node.names)
    return names


def test_public_names_are_the_ones_documented() -> None:
    documented = re.findall(r"`(\w+)`", DOCUMENT.partition("## Public names")[2])

    assert sorted(documented) == sorted(tui_agent.__all__)
    assert all(getattr(tui_agent, name) is not None for name in documented)
    assert (ROOT / "tui_agent" / "py.typed").is_file()
    with pytest.raises(AttributeError):
        _ = tui_agent.no_such_name


def test_importing_the_package_loads_nothing_of_the_program() -> None:
    program = "import sys; before = set(sys.modules); import tui_agent; print(sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "['tui_agent', 'tui_agent.version']"


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_blocks_of_the_document_run(block: str, tmp_path: Path, server: ModelServer) -> None:
    public_imports(block)
    server.play(Turn("Hello there."))

    said = run_program(block.replace(ADDRESS, server.openai_url) + LOADED, tmp_path)

    assert not {"textual", "litellm", "openai"} & set(
        ast.literal_eval(said.rpartition("LOADED ")[2])
    )
    assert len(said.rpartition("LOADED")[0]) > 3, "it shows something"


def test_the_example_calls_a_function_and_imports_only_what_is_public(
    tmp_path: Path, server: ModelServer
) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    server.play(
        Turn(tool_calls=[Call("count_words", '{"text": "to be or not to be"}')]),
        Turn("It has six words."),
    )

    said = run_program(text + LOADED, tmp_path, "some-model", server.openai_url)

    assert public_imports(text) <= set(tui_agent.__all__)
    assert sum(bool(line.strip()) for line in text.splitlines()) <= 30
    assert "[count_words " in said
    assert "It has six words." in said
    assert "'tool_result'" in said
    results = [
        message for message in server.calls[-1].json["messages"] if message["role"] == "tool"
    ]
    assert '"words": 6' in results[0]["content"]
    assert not {"textual", "litellm", "openai"} & set(
        ast.literal_eval(said.rpartition("LOADED ")[2])
    )
    assert (tmp_path / "words.db").is_file()


async def test_what_no_rule_allows_is_refused_or_asked(tmp_path: Path, server: ModelServer) -> None:
    write = Turn(tool_calls=[Call("write", '{"path": "new.txt", "content": "x"}')])
    asked: list[PermissionRequest] = []

    async def ask(request: PermissionRequest) -> bool:
        asked.append(request)
        await asyncio.sleep(0)
        return True

    for chosen, there in ((None, False), (ask, True)):
        server.play(write, Turn("done"))
        with Session(cwd=tmp_path) as session:
            async with Agent("m", base_url=server.openai_url, session=session, ask=chosen) as agent:
                turn = await agent.send("write")
            assert (turn.text, turn.ok) == ("done", True)
            assert (tmp_path / "new.txt").exists() is there
    assert [request.tool for request in asked] == ["write"]


async def test_what_ask_raises_is_raised_to_the_caller(tmp_path: Path, server: ModelServer) -> None:
    server.play(
        Turn(tool_calls=[Call("write", '{"path": "new.txt", "content": "x"}')]), Turn("done")
    )

    def ask(request: PermissionRequest) -> bool:
        raise KeyError(request.tool)

    with Session(cwd=tmp_path) as session:
        async with Agent("m", base_url=server.openai_url, session=session, ask=ask) as agent:
            with pytest.raises(KeyError):
                await agent.send("write")
            assert not (tmp_path / "new.txt").exists()
            server.play(Turn("fine"))
            assert (await agent.send("again")).text == "fine"


async def test_tools_may_be_asynchronous_give_images_and_fail(server: ModelServer) -> None:
    async def draw(size: int) -> list[object]:
        """Draw a picture."""
        await asyncio.sleep(0)
        return [f"{size} wide", PNG]

    def fail() -> str:
        """Do what can't be done."""
        raise RuntimeError("the printer is on fire")

    calls = [
        Call("draw", '{"size": 3}', "a"),
        Call("fail", "{}", "b"),
        Call("draw", '{"size": "wide"}', "c"),
    ]
    server.play(Turn(tool_calls=calls), Turn("seen"))
    async with Agent(
        "m", base_url=server.openai_url, tools=[draw, fail], builtin_tools=[]
    ) as agent:
        turn = await agent.send("draw")

    results = {entry.call_id: entry for entry in turn.entries if isinstance(entry, ToolResultEntry)}
    drawn, failed, wrong = results["a"], results["b"], results["c"]
    assert drawn.output.startswith("3 wide")
    assert (
        drawn.attachments[0].mime == "image/png"
        if drawn.attachments
        else "takes no images" in drawn.output
    )
    assert failed.output == "RuntimeError: the printer is on fire"
    assert "size: input should be a valid integer" in wrong.output
    offered = [tool["function"] for tool in server.calls[0].json["tools"]]
    assert [tool["name"] for tool in offered] == ["draw", "fail"]
    assert offered[0]["parameters"] == {
        "type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"],
    }  # fmt: skip


async def test_functions_of_a_file_run_in_processes_of_their_own(
    tmp_path: Path, server: ModelServer
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import os\ndef pid() -> int:\n    'Tell.'\n    print('telling')\n    return os.getpid()\n"
    )
    server.play(Turn(tool_calls=[Call("pid", "{}")]), Turn("done"))
    printed: list[str] = []

    def listen(event: AgentEvent) -> None:
        if isinstance(event, ToolOutput):
            printed.append(event.text)

    with Session(cwd=tmp_path) as session:
        async with Agent(
            "m", base_url=server.openai_url, session=session, tools=[file], ask=lambda _: True
        ) as agent:
            turn = await agent.send("tell", listen)

    (result,) = [entry for entry in turn.entries if isinstance(entry, ToolResultEntry)]
    assert int(result.output) != os.getpid()
    assert "telling" in "".join(printed)


@pytest.mark.parametrize("closes", [True, False])
async def test_leaving_the_events_interrupts_and_the_session_goes_on(
    server: ModelServer, closes: bool
) -> None:
    server.play(Turn("one two three four five six", delay=0.05))
    with Session() as session:
        async with Agent("m", base_url=server.openai_url, session=session) as agent:
            events = agent.run("count")
            async for event in events:
                if isinstance(event, AnswerDelta):
                    break
            if closes:
                await events.aclose()
                assert session.path()[-1].kind == "assistant"
            del events  # one that was only left is closed by asyncio, in a task of its own
            server.play(Turn("fine"))
            turn = await agent.send("again")
            assert (turn.reason, turn.text) == ("done", "fine")


async def test_branches_moves_and_requests_are_those_of_the_tree(server: ModelServer) -> None:
    server.play(Turn("first"), Turn("second"))
    with Session() as session:
        async with Agent(
            "m", base_url=server.openai_url, session=session, instructions="Speak plainly."
        ) as agent:
            first = await agent.send("question")
            before = await agent.request()
            await agent.move(first.entries[-1].parent_id)
            second = await agent.send("another")
            assert session.leaf == second.entries[-1].id
            assert [
                entry.text for entry in session.path() if isinstance(entry, AssistantEntry)
            ] == ["second"]
            assert len(session.tree()) == 5
            assert await agent.undo() == first.entries[-1].parent_id
            assert await agent.undo() == first.entries[-1].id
            assert (await agent.request()).messages == before.messages
            assert any("Speak plainly." in str(message) for message in before.messages)


def test_a_session_is_found_again_and_a_missing_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    with Session(file, cwd=tmp_path) as session, Agent("demo", session=session) as agent:
        agent.wait(agent.send("hello"))
        known = session.id
    with pytest.raises(LibraryError, match="inside"):
        agent.wait(agent.send("hello"))
    with Session(file, id=known[-8:]) as session:
        assert session.cwd == tmp_path
        assert session.path()[-1].kind == "assistant"
    with pytest.raises(UserFacingError):
        Session(file, id="nothing-like-it")


def same(text: str) -> str:
    """Return a text."""
    return text


def read(path: str) -> str:
    """Read."""
    return path


def untyped(path) -> str:  # type: ignore[no-untyped-def]
    """Read."""
    return str(path)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tools": [read]}, "built-in tool"),
        ({"builtin_tools": ["rread"]}, "no built-in tool “rread”"),
        ({"builtin_tools": ["remember"]}, "no built-in tool “remember”"),
        ({"tools": [untyped]}, "argument path has no type"),
        ({"allow": ["nonsense"]}, "is not a permission"),
        ({"tools": [same, same]}, "Two functions are called “same”"),
        ({"tools": ["missing.py"]}, "There is no tool file .*missing.py"),
        ({"tools": "words.py"}, "tools takes a list"),
        (
            {"mode": "careful"},
            "There is no mode “careful”. Use one of: build, auto-edit, plan, yolo",
        ),
        ({"sandbox": "strict"}, "mode: .*not 'strict'"),
        ({"max_cost": 0}, "max_cost has to be more than 0, not 0"),
    ],
)
def test_what_it_can_not_use_is_named_at_once(given: dict[str, Any], said: str) -> None:
    with pytest.raises(LibraryError, match=said):
        Agent("demo", **given)


async def test_a_plain_with_in_an_event_loop_says_what_to_write() -> None:
    with pytest.raises(LibraryError, match="async with"), Agent("demo"):
        pass


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ({"max_tokens": 10}, "0 of 10 tokens are used"),
        ({"max_cost": 1.0}, "the price of openai/m is unknown"),
        ({"timeout": 0.2}, "time limit of 0.2 s for this run is reached"),
    ],
)
async def test_a_message_may_use_up_so_much_and_the_session_goes_on(
    limit: dict[str, Any], said: str, server: ModelServer
) -> None:
    long = Turn(text="one two three four five six seven eight nine ten", delay=0.5)
    server.play_function(lambda request: Turn(text="and on") if request.prompt == "again" else long)
    with Session() as session:
        async with Agent(
            "m", session=session, base_url=server.openai_url, context_window=32_000, **limit
        ) as agent:
            turn = await agent.send("hello")
        assert turn.reason == "budget"
        assert said in (turn.error or "")
        assert "timeout" in limit or not server.requests
        async with Agent(
            "m", session=session, base_url=server.openai_url, context_window=32_000
        ) as agent:
            assert (await agent.send("again")).text == "and on"
