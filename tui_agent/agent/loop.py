"""The loop: one run from a user's message to an idle agent. Read this first.

    repeat until the model has nothing left to do:
        take in the user's new messages
        make room, if the next request would not fit
        send the path as a request, stream the answer into an entry
        run the tools it asked for, append their results

Everything it does is an entry appended to the session; everything it shows is an event. It holds no state that
matters: started again on the same path it goes on from there.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Literal

from tui_agent.agent.answer import Answerer, RepeatingAnswer
from tui_agent.agent.calls.call import StopRunError
from tui_agent.agent.channel import Journal
from tui_agent.agent.checkpoints.recorder import Recorder
from tui_agent.agent.clients import NO_MODEL
from tui_agent.agent.context_keeper import CompactedError, ContextFullError, ContextKeeper
from tui_agent.agent.doom_loop import REPEATING
from tui_agent.agent.events import MessageRefused, Notice, RunEnded, RunStarted
from tui_agent.agent.hooks.payloads import RunEnd
from tui_agent.agent.job_reports import ended_jobs
from tui_agent.agent.mcp.records import McpError
from tui_agent.agent.message_queue import MessageQueue, QueuedMessage
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.run_budget import BudgetUsedUpError
from tui_agent.agent.shell import run_check
from tui_agent.agent.tool_runner import ToolRunner
from tui_agent.context.templates import fill
from tui_agent.context.view import EntryState, resolve
from tui_agent.lazy import dataclass
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.safe_text import one_line
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    FilePart,
    TextPart,
    ToolResultEntry,
    UserEntry,
)
from tui_agent.session.errors import StoreError
from tui_agent.session.path_queries import newest, newest_message, newest_sent, since

log = logging.getLogger(__name__)

CHECK_FAILED = "check_failed"
"""Why a message follows an answer after which the project's check failed."""
UNREAD_CALL = "unread_call"
"""Why a message follows an answer that wrote calls as text which can't be read."""
STEP_LIMIT_REFUSAL = "Not run: the step limit is reached. Answer the user instead."


