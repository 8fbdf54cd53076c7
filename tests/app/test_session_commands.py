"""Commands on sessions, at a frontend without a screen: what the user is told."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.agent.memory.test_keeper import start
from tests.app.test_race_commands import Told, controller_of, do
from tests.app.test_sending import beside
from tests.support.agents import Harness, make_agent
from tests.support.races import writes
from tests.support.scripted_client import Call, Reply, ScriptedClient, call
from tui_agent.agent.agent import Agent
from tui_agent.app.controller import Controller
from tui_agent.app.frontend import Choice
from tui_agent.app.moves import NOT_RECORDED
from tui_agent.app.services import OpenRequest
from tui_agent.app.session_commands import FORKED
from tui_agent.app.status_commands import status_lines
from tui_agent.app.transfer_commands import write_result
from tui_agent.errors import CommandError
from tui_agent.session.entries import AssistantEntry, TextPart
from tui_agent.session.errors import StoreError
from tui_agent.session.session import Session


def _refuse(_request: OpenRequest) -> Session:
    raise StoreError("The disk is full.")


async def test_a_fork_that_fails_is_not_reported_as_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await controller_of(make_agent(tmp_path, ScriptedClient([Reply("Yes.")])))
    assert isinstance(controller.frontend, Told)
    monkeypatch.setattr(controller.services, "open_session", _refuse)
    await do(controller, "fork")
    assert controller.frontend.words[-1] == "The disk is full."
    assert FORKED not in controller.frontend.words
    await controller.close()


@pytest.mark.parametrize(("command", "argument"), [("diff", ""), ("rewind", "files")])
async def test_without_checkpoints_no_command_says_that_files_are_unchanged(
    tmp_path: Path, command: str, argument: str
) -> None:
    harness = make_agent(tmp_path, [Reply("", (writes("a.txt", "a\n"),)), Reply("Done.")])
    await harness.say("Write it.")
    controller = await controller_of(harness)
    assert isinstance(controller.frontend, Told)
    await do(controller, command, argument)
    assert controller.frontend.words == [NOT_RECORDED]
    await controller.close()


async def test_a_diff_since_an_entry_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    script = [Reply("", (writes("a.txt", "a\n"),)), Reply("Done.")]
    harness = make_agent(tmp_path, script, keeps_files=True)
    await harness.say("Write it.")
    controller = await controller_of(harness)
    assert isinstance(controller.frontend, Told)
    await do(controller, "diff", "#999")
    assert controller.frontend.words == ["There is no entry #999 in this session."]
    await controller.close()


async def test_a_branch_of_a_fork_costs_no_more_than_all_its_branches(tmp_path: Path) -> None:
    # A fork's entries are told apart by their time, in milliseconds.
    harness = make_agent(tmp_path, [Reply("Yes.", cost=0.5)], session_clock=lambda: 1_000)
    await harness.say("Go on.")
    store = harness.store
    copy = store.fork(harness.session.id, harness.session.leaf)
    fork = Session(store, copy.id, estimate=lambda _entry: 1)
    fork.append(AssistantEntry(parts=(TextPart(text="More."),), model="m", cost=0.25))
    agent = Agent(fork, harness.agent.ports, model=harness.agent.model)
    rows = [line.split(maxsplit=2) for line in status_lines(agent, "none")]
    assert ["this", "branch", "$0.25"] in rows
    assert ["all", "branches", "$0.25"] in rows
    assert ["before", "the", "fork $0.50, paid by another session"] in rows


async def test_an_edit_without_a_checker_is_no_edit_that_was_not_made(tmp_path: Path) -> None:
    script = [Reply("", (writes("README.md", "a\n"),)), Reply("Done.")]
    harness = make_agent(tmp_path, script)
    harness.agent.tools.diagnostics.switch(on=True)
    await harness.say("Write it.")
    (row,) = [line for line in status_lines(harness.agent, "none") if "/diagnostics" in line]
    assert row.split(maxsplit=1) == ["diagnostics", "on, no checker used yet (/diagnostics)"]


class Result:
    """A session's result that only remembers where it was written."""

    def write(self, target: str) -> str:
        return target


