"""An answer that says the same again and again is stopped, told and asked about."""

from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.events import AnswerDelta, Decision, Notice, PermissionAnswer, PermissionAsked, ReasoningProgress
from tui_agent.agent.permissions import Action, Rule
from tui_agent.app.permission_text import question
from tui_agent.session.entries import AssistantEntry, UserEntry

SENTENCE = "I will look at the file once more, because the error may come from there. "
BEGINNING = "The test fails in line 12. "


def replies(times: int = 1) -> ScriptedClient:
    return ScriptedClient([*([Reply(BEGINNING + SENTENCE * 400)] * times), Reply("It was the cache.")])


@pytest.mark.parametrize("part", ["text", "reasoning"])
async def test_it_is_stopped_cut_and_asked_about(tmp_path: Path, part: str) -> None:
    said = {part: BEGINNING + SENTENCE * 400}
    note = PermissionAnswer(Decision.DENY, note="Look at the cache.")
    harness = make_agent(tmp_path, [Reply(**said), Reply("It was the cache.")], answer=note, rules=())

    ended = await harness.say("why does it fail?")

    asked = next(event.request for event in harness.events if isinstance(event, PermissionAsked))
    path = harness.agent.session.active_path()
    stopped, answer = (entry for entry in path if isinstance(entry, AssistantEntry))
    told = next(entry for entry in path if isinstance(entry, UserEntry) and entry.synthetic == "repeating")
    assert ended.reason == "done"
    assert question(asked) == "The model is repeating itself. Let it continue?"
    assert asked.reason.startswith("the same 74 characters")
    assert SENTENCE.strip() in asked.loop[0] * 2
    assert stopped.interrupted
    assert sum(len(getattr(p, "text", "")) for p in stopped.parts) < 7_000
    streamed = (event.text for event in harness.events if isinstance(event, AnswerDelta | ReasoningProgress))
    assert len("".join(streamed).partition(answer.text)[0]) < len(BEGINNING) + 1_500
    assert "Look at the cache." in told.text
    assert answer.text == "It was the cache."


async def test_a_yes_lets_it_go_on_and_always_stops_asking(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, replies(2), answer=PermissionAnswer(Decision.SESSION), rules=())
    await harness.say("go")
    assert len([event for event in harness.events if isinstance(event, PermissionAsked)]) == 1
    answers = [entry for entry in harness.agent.session.active_path() if isinstance(entry, AssistantEntry)]
    assert answers[1].text.count(SENTENCE.strip()) == 400


async def test_stop_ends_the_run(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, replies(), answer=PermissionAnswer(Decision.STOP), rules=())
    ended = await harness.say("go")
    assert ended.reason == "stopped"
    assert "the model is repeating itself: the same 74 characters" in (ended.error or "")


async def test_without_anybody_to_ask_the_second_time_ends_the_run(tmp_path: Path) -> None:
    rules = (Rule("doom_loop", "*", Action.DENY, "default"),)
    harness = make_agent(tmp_path, replies(3), rules=rules)
    ended = await harness.say("go")
    assert ended.reason == "stopped"
    assert any("repeating itself" in event.message for event in harness.events if isinstance(event, Notice))


@pytest.mark.parametrize("decision", [Decision.ONCE, Decision.DENY])
async def test_whoever_answers_each_time_gets_no_run_without_end(tmp_path: Path, decision: Decision) -> None:
    client = replies(60)
    harness = make_agent(tmp_path, client, answer=PermissionAnswer(decision), rules=())
    ended = await harness.say("go")
    assert ended.reason == "stopped"
    assert len(client.requests) == 5
    assert (await harness.say("go on all the same")).reason == "stopped"
    assert len(client.requests) == 10, "a word of the user's begins anew"


async def test_an_answer_that_repeats_itself_is_a_step(tmp_path: Path) -> None:
    client = replies(60)
    harness = make_agent(tmp_path, client, answer=PermissionAnswer(Decision.ONCE), rules=(), max_steps=2)
    ended = await harness.say("go")
    assert (ended.reason, ended.steps, len(client.requests)) == ("step_limit", 2, 2)
