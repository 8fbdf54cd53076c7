"""``compaction.style = "notes"``: the model keeps notes and opens new windows from them."""

import json
from pathlib import Path
from typing import Any

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.context.request import ModelRequest
from tui_agent.context.settings import CompactionSettings, ContextSettings
from tui_agent.session.entries import CompactionEntry, ToolResultEntry, UserEntry
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.window import WindowTool, window_notes

NOTES = "## Goal\nPort the parser.\n## Done\n- lexer.py\n## Next\n- grammar.py, line 212"


def is_summary_call(request: ModelRequest) -> bool:
    return not request.tools


def window(notes: str = "", *, opens: bool = False) -> Reply:
    return Reply(calls=(Call("window", json.dumps({"notes": notes, "open": opens})),))


def begin(tmp_path: Path, client: ScriptedClient, *, window_tokens: int = 20_000, **compaction: Any) -> Harness:
    settings = ContextSettings(compaction=CompactionSettings(style="notes", **compaction))
    tools = (*builtin_tools(), WindowTool(lambda: True))
    return make_agent(tmp_path, client, settings=settings, tools=tools, window=window_tokens)


def compactions(harness: Harness) -> list[CompactionEntry]:
    return [entry for entry in harness.agent.session.path() if isinstance(entry, CompactionEntry)]


async def test_the_model_opens_a_window_that_begins_with_its_notes(tmp_path: Path) -> None:
    replies = [*(Reply("word " * 700 + str(n)) for n in range(6)), window(NOTES, opens=True), Reply("Going on.")]
    client = ScriptedClient(replies)
    harness = begin(tmp_path, client)
    for number in range(6):
        await harness.say(f"Message {number}.")
    before = harness.agent.context_size().total

    ended = await harness.say("Go on with the grammar.")

    (made,) = compactions(harness)
    assert ended.reason == "done"
    assert (made.trigger, made.style, made.model) == ("notes", "notes", None)
    assert made.summary.startswith(NOTES)
    assert NOTES in "\n".join(message.text for message in client.requests[-1].messages)
    assert not any(map(is_summary_call, client.requests)), "no summariser was paid"
    assert harness.agent.context_size().total < before
    assert "recall" in {tool.name for tool in client.requests[-1].tools}
    assert harness.agent.session.search("Message 0", 5), "the old window stays searchable"


async def test_a_full_window_is_followed_by_one_from_the_notes_as_they_are(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> Reply:
        last = request.messages[-1].text
        return window(NOTES) if "keep notes" in last else Reply("word " * 700)

    client = ScriptedClient(script)
    harness = begin(tmp_path, client)
    await harness.say("keep notes")
    for number in range(20):
        await harness.say(f"Message {number}. " + "detail " * 300)
        if compactions(harness):
            break

    made = compactions(harness)[0]
    assert made.trigger == "threshold"
    assert made.summary.startswith(NOTES)
    assert len(made.summary) > len(NOTES), "what came after the notes is told by rule"
    assert not any(map(is_summary_call, client.requests))
    told = [
        entry.text
        for entry in harness.agent.session.path()
        if isinstance(entry, UserEntry) and entry.synthetic == "room"
    ]
    assert 1 <= len(told) <= 3
    assert "tokens of room are left" in told[0]


async def test_going_back_and_branches_carry_their_own_notes(tmp_path: Path) -> None:
    client = ScriptedClient(
        [window("First."), Reply("ok"), window("Second."), Reply("ok"), window("Third."), Reply("ok")]
    )
    harness = begin(tmp_path, client)
    session = harness.agent.session
    await harness.say("one")
    place = session.leaf
    await harness.say("two")
    assert window_notes(session.path())[0] == "Second."  # type: ignore[index]
    session.move(place)
    assert window_notes(session.path())[0] == "First."  # type: ignore[index]
    await harness.say("three")
    assert window_notes(session.path())[0] == "Third."  # type: ignore[index]


async def test_the_model_sees_how_much_room_is_left(tmp_path: Path) -> None:
    harness = begin(tmp_path, ScriptedClient([window("First."), Reply("ok")]))
    await harness.say("one")
    (result,) = (entry for entry in harness.path() if isinstance(entry, ToolResultEntry))

    assert result.output.startswith("Noted. About 1")
    assert "tokens of room are left" in result.output


async def test_a_window_without_notes_is_refused(tmp_path: Path) -> None:
    harness = begin(tmp_path, ScriptedClient([window(opens=True), Reply("ok")]))
    await harness.say("one")
    (result,) = (entry for entry in harness.path() if isinstance(entry, ToolResultEntry))

    assert "Write the notes" in result.output
    assert not compactions(harness)


async def test_the_tool_is_offered_with_that_style_only(tmp_path: Path) -> None:
    client = ScriptedClient([Reply("ok")])
    harness = make_agent(tmp_path, client, tools=(*builtin_tools(), WindowTool(lambda: False)))
    await harness.say("one")

    assert "window" not in {tool.name for tool in client.requests[0].tools}
