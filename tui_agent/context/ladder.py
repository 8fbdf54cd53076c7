"""Turns a compaction plan and a summary into entries to append, once it is sure that they help.

The postcondition: history afterwards is at most 90 % of before and at most 60 % of its budget. When the summary
alone does not reach that, a fixed ladder follows that needs no model; at its end the compaction is refused and the
cause is named. So a compaction that is committed leaves room to work, and none is followed by another at once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tui_agent.context.budget import ContextSize, describe_overhead
from tui_agent.context.carried import CountText
from tui_agent.context.compaction import (
    CompactionPlan,
    Refusal,
    RefusalReason,
    compaction_entry,
    recut,
    without_oldest_turn,
)
from tui_agent.context.pruning import Occasion, PrunePlan, PruneRules, plan_argument_cut, plan_cut, plan_prune
from tui_agent.context.templates import Templates
from tui_agent.context.view import resolve
from tui_agent.context.weights import CountEntry, ViewWeights, stored_tokens, too_large
from tui_agent.session.entries import CompactionEntry, Entry

SizeOf = Callable[[Sequence[Entry]], int]
"""Measures the history of a path in tokens, as it would be sent; the same way for every path it is given."""

MIN_TAIL_TOKENS = 500
"""Halving ``keep_recent`` ends here; then whole turns go."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What to append, in order, and how much history takes before and after, in tokens.

    ``steps`` names the rungs of the ladder that were needed beside the summary, for the transcript.
    """

    entries: tuple[Entry, ...]
    tokens_before: int
    tokens_after: int
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measures:
    """How things are counted: entries and text in tokens, and whole paths by the real projection."""

    size_of: SizeOf
    text: CountText
    entry: CountEntry = stored_tokens
    templates: Templates | None = None


@dataclass(frozen=True, slots=True)
class _Rung:
    """One way to commit: a compaction, and results to prune or cut along with it."""

    name: str
    compaction: CompactionEntry
    prunes: tuple[PrunePlan, ...] = ()

    def entries(self) -> tuple[Entry, ...]:
        """Prunes come first: the compaction is the last thing said, so that nothing compacts right after it."""
        return (*(prune.entry() for prune in self.prunes), self.compaction)


def plan_commit(
    path: Sequence[Entry],
    plan: CompactionPlan,
    summary: str,
    measures: Measures,
    size: ContextSize,
    overhead: Sequence[tuple[str, int]] = (),
) -> Commit | Refusal:
    """Return the entries that carry out a plan, or the refusal that says what stands in the way.

    ``summary`` is the model's, empty to do without one. ``size`` is the measure the plan was made with, ``overhead``
    names parts of the fixed overhead for the refusal.
    """
    before = measures.size_of(path)
    target = plan.settings.compaction.target_tokens(before, plan.budget)
    steps: list[str] = []
    after = before
    for rung in _ladder(path, plan, summary, measures):
        entries = rung.entries()
        after = measures.size_of(provisional(path, entries))
        if rung.name:
            steps.append(rung.name)
        if after <= target:
            committed = replace_after(entries, before, after)
            return Commit(committed, before, after, tuple(steps))
    return _refusal(plan, size, overhead, after=after, target=target, measures=measures)


def provisional(path: Sequence[Entry], entries: Sequence[Entry]) -> list[Entry]:
    """Return the path as it would be with ``entries`` appended, with ids as the store would give them."""
    newest = max((entry.id for entry in path), default=0)
    parent = path[-1].id if path else None
    extended = list(path)
    for number, entry in enumerate(entries, newest + 1):
        extended.append(entry.model_copy(update={"id": number, "parent_id": parent}))
        parent = number
    return extended


def replace_after(entries: Sequence[Entry], before: int, after: int) -> tuple[Entry, ...]:
    """Return the entries with the measured sizes written into the compaction."""
    sizes = {"tokens_before": before, "tokens_after": after}
    return tuple(entry.model_copy(update=sizes) if entry.kind == "compaction" else entry for entry in entries)


def _ladder(path: Sequence[Entry], plan: CompactionPlan, summary: str, measures: Measures) -> Iterator[_Rung]:
    """Yield ever harder ways to commit, each built on the one before."""

    def compact(current: CompactionPlan) -> CompactionEntry:
        return compaction_entry(current, summary, measures.text, measures.templates)

    prunes = _still_kept(plan.prunes, plan)
    compaction = compact(plan)
    yield _Rung("", compaction, prunes)

    pruned = _prune_beyond(path, prunes, plan, measures)
    if pruned is not None:
        prunes = (*prunes, pruned)
        yield _Rung("pruned kept outputs", compaction, prunes)

    cut = _cut_kept(path, prunes, plan, measures)
    if cut is not None:
        prunes = (*prunes, cut)
        yield _Rung("cut kept outputs", compaction, prunes)

    cut = plan_argument_cut(plan.view, plan.settings.compaction.argument_chars, measures.entry, plan.kept)
    if cut is not None:
        prunes = (*prunes, cut)
        yield _Rung("cut kept arguments", compaction, prunes)

    for name, shorter in _shorter_tails(plan, measures.entry):
        yield _Rung(name, compact(shorter), _still_kept((*prunes, *shorter.prunes[len(plan.prunes) :]), shorter))


def _shorter_tails(plan: CompactionPlan, count: CountEntry) -> Iterator[tuple[str, CompactionPlan]]:
    keep = plan.keep_recent // 2
    while keep >= MIN_TAIL_TOKENS:
        shorter = recut(plan, keep, count)
        if shorter is not None:
            plan = shorter
            yield "kept half of the tail", plan
        keep //= 2
    while (shorter := without_oldest_turn(plan, count)) is not None:
        plan = shorter
        yield "dropped the oldest kept turn", plan


def _prune_beyond(
    path: Sequence[Entry], prunes: Sequence[PrunePlan], plan: CompactionPlan, measures: Measures
) -> PrunePlan | None:
    """Return a prune of everything kept that only the newest tokens and steps do not protect."""
    view = resolve(provisional(path, [prune.entry() for prune in prunes]))
    rules = PruneRules(plan.settings.prune, plan.budget, plan.tools, pressure=True, minimum=1, count=measures.entry)
    prune = plan_prune(view, rules, Occasion.COMPACTION)
    return prune.only(_kept_ids(plan)) if prune is not None else None


def _cut_kept(
    path: Sequence[Entry], prunes: Sequence[PrunePlan], plan: CompactionPlan, measures: Measures
) -> PrunePlan | None:
    view = resolve(provisional(path, [prune.entry() for prune in prunes]))
    return plan_cut(view, plan.settings.compaction.result_chars, measures.entry, plan.kept)


def _still_kept(prunes: Sequence[PrunePlan], plan: CompactionPlan) -> tuple[PrunePlan, ...]:
    """Return the prunes without what the compaction takes out of view anyway."""
    kept = _kept_ids(plan)
    return tuple(prune for whole in prunes if (prune := whole.only(kept)) is not None)


def _kept_ids(plan: CompactionPlan) -> frozenset[int]:
    return frozenset(entry.id for entry in plan.kept)


def _refusal(
    plan: CompactionPlan,
    size: ContextSize,
    overhead: Sequence[tuple[str, int]],
    *,
    after: int,
    target: int,
    measures: Measures,
) -> Refusal:
    """Name what keeps history above its target: pins, the head, one large message, or that there is little to gain."""
    goal = f"History would still take {after:,} tokens; {target:,} are the goal."
    pinned = sum(measures.text(pin.text) for pin in plan.view.pinned)
    weights = ViewWeights(plan.view, measures.entry)
    pinned += sum(weights.of(entry) for entry in plan.view.entries if plan.view.states.get(entry.id) == "pinned")
    if pinned > target // 2:
        return Refusal(RefusalReason.PINNED, f"{goal} Pinned entries alone take {pinned:,}: unpin some.")
    if plan.budget < plan.settings.compaction.minimum_budget:
        return Refusal(RefusalReason.FIXED_OVERHEAD, f"{goal} {describe_overhead(size.fixed, size.window, overhead)}")
    culprit = too_large(plan.view.entries, weights.all(), target // 2) or "There is too little to leave out."
    return Refusal(RefusalReason.NO_PROGRESS, f"{goal} {culprit}")
