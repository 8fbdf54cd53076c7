"""Carries out compactions: plans, has a model write the summary, measures the result, appends it.

`ContextKeeper` decides when; the dialog ``ui.screens.compact`` calls the steps one by one
(`Compactor.plan`, ``draft``, ``commit``). Where to cut is decided by ``context.compaction``,
whether the result is small enough by ``context.commit_plan``. `PreparedSummary` writes the next
summary ahead.

A compaction is appended only if it makes the history small enough. One that fails or is interrupted
leaves the path as it was; instead of a refused one, old outputs may be cleared or cut. Planning and
measuring are pure functions over many entries, so they run in threads.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Literal

from tui_agent.agent.channel import Journal
from tui_agent.agent.clients import CallCost, complete
from tui_agent.agent.compaction_outcome import (
    Cancelled,
    Cleared,
    Compacted,
    CompactionOutcome,
    Failed,
    NothingToDo,
    Postponed,
)
from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    CompactionEnded,
    CompactionProgress,
    CompactionStarted,
    CostKnown,
    PromptProgress,
    ReasoningProgress,
    ToolCallProgress,
)
from tui_agent.agent.hooks.payloads import AfterCompact, CompactAnswer
from tui_agent.agent.hooks.summary_payloads import compaction_payload
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.run_budget import BudgetUsedUpError
from tui_agent.agent.threads import in_thread
from tui_agent.context.budget import (
    ContextSize,
    estimate_tokens,
    head_parts,
    overhead_parts,
)
from tui_agent.context.commit_plan import (
    CUT_OUTPUTS,
    PRUNED,
    Commit,
    Measures,
    plan_commit,
    plan_cuts,
    provisional,
)
from tui_agent.context.compaction import (
    Boundary,
    CompactionPlan,
    PlanOptions,
    Refusal,
    RefusalReason,
    Trigger,
    boundaries,
    plan_compaction,
)
from tui_agent.context.compaction_policy import (
    NO_FAILURES,
    SUMMARY_SECONDS,
    FailureRecord,
    changes_since,
    newest_user_id,
)
from tui_agent.context.plain_compaction import PlainOrder, plain_compactions
from tui_agent.context.preserved import digest
from tui_agent.context.request import ModelRequest
from tui_agent.context.serialise import blocks_of, compaction_tasks
from tui_agent.context.summariser import (
    SummariserLimits,
    Summarising,
    SummaryAnswer,
    SummaryCall,
    SummaryFailure,
    SummaryPrompts,
    build_request,
    choose_input,
    request_before,
    summarise,
)
from tui_agent.context.templates import Templates
from tui_agent.context.view import resolve
from tui_agent.errors import UserFacingError
from tui_agent.lazy import dataclass, frozen
from tui_agent.model.protocol import ErrorKind, ModelClient, ModelError
from tui_agent.session.entries import CompactionEntry, Entry, PruneEntry
from tui_agent.session.errors import StoreError
from tui_agent.session.path_queries import first_sent, newest
from tui_agent.session.records import Purpose
from tui_agent.tools.registry import tool_traits

log = logging.getLogger(__name__)

_PLAIN = "Compacted without a model, because summarising failed. The log has the details."

_SHORTEST = "…"
"""The shortest summary: if a compaction with it doesn't make enough room, none is requested."""
HEAD_START = 0.25
"""Maximum seconds that the request for a prepared summary waits for the run's own request to be
answered."""
_STILL_COVERED = {PRUNED, CUT_OUTPUTS}
"""Steps of a commit that leave the cut where it is, so that the summary covers all removed
entries."""

_ANSWERING = AnswerDelta | ReasoningProgress | ToolCallProgress | PromptProgress
"""Events that show that an answer has begun."""


