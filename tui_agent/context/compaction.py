"""Plans a compaction: where to cut, which entries are summarised, which stay.

Pure; a model and the commit come later.

Rules from OpenCode's and Pi's designs, with their known mistakes taken out: the range to summarise
starts at the previous compaction's first kept entry, a cut never stands between a call and its
result, whether a turn is split is decided before invisible entries are pulled to the kept side, and
an oversized newest result is cut instead of stopping everything.
"""

from collections.abc import Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Literal, NamedTuple

from tui_agent.context.anchors import names_in
from tui_agent.context.budget import (
    ContextSize,
    CountEntry,
    ViewWeights,
    describe_overhead,
    stored_tokens,
    too_large,
)
from tui_agent.context.cutting import cut_outputs
from tui_agent.context.files import FileOperations, file_operations
from tui_agent.context.kept_lines import shown_text, texts_of
from tui_agent.context.preserved import Budgets, CountText, Summarised, carry, digest, fit
from tui_agent.context.pruning import Occasion, PrunePlan, PruneRules, plan_prune
from tui_agent.context.rendering import carried_pins
from tui_agent.context.settings import ContextSettings
from tui_agent.context.templates import Templates
from tui_agent.context.view import ContextView, EntryState, resolve
from tui_agent.lazy import frozen
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    Entry,
    SummaryDetails,
)
from tui_agent.session.path_queries import newest_sent
from tui_agent.session.tool_traits import TraitsByName

_FILLED = 0.97
"""Share of the goal that the newest step is cut to: cuts are estimates."""

Trigger = Literal["manual", "threshold", "overflow", "model_switch"]

# Where history may be cut: before a message that starts something, never between a call and its
# result.


def starts_turn(entry: Entry) -> bool:
    return entry.starts_turn and entry.is_sent


def valid_cuts(view: ContextView, shown: Sequence[int]) -> list[bool]:
    """Tell for each entry of the view whether it may be the first kept one.

    ``shown`` is the tokens each entry takes. Valid are visible messages of the user and of the
    model, as long as no call before them has its result at or after them.
    """
    position = {entry.id: index for index, entry in enumerate(view.entries)}
    last_result = -1
    valid: list[bool] = []
    for index, entry in enumerate(view.entries):
        is_start = starts_turn(entry) or isinstance(entry, AssistantEntry)
        valid.append(is_start and shown[index] > 0 and index > last_result)
        for result in view.results.get(entry.id, ()):
            if result is not None:
                last_result = max(last_result, position[result.id])
    return valid


def find_cut(view: ContextView, shown: Sequence[int], keep: int) -> tuple[int, bool]:
    """Return the index of the first entry to keep, and whether the kept entries exceed ``keep`` tokens.

    Counts from the newest entry back until ``keep`` is reached and takes the nearest valid cut at
    or after that place. Where there is none (results at the end are larger than ``keep``), it is
    the nearest before it.
    """
    valid = valid_cuts(view, shown)
    total = 0
    reached = 0
    for index in range(len(shown) - 1, -1, -1):
        total += shown[index]
        if shown[index] and total >= keep:
            reached = index
            break
    for index in range(reached, len(shown)):
        if valid[index]:
            return index, False
    for index in range(min(reached, len(shown) - 1), -1, -1):
        if valid[index]:
            return index, True
    return 0, True


class RefusalReason(StrEnum):
    """Why nothing is compacted."""

    ALREADY_COMPACTED = "already_compacted"
    NOTHING_TO_COMPACT = "nothing_to_compact"
    FIXED_OVERHEAD = "fixed_overhead"
    PINNED = "pinned"
    NO_PROGRESS = "no_progress"
    CANCELLED = "cancelled"
    """A hook of the user's did not want it."""


@frozen
class Refusal:
    """Nothing is compacted, and ``message`` says why to a person.

    ``prune`` helps instead, without a model: cutting oversized outputs, or clearing old ones.
    """

    reason: RefusalReason
    message: str
    prunes: tuple[PrunePlan, ...] = ()


