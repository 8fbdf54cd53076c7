"""Runs commands from the user's settings: hooks, the status line, notifications."""

import asyncio
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tui_agent.processes.environment import command_environment
from tui_agent.processes.own_programs import search_path
from tui_agent.processes.process import Command, start, watch

MAX_OUTPUT = 1_000_000
"""Maximum bytes that a command may write to each of standard output and standard error."""


class CommandFailedError(Exception):
    """Raised if a command can't be started, takes too long or writes too much.

    The message is a clause that follows the command's name: "it took longer than 5 s …".
    """


def shell_command(
    text: str, cwd: Path, environment: Mapping[str, str], timeout: float, project: Path
) -> Command:
    """Return a command that runs the shell line ``text``; ``timeout`` is in seconds.

    ``PATH`` in its environment contains no directory of ``project``.
    """
    given = {**command_environment(environment), "PATH": search_path(environment, project)}
    return Command(("/bin/sh", "-c", text), cwd, given, timeout)


async def run_with_input(command: Command, given: bytes) -> tuple[int, bytes, bytes]:
    """Run a command with ``given`` as input; returns exit code, standard output and standard error.

    If the command takes too long or writes too much, or the caller is cancelled, all its processes
    are ended.

    Raises CommandFailedError if the command can't be started, takes too long or writes too much.
    """
    out = bytearray()
    errors = bytearray()
    flooded = asyncio.Event()

    def sink(data: bytearray, chunk: bytes) -> None:
        data.extend(chunk)
        if len(data) > MAX_OUTPUT:
            flooded.set()

    # The input is a file, not a pipe, because the command might not read it.
    with tempfile.TemporaryFile() as stdin:
        stdin.write(given)
        stdin.seek(0)
        try:
            started = start(command, partial(sink, out), partial(sink, errors), stdin=stdin)
        except OSError as error:
            raise CommandFailedError(
                f"it could not be started: {error.strerror or error}"
            ) from None
    waiting = [asyncio.ensure_future(started.process.wait()), asyncio.ensure_future(flooded.wait())]
    try:
        async with asyncio.timeout(command.timeout):
            await asyncio.wait(waiting, return_when="FIRST_COMPLETED")
        if not flooded.is_set():
            await started.heard()
    except BaseException as error:
        await asyncio.shield(started.stop())
        if isinstance(error, TimeoutError):
            raise CommandFailedError(
                f"it took longer than {command.timeout:g} s and was ended"
            ) from None
        raise
    finally:
        for one in waiting:
            one.cancel()
    if flooded.is_set():
        await asyncio.shield(started.stop())
        raise CommandFailedError(f"it wrote more than {MAX_OUTPUT:,} bytes")
    watch.report_ended(started.mark)
    return started.process.returncode or 0, bytes(out), bytes(errors)