@dataclass
class SummaryCalls:
    """Sends the requests of one summary to a model.

    ``live`` is the conversation's next request, for summaries requested at the end of the
    conversation; None if only its serialised text is sent. ``progress`` is called with every
    streamed piece of text. ``spent`` adds up usage and cost.
    """

    client: ModelClient
    model: str
    live: ModelRequest | None = None
    progress: Callable[[str], None] = lambda _text: None
    spent: CallCost = field(default_factory=CallCost)

    async def run(self, conversation: Summarising) -> str | SummaryFailure:
        """Send the requests that ``conversation`` yields; return the summary, or why there is none.

        The requests of one round are sent in parallel. A ModelError is not raised, but sent to
        ``conversation`` as the answer to its request.
        """
        try:
            calls = next(conversation)
            while True:
                answers = await asyncio.gather(*(self._call(call) for call in calls))
                calls = conversation.send(answers)
        except StopIteration as done:
            result: str | SummaryFailure = done.value
            return result

    async def _call(self, call: SummaryCall) -> SummaryAnswer:
        try:
            request = build_request(call, self.model, self.live)
            answer = await complete(self.client, request, self.spent, self.progress)
        except ModelError as error:
            if error.kind is ErrorKind.CONTEXT_OVERFLOW:
                # The error's own message advises to compact, which is being done here.
                return SummaryAnswer(
                    error=f"the conversation is too long for {self.model}", too_long=True
                )
            refused = error.kind in (ErrorKind.CONTENT_FILTER, ErrorKind.INVALID_REQUEST)
            return SummaryAnswer(error=error.message, refused=refused)
        return SummaryAnswer(
            answer.text, answer.finish, answer.tool_calls, is_thinking=answer.is_thinking
        )


@frozen
class CompactionOrder:
    """A compaction to carry out.

    ``model`` is the model whose window the result has to fit. ``focus`` says what the summary
    should pay attention to. ``live`` is the conversation's next request, and ``cache_warm`` whether
    the provider still has it cached, so that summarising in the conversation is cheap.
    ``summariser`` is the model that writes the summary if the settings name none; "" for ``model``.
    ``writer`` is the model that the user chose for this summary, whatever the settings name; "" for
    none. ``boundary`` is the id of the first entry that is not summarised, if the user chose it.
    ``keep_recent`` is the tokens of the newest history to keep, for a summary prepared during the
    run; None for the setting.
    """

    trigger: Trigger
    model: str
    focus: str | None = None
    live: ModelRequest | None = None
    cache_warm: bool = False
    summariser: str = ""
    writer: str = ""
    boundary: int | None = None
    keep_recent: int | None = None


@frozen
class Draft:
    """A compaction that is planned and summarised but not committed.

    Its summary can still be edited.
    """

    order: CompactionOrder
    plan: CompactionPlan
    summary: str
    size: ContextSize
    model: str | None = None
    """The model that wrote the summary; None if no model did."""
    spent: CallCost = field(default_factory=CallCost)
    style: Literal["summary", "native", "hook"] = "summary"
    item: str | None = None
    """The provider's own compaction of the same messages, as JSON text; None if there is none."""
    hook_details: str = ""
    """Details that a hook stores with the entry, as JSON text."""
    as_planned: bool = False
    """Whether the draft may only be committed with the plan's cut, because the summary covers
    nothing later."""
    prepared: bool = False
    """Whether the summary was written during the run, before it was needed."""


