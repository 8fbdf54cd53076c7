"""Runners that go on with the same work, each with another context."""

from functools import partial
from pathlib import Path

import pytest

from tests.agent.test_room import is_summary_call
from tests.app.test_race_commands import Told, controller_of, do
from tests.support.agents import Harness
from tests.support.races import begin, racing_agent, runs
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.race.race import Race
from tui_agent.agent.race.specs import all_name_contexts, parse_runners
from tui_agent.app.controller import Controller
from tui_agent.context.request import ModelRequest, request_bytes
from tui_agent.errors import CommandError
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import (
    CompactionEntry,
    PruneEntry,
    RaceEntry,
    RunnerState,
    ToolResultEntry,
    UserEntry,
)

CONTEXTS = parse_runners("whole; pruned; compacted")
WORK = 24
"""Steps of the work before the race."""
SUMMARY = Reply("## Goal\nCount.\n\n## Next Steps\n1. Go on.", cost=0.05)


def counts(request: ModelRequest, said: int, numbers: int) -> Reply:
    """Count on, one long output after the other, and wait in the last step before the race."""
    step = sum(message.role == "assistant" for message in request.messages)
    return Reply(
        f"Step {step}. " + "I look at the next numbers. " * said,
        calls=(runs(f"seq {step}000 {step}{numbers}"),),
        cost=0.01,
        hang=step == WORK,
    )


def goes_on(request: ModelRequest) -> Reply:
    if is_summary_call(request):
        return SUMMARY
    return Reply("On.", calls=(runs("echo on"),), cost=0.01)


async def in_the_middle_of_work(
    tmp_path: Path, *, said: int = 120, numbers: int = 300, window: int = 64_000
) -> Harness:
    """Return an agent that was interrupted in the middle of a long turn."""
    client = ScriptedClient(partial(counts, said=said, numbers=numbers))
    harness = racing_agent(tmp_path, client, window=window)
    harness.agent.submit("Count.")
    await harness.until(client.hanging.is_set)
    harness.agent.interrupt()
    await harness.ended()
    client.script = goes_on
    return harness


async def race_of_contexts(harness: Harness, **order: object) -> Race:
    race = await begin(harness, CONTEXTS, "Go on.", parts=(), **order)
    await race.over.wait()
    return race


async def test_each_goes_on_from_the_same_entry_for_so_many_steps(tmp_path: Path) -> None:
    harness = await in_the_middle_of_work(tmp_path)
    before = harness.path()
    next_request = request_bytes(harness.agent.context.next_request())

    race = await race_of_contexts(harness, steps=2)

    rows = [runner.record for runner in race.runners]
    assert [row.problem for row in rows] == [""] * 3
    assert [row.state for row in rows] == [RunnerState.PAUSED] * 3
    assert [row.steps for row in rows] == [2, 2, 2]
    whole, pruned, compacted = rows
    assert whole.next_request > pruned.next_request > compacted.next_request > 0
    added = [
        [entry for entry in harness.session.beside(row.leaf).active_path() if entry not in before]
        for row in rows
    ]
    assert not any(isinstance(entry, PruneEntry | CompactionEntry) for entry in added[0])
    assert isinstance(added[1][0], PruneEntry)
    assert isinstance(added[2][0], CompactionEntry)
    for path in added:
        said = [entry for entry in path if isinstance(entry, UserEntry)]
        assert all(entry.synthetic for entry in said), "nobody told it what to do"
        assert isinstance(path[-1], ToolResultEntry), "its last calls have their results"
    sent = [request_bytes(request) for request in harness.client.requests if request.tools]
    assert any(one.startswith(next_request) for one in sent), "the whole context is in the cache"
    assert harness.path() == before
    await race.finish(None)


async def test_what_a_summary_took_counts(tmp_path: Path) -> None:
    harness = await in_the_middle_of_work(tmp_path)
    race = await race_of_contexts(harness, steps=1)
    whole, _pruned, compacted = (runner.record for runner in race.runners)
    assert whole.cost == pytest.approx(0.01)
    assert compacted.cost == pytest.approx(0.06)
    assert compacted.tokens > whole.tokens
    await race.finish(None)


async def test_one_that_paused_can_go_on_beside_and_is_ranked_by_the_check(tmp_path: Path) -> None:
    harness = await in_the_middle_of_work(tmp_path)
    race = await race_of_contexts(harness, steps=1)
    race.resume(2)
    await race.over.wait()
    assert race.runners[1].record.steps == 2
    assert race.runners[1].state is RunnerState.PAUSED
    await race.finish(None)
    checked = await race_of_contexts(harness, steps=1, check="true", pick="best")
    assert [runner.state for runner in checked.runners] == [RunnerState.PASSED] * 3
    assert checked.picked in {1, 2}, "the cheapest of those that pass"
    await checked.finish(None)


async def test_one_that_reaches_the_step_limit_says_so(tmp_path: Path) -> None:
    harness = await in_the_middle_of_work(tmp_path)
    harness.agent.ports.max_steps = 1
    race = await begin(harness, parse_runners("2x whole"), "Go on.", parts=(), steps=5)
    await race.over.wait()
    assert race.runners[0].record.problem == "It reached max_steps (1)."
    await race.finish(None)


