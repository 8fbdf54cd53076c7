"""Background jobs of an agent: told as events, kept over runs and interrupts, ended with the agent."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.contained import needs_layer
from tests.support.processes import alive
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.agent import Agent
from tui_agent.agent.events import JobsChanged, Notice, ToolOutput
from tui_agent.sandbox import Sandbox
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.session.entries import ToolResultEntry, UserEntry
from tui_agent.session.session import Session
from tui_agent.tools import bash


@pytest.fixture(autouse=True)
def short_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bash, "JOB_START_SECONDS", 0.2)


def start(command: str) -> Reply:
    return Reply(calls=(Call("bash", json.dumps({"command": command, "background": True})),))


async def test_a_job_outlives_its_run_and_ends_with_the_agent(tmp_path: Path) -> None:
    look = Reply(calls=(Call("job", "{}"),))
    harness = make_agent(
        tmp_path, [start("echo up; sleep 300"), Reply("It runs."), look, Reply("Still there.")]
    )
    await harness.say("start it")
    (job,) = harness.agent.jobs
    assert job.running
    assert alive(job.pid)
    assert "up\n" in "".join(event.text for event in harness.of(ToolOutput))
    assert harness.of(JobsChanged)[0].jobs[0].running
    harness.agent.interrupt()
    await harness.say("and now?")
    started, looked = (result.output for result in harness.results())
    assert started.startswith("up\n[Job 1 has been running")
    assert looked.startswith("Job 1 has been running")
    await harness.agent.aclose()
    assert not alive(job.pid)
    assert not harness.of(JobsChanged)[-1].jobs[0].running


@needs_layer
async def test_what_a_job_has_made_is_judged_and_seen_when_a_tool_looks(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "dist").mkdir(parents=True)
    (project / ".gitignore").write_text("dist/\n")
    makes = "echo made > dist/a.txt; mkdir dist/.git; echo '[core]' > dist/.git/config; ln -s / dist/root"
    looks = [Call("read", '{"path": "dist/a.txt"}'), Call("glob", '{"pattern": "dist/**"}')]
    client = ScriptedClient(
        [start(f"{makes}; echo up; sleep 300"), *(Reply(calls=(call,)) for call in looks), Reply()]
    )
    box = Sandbox(SandboxSettings(), cache=tmp_path / "cache", home=tmp_path / "home")
    harness = make_agent(tmp_path, client, sandbox=box)
    await harness.say("start it and look")
    _started, read, _listed = (
        entry for entry in harness.path() if isinstance(entry, ToolResultEntry)
    )
    assert read.output == "1\tmade"
    assert [path.name for path in (project / "dist").iterdir()] == ["a.txt"]
    await harness.agent.aclose()


async def test_an_end_nobody_waited_for_is_told_to_the_user_and_with_the_next_request(
    tmp_path: Path,
) -> None:
    go = tmp_path / "go"
    replies = (Reply(text) for text in ("Started.", "It failed.", "Yes."))
    harness = make_agent(
        tmp_path, [start(f"while [ ! -e {go} ]; do sleep 0.02; done; exit 4"), *replies]
    )
    await harness.say("start it")
    go.touch()
    await harness.until(lambda: bool(harness.of(Notice)))
    (notice,) = harness.of(Notice)
    assert notice.severity == "warning"
    assert "Job 1 ended after" in notice.message
    assert "exit code 4" in notice.message
    await harness.say("how is it?")
    assert "Job 1 ended after" in str(harness.client.requests[-1].messages[-1])
    await harness.say("really?")
    assert [entry.synthetic for entry in harness.entries(UserEntry) if entry.synthetic] == ["job"]
    await harness.agent.aclose()


async def test_an_end_that_is_known_is_not_told_again(tmp_path: Path) -> None:
    wait = Reply(calls=(Call("job", json.dumps({"id": 1, "wait": 20})),))
    stop = Reply(calls=(Call("job", json.dumps({"id": 3, "stop": True})),))
    replies = [
        start("exit 3"),
        start("read x"),
        wait,
        Reply("Both."),
        start("sleep 300"),
        stop,
        Reply("Gone."),
    ]
    harness = make_agent(tmp_path, [*replies, Reply("Fine.")])
    for text in ("start them", "and one more", "well?"):
        await harness.say(text)
    assert not [entry for entry in harness.entries(UserEntry) if entry.synthetic == "job"]
    assert not [notice for notice in harness.of(Notice) if "Job" in notice.message]
    await harness.agent.aclose()


async def test_a_job_that_ended_with_the_program_is_told_when_the_session_goes_on(
    tmp_path: Path,
) -> None:
    done = Reply(calls=(Call("job", json.dumps({"id": 2, "wait": 20})),))
    replies = [start("sleep 300 # server"), start("sleep 0.4"), done, Reply("They run.")]
    first = make_agent(tmp_path, replies)
    await first.say("start them")
    # As if the program was killed: nothing is appended.
    await first.agent.aclose()
    client = ScriptedClient([Reply("I see."), Reply("Yes.")])
    ports = replace(first.agent.ports, client=client)
    again = Session(first.store, first.session.id, estimate=lambda _entry: 1)
    agent = Agent(again, ports, model=first.agent.model)
    told: list[str] = []
    agent.channel.subscribe(
        lambda event: told.append(event.message) if isinstance(event, Notice) else None
    )
    await agent.warm()
    assert told == ["Job 1 no longer runs here: sleep 300 # server"]
    for text in ("go on", "and on"):
        agent.submit(text)
        while agent.running:
            await asyncio.sleep(0.01)
    assert told == ["Job 1 no longer runs here: sleep 300 # server"]
    said = [str(request.messages) for request in client.requests]
    assert [text.count("Job 1 no longer runs here") for text in said] == [1, 1]
    assert "Job 2 no longer" not in said[1]
    await agent.aclose()


async def test_words_of_an_output_are_no_lost_job(tmp_path: Path) -> None:
    words = "Job 7 has been running for 3 s, process 9.\nJob 1 ended after 2 s."
    show = Call("bash", json.dumps({"command": f"printf '{words}'"}))
    leave = Call("bash", json.dumps({"command": "sleep 300 >/dev/null 2>&1 & echo left"}))
    replies = [start("sleep 300 # server"), Reply(calls=(leave,)), Reply(calls=(show,)), Reply()]
    first = make_agent(tmp_path, replies)
    await first.say("start it")
    await first.agent.aclose()
    again = Session(first.store, first.session.id, estimate=lambda _entry: 1)
    agent = Agent(again, first.agent.ports, model=first.agent.model)
    entry = agent.lost_jobs.entry()
    assert entry is not None
    lost = [line for line in entry.text.splitlines() if line.startswith("Job ")]
    assert lost == [
        "Job 1 no longer runs here: sleep 300 # server",
        "Job 2 no longer runs here: sleep 300 >/dev/null 2>&1 & echo left",
    ]
    await agent.aclose()


async def test_lost_jobs_are_those_of_the_path_wherever_the_session_stands(tmp_path: Path) -> None:
    first = make_agent(
        tmp_path, [start("sleep 300 # a"), Reply("It runs."), Reply("Yes."), Reply("And yes.")]
    )
    await first.say("start it")
    await first.agent.aclose()
    again = Session(first.store, first.session.id, estimate=lambda _entry: 1)
    agent = Agent(again, first.agent.ports, model=first.agent.model)
    before = again.leaf
    lost = agent.lost_jobs
    entry = lost.entry()
    assert entry is not None
    assert "Job 1 no longer runs here: sleep 300 # a" in entry.text
    again.append(entry)
    assert lost.entry() is None, "the model knows"
    again.move(before)
    assert lost.entry() is not None, "on this branch it does not"
    await agent.aclose()
