"""Nothing of a command lives on when what holds it, or the whole program, is killed."""

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.contained import FORMS, OUTPUTS, Contained, state_of
from tests.support.processes import alive, eventually
from tui_agent.processes.freezing import held_still
from tui_agent.sandbox import sandbox
from tui_agent.sandbox.layer import Layer, make_layer
from tui_agent.sandbox.layout import Layout
from tui_agent.sandbox.plan import ViewPlan

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


def open_descriptors() -> int:
    return psutil.Process().num_fds()


async def test_a_launch_that_is_cancelled_while_it_is_prepared_leaves_nothing(
    box: Contained, monkeypatch: pytest.MonkeyPatch
) -> None:
    await box.run("true", OUTPUTS)
    began = threading.Event()
    go_on = threading.Event()
    made: list[Path] = []

    def slow(*arguments: Any, **more: Any) -> Layer:
        began.set()
        go_on.wait(60)
        layer = make_layer(*arguments, **more)
        made.append(layer.place)
        return layer

    monkeypatch.setattr(sandbox, "make_layer", slow)
    opened = open_descriptors()
    launching = asyncio.ensure_future(
        box.sandbox.launch(["true"], box.root, box.root, OUTPUTS, box.environment())
    )
    if not await asyncio.to_thread(began.wait, 2):
        launching.cancel()
        pytest.skip("this form keeps its copy")
    launching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await launching
    go_on.set()
    await box.sandbox.aclose()

    assert made
    assert not any(place.exists() for place in made)
    assert open_descriptors() <= opened


async def test_a_launch_that_fails_gives_the_caches_back(
    box: Contained, monkeypatch: pytest.MonkeyPatch
) -> None:
    await box.run("true", OUTPUTS)
    opened = open_descriptors()

    def fails(_plan: ViewPlan) -> Layout:
        raise OSError("no layout")

    monkeypatch.setattr(ViewPlan, "layout", fails)
    with pytest.raises(OSError, match="no layout"):
        await box.sandbox.launch(["true"], box.root, box.root, OUTPUTS, box.environment())

    assert open_descriptors() <= opened
