"""Writes the summary of the next compaction in the background, while the run goes on.

`ContextKeeper` decides when to begin the summary, and `Compactor` appends it to the session. This
module appends nothing.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from tui_agent.agent.channel import Journal
from tui_agent.agent.clients import CallCost
from tui_agent.agent.compaction_drafts import CompactionOrder, Draft, Drafter
from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    CostKnown,
    PromptProgress,
    ReasoningProgress,
    ToolCallProgress,
)
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.run_budget import BudgetUsedUpError
from tui_agent.context.compaction import Refusal
from tui_agent.context.compaction_policy import SUMMARY_SECONDS, changes_since, newest_user_id
from tui_agent.context.summariser import SummaryFailure
from tui_agent.lazy import frozen
from tui_agent.session.entries import CompactionEntry, PruneEntry
from tui_agent.session.path_queries import first_sent, newest

log = logging.getLogger(__name__)

HEAD_START = 0.25
"""Maximum seconds for which the request for a prepared summary waits until the run's own request is
being answered."""
_ANSWERING = AnswerDelta | ReasoningProgress | ToolCallProgress | PromptProgress
"""Types of the events that show that an answer has begun."""


@frozen
class _Place:
    """Identifies what a prepared summary for ``model`` covers: all entries before ``cut``."""

    cut: int
    model: str
    changes: tuple[int, ...] | None
    """Ids of the edits and compactions that had already changed these entries when the summary was
    begun.

    None if the entry ``cut`` was not on the session path.
    """
    begun: int
    """Id of the newest entry when the summary was begun."""


class PreparedSummary:
    """The summary of the next compaction, written in the background so that the run doesn't wait.

    There is at most one. It can be used while its cut, the first entry after the summarised ones,
    is on the session path and no entry before the cut has been changed.
    """

    def __init__(self, drafter: Drafter, journal: Journal, ports: AgentPorts) -> None:
        self._drafter = drafter
        self._session = journal.session
        self._channel = journal.channel
        self._ports = ports
        self.task: asyncio.Task[None] | None = None
        """The task that writes the summary; None if none is being written."""
        self._place: _Place | None = None
        self.ready: Draft | None = None
        """The finished summary; None if there is none. Call ``holds`` to check that it can be
        used."""
        self._model = ""
        self._failed_attempt: tuple[int, ...] | None = None
        """The result of `_attempt_key` for the last attempt that failed; None if no attempt has
        failed."""
        self.was_refused = False
        """Whether the last attempt found that no summary could be planned, or that it would not
        help. In that case, the next step may try again."""
        self.seconds = SUMMARY_SECONDS
        """Seconds that the last summary took to write; before the first one, an estimate."""
        self._put_off_at: int | None = None
        """Id of the newest user message when the user postponed the compaction; None if they never
        did."""

    def holds(self, model: str) -> bool:
        """Return True if the summary, finished or not, is for this model and fits the session path.

        It fits while its cut is on the path and no entry before the cut has been changed since.
        """
        place = self._place
        if place is None or place.model != model or place.changes is None:
            return False
        return changes_since(self._session.active_path(), place.cut) == place.changes

    def review(self, model: str) -> None:
        """Drop the summary if it no longer fits the session's history or the model."""
        if self._place is not None and not self.holds(model):
            self.drop("the history that it covers has changed")

    def is_wanted(self) -> bool:
        """Return True if the writing of a summary may begin.

        Returns False if one is finished or being written, if the user postponed the compaction, or
        if an attempt failed and nothing relevant has changed since.
        """
        is_open = self.task is None and self.ready is None and not self.is_put_off
        return is_open and self._failed_attempt != self._attempt_key()

    @property
    def is_put_off(self) -> bool:
        """Whether the user doesn't want an automatic compaction before their next message."""
        return self._put_off_at == newest_user_id(self._session.active_path())

    def put_off(self) -> None:
        """Drop the summary.

        Until the user's next message, the context is compacted only if a request doesn't fit.
        """
        self._put_off_at = newest_user_id(self._session.active_path())
        self.drop("you put the compaction off")

    def begin(self, order: CompactionOrder, needless: Callable[[], Awaitable[bool]]) -> None:
        """Start a task that calls ``needless``, and writes a summary unless that returns True."""
        self._model = order.model
        self.task = asyncio.get_running_loop().create_task(self._prepare(order, needless))

    async def draft(self, order: CompactionOrder) -> Draft | None:
        """Return the finished summary as a draft of a compaction of the current session path.

        Returns None if no summary is finished, if it no longer fits the path or the model in
        ``order``, if ``order`` has a focus or a boundary, if hooks take part in compactions, or if
        a compaction at the summary's cut is refused.
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
        plan = await self._drafter.plan(replace(order, boundary=place.cut))
        if isinstance(plan, Refusal) or first_sent(plan.kept) != place.cut:
            return None
        keep = plan.settings.compaction.keep_recent_tokens(plan.budget)
        size = self._drafter.size(order.model)
        plan = replace(plan, boundary=None, keep_recent=keep, begun=place.begun)
        return replace(ready, order=order, plan=plan, size=size)

    async def finished_draft(self, order: CompactionOrder) -> Draft | None:
        """Wait for the summary if it is being written, then return what ``draft`` returns."""
        is_ordered = order.model == self._model and not order.focus and order.boundary is None
        if self.task is not None and is_ordered:
            await asyncio.wait([self.task])
        return await self.draft(order)

    def committed(self, draft: Draft) -> None:
        """Forget the summary if it is the source of ``draft``, which was just committed."""
        if self.ready is not None and self.ready.spent is draft.spent:
            self._forget()

    def drop(self, why: str) -> None:
        """Forget the summary and cancel its task.

        If the summary was finished, a notice gives its cost and the reason ``why``.
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
        self, order: CompactionOrder, needless: Callable[[], Awaitable[bool]]
    ) -> None:
        spent = CallCost()
        attempt = self._attempt_key()
        drafted = None
        try:
            await self._wait_for_answer()
            drafted = await self._written(order, needless, spent)
        except Exception:  # A failure must not end the run: it can compact without this summary.
            log.exception("no summary prepared")
        finally:
            is_current = self.task is asyncio.current_task()
            if is_current:
                self.task = None
                self.ready = drafted
                self._place = self._place if drafted is not None else None
            self._channel.emit(CostKnown())
        if is_current and drafted is None and not self.was_refused:
            self._failed_attempt = attempt
        self.review(order.model)
        if self.ready is not None:
            self._announce(order.model)

    async def _wait_for_answer(self) -> None:
        """Wait until the run's own request is being answered, `HEAD_START` seconds at most.

        Otherwise the summary's request could delay the run's request.
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

    def _announce(self, model: str) -> None:
        """Show a notice that offers to read the summary before it is used, if ``auto`` is "ask"."""
        size = self._drafter.size(model)
        settings = self._ports.settings.for_model(model).compaction
        if settings.auto == "ask" and size.threshold is not None:
            full = f"{size.threshold / size.window:.0%}"
            text = f"The summary is ready; it is used when the context is {full} full."
            self._channel.say(text, action="compact", label="to read it")

    def edit(self, draft: Draft, text: str) -> bool:
        """Replace the finished summary's text; return False if ``draft`` is of another summary."""
        if self.ready is None or self.ready.spent is not draft.spent:
            return False
        # A provider's own compaction can't be edited, so only the text is used.
        self.ready = replace(self.ready, summary=text, style="summary", item=None)
        return True

    async def _written(
        self, order: CompactionOrder, needless: Callable[[], Awaitable[bool]], spent: CallCost
    ) -> Draft | None:
        """Write the summary and return it as a draft.

        Returns None if the summary is not needed or can't help, if hooks take part in compactions,
        if it would exceed the budget, if the session path changed meanwhile, or if the model
        failed.
        """
        self.was_refused = False
        if await self._ports.hooks.wanted("before_compact") or await needless():
            return None
        path = tuple(self._session.active_path())
        plan = await self._drafter.plan(order)
        if (
            isinstance(plan, Refusal)
            or (cut := first_sent(plan.kept)) is None
            or await self._drafter.why_hopeless(plan, order)
        ):
            self.was_refused = True
            return None
        try:
            self._ports.meter.check(self._ports.budget, order.model, plan.tokens_summarised)
        except BudgetUsedUpError:
            return None
        self._place = _Place(cut, order.model, changes_since(path, cut), path[-1].id)
        if not self.holds(order.model):  # The session path has changed meanwhile.
            return None
        begun = time.monotonic()
        drafted = await self._drafter.summarise(plan, order, spent)
        self.seconds = time.monotonic() - begun
        if isinstance(drafted, SummaryFailure):
            log.info("no summary prepared: %s", drafted.reason)
            return None
        return drafted

    def _attempt_key(self) -> tuple[int, ...]:
        """Return the ids of the newest user message, compaction and prune, 0 for none.

        After a failed attempt, another attempt is made only when these ids have changed.
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