@frozen
class CompactionPlan:
    """A planned compaction; also the input of a hook that replaces the summary.

    ``history`` and ``turn_prefix`` are the messages to summarise, ``kept`` the ones that stay;
    ``dropped`` holds every entry before the first kept one, the invisible ones too. ``budget`` is
    the history budget H, all sizes are tokens. ``prunes`` are committed with the summary: old
    outputs of the tail become placeholders, so that it reaches further back for the same tokens,
    and results that alone take more than the tail may are cut. ``view`` is the one after them.
    """

    view: ContextView
    settings: ContextSettings
    tools: TraitsByName
    tokens_before: int
    budget: int
    history: tuple[Entry, ...] = ()
    turn_prefix: tuple[Entry, ...] = ()
    kept: tuple[Entry, ...] = ()
    dropped: tuple[Entry, ...] = ()
    first_kept_id: int | None = None
    files: FileOperations = FileOperations()
    tokens_summarised: int = 0
    tokens_kept: int = 0
    keep_recent: int = 0
    trigger: Trigger = "threshold"
    instructions: str | None = None
    prunes: tuple[PrunePlan, ...] = ()
    unsummarised: tuple[Entry, ...] = ()
    """Entries that are dropped although the model's summary does not cover them (the ladder moves
    the cut)."""
    boundary: int | None = None
    """The first entry that stays, where a person said which; nothing but the summary is done
    then."""
    begun: int | None = None
    """The newest entry when a summary was begun beside the work: it knows nothing of later ones."""

    @property
    def previous_summary(self) -> str:
        """The last summary a model wrote, empty the first time."""
        if self.view.compaction is not None:
            return self.view.compaction.summary.strip()
        return ""

    @property
    def summary_tokens(self) -> int:
        return max(self.settings.compaction.summary_tokens(self.budget), 64)


@frozen
class PlanOptions:
    """Options of a plan.

    ``keep_recent`` None takes the settings'; ``overhead`` names parts of the head.
    """

    tools: TraitsByName
    trigger: Trigger = "threshold"
    instructions: str | None = None
    keep_recent: int | None = None
    overhead: Sequence[tuple[str, int]] = field(default_factory=tuple)
    count: CountEntry = stored_tokens
    boundary: int | None = None
    """The entry before which the summary ends; None: by ``keep_recent``."""


class Boundary(NamedTuple):
    """A place where the summarised part may end: the first entry that stays, and whether a turn begins with it."""

    entry_id: int
    is_turn: bool


def boundaries(path: Sequence[Entry], count: CountEntry = stored_tokens) -> list[Boundary]:
    """Return all places where a summary may end, oldest first.

    None is between a call and its result.
    """
    view = resolve(path)
    places = _places(view, ViewWeights(view, count).all())
    chosen = [view.entries[at] for at in places]
    return [Boundary(entry.id, starts_turn(entry)) for entry in chosen]


def _places(view: ContextView, shown: Sequence[int], start: int = 0) -> list[int]:
    """Return where the view may be cut so that something between ``start`` and the cut is shown."""
    valid = valid_cuts(view, shown)
    first = next((at for at in range(start, len(shown)) if shown[at]), len(shown))
    return [at for at in range(first + 1, len(shown)) if valid[at]]


@frozen
class _Weighed:
    """A view after the prune that comes with its compaction, and the tokens each entry takes in it."""

    view: ContextView
    shown: Sequence[int]
    keep: int
    """Tokens of the newest entries that stay."""
    pruned: PrunePlan | None


