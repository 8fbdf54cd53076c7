"""Moves the leaf, the current entry of a session's tree, for moves, undo and redo.

Also summarises branches for moves and merges.

A summary is written before anything changes: if it fails or is cancelled, the leaf doesn't change.
Files are not restored here: ``app.moves`` plans their restoration before a move and carries it out
afterwards (``checkpoints.rewind``).
"""

import asyncio
from collections.abc import Callable

from tui_agent.agent.channel import Journal
from tui_agent.agent.compaction_drafts import SummaryCalls
from tui_agent.agent.context_keeper import ContextKeeper
from tui_agent.agent.events import LeafMoved
from tui_agent.agent.hooks.payloads import AfterTree, SummaryAnswer
from tui_agent.agent.hooks.summary_payloads import move_payload
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.branch_summary import (
    BranchBudget,
    BranchSummaryPlan,
    MovePlan,
    branch_summary_entry,
    plan_branch_summary,
    plan_merge,
    plan_move,
)
from tui_agent.context.summariser import (
    InputMode,
    SummariserLimits,
    SummaryFailure,
    SummaryPrompts,
    choose_input,
    summarise,
)
from tui_agent.context.templates import Templates
from tui_agent.errors import UserFacingError
from tui_agent.permission import said_by_hook
from tui_agent.session.entries import BranchSummaryEntry, CompactionEntry, Entry
from tui_agent.session.records import Purpose
from tui_agent.tools.registry import tool_traits


class NavigationError(UserFacingError):
    """Raised if a move or merge can't be made, or if the summary for it fails."""