@pytest.mark.parametrize(
    ("target", "written"),
    [("a.patch", "project/a.patch"), ("~/a.patch", "home/a.patch"), ("branch:a", "branch:a")],
)
async def test_a_result_goes_to_the_path_that_the_user_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, written: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    controller = await controller_of(make_agent(tmp_path, ScriptedClient([])))
    assert isinstance(controller.frontend, Told)
    await write_result(controller, Result(), target)  # type: ignore[arg-type]
    assert controller.frontend.words[-1].endswith(written)
    assert "~" not in controller.frontend.words[-1]
    await controller.close()


@dataclass
class Asked(Told):
    """A frontend that awaits ``reply`` for an answer."""

    reply: Callable[[], Awaitable[str | None]] | None = None

    asked: str = ""

    async def ask(self, question: Choice) -> str | None:  # type: ignore[override]
        assert self.reply is not None
        self.asked = question.question
        return await self.reply()


async def working(
    harness: Harness, reply: Callable[[], Awaitable[str | None]], **services: Any
) -> Controller:
    """Return a controller whose agent is working; ``reply`` answers its questions."""
    controller = Controller(Asked(reply=reply), lambda _event: None)
    controller.attach(harness.services(**services))
    await controller.open_or_raise(OpenRequest(harness.session.id))
    controller.outbox.submit("go")
    await harness.client.hanging.wait()
    return controller


async def test_quitting_asks_again_after_a_question_that_failed(tmp_path: Path) -> None:
    async def fail() -> str:
        raise CommandError("It can't be shown.")

    harness = make_agent(tmp_path, ScriptedClient([Reply("I wait.", hang=True)]))
    controller = await working(harness, fail)
    assert not await do(controller, "quit")
    assert not controller.is_leaving
    await controller.close()


@pytest.mark.parametrize(
    ("is_over", "answer", "detached"),
    [(True, None, [False]), (True, "y", [False]), (False, "y", [True]), (False, None, [])],
)
async def test_detaching_continues_a_run_only_if_it_is_still_going_on(
    tmp_path: Path,
    is_over: bool,
    answer: str | None,
    detached: list[bool],
) -> None:
    async def reply() -> str | None:
        if is_over:
            harness.agent.interrupt()
            await harness.agent.wait_idle()
        return answer

    begun: list[bool] = []
    harness = make_agent(tmp_path, ScriptedClient([Reply("I wait.", hang=True)]))
    controller = await working(
        harness, reply, go_on_detached=lambda _session, is_running: begun.append(is_running)
    )
    assert await do(controller, "detach")
    assert begun == detached
    await controller.close()


def job(command: str) -> Call:
    return call("bash", command=command, background=True)


async def with_jobs(
    tmp_path: Path, reply: Callable[[Choice], str | None], *commands: str, **services: Any
) -> tuple[Harness, Controller]:
    """Return an idle agent with running jobs, and its controller, whose questions get answers."""
    harness = make_agent(tmp_path, [Reply(calls=tuple(map(job, commands))), Reply("They run.")])
    await harness.say("start them")
    controller = Controller(Answering(answer_to=reply), lambda _event: None)
    controller.attach(harness.services(**services))
    await controller.open_or_raise(OpenRequest(harness.session.id))
    return harness, controller


@dataclass
class Answering(Told):
    """A frontend that answers each question as ``answer_to`` says."""

    answer_to: Callable[[Choice], str | None] = lambda _question: None
    has_left: bool = False

    async def ask(self, question: Choice) -> str | None:  # type: ignore[override]
        return self.answer_to(question)

    def leave(self) -> None:
        self.has_left = True


@pytest.mark.parametrize("answer", ["y", "n", None])
async def test_quitting_asks_about_background_jobs(tmp_path: Path, answer: str | None) -> None:
    asked: list[Choice] = []

    def reply(question: Choice) -> str | None:
        asked.append(question)
        return answer

    commands = ("sleep 61", "sleep 62")
    _, controller = await with_jobs(tmp_path, reply, *commands)
    assert await do(controller, "quit")
    (question,) = asked
    assert question.question == "2 background jobs are running. Quit?"
    assert "These jobs end: “sleep 61”, “sleep 62”." in question.why
    assert [key for key, _ in question.answers] == ["y", "n"]
    assert isinstance(controller.frontend, Answering)
    assert controller.frontend.has_left == (answer == "y")
    await controller.close()
    assert controller.frontend.words[-1] == "Ended 2 background jobs: “sleep 61”, “sleep 62”."


