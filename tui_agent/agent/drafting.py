"""Compactions a person looks at, and may edit, before they are committed."""

from tui_agent.agent.compactor import Draft
from tui_agent.agent.context_keeper import ContextKeeper
from tui_agent.context.compaction import Boundary, CompactionPlan, Refusal
from tui_agent.context.ladder import Commit
from tui_agent.context.summariser import SummaryFailure


class Drafting:
    """Plans, drafts, weighs and commits compactions of one session. Nothing changes before `commit`."""

    def __init__(self, context: ContextKeeper) -> None:
        self._context = context

    async def plan(self, boundary: int | None = None) -> CompactionPlan | Refusal:
        """Return what a compaction would do now, or why there is none. No model is called.

        With ``boundary`` it summarises what is before that entry, and does nothing else.
        """
        return await self._context.compactor.plan(self._context.order("manual", None, boundary))

    async def boundaries(self) -> list[Boundary]:
        """Return all places where what is summarised may end, oldest first."""
        return await self._context.compactor.boundaries(self._context.model)

    async def forecast(self, plan: CompactionPlan) -> Commit | Refusal:
        """Return what carrying out a plan comes to, less the summary that is still to be written."""
        return await self._context.compactor.forecast(plan, self._context.model)

    async def draft(self, focus: str | None = None, boundary: int | None = None) -> Draft | Refusal | SummaryFailure:
        """Plan and summarise; ``focus`` says what the summary should keep. Cancelling changes nothing."""
        return await self._context.compactor.draft(self._context.order("manual", focus, boundary))

    async def weigh(self, draft: Draft, summary: str | None = None) -> Commit | Refusal:
        """Return what committing a draft would do; ``summary`` is the user's edit of it."""
        return await self._context.compactor.weigh(draft, self._context.model, summary)

    async def commit(self, draft: Draft, summary: str | None = None) -> Commit | Refusal:
        """Append a drafted compaction; refused with the reason when it would not help."""
        return await self._context.compactor.commit(draft, self._context.model, summary)
