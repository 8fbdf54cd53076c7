"""Runs a command that the user wrote into the settings: hooks, the status line, the sign that a run is over."""

import asyncio
import contextlib
import os
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tui_agent.processes.environment import MARK, command_environment
from tui_agent.processes.own_programs import search_path
from tui_agent.processes.process import Command, end_tree

MAX_OUTPUT = 1_000_000
"""Bytes a command may write."""
_EXIT_GRACE_SECONDS = 0.2
"""How long to wait for the rest of the output; what a command left in the background may hold it open."""


class CommandFailedError(Exception):
    """A command could not be started, took too long or wrote too much; the message goes on after its name."""


def shell_command(text: str, cwd: Path, environment: Mapping[str, str], timeout: float, project: Path) -> Command:
    """Return a line of the settings as a command that finds no programs of ``project`` on its ``PATH``."""
    given = {**command_environment(environment), "PATH": search_path(environment, project)}
    return Command(("/bin/sh", "-c", text), cwd, given, timeout)


async def run_command(command: Command, given: bytes) -> tuple[int, bytes, bytes]:
    """Run a command with bytes on its standard input; return its exit code and what it wrote to its two outputs.

    When it takes too long, or whoever waits is cancelled, it is ended with all it started.

    Raises:
        CommandFailedError: it could not be started, took too long or wrote too much.
    """
    async with contextlib.AsyncExitStack() as stack:
        # A file, not a pipe: a command need not read what it is given.
        stdin = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        stdin.write(given)
        stdin.seek(0)
        out, errors = await CommandOutput.open(stack), await CommandOutput.open(stack)
        mark = secrets.token_hex(8)
        try:
            process = await asyncio.create_subprocess_exec(
                *command.arguments, cwd=command.cwd, start_new_session=True,
                env={**command.environment, MARK: mark}, pass_fds=command.descriptors,
                stdin=stdin, stdout=out.writer, stderr=errors.writer,
            )  # fmt: skip
        except OSError as error:
            raise CommandFailedError(f"it could not be started: {error.strerror or error}") from None
        try:
            async with asyncio.timeout(command.timeout):
                await _ended(process, (out, errors))
        except BaseException as error:
            await asyncio.shield(_end(process, mark))
            if isinstance(error, TimeoutError):
                raise CommandFailedError(f"it took longer than {command.timeout:g} s and was ended") from None
            raise
        return process.returncode or 0, bytes(out.data), bytes(errors.data)


class CommandOutput:
    """What a command writes to one of its outputs; it may be left open by what the command started."""

    def __init__(self, reader: asyncio.StreamReader, writer: int) -> None:
        self.writer = writer
        self.data = bytearray()
        self._reader = reader
        self._closed = False

    @classmethod
    async def open(cls, stack: contextlib.AsyncExitStack) -> Self:
        readable, writer = os.pipe()
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _protocol = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(readable, "rb")
        )
        stack.callback(transport.close)
        outlet = cls(reader, writer)
        stack.callback(outlet.close_writer)
        return outlet

    def close_writer(self) -> None:
        """Leave the writing end to the command."""
        if not self._closed:
            self._closed = True
            os.close(self.writer)

    async def drain(self) -> None:
        """Read until nobody writes any more.

        Raises:
            CommandFailedError: it is too much.
        """
        while chunk := await self._reader.read(65_536):
            self.data += chunk
            if len(self.data) > MAX_OUTPUT:
                raise CommandFailedError(f"it wrote more than {MAX_OUTPUT:,} bytes")


async def _ended(process: asyncio.subprocess.Process, outlets: Sequence[CommandOutput]) -> None:
    """Read until the command has ended, and a moment longer.

    Raises:
        CommandFailedError: it wrote too much.
    """
    for outlet in outlets:
        outlet.close_writer()
    drains = [asyncio.ensure_future(outlet.drain()) for outlet in outlets]
    ended = asyncio.ensure_future(process.wait())
    try:
        while not ended.done():
            waiting: list[asyncio.Future[Any]] = [ended, *(task for task in drains if not task.done())]
            await asyncio.wait(waiting, return_when="FIRST_COMPLETED")
            for task in drains:
                if task.done():
                    task.result()
        await asyncio.wait(drains, timeout=_EXIT_GRACE_SECONDS)
    finally:
        for left in (*drains, ended):
            left.cancel()


async def _end(process: asyncio.subprocess.Process, mark: str) -> None:
    await end_tree(process.pid, mark)
    await process.wait()