class Compactor:
    """Compacts one session.

    ``failures`` counts failures in a row, which pause automatic compaction.
    """

    def __init__(self, journal: Journal, ports: AgentPorts) -> None:
        self._journal = journal
        self._session = journal.session
        self._ports = ports
        self._channel = journal.channel
        self._prompts = SummaryPrompts.load(ports.prompt)
        self._templates = Templates.load(ports.prompt)
        self.failures: FailureRecord = NO_FAILURES
        self.prepared = PreparedSummary(self, journal, ports)
        """The next compaction's summary, written before it is needed."""
        self._not_native: set[str] = set()
        """Models whose provider has no compaction of its own; it is not requested again."""

    async def plan(self, order: CompactionOrder) -> CompactionPlan | Refusal:
        """Return the plan of a compaction, or why there is none.

        Changes nothing and calls no model.
        """
        path = self._session.active_path()
        options = PlanOptions(
            tool_traits(),
            trigger=order.trigger,
            instructions=order.focus,
            keep_recent=order.keep_recent,
            count=self._ports.directory.counter(order.model).entry,
            overhead=self._overhead(order.model, path),
            boundary=order.boundary,
        )
        settings = self._ports.settings.for_model(order.model)
        size = self.size(order.model, path)
        return await in_thread(plan_compaction, path, settings, size, options)

    async def boundaries(self, model: str) -> list[Boundary]:
        """Return the places on the path where the user may have a compaction cut, oldest first."""
        count = self._ports.directory.counter(model).entry
        return await in_thread(boundaries, self._session.active_path(), count)

    async def compact(
        self, order: CompactionOrder, *, without_model: bool = False
    ) -> CompactionOutcome:
        """Plan, summarise and commit a compaction, with events at start and end.

        If the compaction is refused, old outputs may be cleared instead (`Cleared`).
        ``without_model``: the summary is put together by rules. A UserFacingError of a step, such
        as of the store, is raised; any other error leads to a compaction without a model.
        Cancelling this changes nothing.
        """
        path = self._session.active_path()
        self._channel.emit(CompactionStarted(order.trigger, self.size(order.model, path).history))
        outcome: CompactionOutcome = Failed("Interrupted.")
        try:
            try:
                outcome = await self._compact(order, without_model=without_model)
            except UserFacingError:
                raise
            except Exception:  # A defect must not leave a session that can never be compacted.
                log.exception("the compaction failed; compacting without a model")
                outcome = self._compact_plainly(order)
        finally:
            self._channel.emit(CompactionEnded(outcome.problem, outcome.steps, order.trigger))
        match outcome:
            case Failed():
                self.failures = self.failures.failed(path)
            case Compacted() | Cleared():
                self.failures = NO_FAILURES
            case Postponed() | NothingToDo() | Cancelled():
                # These say nothing about the next compaction.
                return outcome
        return outcome

    async def draft(self, order: CompactionOrder) -> Draft | Refusal | SummaryFailure:
        """Plan and summarise a compaction without committing it.

        ``before_compact`` hooks may cancel it, move the cut or supply the summary. If there is no
        draft, the `Refusal` or `SummaryFailure` says why.
        """
        plan = await self.plan(order)
        if isinstance(plan, Refusal):
            return plan
        return await self._draft(plan, order)

    async def draft_by_rule(self, order: CompactionOrder) -> Draft | Refusal:
        """Plan a compaction, and put its summary together by rules, without a model."""
        plan = await self.plan(order)
        if isinstance(plan, Refusal):
            return plan
        return await self._draft_by_rule(plan, order)

    async def _draft(
        self, plan: CompactionPlan, order: CompactionOrder
    ) -> Draft | Refusal | SummaryFailure:
        hooks = self._ports.hooks
        answer = CompactAnswer()
        if await hooks.wanted("before_compact"):
            path = await asyncio.to_thread(self._session.path)
            payload = compaction_payload(plan, path, hooks.about, self._templates)
            answer = await hooks.ask_for_summary(payload, CompactAnswer)
        if answer.cancel:
            why = f"A hook cancelled it: {answer.message or 'no reason given'}"
            return Refusal(RefusalReason.CANCELLED, why)
        if answer.first_kept is not None:
            moved = await self.plan(replace(order, boundary=answer.first_kept))
            if isinstance(moved, Refusal):
                return replace(
                    moved,
                    message=f"A hook wants to cut before #{answer.first_kept}: {moved.message}",
                )
            plan = moved
        drafted: Draft | SummaryFailure = Draft(
            order, plan, answer.summary, self.size(order.model), style="hook"
        )
        if not answer.summary:
            focused = replace(plan, instructions=answer.focus(plan.instructions))
            drafted = await self.summarise(focused, order, CallCost())
        if isinstance(drafted, Draft):
            return replace(drafted, plan=plan, hook_details=answer.kept_details)
        return drafted

    async def forecast(
        self, plan: CompactionPlan, order: CompactionOrder, summary: str = ""
    ) -> Commit | Refusal:
        """Return what a plan would commit with a given summary, or why it can't be committed."""
        return await self.weigh(Draft(order, plan, summary, self.size(order.model)))

    async def weigh(self, draft: Draft, summary: str | None = None) -> Commit | Refusal:
        """Return what a draft would commit on the current path, or why it can't be committed.

        ``summary`` is the user's edited text; None for the draft's own.
        """
        path = self._session.active_path()
        text = draft.summary if summary is None else summary
        measures = self._measures(draft.order.model)
        overhead = self._overhead(draft.order.model, path)
        weighed = await in_thread(
            plan_commit,
            path,
            draft.plan,
            text,
            measures=measures,
            size=draft.size,
            overhead=overhead,
        )
        if draft.as_planned and isinstance(weighed, Commit) and set(weighed.steps) - _STILL_COVERED:
            return Refusal(
                RefusalReason.NO_PROGRESS, "More has to be removed than the summary covers."
            )
        return weighed

    async def commit(self, draft: Draft, summary: str | None = None) -> Commit | Refusal:
        """Append a drafted compaction and return what was appended, or why it can't be committed.

        ``summary`` is the user's edited text; None for the draft's own.
        """
        commit: Commit | Refusal | None = None
        leaf = self._session.leaf
        while commit is None or leaf != self._session.leaf:
            # Entries may be appended while it is measured.
            leaf = self._session.leaf
            commit = await self.weigh(draft, summary)
            if draft.item and (isinstance(commit, Refusal) or summary not in {None, draft.summary}):
                # The provider's item is valid only with the original plan and summary.
                draft = replace(draft, style="summary", item=None, as_planned=False)
                commit = None
        if isinstance(commit, Commit):
            self._append(_with_origin(entry, draft) for entry in commit.entries)
            self.prepared.committed(draft)
            if any(isinstance(entry, CompactionEntry) for entry in commit.entries):
                # The entry has the cost now.
                self.count(draft.spent, -1)
        return commit

    async def _compact(self, order: CompactionOrder, *, without_model: bool) -> CompactionOutcome:
        if not without_model and (prepared := await self.prepared.commit(order)) is not None:
            return Compacted(prepared.steps)
        plan = await self.plan(order)
        if isinstance(plan, Refusal):
            return await self._refused(plan, order)
        draft: Draft | Refusal | SummaryFailure
        if without_model:
            draft = await self._draft_by_rule(plan, order)
        else:
            draft = await self._worthwhile(plan, order)
        if isinstance(draft, Refusal):
            return await self._refused(draft, order)
        if isinstance(draft, SummaryFailure):
            return Failed(draft.reason)
        commit = await self.commit(draft)
        return Failed(commit.message) if isinstance(commit, Refusal) else Compacted(commit.steps)

    async def _worthwhile(
        self, plan: CompactionPlan, order: CompactionOrder
    ) -> Draft | Refusal | SummaryFailure:
        """Return a draft, unless not even the shortest summary would make enough room.

        In that case return a `SummaryFailure`; manual compactions are drafted all the same. A
        `Refusal` means that a hook cancelled the compaction or chose an impossible cut, another
        `SummaryFailure` that the model failed. If the model's summary is unusable, the user is
        warned and the draft's summary is put together by rules.
        """
        if order.trigger != "manual":
            why = await self.why_hopeless(plan, order)
            if why:
                return SummaryFailure(why)
        draft = await self._draft(plan, order)
        if not isinstance(draft, SummaryFailure) or not draft.is_unfit:
            return draft
        text = f"{draft.reason} Compacted without a model instead."
        self._channel.say(text, "warning", "undo")
        return await self._draft_by_rule(plan, order)

    async def _draft_by_rule(self, plan: CompactionPlan, order: CompactionOrder) -> Draft:
        return Draft(order, plan, await self._by_rule(plan, order), self.size(order.model))

    def _compact_plainly(self, order: CompactionOrder) -> CompactionOutcome:
        """Compact without a model and with as little code as possible, after an internal error.

        Returns `Failed` if no compaction makes enough room.
        """
        path = self._session.active_path()
        size = self.size(order.model, path)
        rules = self._ports.settings.for_model(order.model).compaction
        plain = PlainOrder(
            order.trigger,
            keep=rules.keep_recent_tokens(size.budget),
            summary=rules.summary_tokens(size.budget),
            boundary=order.boundary,
        )
        measures = self._measures(order.model)
        before = measures.size_of(path)
        for entry in plain_compactions(resolve(path), plain, measures.text, self._templates):
            after = measures.size_of(provisional(path, [entry]))
            is_too_large = after > size.budget * rules.target_of_budget
            if after >= before or (is_too_large and order.trigger != "manual"):
                continue
            sizes = {"tokens_before": before, "tokens_after": after}
            self._append([entry.model_copy(update=sizes)])
            self._channel.say(_PLAIN, "warning")
            return Compacted(("by rule",))
        return Failed(
            "The compaction failed (the log has the details), and there is too little to leave out."
        )

    async def why_hopeless(self, plan: CompactionPlan, order: CompactionOrder) -> str:
        """Return why not even the shortest summary would make enough room; "" if it would."""
        weighed = await self.forecast(plan, order, _SHORTEST)
        return weighed.message if isinstance(weighed, Refusal) else ""

    async def _refused(self, refusal: Refusal, order: CompactionOrder) -> CompactionOutcome:
        """Clear old outputs and cut long texts in place of a refused compaction.

        Changes nothing if a hook cancelled the compaction, if it is manual and the refusal offers
        no prune, if this would not make enough room, or if the path changed meanwhile. Returns
        `Cleared`, `Cancelled` or `NothingToDo`.
        """
        cancelled = refusal.reason is RefusalReason.CANCELLED
        if not cancelled and (refusal.prunes or order.trigger != "manual"):
            path = self._session.active_path()
            settings = self._ports.settings.for_model(order.model)
            measures = self._measures(order.model)
            size = self.size(order.model, path)
            commit = await in_thread(
                plan_cuts,
                path,
                refusal,
                settings,
                measures=measures,
                size=size,
                trigger=order.trigger,
            )
            if isinstance(commit, Commit) and path[-1].id == self._session.leaf:
                self._append(commit.entries)
                return Cleared(commit.steps)
        if cancelled:
            return Cancelled(refusal.message)
        return NothingToDo(refusal.message)

    async def summarise(
        self, plan: CompactionPlan, order: CompactionOrder, spent: CallCost
    ) -> Draft | SummaryFailure:
        """Have a model write the summary of a plan.

        Usage and cost are added to ``spent``, to the session's cost and to the run's, also on
        failure; `commit` moves them to the compaction's entry.
        """
        try:
            return await self._summarise(plan, order, spent)
        finally:
            self.count(spent, 1)

    async def _summarise(
        self, plan: CompactionPlan, order: CompactionOrder, spent: CallCost
    ) -> Draft | SummaryFailure:
        """Have a model write the summary of a plan.

        With the style "native" the provider's own compaction is tried first, if the session's own
        model summarises and the plan has no instructions.
        """
        settings = plan.settings.compaction
        model = order.writer or settings.model or order.summariser or order.model
        if settings.style == "native" and model == order.model and not plan.instructions:
            native = await self._native_draft(plan, order, spent)
            if native is not None:
                return native
        count = self._ports.directory.counter(model).text
        templates = self._templates
        limits = SummariserLimits(self._ports.directory.limits(model).window, plan.summary_tokens)
        size = self.size(order.model)
        live = order.live
        read = plan.tokens_before
        is_ahead = order.keep_recent is not None
        if live is not None and (is_ahead or plan.boundary is not None):
            # The live request has to end with the entries that are summarised.
            live = request_before(live, first_sent(plan.kept) or 0)
            read = plan.tokens_summarised

        def serialised_tokens() -> int:
            summarised = (*plan.history, *plan.turn_prefix)
            return sum(map(count, blocks_of(summarised, plan.view, settings, templates)))

        mode = choose_input(
            settings.input if live is not None and model == live.model else "serialised",
            limits,
            live_tokens=read + size.fixed,
            serialised_tokens=await in_thread(serialised_tokens),
            cache_warm=order.cache_warm,
        )
        calls = SummaryCalls(self._ports.client, model, live, spent=spent)
        if not is_ahead:
            calls.progress = lambda text: self._channel.emit(CompactionProgress(text))
        tasks = compaction_tasks(plan, mode, templates)
        summary = await calls.run(summarise(tasks, self._prompts, limits, count))
        if isinstance(summary, SummaryFailure):
            return summary
        return Draft(order, plan, summary, size=size, model=model, spent=spent)

    async def _native_draft(
        self, plan: CompactionPlan, order: CompactionOrder, spent: CallCost
    ) -> Draft | None:
        """Return a draft with the provider's own compaction; None if the provider made none."""
        made = await self._provider_item(plan, order, spent)
        if made is None:
            return None
        item, text = made
        return Draft(
            order,
            plan,
            text or await self._by_rule(plan, order),
            size=self.size(order.model),
            model=order.model,
            spent=spent,
            style="native",
            item=item,
            as_planned=True,
        )

    async def _by_rule(self, plan: CompactionPlan, order: CompactionOrder) -> str:
        """Return the previous summary, if any, and a digest of the plan's entries made by rules."""
        count = self._ports.directory.counter(order.model).text
        earlier = ""
        if plan.previous_summary:
            earlier = f"{plan.previous_summary}\n\n"
        summarised = (*plan.history, *plan.turn_prefix)
        room = plan.summary_tokens - count(earlier)
        return earlier + await in_thread(digest, summarised, room, count)

    async def _provider_item(
        self, plan: CompactionPlan, order: CompactionOrder, spent: CallCost
    ) -> tuple[str, str] | None:
        """Return the provider's own compaction of the plan's entries as JSON text, and its summary.

        None if the provider made none, which a notice explains. Also None, without a notice, if
        there is no live request or the model's provider is known to have no compaction.
        """
        end = first_sent(plan.kept)
        if end is None or order.live is None:
            live = order.live
        else:
            live = request_before(order.live, end)
        if live is None or order.model in self._not_native:
            return None
        # The opening is sent with every request, so it must not be compacted.
        head = {message.origin for message in live.messages if message.role == "system"}
        asked = replace(
            live,
            messages=tuple(m for m in live.messages if m.role == "system" or m.origin not in head),
        )
        problem = "The provider answered without a compaction."
        is_able = False
        try:
            answer = await complete(self._ports.client, replace(asked, compact=True), spent)
        except ModelError as error:
            problem = error.message
            is_able = error.kind not in {ErrorKind.INVALID_REQUEST, ErrorKind.NOT_FOUND}
        else:
            if answer.item:
                return answer.item, answer.text
        if not is_able:
            self._not_native.add(order.model)
        self._channel.say(
            f"Writing a summary instead of using the provider's own compaction: {problem}"
        )
        return None

    def count(self, spent: CallCost, sign: int) -> None:
        """Add the cost of a summary to the session's and the run's; subtract it if ``sign`` is -1."""
        self._ports.meter.spend(sign * (spent.cost or 0.0), sign * spent.usage.total)
        if not spent.cost:
            return
        try:
            self._journal.add_cost(sign * spent.cost, Purpose.SUMMARIES)
        except StoreError as error:
            log.warning("the cost of a summary was not counted: %s", error)

    def _append(self, entries: Iterable[Entry]) -> None:
        hooks = self._ports.hooks
        for entry in self._journal.append_many(entries):
            if isinstance(entry, CompactionEntry):
                self._warn_about_lost_rules(entry)
                hooks.tell(
                    AfterCompact(
                        about=hooks.about,
                        entry=entry.id,
                        trigger=entry.trigger,
                        summary=entry.summary,
                        first_kept_id=entry.first_kept_id,
                        tokens_before=entry.tokens_before,
                        tokens_after=entry.tokens_after,
                        model=entry.model,
                    )
                )

    def _warn_about_lost_rules(self, entry: CompactionEntry) -> None:
        lost = entry.details.rules_lost
        if not lost:
            return
        words = "1 of your rules no longer fits" if lost == 1 else f"{lost} rules no longer fit"
        self._channel.say(f"{words} beside the summary: /rules shows which.", "warning")

    def _overhead(self, model: str, path: Sequence[Entry]) -> tuple[tuple[str, int], ...]:
        head = resolve(path).system
        if head is None:
            return ()
        return overhead_parts(head_parts(head, self._ports.directory.counter(model)))

    def size(self, model: str, path: Sequence[Entry] | None = None) -> ContextSize:
        """Return the size of a path's next request to a model; None stands for the current path."""
        path = self._session.active_path() if path is None else path
        return self._ports.context_meter(model).measure(path)

    def _measures(self, model: str) -> Measures:
        meter = self._ports.context_meter(model)
        counter = meter.counter
        fixed = self.size(model).fixed

        def size_of(path: Sequence[Entry]) -> int:
            # Estimates before and after: the provider's count is only of a request that was sent.
            return max(0, estimate_tokens(path, meter.limits, counter) - fixed)

        return Measures(size_of, counter.text, counter.entry, self._templates)


