"""After each run, counts which lines of the project's memory were used, and proposes changes to it.

Also handles lines that the model proposes with a tool during a run (`MemoryKeeper.propose`).

After a run with enough tool calls, a small model finds lines to propose (one request). After other
runs, or if there is no such model or it fails, rules find the lines (``proposals``). Proposed lines
become part of the memory only when the user accepts them (``app.memory_commands``).
``files.memory`` writes the memory's file, which includes the proposals. Runs of subagents and race
runners are ignored.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Sequence

from tui_agent.agent.channel import Journal
from tui_agent.agent.events import AgentEvent, RunEnded
from tui_agent.agent.memory.proposals import (
    MAX_LINES,
    FoundLine,
    lines_by_rule,
    read_answer,
)
from tui_agent.agent.memory.section import row_of
from tui_agent.agent.memory.sources import source_of, used_topics
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.small_questions import ask_small_model
from tui_agent.context.preserved import digest
from tui_agent.context.view import EntryState, resolve, resolve_all
from tui_agent.files.memory import (
    UNUSED_SESSIONS,
    Memory,
    MemoryState,
    NotKeptError,
    Proposal,
    line_of,
)
from tui_agent.model.demo import DEMO_MODEL
from tui_agent.model.protocol import ModelError
from tui_agent.safe_text import one_line
from tui_agent.say_once import SayOnce
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    ToolResultEntry,
    is_by_user,
    typed_text,
)
from tui_agent.session.errors import StoreError
from tui_agent.session.ids import short_id
from tui_agent.session.path_queries import newest
from tui_agent.whole_numbers import plural

log = logging.getLogger(__name__)

UNTIL_SHOWN = 0.05
"""Seconds to wait after a run before updating the memory, so that the screen is drawn first."""
MIN_CALLS = 3
"""Minimum number of tool calls in a run for the model to be asked for memory lines."""
WORK_TOKENS = 2_000
"""Maximum size, in tokens, of the digest of the run in the request for memory lines."""
MESSAGE_CHARS = 1_500
"""Maximum characters of each user message in the request for memory lines."""
MAX_MESSAGES = 8
"""Maximum number of user messages, the newest ones, in the request for memory lines."""
SECONDS = 30.0
"""Timeout of the request for memory lines, in seconds."""
SOURCES_SEARCHED = 400
"""Number of newest entries in which the source of a memory line is searched."""


class MemoryKeeper:
    """Updates the project's memory after the runs of one session."""

    def __init__(self, journal: Journal, ports: AgentPorts) -> None:
        self._journal = journal
        self._session = journal.session
        self._ports = ports
        self._last_processed = journal.session.leaf or 0
        """Id of the last entry that was processed; 0 if processing starts at the session's
        beginning."""
        self._is_counted = False
        self._said = SayOnce()
        self._proposing = threading.Lock()
        self._proposed = 0
        """Number of memory lines that the model has proposed with a tool in this run."""
        self._notified_at = ports.clock()
        self._task: asyncio.Task[None] | None = None
        self._awaited = asyncio.Event()
        """Set when a caller waits for the memory to be updated after a run. The pause before the
        update is then skipped."""
        journal.channel.subscribe(self._on_event)

    def propose(self, note: str) -> str:
        """Add a line from the model's tool call to the proposals, and return the line as shown.

        The line is not added if the instructions contain it, or if there is no memory. Does file
        I/O. Raises NotKeptError if the note isn't a valid line or contains a secret, if the run has
        already proposed `MAX_LINES`, or if the memory can't be written.
        """
        from tui_agent.secret_detector import has_secret

        line = line_of(note)
        if has_secret(line.text):
            raise NotKeptError("The line looks like a secret, and secrets are not stored.")
        with self._proposing:
            if self._proposed >= MAX_LINES:
                raise NotKeptError(f"{MAX_LINES} lines were already proposed in this run.")
            self._proposed += 1
        if self._ports.memory is not None:
            path = self._session.active_path()
            found = FoundLine(line, self._session.leaf or 0)
            self._add(self._ports.memory, [found], path)
        return line.shown

    async def settle(self) -> None:
        """Wait until the memory has been updated after the last run, without the usual pause."""
        if self._task is not None:
            self._awaited.set()
            await asyncio.wait([self._task])

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _on_event(self, event: AgentEvent) -> None:
        ports = self._ports
        if not isinstance(event, RunEnded):
            return
        room = MAX_LINES - self._proposed
        self._proposed = 0
        if not ports.is_main:
            return
        if ports.memory is not None and (self._task is None or self._task.done()):
            if event.reason != "done" or not ports.proposes_memory:
                room = 0
            work = self._after_run(ports.memory, room)
            self._task = asyncio.get_running_loop().create_task(work)

    async def _after_run(self, memory: Memory, room: int) -> None:
        """Count the memory lines that the run used, and propose at most ``room`` new lines."""
        path = self._session.active_path()
        entries = [entry for entry in path if entry.id > self._last_processed]
        before = path[: len(path) - len(entries)]
        self._is_counted = self._is_counted or newest(before, AssistantEntry) is not None
        self._last_processed = max([self._last_processed, *(entry.id for entry in entries)])
        await self._pause_for_screen()
        try:
            state = await asyncio.to_thread(self._count, memory, path, entries)
            if room > 0:
                found = await self._find_lines(state, entries)
                state = await asyncio.to_thread(self._add, memory, found[:room], entries)
        except (NotKeptError, StoreError) as error:
            log.warning("memory: %s", error)
            is_known = str(error) in self._ports.knowledge.problems
            if not is_known and self._said.remember("failure"):
                self._journal.channel.say(str(error), "warning")
            return
        news = [one for one in state.proposed if one.line.kept_at > self._notified_at]
        if news:
            self._notified_at = max(one.line.kept_at for one in news)
            waiting = len(state.proposed)
            lines = plural(waiting, "line")
            self._journal.channel.say(f"Proposed for the memory: {lines}. Decide with /memory.")

    async def _pause_for_screen(self) -> None:
        """Pause so that the screen shows the answer first, unless a caller waits for the memory."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UNTIL_SHOWN):
                await self._awaited.wait()
        self._awaited.clear()

    def _count(
        self, memory: Memory, path: Sequence[Entry], entries: Sequence[Entry]
    ) -> MemoryState:
        """Count in the memory which lines the run used, and return the memory's new state.

        If proposals are on, also counts the lines that were not used, once per session, and
        proposes to remove those unused in many sessions.
        """
        state = memory.read()
        if not state.lines or not entries:
            return state
        head = resolve(path).system
        if head is None:
            return state
        sent = {line.topic for line in state.lines if row_of(line) in head.opening}
        if not sent:
            return state
        used = used_topics(state.lines, entries) & sent
        now = self._ports.clock()
        is_first = not self._is_counted
        self._is_counted = True

        def change(state: MemoryState) -> MemoryState:
            counted = state.counted(used, now)
            if not self._ports.proposes_memory:
                return counted
            if is_first:
                counted = counted.counted_unused(sent - used)
            removals: list[Proposal] = []
            for line in counted.lines:
                if line.unused >= UNUSED_SESSIONS:
                    stale = line.model_copy(update={"kept_at": now})
                    removals.append(Proposal(line=stale, removes=True))
            return counted.with_proposals(removals)

        return memory.change(change)

    async def _find_lines(self, state: MemoryState, entries: Sequence[Entry]) -> list[FoundLine]:
        ports = self._ports
        model = ports.small_model or ports.settings.compaction.model
        calls = sum(isinstance(entry, ToolResultEntry) for entry in entries)
        if model and model != DEMO_MODEL and calls >= MIN_CALLS:
            try:
                counter = ports.directory.counter(model)
                shown = _question(state, entries, counter.text)
                answer = await ask_small_model(
                    shown, "memory_propose", self._journal, ports, model=model, seconds=SECONDS
                )
                return read_answer(answer.text)
            except (ModelError, TimeoutError) as error:
                log.info("could not get lines for the memory from %s: %s", model, error)
        return await asyncio.to_thread(lines_by_rule, entries)

    def _add(
        self, memory: Memory, found: Sequence[FoundLine], entries: Sequence[Entry]
    ) -> MemoryState:
        now = self._ports.clock()
        name = short_id(self._session.id)
        instructions = "\n".join(item.text for item in self._ports.knowledge.instructions)
        proposals: list[Proposal] = []
        for one in found:
            if one.line.text in instructions:
                continue
            source = source_of(one.line.text, entries[-SOURCES_SEARCHED:], one.entry_id)
            facts = {
                "source": f"{name}#{source.entry_id}" if source.entry_id else "",
                "origin": source.origin,
                "kept_at": now,
            }
            proposals.append(Proposal(line=one.line.model_copy(update=facts)))
        if not proposals:
            return memory.read()
        return memory.change(lambda state: state.with_proposals(proposals))


def _question(state: MemoryState, entries: Sequence[Entry], count: Callable[[str], int]) -> str:
    """Return the text sent to the model: memory, user messages and a digest of the run's work.

    It contains no tool output, no file contents, and no entries that the user hid or cleared.
    """
    view = resolve_all(entries)
    withheld = {EntryState.DROPPED, EntryState.MASKED}
    seen = [entry for entry in view.entries if view.state(entry.id) not in withheld]
    messages = []
    for entry in seen:
        if is_by_user(entry):
            text = one_line(typed_text(entry.parts), MESSAGE_CHARS)
            messages.append(f"#{entry.id} {text}")
    said = "\n".join(messages[-MAX_MESSAGES:])
    kept = "\n".join(row_of(line) for line in state.lines)
    work = digest(seen, WORK_TOKENS, count)
    return f"<memory>\n{kept}\n</memory>\n\n<user>\n{said}\n</user>\n\n<work>\n{work}\n</work>"
