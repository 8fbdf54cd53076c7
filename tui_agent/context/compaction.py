"""Plans a compaction: where history is cut, and which entries are summarised or kept.

All functions are pure. ``summariser`` lets a model write the summary, ``commit_plan`` decides
whether the result makes enough room, and ``agent.compactor`` appends it. `compaction_entry` here
builds the entry. A path is the list of entries from the root of the session tree to a leaf; its
view contains the entries that a request is made from.

The rules are those of OpenCode and Pi, without their known mistakes: the range to summarise starts
at the previous compaction's first kept entry; a cut is never between a call and its result; whether
a turn is split is decided before unsent entries move to the kept side; and if the newest result is
too large, the result is cut and the compaction is not refused.
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
"""Share of the target size that the outputs of the newest step may fill. Some room is left free
because the sizes of cuts are only estimates."""

Trigger = Literal["manual", "threshold", "overflow", "model_switch"]


def starts_turn(entry: Entry) -> bool:
    return entry.starts_turn and entry.is_sent


def valid_cuts(view: ContextView, tokens: Sequence[int]) -> list[bool]:
    """Return, for each entry of the view, whether history may be cut before it.

    ``tokens`` are the entries' token counts, 0 for an entry that is not sent. A cut is valid before
    a sent entry that starts a turn or is an answer, unless the result of an earlier call is after
    the cut.
    """
    position = {entry.id: index for index, entry in enumerate(view.entries)}
    last_result = -1
    valid: list[bool] = []
    for index, entry in enumerate(view.entries):
        is_start = starts_turn(entry) or isinstance(entry, AssistantEntry)
        valid.append(is_start and tokens[index] > 0 and index > last_result)
        for result in view.results.get(entry.id, ()):
            if result is not None:
                last_result = max(last_result, position[result.id])
    return valid


def find_cut(view: ContextView, tokens: Sequence[int], keep: int) -> tuple[int, bool]:
    """Return the index of the first entry to keep, and whether the newest step exceeds ``keep``.

    Tokens are counted from the newest entry back until ``keep`` is reached. Returns the nearest
    valid cut at or after that entry, with False. If there is none, because the results at the end
    are larger than ``keep``, returns the nearest valid cut before the entry (0 if none), with True.
    """
    valid = valid_cuts(view, tokens)
    total = 0
    reached = 0
    for index in range(len(tokens) - 1, -1, -1):
        total += tokens[index]
        if tokens[index] and total >= keep:
            reached = index
            break
    for index in range(reached, len(tokens)):
        if valid[index]:
            return index, False
    for index in range(min(reached, len(tokens) - 1), -1, -1):
        if valid[index]:
            return index, True
    return 0, True


class RefusalReason(StrEnum):
    """The reason why a compaction was refused."""

    ALREADY_COMPACTED = "already_compacted"
    NOTHING_TO_COMPACT = "nothing_to_compact"
    FIXED_OVERHEAD = "fixed_overhead"
    PINNED = "pinned"
    NO_PROGRESS = "no_progress"
    CANCELLED = "cancelled"
    """A hook refused the compaction."""
    MOVED = "moved"
    """The user moved to a branch that doesn't contain the entries to summarise."""


@frozen
class Refusal:
    """A refusal to compact. ``message`` tells the user the reason.

    ``prunes`` contains prunes that can be made instead. They need no model, because they only cut
    large outputs or clear old ones. It is empty if no such prune is worthwhile.
    """

    reason: RefusalReason
    message: str
    prunes: tuple[PrunePlan, ...] = ()


