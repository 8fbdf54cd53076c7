"""A command that is started while its event loop ends."""

import asyncio
from pathlib import Path

import pytest

from tui_agent.processes.process import Command, CommandRun, run_command


@pytest.mark.parametrize("turns", range(6))
def test_the_end_of_the_loop_never_hangs_on_a_start(turns: int, tmp_path: Path) -> None:
    command = Command(("sleep", "600"), tmp_path, {"PATH": "/usr/bin:/bin"}, timeout=600)

    async def leave() -> None:
        tasks = [
            asyncio.ensure_future(run_command(command, lambda _text: None, CommandRun()))
            for _ in range(3)
        ]
        for _ in range(turns):
            await asyncio.sleep(0)
        assert not any(task.done() for task in tasks)

    asyncio.run(leave())  # would wait for ever
