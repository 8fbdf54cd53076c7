"""Starts a model host process, and distributes its events to the requests."""

import asyncio
import contextlib
import importlib.util
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

from tui_agent.isolation import isolated_module
from tui_agent.model.hosted import lines
from tui_agent.model.hosted.lines import Event, LineReader
from tui_agent.processes.environment import own
from tui_agent.processes.environment_table import chosen_for
from tui_agent.web.proxies import read_proxies

log = logging.getLogger(__name__)

_READ = 1 << 18
_LOG_LIMIT = 1 << 20
_EXIT_GRACE_SECONDS = 2.0
"""Number of seconds that the host process has to end by itself before it is killed."""


COMMAND = isolated_module("tui_agent.model.hosted.host")
"""Command line that starts a model host."""


def is_installed() -> bool:
    return importlib.util.find_spec("litellm") is not None


def install_command() -> str:
    wanted = "litellm"
    with contextlib.suppress(PackageNotFoundError):
        for line in requires("tui-agent") or ():
            if line.startswith("litellm"):
                wanted = line.partition(";")[0].strip()
                break
    return f'{sys.executable} -m pip install "{wanted}"'


class HostGoneError(Exception):
    """Raised if the model host (the process that runs litellm) has ended.

    The exception's message is the exit status of the process or the signal that ended it.
    """


def host_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables for a model host, without secrets.

    API keys are sent with each request instead.
    """
    kept = chosen_for("host", environ)
    return own(kept | read_proxies(environ).variables())


class Inbox(asyncio.Queue[Event | HostGoneError]):
    """The queue of one request's events. If the host ends, the last item is a `HostGoneError`."""

    async def take(self) -> Event:
        """Wait for the next event and return it.

        Raises:
            HostGoneError: the host has ended.
        """
        event = await self.get()
        if isinstance(event, HostGoneError):
            raise event
        return event


class Link:
    """The connection to a running model host, with an inbox for the host and for each request."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        process: asyncio.subprocess.Process,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._process = process
        self.host = Inbox()
        """Events of the host itself; the first one is ``READY``."""
        self._inboxes = {lines.HOST: self.host}
        self._reading = asyncio.create_task(self._read())
        self.pid = process.pid
        self._killed = False

    @property
    def is_alive(self) -> bool:
        return not self._killed and not self._reading.done()

    def open(self, number: int) -> Inbox:
        inbox = self._inboxes[number] = Inbox()
        return inbox

    def close(self, number: int, *, cancel: bool) -> None:
        """Remove a request's inbox. With ``cancel``, also tell the host to stop the request."""
        if cancel:
            self.send({"op": "cancel", "id": number})
        self._inboxes.pop(number, None)

    def send(self, line: dict[str, Any]) -> None:
        """Send a line to the host. Does nothing if the host has ended; the inboxes report that."""
        if self.is_alive and not self._writer.is_closing():
            self._writer.write(lines.encode(line))

    def kill(self) -> None:
        self._killed = True
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._writer.close()

    async def aclose(self) -> None:
        self.send({"op": "shutdown"})
        self._writer.close()
        try:
            async with asyncio.timeout(_EXIT_GRACE_SECONDS):
                await self._reading
                await self._process.wait()
        except TimeoutError:
            self.kill()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        incoming = LineReader()
        try:
            while data := await self._reader.read(_READ):
                for number, event in incoming.feed(data):
                    if number in self._inboxes:
                        self._inboxes[number].put_nowait(event)
        except (OSError, ValueError):
            log.exception("could not read from the model host")
        # The host has ended, or it must end because nothing more is read from it.
        try:
            async with asyncio.timeout(_EXIT_GRACE_SECONDS):
                status = await self._process.wait()
        except TimeoutError:
            self._process.kill()
            status = await self._process.wait()
        if status < 0:
            ended = f"signal {-status}"
        else:
            ended = f"exit status {status}"
        for inbox in self._inboxes.values():
            inbox.put_nowait(HostGoneError(ended))


async def start(environ: Mapping[str, str], log_path: Path | None) -> Link:
    """Start a model host and return the link to it, without waiting until it is ready.

    The host ends with this program. ``log_path`` is the file for the host's output; None discards
    the output.

    Raises:
        OSError: no process could be started, or the log file can't be opened.
    """
    with _log_file(log_path) as log_file:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log_file,
            env=host_environment(environ),
            cwd=Path(sys.executable).anchor,
            # Ctrl+C in the terminal must not interrupt the host.
            start_new_session=True,
        )
    assert process.stdout is not None and process.stdin is not None  # noqa: S101, PT018 - both are pipes
    return Link(process.stdout, process.stdin, process)


@contextlib.contextmanager
def _log_file(path: Path | None) -> Iterator[int]:
    if path is None:
        yield asyncio.subprocess.DEVNULL
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    too_long = path.exists() and path.stat().st_size > _LOG_LIMIT
    descriptor = os.open(
        path, os.O_CREAT | os.O_WRONLY | (os.O_TRUNC if too_long else os.O_APPEND), 0o600
    )
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def last_words(path: Path | None) -> str:
    """Return the last line of a host's log, which usually says why the host ended, or ""."""
    try:
        text = ""
        if path is not None:
            text = path.read_bytes()[-2000:].decode("utf-8", "replace")
    except OSError:
        return ""
    found = [line.strip() for line in text.splitlines() if line.strip()]
    if found:
        return found[-1]
    return ""
