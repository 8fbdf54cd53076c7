"""What if: runners that see different parts of the conversation, so that it shows whether a block matters."""

from pathlib import Path

import pytest

from tests.support.races import begin, racing_agent
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.race.specs import RunnersError, RunnerSpec, names_of, parse_runners
from tui_agent.context.request import ModelRequest
from tui_agent.session.entries import CompactionEntry, ContextEditEntry, RunnerState, UserEntry

SECRET = "The code word is xylophone."


def answers(request: ModelRequest) -> Reply:
    """Say whether the word is in what was sent; summaries leave it out."""
    if not request.tools:
        return Reply("## Goal\nTalk.\n\n## Next\nAnswer.")
    text = "\n".join(message.text for message in request.messages)
    return Reply(("I see the word." if SECRET in text else "I see no word.") + " padding" * 700)


def test_contexts_are_read_and_named() -> None:
    specs = parse_runners("whole; without #12 #14; compacted; sonnet without #3")

    assert [spec.context for spec in specs] == ["", "without #12 #14", "compacted", "without #3"]
    assert specs[3].model == "sonnet"
    assert names_of(specs) == ("whole", "without #12 #14", "compacted", "sonnet without #3")
    assert names_of(parse_runners("2")) == ("same 1", "same 2")


@pytest.mark.parametrize("text", ["whole; without", "whole; #12", "whole; compacted without #12"])
def test_a_context_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(RunnersError, match="whole, compacted, or without #12 #14"):
        parse_runners(text)


async def test_runners_answer_with_and_without_a_block(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, ScriptedClient(answers), window=40_000)
    await harness.say(SECRET)
    (told,) = [entry.id for entry in harness.path() if isinstance(entry, UserEntry) and SECRET in entry.text]
    for number in range(14):
        await harness.say(f"Message {number}.")

    specs = (RunnerSpec(), RunnerSpec(context=f"without #{told}"), RunnerSpec(context="compacted"))
    race = await begin(harness, specs, "What is the code word?")
    await race.wait()

    assert [runner.state for runner in race.runners] == [RunnerState.DONE] * 3
    session = harness.session
    paths = [session.beside(runner.record.leaf).active_path() for runner in race.runners]
    said = [path[-1].text.split(".")[0] for path in paths]  # type: ignore[union-attr]
    assert said[:2] == ["I see the word", "I see no word"]
    assert any(isinstance(entry, ContextEditEntry) and entry.target == told for entry in paths[1])
    assert any(isinstance(entry, CompactionEntry) for entry in paths[2])
    assert not any(isinstance(entry, ContextEditEntry | CompactionEntry) for entry in harness.path())
    assert session.leaf == race.order.start
    await race.finish(None)
    await harness.agent.aclose()


async def test_a_compaction_that_can_not_be_made_is_the_runners_failure(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, ScriptedClient(answers))
    await harness.say("Hello.")

    race = await begin(harness, (RunnerSpec(), RunnerSpec(context="compacted")))
    await race.wait()

    assert [runner.state for runner in race.runners] == [RunnerState.DONE, RunnerState.ERROR]
    assert "history" in race.runners[1].record.problem or "messages" in race.runners[1].record.problem
    await race.finish(None)
    await harness.agent.aclose()
