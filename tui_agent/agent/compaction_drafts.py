"""Plans compactions and has their summaries written; appends nothing to the session.

`Compactor` commits the drafts made here. Where to cut is decided by ``context.compaction``, whether
the result is small enough by ``context.commit_plan``. Planning and measuring are pure functions
over many entries, so they run in threads.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Literal

from tui_agent.agent.channel import Journal
from tui_agent.agent.clients import CallCost, complete
from tui_agent.agent.events import CompactionProgress
from tui_agent.agent.hooks.payloads import CompactAnswer
from tui_agent.agent.hooks.summary_payloads import compaction_payload
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.threads import in_thread
from tui_agent.context.budget import ContextSize, estimate_tokens, head_parts, overhead_parts
from tui_agent.context.commit_plan import Commit, Measures, plan_commit
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
from tui_agent.lazy import dataclass, frozen
from tui_agent.model.protocol import ErrorKind, ModelClient, ModelError
from tui_agent.permission import said_by_hook
from tui_agent.session.entries import CompactionEntry, Entry
from tui_agent.session.errors import StoreError
from tui_agent.session.path_queries import first_sent
from tui_agent.session.records import Purpose
from tui_agent.tools.registry import tool_traits

log = logging.getLogger(__name__)

_SHORTEST = "…"
"""The shortest possible summary, used to test whether any summary can make enough room."""


@dataclass
class SummaryCalls:
    """Sends the requests of one summary to a model.

    ``live`` is the conversation's next request, to which the prompt for the summary can be
    appended; None if the conversation is only sent as text. ``progress`` is called with every
    streamed piece of text. ``spent`` adds up usage and cost.
    """

    client: ModelClient
    model: str
    live: ModelRequest | None = None
    progress: Callable[[str], None] = lambda _text: None
    spent: CallCost = field(default_factory=CallCost)

    async def run(self, conversation: Summarising) -> str | SummaryFailure:
        """Send the requests that ``conversation`` yields; return the summary, or why it failed.

        The requests of one round are sent in parallel. A ModelError is not raised, but passed to
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
                # Don't use the error's own message: it advises to compact, which is being done
                # here.
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
    should pay attention to. ``live`` is the conversation's next request, and ``cache_warm`` says
    whether the provider still has it cached, which makes summarising in the conversation cheap.
    ``summariser`` is the model that writes the summary if the settings name none; "" for ``model``.
    ``writer`` is the model that the user chose for this summary, which overrides the settings; ""
    if the user chose none. ``boundary`` is the id of the first entry that is not summarised, if the
    user chose it. ``keep_recent`` is how many tokens of the newest history to keep; None to use the
    setting.
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
    is_ahead: bool = False
    """Whether the summary is prepared during the run, before it is needed."""


@frozen
class Draft:
    """A planned compaction and its summary, which is not committed yet and can still be edited."""

    order: CompactionOrder
    plan: CompactionPlan
    summary: str
    size: ContextSize
    model: str | None = None
    """The model that wrote the summary; None if no model did."""
    spent: CallCost = field(default_factory=CallCost)
    style: Literal["summary", "native", "hook"] = "summary"
    item: str | None = None
    """The provider's own compaction of the same messages as JSON text; None if it made none."""
    hook_details: str = ""
    """Details that a hook stores with the compaction's entry, as JSON text."""
    as_planned: bool = False
    """Whether the plan's cut must not be moved, because the summary covers nothing later."""
    prepared: bool = False
    """Whether the summary was written during the run, before it was needed."""


