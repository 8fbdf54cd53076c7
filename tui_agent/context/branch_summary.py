"""Plans moves to other entries of the session tree, and summaries of branches.

A branch is summarised when a move leaves it or when a merge adds its summary to another branch.
``agent.navigator`` carries out the plans: it changes the leaf (the current entry), lets a model
write a summary, and appends the summary.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from tui_agent.context.anchors import cut_line
from tui_agent.context.files import file_operations
from tui_agent.context.preserved import Budgets, CountText, Summarised, carry, fit
from tui_agent.context.serialise import blocks_of
from tui_agent.context.settings import ContextSettings
from tui_agent.context.summariser import InputMode, SummaryTask
from tui_agent.context.view import ContextView, resolve_all
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
"""Largest share of the summariser's input that earlier summaries on the branch may take."""
_BEGINS_CHARS = 200
"""Maximum characters of the excerpt from the beginning of a branch. The excerpt tells a summariser
where the branch begins in the live conversation."""
_MIN_BLOCK_TOKENS = 200
"""If at least this many tokens are free, a block of text that does not fit is cut. Otherwise it is
left out, unless no other block was chosen."""

LoadEntries = Callable[[Sequence[int]], Sequence[Entry]]
"""Loads the entries with the given ids."""


@frozen
class MovePlan:
    """A move to another entry of the session tree.

    ``leaf`` is the id of the new leaf, None for an empty conversation. ``prompt`` contains the
    parts of the user's message that is put back into the prompt for editing; it is empty if there
    is no such message. ``abandoned`` contains the entries that leave the path, that is, all entries
    after ``ancestor`` (the last entry that both paths share) up to the old leaf ``from_id``. A plan
    made by `plan_merge` moves nothing; it only says which entries the summary covers.
    """

    leaf: int | None
    from_id: int | None
    ancestor: int | None
    abandoned: Outlines
    asks: bool
    """Whether any abandoned entry was sent to the model; if so, the user is offered a summary."""
    target: int | None = None
    """The entry that the user chose: the new leaf, or the message to put back into the prompt.

    The value is None for an empty conversation and for a merge.
    """
    prompt: tuple[UserPart, ...] = ()


def plan_move(
    parting: Divergence, target: int | None, load: LoadEntries, *, continue_from_here: bool = False
) -> MovePlan:
    """Plan a move to the entry ``target``, or to an empty conversation if ``target`` is None.

    ``parting`` contains the entries of the old path (from the root of the tree to the current
    entry) that aren't on the target's path. If the target is a message that the user wrote, and
    ``continue_from_here`` is False, the message goes back into the prompt and its parent becomes
    the leaf. In all other cases the target becomes the leaf.
    """
    asks = holds_message(parting.left, load)
    plan = MovePlan(target, parting.leaf, parting.ancestor, parting.left, asks=asks, target=target)
    chosen = () if target is None or continue_from_here else load([target])
    for entry in chosen:
        if isinstance(entry, UserEntry) and entry.synthetic is None:
            return replace(plan, leaf=entry.parent_id, prompt=entry.parts)
    return plan


def plan_merge(parting: Divergence, load: LoadEntries) -> MovePlan | None:
    """Plan to append another branch's summary at the current leaf, without moving to that branch.

    ``parting`` contains the entries that are only on the other branch; they become the plan's
    ``abandoned`` entries. Returns None if none of them is sent to a model.
    """
    asks = holds_message(parting.left, load)
    if asks:
        return MovePlan(parting.ancestor, parting.leaf, parting.ancestor, parting.left, asks)
    return None


def holds_message(entries: Outlines, load: LoadEntries) -> bool:
    """Return True if any of the entries is sent to a model.

    The function calls ``load`` only for a kind whose entries are not always sent (shell commands).
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
    """The input of a branch summary, that is, the branch's entries and their text in blocks.

    ``from_id`` is the id of the branch's last entry, ``budget`` the history budget in tokens,
    ``omitted`` the number of blocks that did not fit, and ``focus`` the topic that the user wants
    the summary to stress.
    """

    entries: tuple[Entry, ...]
    from_id: int
    blocks: tuple[str, ...]
    settings: ContextSettings
    budget: int
    tools: TraitsByName
    omitted: int = 0
    focus: str = ""

    def task(self, mode: InputMode = "serialised") -> SummaryTask:
        """Return the summariser's task for this branch.

        In mode "live", the model first summarises the live conversation, and the blocks of text are
        used only if its answer is rejected.
        """
        begins = next((cut_line(block, _BEGINS_CHARS) for block in self.blocks), "")
        return SummaryTask(
            "branch_summary", self.blocks, focus=self.focus, live=mode == "live", begins=begins
        )


@frozen
class BranchBudget:
    """The limits, in tokens, that apply to a branch summary.

    ``room`` is the limit for the summary's input, ``history`` the limit for the whole history.
    """

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
    """Choose the blocks of the abandoned branch to summarise; None if it needs no summary.

    ``entries`` are the entries that the move abandons. Earlier summaries on the branch are chosen
    first and may take at most half of the room; messages are chosen after them. Both are chosen
    from the newest to the oldest. The first summary that does not fit is cut in its middle, or left
    out if little room remains, and all older summaries are left out. The same applies to messages.
    """
    if not move.asks or move.from_id is None:
        return None
    view = resolve_all(entries)
    blocks = _blocks(view, settings)
    if not blocks:
        return None
    chosen = _newest_within(blocks, budget.room, budget.count)
    return BranchSummaryPlan(
        entries=view.entries,
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
    """Return the entry with a branch's summary, to be appended at the new current entry.

    The details of the entry contain the branch's files and anchors, but no user messages, rules or
    state.
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


def _blocks(view: ContextView, settings: ContextSettings) -> list[tuple[bool, str]]:
    """Return the entries of a view as text blocks, in order, in pairs of (is summary, text)."""
    blocks: list[tuple[bool, str]] = []
    for kind, group in groupby(
        view.entries, lambda entry: entry.kind if entry.kind in _SUMMARIES else ""
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
    """Return the text of each block that fits into ``room`` tokens, by the block's index.

    Summaries are chosen first and may take at most ``_SUMMARIES_SHARE`` of ``room``; messages are
    chosen after them. Both are chosen from the newest to the oldest. The first summary that does
    not fit is cut in its middle, or left out if little room remains, and all older summaries are
    left out. The same applies to messages.
    """
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