async def test_a_detached_run_with_jobs_can_be_left_without_ending_it(tmp_path: Path) -> None:
    left: list[bool] = []
    _, controller = await with_jobs(
        tmp_path, lambda _question: "d", "sleep 61",
        detached_as="x", detach_terminals=lambda: left.append(True) or True,
    )  # fmt: skip
    assert await do(controller, "quit")
    assert left == [True]
    assert isinstance(controller.frontend, Answering)
    assert not controller.frontend.has_left
    await controller.close()


async def test_if_the_run_ends_before_the_answer_its_job_is_asked_about(tmp_path: Path) -> None:
    asked: list[str] = []

    async def reply() -> str | None:
        asked.append(controller.frontend.asked)  # type: ignore[attr-defined]
        if len(asked) == 1:
            harness.agent.interrupt()
            await harness.agent.wait_idle()
            return None
        return "n"

    script = [Reply(calls=(job("sleep 61"),)), Reply("I wait.", hang=True)]
    harness = make_agent(tmp_path, ScriptedClient(script))
    controller = await working(harness, reply)
    assert await do(controller, "quit")
    assert asked == ["The agent is working. Quit?", "1 background job is running. Quit?"]
    await controller.close()


@pytest.mark.parametrize("answer", ["y", "n"])
async def test_detaching_says_which_jobs_end(tmp_path: Path, answer: str) -> None:
    asked: list[Choice] = []
    begun: list[bool] = []

    def reply(question: Choice) -> str | None:
        asked.append(question)
        return answer

    _, controller = await with_jobs(
        tmp_path, reply, "sleep 61", go_on_detached=lambda _session, is_running: begun.append(is_running)
    )  # fmt: skip
    assert await do(controller, "detach")
    (question,) = asked
    assert question.question == "1 background job is running. Detach?"
    assert question.why == "This job ends: “sleep 61”."
    assert begun == ([False] if answer == "y" else [])
    await controller.close()


async def test_opening_another_session_without_a_screen_says_which_jobs_end(tmp_path: Path) -> None:
    _, controller = await with_jobs(tmp_path, lambda _question: None, "sleep 61")
    assert await do(controller, "fork")
    assert isinstance(controller.frontend, Answering)
    assert "Ended 1 background job: “sleep 61”." in controller.frontend.words
    await controller.close()


async def test_a_line_is_remembered_from_a_read_only_session(tmp_path: Path) -> None:
    harness = start(tmp_path, [Reply("Yes.")])
    controller = await controller_of(harness)
    await harness.say("hello")
    harness.session.hold()
    Session(harness.store, harness.session.id, estimate=lambda _entry: 1).hold(take_over=True)
    assert harness.session.check_for_take_over()
    count = len(harness.path())
    assert await do(controller, "remember", "Use pnpm.")
    assert isinstance(controller.frontend, Told)
    assert controller.frontend.words[-1].startswith("Noted in the memory")
    assert len(harness.path()) == count
    await controller.close()


async def test_of_two_sessions_opened_at_once_one_is_left_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await beside(tmp_path, Reply("Yes."))
    close = Agent.aclose

    async def slow(agent: Agent) -> None:
        await close(agent)
        for _turn in range(3):
            await asyncio.sleep(0)

    monkeypatch.setattr(Agent, "aclose", slow)
    await asyncio.gather(controller.open(OpenRequest()), controller.open(OpenRequest()))
    held = [info.id for info in controller.services.store.sessions() if info.held_by is not None]
    assert held == [controller.open_agent.session.id]
    await controller.close()


@pytest.mark.parametrize("number", ["²", "9" * 30, "9" * 5_000])
@pytest.mark.parametrize(
    "command",
    ["diff {}", "tree {}", "tree diff {}", "copy {}", "context --at {}", "compact #{}", "redact #{}", "ports {}",
     "race take {}", "race --from {} same, same\nDo it.", "race {}x\nDo it.", "race steps={} same, same\nDo it."],
)  # fmt: skip
async def test_a_number_that_is_none_is_refused_in_words(
    tmp_path: Path, command: str, number: str
) -> None:
    client = ScriptedClient([Reply("Yes."), Reply("A summary.")])
    harness = make_agent(tmp_path, client)
    await harness.say("Go on.")
    controller = await controller_of(harness)
    assert isinstance(controller.frontend, Told)
    name, _, argument = command.format(number).partition(" ")
    await do(controller, name, argument)
    assert controller.frontend.words
    assert not [words for words in controller.frontend.words if "internal" in words.lower()]
    await controller.close()
