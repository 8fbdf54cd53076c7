"""Nothing of a command lives on when what holds it, or the whole program, is killed."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from tests.support.contained import FORMS, OUTPUTS, Contained, state_of
from tests.support.processes import alive, eventually
from tui_agent.processes.freezing import held_still

TREE = "(setsid sleep 900 &); sleep 900 & (sleep 900 & exec sleep 900) & echo ready; wait"
"""Processes in other sessions, and some without a parent; every one holds the command's output open."""
SLEEPERS = 4

PROGRAM = """
import asyncio
import sys
from pathlib import Path

from tests.support.contained import OUTPUTS, Contained, state_of


async def main(form, scratch, tree):
    box = Contained(scratch / "home", state=state_of(form, scratch))
    box.git("init", "-q")
    await box.run("true", OUTPUTS)
    await box.run(tree, OUTPUTS)


asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
"""


@pytest.fixture(params=FORMS)
async def box(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Contained]:
    box = Contained(tmp_path / "home", state=state_of(request.param, tmp_path))
    box.git("init", "-q")
    yield box
    await box.sandbox.aclose()


@pytest.mark.parametrize("still", [False, True], ids=["running", "standing still"])
async def test_nothing_lives_on_when_the_first_process_is_killed(
    box: Contained, still: bool
) -> None:
    launch = await box.sandbox.launch(
        ["bash", "-c", TREE], box.root, box.root, OUTPUTS, box.environment()
    )
    process = await asyncio.create_subprocess_exec(
        *launch.arguments, cwd=box.root, env=launch.environment, pass_fds=launch.descriptors,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    async with asyncio.timeout(60):
        assert await process.stdout.readline() == b"ready\n"
        with held_still(process.pid) as stands_still:
            if still:
                assert await asyncio.to_thread(stands_still)
            process.kill()
            assert await process.stdout.read() == b""
        await process.wait()
    await box.sandbox.finish(launch, "", None)


@pytest.mark.parametrize("form", FORMS)
async def test_nothing_lives_on_when_the_program_is_killed(tmp_path: Path, form: str) -> None:
    state_of(form, tmp_path)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, form, str(tmp_path), TREE,
        stdin=asyncio.subprocess.DEVNULL, cwd=Path(__file__).parents[2],
    )  # fmt: skip

    def below() -> list[psutil.Process]:
        return list(psutil.Process(process.pid).children(recursive=True))

    def begun() -> bool:
        return len([one for one in below() if one.name() == "sleep"]) == SLEEPERS

    try:
        await eventually(begun, "the command does not begin")
        processes = below()
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    await eventually(
        lambda: not any(alive(one.pid) for one in processes), "something of the command lives on"
    )


async def test_a_command_that_was_not_yet_bound_to_its_first_process_ends_with_it(
    tmp_path: Path,
) -> None:
    """Bubblewrap asks the kernel for that a moment after it began: killed before, it left a process behind."""
    box = Contained(tmp_path / "home", state=state_of("layer", tmp_path))
    box.git("init", "-q")
    launch = await box.sandbox.launch(
        ["bash", "-c", TREE], box.root, box.root, OUTPUTS, box.environment()
    )
    process = await asyncio.create_subprocess_exec(
        *(word for word in launch.arguments if word != "--die-with-parent"),
        cwd=box.root, env=launch.environment, pass_fds=launch.descriptors,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    parent = psutil.Process(process.pid)

    def begun() -> bool:
        names = [one.name() for one in parent.children(recursive=True)]
        return names.count("sleep") == SLEEPERS

    await eventually(begun, "the command does not begin")
    processes = parent.children(recursive=True)
    async with asyncio.timeout(60):
        process.kill()
        await process.wait()
        await box.sandbox.finish(launch, "", None)
    assert not any(alive(one.pid) for one in processes)
    await box.sandbox.aclose()
