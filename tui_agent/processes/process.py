"""Running one command, mostly without a terminal: its output as it comes, a time limit, and its end."""

import asyncio
import codecs
import contextlib
import logging
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import IO

from tui_agent.lazy import dataclass, frozen
from tui_agent.processes.capture import Capture
from tui_agent.processes.environment import MARK, own
from tui_agent.processes.leftovers import Leftovers, adopt_orphans, left_behind
from tui_agent.processes.table import reap
from tui_agent.processes.terminal import Terminal, open_terminal
from tui_agent.processes.watcher import WatchedCommand, end

log = logging.getLogger(__name__)

MAX_NAMED_PROCESSES = 100
"""Processes of one command that are named: a line must go through the pipe in one piece. The mark
tells of others."""

_ROOT = str(Path(__file__).parents[2])
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from tui_agent.processes.watcher import main; main()"

REPORT_INTERVAL = 0.05
"""Seconds between two pieces of live output."""

REPORT_BYTES = 16 * 1024
"""Most bytes of one piece; of a flood only the newest are shown."""

EXIT_GRACE_SECONDS = 0.1
"""Seconds to wait for the rest of the output after the command's own process ended."""

_CHUNK = 64 * 1024
_BURST = 1024 * 1024

_FLOOD_PAUSE_SECONDS = 0.015
"""After a burst the reader rests, so that a flood costs a tenth of a core and its writer waits."""

_TRICKLE = 0.05


async def end_tree(leader: int, mark: str) -> None:
    """End a session of processes and those that left it: see ``watcher.end``."""
    seen = await asyncio.to_thread(end, {mark: WatchedCommand(leader)})
    # Orphans among them are this program's to wait for, the leader is who started it.
    reap(seen - {leader})


class Watch:
    """The pipe to the watcher, which is started with the first command and again if it is gone."""

    def __init__(self) -> None:
        self._line: int | None = None
        self._told: dict[str, str] = {}
        self._broken = False

    def runs(self, mark: str, pid: int = 0, left: Mapping[int, int] | None = None) -> None:
        """A command runs: its session and everything with its mark are to end with the program.

        Without its number it is about to start; sent before, because the program may be killed
        right after. With ``left`` it has ended: these processes, each with its start, are to end
        with the program.
        """
        text = f"+ {mark} {pid}\n"
        if left is not None:
            processes = islice(left.items(), MAX_NAMED_PROCESSES)
            named = [f"{other}:{start}" for other, start in processes]
            text = f"& {mark} {pid} {' '.join(named)}\n"
        self._told[mark] = text
        if self._broken or (self._line is not None and self._write(text)):
            return
        try:
            self._line = _start()
        except OSError as error:
            self._broken = True
            log.warning("commands are not ended when the program is killed: %s", error)
            return
        self._write("".join(self._told.values()))

    def ended(self, mark: str) -> None:
        if self._told.pop(mark, None) is not None and self._line is not None:
            self._write(f"- {mark}\n")

    def _write(self, text: str) -> bool:
        assert self._line is not None  # noqa: S101 - callers look
        try:
            os.write(self._line, text.encode("ascii"))
        except BlockingIOError:  # it is stopped; earlier lines still count
            return True
        except OSError:
            os.close(self._line)
            self._line = None
            return False
        return True


def _start() -> int:
    """Start a watcher and return the writing end of its input; no child of the program inherits that."""
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-c", _PROGRAM, _ROOT],
            own({}),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reader, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
    except BaseException:
        os.close(writer)
        raise
    finally:
        os.close(reader)
    return writer


watch = Watch()
"""The one of this program."""


@frozen
class Command:
    """A command to run. ``timeout`` is in seconds, ``descriptors`` stay open in it.

    ``ended`` is awaited with the end of its output and its exit code when it has run as a job, and
    returns a note.
    """

    arguments: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    timeout: float
    descriptors: tuple[int, ...] = ()
    ended: Callable[[str, int | None], Awaitable[str]] | None = None
    looked_at: Callable[[int], Awaitable[None]] | None = None
    """Awaited before others look at the changes of a job that still runs."""
    terminal: Terminal | None = None
    """The terminal that is its input and output; None where it has none."""
    gone: Callable[[], Awaitable[None]] | None = None
    """Waits, once its own process has ended, until all others have as well; None where they may
    stay."""


@dataclass
class FinishedCommand:
    """A command that ran or was stopped. ``exit_code`` is negative for the signal that ended it."""

    capture: Capture = field(default_factory=Capture)
    exit_code: int | None = None
    timed_out: bool = False
    left: Leftovers | None = None
    """Processes that go on after the command ended; None where there are none."""
    job: int | None = None
    """The job they are listed as."""


