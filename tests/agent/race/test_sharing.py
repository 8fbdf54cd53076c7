"""Runners share places for requests, the wait after a rate limit, and the answers to questions; each can be steered."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from tests.support.races import RacingClient, begin, racing_agent, runs, writes
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.checkpoints.rewind import FileRewind
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionAsked, PermissionRequest
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.race.copies import abandoned_homes, remove_left
from tui_agent.agent.race.race import FIRST_PAUSE, Race, RaceError, SharedClient, SharedQuestions
from tui_agent.agent.race.specs import RunnersError, RunnerSpec, names_of, parse_runners
from tui_agent.context.request import ModelRequest
from tui_agent.model.protocol import ErrorKind, Finished, ModelError, ModelEvent
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


def first_then_done(first: Callable[[int], Call]) -> Callable[[int, int], Reply]:
    """Return what runners answer: a call made of their number, then a word."""
    return lambda number, step: Reply("Done.") if step else Reply(calls=(first(number),))


async def end(race: Race) -> None:
    await race.finish(None)
    await race.main.aclose()


class Counting:
    """Counts how many requests it answers at a time; the first meet rate limits, with the seconds they name."""

    def __init__(self, *limits: float | None) -> None:
        self.now = self.most = 0
        self.limits = list(limits)

    async def stream(self, _request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if self.limits:
            raise ModelError(
                ErrorKind.RATE_LIMIT, "Too many requests.", retry_after=self.limits.pop(0)
            )
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(5):
            await asyncio.sleep(0)
        self.now -= 1
        yield Finished("stop")

    async def aclose(self) -> None:
        return None


async def drain(client: SharedClient) -> None:
    async for _ in client.stream(ModelRequest("test/model", ())):
        pass


async def test_a_rate_limit_holds_for_all_and_only_so_many_requests_go_on_at_a_time() -> None:
    now, waits = 0.0, []

    async def sleep(seconds: float) -> None:
        nonlocal now
        waits.append(seconds)
        now += seconds

    counting = Counting(7.0, None, None)
    client = SharedClient(counting, places=2, clock=lambda: now, sleep=sleep)
    for _limit in range(3):
        with pytest.raises(ModelError):
            await drain(client)
    await drain(client)
    await asyncio.gather(*(drain(client) for _ in range(6)))
    counting.limits.append(None)
    with pytest.raises(ModelError):
        await drain(client)
    await drain(client)
    assert waits == [7.0, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE, FIRST_PAUSE]
    assert counting.most == 2


async def test_the_same_question_is_asked_once_for_all(tmp_path: Path) -> None:
    play = first_then_done(lambda _number: runs("touch asked.txt"))
    harness = racing_agent(
        tmp_path, RacingClient(play), rules=ASKING, answer=PermissionAnswer(Decision.ONCE)
    )
    race = await begin(harness, 3)
    await race.over.wait()
    (asked,) = harness.of(PermissionAsked)
    assert asked.request.title.startswith("model ")
    assert all(runner.record.files == 1 for runner in race.runners)
    await end(race)


async def test_an_answer_counts_once_for_each_runner() -> None:
    ask = AsyncMock(side_effect=[PermissionAnswer(Decision.ONCE), PermissionAnswer(Decision.DENY)])
    questions = SharedQuestions(ask)
    request = PermissionRequest("1", "bash", "rm a", (), "it deletes", ())
    both = [await questions.ask(request, runner) for runner in ("same 1", "same 2")]
    assert [answer.decision for answer in both] == [Decision.ONCE, Decision.ONCE]
    again = [await questions.ask(request, runner) for runner in ("same 1", "same 2")]
    assert [answer.decision for answer in again] == [Decision.DENY, Decision.DENY]
    assert ask.await_count == 2


@pytest.mark.parametrize("other", [{"command": "rm a; rm b"}, {"again": True}])
async def test_a_question_that_differs_is_asked_by_itself(other: dict[str, Any]) -> None:
    ask = AsyncMock(return_value=PermissionAnswer(Decision.ONCE))
    questions = SharedQuestions(ask)
    request = PermissionRequest("1", "bash", "rm a", (), "it deletes", (), command="rm a")
    await questions.ask(request, "same 1")
    await questions.ask(replace(request, **other), "same 2")
    assert ask.await_count == 2


async def test_a_circle_is_asked_about_by_itself() -> None:
    ask = AsyncMock()
    questions = SharedQuestions(ask)
    request = PermissionRequest(
        "1", "bash", "ls", (), "the same call 3 times in a row", (), loop=("a.py",)
    )
    await asyncio.gather(*(questions.ask(request, runner) for runner in ("same 1", "same 2")))
    assert [call.args[0].title for call in ask.await_args_list] == ["same 1: ls", "same 2: ls"]


async def test_one_is_steered_and_one_is_stopped(tmp_path: Path) -> None:
    def play(number: int, step: int) -> Reply:
        return (
            Reply("I wait.", hang=step == 1)
            if step
            else Reply(calls=(writes("n.txt", str(number)),))
        )

    client = RacingClient(play)
    harness = racing_agent(tmp_path, client)
    race = await begin(harness)
    await harness.until(
        lambda: (
            [runner.figures.steps for runner in race.runners] == [2, 2] and client.hanging.is_set()
        )
    )
    race.stop(1)
    await harness.until(lambda: race.runners[0].state is RunnerState.STOPPED)
    race.stop(2)
    await race.over.wait()
    race.steer(2, (TextPart(text="Go on."),))
    await race.over.wait()
    assert [runner.state for runner in race.runners] == [RunnerState.STOPPED, RunnerState.DONE]
    users = [entry for entry in race.runners[1].session.path() if isinstance(entry, UserEntry)]
    assert [entry.text for entry in users if entry.synthetic is None] == ["Do it.", "Go on."]
    with pytest.raises(RaceError):
        race.stop(3)
    await end(race)


async def test_a_runner_has_its_own_model_and_works_with_the_projects_paths(tmp_path: Path) -> None:
    play = first_then_done(lambda _number: writes(str(tmp_path / "project" / "absolute.txt"), "x"))
    harness = racing_agent(tmp_path, RacingClient(play))
    race = await begin(harness, (RunnerSpec(), RunnerSpec(model="test/other")), check="seq 20")
    await race.over.wait()
    assert [runner.name for runner in race.runners] == ["model", "other"]
    root = harness.session.entry(race.runners[1].record.root)
    assert isinstance(root, ModelChangeEntry)
    assert root.model == "test/other"
    for runner in race.runners:
        assert (runner.copy.root / "absolute.txt").read_text() == "x"
        assert runner.record.check.last_lines == tuple(str(number) for number in range(11, 21))
    assert not (tmp_path / "project" / "absolute.txt").exists()
    await end(race)


async def test_a_race_from_an_earlier_entry_has_the_files_as_they_were(tmp_path: Path) -> None:
    play = first_then_done(
        lambda number: runs(
            "echo later | tee f0.txt > extra.txt" if number == 1 else "cat f0.txt; ls"
        )
    )
    harness = racing_agent(tmp_path, RacingClient(play))
    await harness.say("first")
    race = await begin(harness, 2, start=harness.path()[1].id)
    await race.over.wait()
    for runner in race.runners:
        (result,) = [entry for entry in runner.session.path() if isinstance(entry, ToolResultEntry)]
        assert "file 0" in result.output
        assert "extra.txt" not in result.output
    assert (tmp_path / "project" / "f0.txt").read_text() == "later\n"
    await end(race)


def test_runners_are_read_as_they_are_typed() -> None:
    modes = ("build", "plan", "reviewer")
    known = {"sonnet": "anthropic/claude-sonnet"}
    specs = parse_runners("2x same, sonnet high, agent=reviewer", modes, known.get)
    same, sonnet = RunnerSpec(), RunnerSpec("anthropic/claude-sonnet", Effort.HIGH)
    assert specs == (same, same, sonnet, RunnerSpec(mode="reviewer"))
    assert names_of(specs, "openai/gpt-5") == (
        "gpt-5 1",
        "gpt-5 2",
        "claude-sonnet high",
        "reviewer",
    )
    assert names_of(parse_runners("3"), "small") == ("small 1", "small 2", "small 3")
    specs = parse_runners("whole; without #12 #14; compacted; sonnet without #3")
    assert [spec.context for spec in specs] == ["", "without #12 #14", "compacted", "without #3"]
    assert names_of(specs, "small") == (
        "whole",
        "without #12 #14",
        "compacted",
        "sonnet without #3",
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "A race has 2 to 8 runners") for text in ("1", "9", "")),
        ("same, mode=none", "There is no mode"),
        ("same, effort=much", "There is no effort"),
        ("same, colour=red", "can't be set. Use model=, effort="),
        ("2x nothing", "There is no usable model"),
        *(
            (text, "without #12 #14")
            for text in ("whole; without", "whole; #12", "whole; compacted without #12")
        ),
    ],
)
def test_what_can_not_run_is_told(text: str, why: str) -> None:
    with pytest.raises(RunnersError, match=why):
        parse_runners(text, ("build",), {}.get)


SECRET = "The code word is xylophone."


def answers(request: ModelRequest) -> Reply:
    if not request.tools:
        return Reply("## Goal\nTalk.\n\n## Next\nAnswer.")
    text = "\n".join(message.text for message in request.messages)
    return Reply(("I see the word." if SECRET in text else "I see no word.") + " padding" * 700)


async def test_runners_answer_with_and_without_a_block(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, ScriptedClient(answers), window=40_000)
    await harness.say(SECRET)
    told = harness.entries(UserEntry)[0].id
    for number in range(14):
        await harness.say(f"Message {number}.")

    specs = (RunnerSpec(), RunnerSpec(context=f"without #{told}"), RunnerSpec(context="compacted"))
    race = await begin(harness, specs, "What is the code word?")
    await race.over.wait()

    assert [runner.state for runner in race.runners] == [RunnerState.DONE] * 3
    paths = [harness.session.beside(runner.record.leaf).active_path() for runner in race.runners]
    said = [path[-1].text.split(".")[0] for path in paths]  # type: ignore[union-attr]
    assert said[:2] == ["I see the word", "I see no word"]
    assert any(isinstance(entry, ContextEditEntry) and entry.target == told for entry in paths[1])
    assert any(isinstance(entry, CompactionEntry) for entry in paths[2])
    assert not any(
        isinstance(entry, ContextEditEntry | CompactionEntry) for entry in harness.path()
    )
    assert harness.session.leaf == race.order.start
    await end(race)


async def test_a_compaction_that_can_not_be_made_is_the_runners_failure(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, ScriptedClient(answers))
    await harness.say("Hello.")

    race = await begin(harness, (RunnerSpec(), RunnerSpec(context="compacted")))
    await race.over.wait()

    assert [runner.state for runner in race.runners] == [RunnerState.DONE, RunnerState.ERROR]
    assert "History would still take" in race.runners[1].record.problem
    await end(race)


def hanging(number: int, step: int) -> Reply:
    return (
        Reply("Half a sentence", hang=number == 1)
        if step
        else Reply(calls=(writes("n.txt", f"{number}\n"),))
    )


async def test_a_race_that_ends_with_its_session_is_written_down(tmp_path: Path) -> None:
    client = RacingClient(hanging)
    harness = racing_agent(tmp_path, client)
    race = await begin(harness)
    await harness.until(
        lambda: RunnerState.DONE in [row.state for row in race.runners] and client.hanging.is_set()
    )
    os.utime(race.home.path, (1, 1))  # as old as one that a killed program left
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


async def test_of_a_race_that_was_killed_the_branches_stay_and_the_copies_go(
    tmp_path: Path,
) -> None:
    client = RacingClient(hanging)
    harness = racing_agent(tmp_path, client)
    killed = await begin(harness)
    await harness.until(
        lambda: [row.figures.steps for row in killed.runners] == [2, 2] and client.hanging.is_set()
    )
    left = killed.home.path
    (left / "1" / "sub").mkdir()
    (left / "1" / "sub").chmod(0o500)
    killed.home.release()
    os.utime(left, (1, 1))
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


async def test_the_question_of_a_runner_that_is_stopped_makes_way_for_the_others(
    tmp_path: Path,
) -> None:
    play = first_then_done(lambda number: runs(f"touch {number}"))
    harness = racing_agent(tmp_path, RacingClient(play), rules=ASKING, answer=None)
    race = await begin(harness)
    await harness.until(lambda: all(runner.is_asking for runner in race.runners))
    asked = harness.of(PermissionAsked)[0].request
    (stopped,) = [runner for runner in race.runners if asked.title.startswith(runner.name)]
    race.stop(stopped.number)
    await harness.until(lambda: len(harness.of(PermissionAsked)) == 2)
    assert not stopped.is_asking
    assert not harness.of(PermissionAsked)[1].request.title.startswith(stopped.name)
    await end(race)
    assert harness.agent.questions.open is None


async def test_a_shared_question_stays_while_a_runner_waits_for_it() -> None:
    answer = asyncio.Event()

    async def ask(_request: PermissionRequest) -> PermissionAnswer:
        await answer.wait()
        return PermissionAnswer(Decision.ONCE)

    questions = SharedQuestions(ask)
    request = PermissionRequest("1", "bash", "rm a", (), "it deletes", ())
    asking = [asyncio.ensure_future(questions.ask(request, name)) for name in ("one", "two")]
    await asyncio.sleep(0)
    asking[0].cancel()
    await asyncio.wait(asking[:1])
    answer.set()
    assert (await asking[1]).decision is Decision.ONCE
    answer.clear()
    alone = asyncio.ensure_future(questions.ask(request, "one"))
    await asyncio.sleep(0)
    assert (await alone).decision is Decision.ONCE, "the other runner's answer counts for it"


async def test_a_runner_that_is_stopped_after_its_work_is_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = racing_agent(tmp_path, RacingClient(lambda _number, _step: Reply("Done.")))
    race = await begin(harness, check="true")
    amounts = FileRewind.amounts

    async def stopping(files: FileRewind, places: Any) -> Any:
        race.stop(1)
        return await amounts(files, places)

    monkeypatch.setattr(FileRewind, "amounts", stopping)
    await race.over.wait()
    assert race.runners[0].state is RunnerState.STOPPED
    await end(race)


async def test_a_runner_that_is_stopped_before_it_has_the_prompt_gets_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = racing_agent(tmp_path, RacingClient(lambda _number, _step: Reply("Done.")))
    make = Race.make_agent

    def stopping(race: Race, runner: Any) -> Any:
        runner.stop()
        return make(race, runner)

    with monkeypatch.context() as patch:
        patch.setattr(Race, "make_agent", stopping)
        race = await begin(harness, (RunnerSpec(model="test/other"), RunnerSpec()))
        await race.over.wait()
    assert [runner.state for runner in race.runners] == [RunnerState.STOPPED] * 2
    race.resume(1)
    race.steer(2, (TextPart(text="Be quick."),))
    await race.over.wait()
    texts: list[list[str]] = []
    for runner in race.runners:
        texts.append([one.text for one in runner.session.path() if isinstance(one, UserEntry)])
    assert texts == [["Do it."], ["Do it.", "Be quick."]]
    await end(race)
