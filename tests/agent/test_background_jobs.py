"""Background jobs of an agent: told as events, kept over runs and interrupts, ended with the agent."""

import json
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.processes import alive, eventually
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.events import JobsChanged, ToolOutput
from tui_agent.session.entries import ToolResultEntry
from tui_agent.tools import bash


@pytest.fixture(autouse=True)
def short_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bash, "FIRST_LOOK", 0.2)


def start(command: str) -> Reply:
    return Reply(calls=(Call("bash", json.dumps({"command": command, "background": True})),))


async def test_a_job_outlives_its_run_and_ends_with_the_agent(tmp_path: Path) -> None:
    look = Reply(calls=(Call("job", "{}"),))
    client = ScriptedClient([start("echo up; sleep 300"), Reply("It runs."), look, Reply("Still there.")])
    harness = make_agent(tmp_path, client)
    await harness.say("start it")
    (job,) = harness.agent.jobs
    assert job.running
    assert alive(job.pid)
    assert "up\n" in "".join(event.text for event in harness.of(ToolOutput))
    assert [event.jobs[0].running for event in harness.of(JobsChanged)][:1] == [True]
    harness.agent.interrupt()
    await harness.say("and now?")
    results = [entry for entry in harness.path() if isinstance(entry, ToolResultEntry)]
    assert results[0].output.startswith("up\n[Job 1 is running")
    assert results[1].output.startswith("Job 1 is running")
    assert harness.agent.jobs.output(1) == "up\n"
    await harness.agent.aclose()
    assert not alive(job.pid)
    assert not harness.of(JobsChanged)[-1].jobs[0].running


async def test_the_end_of_a_job_is_told_while_nobody_works(tmp_path: Path) -> None:
    go = tmp_path / "go"
    client = ScriptedClient([start(f"while [ ! -e {go} ]; do sleep 0.02; done; exit 4"), Reply("Started.")])
    harness = make_agent(tmp_path, client)
    await harness.say("start it")
    go.touch()
    await eventually(lambda: not harness.of(JobsChanged)[-1].jobs[0].running, "the end was not told")
    assert harness.of(JobsChanged)[-1].jobs[0].exit_code == 4
    await harness.agent.aclose()
