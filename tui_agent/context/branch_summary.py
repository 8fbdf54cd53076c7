"""Moves in the tree: where the leaf goes, the entries left behind, and their summary for the other branch."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from tui_agent.context.anchors import one_line
from tui_agent.context.files import file_operations
from tui_agent.context.preserved import Budgets, CountText, Summarised, carry, fit
from tui_agent.context.serialise import blocks_of
from tui_agent.context.settings import ContextSettings
from tui_agent.context.summariser import InputMode, SummaryTask
from tui_agent.context.view import ContextView, resolve
from tui_agent.lazy import frozen
from tui_agent.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    SummaryDetails,
    UserEntry,
    UserPart,
    kinds,
)
from tui_agent.session.records import Divergence, Outlines
from tui_agent.session.tool_traits import TraitsByName

_MESSAGES = frozenset(kinds(lambda kind: kind.is_message))
_UNSURE = kinds(lambda kind: kind.is_message is None)
_SUMMARIES = ("compaction", "branch_summary")
_SUMMARIES_SHARE = 0.5
"""Part of the input that summaries on the way may take before messages get their turn."""
_BEGINS_CHARS = 200
"""Characters of a branch's first message by which a summariser finds it in the live
conversation."""
_MIN_BLOCK_TOKENS = 200
"""Tokens a message that does not fit is at least cut to."""

LoadEntries = Callable[[Sequence[int]], Sequence[Entry]]
"""Returns entries by id."""


@frozen
class MovePlan:
    """A move to another place in the tree.

    ``leaf`` is where the leaf goes (None: an empty conversation), ``prompt`` the text that goes
    back into the prompt to be edited. ``abandoned`` are the entries that leave the path, from after
    the common ancestor to the old leaf ``from_id``; they are read when a summary is wanted.
    """

    leaf: int | None
    from_id: int | None
    ancestor: int | None
    abandoned: Outlines
    asks: bool
    """Whether there is something a summary could tell of, so that the user is asked."""
    target: int | None = None
    """The entry that was chosen: the leaf, or the message that goes back into the prompt."""
    prompt: tuple[UserPart, ...] = ()


def plan_move(
    parting: Divergence, target: int | None, load: LoadEntries, *, continue_from_here: bool = False
) -> MovePlan:
    """Plan a move to an entry; None is an empty conversation.

    ``parting`` tells the old leaf's way from the target's. A chosen user message goes back into the
    prompt and the leaf to its parent, unless the user wants to continue from it. Messages the
    program wrote are places like any other.
    """
    asks = holds_message(parting.left, load)
    plan = MovePlan(target, parting.leaf, parting.ancestor, parting.left, asks=asks, target=target)
    chosen = () if target is None or continue_from_here else load([target])
    for entry in chosen:
        if isinstance(entry, UserEntry) and entry.synthetic is None:
            return replace(plan, leaf=entry.parent_id, prompt=entry.parts)
    return plan


def plan_merge(parting: Divergence, load: LoadEntries) -> MovePlan | None:
    """Plan a summary of another branch at the current leaf, without moving.

    None when it holds nothing new.

    ``parting`` is where the two paths diverge: ``abandoned`` are the entries only the other branch
    has.
    """
    asks = holds_message(parting.left, load)
    if asks:
        return MovePlan(parting.ancestor, parting.leaf, parting.ancestor, parting.left, asks)
    return None


def holds_message(entries: Outlines, load: LoadEntries) -> bool:
    """Whether the model is shown any of some entries.

    ``load`` is asked only where the kind leaves that open.
    """
    if not _MESSAGES.isdisjoint(entries.kinds):
        return True
    for kind in _UNSURE:
        unsure = entries.of_kind(kind)
        if unsure and any(entry.is_sent for entry in load(unsure)):
            return True
    return False


@frozen
class BranchSummaryPlan:
    """The sources of a branch summary. ``omitted`` counts the older blocks that did not fit."""

    entries: tuple[Entry, ...]
    from_id: int
    blocks: tuple[str, ...]
    settings: ContextSettings
    budget: int
    tools: TraitsByName
    omitted: int = 0
    focus: str = ""

    def task(self, mode: InputMode = "serialised") -> SummaryTask:
        """Return the summariser's task.

        One that reads the live conversation learns where the branch begins.
        """
        begins = next((one_line(block, _BEGINS_CHARS) for block in self.blocks), "")
        return SummaryTask(
            "branch_summary", self.blocks, focus=self.focus, live=mode == "live", begins=begins
        )


@frozen
class BranchBudget:
    """Tokens: ``room`` for a summariser's input (its window less its reserve), ``history`` of the conversation."""

    room: int
    history: int
    count: CountText


