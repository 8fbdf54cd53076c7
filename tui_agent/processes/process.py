"""Runs one command: reads its output, applies its time limit, and ends all its processes.

Also reports running commands to the watcher process (`processes.watcher`), which ends them if this
program is killed.
"""

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
"""Maximum number of processes named in one line to the watcher, because a line must fit into the
pipe. The watcher finds the other processes by their mark."""

_ROOT = str(Path(__file__).parents[2])
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from tui_agent.processes.watcher import main; main()"

REPORT_INTERVAL = 0.05
"""Seconds between two reports of live output."""

REPORT_BYTES = 16 * 1024
"""Maximum size, in bytes, of one report of live output. If there is more output, only the newest
part is reported."""

EXIT_GRACE_SECONDS = 0.1
"""Maximum seconds to wait for the rest of the output once the command's own process has ended."""

UNSTOPPABLE_SECONDS = 2.0
"""Maximum seconds to wait for the end of a process that was killed."""

_CHUNK = 64 * 1024
"""Maximum number of bytes that are read from a pipe at once."""
_BURST_BYTES = 1024 * 1024
"""Number of bytes of output after which reading pauses."""

_FLOOD_PAUSE_SECONDS = 0.015
"""Seconds that reading pauses after each burst, so that a flood of output takes only a tenth of a
core. The process that writes it has to wait."""

_DISCARD_PAUSE_SECONDS = 0.05
"""Seconds that reading pauses after each chunk of output that is discarded."""


async def end_tree(leader: int, mark: str) -> None:
    """End all processes of a command, even those that left its session; see ``watcher.end``.

    ``leader`` is the id of the command's own process, ``mark`` the command's id.
    """
    seen = await asyncio.to_thread(end, {mark: WatchedCommand(leader)})
    # Adopted orphans must be reaped here; the leader is reaped by the thread that waits for it.
    reap(seen - {leader})


class Watch:
    """The connection to the watcher process, which ends running commands if this program is killed.

    The watcher is started for the first command, and started again if it has ended.
    """

    def __init__(self) -> None:
        self._descriptor: int | None = None
        """The pipe to the watcher; None if it is not running."""
        self._reported: dict[str, str] = {}
        """The last line sent to the watcher about each running command, by the command's id. If a
        new watcher is started, it receives all of them."""
        self._broken = False

    def report_running(
        self, mark: str, pid: int = 0, left: Mapping[int, int] | None = None
    ) -> None:
        """Report to the watcher a command whose processes must end when the program ends.

        ``mark`` is the command's id, ``pid`` the id of its own process. Call this before the
        command starts, with ``pid`` 0, because the program may be killed right after the start, and
        again afterwards. If the command has ended, ``left`` contains the processes that it left
        running, with their start times.
        """
        text = f"+ {mark} {pid}\n"
        if left is not None:
            processes = islice(left.items(), MAX_NAMED_PROCESSES)
            named = [f"{other}:{start}" for other, start in processes]
            text = f"& {mark} {pid} {' '.join(named)}\n"
        self._reported[mark] = text
        if self._broken or (self._descriptor is not None and self._write(text)):
            return
        try:
            self._descriptor = _start()
        except OSError as error:
            self._broken = True
            log.warning("commands will not be ended if the program is killed: %s", error)
            return
        self._write("".join(self._reported.values()))

    def report_ended(self, mark: str) -> None:
        if self._reported.pop(mark, None) is not None and self._descriptor is not None:
            self._write(f"- {mark}\n")

    def _write(self, text: str) -> bool:
        assert self._descriptor is not None  # noqa: S101 - callers check it
        try:
            os.write(self._descriptor, text.encode("ascii"))
        except BlockingIOError:  # the watcher is paused; earlier lines still count
            return True
        except OSError:
            os.close(self._descriptor)
            self._descriptor = None
            return False
        return True


def _start() -> int:
    """Start a watcher, and return the descriptor for its input.

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
    """Function of a job in the sandbox that is awaited with the process id, and copies the build
    output so far into the project; None otherwise."""
    terminal: Terminal | None = None
    """The terminal for input and output; None if the command uses pipes."""
    wait_for_others: Callable[[], Awaitable[None]] | None = None
    """Function that is awaited after the command's own process has ended, and returns when its
    other processes have ended, too. None if these may keep running."""


@dataclass
class CommandRun:
    """A running command and its result, which is filled in while the command runs.

    ``exit_code`` is negative if a signal ended the command. It is None while the command runs, and
    stays None if the command could not be ended.
    """

    capture: Capture = field(default_factory=Capture)
    exit_code: int | None = None
    timed_out: bool = False
    left: Leftovers | None = None
    """Processes still running after the end of the command; None if there are none."""
    job: int | None = None
    """Number of the job in which the processes that are still running are listed; None if there is
    none."""
    pid: int = 0
    """Id of the command's own process; 0 before it starts."""
    limit: asyncio.Timeout | None = None
    """The time limit while the command runs, otherwise None. To lift the limit, reschedule it."""
    listener: Callable[[bytes], None] | None = None
    """Receives the output on the event loop's thread, in addition to other receivers."""