def plan_compaction(
    path: Sequence[Entry], settings: ContextSettings, size: ContextSize, options: PlanOptions
) -> CompactionPlan | Refusal:
    """Return which entries to summarise and which to keep, or why not.

    ``path`` is whole or active, ``settings`` those of the model, ``size`` the measure of that path.
    """
    view = resolve(path)
    if options.boundary is not None:
        return _plan_up_to(options.boundary, view, settings, size, options)
    last = newest_sent(path)
    if view.compaction is not None and last is not None and last.id == view.compaction.id:
        return Refusal(
            RefusalReason.ALREADY_COMPACTED, "Nothing was said since the last compaction."
        )
    if size.budget <= 0:
        overhead = describe_overhead(size.fixed, size.window, options.overhead)
        return Refusal(RefusalReason.FIXED_OVERHEAD, overhead)
    weighed = _weigh(view, settings, size.budget, options)
    view = weighed.view
    shown = weighed.shown
    cut, is_over = _cut_within_turns(weighed, settings.compaction.keep_turns)
    before = sum(shown[:cut])
    target = round(settings.compaction.target_of_budget * size.budget)
    oversized: tuple[PrunePlan, ...] = ()
    if is_over:
        room = _room_of_newest(before, weighed.keep, target, settings, size.budget)
        oversized = cut_outputs(view, view.entries[cut:], room, options.count)
    if not before:
        return _nothing_to_summarise(weighed, oversized, settings, size, options)
    if oversized and before + weighed.keep <= target:
        total = sum(shown)
        message = f"The newest tool outputs take {total - before:,} of {total:,} tokens; cutting them is enough."
        return Refusal(RefusalReason.NOTHING_TO_COMPACT, message, oversized)
    prunes = oversized
    if weighed.pruned is not None:
        prunes = (weighed.pruned, *oversized)
    plan = CompactionPlan(view, settings, options.tools, size.history, size.budget)
    return replace(
        _with_cut(plan, cut, shown),
        keep_recent=weighed.keep,
        trigger=options.trigger,
        instructions=options.instructions,
        prunes=prunes,
    )


def _weigh(
    view: ContextView, settings: ContextSettings, budget: int, options: PlanOptions
) -> _Weighed:
    # The cache breaks at a compaction anyway, so a prune costs nothing here.
    pruned = None
    if settings.prune.when != "off":
        pruned = prune_all(view, settings, budget, options.tools, options.count)
    if pruned is not None:
        view = pruned.applied(view)
    keep = options.keep_recent
    if keep is None:
        keep = settings.compaction.keep_recent_tokens(budget)
    return _Weighed(view, ViewWeights(view, options.count).all(), keep, pruned)


def _cut_within_turns(weighed: _Weighed, turns: int) -> tuple[int, bool]:
    """Return the cut as ``find_cut`` does, with at most so many turns after it; 0: any number."""
    view = weighed.view
    cut, is_over = find_cut(view, weighed.shown, weighed.keep)
    if not turns:
        return cut, is_over
    valid = valid_cuts(view, weighed.shown)
    starts = [at for at, entry in enumerate(view.entries) if valid[at] and starts_turn(entry)]
    if len(starts) >= turns and starts[-turns] > cut:
        return starts[-turns], False
    return cut, is_over


def _room_of_newest(
    before: int, keep: int, target: int, settings: ContextSettings, budget: int
) -> int:
    """Return the tokens the newest step's results may take: all that the stand-ins for the rest leave.

    No answer has seen them.
    """
    carried = Budgets.of(settings.compaction, budget).total
    stand_in = settings.compaction.summary_tokens(budget) + carried
    return max(keep, round(target * _FILLED) - min(before, stand_in))


