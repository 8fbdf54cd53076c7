"""Runners share places for requests, the wait after a rate limit, and the answers to questions; each can be steered."""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from tests.support.agents import YES
from tests.support.races import RacingClient, begin, racing_agent, runs, writes
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionAsked, PermissionRequest
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.race.copies import abandoned_homes, remove_left
from tui_agent.agent.race.race import FIRST_PAUSE, RaceError, SharedClient, SharedQuestions
from tui_agent.agent.race.specs import RunnersError, RunnerSpec, names_of, parse_runners
from tui_agent.context.request import ModelRequest
from tui_agent.model.protocol import ErrorKind, Finished, ModelError, ModelEvent, TextDelta
from tui_agent.session.effort import Effort
from tui_agent.session.entries import (
    CompactionEntry,
    ContextEditEntry,
    ModelChangeEntry,
    RaceEntry,
    RunnerState,
    TextPart,
    ToolResultEntry,
    UserEntry,
)

ASKING = (Rule("bash", "*", Action.ASK, "user"), Rule("doom_loop", "*", Action.ALLOW, "flag"))
REQUEST = ModelRequest("test/model", ())


class Counting:
    """Counts how many requests it answers at a time; the first meet rate limits, with the seconds they name."""

    def __init__(self, limits: Sequence[float | None] = ()) -> None:
        self.now = self.most = 0
        self.limits = list(limits)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        del request
        if self.limits:
            raise ModelError(ErrorKind.RATE_LIMIT, "Too many requests.", retry_after=self.limits.pop(0))
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
    assert counting.most == 2


async def test_a_rate_limit_holds_for_all() -> None:
    now, waits = 0.0, []

    async def sleep(seconds: float) -> None:
        nonlocal now
        waits.append(seconds)
        now += seconds

    client = SharedClient(Counting([7.0, None, None]), clock=lambda: now, sleep=sleep)
    for _limit in range(3):
        with pytest.raises(ModelError):
            await drain(client)
    await drain(client)
    await drain(client)
    assert waits == [7.0, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]


async def test_the_same_question_is_asked_once_for_all(tmp_path: Path) -> None:
    def play(_number: int, step: int) -> Reply:
        return Reply(calls=(runs("touch asked.txt"),)) if step == 0 else Reply("Done.")

    harness = racing_agent(tmp_path, RacingClient(play), rules=ASKING, answer=PermissionAnswer(Decision.ONCE))
    race = await begin(harness, 3)
    await race.over.wait()
    asked = harness.of(PermissionAsked)
    assert len(asked) == 1
    assert asked[0].request.title.startswith("same ")
    assert all(runner.record.files == 1 for runner in race.runners)
    await race.finish(None)
    await harness.agent.aclose()


async def test_a_circle_is_asked_about_by_itself() -> None:
    asked = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request.title)
        return PermissionAnswer(Decision.ONCE)

    questions = SharedQuestions(ask)
    request = PermissionRequest("1", "bash", "ls", (), "the same call 3 times in a row", (), loop=("a.py",))
    await asyncio.gather(*(questions.ask(request, runner) for runner in ("same 1", "same 2")))
    assert asked == ["same 1: ls", "same 2: ls"]


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
    await race.over.wait()
    race.steer(2, (TextPart(text="Go on."),))
    await race.over.wait()
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
    race = await begin(harness, (RunnerSpec(), RunnerSpec(model="test/other")), check="seq 20")
    await race.over.wait()
    assert [runner.name for runner in race.runners] == ["same", "other"]
    root = race.runners[1].record.root
    assert root is not None
    assert harness.session.entry(root) == ModelChangeEntry(model="test/other").model_copy(
        update=harness.session.entry(root).model_dump(exclude={"kind", "model"})
    )
    for runner in race.runners:
        assert runner.copy is not None
        assert (runner.copy.root / "absolute.txt").read_text() == "x"
        assert runner.record.check is not None
        assert runner.record.check.last_lines == tuple(str(number) for number in range(11, 21))
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
    await race.over.wait()
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


# -- What if: runners that see different parts of the conversation, so that it shows whether a block matters -----------


SECRET = "The code word is xylophone."


def answers(request: ModelRequest) -> Reply:
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
    await race.over.wait()

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
    await race.over.wait()

    assert [runner.state for runner in race.runners] == [RunnerState.DONE, RunnerState.ERROR]
    assert "history" in race.runners[1].record.problem or "messages" in race.runners[1].record.problem
    await race.finish(None)
    await harness.agent.aclose()


# -- The copies of a race have an owner, or are found and removed; its branches stay in any case -----------------------


def hanging(number: int, step: int) -> Reply:
    if step == 0:
        return Reply(calls=(writes("n.txt", f"{number}\n"),))
    return Reply("Half a sentence", hang=number == 1)


def leave(home: Path) -> None:
    """Make it as old as one that a killed program left."""
    os.utime(home, (1, 1))


async def test_a_race_that_ends_with_its_session_is_written_down(tmp_path: Path) -> None:
    client = RacingClient(hanging)
    harness = racing_agent(tmp_path, client)
    race = await begin(harness)
    await harness.until(lambda: RunnerState.DONE in [row.state for row in race.runners] and client.hanging.is_set())
    leave(race.home.path)
    assert abandoned_homes(tmp_path / "races") == []
    assert not remove_left(race.home.path)

    await race.aclose()
    entry = harness.path()[-1]
    assert isinstance(entry, RaceEntry)
    assert sorted(row.state for row in entry.runners) == [RunnerState.DONE, RunnerState.STOPPED]
    for row in entry.runners:
        plan = await harness.agent.files.plan(row.leaf)
        assert [(step.path, step.what) for step in plan.steps] == [("n.txt", "create")]
    assert list((tmp_path / "races").iterdir()) == []
    await harness.agent.aclose()


async def test_of_a_race_that_was_killed_the_branches_stay_and_the_copies_go(tmp_path: Path) -> None:
    client = RacingClient(hanging)
    harness = racing_agent(tmp_path, client)
    killed = await begin(harness)
    await harness.until(lambda: [row.figures.steps for row in killed.runners] == [2, 2] and client.hanging.is_set())
    left = killed.home.path
    (left / "1" / "sub").mkdir()
    (left / "1" / "sub").chmod(0o500)
    killed.home.release()
    leave(left)
    assert abandoned_homes(tmp_path / "races") == [left]

    client.replies = lambda number, step: Reply("Done.")
    race = await begin(harness)
    await race.over.wait()
    assert not left.exists()
    roots = {header.parent_id for header in harness.session.skeleton() if header.kind == "user"}
    assert roots == {race.order.start}
    plan = await harness.agent.files.plan(killed.runners[0].record.leaf)
    assert [step.path for step in plan.steps] == ["n.txt"]
    await race.finish(None)
    await killed.end_runners()
    await harness.agent.aclose()