def _with_origin(entry: Entry, draft: Draft) -> Entry:
    if not isinstance(entry, CompactionEntry):
        return entry
    details = entry.details.model_copy(update={"hook": draft.hook_details})
    made = {
        "style": draft.style,
        "item": draft.item,
        "prepared": draft.prepared,
        "details": details,
    }
    entry = entry.model_copy(update=made)
    if draft.model is None:
        return entry
    spent = {"model": draft.model, "usage": draft.spent.usage, "cost": draft.spent.cost}
    return entry.model_copy(update=spent)


@frozen
class _Place:
    """The range of a prepared summary for ``model``: the entries before the one with id ``cut``."""

    cut: int
    model: str
    changes: tuple[int, ...] | None
    """Ids of the edits and compactions that had changed those entries when the summary was begun.

    None if the cut was not on the path.
    """
    begun: int
    """Id of the newest entry when the summary was begun."""


class PreparedSummary:
    """The summary of the next compaction, written in the background so that the run need not wait.

    There is at most one. It can be used while its cut is on the path and no entry before the cut
    has been changed.
    """

    def __init__(self, compactor: "Compactor", journal: Journal, ports: AgentPorts) -> None:
        self._compactor = compactor
        self._session = journal.session
        self._channel = journal.channel
        self._ports = ports
        self.task: asyncio.Task[None] | None = None
        """The task that writes the summary; None if none is being written."""
        self._place: _Place | None = None
        self.ready: Draft | None = None
        """The finished summary, None if there is none; ``holds`` returns whether it can be used."""
        self._model = ""
        self._tried: tuple[int, ...] | None = None
        """What `_occasion` returned for the last attempt that failed; None if none has."""
        self.is_too_early = False
        """Whether the last attempt found too little to summarise, so that the next step may try again."""
        self.seconds = SUMMARY_SECONDS
        """Seconds that the last summary took to write; an assumption before the first."""
        self._put_off_at: int | None = None
        """Id of the newest user message when the user put the compaction off; None if they never
        did."""

    def holds(self, model: str) -> bool:
        """Return True if the summary, finished or not, is for this model and still fits the path.

        It fits while its cut is on the path and no entry before the cut has been changed since.
        """
        place = self._place
        if place is None or place.model != model or place.changes is None:
            return False
        return changes_since(self._session.active_path(), place.cut) == place.changes

    def review(self, model: str) -> None:
        """Drop the summary if it can't be used any more."""
        if self._place is not None and not self.holds(model):
            self.drop("the history that it covers has changed")

    def is_wanted(self) -> bool:
        """Return True if a summary may be begun.

        False if one is finished or being written, if the user put the compaction off, or if an
        attempt failed and nothing relevant has changed since.
        """
        is_open = self.task is None and self.ready is None and not self.is_put_off
        return is_open and self._tried != self._occasion()

    @property
    def is_put_off(self) -> bool:
        """Whether the user wants no automatic compaction before their next message."""
        return self._put_off_at == newest_user_id(self._session.active_path())

    def put_off(self) -> None:
        """Drop the summary; compact nothing until the user's next message, while requests fit."""
        self._put_off_at = newest_user_id(self._session.active_path())
        self.drop("you put the compaction off")

    def begin(self, order: "CompactionOrder", needless: Callable[[], Awaitable[bool]]) -> None:
        """Start a task that writes a summary, unless ``needless``, called first, returns True."""
        self._model = order.model
        self.task = asyncio.get_running_loop().create_task(self._prepare(order, needless))

    async def draft(self, order: "CompactionOrder") -> "Draft | None":
        """Return the finished summary as a draft for the current path.

        None if there is none, if it no longer fits the path or the order's model, if the order has
        a focus or a boundary, if hooks take part in compactions, or if a plan with the summary's
        cut is refused.
        """
        ready = self.ready
        place = self._place
        if (
            ready is None
            or place is None
            or order.focus
            or order.boundary is not None
            or not self.holds(order.model)
        ):
            return None
        if await self._ports.hooks.wanted("before_compact"):
            return None
        plan = await self._compactor.plan(replace(order, boundary=place.cut))
        if isinstance(plan, Refusal) or first_sent(plan.kept) != place.cut:
            return None
        keep = plan.settings.compaction.keep_recent_tokens(plan.budget)
        size = self._compactor.size(order.model)
        plan = replace(plan, boundary=None, keep_recent=keep, begun=place.begun)
        return replace(ready, order=order, plan=plan, size=size)

    async def commit(self, order: "CompactionOrder") -> Commit | None:
        """Commit the summary, waiting for it if it is being written; None if it can't be used.

        A summary that no longer makes enough room is dropped.
        """
        is_ordered = order.model == self._model and not order.focus and order.boundary is None
        if self.task is not None and is_ordered:
            await asyncio.wait([self.task])
        draft = await self.draft(order)
        if draft is None:
            return None
        commit = await self._compactor.commit(replace(draft, as_planned=True, prepared=True))
        if isinstance(commit, Commit):
            return commit
        self.drop("it no longer makes enough room")
        return None

    def committed(self, draft: "Draft") -> None:
        """Forget the summary if ``draft``, which was just committed, was made from it."""
        if self.ready is not None and self.ready.spent is draft.spent:
            self._forget()

    def drop(self, why: str) -> None:
        """Forget the summary and cancel its task.

        If it was finished, a notice gives its cost and ``why``.
        """
        draft = self.ready
        self._forget()
        if draft is not None:
            if draft.spent.cost:
                cost = f"${draft.spent.cost:.4f}"
            else:
                cost = f"{draft.spent.usage.total:,} tokens"
            self._channel.say(f"A summary prepared for {cost} was dropped: {why}.")

    async def _prepare(
        self, order: "CompactionOrder", needless: Callable[[], Awaitable[bool]]
    ) -> None:
        spent = CallCost()
        tried = self._occasion()
        drafted = None
        try:
            await self._own_request()
            drafted = await self._written(order, needless, spent)
        except Exception:  # A failure here must not end the run, which compacts without it then.
            log.exception("no summary prepared")
        finally:
            is_wanted = self.task is asyncio.current_task()
            if is_wanted:
                self.task = None
                self.ready = drafted
                self._place = self._place if drafted is not None else None
            self._channel.emit(CostKnown())
        if is_wanted and drafted is None and not self.is_too_early:
            self._tried = tried
        self.review(order.model)
        if self.ready is not None:
            self._ask(order.model)

    async def _own_request(self) -> None:
        """Wait until the run's own request is being answered, `HEAD_START` seconds at most.

        So the summary's request does not delay it.
        """
        answering = asyncio.Event()

        def watch(event: AgentEvent) -> None:
            if isinstance(event, _ANSWERING):
                answering.set()

        leave = self._channel.subscribe(watch)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(HEAD_START):
                    await answering.wait()
        finally:
            leave()

    def _ask(self, model: str) -> None:
        """Show a notice that offers to read the summary before it is used, if ``auto`` is "ask"."""
        size = self._compactor.size(model)
        settings = self._ports.settings.for_model(model).compaction
        if settings.auto == "ask" and size.threshold is not None:
            at = f"{size.threshold / size.window:.0%}"
            text = f"The summary is ready; the history is compacted with it at {at}."
            self._channel.say(text, action="compact", label="to read it")

    def edit(self, draft: "Draft", text: str) -> bool:
        """Replace the finished summary's text; return False if ``draft`` was not made from it."""
        if self.ready is None or self.ready.spent is not draft.spent:
            return False
        # A provider's own compaction can't be edited, so only the text is used.
        self.ready = replace(self.ready, summary=text, style="summary", item=None)
        return True

    async def _written(
        self, order: "CompactionOrder", needless: Callable[[], Awaitable[bool]], spent: CallCost
    ) -> "Draft | None":
        """Write the summary and return it as a draft.

        None if it is not needed or can't help, if hooks take part in compactions, if it would
        exceed the budget, if the path changed meanwhile, or if the model failed.
        """
        self.is_too_early = False
        if await self._ports.hooks.wanted("before_compact") or await needless():
            return None
        path = tuple(self._session.active_path())
        plan = await self._compactor.plan(order)
        if (
            isinstance(plan, Refusal)
            or (cut := first_sent(plan.kept)) is None
            or await self._compactor.why_hopeless(plan, order)
        ):
            self.is_too_early = True
            return None
        try:
            self._ports.meter.check(self._ports.budget, order.model, plan.tokens_summarised)
        except BudgetUsedUpError:
            return None
        self._place = _Place(cut, order.model, changes_since(path, cut), path[-1].id)
        if not self.holds(order.model):  # The path has changed meanwhile.
            return None
        begun = time.monotonic()
        drafted = await self._compactor.summarise(plan, order, spent)
        self.seconds = time.monotonic() - begun
        if isinstance(drafted, SummaryFailure):
            log.info("no summary prepared: %s", drafted.reason)
            return None
        return drafted

    def _occasion(self) -> tuple[int, ...]:
        """Return the ids of the newest user message, compaction and prune, 0 for none.

        After a failed attempt, another one is made only when these have changed.
        """
        path = self._session.active_path()
        made = (newest(path, kind) for kind in (CompactionEntry, PruneEntry))
        return newest_user_id(path), *(0 if entry is None else entry.id for entry in made)

    def _forget(self) -> None:
        task = self.task
        self.task = None
        self._place = None
        self.ready = None
        if task is not None:
            task.cancel()
