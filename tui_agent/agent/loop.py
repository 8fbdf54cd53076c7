"""Carries out a run: the loop from a user's message to an idle agent. Read this first.

    repeat until the model has nothing left to do:
        take in the user's new messages
        make room, if the next request would not fit
        send the path as a request, stream the answer into an entry
        run the tools it asked for, append their results

Every result is an entry appended to the session; everything to show is an event. A loop that is
started on an existing path, for example after a crash, continues from its end. It lacks only the
earlier run's counters and the entries that the earlier run held back until its next step.

`Agent` starts a run in a task, and emits `RunEnded` with what `Loop.run` returned.
"""

import asyncio
import logging
from dataclasses import field
from typing import Any, Literal

from tui_agent.agent.allowance import Allowance
from tui_agent.agent.answer import Answerer, RepeatingAnswer
from tui_agent.agent.calls.call import StopRunError
from tui_agent.agent.channel import Journal
from tui_agent.agent.checkpoints.recorder import Recorder
from tui_agent.agent.clients import NO_MODEL
from tui_agent.agent.closing_check import ClosingCheck, FormatCheck
from tui_agent.agent.context_keeper import CompactedError, ContextFullError, ContextKeeper
from tui_agent.agent.events import RunEnded, RunStarted
from tui_agent.agent.goals import Goals
from tui_agent.agent.hooks.payloads import Notification, RunEnd
from tui_agent.agent.intake import Intake
from tui_agent.agent.job_reports import LostJobs, ended_jobs
from tui_agent.agent.mcp.records import McpError
from tui_agent.agent.nearby import nearby_instructions
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.reminders import nudge, reminder
from tui_agent.agent.repeated_text import REPEATING
from tui_agent.agent.run_budget import BudgetUsedUpError
from tui_agent.agent.tool_runner import ToolRunner
from tui_agent.context.verdict import NUDGED, Verdict, verdict_on
from tui_agent.lazy import dataclass
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import AssistantEntry, Entry
from tui_agent.session.errors import StoreError
from tui_agent.session.path_queries import newest, newest_message, newest_sent

log = logging.getLogger(__name__)

STEP_LIMIT_REFUSAL = "Not run: the step limit is reached. Answer the user instead."
REFUSED_ANSWER = "Not run: the answer that made this call was refused by the provider."
SENT_BACK = "sent_back"
"""Value of ``UserEntry.synthetic`` in a message by which a hook sends the model back to work."""
MAX_SENT_BACK = 8
"""Maximum number of times that hooks can send the model back to work in one run."""
CUT_CALL = (
    "Not run: your answer reached its limit of tokens in this call and was cut off there, so its arguments may be "
    "half of what you meant. Send less at once: write a long file in several calls."
)
_ENDS: dict[Verdict, Literal["length", "unmarked"]] = {
    Verdict.CUT: "length",
    Verdict.UNMARKED: "unmarked",
}
"""Reasons for the end of a run after which the newest answer may be incomplete."""


