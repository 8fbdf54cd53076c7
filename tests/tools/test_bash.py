"""The ``bash`` tool on real processes, well-behaved ones and others."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.processes import alive, eventually, kill_all, limited, pids_in
from tests.support.tooling import Workspace
from tui_agent.context.truncation import OutputLimits
from tui_agent.errors import ToolError
from tui_agent.processes import process
from tui_agent.tools.bash import BashInput, BashTool

BASH = BashTool()


@pytest.fixture
def pids(space: Workspace) -> Iterator[Path]:
    """A file that commands write their process ids to; what is left of them is ended after the test."""
    path = space.root / "pids"
    yield path
    kill_all(path)


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("echo no; exit 3", "no\n[Exit code 3.]", 3),
        ("kill -SEGV $$", "[Ended by SIGSEGV.]", -11),
        (
            f"{sys.executable} -c 'import sys; print(1); print(2, file=sys.stderr); print(3)'",
            "1\n2\n3",
            0,
        ),
        ("read line; echo got $?; cat", "got 1", 0),
    ],
)
async def test_what_came_out_and_how_it_ended(
    space: Workspace, command: str, output: str, code: int
) -> None:
    result = await space.call(BASH, command=command, timeout=60)
    assert result.output == output
    assert (result.metadata.exit_code, result.is_error) == (code, bool(code))


async def test_long_output_keeps_both_ends_and_the_errors_between(space: Workspace) -> None:
    space.limits = OutputLimits(lines=100)
    command = "seq 1 5000; echo 'fatal error: it broke'; seq 5001 10000"
    result = await space.call(BASH, command=command)
    assert result.output.startswith("1\n2\n")
    assert "\n9999\n10000" in result.output
    assert "5001: fatal error: it broke" in result.output
    assert result.output.count("\n") <= 110
    assert result.metadata.truncation.total_lines == 10_001
    assert space.blobs[result.full_output].count(b"\n") == 10_001


async def test_live_output_comes_while_it_runs_and_in_few_pieces(space: Workspace) -> None:
    flag = space.root / "go"
    command = f"echo first; while [ ! -e {flag} ]; do sleep 0.02; done; for i in $(seq 500); do echo $i; done"
    task = asyncio.ensure_future(space.call(BASH, command=command))
    await eventually(lambda: "first" in "".join(space.live), "nothing came while the command ran")
    assert not task.done()
    flag.touch()
    result = await task
    assert "".join(space.live) == result.output + "\n"
    assert len(space.live) < 50


@pytest.mark.parametrize(
    ("written", "run"),
    [
        ("```bash\necho a\necho b\n```", "echo a\necho b"),
        ("```\necho a\n```\n", "echo a"),
        ("$ echo a", "echo a"),
        ("$ echo a\n$ echo b", "echo a\necho b"),
        ("cat <<'```'\n$ x\n```", "cat <<'```'\n$ x\n```"),
        ("echo a\n$ x", "echo a\n$ x"),
    ],
)
def test_what_a_command_is_shown_in_is_taken_off(written: str, run: str) -> None:
    assert BashInput(command=written).command == run


@pytest.mark.parametrize("command", ["", "  \n", "a\0b"])
def test_no_command(space: Workspace, command: str) -> None:
    with pytest.raises(ToolError):
        BASH.needs(BashInput(command=command), space.context())


async def test_a_directory_that_is_gone(space: Workspace) -> None:
    context = space.context()
    context.cwd = space.root / "gone"
    with pytest.raises(ToolError, match="could not be started: No such file"):
        await BASH.run(BashInput(command="true"), context)


async def test_a_background_child_survives_its_next_output(space: Workspace, pids: Path) -> None:
    """Its output is read on after the call: a closed pipe would end it."""
    go, done = space.root / "go", space.root / "done"
    child = f"while [ ! -e {go} ]; do sleep 0.02; done; seq 1 100000; touch {done}"
    await space.call(BASH, command=f"({child}) & echo $! > {pids}")
    go.touch()
    await eventually(done.exists, "the background process did not survive its output")


SPAWN = "sleep 300 & echo $! >> {pids}; (sleep 300 & echo $! >> {pids}; wait) & echo $! >> {pids}; "
STUBBORN = "trap '' TERM INT HUP; "
ESCAPED = "setsid sh -c 'echo $$ >> {pids}; trap \"\" TERM; sleep 300; sleep 300' & sleep 0.2; "
GROUPS = "set -m; sleep 300 & echo $! >> {pids}; set +m; "
FORKING = (
    "for i in $(seq 20); do (for j in 1 2 3; do sleep 300 & echo $! >> {pids}; done; wait) & done; "
)


CHILDREN = pytest.mark.parametrize("children", [SPAWN, STUBBORN + SPAWN, ESCAPED, GROUPS, FORKING])
STUBBORN_CHILDREN = pytest.mark.parametrize("children", [STUBBORN + SPAWN, ESCAPED])


def endless(children: str, pids: Path, ready: Path) -> str:
    return (
        children.format(pids=pids)
        + f"echo $$ >> {pids}; touch {ready}; while :; do sleep 0.05; done"
    )


@CHILDREN
async def test_nothing_is_left_of_a_cancelled_command(
    space: Workspace, pids: Path, children: str
) -> None:
    ready = space.root / "ready"
    task = asyncio.ensure_future(space.call(BASH, command=endless(children, pids, ready)))
    await eventually(ready.exists, "the command did not start")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(pids_in(pids)) >= 2
    await eventually(lambda: not any(map(alive, pids_in(pids))), "something of the command is left")


async def test_nothing_is_left_of_a_command_that_is_cancelled_before_its_start_is_known(
    space: Workspace, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready, known, create = space.root / "ready", asyncio.Event(), asyncio.create_subprocess_exec

    async def create_late(*given: Any, **named: Any) -> asyncio.subprocess.Process:
        made = await create(*given, **named)
        await known.wait()
        return made

    monkeypatch.setattr(asyncio, "create_subprocess_exec", create_late)
    task = asyncio.ensure_future(space.call(BASH, command=endless(STUBBORN + SPAWN, pids, ready)))
    await eventually(ready.exists, "the command did not start")
    task.cancel()
    await asyncio.sleep(0)
    known.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: not any(map(alive, pids_in(pids))), "something of the command is left")


@STUBBORN_CHILDREN
async def test_nothing_is_left_after_the_time_limit(
    space: Workspace, pids: Path, children: str
) -> None:
    ready = space.root / "ready"
    command = endless(children, pids, ready)
    seconds, result = await limited(
        lambda limit: space.call(BASH, command=command, timeout=limit), lambda _: ready.exists()
    )
    assert f"[Stopped after {seconds:g} s" in result.output
    assert result.is_error
    assert len(pids_in(pids)) >= 2
    await eventually(lambda: not any(map(alive, pids_in(pids))), "something of the command is left")


async def test_a_process_that_can_not_be_ended_is_not_waited_for(
    space: Workspace, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(_leader: int, _mark: str) -> None:
        """As for a process of root's."""

    monkeypatch.setattr(process, "end_tree", refused)
    monkeypatch.setattr(process, "UNSTOPPABLE_SECONDS", 0.01)
    result = await space.call(BASH, command=f"echo $$ > {pids}; exec sleep 600", timeout=0.5)
    [pid] = pids_in(pids)
    assert f"but process {pid} can't be ended and still runs." in result.output
    assert result.is_error


async def test_a_flood_is_bounded_and_counted(space: Workspace) -> None:
    _, result = await limited(
        lambda limit: space.call(BASH, command="yes", timeout=limit),
        lambda result: (
            result.metadata.truncation and result.metadata.truncation.total_bytes > 1_000_000
        ),
    )
    truncation = result.metadata.truncation
    assert truncation.total_lines == -(-truncation.total_bytes // 2)
    assert len(result.output) < 60_000
    assert len(space.blobs[result.full_output]) < 10_000_000
    assert max(len(piece) for piece in space.live) <= process.REPORT_BYTES


async def test_descriptors_are_given_back(space: Workspace) -> None:
    async def calls() -> None:
        for command in ("echo hi", "exit 1", "echo x >&2", "kill -9 $$"):
            await space.call(BASH, command=command)
        await space.call(BASH, command="sleep 9", timeout=0.05)

    await calls()
    before = psutil.Process().num_fds()
    await calls()
    # Others of this process may close some of theirs meanwhile.
    assert psutil.Process().num_fds() <= before