async def test_without_old_outputs_none_are_cleared_and_the_others_go_on(tmp_path: Path) -> None:
    client = ScriptedClient([Reply(calls=(runs("echo one"),)), Reply("I wait.", hang=True)])
    harness = racing_agent(tmp_path, client)
    harness.agent.submit("Count.")
    await harness.until(client.hanging.is_set)
    harness.agent.interrupt()
    await harness.ended()
    client.script = [Reply("Done.")]
    race = await begin(harness, parse_runners("whole; pruned"), "Go on.", parts=())
    await race.over.wait()
    assert [runner.state for runner in race.runners] == [RunnerState.DONE, RunnerState.ERROR]
    assert race.runners[1].record.problem == "There are no old outputs to clear."
    await race.finish(None)


async def test_short_work_has_a_compacted_context_too(tmp_path: Path) -> None:
    harness = await in_the_middle_of_work(tmp_path, said=40, numbers=900, window=128_000)
    race = await race_of_contexts(harness, steps=1)
    assert [runner.state for runner in race.runners] == [RunnerState.PAUSED] * 3
    compacted = harness.session.beside(race.runners[2].record.leaf).active_path()
    assert any(isinstance(entry, CompactionEntry) for entry in compacted)
    await race.finish(None)


async def taken(tmp_path: Path, argument: str) -> tuple[Harness, Controller, list[str]]:
    harness = await in_the_middle_of_work(tmp_path)
    controller = await controller_of(harness)
    assert await do(controller, "race", argument)
    await harness.until(lambda: controller.race is None or controller.race.over.is_set())
    assert isinstance(controller.frontend, Told)
    return harness, controller, controller.frontend.words


async def test_the_command_needs_no_prompt_and_the_taken_one_goes_on(tmp_path: Path) -> None:
    harness, controller, words = await taken(tmp_path, "whole; pruned; compacted --steps 2")
    assert words[0].startswith("3 attempts of at most 2 steps, no cost limit. Each starts with")
    assert await do(controller, "race", "take 2")
    entry = harness.path()[-1]
    assert isinstance(entry, RaceEntry)
    assert entry.prompt == "Go on with the work."
    assert words[-1].endswith("Its work is not done: f8 continues it.")
    harness.client.script = [Reply("Done.")]
    assert await do(controller, "retry")
    await harness.until(lambda: not harness.agent.running)
    assert harness.entries(PruneEntry), "the pruned context goes on"
    assert await do(controller, "race", "take 1"), "another one can be taken later"
    assert not harness.entries(PruneEntry)
    await controller.close()


async def test_there_must_be_work_to_go_on_with(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, ScriptedClient([Reply("Done.")]))
    await harness.say("Hello.")
    controller = await controller_of(harness)
    assert await do(controller, "race", "whole; pruned") is False
    assert isinstance(controller.frontend, Told)
    assert [word.partition(":")[0] for word in controller.frontend.words] == [
        "There is no work to continue, because the last answer is complete. Add a prompt after --."
    ], "refused before anything was asked"
    await controller.close()


@pytest.mark.parametrize(
    ("text", "are_contexts"),
    [
        ("whole; pruned", True),
        ("Whole, without #3 #4", True),
        ("2x compacted; sonnet whole", True),
        ("pruned", False),
        ("3", False),
        ("whole; fix the test", False),
        ("", False),
    ],
)
def test_a_prompt_is_no_list_of_contexts(text: str, are_contexts: bool) -> None:
    assert all_name_contexts(text) is are_contexts


@pytest.mark.parametrize("steps", ["0", "-1", "two", "1.5"])
async def test_steps_are_a_number(tmp_path: Path, steps: str) -> None:
    from tui_agent.app.race_commands import read_wish

    with pytest.raises(CommandError, match="is not a number of steps"):
        read_wish(f"whole; pruned --steps {steps}")


async def test_one_whose_summary_is_still_written_works_and_can_be_stopped(tmp_path: Path) -> None:
    harness = await in_the_middle_of_work(tmp_path)
    harness.client.hanging.clear()
    harness.client.script = lambda request: (
        Reply("Goal", hang=True) if is_summary_call(request) else Reply("Done.")
    )
    race = await begin(harness, parse_runners("whole; compacted"), "Go on.", parts=())
    await harness.until(harness.client.hanging.is_set)
    assert race.runners[1].state is RunnerState.WORKING
    race.stop(2)
    await race.over.wait()
    assert [runner.state for runner in race.runners] == [RunnerState.DONE, RunnerState.STOPPED]
    await race.finish(None)


async def test_one_whose_context_was_not_changed_is_not_resumed_without_that(
    tmp_path: Path,
) -> None:
    harness = await in_the_middle_of_work(tmp_path)
    broken = ModelError(ErrorKind.AUTH, "No key.")

    def fails(request: ModelRequest) -> Reply:
        return Reply(error=broken) if is_summary_call(request) else goes_on(request)

    harness.client.script = fails
    race = await race_of_contexts(harness, steps=1)
    runner = race.runners[2]
    assert (runner.state, runner.record.steps) == (RunnerState.ERROR, 0)
    harness.client.script = goes_on
    race.resume(3)
    await race.over.wait()
    assert (runner.state, runner.record.problem) == (RunnerState.PAUSED, "")
    assert [one for one in runner.session.path() if isinstance(one, CompactionEntry)]
    await race.finish(None)