def _nothing_to_summarise(
    weighed: _Weighed,
    oversized: tuple[PrunePlan, ...],
    settings: ContextSettings,
    size: ContextSize,
    options: PlanOptions,
) -> Refusal:
    """Return the refusal where everything is kept.

    It offers the cuts or the prune that help instead.
    """
    total = sum(weighed.shown)
    pruned = weighed.pruned
    if options.trigger == "overflow" and total < size.fixed:
        head = describe_overhead(size.fixed, size.window, options.overhead)
        # The server counted the request too, by its own tokens: two totals that differ would only
        # be a riddle.
        part = f"{total / size.total:.0%}" if total * 100 >= size.total else "less than 1%"
        message = f"Messages are {part} of it: a summary would not help. Counted here, not by the server: {head}"
        return Refusal(RefusalReason.FIXED_OVERHEAD, message)
    after = " once old outputs are pruned" if pruned is not None else ""
    message = (
        f"The messages take only {total:,} tokens{after}, and the newest {weighed.keep:,} are kept. "
        "/compact #N summarises up to an entry of your choice."
    )
    if culprit := too_large(weighed.view.entries, weighed.shown, size.budget // 2):
        message = f"There is nothing to summarise. {culprit}"
    offered = oversized
    worthwhile = settings.prune.worthwhile_tokens(size.budget)
    if not offered and pruned is not None and pruned.tokens_freed >= worthwhile:
        offered = (pruned,)
    return Refusal(RefusalReason.NOTHING_TO_COMPACT, message, offered)


def _plan_up_to(
    boundary: int,
    view: ContextView,
    settings: ContextSettings,
    size: ContextSize,
    options: PlanOptions,
) -> CompactionPlan | Refusal:
    """Return the plan of a summary that ends before an entry; inside a step, before the step."""
    shown = ViewWeights(view, options.count).all()
    places = [place for place in _places(view, shown) if view.entries[place].id <= boundary]
    if not places:
        why = "There is nothing before it to summarise."
        if view.compaction is not None and view.entries and boundary <= view.entries[0].id:
            why = "That is summarised already."
        return Refusal(RefusalReason.NOTHING_TO_COMPACT, why)
    cut = places[-1]
    plan = CompactionPlan(view, settings, options.tools, size.history, size.budget)
    return replace(
        _with_cut(plan, cut, shown),
        boundary=view.entries[cut].id,
        trigger=options.trigger,
        instructions=options.instructions,
    )


def recut(
    plan: CompactionPlan, keep_recent: int, count: CountEntry = stored_tokens
) -> CompactionPlan | None:
    """Return the plan with less kept, for the same summary; None when the cut does not move on.

    Entries dropped now and not summarised are listed in ``unsummarised``.
    """
    shown = ViewWeights(plan.view, count).all()
    cut, oversized = find_cut(plan.view, shown, keep_recent)
    return _moved(plan, cut, keep_recent, shown, count if oversized else None)


def without_oldest_turn(
    plan: CompactionPlan, count: CountEntry = stored_tokens
) -> CompactionPlan | None:
    """Return the plan without the oldest kept turn; in the last turn without its oldest step.

    None at the end.
    """
    shown = ViewWeights(plan.view, count).all()
    later = _places(plan.view, shown, len(plan.dropped))
    turns = [at for at in later if starts_turn(plan.view.entries[at])]
    cut = next(iter(turns or later), None)
    if cut is None:
        return None
    return _moved(plan, cut, plan.keep_recent, shown, None)


def without_tail(plan: CompactionPlan) -> CompactionPlan | None:
    """Return the plan that keeps no message as it was.

    None when nothing is pinned down by a message at all.
    """
    if not plan.kept:
        return None
    return replace(
        plan,
        kept=(),
        dropped=plan.view.entries,
        first_kept_id=None,
        tokens_kept=0,
        prunes=(),
        files=_files(plan, plan.view.entries),
        unsummarised=(*plan.unsummarised, *(entry for entry in plan.kept if entry.is_sent)),
    )


def _moved(
    plan: CompactionPlan, cut: int, keep_recent: int, shown: Sequence[int], count: CountEntry | None
) -> CompactionPlan | None:
    moved = _with_cut(plan, cut, shown)
    if len(moved.dropped) <= len(plan.dropped):
        return None
    newly = moved.dropped[len(plan.dropped) :]
    prunes = cut_outputs(plan.view, moved.kept, keep_recent, count) if count else ()
    return replace(
        moved,
        keep_recent=keep_recent,
        prunes=(*plan.prunes, *prunes),
        unsummarised=(*plan.unsummarised, *(entry for entry in newly if entry.is_sent)),
    )


def carried_details(
    plan: CompactionPlan, summary: str, count: CountText, templates: Templates | None = None
) -> SummaryDetails:
    """Return the details that code carries through this compaction beside the model's ``summary``."""
    view = plan.view
    hidden = {EntryState.DROPPED, EntryState.MASKED}
    summarised = [entry for entry in plan.dropped if view.state(entry.id) not in hidden]
    pinned = carried_pins(view, plan.dropped, templates or Templates())
    notes = view.notes.values()
    known = [summary, *notes, *(pin.text for pin in pinned)]
    for entry in plan.kept:
        if view.is_open(entry.id) or isinstance(entry, AssistantEntry):
            known.append(texts_of(entry))
    budgets = Budgets.of(plan.settings.compaction, plan.budget)
    asked = _asked_meanwhile(plan, summarised, "\n".join([summary, *notes]))
    gone = Summarised(summarised, plan.files, plan.tools, asked)
    details = carry(gone, view.carried, budgets, count, "\n".join(known))
    return details.model_copy(update={"pinned": pinned})


def _asked_meanwhile(
    plan: CompactionPlan, summarised: Sequence[Entry], said: str
) -> frozenset[str]:
    """Return the names of what is summarised that the agent used since the summary was begun.

    Those are left out of which what is ``said`` or an output that stays tells.
    """
    if plan.begun is None:
        return frozenset()
    outputs: list[Entry] = []
    used: set[str] = set()
    for entry in plan.kept:
        if isinstance(entry, AssistantEntry):
            if entry.id > plan.begun:
                used |= names_in(texts_of(entry))
        elif plan.view.is_open(entry.id):
            outputs.append(entry)
    told = "\n".join([said, shown_text(outputs)])
    gone = shown_text(summarised)
    return frozenset(name for name in used if name in gone and name not in told)


def compaction_entry(
    plan: CompactionPlan, summary: str, count: CountText, templates: Templates | None = None
) -> CompactionEntry:
    """Return the entry of a plan with a model's summary.

    Entries the summary does not cover (all, when it is empty) are listed by rule, line by line.
    ``tokens_after`` is left to the commit, which measures it.
    """
    if summary.strip():
        untold = plan.unsummarised
    else:
        untold = (*plan.history, *plan.turn_prefix, *plan.unsummarised)
    room = plan.summary_tokens
    lines = digest(untold, room // 3 if summary.strip() else room, count)
    said = fit((summary or plan.previous_summary).strip(), room - count(lines), count)
    text = "\n\n".join(filter(None, [said, lines]))
    return CompactionEntry(
        summary=text,
        first_kept_id=plan.first_kept_id,
        tokens_before=plan.tokens_before,
        tokens_after=0,
        trigger=plan.trigger,
        instructions=plan.instructions,
        details=carried_details(plan, text, count, templates),
    )


def with_summary(
    view: ContextView, text: str, count: CountEntry = stored_tokens
) -> CompactionEntry:
    """Return the compaction that says ``text`` in place of the summary in force, and keeps what that one keeps.

    Raises:
        ValueError: no summary is in force.
    """
    former = view.compaction
    if former is None:
        raise ValueError("no summary is in force")
    entry = CompactionEntry(
        summary=text,
        first_kept_id=view.entries[0].id if view.entries else None,
        tokens_before=former.tokens_before,
        tokens_after=former.tokens_after,
        trigger="manual",
        details=former.details.model_copy(update={"pinned": view.pinned}),
    )
    after = max(0, former.tokens_after - count(former) + count(entry))
    return entry.model_copy(update={"tokens_after": after})


def _with_cut(plan: CompactionPlan, cut: int, shown: Sequence[int]) -> CompactionPlan:
    entries = plan.view.entries
    # Whether the turn is split is decided at the cut itself; only then do invisible entries move to
    # the kept side. A turn whose start is no longer in view is not split: what precedes the cut is
    # history. A message sent while a call was running starts no turn of its own here, because the
    # call and its result stay together.
    turn = cut
    start = cut
    if not starts_turn(entries[cut]):
        valid = valid_cuts(plan.view, shown)
        for at in range(cut - 1, -1, -1):
            if valid[at] and starts_turn(entries[at]):
                turn = at
                break
    while start > 0 and not entries[start - 1].is_sent:
        start -= 1
    return replace(
        plan,
        history=tuple(entries[i] for i in range(turn) if shown[i]),
        turn_prefix=tuple(entries[i] for i in range(turn, cut) if shown[i]),
        kept=entries[start:],
        dropped=entries[:start],
        first_kept_id=entries[start].id,
        files=_files(plan, entries[:cut]),
        tokens_summarised=sum(shown[:cut]),
        tokens_kept=sum(shown[cut:]),
    )


def _files(plan: CompactionPlan, entries: Sequence[Entry]) -> FileOperations:
    return file_operations(entries, plan.tools, plan.view.carried)


def prune_all(
    view: ContextView,
    settings: ContextSettings,
    budget: int,
    tools: TraitsByName,
    count: CountEntry,
) -> PrunePlan | None:
    """Return a prune of everything that the newest tokens and steps do not protect."""
    rules = PruneRules(settings.prune, budget, tools, pressure=True, minimum=1, count=count)
    return plan_prune(view, rules, Occasion.COMPACTION)
