"""Background jobs: commands that keep running after their tool call, until their agent is closed.

The end of a job is reported to ``on_end``; the agent decides what to tell the model about it, and
when. ``Job.reported`` only records that the model knows.
"""

import asyncio
import codecs
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tui_agent.errors import ToolError
from tui_agent.lazy import frozen
from tui_agent.processes.capture import Capture, plain_text
from tui_agent.processes.leftovers import Leftovers
from tui_agent.processes.process import (
    Command,
    CommandRun,
    Reporter,
    StartedCommand,
    start,
    watch,
)
from tui_agent.processes.terminal import Terminal

log = logging.getLogger(__name__)

MAX_RUNNING = 20
MAX_ENDED = 50
"""Maximum number of ended jobs that stay in the list."""

RING_BYTES = 512 * 1024
"""Number of bytes of a job's newest output that are kept in memory while the job runs."""

_MAX_TAIL_CHARS = 20_000
"""Number of characters at the end of an output that are searched for what the sandbox denied."""

FLOOD_PAUSE = 0.25
"""Seconds that reading pauses after a burst of a job's output."""

QUIET_SECONDS = 0.4
"""Seconds without new output after which a terminal is assumed to wait for input."""
SILENT_SECONDS = 2.0
"""Seconds after which a terminal that has printed nothing since the wait began is assumed to wait
for input."""
LOOK_SECONDS = 0.05
"""Seconds between two checks of a terminal while waiting for something."""
MAX_AWAITED_BYTES = 16 * 1024
"""Number of bytes of the newest output that are searched for an awaited text."""

CHANGE_INTERVAL = 1.0
"""Minimum number of seconds between two calls of ``on_change`` that report new output."""


@frozen
class JobState:
    """The state of a job at one moment, for lists and results.

    Times are in seconds since the epoch. ``exit_code`` is None while the job runs, and negative if
    a signal ended it. ``output_bytes`` counts all output so far.
    """

    id: int
    command: str
    pid: int
    started_at: float
    ended_at: float | None = None
    exit_code: int | None = None
    stopped: bool = False
    """Whether the job was stopped, by the user, the model or the program."""
    output_bytes: int = 0

    @property
    def running(self) -> bool:
        return self.ended_at is None