class Navigator:
    """Moves the leaf of one session; the session's model and mode become those of the new path.

    Every move raises NavigationError while the agent is ``running``.
    """

    def __init__(
        self,
        journal: Journal,
        ports: AgentPorts,
        context: ContextKeeper,
        *,
        running: Callable[[], bool],
    ) -> None:
        self._journal = journal
        self._session = journal.session
        self._ports = ports
        self._channel = journal.channel
        self._context = context
        self._running = running
        self._prompts = SummaryPrompts.load(ports.prompt)

    def plan(self, target: int | None, *, continue_from_here: bool = False) -> MovePlan:
        """Return a plan for moving to the entry ``target``, without changing anything.

        If ``target`` is None, the move leads to the beginning of the session. If the target is a
        user message, its parent becomes the leaf and the message goes back into the prompt; with
        ``continue_from_here``, the message itself becomes the leaf. Raises EntryNotFound.
        """
        session = self._session
        parting = session.reader.parting(session.leaf, target)
        return plan_move(parting, target, session.entries, continue_from_here=continue_from_here)

    async def move(
        self,
        plan: MovePlan,
        *,
        focus: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        """Carry out a planned move to another entry.

        ``focus`` says what the summary of the abandoned branch should pay attention to ("" for
        nothing special); None moves without a summary. ``progress`` is called with every piece of
        the summary. Files are not changed; see ``checkpoints.rewind``. Raises NavigationError; in
        that case, nothing is changed.
        """
        self._refuse()
        here = self._session.leaf
        answer = await self._ask_hooks(plan, focus)
        entry = None
        if focus is not None:
            entry = await self._summarise(plan, answer.focus(focus), progress, answer.summary)
        if entry is not None and answer.kept_details:
            details = entry.details.model_copy(update={"hook": answer.kept_details})
            entry = entry.model_copy(update={"details": details})
        self._refuse(here)
        self._session.move(plan.leaf)
        self._channel.emit(LeafMoved(plan.leaf))
        if entry is not None:
            self._append(entry)
        self._notify_hooks(plan.leaf, plan.from_id, None if entry is None else entry.summary)
        self._context.follow_path()

    async def go(self, leaf: int | None) -> None:
        """Move to the entry ``leaf`` without a summary; None moves to the session's beginning.

        Raises EntryNotFound, NavigationError.
        """
        self._refuse()
        await self._step(leaf, lambda: self._session.move(leaf))

    async def undo(self) -> int | None:
        """Undo the newest step (a turn, a move, a compaction, …) and return the new leaf.

        Raises NothingToUndo, NavigationError.
        """
        self._refuse()
        return await self._step(self._session.history.target("undo"), self._session.undo)

    async def redo(self) -> int | None:
        """Redo the step that was undone last and return the new leaf.

        Raises NothingToUndo, NavigationError.
        """
        self._refuse()
        return await self._step(self._session.history.target("redo"), self._session.redo)

    async def _step(self, target: int | None, act: Callable[[], object]) -> int | None:
        """Move to the entry ``target`` by calling ``act``, and run the hooks before and after it.

        Returns the new leaf. Raises NavigationError if a hook cancels the move.
        """
        old = self._session.leaf
        if await self._ports.hooks.wanted("before_tree"):
            await self._ask_hooks(self.plan(target, continue_from_here=True), None)
            self._refuse(old)
        act()
        self._channel.emit(LeafMoved(self._session.leaf))
        self._notify_hooks(self._session.leaf, old, None)
        self._context.follow_path()
        return self._session.leaf

    def _refuse(self, here: int | None = None) -> None:
        """Raise NavigationError during a run, or if entry ``here`` is off the session path.

        After waiting for hooks or a summary, call it again with the leaf from before the wait,
        because a run may have begun or the user may have moved meanwhile.
        """
        if self._running():
            raise NavigationError("The agent is working; interrupt it first (Escape).")
        if here is not None and not self._session.on_path(here):
            raise NavigationError("You moved to another branch meanwhile, so nothing was changed.")

    def _notify_hooks(self, leaf: int | None, old: int | None, summary: str | None) -> None:
        hooks = self._ports.hooks
        hooks.tell(AfterTree(about=hooks.about, leaf=leaf, old_leaf=old, summary=summary))

    async def _ask_hooks(self, plan: MovePlan, focus: str | None) -> SummaryAnswer:
        hooks = self._ports.hooks
        if not await hooks.wanted("before_tree"):
            return SummaryAnswer()
        settings = self._ports.settings.for_model(self._context.model)
        templates = Templates.load(self._ports.prompt)
        given = move_payload(
            plan,
            await self._left(plan),
            focus,
            about=hooks.about,
            settings=settings.compaction,
            templates=templates,
        )
        answer = await hooks.ask_for_summary(given, SummaryAnswer)
        if answer.cancel:
            why = said_by_hook(answer.message, answer.hook)
            raise NavigationError(f"A hook cancelled the move: {why}")
        return answer

    async def merge(
        self, other: int, *, focus: str = "", progress: Callable[[str], None] | None = None
    ) -> BranchSummaryEntry:
        """Append to the current branch a summary of the branch that ends at the entry ``other``.

        Returns the summary's entry. ``focus`` says what the summary should pay attention to;
        ``progress`` is called with every piece of it. Raises NavigationError; in that case, nothing
        is changed.
        """
        self._refuse()
        here = self._session.leaf
        parting = self._session.reader.parting(other, here)
        plan = plan_merge(parting, self._session.entries)
        if plan is None:
            raise NavigationError("Every entry of that branch is already on this branch.")
        entry = await self._summarise(plan, focus, progress)
        if entry is None:
            raise NavigationError("That branch contains nothing to summarise.")
        self._refuse(here)
        return self._append(entry)

    def _append(self, entry: BranchSummaryEntry) -> BranchSummaryEntry:
        """Append a summary and return it as stored.

        The summary's cost was added to the session's cost when it was written. This is undone here,
        because the stored entry counts the cost again.
        """
        stored = self._journal.append(entry)
        if stored.cost:
            self._journal.add_cost(-stored.cost, Purpose.SUMMARIES)
        return stored

    async def _left(self, plan: MovePlan) -> list[Entry]:
        """Return the entries that a move removes from the session path. A thread loads them."""
        return await asyncio.to_thread(self._session.reader.load, list(plan.abandoned.ids))

    async def _summarise(
        self, move: MovePlan, focus: str, progress: Callable[[str], None] | None, supplied: str = ""
    ) -> BranchSummaryEntry | None:
        """Return the summary of the branch that a move leaves or that a merge adds.

        The summary is not appended. Returns None if there is nothing to summarise. ``supplied`` is
        a summary from a hook, used instead of the model's; "" for none. The model's cost is added
        to the session's cost, even on failure. Raises NavigationError if the model fails.
        """
        plan, model, limits = await self._plan_summary(move, focus)
        if plan is None:
            return None
        count = self._ports.directory.counter(model).text
        if supplied:
            entry = await asyncio.to_thread(branch_summary_entry, plan, supplied, count)
            return entry.model_copy(update={"style": "hook"})
        # The model can read the branch in the next request only if that contains the whole branch.
        is_compacted = any(isinstance(entry, CompactionEntry) for entry in plan.entries)
        is_whole = not plan.omitted and not is_compacted
        mode: InputMode = "serialised"
        live = None
        if is_whole and plan.from_id == self._session.leaf and model == self._context.model:
            order = self._context.order("manual")
            live = order.live
            mode = choose_input(
                plan.settings.compaction.input,
                limits,
                live_tokens=self._context.size().total,
                serialised_tokens=sum(map(count, plan.blocks)),
                cache_warm=order.cache_warm,
            )
        calls = SummaryCalls(self._ports.client, model, live, progress or (lambda _text: None))
        try:
            summary = await calls.run(summarise((plan.task(mode),), self._prompts, limits, count))
        finally:
            if calls.spent.cost:
                self._journal.add_cost(calls.spent.cost, Purpose.SUMMARIES)
        if isinstance(summary, SummaryFailure):
            raise NavigationError(summary.reason)
        entry = await asyncio.to_thread(branch_summary_entry, plan, summary, count)
        spent = {"model": model, "usage": calls.spent.usage, "cost": calls.spent.cost}
        return entry.model_copy(update=spent)

    async def _plan_summary(
        self, move: MovePlan, focus: str
    ) -> tuple[BranchSummaryPlan | None, str, SummariserLimits]:
        directory = self._ports.directory
        meter = self._ports.context_meter(self._context.model)
        settings = meter.settings
        model = settings.compaction.model or self._context.model
        size = meter.measure(self._session.active_path())
        summary_tokens = settings.compaction.branch_summary_tokens(size.budget)
        limits = SummariserLimits(directory.limits(model).window, summary_tokens)
        room = max(500, limits.room(1_000))
        plan = await asyncio.to_thread(
            plan_branch_summary,
            move,
            await self._left(move),
            settings,
            budget=BranchBudget(room, size.budget, directory.counter(model).text),
            tools=tool_traits(),
            focus=focus,
        )
        return plan, model, limits
