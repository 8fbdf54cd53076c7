"""Turns a compaction plan and a summary into entries to append, once it is sure that they help.

The postcondition: history afterwards is at most 90 % of before and at most 60 % of its budget. When
the summary alone does not reach that, a fixed ladder follows that needs no model. Where not even
its last rung reaches the goal, the first that fits into the room counts, and where none fits, every
text gives up its middle until they do. So work only stops where the largest parts may not be cut:
the head, and pinned entries.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from tui_agent.context.budget import (
    ContextSize,
    CountEntry,
    ViewWeights,
    describe_overhead,
    stored_tokens,
    too_large,
)
from tui_agent.context.compaction import (
    CompactionPlan,
    Refusal,
    RefusalReason,
    Trigger,
    compaction_entry,
    prune_all,
    recut,
    without_oldest_turn,
    without_tail,
)
from tui_agent.context.cutting import Cutter, arguments, cut_outputs, outputs
from tui_agent.context.preserved import CountText
from tui_agent.context.pruning import PrunePlan
from tui_agent.context.settings import ContextSettings
from tui_agent.context.templates import Templates
from tui_agent.context.view import ContextView, EntryState, resolve
from tui_agent.lazy import frozen
from tui_agent.session.entries import CompactionEntry, Entry
from tui_agent.session.path_queries import newest_sent

SizeOf = Callable[[Sequence[Entry]], int]
"""Measures the history of a path in tokens, as it would be sent; the same way for every path it is
given."""

PRUNED = "cleared kept outputs"
"""The step that only turns old outputs into placeholders."""
CUT_OUTPUTS = "cut kept outputs"
"""The step that shortens long outputs which are kept."""
MIN_TAIL_TOKENS = 500
"""Halving ``keep_recent`` ends here; then whole turns go."""
LEAST_ANSWER = 1_024
"""Tokens of the window that are left for an answer when nothing more can be cut."""
_CHARS_PER_TOKEN = 4
"""Turns ``result_chars`` and ``argument_chars`` into tokens: so many characters of English or
code."""
_HARDER = (1.0, 0.8, 0.6, 0.4, 0.25, 0.1, 0.0)
"""How far texts are cut in turn, until the request fits."""


@frozen
class Commit:
    """The entries to append, in order, and how much history takes before and after, in tokens.

    ``steps`` names the rungs of the ladder that were needed beside the summary, for the transcript.
    """

    entries: tuple[Entry, ...]
    tokens_before: int
    tokens_after: int
    steps: tuple[str, ...] = ()


@frozen
class Measures:
    """How things are counted: entries and text in tokens, and whole paths by the real projection."""

    size_of: SizeOf
    text: CountText
    entry: CountEntry = stored_tokens
    templates: Templates | None = None


@frozen
class _Rung:
    """One way to make room: a compaction or none, and entries to prune or cut along with it.

    ``hard`` rungs cut new entries or text a person wrote: they count where nothing else fits.
    """

    name: str
    compaction: CompactionEntry | None
    prunes: tuple[PrunePlan, ...] = ()
    hard: bool = False

    def entries(self) -> tuple[Entry, ...]:
        """Prunes come first: the compaction is the last thing said, so that nothing compacts right after it."""
        prunes: list[Entry] = [prune.entry() for prune in self.prunes]
        if self.compaction is not None:
            prunes.append(self.compaction)
        return tuple(prunes)


@frozen
class _Goal:
    """How small history has to be: the goal, a size that will do, and the most that fits the window.

    Less than the goal will only do where work would stop otherwise (``pressing``): not when a
    person asks, and not for a threshold below the window's size.
    """

    before: int
    target: int
    enough: int
    room: int
    pressing: bool

    @classmethod
    def of(
        cls, before: int, trigger: Trigger, settings: ContextSettings, size: ContextSize
    ) -> "_Goal":
        rules = settings.compaction
        target = min(
            round(before * rules.target_of_before), round(size.budget * rules.target_of_budget)
        )
        limit = size.window - size.fixed - size.reserve
        if trigger == "manual" or (trigger != "overflow" and size.history <= limit):
            return cls(before, target, target, target, pressing=False)
        less = round(before * settings.compaction.target_of_before)
        room = size.window - size.fixed - min(size.reserve, LEAST_ANSWER)
        enough = max(target, min(less, round(limit * settings.compaction.enough_of_budget)))
        return cls(before, target, enough, max(enough, min(before, room)), pressing=True)


def plan_commit(
    path: Sequence[Entry],
    plan: CompactionPlan,
    summary: str,
    measures: Measures,
    size: ContextSize,
    overhead: Sequence[tuple[str, int]] = (),
) -> Commit | Refusal:
    """Return the entries that carry out a plan, or the refusal that gives the reason.

    ``summary`` is the model's, empty to do without one. ``size`` is the measure the plan was made
    with, ``overhead`` names parts of the fixed overhead for the refusal.
    """
    goal = _Goal.of(measures.size_of(path), plan.trigger, plan.settings, size)
    found = _first_that_fits(path, _ladder(path, plan, summary, measures, goal), goal, measures)
    if isinstance(found, Commit):
        return found
    return _refusal(plan, size, overhead, after=found, goal=goal, measures=measures)


def plan_cuts(
    path: Sequence[Entry],
    refusal: Refusal,
    settings: ContextSettings,
    measures: Measures,
    size: ContextSize,
    trigger: Trigger = "threshold",
) -> Commit | Refusal:
    """Return the prunes and cuts that make room where there is nothing to summarise, else the refusal itself.

    The prune the refusal offers comes first; where that does not fit, every text gives up its
    middle.
    """
    if size.budget <= 0:
        return refusal
    goal = _Goal.of(measures.size_of(path), trigger, settings, size)
    if not goal.pressing:
        goal = replace(goal, target=round(goal.before * settings.compaction.target_of_before))
    last = newest_sent(path)
    if last is not None and last.kind == "compaction":
        return refusal
    found = _first_that_fits(
        path, _cuts_alone(path, refusal.prunes, settings, measures, goal), goal, measures
    )
    return found if isinstance(found, Commit) else refusal


def _first_that_fits(
    path: Sequence[Entry], ladder: Iterator[_Rung], goal: _Goal, measures: Measures
) -> Commit | int:
    """Return the first rung that reaches the goal; else the first that is enough, or just fits; else the least size."""
    steps: list[str] = []
    enough: Commit | None = None
    fitting: Commit | None = None
    least = goal.before
    for rung in ladder:
        if rung.hard and enough is not None:
            return enough
        entries = rung.entries()
        after = measures.size_of(provisional(path, entries))
        if rung.name and rung.name not in steps[-1:]:
            steps.append(rung.name)
        least = min(least, after)
        if rung.compaction is not None:
            sizes = {"tokens_before": goal.before, "tokens_after": after}
            entries = (*entries[:-1], rung.compaction.model_copy(update=sizes))
        commit = Commit(entries, goal.before, after, tuple(steps))
        if after >= goal.before:
            continue
        if after <= (goal.enough if rung.hard else goal.target):
            return commit
        if after <= goal.enough:
            enough = enough or commit
        elif after <= goal.room and (fitting is None or after < fitting.tokens_after):
            fitting = commit
    return enough or fitting or least


def provisional(path: Sequence[Entry], entries: Sequence[Entry]) -> list[Entry]:
    """Return the path as it would be with ``entries`` appended, with ids as the store would give them."""
    newest = max((entry.id for entry in path), default=0)
    parent = path[-1].id if path else None
    extended = list(path)
    for number, entry in enumerate(entries, newest + 1):
        extended.append(entry.model_copy(update={"id": number, "parent_id": parent}))
        parent = number
    return extended


def _pruned_view(path: Sequence[Entry], prunes: Sequence[PrunePlan]) -> ContextView:
    return resolve(provisional(path, [prune.entry() for prune in prunes]))


def _ladder(
    path: Sequence[Entry], plan: CompactionPlan, summary: str, measures: Measures, goal: _Goal
) -> Iterator[_Rung]:
    """Yield ever harder ways to commit, each built on the one before."""
    compact = partial(
        compaction_entry, summary=summary, count=measures.text, templates=measures.templates
    )
    prunes = _still_kept(plan.prunes, plan)
    compaction = compact(plan)
    yield _Rung("", compaction, prunes)

    view = _pruned_view(path, prunes)
    pruned = prune_all(view, plan.settings, plan.budget, plan.tools, measures.entry)
    if pruned is not None and (cleared := _still_kept([pruned], plan)):
        prunes = (*prunes, *cleared)
        yield _Rung(PRUNED, compaction, prunes)

    for name, cut in _cuts(path, prunes, plan.kept, plan.settings, measures):
        prunes = (*prunes, *cut)
        yield _Rung(name, compaction, prunes)

    view = _pruned_view(path, prunes)
    if cut := cut_outputs(view, plan.kept, plan.keep_recent, measures.entry):
        prunes = (*prunes, *cut)
        yield _Rung(CUT_OUTPUTS, compaction, prunes)

    shorter = plan
    last = _Rung("", compaction, prunes)
    for name, shorter in _shorter_tails(plan, measures.entry):
        last = _Rung(
            name,
            compact(shorter),
            _still_kept((*prunes, *shorter.prunes[len(plan.prunes) :]), shorter),
        )
        yield last
    if not goal.pressing:
        return
    for prunes in _squeezed(path, last, shorter.kept, measures, goal):
        yield replace(last, name="cut what is newest", prunes=prunes, hard=True)
    if (nothing := without_tail(plan)) is not None:
        yield _Rung("kept no message as it was", compact(nothing), hard=True)


def _cuts_alone(
    path: Sequence[Entry],
    offered: tuple[PrunePlan, ...],
    settings: ContextSettings,
    measures: Measures,
    goal: _Goal,
) -> Iterator[_Rung]:
    if offered:
        yield _Rung("", None, offered)
    if not goal.pressing:
        return
    entries = resolve(path).entries
    prunes = offered
    for name, cut in _cuts(path, prunes, entries, settings, measures):
        prunes = (*prunes, *cut)
        yield _Rung(name, None, prunes)
    last = _Rung("cut what is newest", None, prunes, hard=True)
    for squeezed in _squeezed(path, last, entries, measures, goal):
        yield replace(last, prunes=squeezed)


def _cuts(
    path: Sequence[Entry],
    prunes: tuple[PrunePlan, ...],
    entries: Sequence[Entry],
    settings: ContextSettings,
    measures: Measures,
) -> Iterator[tuple[str, tuple[PrunePlan, ...]]]:
    """Yield the cuts of long outputs, then those of long arguments.

    Arguments can be cut: what a call wrote can be read back from the file.
    """
    for name, longest, chars in (
        ("cut kept outputs", outputs, settings.compaction.result_chars),
        ("cut kept arguments", arguments, settings.compaction.argument_chars),
    ):
        cutter = Cutter(_pruned_view(path, prunes), entries, measures.entry)
        if cut := cutter.to(chars // _CHARS_PER_TOKEN, longest, chars):
            prunes = (*prunes, *cut)
            yield name, cut


def _squeezed(
    path: Sequence[Entry], last: _Rung, entries: Sequence[Entry], measures: Measures, goal: _Goal
) -> Iterator[tuple[PrunePlan, ...]]:
    """Yield the prunes of a rung and, ever shorter, cuts of all texts that it leaves."""
    view = _pruned_view(path, last.prunes)
    texts = sum(map(ViewWeights(view, measures.entry).of, entries))
    room = goal.enough + texts - measures.size_of(provisional(path, last.entries()))
    cutter = Cutter(replace(view, entries=tuple(entries)), entries, measures.entry)
    for harder in _HARDER:
        yield (*last.prunes, *cutter.squeeze(room, harder=harder))


def _shorter_tails(plan: CompactionPlan, count: CountEntry) -> Iterator[tuple[str, CompactionPlan]]:
    keep = plan.keep_recent // 2
    while keep >= MIN_TAIL_TOKENS:
        shorter = recut(plan, keep, count)
        if shorter is not None:
            plan = shorter
            yield "kept half of the tail", plan
        keep //= 2
    # Each tail is weighed with all that is carried beside it: hundreds of short turns must not be
    # hundreds of rungs.
    at_once = 1
    while (shorter := without_oldest_turn(plan, count)) is not None:
        plan = shorter
        for _ in range(at_once - 1):
            if (shorter := without_oldest_turn(plan, count)) is None:
                break
            plan = shorter
        yield "dropped the oldest kept turn", plan
        at_once *= 2


def _still_kept(prunes: Sequence[PrunePlan], plan: CompactionPlan) -> tuple[PrunePlan, ...]:
    """Return the prunes without entries the compaction takes out of view anyway."""
    kept = frozenset(entry.id for entry in plan.kept)
    cut = [prune.only(kept) for prune in prunes]
    return tuple(filter(None, cut))


def _refusal(
    plan: CompactionPlan,
    size: ContextSize,
    overhead: Sequence[tuple[str, int]],
    *,
    after: int,
    goal: _Goal,
    measures: Measures,
) -> Refusal:
    """Name why history stays above its goal: pins, the head, one large message, or that there is little to gain."""
    target = goal.target
    fact = f"History would still take {after:,} tokens; {target:,} are the goal."
    pinned = sum(measures.text(pin.text) for pin in plan.view.pinned)
    weights = ViewWeights(plan.view, measures.entry)
    for entry in plan.view.entries:
        if plan.view.state(entry.id) is EntryState.PINNED:
            pinned += weights.of(entry)
    if pinned > target // 2:
        return Refusal(
            RefusalReason.PINNED, f"{fact} Pinned entries alone take {pinned:,}: unpin some."
        )
    if plan.budget < plan.settings.compaction.minimum_budget:
        return Refusal(
            RefusalReason.FIXED_OVERHEAD,
            f"{fact} {describe_overhead(size.fixed, size.window, overhead)}",
        )
    culprit = too_large(plan.view.entries, weights.all(), target // 2)
    culprit = culprit or "There is too little to leave out."
    return Refusal(RefusalReason.NO_PROGRESS, f"{fact} {culprit}")