@frozen
class CompactionPlan:
    """A planned compaction. It is also passed to hooks that write the summary themselves.

    ``history`` and ``turn_prefix`` are the sent entries to summarise: whole turns, and the first
    part of a turn that the cut splits. ``dropped`` are all entries before the first kept one,
    including those not sent; ``kept`` are the rest. ``budget`` is the history budget H; all sizes
    are tokens. ``prunes`` are committed together with the summary; they clear old outputs among the
    kept entries and cut results that are too large. ``view`` is the view with old outputs cleared.
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
    """Dropped entries that the model's summary does not cover, because the cut was moved after the
    summary was written."""
    boundary: int | None = None
    """Id of the first entry to keep, if the user chose it. In that case nothing is pruned or
    cut."""
    begun: int | None = None
    """Id of the entry that was the newest when the model began to write a prepared summary; None
    for other summaries."""

    @property
    def previous_summary(self) -> str:
        """The text of the earlier summary that this compaction replaces; "" if there is none."""
        if self.view.compaction is not None:
            return self.view.compaction.summary.strip()
        return ""

    @property
    def summary_tokens(self) -> int:
        return max(self.settings.compaction.summary_tokens(self.budget), 64)


@frozen
class PlanOptions:
    """Options for `plan_compaction`.

    ``instructions`` is the topic that the user wants the summary to stress. ``keep_recent`` is the
    number of tokens of the newest entries to keep, None for the number in the settings.
    ``overhead`` contains (name, tokens) for each part of the head (the system prompt and the tool
    definitions), which a refusal's message names.
    """

    tools: TraitsByName
    trigger: Trigger = "threshold"
    instructions: str | None = None
    keep_recent: int | None = None
    overhead: Sequence[tuple[str, int]] = field(default_factory=tuple)
    count: CountEntry = stored_tokens
    boundary: int | None = None
    """Id of the first entry to keep, if the user chose one. With None, ``keep_recent`` decides."""


class Boundary(NamedTuple):
    """A position where history may be cut: the first entry kept, and whether it begins a turn."""

    entry_id: int
    is_turn: bool


def boundaries(path: Sequence[Entry], count: CountEntry = stored_tokens) -> list[Boundary]:
    """Return all positions at which a path's history may be cut, oldest first.

    Each position has entries to summarise before it.
    """
    view = resolve(path)
    places = _places(view, ViewWeights(view, count).all())
    chosen = [view.entries[at] for at in places]
    return [Boundary(entry.id, starts_turn(entry)) for entry in chosen]


def _places(view: ContextView, tokens: Sequence[int], start: int = 0) -> list[int]:
    """Return the valid cuts, as indexes, that leave something to summarise from ``start`` on.

    At least one entry from ``start`` to each of these cuts is sent to the model.
    """
    valid = valid_cuts(view, tokens)
    first = next((at for at in range(start, len(tokens)) if tokens[at]), len(tokens))
    return [at for at in range(first + 1, len(tokens)) if valid[at]]


@frozen
class _Weighed:
    """A view in which old outputs are cleared, and the number of tokens of each of its entries."""

    view: ContextView
    tokens: Sequence[int]
    """The number of tokens of each entry of the view."""
    keep: int
    """The number of tokens of the newest entries that a compaction keeps."""
    pruned: PrunePlan | None
    """The prune that cleared the outputs; None if nothing was cleared."""


def plan_compaction(
    path: Sequence[Entry], settings: ContextSettings, size: ContextSize, options: PlanOptions
) -> CompactionPlan | Refusal:
    """Plan which entries of a path to summarise and which to keep, or return why nothing is done.

    ``path`` may be the whole path or the active one (`Session.active_path`). ``settings`` are those
    for the model (`ContextSettings.for_model`), ``size`` is the size of the path's request.
    """
    view = resolve(path)
    if options.boundary is not None:
        return _plan_up_to(options.boundary, view, settings, size, options)
    last = newest_sent(path)
    if view.compaction is not None and last is not None and last.id == view.compaction.id:
        return Refusal(
            RefusalReason.ALREADY_COMPACTED, "Nothing has been added since the last compaction."
        )
    if size.budget <= 0:
        overhead = describe_overhead(size.fixed, size.window, options.overhead)
        return Refusal(RefusalReason.FIXED_OVERHEAD, overhead)
    weighed = _weigh(view, settings, size.budget, options)
    view = weighed.view
    tokens = weighed.tokens
    cut, is_over = _cut_within_turns(weighed, settings.compaction.keep_turns)
    if options.trigger == "manual" and not is_over:
        cut = _past_large_entry(weighed, cut)
    before = sum(tokens[:cut])
    target = round(settings.compaction.target_of_budget * size.budget)
    oversized: tuple[PrunePlan, ...] = ()
    if is_over:
        room = _room_of_newest(before, weighed.keep, target, settings, size.budget)
        oversized = cut_outputs(view, view.entries[cut:], room, options.count)
    if not before:
        return _nothing_to_summarise(weighed, oversized, settings, size, options)
    if oversized and before + weighed.keep <= target:
        total = sum(tokens)
        message = f"The newest tool outputs take {total - before:,} of {total:,} tokens; cutting them is enough."
        return Refusal(RefusalReason.NOTHING_TO_COMPACT, message, oversized)
    prunes = oversized
    if weighed.pruned is not None:
        prunes = (weighed.pruned, *oversized)
    plan = CompactionPlan(view, settings, options.tools, size.history, size.budget)
    return replace(
        _with_cut(plan, cut, tokens),
        keep_recent=weighed.keep,
        trigger=options.trigger,
        instructions=options.instructions,
        prunes=prunes,
    )


def _weigh(
    view: ContextView, settings: ContextSettings, budget: int, options: PlanOptions
) -> _Weighed:
    # A compaction breaks the prompt cache anyway, so a prune at the same time costs nothing more.
    pruned = None
    if settings.prune.when != "off":
        pruned = prune_all(view, settings, budget, options.tools, options.count)
    if pruned is not None:
        view = pruned.applied(view)
    tokens = ViewWeights(view, options.count).all()
    keep = options.keep_recent
    if keep is None:
        # A user who asks for a compaction wants a shorter history even if it isn't long yet.
        full = min(budget, sum(tokens)) if options.trigger == "manual" else budget
        keep = settings.compaction.keep_recent_tokens(full)
    return _Weighed(view, tokens, keep, pruned)


def _cut_within_turns(weighed: _Weighed, turns: int) -> tuple[int, bool]:
    """Return the result of ``find_cut``, moved so that at most ``turns`` turns are kept.

    If ``turns`` is 0, the number of turns doesn't matter.
    """
    view = weighed.view
    cut, is_over = find_cut(view, weighed.tokens, weighed.keep)
    if not turns:
        return cut, is_over
    valid = valid_cuts(view, weighed.tokens)
    starts = [at for at, entry in enumerate(view.entries) if valid[at] and starts_turn(entry)]
    if len(starts) >= turns and starts[-turns] > cut:
        return starts[-turns], False
    return cut, is_over


def _past_large_entry(weighed: _Weighed, cut: int) -> int:
    """Move a cut that summarises less than half of the tokens past the large entry after it.

    Returns other cuts unchanged.
    """
    tokens = weighed.tokens
    if sum(tokens[:cut]) * 2 >= sum(tokens):
        return cut
    places = _places(weighed.view, tokens)
    within = [place for place in places if sum(tokens[place:]) <= weighed.keep]
    return next(iter(within or places[-1:]), cut)


def _room_of_newest(
    before: int, keep: int, target: int, settings: ContextSettings, budget: int
) -> int:
    """Return how many tokens of ``target`` the summary leaves for the kept outputs.

    The result is at least ``keep``. The outputs may take that much because the model has not seen
    them yet.
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
    """Return the refusal for a plan that would keep everything.

    The refusal's prunes, if any, can be made instead. There are none if they would free too little,
    or if the system prompt and the tools, rather than the messages, fill the window.
    """
    total = sum(weighed.tokens)
    pruned = weighed.pruned
    if options.trigger == "overflow" and total < size.fixed:
        head = describe_overhead(size.fixed, size.window, options.overhead)
        # The server's error already stated a total. A percentage avoids stating another total here.
        part = f"{total / size.total:.0%}" if total * 100 >= size.total else "less than 1%"
        message = f"Messages make up {part} of the request. A summary would not help. By this program's count: {head}"
        return Refusal(RefusalReason.FIXED_OVERHEAD, message)
    after = " once old outputs are cleared" if pruned is not None else ""
    message = (
        f"The messages take only {total:,} tokens{after}, and the newest {weighed.keep:,} are kept."
    )
    if options.trigger == "manual":
        message = "There is nothing to summarise before the newest message."
    if culprit := too_large(weighed.view.entries, weighed.tokens, size.budget // 2):
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
    """Plan to summarise everything before the entry ``boundary`` or before its step."""
    tokens = ViewWeights(view, options.count).all()
    places = [place for place in _places(view, tokens) if view.entries[place].id <= boundary]
    if not places:
        why = f"There is nothing to summarise before #{boundary}."
        if view.compaction is not None and view.entries and boundary <= view.entries[0].id:
            why = f"Everything before #{boundary} has already been summarised."
        return Refusal(RefusalReason.NOTHING_TO_COMPACT, why)
    cut = places[-1]
    plan = CompactionPlan(view, settings, options.tools, size.history, size.budget)
    return replace(
        _with_cut(plan, cut, tokens),
        boundary=view.entries[cut].id,
        trigger=options.trigger,
        instructions=options.instructions,
    )


def recut(
    plan: CompactionPlan, keep_recent: int, count: CountEntry = stored_tokens
) -> CompactionPlan | None:
    """Return the plan with only ``keep_recent`` tokens kept; None if that drops no more entries.

    The summary stays the same, and newly dropped entries are added to ``unsummarised``. If the
    newest step alone is larger than ``keep_recent``, its outputs are cut to that size.
    """
    tokens = ViewWeights(plan.view, count).all()
    cut, is_over = find_cut(plan.view, tokens, keep_recent)
    moved = _with_later_cut(plan, cut, tokens)
    if moved is None:
        return None
    moved = replace(moved, keep_recent=keep_recent)
    if not is_over:
        return moved
    cuts = cut_outputs(plan.view, moved.kept, keep_recent, count)
    return replace(moved, prunes=(*plan.prunes, *cuts))


def without_oldest_turn(
    plan: CompactionPlan, count: CountEntry = stored_tokens
) -> CompactionPlan | None:
    """Return the plan without the oldest kept turn.

    If only one turn is kept, only its oldest step is dropped. Returns None if only one step is
    kept.
    """
    tokens = ViewWeights(plan.view, count).all()
    later = _places(plan.view, tokens, len(plan.dropped))
    turns = [at for at in later if starts_turn(plan.view.entries[at])]
    cut = next(iter(turns or later), None)
    if cut is None:
        return None
    return _with_later_cut(plan, cut, tokens)


def without_tail(plan: CompactionPlan) -> CompactionPlan | None:
    """Return the plan changed to keep no entry; None if it already keeps none."""
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


def _with_later_cut(plan: CompactionPlan, cut: int, tokens: Sequence[int]) -> CompactionPlan | None:
    """Return the plan with a later cut; None if this cut isn't later than the plan's."""
    moved = _with_cut(plan, cut, tokens)
    newly_dropped = moved.dropped[len(plan.dropped) :]
    if not newly_dropped:
        return None
    uncovered = (entry for entry in newly_dropped if entry.is_sent)
    return replace(moved, unsummarised=(*plan.unsummarised, *uncovered))


def carried_details(
    plan: CompactionPlan, summary: str, count: CountText, templates: Templates | None = None
) -> SummaryDetails:
    """Return the details that the program itself adds to a compaction.

    Names that the summary or a kept entry contains need no anchor.
    """
    view = plan.view
    hidden = {EntryState.DROPPED, EntryState.MASKED}
    summarised = [entry for entry in plan.dropped if view.state(entry.id) not in hidden]
    pinned = carried_pins(view, plan.dropped, templates or Templates())
    notes = view.notes.values()
    visible = [summary, *notes, *(pin.text for pin in pinned)]
    for entry in plan.kept:
        if view.is_open(entry.id) or isinstance(entry, AssistantEntry):
            visible.append(texts_of(entry))
    budgets = Budgets.of(plan.settings.compaction, plan.budget)
    used = _used_meanwhile(plan, summarised, "\n".join([summary, *notes]))
    covered = Summarised(summarised, plan.files, plan.tools, used)
    details = carry(covered, view.carried, budgets, count, "\n".join(visible))
    return details.model_copy(update={"pinned": pinned})


def _used_meanwhile(
    plan: CompactionPlan, summarised: Sequence[Entry], summary: str
) -> frozenset[str]:
    """Return the names that the agent used while a summary was prepared and that the summary lacks.

    Each of them occurs in the entries ``summarised``, but neither in the text ``summary`` nor in a
    kept output. Returns an empty set if the summary was not prepared ahead.
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
    remaining = "\n".join([summary, shown_text(outputs)])
    removed = shown_text(summarised)
    return frozenset(name for name in used if name in removed and name not in remaining)


def compaction_entry(
    plan: CompactionPlan, summary: str, count: CountText, templates: Templates | None = None
) -> CompactionEntry:
    """Return the compaction entry for a plan and a model's summary.

    After the summary, the program lists the entries that it does not cover, one line each, as many
    of the newest as fit. If ``summary`` is "", the text of the previous summary is used instead,
    and all entries to summarise are listed. ``tokens_after`` is 0, because the commit measures it.
    """
    if summary.strip():
        unsummarised = plan.unsummarised
    else:
        unsummarised = (*plan.history, *plan.turn_prefix, *plan.unsummarised)
    room = plan.summary_tokens
    lines = digest(unsummarised, room // 3 if summary.strip() else room, count)
    fitted = fit((summary or plan.previous_summary).strip(), room - count(lines), count)
    text = "\n\n".join(filter(None, [fitted, lines]))
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
    """Return a compaction that replaces the text of the view's summary and keeps the same entries.

    Raises:
        ValueError: the view has no summary.
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


def _with_cut(plan: CompactionPlan, cut: int, tokens: Sequence[int]) -> CompactionPlan:
    """Return the plan with entries and sizes filled in.

    ``cut`` is the index of the first entry that is kept. Entries directly before it that are not
    sent are kept, too.
    """
    entries = plan.view.entries
    # Whether the turn is split is decided at the cut itself; only then do entries that are not sent
    # move to the kept side. If the turn's start is no longer in view, everything before the cut is
    # history. A message sent while a call was running doesn't start a turn here, because the call
    # and its result stay together.
    turn = cut
    start = cut
    if not starts_turn(entries[cut]):
        valid = valid_cuts(plan.view, tokens)
        for at in range(cut - 1, -1, -1):
            if valid[at] and starts_turn(entries[at]):
                turn = at
                break
    while start > 0 and not entries[start - 1].is_sent:
        start -= 1
    return replace(
        plan,
        history=tuple(entries[i] for i in range(turn) if tokens[i]),
        turn_prefix=tuple(entries[i] for i in range(turn, cut) if tokens[i]),
        kept=entries[start:],
        dropped=entries[:start],
        first_kept_id=entries[start].id,
        files=_files(plan, entries[:cut]),
        tokens_summarised=sum(tokens[:cut]),
        tokens_kept=sum(tokens[cut:]),
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
    """Plan a prune of everything that may be cleared in a full context; None if that is nothing."""
    rules = PruneRules(settings.prune, budget, tools, pressure=True, minimum=1, count=count)
    return plan_prune(view, rules, Occasion.COMPACTION)