class _Pipe:
    """The reading end of a command's output, which the event loop reads at a limited speed.

    Chunks are passed to ``sink``. After each burst, reading pauses for ``pause`` seconds.
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
        seconds = _DISCARD_PAUSE_SECONDS
        if self._sink is not None:
            self._sink(chunk)
            self._burst += len(chunk)
            if self._burst < _BURST_BYTES:
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
        """Read the rest of an ended command's output, for at most `EXIT_GRACE_SECONDS`.

        If a background process keeps the pipe open, its later output is read and discarded, because
        a closed pipe would end that process at its next line.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EXIT_GRACE_SECONDS):
                await self.ended.wait()
        self._sink = None


class Reporter:
    """Reports live output as text, at most once per `REPORT_INTERVAL`, to save repaints."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._report = report
        self._pending = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, chunk: bytes) -> None:
        """Add output to the next report. If too much is waiting, only the newest part is kept."""
        self._pending += chunk
        del self._pending[:-REPORT_BYTES]
        if self._timer is None:
            self._timer = self._loop.call_later(REPORT_INTERVAL, self.flush)

    def flush(self) -> None:
        """Report the output that has not been reported yet, except an incomplete last character."""
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

    ``process`` is the command's own process, ``pipes`` are the reading ends of its outputs, and
    ``mark`` is its id in the environment of all its processes.
    """

    process: Child
    pipes: tuple[_Pipe, ...]
    mark: str

    async def heard(self) -> None:
        """Read the rest of the output after the command has ended; see `_Pipe.finish`."""
        for pipe in self.pipes:
            await pipe.finish()

    async def stop(self) -> None:
        """End all processes of the command; see `end_tree`.

        A process that belongs to another user, such as root's after ``sudo``, can't be ended. It is
        left running, and its ``returncode`` stays None.
        """
        await end_tree(self.process.pid, self.mark)
        try:
            async with asyncio.timeout(UNSTOPPABLE_SECONDS):
                await self.process.wait()
        except TimeoutError:
            log.warning("process %s could not be ended", self.process.pid)
        await self.heard()
        for pipe in self.pipes:
            pipe.close()
        watch.report_ended(self.mark)


def start(
    command: Command,
    *sinks: Callable[[bytes], None],
    pause: float | None = None,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
) -> StartedCommand:
    """Start a command. Call this function on the event loop's thread.

    Nothing is awaited, so a cancelled caller can't leave a half-started command.

    Args:
        command: the command. The caller has to apply its time limit.
        sinks: functions called with the output on the event loop's thread: one for both streams, or
            two for standard output and standard error. A command in a terminal has one.
        pause: seconds that reading pauses after a burst; a longer pause slows a flood down.
        stdin: the standard input, ignored for a command in a terminal.

    Raises:
        OSError: the command can't be started.
    """
    if command.terminal is None:
        ends = [os.pipe() for _sink in sinks]
    else:
        ends = [open_terminal()]
        stdin = ends[0][1]
    mark = secrets.token_hex(8)
    adopt_orphans()
    watch.report_running(mark)
    try:
        process = Child(
            subprocess.Popen(
                command.arguments,
                cwd=command.cwd,
                env={**command.environment, MARK: mark},
                stdin=stdin,
                stdout=ends[0][1],
                stderr=ends[-1][1],
                start_new_session=True,
                pass_fds=command.descriptors,
            )
        )
    except BaseException:
        for reader, _writer in ends:
            os.close(reader)
        watch.report_ended(mark)
        raise
    finally:
        for _reader, writer in ends:
            os.close(writer)
    if command.terminal is not None:
        command.terminal.connect(ends[0][0])
    watch.report_running(mark, process.pid)
    seconds = _FLOOD_PAUSE_SECONDS if pause is None else pause
    pipes: list[_Pipe] = []
    for (reader, _writer), sink in zip(ends, sinks, strict=True):
        pipes.append(_Pipe(reader, sink, seconds))
    return StartedCommand(process, tuple(pipes), mark)


async def run_command(command: Command, report: Callable[[str], None], run: CommandRun) -> None:
    """Run a command until it ends or its time limit is reached.

    At the time limit, or if the caller is cancelled, all processes of the command are ended. After
    a normal end, processes that the command left running continue and are in ``run.left``, unless
    ``command.wait_for_others`` has waited for their end. ``report`` is called with the live output.
    ``run`` is filled in meanwhile, so that the output of a cancelled command is not lost.

    Raises:
        OSError: the command can't be started.
        asyncio.CancelledError: the caller was cancelled; by then all processes of the command have
            ended, except those that can't be ended.
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
        try:
            async with asyncio.timeout(command.timeout) as run.limit:
                await started.process.wait()
                if command.wait_for_others is not None:
                    await command.wait_for_others()
        finally:
            run.limit = None
        await started.heard()
        pid = started.process.pid
        mark = started.mark
        left = None
        if command.wait_for_others is None:
            left = await left_behind(pid, mark)
        if left is not None and left.known:
            run.left = left
            watch.report_running(mark, pid, left.known)
        else:
            watch.report_ended(mark)
    except BaseException as error:
        run.timed_out = isinstance(error, TimeoutError)
        await asyncio.shield(started.stop())
        if not run.timed_out:
            raise
    finally:
        reporter.flush()
        run.exit_code = started.process.returncode
