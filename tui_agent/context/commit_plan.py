"""Turns a compaction plan and a summary into the entries to append, if they make enough room.

The goal is that history then takes at most 90 % of its former size and at most 60 % of its budget.
If the summary alone does not reach the goal, a ladder of further measures is tried, rung by rung:
outputs are cleared, outputs and arguments are cut, fewer messages are kept. None of these measures
needs a model. If no rung reaches the goal but the work would stop without a compaction, a rung that
makes a little less room is taken. If there is none, every text is cut in the middle. If that is not
enough either, the smallest history that fits the window is taken. So the work stops only if the
texts that must not be cut (the system prompt, the tool definitions and pinned entries) are too
large.
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
"""Counts the tokens that a path's history would have in a request."""

_PRUNED = "cleared kept outputs"
"""Name, shown to the user, of the measure that replaces kept outputs with placeholders."""
_CUT_OUTPUTS = "cut kept outputs"
"""Name, shown to the user, of the measure that shortens long kept outputs."""
MIN_TAIL_TOKENS = 500
"""To keep fewer messages, the kept part is halved as long as at least this many tokens are left.
After that, whole turns are dropped."""
LEAST_ANSWER = 1_024
"""Tokens of the window that stay free for an answer even if everything has to be cut."""
_TOO_LITTLE = (
    "Compacting would free too little, so it was refused. For more room, clear or hide entries in "
    "/context, or switch to a model with a larger window with /model."
)
"""Advice to the user if a compaction was refused and no single entry is to blame."""
_CHARS_PER_TOKEN = 4
"""Characters per token assumed to convert ``result_chars`` and ``argument_chars`` to tokens."""
_HARDER = (1.0, 0.8, 0.6, 0.4, 0.25, 0.1, 0.0)
"""Factors by which the length that texts are cut to is multiplied. They are tried in turn until the
request fits."""


@frozen
class Commit:
    """The entries to append, in order, and the history's size in tokens before and after.

    ``steps`` contains the names of the rungs (measures) that were tried, up to the one that was
    taken; the transcript shows them.
    """

    entries: tuple[Entry, ...]
    tokens_before: int
    tokens_after: int
    steps: tuple[str, ...] = ()


@frozen
class Measures:
    """Functions that count the tokens of a whole path as sent, of a text, and of one entry.

    ``templates`` are the templates of the request, None for the default templates.
    """

    size_of: SizeOf
    text: CountText
    entry: CountEntry = stored_tokens
    templates: Templates | None = None


@frozen
class _Rung:
    """One rung of the ladder of measures: prunes and cuts, with or without a compaction.

    A ``hard`` rung cuts the newest entries or the user's own text, and is tried only if no earlier
    rung makes enough room.
    """

    name: str
    compaction: CompactionEntry | None
    prunes: tuple[PrunePlan, ...] = ()
    hard: bool = False

    def entries(self) -> tuple[Entry, ...]:
        """Return the entries that the commit appends to the session.

        The compaction is the last one, because a path that ends in a compaction is not compacted
        again.
        """
        prunes: list[Entry] = [prune.entry() for prune in self.prunes]
        if self.compaction is not None:
            prunes.append(self.compaction)
        return tuple(prunes)


@frozen
class _Goal:
    """The sizes in tokens to which a commit may reduce the history.

    ``before`` is the present size and ``target`` the goal. If no rung (measure) reaches the goal,
    ``enough`` is accepted or, if that isn't reached either, ``room``, the most that fits the
    window. These two exceed ``target`` only if the work would stop otherwise (``pressing``),
    because history no longer fits the window or the server refused a request as too long. They
    never exceed it if the user asked for the compaction.
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
    """Return the commit that carries out a compaction plan, or a refusal with the reason.

    ``summary`` is the summary that the model wrote, "" if there is none. ``size`` is the size of
    the request that the plan was made for. ``overhead`` contains (name, tokens) for each part of
    the head (the system prompt and the tool definitions); the message of a refusal names these
    parts.
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
    """Return a commit that only prunes and cuts, for a path with nothing to summarise.

    The prunes that ``refusal`` offers are tried first. If they aren't enough and the work would
    stop otherwise, texts are cut in the middle. Returns ``refusal`` if nothing makes enough room,
    if the path ends in a compaction, or if the system prompt and the tools leave no room for
    history.
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
    """Return the commit of the first rung (measure) that reaches the goal.

    If no rung does, return the commit of the first rung that is enough, or else of the rung that
    leaves the smallest history that fits the window. If no history fits, return the smallest size
    reached, in tokens. Hard rungs are only tried if no other rung was enough; the first hard rung
    that is enough is taken.
    """
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
    """Return a path with ``entries`` appended; their ids follow the path's greatest id."""
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
    """Yield the measures that make room (the rungs of a ladder), from mild to hard.

    Each rung includes the prunes of the rungs before it, except for entries that it no longer
    keeps.
    """
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
        yield _Rung(_PRUNED, compaction, prunes)

    for name, cut in _cuts(path, prunes, plan.kept, plan.settings, measures):
        prunes = (*prunes, *cut)
        yield _Rung(name, compaction, prunes)

    view = _pruned_view(path, prunes)
    if cut := cut_outputs(view, plan.kept, plan.keep_recent, measures.entry):
        prunes = (*prunes, *cut)
        yield _Rung(_CUT_OUTPUTS, compaction, prunes)

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
        yield replace(last, name="cut the newest entries", prunes=prunes, hard=True)
    if (nothing := without_tail(plan)) is not None:
        yield _Rung("kept no message unchanged", compact(nothing), hard=True)


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
    last = _Rung("cut the newest entries", None, prunes, hard=True)
    for squeezed in _squeezed(path, last, entries, measures, goal):
        yield replace(last, prunes=squeezed)