class Job:
    """One command that runs, or has run, in the background."""

    def __init__(
        self, command: str, clock: Callable[[], float], on_output: Callable[[], None]
    ) -> None:
        self.id = 0
        """The job's number in the list of jobs; 0 until the job is listed."""
        self.command = command
        self.ended = asyncio.Event()
        self.stored: str | None = None
        """Name of the blob that contains the job's output, once it has ended; None if there was no
        output."""
        self.reported = False
        """Whether the model knows that the job has ended."""
        self.note = ""
        """A note for the model, in addition to the output. It is set once the job has ended."""
        self._clock = clock
        self._on_output = on_output
        self._started_at = clock()
        self._ended_at: float | None = None
        self._stopped = False
        self._process: StartedCommand | None = None
        self._capture = Capture()
        self._ring = bytearray()
        self._total = 0
        self._seen = 0
        self.listener: Reporter | None = None
        """Function that receives the job's output while a tool call waits for the job; None
        otherwise."""
        self._looked_at: Callable[[int], Awaitable[None]] | None = None
        self.terminal: Terminal | None = None
        """The terminal in which the job runs; None if it runs without one, so that it takes no
        input."""
        self.is_taken = False
        """Whether a person has taken over the job's terminal."""
        self.is_contained = False
        """Whether the job runs in the sandbox."""

    async def look(self) -> None:
        if self._looked_at is not None and not self.ended.is_set():
            await self._looked_at(self.state.pid)

    def start(
        self, command: Command, put_blob: Callable[[bytes], str]
    ) -> Coroutine[Any, Any, None]:
        """Start the job, and return a coroutine that waits for its end.

        ``put_blob`` stores the output at the end and returns the blob's name. Raises OSError if the
        command can't be started.
        """
        self._looked_at = command.looked_at
        self.terminal = command.terminal
        self._process = start(command, self._take, pause=FLOOD_PAUSE)
        return self._wait(self._process, put_blob, command.ended)

    @property
    def state(self) -> JobState:
        process = self._process
        exit_code = None
        if process and self._ended_at is not None:
            exit_code = process.process.returncode
        return JobState(
            id=self.id,
            command=self.command,
            pid=process.process.pid if process else 0,
            started_at=self._started_at,
            ended_at=self._ended_at,
            exit_code=exit_code,
            stopped=self._stopped,
            output_bytes=self._total,
        )

    def new_output(self) -> tuple[bytes, int]:
        """Return the output since the last call, and how many bytes before it were dropped.

        Returns at most `RING_BYTES`. While the job runs, an incomplete UTF-8 character at the end
        is left for the next call.
        """
        first = self._total - len(self._ring)
        begin = max(self._seen, first)
        lost = begin - self._seen
        data = bytes(self._ring[begin - first :])
        if not self.ended.is_set():
            # An incomplete character is left for the next call.
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            decoder.decode(data[-4:])
            data = data[: len(data) - len(decoder.getstate()[0])]
        self._seen = begin + len(data)
        return data, lost

    def type(self, text: str) -> None:
        """Type a text into the job's terminal; see `typed_text` for keys.

        Raises ToolError if the job has ended, has no terminal, or doesn't take the text.
        """
        if self.ended.is_set():
            raise ToolError(f"Job {self.id} has ended.")
        if self.terminal is None:
            raise ToolError(f"Job {self.id} takes no input, because it runs without a terminal.")
        self.terminal.type(text)

    async def answered(self, awaited: Callable[[str], bool] | None, seconds: float) -> bool:
        """Wait until ``awaited`` returns True for new output of the terminal, at most ``seconds``.

        Once the terminal has been quiet for a while, ``awaited`` is also called with the text on
        its screen. If ``awaited`` is None, waits only until the terminal is quiet.

        Returns:
            True if the wait succeeded or the job has ended; False after ``seconds``.
        """
        before = self._total
        seen = before
        quiet = 0.0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.ended.is_set():
                    enough = QUIET_SECONDS if seen > before else SILENT_SECONDS
                    if self._shows(awaited, before, quiet=quiet >= enough):
                        return True
                    await self._ended_within(LOOK_SECONDS)
                    quiet = quiet + LOOK_SECONDS if self._total == seen else 0.0
                    seen = self._total
        return self.ended.is_set()

    async def _ended_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended.wait()

    def _shows(self, awaited: Callable[[str], bool] | None, before: int, *, quiet: bool) -> bool:
        assert self.terminal is not None  # noqa: S101 - callers check it
        # Drawing also answers the program's requests to its terminal, such as the cursor position.
        screen = "" if self.terminal.is_flooded else self.terminal.text()
        if awaited is None:
            return quiet
        new = self._ring[max(0, before - self._total + len(self._ring)) :]
        return awaited(plain_text(bytes(new[-MAX_AWAITED_BYTES:]))) or (quiet and awaited(screen))

    def tail(self, characters: int) -> str:
        if self.terminal is not None:
            return self.terminal.text()
        return plain_text(bytes(self._ring[-4 * characters :]))[-characters:]

    @contextmanager
    def listening(self, report: Callable[[str], None]) -> Iterator[None]:
        listener = self.listener = Reporter(report)
        try:
            yield
        finally:
            listener.flush()
            if self.listener is listener:
                self.listener = None

    async def stop(self) -> None:
        if self._process is None or self.ended.is_set():
            return
        self._stopped = True
        await self._process.stop()
        await self.ended.wait()

    def _take(self, chunk: bytes) -> None:
        self._total += len(chunk)
        self._ring += chunk
        del self._ring[:-RING_BYTES]
        self._capture.feed(chunk)
        if self.terminal is not None:
            self.terminal.feed(chunk)
        if self.listener is not None:
            self.listener.feed(chunk)
        self._on_output()

    async def _wait(
        self,
        process: StartedCommand,
        put_blob: Callable[[bytes], str],
        ended: Callable[[str, int | None], Awaitable[str]] | None,
    ) -> None:
        await process.process.wait()
        if self.terminal is None:
            await process.pipes[0].ended.wait()
        else:
            await process.heard()
            process.pipes[0].close()
            self.terminal.disconnect()
        watch.report_ended(process.mark)
        try:
            if ended is not None:
                code = None if self._stopped else process.process.returncode
                self.note = await ended(self.tail(_MAX_TAIL_CHARS), code)
        finally:
            # Even if ``ended`` fails, callers that wait for the job must not wait forever.
            self._finish(put_blob)

    def _finish(self, put_blob: Callable[[bytes], str]) -> None:
        """Store the output, and record that the job has ended, even if storing fails."""
        self._ended_at = self._clock()
        capture = self._capture
        self._capture = Capture()
        try:
            if capture.total_bytes:
                self.stored = put_blob(capture.raw())
        finally:
            self.ended.set()