def plan_branch_summary(
    move: MovePlan,
    entries: Sequence[Entry],
    settings: ContextSettings,
    budget: BranchBudget,
    tools: TraitsByName,
    *,
    focus: str = "",
) -> BranchSummaryPlan | None:
    """Return the blocks of the abandoned branch to summarise, None when it holds no message.

    ``entries`` are those the move abandons. Summaries on the way come first, then messages, newest
    first; a message that is too big loses its middle, so that the result is never empty.
    """
    if not move.asks or move.from_id is None:
        return None
    blocks = _blocks(entries, resolve(entries), settings)
    chosen = _newest_within(blocks, budget.room, budget.count)
    return BranchSummaryPlan(
        entries=tuple(entries),
        from_id=move.from_id,
        blocks=tuple(chosen[index] for index in sorted(chosen)),
        settings=settings,
        budget=budget.history,
        tools=tools,
        omitted=len(blocks) - len(chosen),
        focus=focus,
    )


def branch_summary_entry(
    plan: BranchSummaryPlan, summary: str, count: CountText
) -> BranchSummaryEntry:
    """Return the entry to append at the destination.

    Files are cumulative over summaries on the way.
    """
    settings = plan.settings.compaction
    text = fit(summary.strip(), settings.branch_summary_tokens(plan.budget), count)
    budgets = replace(Budgets.of(settings, plan.budget), user_messages=0, state=0)
    budgets = replace(budgets, anchors=budgets.anchors // 2)
    summarised = Summarised(plan.entries, file_operations(plan.entries, plan.tools), plan.tools)
    details = carry(summarised, SummaryDetails(), budgets, count, text)
    details = details.model_copy(
        update={
            "user_messages": (),
            "rules": (),
            "rules_known": (),
            "rules_lost": 0,
            "remembered": (),
        }
    )
    return BranchSummaryEntry(summary=text, from_id=plan.from_id, details=details)


def _blocks(
    entries: Sequence[Entry], view: ContextView, settings: ContextSettings
) -> list[tuple[bool, str]]:
    """Return text blocks in order, each with whether it is a summary."""
    blocks: list[tuple[bool, str]] = []
    for kind, group in groupby(
        entries, lambda entry: entry.kind if entry.kind in _SUMMARIES else ""
    ):
        run = list(group)
        texts: list[str] = []
        if kind != "compaction":
            texts += blocks_of(run, view, settings.compaction)
        for entry in run:
            if isinstance(entry, CompactionEntry):
                texts.append(f"[Summary of what came before]: {entry.summary}")
        blocks += [(bool(kind), text) for text in texts]
    return blocks


def _newest_within(
    blocks: Sequence[tuple[bool, str]], room: int, count: CountText
) -> dict[int, str]:
    """Return the blocks that fit by their place: summaries first, then messages, each newest first."""
    chosen: dict[int, str] = {}
    left = room
    for wanted, share in ((True, _SUMMARIES_SHARE), (False, 1.0)):
        if share == 1.0:
            limit = left
        else:
            limit = round(room * share)
        for index in range(len(blocks) - 1, -1, -1):
            is_summary, text = blocks[index]
            if is_summary is not wanted:
                continue
            cost = count(text) + 2
            if cost > limit:
                cut = ""
                if limit >= _MIN_BLOCK_TOKENS or not chosen:
                    cut = fit(text, limit - 2, count)
                if cut:
                    chosen[index] = cut
                    left -= count(cut) + 2
                break
            chosen[index] = text
            limit -= cost
            left -= cost
    return chosen
