"""Runners share places for requests, the wait after a rate limit, and the answers to questions; each can be steered."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.agents import YES
from tests.support.races import RacingClient, begin, racing_agent, runs, writes
from tests.support.scripted_client import Reply
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionAsked
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.race.race import RaceError, SharedClient
from tui_agent.agent.race.specs import RunnersError, RunnerSpec, names_of, parse_runners
from tui_agent.context.request import ModelRequest
from tui_agent.model.protocol import ErrorKind, Finished, ModelError, ModelEvent, TextDelta
from tui_agent.session.effort import Effort
from tui_agent.session.entries import ModelChangeEntry, RunnerState, TextPart, ToolResultEntry, UserEntry

ASKING = (Rule("bash", "*", Action.ASK, "user"), Rule("doom_loop", "*", Action.ALLOW, "flag"))
REQUEST = ModelRequest("test/model", ())


class Counting:
    """Counts how many requests it answers at a time; the first of them meets a rate limit where that is wanted."""

    def __init__(self, *, limited: bool = False) -> None:
        self.now = self.most = self.seen = 0
        self.limited = limited

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        del request
        self.seen += 1
        if self.limited and self.seen == 1:
            raise ModelError(ErrorKind.RATE_LIMIT, "Too many requests.", retry_after=7.0)
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(5):
            await asyncio.sleep(0)
        self.now -= 1
        yield TextDelta("x")
        yield Finished("stop")

    async def aclose(self) -> None:
        return None


async def drain(client: SharedClient) -> None:
    async for _ in client.stream(REQUEST):
        pass


async def test_only_so_many_requests_go_on_at_a_time() -> None:
    counting = Counting()
    client = SharedClient(counting, places=2)
    await asyncio.gather(*(drain(client) for _ in range(6)))
    assert (counting.seen, counting.most) == (6, 2)


async def test_a_rate_limit_holds_for_all() -> None:
    now, waits = 0.0, []

    async def sleep(seconds: float) -> None:
        nonlocal now
        waits.append(seconds)
        now += seconds

    client = SharedClient(Counting(limited=True), clock=lambda: now, sleep=sleep)
    with pytest.raises(ModelError):
        await drain(client)
    await drain(client)
    await drain(client)
    assert waits == [7.0]


async def test_the_same_question_is_asked_once_for_all(tmp_path: Path) -> None:
    def play(_number: int, step: int) -> Reply:
        return Reply(calls=(runs("touch asked.txt"),)) if step == 0 else Reply("Done.")

    harness = racing_agent(tmp_path, RacingClient(play), rules=ASKING, answer=PermissionAnswer(Decision.ONCE))
    race = await begin(harness, 3)
    await race.wait()
    asked = harness.of(PermissionAsked)
    assert len(asked) == 1
    assert asked[0].request.title.startswith("same ")
    assert all(runner.record.files == 1 for runner in race.runners)
    await race.finish(None)
    await harness.agent.aclose()


async def test_one_is_steered_and_one_is_stopped(tmp_path: Path) -> None:
    def play(number: int, step: int) -> Reply:
        if step == 0:
            return Reply(calls=(writes("n.txt", str(number)),))
        return Reply("I wait.", hang=step == 1)

    client = RacingClient(play)
    harness = racing_agent(tmp_path, client, answer=YES)
    race = await begin(harness)
    await harness.until(lambda: [runner.figures.steps for runner in race.runners] == [2, 2] and client.hanging.is_set())
    race.stop(1)
    await harness.until(lambda: race.runners[0].state is RunnerState.STOPPED)
    race.stop(2)
    await race.wait()
    race.steer(2, (TextPart(text="Go on."),))
    await race.wait()
    assert [runner.state for runner in race.runners] == [RunnerState.STOPPED, RunnerState.DONE]
    session = race.runners[1].session
    assert session is not None
    texts = [entry.text for entry in session.path() if isinstance(entry, UserEntry) and entry.synthetic is None]
    assert texts == ["Do it.", "Go on."]
    with pytest.raises(RaceError):
        race.stop(3)
    await race.finish(None)
    await harness.agent.aclose()


async def test_a_runner_has_its_own_model_and_works_with_the_projects_paths(tmp_path: Path) -> None:
    def play(_number: int, step: int) -> Reply:
        if step == 0:
            return Reply(calls=(writes(str(tmp_path / "project" / "absolute.txt"), "x"),))
        return Reply("Done.")

    harness = racing_agent(tmp_path, RacingClient(play))
    race = await begin(harness, (RunnerSpec(), RunnerSpec(model="test/other")))
    await race.wait()
    assert [runner.name for runner in race.runners] == ["same", "other"]
    root = race.runners[1].record.root
    assert root is not None
    assert harness.session.entry(root) == ModelChangeEntry(model="test/other").model_copy(
        update=harness.session.entry(root).model_dump(exclude={"kind", "model"})
    )
    for runner in race.runners:
        assert runner.copy is not None
        assert (runner.copy.root / "absolute.txt").read_text() == "x"
    assert not (tmp_path / "project" / "absolute.txt").exists()
    await race.finish(None)
    await harness.agent.aclose()


async def test_a_race_from_an_earlier_entry_has_the_files_as_they_were(tmp_path: Path) -> None:
    def play(number: int, step: int) -> Reply:
        if number == 1:
            return Reply(calls=(runs("echo later | tee f0.txt > extra.txt"),)) if step == 0 else Reply("A.")
        return Reply(calls=(runs("cat f0.txt; ls"),)) if step == 0 else Reply("Done.")

    harness = racing_agent(tmp_path, RacingClient(play))
    await harness.say("first")
    early = harness.path()[1].id
    race = await begin(harness, 2, start=early)
    await race.wait()
    for runner in race.runners:
        assert runner.session is not None
        (result,) = [entry for entry in runner.session.path() if isinstance(entry, ToolResultEntry)]
        assert "file 0" in result.output
        assert "extra.txt" not in result.output
    assert (tmp_path / "project" / "f0.txt").read_text() == "later\n"
    await race.finish(None)
    await harness.agent.aclose()


def test_runners_are_read_as_they_are_typed() -> None:
    modes = ("build", "plan", "reviewer")
    known = {"sonnet": "anthropic/claude-sonnet"}
    specs = parse_runners("2x same, sonnet high, agent=reviewer", modes, known.get)
    assert specs == (
        RunnerSpec(),
        RunnerSpec(),
        RunnerSpec("anthropic/claude-sonnet", Effort.HIGH),
        RunnerSpec(mode="reviewer"),
    )
    assert names_of(specs) == ("same 1", "same 2", "claude-sonnet high", "reviewer")
    assert len(parse_runners("3")) == 3


@pytest.mark.parametrize(
    "text", ["1", "9", "same, mode=none", "same, effort=much", "same, colour=red", "", "2x nothing"]
)
def test_what_can_not_run_is_told(text: str) -> None:
    with pytest.raises(RunnersError):
        parse_runners(text, ("build",), {}.get)