class Drafter:
    """Plans the compactions of one session and has their summaries written."""

    def __init__(self, journal: Journal, ports: AgentPorts) -> None:
        self._journal = journal
        self._session = journal.session
        self._ports = ports
        self._channel = journal.channel
        self._prompts = SummaryPrompts.load(ports.prompt)
        self._templates = Templates.load(ports.prompt)
        self._not_native: set[str] = set()
        """Models whose provider could not compact the history, so that it isn't asked to again."""

    async def plan(self, order: CompactionOrder) -> CompactionPlan | Refusal:
        """Return the plan for a compaction, or the reason why there is no plan.

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
        """Return the path's entries that the user may choose as the first to keep, oldest first."""
        count = self._ports.directory.counter(model).entry
        return await in_thread(boundaries, self._session.active_path(), count)

    async def draft(self, order: CompactionOrder) -> Draft | Refusal | SummaryFailure:
        """Plan a compaction and have its summary written, without committing it.

        ``before_compact`` hooks may cancel it, move the cut or supply the summary. If there is no
        draft, the `Refusal` or `SummaryFailure` says why.
        """
        plan = await self.plan(order)
        if isinstance(plan, Refusal):
            return plan
        return await self._draft(plan, order)

    async def draft_by_rule(self, order: CompactionOrder) -> Draft | Refusal:
        """Plan a compaction and put its summary together by rules, without a model."""
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
            said = said_by_hook(answer.message, answer.hook)
            why = f"A hook cancelled the compaction: {said}"
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

    async def _draft_by_rule(self, plan: CompactionPlan, order: CompactionOrder) -> Draft:
        return Draft(order, plan, await self._by_rule(plan, order), self.size(order.model))

    async def forecast(
        self, plan: CompactionPlan, order: CompactionOrder, summary: str = ""
    ) -> Commit | Refusal:
        """Return what committing a plan with this summary would append, or why it is impossible."""
        return await self.weigh(Draft(order, plan, summary, self.size(order.model)))

    async def weigh(self, draft: Draft, summary: str | None = None) -> Commit | Refusal:
        """Return what committing a draft on the current path would append, or why it is impossible.

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
        if draft.as_planned and isinstance(weighed, Commit) and _moves_cut(weighed, draft.plan):
            return Refusal(
                RefusalReason.NO_PROGRESS, "More entries must be removed than the summary covers."
            )
        return weighed

    async def why_hopeless(self, plan: CompactionPlan, order: CompactionOrder) -> str:
        """Return why even the shortest summary wouldn't make enough room; "" if it would."""
        weighed = await self.forecast(plan, order, _SHORTEST)
        return weighed.message if isinstance(weighed, Refusal) else ""

    async def summarise(
        self, plan: CompactionPlan, order: CompactionOrder, spent: CallCost
    ) -> Draft | SummaryFailure:
        """Have a model write the summary that a plan calls for.

        Usage and cost are added to ``spent`` and to the totals of the session and the run, even on
        failure. `Compactor.commit` subtracts them from these totals again, once the compaction's
        entry records them.
        """
        try:
            return await self._summarise(plan, order, spent)
        finally:
            self.book_cost(spent, 1)

    async def _summarise(
        self, plan: CompactionPlan, order: CompactionOrder, spent: CallCost
    ) -> Draft | SummaryFailure:
        """Write the summary as `summarise` does, but add its usage and cost only to ``spent``.

        If the style is "native", the session's own model summarises and the plan has no
        instructions, the provider's own compaction is tried first.
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
        is_ahead = order.is_ahead
        if live is not None and (is_ahead or plan.boundary is not None):
            # Cut the live request so that it ends with the entries that are summarised.
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
        """Return the previous summary, if any, followed by a digest of the plan's entries."""
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

        None if the provider made none; a notice says why. Also None, without a notice, if there is
        no live request or the model's provider is known to have no compaction.
        """
        end = first_sent(plan.kept)
        if end is None or order.live is None:
            live = order.live
        else:
            live = request_before(order.live, end)
        if live is None or order.model in self._not_native:
            return None
        # System messages are sent with every request, so they must not be compacted.
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

    def book_cost(self, spent: CallCost, sign: int) -> None:
        """Add a summary's cost to the session's and run's totals; subtract it if ``sign`` is -1."""
        self._ports.meter.spend(sign * (spent.cost or 0.0), sign * spent.usage.total)
        if not spent.cost:
            return
        try:
            self._journal.add_cost(sign * spent.cost, Purpose.SUMMARIES)
        except StoreError as error:
            log.warning("the cost of a summary could not be added to the session: %s", error)

    def _overhead(self, model: str, path: Sequence[Entry]) -> tuple[tuple[str, int], ...]:
        head = resolve(path).system
        if head is None:
            return ()
        return overhead_parts(head_parts(head, self._ports.directory.counter(model)))

    def size(self, model: str, path: Sequence[Entry] | None = None) -> ContextSize:
        """Return the size of the next request, built from ``path`` or else the current path."""
        path = self._session.active_path() if path is None else path
        return self._ports.context_meter(model).measure(path)

    def _measures(self, model: str) -> Measures:
        meter = self._ports.context_meter(model)
        counter = meter.counter
        fixed = self.size(model).fixed

        def size_of(path: Sequence[Entry]) -> int:
            # Both sizes are estimated, because the provider has only counted a request that was
            # sent.
            return max(0, estimate_tokens(path, meter.limits, counter) - fixed)

        return Measures(size_of, counter.text, counter.entry, self._templates)


def _moves_cut(commit: Commit, plan: CompactionPlan) -> bool:
    """Return True if the commit removes entries that the plan keeps, so the summary lacks them."""
    made = [entry for entry in commit.entries if isinstance(entry, CompactionEntry)]
    return any(entry.first_kept_id != plan.first_kept_id for entry in made)
