"""Background jobs on real processes, and what becomes of them when the program ends."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.processes import alive, eventually, kill_all, pids_in
from tests.support.tooling import Workspace
from tui_agent.errors import ToolError
from tui_agent.processes import jobs
from tui_agent.processes.environment import own
from tui_agent.processes.jobs import Jobs, JobState, MovedJob
from tui_agent.processes.leftovers import Leftovers
from tui_agent.processes.process import Command, CommandRun, StartedCommand, Watch
from tui_agent.processes.table import children_of, zombies_among
from tui_agent.tools import bash
from tui_agent.tools.base import ToolResult
from tui_agent.tools.bash import BashTool
from tui_agent.tools.job import JobTool

ROOT = Path(__file__).parents[2]
BASH, JOB = BashTool(), JobTool()


@pytest.fixture(autouse=True)
def short_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bash, "JOB_START_SECONDS", 0.2)


@pytest.fixture
async def running(space: Workspace) -> AsyncIterator[Jobs]:
    space.jobs = started = Jobs()
    yield started
    await started.aclose()


@pytest.fixture
def pids(space: Workspace) -> Iterator[Path]:
    """A file that commands write their process ids to; what is left of them is ended after the test."""
    path = space.root / "pids"
    yield path
    kill_all(path)


async def background(space: Workspace, command: str) -> ToolResult:
    return await space.call(BASH, command=command, background=True)


def only(running: Jobs) -> JobState:
    (state,) = running
    return state


async def test_a_job_goes_on_after_its_call_until_it_is_stopped(
    space: Workspace, running: Jobs, pids: Path
) -> None:
    result = await background(space, f"echo up; echo $$ > {pids}; exec sleep 300")
    state = only(running)
    assert result.output == f"up\n[Job 1 has been running for 0 s, process {state.pid}.]"
    assert not result.is_error
    assert state.running
    assert pids_in(pids) == [state.pid]
    assert alive(state.pid)
    assert "".join(space.live) == "up\n"
    for _ in range(2):
        assert "[Job 1 was stopped after" in (await space.call(JOB, id=1, stop=True)).output
        assert not alive(state.pid)


async def test_new_output_comes_once_and_characters_whole(space: Workspace, running: Jobs) -> None:
    go = space.root / "go"
    waits = f"while [ ! -e {go} ]; do sleep 0.02; done"
    result = await background(space, rf"printf 'a\xc3'; {waits}; printf '\xa9b\ntwo\n'; sleep 300")
    assert result.output.startswith("a\n[Job 1 has been running")
    assert "[No new output.]" in (await space.call(JOB, id=1)).output
    go.touch()
    await eventually(lambda: only(running).output_bytes == 9, "no more output")
    assert (await space.call(JOB, id=1)).output.startswith("éb\ntwo\n[Job 1 has been running")
    assert "[No new output.]" in (await space.call(JOB, id=1)).output


async def test_one_that_cannot_work_is_told_at_once(
    space: Workspace, running: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bash, "JOB_START_SECONDS", 10)
    result = await background(space, "echo no such script; exit 3")
    assert result.output.startswith("no such script\n[Job 1 ended after")
    assert result.output.endswith("with exit code 3.]")
    assert result.is_error
    assert result.metadata.exit_code == 3


async def test_waiting_for_the_end(space: Workspace, running: Jobs) -> None:
    go = space.root / "go"
    await background(space, f"while [ ! -e {go} ]; do sleep 0.02; done; echo built")
    waiting = asyncio.ensure_future(space.call(JOB, id=1, wait=60))
    await asyncio.sleep(0)
    go.touch()
    result = await asyncio.wait_for(waiting, 60)
    assert result.output.startswith("built\n[Job 1 ended after")
    assert result.metadata.exit_code == 0
    assert "built" in "".join(space.live)


async def test_waiting_ends_and_the_job_does_not(space: Workspace, running: Jobs) -> None:
    await background(space, "sleep 300")
    result = await space.call(JOB, id=1, wait=1)
    assert "has been running for" in result.output
    waiting = asyncio.ensure_future(space.call(JOB, id=1, wait=60))
    for _ in range(20):
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert only(running).running


async def test_a_stopped_job_may_clean_up(
    space: Workspace, running: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.processes.watcher.TERM_GRACE_SECONDS", 60)
    await background(
        space, "trap 'sleep 0.2; touch cleaned; exit' TERM; echo up; while :; do sleep 0.02; done"
    )
    await running.find(1).stop()
    assert (space.root / "cleaned").exists()


async def test_an_interrupted_start_leaves_nothing(
    space: Workspace, running: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bash, "JOB_START_SECONDS", 60)
    starting = asyncio.ensure_future(background(space, "echo up; sleep 300"))
    await eventually(lambda: "up" in "".join(space.live), "it did not start")
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await eventually(lambda: not alive(only(running).pid), "it went on")


async def test_the_list(space: Workspace, running: Jobs) -> None:
    assert (await space.call(JOB)).output == "No jobs."
    await background(space, "sleep 300 # the\nserver")
    await background(space, "true")
    await eventually(lambda: running.running == 1, "the second did not end")
    lines = (await space.call(JOB)).output.splitlines()
    assert [line.split(" ")[:2] for line in lines] == [["Job", "1"], ["Job", "2"]]
    assert lines[0].endswith("sleep 300 # the server")
    assert "exit code 0" in lines[1]


async def test_unknown_jobs_and_no_jobs(space: Workspace, running: Jobs) -> None:
    with pytest.raises(ToolError, match=r"There is no job 7\. Jobs: none\."):
        await space.call(JOB, id=7)
    await background(space, "true")
    with pytest.raises(ToolError, match=r"Jobs: 1\."):
        await space.call(JOB, id=7)
    space.jobs = None
    with pytest.raises(ToolError, match="Commands can't run in the background here"):
        await background(space, "true")


async def test_there_is_a_limit(
    space: Workspace, running: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_RUNNING", 2)
    for _ in range(2):
        await background(space, "sleep 300")
    with pytest.raises(ToolError, match="2 jobs are running; stop one first"):
        await background(space, "sleep 300")
    await running.find(1).stop()
    await background(space, "sleep 300")


async def test_old_jobs_leave_the_list(
    space: Workspace, running: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_ENDED", 2)
    for _ in range(5):
        await background(space, "true")
        await eventually(lambda: not running.running, "it did not end")
    assert [state.id for state in running] == [3, 4, 5] or [state.id for state in running] == [4, 5]


linux = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux hands orphans to this program"
)

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


def leaving(form: str, pids: Path) -> str:
    fork = pids.with_name("fork.py")
    fork.write_text(PYTHON_FORK)
    return (FORMS[form] + WAITS).replace("{pids}", str(pids)).replace("{fork}", str(fork))


@linux
@pytest.mark.parametrize("by_itself", [False, True], ids=["stopped", "with the session"])
@pytest.mark.parametrize("form", FORMS)
async def test_what_is_left_behind_is_named_listed_and_ended(
    space: Workspace, running: Jobs, pids: Path, form: str, *, by_itself: bool
) -> None:
    result = await space.call(BASH, command=leaving(form, pids))
    pid = int(pids.read_text())
    assert f"({pid})" in result.output
    assert "It is job 1. It ends when tui-agent ends.]" in result.output
    assert alive(pid)
    [state] = list(running)
    assert state.running
    assert state.pid == pid
    listed = await space.call(JOB)
    assert "left behind by: " in listed.output
    await (running.aclose() if by_itself else running.find(1).stop())
    assert not alive(pid)
    assert not next(iter(running)).running


@linux
async def test_what_is_left_behind_and_ends_by_itself_is_listed_as_ended(
    space: Workspace, running: Jobs, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    text = f"setsid sh -c 'until [ -e {go} ]; do sleep 0.02; done' >/dev/null 2>&1 & sleep 0.1"
    await space.call(BASH, command=text)
    assert running.running == 1
    go.touch()
    await eventually(lambda: not running.running, "its end was not seen")
    listed = await space.call(JOB)
    assert "Job 1 ended after" in listed.output
    assert "None" not in listed.output


@linux
async def test_what_something_left_behind_starts_later_is_ended_too(
    space: Workspace, running: Jobs, pids: Path
) -> None:
    later = f"sleep 0.3; (setsid {STAYS} &); exit".replace("{pids}", str(pids)).replace("'", '"')
    await space.call(BASH, command=f"setsid sh -c '{later}' >/dev/null 2>&1 & sleep 0.05")
    await eventually(lambda: pids.exists() and pids.read_text(), "it did not start")
    await running.aclose()
    assert not alive(int(pids.read_text()))


@linux
async def test_a_command_that_leaves_nothing_says_nothing(space: Workspace, running: Jobs) -> None:
    """What the program starts for itself meanwhile is nobody's."""
    mine = subprocess.Popen(["sleep", "300"], start_new_session=True, env=own(os.environ))
    try:
        for text in ("echo hi", "true & wait; echo hi", "(echo hi)"):
            assert (await space.call(BASH, command=text)).output == "hi"
        assert not list(running)
    finally:
        mine.kill()
        mine.wait()