@dataclass(slots=True)
class Loop:
    """The parts of a run. One object serves all runs of a session."""

    journal: Journal
    ports: AgentPorts
    queue: MessageQueue
    context: ContextKeeper
    answerer: Answerer
    tools: ToolRunner
    recorder: Recorder | None
    """Knows which files calls changed; None where nobody watches, or where it is another session's task."""
    held_back: list[Entry] = field(default_factory=list)
    """Entries made beside the run that wait until every call has its result."""
    step: int = 0
    has_called: bool = False
    """Whether a tool was called in this run."""
    check: Literal["passed", "failed"] | None = None
    """How the project's check ended last in this run."""
    failed_checks: int = 0
    """How often its failure went back to the model in this run."""
    greeting: str = ""
    """Text from hooks for the model, sent with the first message."""

    async def run(self) -> RunEnded:
        self.journal.channel.emit(RunStarted())
        self.step, self.failed_checks, self.has_called, self.check = 0, 0, False, None
        self.tools.diagnostics.is_told_by_run = True
        try:
            with self.ports.meter.run(self.ports.budget):
                ended = await self._run_to_its_end()
        finally:
            self.tools.diagnostics.is_told_by_run = False
        answer = newest(self.journal.session.active_path(), AssistantEntry)
        text, hooks = answer.text if answer is not None else "", self.ports.hooks
        hooks.tell(RunEnd(about=hooks.about, reason=ended.reason, error=ended.error, steps=ended.steps, answer=text))
        return ended

    async def _run_to_its_end(self) -> RunEnded:
        try:
            try:
                ended = await self._run_until_idle()
            finally:
                self._append_held_back()
        except asyncio.CancelledError:
            ended = RunEnded("interrupted", steps=self.step)
            if self.ports.meter.is_time_up:
                over = f"Stopped: the {self.ports.budget.seconds or 0:g} s for this run are over."
                ended = RunEnded("budget", f"{over} What was done until then is kept.", self.step, budget="time")
        except BudgetUsedUpError as over:
            ended = RunEnded("budget", str(over), self.step, budget=over.kind)
        except ModelError as error:
            needs_key = error.kind is ErrorKind.AUTH or self.context.model == NO_MODEL
            ended = RunEnded("error", error.message, self.step, needs_key=needs_key)
        except (ContextFullError, CompactedError, StopRunError) as error:
            ended = RunEnded("stopped", str(error), self.step)
        except (StoreError, McpError) as error:
            ended = RunEnded("error", str(error), self.step)
        except Exception as error:  # the outermost edge of a run: the screen must stay alive
            log.exception("run failed")
            ended = RunEnded("error", f"{type(error).__name__}: {error}", self.step)
        return ended

    async def _run_until_idle(self) -> RunEnded:
        while True:
            try:
                ended = await self._work()
            finally:
                self._append_held_back()
                await self.context.after_run()
            try:
                await self.context.compact_as_asked()
            except asyncio.CancelledError:
                return ended  # the work itself was done before
            if ended.reason not in {"done", "length"} or not self.queue:
                return ended

    async def _work(self) -> RunEnded:
        self.context.return_to_chosen()
        await self.context.warm()
        await self.context.head.gather_tools(self.context.model, self.context.mode)
        self.answerer.save_unsaved()
        while True:
            self._append_held_back()
            self.context.ensure_head()
            if not self._is_paused():
                await self._take_messages()
                # Problems that checkers find while the model writes its last answer are a reason to go on.
                self._append(await self.tools.diagnostics.findings())
                if self._nothing_left():
                    await self._settle_files()
                    if await self._must_go_on():
                        continue
                    answer = newest_message(self.journal.session.active_path())
                    is_cut = self.step > 0 and isinstance(answer, AssistantEntry) and answer.finish == "length"
                    return RunEnded("length" if is_cut else "done", steps=self.step, check=self.check)
                self._append(ended_jobs(self.tools.jobs))
            await self.context.make_room()
            self.step += 1
            last = self.step >= self.ports.max_steps
            try:
                answer = await self._answer(wrap_up=last)
            except RepeatingAnswer as stopped:
                note = await self.tools.repetition.after_answer(stopped.answer, stopped.repetition)
                self.journal.append(_synthetic(REPEATING, note))
                if last:
                    return RunEnded("step_limit", steps=self.step)
                continue
            if answer.error:
                # The request was refused; another would be too.
                return RunEnded("error", answer.error, self.step)
            if last:
                self.tools.refuse(answer.tool_calls, STEP_LIMIT_REFUSAL)
                return RunEnded("step_limit", steps=self.step)
            if self.answerer.unread:
                self._tell_unread(self.answerer.unread)
            if answer.tool_calls:
                self.has_called = True
                try:
                    await self.tools.run(answer.tool_calls)
                finally:
                    self._append_checkpoint()
                await self._attach_instructions()

    async def _must_go_on(self) -> bool:
        """Run the project's check if a tool was called, and return True if the model has to fix its findings."""
        wanted = self.ports.check
        if wanted is None or not self.has_called:
            return False
        self.journal.channel.emit(Notice(f"Running the check: {one_line(wanted.command, 100)}"))
        entry = await run_check(wanted.command, self.ports, self.tools.gate.view(), self.recorder)
        await self._settle_files()
        self.journal.append(entry)
        self.check = "passed" if entry.passed else "failed"
        if entry.passed or self.failed_checks >= wanted.rounds:
            return False
        self.failed_checks += 1
        values = {"command": wanted.command, "result": entry.result, "output": entry.output.strip()}
        self.journal.append(_synthetic(CHECK_FAILED, fill(self.ports.prompt("check_failed"), **values)))
        return True

    async def _settle_files(self) -> None:
        if self.recorder is not None:
            await self.recorder.settle()
            self._append_checkpoint()

    async def _answer(self, *, wrap_up: bool) -> AssistantEntry:
        """Send the path and return the answer; after an overflow or a refusal, adapt and retry, once.

        Raises:
            RepeatingAnswer: the answer said the same again and again and was stopped.
            BudgetUsedUpError: the run may not use up that much.
        """
        if wrap_up:
            self.journal.append(_synthetic("step_limit", self.ports.prompt("step_limit")))
        while True:
            request, estimate = self.context.request(tools_allowed=not wrap_up)
            self.ports.meter.check(self.ports.budget, request.model, estimate)
            self.answerer.watches_repetition = self.tools.repetition.stops_answers
            try:
                answer = await self.answerer.answer(
                    request, step=self.step, estimate=estimate, check=self.tools.problem_of
                )
            except ModelError as error:
                if error.kind is ErrorKind.CONTEXT_OVERFLOW:
                    await self.context.after_overflow(error)
                elif not await self.context.fall_back(error):
                    raise
            else:
                self.context.answered(answer)
                return answer

    def _tell_unread(self, problem: str) -> None:
        """Tell the model that a call it wrote as text can't be read; raises StopRunError the second time in a row."""
        for entry in reversed(self.journal.session.active_path()[:-1]):
            if isinstance(entry, UserEntry) and entry.synthetic == UNREAD_CALL:
                raise StopRunError(f"The model writes its tool calls as text that can't be read. {problem}")
            if isinstance(entry, AssistantEntry) and entry.tool_calls:
                break
            if isinstance(entry, UserEntry) and entry.synthetic is None:
                break
        self.journal.append(_synthetic(UNREAD_CALL, f"{self.ports.prompt('unread_call').strip()}\n\n{problem}"))

    async def _attach_instructions(self) -> None:
        path, knowledge = self.journal.session.active_path(), self.ports.knowledge
        results = [entry.metadata for entry in since(path, AssistantEntry) if isinstance(entry, ToolResultEntry)]
        touched = tuple(dict.fromkeys(name for row in results for name in (*row.read_files, *row.modified_files)))
        found = await asyncio.to_thread(knowledge.nearby, touched, {*_shown(path), *touched}) if touched else ()
        if problem := knowledge.take_problems():
            self.journal.channel.emit(Notice(problem, "warning"))
        if found:
            files = (FilePart(path=item.name, text=item.text) for item in found)
            intro = TextPart(text=self.ports.prompt("nearby_instructions"))
            self.journal.append(UserEntry(parts=(intro, *files), synthetic=REASON))

    async def _take_messages(self) -> None:
        """Append the user's messages, a follow-up when the work is done; raises StopRunError if hooks refused all."""
        working = self.step > 0 and not self._nothing_left()
        waiting = self.queue.snapshot()
        await self._admit(self.queue.take_steering(), mid_run=working)
        if self._nothing_left() and self.queue:
            await self._admit([self.queue.popleft()], mid_run=False)
        last = newest_message(self.journal.session.active_path())
        if (
            isinstance(last, AssistantEntry)
            and last.finish in {"interrupted", "error"}
            and last.text.strip()
            and not last.tool_calls
        ):
            # A request may not end in an answer, and half of one is no end.
            self.journal.append(_synthetic("continue", self.ports.prompt("continue")))
        if self.queue.snapshot() != waiting:
            self.journal.channel.emit(self.queue.snapshot())

    async def _admit(self, messages: Sequence[QueuedMessage], *, mid_run: bool) -> None:
        """Append the messages that no hook refuses, each followed by the hooks' context for the model."""
        refused = ""
        for index, message in enumerate(messages):
            try:
                self.greeting += await self.ports.hooks.session_start(
                    resumed=bool(self.journal.session.info.first_message)
                )
                text = "\n".join(part.text for part in message.parts if isinstance(part, TextPart))
                answer = await self.ports.hooks.user_prompt(text, mid_run=mid_run)
                if answer.block:
                    refused = answer.message or "no reason given"
                    self.journal.channel.emit(MessageRefused(message.typed, refused))
                    continue
                self.journal.append(UserEntry(parts=message.parts, mid_run=mid_run))
            except (asyncio.CancelledError, StoreError):
                self.queue.extendleft(reversed(messages[index:]))
                self.journal.channel.emit(self.queue.snapshot())
                raise
            note = "\n\n".join(filter(None, [self.greeting, answer.context]))
            self.greeting = ""
            if note:
                self.journal.append(_synthetic("hook", f"<hook-context>\n{note}\n</hook-context>"))
        if refused and self.step == 0:
            raise StopRunError(f"A hook refused the message: {refused}")

    def _nothing_left(self) -> bool:
        entry = newest_message(self.journal.session.active_path())
        if isinstance(entry, AssistantEntry):
            return not entry.tool_calls and entry.finish in {"stop", "length", "content_filter"}
        return entry is None

    def _is_paused(self) -> bool:
        """Whether the provider wants to go on with the newest answer: nothing may be said in between."""
        entry = newest_sent(self.journal.session.active_path())
        return isinstance(entry, AssistantEntry) and entry.finish == "pause" and not entry.tool_calls

    def _append(self, entry: Entry | None) -> None:
        if entry is not None:
            self.journal.append(entry)

    def _append_checkpoint(self) -> None:
        if self.recorder is not None:
            self._append(self.recorder.take_checkpoint())

    def _append_held_back(self) -> None:
        while self.held_back:
            self.journal.append(self.held_back.pop(0))


def _synthetic(reason: str, text: str) -> UserEntry:
    return UserEntry(parts=(TextPart(text=text),), synthetic=reason)


REASON = "instructions"
"""Why the entry was made, as ``UserEntry.synthetic`` says it."""


def _shown(path: Sequence[Entry]) -> Iterator[str]:
    """Yield the names of the instructions the model sees already behind the head."""
    view = resolve(path)
    for entry in view.entries:
        if not isinstance(entry, UserEntry) or entry.synthetic != REASON:
            continue
        if view.state(entry.id) in (EntryState.LIVE, EntryState.PINNED):
            yield from (part.path for part in entry.parts if isinstance(part, FilePart))
