"""Carries out compactions: has each one drafted, measures the result and appends it.

`ContextKeeper` decides when; the dialog ``ui.screens.compact`` calls the steps one by one
(`Compactor.plan`, ``draft``, ``commit``). `Drafter` plans and has the summary written,
`PreparedSummary` writes the next summary in advance.

A compaction is appended only if it makes the history small enough. If it fails or is interrupted,
the path stays as it was. If it is refused, old outputs may be cleared or cut instead.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace

from tui_agent.agent.channel import Journal
from tui_agent.agent.compaction_drafts import CompactionOrder, Draft, Drafter
from tui_agent.agent.compaction_outcome import (
    Cancelled,
    Cleared,
    Compacted,
    CompactionOutcome,
    Failed,
    NothingToDo,
    Postponed,
)
from tui_agent.agent.events import CompactionEnded, CompactionStarted
from tui_agent.agent.hooks.payloads import AfterCompact
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.prepared_summary import PreparedSummary
from tui_agent.agent.threads import in_thread
from tui_agent.context.commit_plan import Commit, plan_cuts, provisional
from tui_agent.context.compaction import CompactionPlan, Refusal, RefusalReason
from tui_agent.context.compaction_policy import NO_FAILURES, FailureRecord
from tui_agent.context.plain_compaction import PlainOrder, plain_compactions
from tui_agent.context.summariser import SummaryFailure
from tui_agent.context.view import resolve
from tui_agent.errors import UserFacingError
from tui_agent.session.entries import CompactionEntry, Entry, PruneEntry, UserEntry

log = logging.getLogger(__name__)

_MOVED = "Not compacted: you moved to another branch meanwhile."
_PLAIN = "Compacted without a model, because summarising failed. The log has the details."


class Compactor(Drafter):
    """Compacts the history of one session.

    ``failures`` counts the failures in a row. After several failures, automatic compaction pauses.
    """

    def __init__(self, journal: Journal, ports: AgentPorts) -> None:
        super().__init__(journal, ports)
        self.failures: FailureRecord = NO_FAILURES
        self.prepared = PreparedSummary(self, journal, ports)
        """The summary for the next compaction, which is written before it is needed."""

    async def compact(
        self, order: CompactionOrder, *, without_model: bool = False
    ) -> CompactionOutcome:
        """Plan a compaction, get its summary and commit it, with events at start and end.

        If the compaction is refused, old outputs may be cleared instead (`Cleared`). With
        ``without_model`` the summary is put together by rules. A UserFacingError, such as a
        StoreError, is raised; after any other error the history is compacted without a model.
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
            except Exception:
                # An internal error must not leave a session that can never be compacted.
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
                # These outcomes don't show whether the next compaction would fail, so they don't
                # count.
                return outcome
        return outcome

    async def commit(self, draft: Draft, summary: str | None = None) -> Commit | Refusal:
        """Append a drafted compaction and return what was appended, or why it can't be committed.

        It can't be committed if the user has moved to a branch that the plan wasn't made for.
        ``summary`` is the user's edited text; None for the draft's own.
        """
        commit: Commit | Refusal | None = None
        leaf = self._session.leaf
        while commit is None or leaf != self._session.leaf:
            # If an entry is appended while the draft is measured, measure the draft again.
            leaf = self._session.leaf
            if not self._session.on_path(_end_of(draft.plan)):
                return Refusal(RefusalReason.MOVED, _MOVED)
            commit = await self.weigh(draft, summary)
            if draft.item and (isinstance(commit, Refusal) or summary not in {None, draft.summary}):
                # The provider's item is valid only with the original plan and summary.
                draft = replace(draft, style="summary", item=None, as_planned=False)
                commit = None
        if isinstance(commit, Commit):
            self._append(_with_origin(entry, draft) for entry in commit.entries)
            self.prepared.committed(draft)
            if any(isinstance(entry, CompactionEntry) for entry in commit.entries):
                # The compaction's entry records the cost now, so don't count the cost twice.
                self.book_cost(draft.spent, -1)
        return commit

    async def _compact(self, order: CompactionOrder, *, without_model: bool) -> CompactionOutcome:
        if not without_model and (prepared := await self._commit_prepared(order)) is not None:
            return Compacted(prepared.steps)
        plan = await self.plan(order)
        if isinstance(plan, Refusal):
            return await self._refused(plan, order)
        draft: Draft | Refusal | SummaryFailure
        if without_model:
            draft = await self._draft_by_rule(plan, order)
        else:
            draft = await self._draft_if_worthwhile(plan, order)
        if isinstance(draft, Refusal):
            return await self._refused(draft, order)
        if isinstance(draft, SummaryFailure):
            return Failed(draft.reason)
        return _outcome_of(await self.commit(draft))

    async def _commit_prepared(self, order: CompactionOrder) -> Commit | None:
        """Commit the prepared summary, waiting for it if it is being written.

        Returns None if there is no usable summary. A summary that can't be committed is dropped.
        """
        draft = await self.prepared.finished_draft(order)
        if draft is None:
            return None
        commit = await self.commit(replace(draft, as_planned=True, prepared=True))
        if isinstance(commit, Commit):
            return commit
        why = "it no longer makes enough room"
        if commit.reason is RefusalReason.MOVED:
            why = "you moved to another branch"
        self.prepared.drop(why)
        return None

    async def _draft_if_worthwhile(
        self, plan: CompactionPlan, order: CompactionOrder
    ) -> Draft | Refusal | SummaryFailure:
        """Return a draft, or say why there is none.

        An automatic compaction is not drafted if not even the shortest summary would make enough
        room; a `SummaryFailure` says so. A `Refusal` means that a hook cancelled the compaction or
        chose an impossible cut. Any other `SummaryFailure` means that the model failed. If the
        model's summary is unusable, the user is warned and the draft's summary is put together by
        rules.
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

    def _compact_plainly(self, order: CompactionOrder) -> CompactionOutcome:
        """Compact after an internal error, without a model and with as little code as possible.

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
            "The compaction failed (see the log), and leaving out entries wouldn't make enough room."
        )

    async def _refused(self, refusal: Refusal, order: CompactionOrder) -> CompactionOutcome:
        """Clear old tool outputs and cut long texts if a compaction was refused.

        Changes nothing if a hook cancelled the compaction, if the compaction is manual and the
        refusal offers no prune, if clearing would not make enough room, or if the path changed
        meanwhile. Returns `Cleared`, `Cancelled` or `NothingToDo`.
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

    def _append(self, entries: Iterable[Entry]) -> None:
        hooks = self._ports.hooks
        for entry in self._journal.append_many(entries):
            if isinstance(entry, PruneEntry):
                self._warn_about_cut_messages(entry)
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

    def _warn_about_cut_messages(self, prune: PruneEntry) -> None:
        """Tell the user which of their messages the model no longer receives in full."""
        if not prune.keep_chars or prune.removes_images:
            return
        for target in map(self._session.entry, prune.targets):
            if isinstance(target, UserEntry) and target.synthetic is None:
                left = f"{prune.keep_chars:,} of its {len(target.text):,} characters"
                self._channel.say(
                    f"Your message #{target.id} is too long for the window: the model receives "
                    f"{left} and can recall the rest.",
                    "warning",
                )

    def _warn_about_lost_rules(self, entry: CompactionEntry) -> None:
        lost = entry.details.rules_lost
        if not lost:
            return
        words = "1 of your rules no longer fits" if lost == 1 else f"{lost} rules no longer fit"
        self._channel.say(
            f"{words} in the context beside the summary. /rules shows which.", "warning"
        )


def _end_of(plan: CompactionPlan) -> int:
    """Return the id of the first entry that a compaction plan keeps.

    If the plan keeps no entry, return the id of the last entry that it drops.
    """
    if plan.first_kept_id is not None:
        return plan.first_kept_id
    return plan.dropped[-1].id


def _outcome_of(commit: Commit | Refusal) -> CompactionOutcome:
    if isinstance(commit, Commit):
        return Compacted(commit.steps)
    if commit.reason is RefusalReason.MOVED:
        return Cancelled(commit.message)
    return Failed(commit.message)


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