@linux
async def test_orphans_that_ended_do_not_pile_up(
    space: Workspace, running: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.processes.leftovers._FORGOTTEN", 0.0)
    await space.call(
        BASH, command="for i in 1 2 3 4 5; do (true &); (setsid true &); done; sleep 0.2"
    )
    for _ in range(3):
        await space.call(BASH, command="true")
    assert zombies_among(children_of(os.getpid())) == []


async def test_what_was_not_looked_at_in_time_is_counted_and_stored_at_the_end(
    space: Workspace, running: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "RING_BYTES", 1_000)
    go = space.root / "go"
    await background(space, f"while [ ! -e {go} ]; do sleep 0.02; done; seq 1 5000; sleep 0.4")
    go.touch()
    await eventually(lambda: only(running).output_bytes == 23_893, "no output")
    result = await space.call(JOB, id=1, wait=60)
    assert result.output.startswith("[The 22.9 kB before this were dropped.]")
    assert "\n5000\n" in result.output
    assert result.full_output is not None
    assert (
        space.blobs[result.full_output]
        == "".join(f"{number}\n" for number in range(1, 5_001)).encode()
    )


async def test_the_screen_sees_the_end_of_the_output(space: Workspace, running: Jobs) -> None:
    await background(space, r"printf '\033[31mred\033[0m\n'; seq 1 100; sleep 300")
    await eventually(lambda: only(running).output_bytes > 290, "no output")
    assert running.find(1).tail(20_000).startswith("red\n1\n")
    assert running.find(1).tail(8) == "\n99\n100\n"


async def test_changes_are_announced(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "CHANGE_INTERVAL", 0.05)
    seen: list[tuple[bool, int]] = []
    space.jobs = Jobs(
        lambda: seen.extend((state.running, state.output_bytes) for state in space.jobs or ())
    )
    go = space.root / "go"
    await background(
        space, f"while [ ! -e {go} ]; do sleep 0.02; done; echo hi; while :; do sleep 1; done"
    )
    assert seen == [(True, 0)]
    go.touch()
    await eventually(lambda: (True, 3) in seen, "output was not announced")
    await space.jobs.aclose()
    assert seen[-1] == (False, 3)


WRITE = "echo $$ >> {pids}; "
RUNAWAYS = {
    "never ends": WRITE + "while :; do sleep 0.05; done",
    "forks": WRITE + "for i in $(seq 10); do (echo $BASHPID >> {pids}; sleep 300) & done; wait",
    "ignores SIGTERM": "trap '' TERM INT HUP; " + WRITE + "while :; do sleep 0.05; done",
    "fills stdout": WRITE + "exec yes",
    "leaves the session": WRITE
    + "setsid sh -c 'trap \"\" TERM; echo $$ >> {pids}; while :; do sleep 0.05; done' & while :; do sleep 0.05; done",
    "ends before its children": WRITE
    + "(echo $BASHPID >> {pids}; trap '' TERM; while :; do sleep 0.05; done) & exit 0",
}


async def test_nothing_is_left_when_the_session_is_closed(
    space: Workspace, running: Jobs, pids: Path
) -> None:
    for text in RUNAWAYS.values():
        await background(space, text.format(pids=pids))
    await eventually(lambda: len(pids_in(pids)) >= 18, "they did not start")
    await asyncio.wait_for(running.find(1).stop(), 60)
    assert [state.running for state in running] == [False, *[True] * (len(RUNAWAYS) - 1)]
    await asyncio.wait_for(running.aclose(), 60)
    assert [pid for pid in pids_in(pids) if alive(pid)] == []


PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from tui_agent.processes.jobs import Jobs
from tui_agent.processes.process import Command, CommandRun, run_command

async def main():
    jobs = Jobs()
    environment = {"PATH": os.environ["PATH"]}
    started, left = (argument.split("\\0") for argument in (Path(sys.argv[1]) / "commands").read_text().split("\\1"))
    for text in started:
        jobs.start(text, Command(("bash", "-c", text), Path(sys.argv[1]), environment, 0), lambda data: "")
    for text in left:
        leave = Command(("bash", "-c", text), Path(sys.argv[1]), environment, 60)
        await run_command(leave, lambda text: None, CommandRun())
    inner = f"echo $$ >> {sys.argv[1]}/pids; sleep 300"
    stuck = Command(("bash", "-c", inner), Path(sys.argv[1]), environment, 600)
    await run_command(stuck, lambda text: None, CommandRun())

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
async def test_nothing_is_left_when_the_program_is_killed(
    space: Workspace, pids: Path, number: signal.Signals
) -> None:
    """Not even by what it can't see coming, and with a command in the foreground and others left behind."""
    if number != signal.SIGKILL and signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip(
            "these tests were started with the signal ignored, and so is every program they start"
        )
    left = (
        [leaving(form, pids) for form in FORMS]
        if sys.platform == "linux"
        else [STAYS.format(pids=pids) + " &"]
    )
    commands = (
        "\0".join(texts) for texts in ([text.format(pids=pids) for text in RUNAWAYS.values()], left)
    )
    space.file("commands", "\1".join(commands))
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(space.root), cwd=ROOT, start_new_session=True
    )
    try:
        await eventually(lambda: len(pids_in(pids)) >= 19 + len(left), "the jobs did not start")
        assert all(alive(pid) for pid in pids_in(pids)[-2:])
        os.kill(program.pid, number)
        await asyncio.wait_for(program.wait(), 60)
        await eventually(
            lambda: not [pid for pid in pids_in(pids) if alive(pid)], "something goes on"
        )
    finally:
        if program.returncode is None:
            program.kill()