class AdoptedJob(Job):
    """A job for processes that a command left running; their output isn't read.

    The job has ended when all these processes have.
    """

    def __init__(self, command: str, clock: Callable[[], float], left: Leftovers) -> None:
        super().__init__(command, clock, lambda: None)
        self.reported = True
        self._left = left

    @property
    def state(self) -> JobState:
        pid = next(iter(self._left.known), 0)
        return replace(super().state, pid=pid)

    async def stop(self) -> None:
        if not self.ended.is_set():
            self._stopped = True
            await self._left.end()
            await self.ended.wait()

    async def watch(self) -> None:
        await self._left.wait()
        self._ended_at = self._clock()
        self.ended.set()


class Foreground:
    """A command that a tool call is waiting for. The user can turn it into a background job."""

    def __init__(self, name: str, started_at: float) -> None:
        self.name = name
        self.started_at = started_at
        """When the command was started, in seconds since the epoch."""
        self.moved = asyncio.Event()
        """Set when the user turns the command into a job."""
        self.run: CommandRun | None = None
        """The command's run, filled in while the command runs; None before its process starts."""

    @property
    def is_running(self) -> bool:
        return self.run is not None and self.run.pid > 0 and self.run.exit_code is None


class MovedJob(Job):
    """A job that a tool call started and waited for until the user moved it to the background.

    ``ending`` runs the command to its end and returns a note for the model. The time limit of the
    call no longer applies.
    """

    def __init__(
        self,
        foreground: Foreground,
        run: CommandRun,
        ending: "asyncio.Task[str]",
        *,
        clock: Callable[[], float],
        on_output: Callable[[], None],
    ) -> None:
        super().__init__(foreground.name, clock, on_output)
        self._started_at = foreground.started_at
        self._run = run
        self._ending = ending
        self._take(run.capture.raw())
        run.listener = self._take
        if run.limit is not None and not run.limit.expired():
            run.limit.reschedule(None)

    @property
    def limit(self) -> float | None:
        """When the command is stopped, by the event loop's clock; None if it has no time limit."""
        if self._run.limit is None:
            return None
        return self._run.limit.when()

    @property
    def state(self) -> JobState:
        return replace(super().state, pid=self._run.pid, exit_code=self._run.exit_code)

    async def stop(self) -> None:
        if not self.ended.is_set():
            self._stopped = True
            self._ending.cancel()
            await self.ended.wait()

    async def watch(self, put_blob: Callable[[bytes], str]) -> None:
        await asyncio.wait({self._ending})
        # The run has captured the whole output, not only what came after the move to the background.
        self._capture = self._run.capture
        self._finish(put_blob)
        if not self._ending.cancelled():
            self.note = self._ending.result()


