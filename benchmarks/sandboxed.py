"""The sandbox: how long a command takes in it, beside bubblewrap itself and beside none, in turns."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from benchmarks.report import Row
from tests.support.contained import SYSTEM_PATH, Contained
from tests.support.tooling import Workspace
from tui_agent.sandbox.detection import find_sandbox
from tui_agent.tools.bash import BashInput, BashTool

NAME = "sandbox"
ROUNDS = 40
FILES = 300


def run() -> Iterator[Row]:
    """Measure; takes about five seconds."""
    with tempfile.TemporaryDirectory() as directory:
        took = asyncio.run(_measured(Path(directory).resolve()))
    bare, none, inside = (
        statistics.median(took[name]) for name in ("bubblewrap", "none", "sandbox")
    )
    note = f"bubblewrap itself {bare:.1f} ms, without a sandbox {none:.1f} ms, measured in turns"
    yield Row(NAME, "a command in the sandbox", inside, "ms", 25, note)


async def _measured(home: Path) -> dict[str, list[float]]:
    box = Contained(home)
    box.git("init", "-q")
    for number in range(FILES):
        box.file(f"src/p{number % 20}/m{number}.py", "x = 1\n")
    box.git("add", ".")
    environ = {"PATH": SYSTEM_PATH, "HOME": str(home)}
    held, free = (
        Workspace(box.root, environ=environ, sandbox=sandbox) for sandbox in (box.sandbox, None)
    )
    program = find_sandbox().program
    words = (
        program,
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "true",
    )

    async def bare() -> None:
        await (await asyncio.create_subprocess_exec(*words, start_new_session=True)).wait()

    def call(space: Workspace) -> Callable[[], Awaitable[object]]:
        return lambda: BashTool().run(BashInput(command="true"), space.context())

    cases: dict[str, Callable[[], Awaitable[object]]] = {
        "bubblewrap": bare,
        "none": call(free),
        "sandbox": call(held),
    }
    took: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, case in cases.items():
            began = time.perf_counter()
            await case()
            took[name].append((time.perf_counter() - began) * 1_000)
    await box.sandbox.aclose()
    return took