async def test_the_watcher_ends_with_the_program(space: Workspace) -> None:
    code = (
        "from tui_agent.processes.process import watch; import psutil, os\n"
        "watch.report_running('x', 2**22 + 1); watch.report_ended('x')\n"
        "print(*[p.pid for p in psutil.Process().children()])"
    )
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(program.communicate(), 60)
    (watcher,) = map(int, output.split())
    await eventually(lambda: not alive(watcher), "the watcher stays")


async def test_a_watcher_that_was_killed_is_replaced(space: Workspace, pids: Path) -> None:
    watch = Watch()
    children = {child.pid for child in psutil.Process().children()}
    watch.report_running("x", 2**22 + 1)
    (first,) = {child.pid for child in psutil.Process().children()} - children
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: not alive(first), "it lives")
    watch.report_running("y", 2**22 + 2)

    def new() -> set[int]:
        return {child.pid for child in psutil.Process().children()} - {*children, first}

    await eventually(new, "there is no new one")
    (second,) = new()
    watch.report_ended("x")
    os.kill(second, signal.SIGKILL)
    await eventually(lambda: not alive(second), "it lives")
    watch.report_ended("y")


# -- commands that the user moves to the background ------------------------------------------------------


async def moved(
    space: Workspace, running: Jobs, command: str, *, timeout: float = 60
) -> ToolResult:
    """Run a command as a call would, and move it to the background once it has written something."""
    call = asyncio.ensure_future(space.call(BASH, command=command, timeout=timeout))
    await eventually(lambda: bool(space.live) and running.movable == 1, "it never ran")
    assert running.move() == 1
    return await call