class _Pipe:
    """The reading end of a command's output, read by the event loop at a bounded speed."""

    def __init__(self, descriptor: int, sink: Callable[[bytes], None], pause: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._sink: Callable[[bytes], None] | None = sink
        self._pause = pause
        self._burst = 0
        self.ended = asyncio.Event()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._readable)

    def _readable(self) -> None:
        try:
            chunk = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
            return
        seconds = _TRICKLE
        if self._sink is not None:
            self._sink(chunk)
            self._burst += len(chunk)
            if self._burst < _BURST:
                return
            self._burst = 0
            seconds = self._pause
        self._loop.remove_reader(self._descriptor)
        self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        if not self.ended.is_set():
            self._loop.add_reader(self._descriptor, self._readable)

    def close(self) -> None:
        if not self.ended.is_set():
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self.ended.set()

    async def finish(self) -> None:
        """Read the rest once the command has ended, then let go.

        A background process may hold the other end for ever. It is read on and its output thrown
        away: closing the pipe would end it at its next line.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EXIT_GRACE_SECONDS):
                await self.ended.wait()
        self._sink = None


class Reporter:
    """Hands live output on in pieces, so that a thousand small writes are a few repaints."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._report = report
        self._pending = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, chunk: bytes) -> None:
        """Take output; too much of it waiting is dropped but for its end."""
        self._pending += chunk
        del self._pending[:-REPORT_BYTES]
        if self._timer is None:
            self._timer = self._loop.call_later(REPORT_INTERVAL, self.flush)

    def flush(self) -> None:
        """Report waiting output; an incomplete character stays for the next time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        text = self._decoder.decode(bytes(self._pending))
        self._pending.clear()
        if text:
            self._report(text)


class Child:
    """A process of this program, and its end as the event loop hears of it.

    In asyncio's own start a process and its pipes are two tasks: an event loop that ends between
    them waits for ever.
    """

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.pid = process.pid
        self.returncode: int | None = None
        """As in ``subprocess``; None while it runs."""
        self._ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait() -> None:
            code = process.wait()
            with contextlib.suppress(RuntimeError):  # the event loop ended before it
                loop.call_soon_threadsafe(self._has_ended, code)

        threading.Thread(target=wait, name=f"waits for {self.pid}", daemon=True).start()

    async def wait(self) -> None:
        await self._ended.wait()

    def _has_ended(self, code: int) -> None:
        self.returncode = code
        self._ended.set()


@dataclass
class StartedCommand:
    """A command that was started, in a session of its own. ``pipes`` are its outputs."""

    process: Child
    pipes: tuple[_Pipe, ...]
    mark: str

    async def heard(self) -> None:
        """Read the rest of its output once it has ended."""
        for pipe in self.pipes:
            await pipe.finish()

    async def stop(self) -> None:
        await end_tree(self.process.pid, self.mark)
        await self.process.wait()
        await self.heard()
        for pipe in self.pipes:
            pipe.close()
        watch.ended(self.mark)


def start(
    command: Command,
    *sinks: Callable[[bytes], None],
    pause: float | None = None,
    given: IO[bytes] | int = subprocess.DEVNULL,
) -> StartedCommand:
    """Start a command, on a running event loop.

    Nothing is awaited, so no cancelling can leave half a start behind.

    Args:
        command: the command; its time limit is the caller's to keep.
        sinks: take its output on the event loop's thread: one both streams, two each its own. What
            runs in a terminal has one.
        pause: seconds the reader rests after a burst; a longer one slows a flood down.
        given: its standard input.

    Raises:
        OSError: it could not be started.
    """
    if command.terminal is None:
        ends = [os.pipe() for _sink in sinks]
    else:
        ends = [open_terminal()]
        given = ends[0][1]
    mark = secrets.token_hex(8)
    adopt_orphans()
    watch.runs(mark)
    try:
        process = Child(
            subprocess.Popen(
                command.arguments,
                cwd=command.cwd,
                env={**command.environment, MARK: mark},
                stdin=given,
                stdout=ends[0][1],
                stderr=ends[-1][1],
                start_new_session=True,
                pass_fds=command.descriptors,
            )
        )
    except BaseException:
        for reader, _writer in ends:
            os.close(reader)
        watch.ended(mark)
        raise
    finally:
        for _reader, writer in ends:
            os.close(writer)
    if command.terminal is not None:
        command.terminal.connect(ends[0][0])
    watch.runs(mark, process.pid)
    rests = _FLOOD_PAUSE_SECONDS if pause is None else pause
    pipes: list[_Pipe] = []
    for (reader, _writer), sink in zip(ends, sinks, strict=True):
        pipes.append(_Pipe(reader, sink, rests))
    return StartedCommand(process, tuple(pipes), mark)


async def run_command(
    command: Command, report: Callable[[str], None], run: FinishedCommand
) -> None:
    """Run a command to its end; fills ``run`` as it goes, so that a cancelled one leaves its output.

    Raises:
        OSError: it could not be started. asyncio.CancelledError: the caller was cancelled; every
            process of the command is gone by then.
    """
    reporter = Reporter(report)

    def sink(chunk: bytes) -> None:
        run.capture.feed(chunk)
        reporter.feed(chunk)

    started = start(command, sink)
    try:
        async with asyncio.timeout(command.timeout):
            await started.process.wait()
            if command.gone is not None:
                await command.gone()
        await started.heard()
        pid = started.process.pid
        mark = started.mark
        left = None
        if command.gone is None:
            left = await left_behind(pid, mark)
        if left is not None and left.known:
            run.left = left
            watch.runs(mark, pid, left.known)
        else:
            watch.ended(mark)
    except BaseException as error:
        run.timed_out = isinstance(error, TimeoutError)
        await asyncio.shield(started.stop())
        if not run.timed_out:
            raise
    finally:
        reporter.flush()
        run.exit_code = started.process.returncode