@dataclass
class Loop:
    """Carries out the runs of one session, one at a time."""

    journal: Journal
    ports: AgentPorts
    intake: Intake
    context: ContextKeeper
    answerer: Answerer
    tools: ToolRunner
    closing_check: ClosingCheck
    format_check: FormatCheck
    goals: Goals
    allowance: Allowance
    recorder: Recorder | None
    """Records which files the tool calls change.

    None if recording is off, or for a subagent, whose changes its parent records.
    """
    lost_jobs: LostJobs
    held_back: list[Entry] = field(default_factory=list)
    """Entries created outside the run. They are appended before the next step, when all tool calls
    have results."""
    step: int = 0
    """Number of the current step in the run, from 1."""
    sent_back: int = 0
    """Number of times that hooks have sent the model back to work in this run."""
    _stepping: asyncio.Task[Any] | None = None
    """The task of the run while a step is carried out; None between steps."""
    _is_step_stopped: bool = False
    """Whether `stop_step` has already cancelled the current step."""

    async def run(self) -> RunEnded:
        """Carry out one run and return how it ended; errors and cancellation are not raised.

        Emits `RunStarted`, but not the returned `RunEnded`: the caller emits it.
        """
        self.journal.channel.emit(RunStarted())
        self.step = 0
        self.sent_back = 0
        self.closing_check.begin()
        self.format_check.begin()
        self.tools.diagnostics.is_reported_by_run = True
        try:
            with self.ports.meter.run(self.ports.budget):
                ended = await self._run_to_its_end()
        finally:
            self.tools.diagnostics.is_reported_by_run = False
        if ended.reason == "interrupted":
            self.goals.drop()
        answer = newest(self.journal.session.active_path(), AssistantEntry)
        text = answer.text if answer is not None else ""
        hooks = self.ports.hooks
        hooks.tell(
            RunEnd(
                about=hooks.about,
                reason=ended.reason,
                error=ended.error,
                steps=ended.steps,
                answer=text,
            )
        )
        if not self.ports.is_subagent:
            words = f"The run ended: {ended.reason}."
            hooks.tell(Notification(about=hooks.about, kind="idle", message=words))
        return ended

    async def _run_to_its_end(self) -> RunEnded:
        try:
            try:
                return await self._run_until_idle()
            finally:
                self._append_held_back()
        except (asyncio.CancelledError, Exception) as error:  # noqa: BLE001 - nothing above handles a run's errors
            return self._ended_by(error)

    def _ended_by(self, error: BaseException) -> RunEnded:  # noqa: PLR0911 - one for each way a run can end
        match error:
            case asyncio.CancelledError() if self.ports.meter.is_time_up:
                seconds = self.ports.budget.seconds or 0
                over = f"Stopped: the time limit of {seconds:g} s for this run is reached."
                return RunEnded(
                    "budget", f"{over} The work so far is kept.", self.step, budget="time"
                )
            case asyncio.CancelledError():
                return RunEnded("interrupted", steps=self.step)
            case BudgetUsedUpError():
                return RunEnded("budget", str(error), self.step, budget=error.kind)
            case ModelError():
                needs_key = error.kind is ErrorKind.AUTH or self.context.model == NO_MODEL
                return RunEnded("error", error.message, self.step, needs_key=needs_key)
            case ContextFullError() | CompactedError() | StopRunError():
                return RunEnded("stopped", str(error), self.step)
            case StoreError() | McpError():
                return RunEnded("error", str(error), self.step)
            case _:
                log.error("run failed", exc_info=error)
                return RunEnded("error", f"{type(error).__name__}: {error}", self.step)

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
                return ended  # only the compaction was interrupted
            if not ended.has_answer or not self.intake.queue:
                return ended

    async def _work(self) -> RunEnded:
        self.context.return_to_chosen()
        await self.context.warm()
        await self.context.head.gather_tools(self.context.model, self.context.mode)
        self.answerer.store_again()
        while True:
            self._append_held_back()
            self.context.ensure_head()
            if not self._is_paused():
                await self.intake.take_messages(step=self.step)
                # Problems that checkers find while the model writes its last answer are a reason to
                # go on.
                self._append(await self.tools.diagnostics.findings())
                if self.intake.nothing_left():
                    await self._settle_files()
                    if await self.closing_check.demand_more(self._settle_files):
                        continue
                    if await self._ask_end_hooks():
                        continue
                    if await self.goals.demand_more():
                        continue
                    if self.format_check.demand_more():
                        continue
                    return self._done()
                if self.step == 0:
                    self._append(self.lost_jobs.entry())
                self._append(ended_jobs(self.tools.jobs))
            if self.step == self.ports.pause_after:
                return RunEnded("step_limit", steps=self.step)
            await self.context.make_room()
            self.step += 1
            if (ended := await self._take_stoppable_step()) is not None:
                return ended

    def stop_step(self) -> None:
        """End the current step now: the run goes on, and takes in the waiting messages.

        What the step has produced so far is kept, as after an interrupt. Does nothing between
        steps.
        """
        if self._stepping is not None and not self._is_step_stopped:
            self._is_step_stopped = True
            self._stepping.cancel()

    async def _take_stoppable_step(self) -> RunEnded | None:
        """Take a step as `_take_step` does; also return None if `stop_step` ended it."""
        run = asyncio.current_task()
        self._stepping = run
        try:
            return await self._take_step()
        except asyncio.CancelledError:
            # More than one cancellation means that the run must end, not only the step.
            if run is None or not self._is_step_stopped or run.cancelling() > 1:
                raise
            return None
        finally:
            self._stepping = None
            if run is not None and self._is_step_stopped:
                self._is_step_stopped = False
                run.uncancel()

    async def _ask_end_hooks(self) -> bool:
        """Ask the hooks whether the work is done; return True if one sent the model back to work.

        In that case, the hook's message is appended. Once hooks have done so `MAX_SENT_BACK` times
        in a run, they are not asked any more.
        """
        answer = newest(self.journal.session.active_path(), AssistantEntry)
        if answer is None or self.sent_back >= MAX_SENT_BACK:
            return False
        message = await self.ports.hooks.before_end(answer.text, self.sent_back)
        if message:
            self.sent_back += 1
            self._remind(SENT_BACK, message)
        return bool(message)

    async def _take_step(self) -> RunEnded | None:
        """Request an answer and run its calls; return how the run ended, or None if it goes on.

        No call is run in the last step that the step limit allows, or if the provider refused to
        answer.
        """
        is_last = self.step >= self.ports.max_steps
        try:
            answer = await self._answer(wrap_up=is_last)
        except RepeatingAnswer as stopped:
            note = await self.tools.repetition.after_answer(stopped.answer, stopped.repetition)
            self._remind(REPEATING, note)
            if is_last:
                return RunEnded("step_limit", steps=self.step)
            return None
        verdict = verdict_on(answer, self.answerer.text_call_problem)
        if answer.error:
            # The request was refused; another would be too.
            self.tools.refuse(answer.tool_calls, REFUSED_ANSWER)
            return RunEnded("error", answer.error, self.step)
        if is_last:
            self.tools.refuse(answer.tool_calls, STEP_LIMIT_REFUSAL)
            return RunEnded("step_limit", steps=self.step)
        await self._obey(answer, verdict)
        return None

    async def _obey(self, answer: AssistantEntry, verdict: Verdict) -> None:
        """Run the complete tool calls of an answer, or ask the model to correct an unusable answer.

        Calls of an answer that the provider refused are not run; their results are errors.
        """
        match verdict:
            case Verdict.CALLS | Verdict.CUT if answer.tool_calls:
                self.closing_check.has_called = True
                cut = None
                if verdict is Verdict.CUT:
                    cut = answer.tool_calls[-1].call_id
                try:
                    await self.tools.run(answer.tool_calls, problems={cut: CUT_CALL} if cut else {})
                finally:
                    self._append_checkpoint()
                self._append(await nearby_instructions(self.journal, self.ports))
            case Verdict.REFUSED:
                self.tools.refuse(answer.tool_calls, REFUSED_ANSWER)
            case _ if verdict in NUDGED:
                nudge(self.journal, self.ports.prompt, verdict, self.answerer.text_call_problem)
            case _:
                return

    async def _answer(self, *, wrap_up: bool) -> AssistantEntry:
        """Send the session path to the model as a request; append the answer and return it.

        If the context overflows, makes room and retries. After another error, retries with a
        fallback model. ``wrap_up`` tells the model that this is its last step, and allows no tools.

        Raises:
            ModelError: the request failed, and no fallback model is used.
            RepeatingAnswer: the answer was stopped because it repeats itself.
            BudgetUsedUpError: a budget is used up, or the request would exceed the run's budget.
            ContextFullError, CompactedError: as from `ContextKeeper.make_room`.
        """
        if wrap_up:
            self._remind("step_limit", self.ports.prompt("step_limit"))
        while True:
            await self.allowance.check()
            request, estimate = self.context.request_to_send(tools_allowed=not wrap_up)
            self.ports.meter.check(self.ports.budget, request.model, estimate)
            try:
                answer = await self.answerer.answer(
                    request,
                    step=self.step,
                    estimate=estimate,
                    check=self.tools.problem_of,
                    stops_repetition=self.tools.repetition.stops_answers,
                )
            except ModelError as error:
                if error.kind is ErrorKind.CONTEXT_OVERFLOW:
                    await self.context.after_overflow(error)
                elif not await self.context.fall_back(error):
                    raise
            else:
                self.context.answered(answer)
                return answer

    def _done(self) -> RunEnded:
        answer = newest_message(self.journal.session.active_path())
        reason: Literal["done", "length", "unmarked"] = "done"
        if self.step > 0 and isinstance(answer, AssistantEntry):
            reason = _ENDS.get(verdict_on(answer), "done")
        return RunEnded(reason, steps=self.step, check=self.closing_check.ended)

    def _is_paused(self) -> bool:
        """Return True if the provider paused its newest answer, so no message may follow it yet."""
        entry = newest_sent(self.journal.session.active_path())
        return isinstance(entry, AssistantEntry) and verdict_on(entry) is Verdict.PAUSED

    async def _settle_files(self) -> None:
        if self.recorder is not None:
            await self.recorder.settle()
            self._append_checkpoint()

    def _remind(self, reason: str, text: str) -> None:
        self.journal.append(reminder(self.journal.session.active_path(), reason, text))

    def _append(self, entry: Entry | None) -> None:
        if entry is not None:
            self.journal.append(entry)

    def _append_checkpoint(self) -> None:
        if self.recorder is None:
            return
        entry = self.recorder.checkpoint()
        if entry is not None:
            self.journal.append(entry, then=self.recorder.forget_changes)

    def _append_held_back(self) -> None:
        while self.held_back:
            # An entry that can't be stored now is appended at the next step or by the next run.
            self.journal.append(self.held_back[0], then=self._drop_first_held_back)

    def _drop_first_held_back(self) -> None:
        del self.held_back[0]
