"""What a command leaves behind is named, listed with the jobs, and ends with the program: however it got away."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.processes import alive, eventually, kill_all
from tests.support.tooling import Workspace
from tui_agent.processes.environment import own
from tui_agent.processes.jobs import Jobs
from tui_agent.processes.table import children_of, zombies_among
from tui_agent.tools.bash import BashTool
from tui_agent.tools.job import JobTool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to this program")

BASH = BashTool()
PYTHON_FORK = """
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
time.sleep(300)
"""
STAYS = "sh -c 'echo $$ >> {pids}; exec sleep 300'"
FORMS = {
    "in the background": f"{STAYS} & ",
    "nohup": f"nohup {STAYS} >/dev/null 2>&1 & ",
    "setsid": f"setsid {STAYS} >/dev/null 2>&1 & ",
    "setsid that forks": f"setsid --fork {STAYS} >/dev/null 2>&1; ",
    "double fork": f"({STAYS} >/dev/null 2>&1 &) ; ",
    "daemon": f"{sys.executable} {{fork}} {{pids}} >/dev/null 2>&1; ",
    "without its environment": f"env -i setsid --fork /bin/{STAYS} >/dev/null 2>&1; ",
    "disown": f"{STAYS} >/dev/null 2>&1 & disown; ",
}
WAITS = "until [ -s {pids} ]; do sleep 0.02; done; echo done"


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Path]:
    """A file that processes write their numbers to; what is left of them is ended after the test."""
    path = tmp_path / "pids"
    yield path
    kill_all(path)


@pytest.fixture
async def jobs(space: Workspace) -> AsyncIterator[Jobs]:
    space.jobs = Jobs()
    yield space.jobs
    await space.jobs.aclose()


def command(form: str, pids: Path) -> str:
    fork = pids.with_name("fork.py")
    fork.write_text(PYTHON_FORK)
    return (FORMS[form] + WAITS).replace("{pids}", str(pids)).replace("{fork}", str(fork))


@pytest.mark.parametrize("by_itself", [False, True], ids=["stopped", "with the session"])
@pytest.mark.parametrize("form", FORMS)
async def test_it_is_named_listed_and_ended(
    space: Workspace, jobs: Jobs, pids: Path, form: str, *, by_itself: bool
) -> None:
    result = await space.call(BASH, command=command(form, pids))
    pid = int(pids.read_text())
    assert f"({pid})" in result.output
    assert "It is job 1. It ends with this program.]" in result.output
    assert alive(pid)
    [state] = list(jobs)
    assert state.running
    assert state.pid == pid
    listed = await space.call(JobTool())
    assert "left behind by: " in listed.output
    await (jobs.aclose() if by_itself else jobs.find(1).stop())
    assert not alive(pid)
    assert not next(iter(jobs)).running


async def test_one_that_ends_by_itself_is_listed_as_ended(space: Workspace, jobs: Jobs, tmp_path: Path) -> None:
    go = tmp_path / "go"
    text = f"setsid sh -c 'until [ -e {go} ]; do sleep 0.02; done' >/dev/null 2>&1 & sleep 0.1"
    await space.call(BASH, command=text)
    assert jobs.running == 1
    go.touch()
    await eventually(lambda: not jobs.running, "its end was not seen")
    listed = await space.call(JobTool())
    assert "Job 1 ended after" in listed.output
    assert "None" not in listed.output


async def test_what_it_starts_later_is_ended_too(space: Workspace, jobs: Jobs, pids: Path) -> None:
    later = f"sleep 0.3; (setsid {STAYS} &); exit".replace("{pids}", str(pids)).replace("'", '"')
    await space.call(BASH, command=f"setsid sh -c '{later}' >/dev/null 2>&1 & sleep 0.05")
    await eventually(lambda: pids.exists() and pids.read_text(), "it did not start")
    await jobs.aclose()
    assert not alive(int(pids.read_text()))


async def test_a_command_that_leaves_nothing_says_nothing(space: Workspace, jobs: Jobs) -> None:
    """What the program starts for itself meanwhile is nobody's."""
    mine = subprocess.Popen(["sleep", "300"], start_new_session=True, env=own(os.environ))
    try:
        for text in ("echo hi", "true & wait; echo hi", "(echo hi)"):
            assert (await space.call(BASH, command=text)).output == "hi"
        assert not list(jobs)
    finally:
        mine.kill()
        mine.wait()


async def test_orphans_that_ended_do_not_pile_up(space: Workspace, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.processes.leftovers._FORGOTTEN", 0.0)
    await space.call(BASH, command="for i in 1 2 3 4 5; do (true &); (setsid true &); done; sleep 0.2")
    for _ in range(3):
        await space.call(BASH, command="true")
    assert zombies_among(children_of(os.getpid())) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("form", FORMS)
async def test_it_ends_when_the_program_does(pids: Path, tmp_path: Path, form: str, number: signal.Signals) -> None:
    """However that ends, and where nobody keeps a list of jobs."""
    ready = tmp_path / "ready"
    program = f"""
import asyncio, os
from pathlib import Path
from tui_agent.processes.process import Command, FinishedCommand, run_command
async def main():
    run = FinishedCommand()
    arguments = ["bash", "-c", {command(form, pids)!r}]
    await run_command(Command(arguments, Path("/"), {{"PATH": os.environ["PATH"]}}, 60), lambda text: None, run)
    Path({str(ready)!r}).write_text(run.left.names())
    await asyncio.sleep(300)
asyncio.run(main())
"""
    started = subprocess.Popen([sys.executable, "-c", program])
    try:
        await eventually(ready.exists, "the program did not get so far")
        pid = int(pids.read_text())
        assert alive(pid)
        started.send_signal(number)
        started.wait(30)
        await eventually(lambda: not alive(pid), "it lives on")
    finally:
        started.kill()
        started.wait()