class Jobs:
    """One agent's jobs, running and ended ones. Use it only on the event loop's thread."""

    def __init__(
        self,
        on_change: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
        *,
        on_end: Callable[[JobState], None] = lambda _state: None,
    ) -> None:
        """Create an empty list of jobs.

        ``on_change`` is called when jobs start, end or have new output. ``on_end`` is called with
        the state of a job that ended without being stopped, while no tool call waited for it.
        """
        self._on_change = on_change
        self._on_end = on_end
        self._clock = clock
        self._jobs: dict[int, Job] = {}
        self._foreground: list[Foreground] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._next = 1
        self._timer: asyncio.TimerHandle | None = None

    def __iter__(self) -> Iterator[JobState]:
        return iter([job.state for job in self._jobs.values()])

    @property
    def running(self) -> int:
        return sum(state.running for state in self)

    @property
    def running_commands(self) -> list[str]:
        """The command lines of the running jobs, in the order of their numbers."""
        return [state.command for state in self if state.running]

    def start(self, text: str, command: Command, put_blob: Callable[[bytes], str]) -> Job:
        """Start a command as a job and list it; ``text`` is its name in the list.

        Raises:
            OSError: the command can't be started.
            ToolError: `MAX_RUNNING` jobs are already running.
        """
        if self.running >= MAX_RUNNING:
            raise ToolError(f"{MAX_RUNNING} jobs are running; stop one first.")
        job = Job(text, self._clock, self._announce_soon)
        self._list(job, job.start(command, put_blob))
        return job

    def adopt(self, text: str, left: Leftovers) -> Job:
        job = AdoptedJob(f"left behind by: {text}", self._clock, left)
        self._list(job, job.watch())
        return job

    @contextmanager
    def foreground(self, name: str) -> Iterator[Foreground]:
        """Let the user move a command to the background during the ``with`` block.

        ``name`` is its name in the list. The caller fills `Foreground.run`, and calls `take_over`
        once the command was moved.
        """
        command = Foreground(name, self._clock())
        self._foreground.append(command)
        try:
            yield command
        finally:
            self._foreground.remove(command)

    @property
    def movable(self) -> int:
        """The number of running commands that `move` would turn into jobs."""
        return len(self._running_in_foreground())

    def move(self) -> int:
        """Turn the running commands that tool calls are waiting for into jobs; return their number.

        `MAX_RUNNING` doesn't apply here, because these commands are already running.
        """
        found = self._running_in_foreground()
        for command in found:
            command.moved.set()
        return len(found)

    def _running_in_foreground(self) -> list[Foreground]:
        return [command for command in self._foreground if command.is_running]

    def take_over(
        self,
        foreground: Foreground,
        run: CommandRun,
        ending: "asyncio.Task[str]",
        put_blob: Callable[[bytes], str],
    ) -> Job:
        """List a command that was moved to the background as a job, and return the job.

        ``ending`` is the task that runs it to its end and returns a note for the model;
        ``put_blob`` stores the output at the end.
        """
        job = MovedJob(foreground, run, ending, clock=self._clock, on_output=self._announce_soon)
        self._list(job, job.watch(put_blob))
        return job

    def _list(self, job: Job, waiting: Coroutine[Any, Any, None]) -> None:
        """Give a job a number, list it, and keep only the newest ``MAX_ENDED`` ended jobs.

        ``waiting`` is a coroutine that returns after the end of the job; it runs in its own task.
        """
        job.id = self._next
        self._next += 1
        self._jobs[job.id] = job
        task = asyncio.get_running_loop().create_task(waiting)
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._ended(task, job))
        ended = [number for number, job in self._jobs.items() if job.ended.is_set()]
        for number in ended[:-MAX_ENDED]:
            del self._jobs[number]
        self._on_change()

    def find(self, number: int) -> Job:
        """Return the job with this number.

        Raises:
            ToolError: no job has this number; the message lists the numbers of all jobs.
        """
        try:
            return self._jobs[number]
        except KeyError:
            known = ", ".join(map(str, self._jobs)) or "none"
            raise ToolError(f"There is no job {number}. Jobs: {known}.") from None

    async def look(self) -> None:
        """Copy the build output of all running jobs from the sandbox into the project.

        Errors are logged.
        """
        looks = await asyncio.gather(
            *(job.look() for job in self._jobs.values()), return_exceptions=True
        )
        for error in filter(None, looks):
            log.warning("a running job's changes could not be copied: %s", error)

    async def aclose(self) -> None:
        await asyncio.gather(*(job.stop() for job in self._jobs.values()))
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._timer is not None:
            self._timer.cancel()

    def unreported(self) -> list[Job]:
        """Return the ended jobs that were not stopped and of whose end the model doesn't know.

        They are in the order of their numbers.
        """
        found = []
        for job in self._jobs.values():
            ended_alone = job.ended.is_set() and not job.state.stopped
            if ended_alone and not job.reported:
                found.append(job)
        return found

    def _ended(self, task: "asyncio.Task[None]", job: Job) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("job %s ended with an error: %s", job.id, error, exc_info=error)
        self._on_change()
        if not (job.reported or job.listener or job.state.stopped):
            self._on_end(job.state)

    def _announce_soon(self) -> None:
        def announce() -> None:
            self._timer = None
            self._on_change()

        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CHANGE_INTERVAL, announce)
