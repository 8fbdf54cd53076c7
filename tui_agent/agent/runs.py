"""Starts, interrupts and waits for what goes on in a session: runs, a compaction asked for, the user's own commands."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tui_agent.agent.checkpoints.rewind import FileRewind
from tui_agent.agent.events import AgentEvent, Notice, QueueChanged, RunEnded, ToolCallProgress
from tui_agent.agent.loop import Loop
from tui_agent.agent.shell import interrupted, run_shell
from tui_agent.context.pruning import Moment
from tui_agent.session.entries import Entry, ShellEntry, UserPart

if TYPE_CHECKING:
    from tui_agent.agent.compactor import CompactionOutcome
    from tui_agent.context.compaction import Trigger

T = TypeVar("T")


class Runs:
    """The runs of one session, one at a time, and what a user does beside them."""

    def __init__(self, loop: Loop, files: FileRewind) -> None:
        self._loop = loop
        self._files = files
        self._task: asyncio.Task[RunEnded] | None = None
        self._compacting: asyncio.Future[CompactionOutcome] | None = None
        self._beside: set[asyncio.Future[Any]] = set()
        self._is_ready = True
        loop.channel.subscribe(self._hear)

    @property
    def running(self) -> bool:
        """Whether a run is going on."""
        return self._task is not None and not self._task.done()

    @property
    def occupied(self) -> bool:
        """Whether something goes on that an interrupt would stop."""
        return self.running or bool(self._beside)

    async def beside(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work beside a run, until it is done or interrupted."""
        task = asyncio.ensure_future(work)
        self._beside.add(task)
        try:
            return await task
        finally:
            self._beside.discard(task)

    @property
    def queue(self) -> QueueChanged:
        """The messages that wait for their turn."""
        return self._loop.queue.snapshot()

    def submit(self, parts: Sequence[UserPart], *, follow_up: bool) -> None:
        """Queue a message for the run that is going on, or start one with it."""
        self._loop.queue.put(tuple(parts), follow_up=follow_up and self.running)
        if self.running:
            self._loop.channel.emit(self.queue)
        else:
            self.start()

    def take_back(self) -> str | None:
        """Remove the newest waiting message and return what was typed."""
        message = self._loop.queue.take_back()
        self._loop.channel.emit(self.queue)
        return message.typed if message else None

    def start(self) -> None:
        """Start a run on the path as it is, unless one is going on."""
        if self.running:
            return
        self._is_ready = False
        self._task = asyncio.get_running_loop().create_task(self._loop.run())
        self._task.add_done_callback(self._announce_end)

    def _hear(self, event: AgentEvent) -> None:
        """Look through the project while the model writes its first call; an answer without one has no use for it."""
        if isinstance(event, ToolCallProgress) and not self._is_ready:
            self._is_ready = True
            ports = self._loop.ports
            self._files.get_ready()
            if ports.sandbox is not None:
                ports.sandbox.get_ready(ports.project, ports.environment)

    def interrupt(self) -> None:
        """Stop everything where it is."""
        if self._task is not None:
            self._task.cancel()
        if self._compacting is not None:
            self._compacting.cancel()
        self._loop.context.cancel_preparation()
        for task in self._beside:
            task.cancel()

    async def wait_idle(self) -> None:
        """Wait until the run that is going on has ended."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def append(self, *entries: Entry, then: Callable[[], None] = lambda: None) -> None:
        """Append at once now, or before the next step, when an entry in between could part a call from its result.

        ``then`` changes what rests on the entries: after they were stored, before anybody is told.

        Raises:
            StoreError: they can't be stored; nothing was changed.
        """
        if not self.running:
            self._loop.journal.append_many(entries, then)
            return
        self._loop.held_back.extend(entries)
        then()

    async def compact(
        self, focus: str | None, trigger: "Trigger", *, for_model: str | None, boundary: int | None
    ) -> "CompactionOutcome":
        """Summarise the history now; during a run before its next step, or at its end."""
        if self.running:
            self._loop.context.pending = focus or ""
            self._loop.channel.emit(Notice("The history is compacted before the next step, or at the end of the run."))
            from tui_agent.agent.compactor import CompactionOutcome

            return CompactionOutcome()
        self._compacting = asyncio.ensure_future(
            self._loop.context.compact(trigger, focus, for_model=for_model, boundary=boundary)
        )
        try:
            return await self._compacting
        finally:
            self._compacting = None

    async def prune(self) -> int:
        """Turn old tool outputs into placeholders now; returns the tokens freed."""
        if self.running:
            self._loop.channel.emit(Notice("The agent is working; interrupt it first.", "warning"))
            return 0
        return await self._loop.context.prune(Moment(asked=True))

    async def run_shell(self, command: str, *, excluded: bool) -> ShellEntry:
        if not self.running:
            self._loop.context.name_mode()
        recorder = self._files.recorder
        task = asyncio.ensure_future(
            run_shell(command, self._loop.ports, self._loop.channel, recorder, excluded=excluded)
        )
        self._beside.add(task)
        try:
            await asyncio.wait([task])
        finally:
            self._beside.discard(task)
            task.cancel()
        entry = interrupted(command, excluded=excluded) if task.cancelled() else task.result()
        self.append(entry)
        self._files.keep_changes()
        return entry

    def _announce_end(self, task: asyncio.Task[RunEnded]) -> None:
        """Tell that the run ended; whoever hears it finds the agent idle."""
        ended = RunEnded("interrupted") if task.cancelled() else task.result()
        self._loop.channel.emit(ended)