def _cuts(
    path: Sequence[Entry],
    prunes: tuple[PrunePlan, ...],
    entries: Sequence[Entry],
    settings: ContextSettings,
    measures: Measures,
) -> Iterator[tuple[str, tuple[PrunePlan, ...]]]:
    """Yield (name of the measure, cuts) for long outputs, then for long tool arguments.

    Arguments may be cut because what a call wrote can be read from the file itself.
    """
    for name, longest, chars in (
        (_CUT_OUTPUTS, outputs, settings.compaction.result_chars),
        ("cut kept arguments", arguments, settings.compaction.argument_chars),
    ):
        cutter = Cutter(_pruned_view(path, prunes), entries, measures.entry)
        if cut := cutter.to(chars // _CHARS_PER_TOKEN, longest, chars):
            prunes = (*prunes, *cut)
            yield name, cut


def _squeezed(
    path: Sequence[Entry], last: _Rung, entries: Sequence[Entry], measures: Measures, goal: _Goal
) -> Iterator[tuple[PrunePlan, ...]]:
    """Yield the prunes of ``last`` with cuts of all other texts; each result cuts them shorter."""
    view = _pruned_view(path, last.prunes)
    texts = sum(map(ViewWeights(view, measures.entry).of, entries))
    room = goal.enough + texts - measures.size_of(provisional(path, last.entries()))
    cutter = Cutter(replace(view, entries=tuple(entries)), entries, measures.entry)
    for harder in _HARDER:
        yield (*last.prunes, *cutter.squeeze(room, harder=harder))


def _shorter_tails(plan: CompactionPlan, count: CountEntry) -> Iterator[tuple[str, CompactionPlan]]:
    """Yield (name of the measure, plan) for plans that keep fewer and fewer newest messages."""
    keep = plan.keep_recent // 2
    while keep >= MIN_TAIL_TOKENS:
        shorter = recut(plan, keep, count)
        if shorter is not None:
            plan = shorter
            yield "kept fewer recent messages", plan
        keep //= 2
    # Measuring each rung takes time, so the number of turns to drop is doubled each time.
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
    """Return the prunes without those targets that the compaction summarises anyway."""
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
    """Return a refusal that says why history stays too large.

    The reason may be the pinned entries, the head (the system prompt and the tool definitions), or
    one large entry; otherwise, it is that too little can be left out. ``after`` is the smallest
    history that was reached, in tokens.
    """
    target = goal.target
    fact = f"History would still take {after:,} tokens; the goal is {target:,}."
    pinned = sum(measures.text(pin.text) for pin in plan.view.pinned)
    weights = ViewWeights(plan.view, measures.entry)
    for entry in plan.view.entries:
        if plan.view.state(entry.id) is EntryState.PINNED:
            pinned += weights.of(entry)
    if pinned > target // 2:
        return Refusal(
            RefusalReason.PINNED, f"{fact} Pinned entries alone take {pinned:,} tokens: unpin some."
        )
    if plan.budget < plan.settings.compaction.minimum_budget:
        return Refusal(
            RefusalReason.FIXED_OVERHEAD,
            f"{fact} {describe_overhead(size.fixed, size.window, overhead)}",
        )
    culprit = too_large(plan.view.entries, weights.all(), target // 2)
    return Refusal(RefusalReason.NO_PROGRESS, f"{fact} {culprit or _TOO_LITTLE}")
