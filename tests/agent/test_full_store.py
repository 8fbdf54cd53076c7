"""What a run does with messages and answers that the store does not take."""

from pathlib import Path

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.events import QueueChanged
from tui_agent.session.entries import AssistantEntry, UserEntry

LONG = "word " * 40_000
"""More than the rest of a page."""


def leave_room(harness: Harness, pages: int) -> None:
    """Let the session file grow by so many pages at most."""
    with harness.store.reader() as connection:
        taken = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {taken + pages}").fetchone()


async def test_a_message_that_can_not_be_stored_waits_for_its_turn(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, ScriptedClient([Reply("Hello."), Reply("Here you are.")]))
    await harness.say("hi")
    leave_room(harness, 0)
    ended = await harness.say(LONG)
    assert ended.reason == "error"
    assert "no room left" in (ended.error or "")
    assert harness.of(QueueChanged)[-1].steer == (LONG,)
    leave_room(harness, 1_000_000)
    assert (await harness.say("and this")).reason == "done"
    assert [entry.text for entry in harness.path() if isinstance(entry, UserEntry)] == ["hi", LONG, "and this"]


async def test_an_answer_that_can_not_be_stored_is_stored_later_and_not_asked_for_again(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, client := ScriptedClient([Reply("Hello."), Reply(LONG)]))
    await harness.say("hi")
    leave_room(harness, 20)
    assert (await harness.say("a long one, please")).reason == "error"
    assert len(client.requests) == 2
    leave_room(harness, 1_000_000)
    harness.agent.retry()
    assert (await harness.ended()).reason == "done"
    assert len(client.requests) == 2
    answers = [entry.text for entry in harness.path() if isinstance(entry, AssistantEntry)]
    assert answers == ["Hello.", LONG]