async def test_a_command_that_is_moved_goes_on_beyond_its_time_limit(
    space: Workspace, running: Jobs
) -> None:
    flag = space.root / "go"
    result = await moved(
        space,
        running,
        f"echo first; while [ ! -e {flag} ]; do sleep 0.02; done; echo second; exit 3",
        timeout=1.5,
    )
    assert result.output.startswith("first\n[The user moved the command to the background")
    assert not result.is_error
    assert (only(running).running, running.movable) == (True, 0)
    job = running.find(only(running).id)
    assert isinstance(job, MovedJob)
    assert job.limit is None
    flag.touch()
    await job.ended.wait()
    assert only(running).exit_code == 3
    assert running.unreported() == [job]
    last = await space.call(JOB, id=job.id)
    assert last.output.startswith("second\n")
    assert space.blobs[last.full_output] == b"first\nsecond\n"
    assert "".join(space.live) == "first\n", "the call has ended: nothing is written to its card"


async def test_a_command_can_be_moved_while_the_rest_of_its_output_is_read(
    space: Workspace, running: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_ended, go_on = asyncio.Event(), asyncio.Event()

    async def heard(_started: StartedCommand) -> None:
        has_ended.set()
        await go_on.wait()

    monkeypatch.setattr(StartedCommand, "heard", heard)
    call = asyncio.ensure_future(space.call(BASH, command="exit 3"))
    await has_ended.wait()
    assert running.move() == 1
    try:
        assert "moved the command to the background" in (await call).output
    finally:
        go_on.set()
    await running.find(only(running).id).ended.wait()
    assert only(running).exit_code == 3


@pytest.mark.parametrize("how", ["stop", "aclose"])
async def test_a_moved_command_ends_with_all_its_processes(
    space: Workspace, running: Jobs, pids: Path, how: str
) -> None:
    await moved(space, running, f"sleep 4711 & echo $! $$ > {pids}; echo up; wait")
    job = running.find(only(running).id)
    if how == "stop":
        await job.stop()
    else:
        await running.aclose()
    assert not any(alive(pid) for pid in pids_in(pids))
    assert only(running).stopped
    assert not running.unreported()


async def test_a_call_that_is_stopped_before_it_is_moved_leaves_nothing(
    space: Workspace, running: Jobs, pids: Path
) -> None:
    call = asyncio.ensure_future(
        space.call(BASH, command=f"echo $$ > {pids}; echo up; sleep 4711", timeout=60)
    )
    await eventually(lambda: running.movable == 1 and pids.exists(), "it never ran")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not any(alive(pid) for pid in pids_in(pids))
    assert not list(running)
    assert running.move() == 0


async def test_a_moved_command_has_ended_also_where_its_end_fails(
    space: Workspace, running: Jobs, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> str:
        raise OSError("the disk is full")

    with running.foreground("make") as command:
        job = running.take_over(
            command, CommandRun(), asyncio.ensure_future(fail()), space.put_blob
        )
    await asyncio.wait_for(job.ended.wait(), 10)
    await eventually(lambda: "the disk is full" in caplog.text, "it was not logged")
    assert not only(running).running


async def test_jobs_are_numbered_in_one_row_however_they_became_jobs(
    space: Workspace, running: Jobs
) -> None:
    def command(*words: str) -> Command:
        return Command(words, space.root, own(os.environ), 0)

    async def ends() -> str:
        return ""

    with pytest.raises(OSError, match="no-such-program"):
        running.start("none", command("/no-such-program"), space.put_blob)
    started = running.start("one", command("true"), space.put_blob)
    with running.foreground("make") as moved:
        taken = running.take_over(
            moved, CommandRun(), asyncio.ensure_future(ends()), space.put_blob
        )
    # A process that has ended leads no session; number 0 would stand for the kernel's own.
    leader = subprocess.Popen(["true"])
    leader.wait()
    adopted = running.adopt("three", Leftovers(leader.pid, "none", ()))
    numbers = [started.id, taken.id, adopted.id]
    assert numbers == [1, 2, 3] == [state.id for state in running]


async def test_a_job_has_ended_even_if_the_work_after_it_fails(space: Workspace) -> None:
    async def fails(_said: str, _code: int | None) -> str:
        raise RuntimeError("the work after the job failed")

    jobs_here = Jobs()
    stored: list[bytes] = []

    def put_blob(data: bytes) -> str:
        stored.append(data)
        return "blob"

    command = Command(("echo", "hello"), space.root, {}, 60, ended=fails)
    job = jobs_here.start("echo hello", command, put_blob)
    async with asyncio.timeout(30):
        await job.ended.wait()
    async with asyncio.timeout(30):
        await jobs_here.aclose()

    assert (job.state.running, job.stored, stored) == (False, "blob", [b"hello\n"])


async def test_the_output_of_a_moved_job_is_kept_even_if_its_end_fails() -> None:
    async def fails() -> str:
        raise RuntimeError("the work after the command failed")

    run = CommandRun()
    run.capture.feed(b"hello\n")
    jobs_here = Jobs()
    with jobs_here.foreground("echo hello") as foreground:
        ending = asyncio.ensure_future(fails())
        job = jobs_here.take_over(foreground, run, ending, lambda _data: "blob")
    async with asyncio.timeout(30):
        await job.ended.wait()
    assert job.stored == "blob"
