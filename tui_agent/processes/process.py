"""Runs one command: reads its output, applies its time limit, and ends all its processes."""

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
"""Maximum processes that one line to the watcher names, as a line must fit into the pipe. The
watcher finds others by their mark."""

_ROOT = str(Path(__file__).parents[2])
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from tui_agent.processes.watcher import main; main()"

REPORT_INTERVAL = 0.05
"""Seconds between two reports of live output."""

REPORT_BYTES = 16 * 1024
"""Maximum bytes of one report; of more output only the newest part is reported."""

EXIT_GRACE_SECONDS = 0.1
"""Maximum seconds to wait for the rest of the output after the command's own process has ended."""

_CHUNK = 64 * 1024
_BURST = 1024 * 1024

_FLOOD_PAUSE_SECONDS = 0.015
"""Seconds that reading pauses after each burst. A flood of output then takes a tenth of a core, and
its writer has to wait."""

_TRICKLE = 0.05


async def end_tree(leader: int, mark: str) -> None:
    """End all processes of a command, those that left its session included; see ``watcher.end``.

    ``leader`` is the id of the command's own process, ``mark`` the command's id.
    """
    seen = await asyncio.to_thread(end, {mark: WatchedCommand(leader)})
    # Adopted orphans must be reaped here; the leader is reaped by the thread that waits for it.
    reap(seen - {leader})


class Watch:
    """The connection to the watcher process, which ends running commands if this program is killed.

    The watcher is started by the first command, and again if it has ended.
    """

    def __init__(self) -> None:
        self._line: int | None = None
        self._told: dict[str, str] = {}
        self._broken = False

    def runs(self, mark: str, pid: int = 0, left: Mapping[int, int] | None = None) -> None:
        """Send the watcher a command whose processes must end with the program.

        ``mark`` is the command's id, ``pid`` its own process. Call it before the start with ``pid``
        0, because the program may be killed right after it, and again after the start. With
        ``left`` the command has ended, and these are the processes that it left running, with their
        start times.
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
        except BlockingIOError:  # the watcher is paused; earlier lines still count
            return True
        except OSError:
            os.close(self._line)
            self._line = None
            return False
        return True


def _start() -> int:
    """Start a watcher, and return the descriptor to write its input to.

    Child processes don't inherit the descriptor. Raises OSError if the watcher can't be started.
    """
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
"""This program's connection to its watcher."""


@frozen
class Command:
    """A command to run; ``arguments`` are its program and arguments, ``timeout`` is in seconds.

    The process inherits ``descriptors``. If the command runs as a job, ``ended`` is awaited after
    it, with the end of its output and its exit code (None if it was stopped), and returns a note
    for the model.
    """

    arguments: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    timeout: float
    descriptors: tuple[int, ...] = ()
    ended: Callable[[str, int | None], Awaitable[str]] | None = None
    looked_at: Callable[[int], Awaitable[None]] | None = None
    """For a job in the sandbox: awaited with the process id to copy its build output so far into
    the project."""
    terminal: Terminal | None = None
    """The terminal for input and output; None for pipes."""
    gone: Callable[[], Awaitable[None]] | None = None
    """Awaited after the end of the command's own process, to wait for the end of its other
    processes; None if these may keep running."""


@dataclass
class FinishedCommand:
    """The result of a command that ended or was stopped, filled while it runs.

    ``exit_code`` is negative if a signal ended it, None while it runs.
    """

    capture: Capture = field(default_factory=Capture)
    exit_code: int | None = None
    timed_out: bool = False
    left: Leftovers | None = None
    """Processes still running after the end of the command; None if there are none."""
    job: int | None = None
    """Number of the job that lists these processes."""
    pid: int = 0
    """Id of the command's own process; 0 before it starts."""
    limit: asyncio.Timeout | None = None
    """The time limit while the command runs; whoever lifts it reschedules it."""
    listener: Callable[[bytes], None] | None = None
    """Gets the output too, on the event loop's thread."""


class _Pipe:
    """The reading end of a command's output, read by the event loop at a limited speed.

    Chunks go to ``sink``; after each burst reading rests for ``pause`` seconds.
    """

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
        """Read the rest of an ended command's output, for `EXIT_GRACE_SECONDS` at most.

        If a background process keeps the pipe open, its later output is read and discarded, because
        a closed pipe would end that process at its next line.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EXIT_GRACE_SECONDS):
                await self.ended.wait()
        self._sink = None


class Reporter:
    """Passes live output on as text, at most once in `REPORT_INTERVAL`, to save repaints."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._report = report
        self._pending = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, chunk: bytes) -> None:
        """Add output; if too much is waiting, only the newest part is kept."""
        self._pending += chunk
        del self._pending[:-REPORT_BYTES]
        if self._timer is None:
            self._timer = self._loop.call_later(REPORT_INTERVAL, self.flush)

    def flush(self) -> None:
        """Report the waiting output, except an incomplete character at its end."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        text = self._decoder.decode(bytes(self._pending))
        self._pending.clear()
        if text:
            self._report(text)


class Child:
    """A child process whose end can be awaited; a thread waits for it.

    asyncio's own subprocesses are not used: asyncio starts a process and its pipes in two tasks,
    and an event loop that ends between them hangs.
    """

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.pid = process.pid
        self.returncode: int | None = None
        """The exit code, negative for a signal; None while the process runs."""
        self._ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait() -> None:
            code = process.wait()
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(self._set_ended, code)

        threading.Thread(target=wait, name=f"waits for {self.pid}", daemon=True).start()

    async def wait(self) -> None:
        await self._ended.wait()

    def _set_ended(self, code: int) -> None:
        self.returncode = code
        self._ended.set()


@dataclass
class StartedCommand:
    """A command that was started in a new session.

    ``process`` is its own process, ``pipes`` are the reading ends of its outputs, and ``mark`` is
    its id in the environment of all its processes.
    """

    process: Child
    pipes: tuple[_Pipe, ...]
    mark: str

    async def heard(self) -> None:
        """Read the rest of the output after the command's end; see `_Pipe.finish`."""
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
    """Start a command; call it on the event loop's thread.

    Nothing is awaited, so a cancelled caller can't leave a half-started command.

    Args:
        command: the command. The caller has to apply its time limit.
        sinks: functions that get the output on the event loop's thread: one for both streams, or
            two for standard output and standard error. A command in a terminal has one.
        pause: seconds that reading rests after a burst; a longer pause slows a flood down.
        given: the standard input, ignored for a command in a terminal.

    Raises:
        OSError: the command can't be started.
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
    """Run a command until it ends or its time is over.

    If the time is over or the caller is cancelled, all processes of the command are ended. After a
    normal end, those that it left running go on, and are in ``run.left``, unless ``command.gone``
    has waited for their end. ``report`` gets its live output. ``run`` is filled meanwhile, so that
    the output of a cancelled command is not lost.

    Raises:
        OSError: the command can't be started.
        asyncio.CancelledError: the caller was cancelled; all processes of the command have ended by
            then.
    """
    reporter = Reporter(report)

    def sink(chunk: bytes) -> None:
        run.capture.feed(chunk)
        reporter.feed(chunk)
        if run.listener is not None:
            run.listener(chunk)

    started = start(command, sink)
    run.pid = started.process.pid
    try:
        async with asyncio.timeout(command.timeout) as run.limit:
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
