"""Has the summary of the next compaction written while the work goes on, so that nobody waits for it.

It stands for what is before its cut; what comes later stays as it is. It holds as long as the conversation has the cut
on its path and nothing more was changed before it. What it costs counts for the session as soon as it is spent, and for
the compaction once it is committed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tui_agent.agent.events import CostKnown, Notice
from tui_agent.agent.journal import Journal
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.run_budget import BudgetUsedUpError
from tui_agent.agent.summary_calls import SummaryCost
from tui_agent.context.commit_plan import Commit
from tui_agent.context.compaction import CompactionPlan, Refusal
from tui_agent.context.compaction_policy import changes_since, newest_user_id
from tui_agent.context.summariser import SummaryFailure
from tui_agent.lazy import dataclass
from tui_agent.session.entries import CompactionEntry, PruneEntry
from tui_agent.session.errors import StoreError
from tui_agent.session.path_queries import first_sent, newest

if TYPE_CHECKING:
    from tui_agent.agent.compactor import CompactionOrder, Compactor, Draft

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Place:
    """What a summary was made of: everything before ``cut``, for a model, with what was changed of it until then."""

    cut: int
    model: str
    changes: tuple[int, ...] | None


class PreparedSummary:
    """The summary that is being written, or waits until it is needed; there is one at most."""

    def __init__(self, compactor: "Compactor", journal: Journal, ports: AgentPorts) -> None:
        self._compactor = compactor
        self._session = journal.session
        self._channel = journal.channel
        self._ports = ports
        self._task: asyncio.Task[None] | None = None
        self._place: _Place | None = None
        self._draft: Draft | None = None
        self._model = ""
        self._tried: tuple[int, ...] | None = None

    def is_ready(self, model: str) -> bool:
        """Whether a compaction for this model would have its summary at once."""
        return self._draft is not None and self.holds(model)

    def holds(self, model: str) -> bool:
        """Whether one is written, or being written, of the conversation as it is now."""
        place = self._place
        if place is None or place.model != model or place.changes is None:
            return False
        return changes_since(self._session.active_path(), place.cut) == place.changes

    def review(self, model: str) -> None:
        """Drop what does not hold any more."""
        if self._place is not None and not self.holds(model):
            self.drop("the conversation went another way")

    def is_wanted(self) -> bool:
        """Whether none is there or on its way, nor came to nothing since the user's last message."""
        return self._task is None and self._draft is None and self._tried != self._occasion()

    def begin(self, order: "CompactionOrder", needless: Callable[[], Awaitable[bool]]) -> None:
        """Begin to write one, unless it turns out to be ``needless``."""
        self._model = order.model
        self._task = asyncio.get_running_loop().create_task(self._prepare(order, needless))

    async def draft(self, order: "CompactionOrder") -> "Draft | None":
        """Return what is ready as a draft for the path as it is now, None when it is not what is ordered."""
        ready, place = self._draft, self._place
        if ready is None or place is None or order.focus or order.boundary is not None or not self.holds(order.model):
            return None
        if await self._ports.hooks.wanted("before_compact"):
            return None
        plan = await self._compactor.plan(replace(order, boundary=place.cut))
        if isinstance(plan, Refusal) or first_sent(plan.kept) != place.cut:
            return None
        keep = plan.settings.compaction.keep_recent_tokens(plan.budget)
        size = self._compactor.size(order.model)
        return replace(ready, order=order, plan=replace(plan, boundary=None, keep_recent=keep), size=size)

    async def commit(self, order: "CompactionOrder") -> Commit | None:
        """Commit what is ready or about to be, None when it does not fit: then the ordinary way is left."""
        is_ordered = order.model == self._model and not order.focus and order.boundary is None
        if self._task is not None and is_ordered:
            await asyncio.wait([self._task])
        draft = await self.draft(order)
        if draft is None:
            return None
        commit = await self._compactor.commit(replace(draft, as_planned=True))
        if isinstance(commit, Commit):
            return commit
        self.drop("it does not make enough room any more")
        return None

    def committed(self, draft: "Draft") -> None:
        """Forget it if it is the one that was committed: its cost is the compaction's from now on."""
        if self._draft is not None and self._draft.spent is draft.spent:
            self._forget()
            self._count(draft.spent, -1)

    def drop(self, why: str) -> None:
        """Throw away what is there or on its way, and say what it cost."""
        draft = self._draft
        self._forget()
        if draft is not None:
            cost = f"${draft.spent.cost:.4f}" if draft.spent.cost else f"{draft.spent.usage.total:,} tokens"
            self._channel.emit(Notice(f"A summary prepared for {cost} was dropped: {why}."))

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def aclose(self) -> None:
        if (task := self._task) is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _prepare(self, order: "CompactionOrder", needless: Callable[[], Awaitable[bool]]) -> None:
        spent, tried = SummaryCost(), self._occasion()
        drafted = None
        try:
            drafted = await self._written(order, needless, spent)
        except Exception:  # nothing that goes wrong beside the work may end it: it is summarised in the ordinary way
            log.exception("no summary prepared")
        finally:
            is_wanted = self._task is asyncio.current_task()
            if is_wanted:
                self._task, self._draft = None, drafted
                self._place = self._place if drafted is not None else None
            self._count(spent, 1)
        if is_wanted and drafted is None:
            self._tried = tried
        self.review(order.model)

    async def _written(
        self, order: "CompactionOrder", needless: Callable[[], Awaitable[bool]], spent: SummaryCost
    ) -> "Draft | None":
        """Return the draft, None when nothing came of it."""
        if await self._ports.hooks.wanted("before_compact") or await needless():
            return None
        plan = await self._plan(order)
        if plan is None:
            return None
        drafted = await self._compactor.summarise(plan, order, spent)
        if isinstance(drafted, SummaryFailure):
            log.info("no summary prepared: %s", drafted.reason)
            return None
        return drafted

    async def _plan(self, order: "CompactionOrder") -> CompactionPlan | None:
        """Plan it and take its place; None when it isn't worth a request, or the run may not use up that much."""
        path = tuple(self._session.active_path())
        plan = await self._compactor.plan(order)
        if isinstance(plan, Refusal) or (cut := first_sent(plan.kept)) is None:
            return None
        if await self._compactor.why_hopeless(plan, order):
            return None
        try:
            self._ports.meter.check(self._ports.budget, order.model, plan.tokens_summarised)
        except BudgetUsedUpError:
            return None
        self._place = _Place(cut, order.model, changes_since(path, cut))
        return plan if self.holds(order.model) else None  # what it rests on may have changed meanwhile

    def _occasion(self) -> tuple[int, ...]:
        """Return what makes another try worth it: the user's newest message, the newest compaction and prune."""
        path = self._session.active_path()
        made = (newest(path, kind) for kind in (CompactionEntry, PruneEntry))
        return newest_user_id(path), *(0 if entry is None else entry.id for entry in made)

    def _forget(self) -> None:
        task, self._task, self._place, self._draft = self._task, None, None, None
        if task is not None:
            task.cancel()

    def _count(self, spent: SummaryCost, sign: int) -> None:
        """Count what was spent as the session's, or with -1 no longer."""
        self._ports.meter.spend(sign * (spent.cost or 0.0), sign * spent.usage.total)
        if spent.cost:
            try:
                self._session.add_cost(sign * spent.cost)
            except StoreError as error:
                log.warning("the cost of a summary was not counted: %s", error)
        self._channel.emit(CostKnown())
