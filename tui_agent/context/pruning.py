"""Pruning: decides when old tool outputs are cleared, and plans which ones.

Pruning is the second defence against a full context window, after truncation. It changes messages
that were already sent, which breaks the provider's prompt cache. So it waits until that costs
nothing or is necessary (`occasion`). It then clears everything allowed, or only as much as wanted,
with a single prune entry: outputs and, under pressure, long arguments. Images that exceed their
limits are planned separately (`plan_image_prune`). ``agent.context_keeper`` calls this module and
appends the entry; a compaction prunes without calling `occasion`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from enum import StrEnum

from tui_agent.context.anchors import Anchor, find_anchors
from tui_agent.context.arguments import LONG_ARGUMENT_CHARS, parse_object
from tui_agent.context.budget import (
    PLACEHOLDER_TOKENS,
    ContextSize,
    CountEntry,
    ViewWeights,
    long_share,
    stored_tokens,
)
from tui_agent.context.files import call_path
from tui_agent.context.settings import ImageSettings, PruneSettings
from tui_agent.context.view import ContextView, EntryState
from tui_agent.lazy import frozen
from tui_agent.session.entries import (
    ALL_TEXT,
    AssistantEntry,
    Entry,
    ImagePart,
    PruneEntry,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.path_queries import newest
from tui_agent.session.tool_traits import TraitsByName

MIN_OUTPUT_TOKENS = 2 * PLACEHOLDER_TOKENS
"""Smallest output that is cleared, in tokens, because clearing a smaller one would save too
little."""
_OWN_WORTH = 8
"""The agent's own text is this many times as valuable as an output with the same names, because it
can't be read again."""
_ENOUGH = 0.75
"""A prune under pressure is made only if it frees at least this share of the tokens that it should
free (``PruneRules.wanted``)."""


class Occasion(StrEnum):
    """The reason for a prune. The value is stored in the prune entry."""

    PRESSURE = "context under pressure"
    COLD_CACHE = "prompt cache is cold"
    MODEL_SWITCH = "model switch"
    MANUAL = "asked for"
    RUN_END = "end of the run"
    IMAGES = "too many images"
    HEAVY_IMAGES = "images too heavy"
    COMPACTION = "compaction"


@frozen
class Moment:
    """The situation in which a prune is considered.

    It decides whether to prune now. ``in_work`` also decides which entries are protected.
    """

    asked: bool = False
    """Whether the user asked for the prune."""
    in_work: bool = False
    """Whether the agent is working. If so, only the newest tokens and steps are protected, not
    whole turns."""
    model_switched: bool = False
    run_ended: bool = False
    cache_cold: bool = False


@frozen
class PrunePlan:
    """A plan to clear entries or, if ``keep_chars`` isn't 0, to cut their texts to that length.

    ``targets`` are the ids of the entries. ``notes`` contains a text for the placeholder of each of
    them, in the same order; it is empty if no target has a note.
    """

    targets: tuple[int, ...]
    tokens_freed: int
    reason: str
    keep_chars: int = 0
    notes: tuple[str, ...] = ()

    def entry(self) -> PruneEntry:
        return PruneEntry(
            targets=self.targets,
            tokens_freed=self.tokens_freed,
            reason=self.reason,
            keep_chars=self.keep_chars,
            notes=self.notes,
        )

    def _noted(self) -> Iterator[tuple[int, str]]:
        """Yield (target, note) for each target of the plan; the note is "" if there is none."""
        notes = iter(self.notes)
        for target in self.targets:
            yield target, next(notes, "")

    def only(self, kept: AbstractSet[int]) -> "PrunePlan | None":
        """Return the plan for only those targets that are in ``kept``; None if there are none.

        ``tokens_freed`` is reduced in proportion to the number of targets.
        """
        targets: list[int] = []
        notes: list[str] = []
        for target, note in self._noted():
            if target in kept:
                targets.append(target)
                notes.append(note)
        if not targets:
            return None
        freed = self.tokens_freed * len(targets) // len(self.targets)
        return replace(
            self,
            targets=tuple(targets),
            tokens_freed=freed,
            notes=tuple(notes) if self.notes else (),
        )

    def applied(self, view: ContextView) -> ContextView:
        """Return the view as it will be after the plan's entry is appended."""
        states = dict(view.states)
        kept_chars = dict(view.kept_chars)
        notes = dict(view.notes)
        for target, note in self._noted():
            states[target] = EntryState.PRUNED
            kept_chars.pop(target, None)
            notes.pop(target, None)
            if self.keep_chars:
                kept_chars[target] = self.keep_chars
            if note:
                notes[target] = note
        return replace(view, states=states, kept_chars=kept_chars, notes=notes)


def occasion(settings: PruneSettings, size: ContextSize, moment: Moment) -> Occasion | None:
    """Return the reason to prune now, or None if pruning has to wait.

    With the setting "run_end", old outputs are cleared after every run (as in OpenCode) and when
    the user asks; with "off", only when the user asks.
    """
    if moment.asked:
        return Occasion.MANUAL
    if settings.when == "off":
        return None
    if settings.when == "run_end":
        return Occasion.RUN_END if moment.run_ended else None
    if moment.model_switched:
        return Occasion.MODEL_SWITCH
    if under_pressure(settings, size):
        return Occasion.PRESSURE
    return Occasion.COLD_CACHE if moment.cache_cold else None


def under_pressure(settings: PruneSettings, size: ContextSize) -> bool:
    """Return True if the context is so full that only the last steps' outputs are protected."""
    return size.total > settings.pressure * size.limit


@frozen
class PruneRules:
    """The rules that `plan_prune` follows. ``budget`` is the history budget in tokens."""

    settings: PruneSettings
    budget: int
    tools: TraitsByName
    pressure: bool = False
    """Whether only the last steps are protected from pruning, and not the last turns."""
    minimum: int | None = None
    """Minimum number of tokens that a prune must free; None for the minimum in the settings."""
    wanted: int | None = None
    """Number of tokens to free, beginning with the least valuable outputs; None to clear all that
    isn't protected."""
    count: CountEntry = stored_tokens
    text: Callable[[str], int] = lambda text: len(text) // 3 + 1
    """Counts the tokens of a note. The default is a rough estimate."""


def plan_prune(
    view: ContextView, rules: PruneRules, reason: str = Occasion.PRESSURE
) -> PrunePlan | None:
    """Plan which entries to clear; None if that would free too little.

    The following are protected: the newest tokens of output, pinned entries, the results of
    protected tools, and all results of the last turns (or, under pressure, of the last steps). A
    result that is outdated because the call was repeated is protected only in the last steps. Of
    all others, outdated results and then the least valuable ones are cleared until ``rules.wanted``
    tokens are freed. Under pressure, the long arguments of old calls may be cleared, too.
    """
    weights = ViewWeights(view, rules.count)
    zones = _Zones(weights, rules)
    superseded = superseded_results(view, rules.tools)
    blocks: list[_Block] = []
    for entry in reversed(view.entries):
        repeated = superseded.get(entry.id) is Superseded.REPEATED
        if freed := zones.exposed(entry, repeated=repeated):
            own = isinstance(entry, AssistantEntry)
            blocks.append(_Block(entry.id, freed, superseded=entry.id in superseded, own=own))
    minimum = rules.minimum
    if minimum is None:
        minimum = rules.settings.worthwhile_tokens(rules.budget)
    if rules.pressure and rules.wanted is not None:
        # A prune that frees too little would be followed at once by a compaction, which also prunes.
        minimum = max(minimum, round(rules.wanted * _ENOUGH))
    if not blocks or sum(block.freed for block in blocks) < minimum:
        return None
    from tui_agent.context.kept_lines import write_notes

    anchors = find_anchors(view.entries, rules.tools, most=rules.settings.names_in_use)
    chosen = _least_valuable(blocks, anchors, rules)
    freed = sum(block.freed for block in chosen)
    ordered = sorted(chosen, key=lambda block: (not block.superseded, block.entry_id))
    targets = tuple(block.entry_id for block in ordered)
    room = rules.settings.notes_tokens(freed, rules.budget)
    notes = write_notes(view, targets, room, rules.text, anchors)
    freed -= sum(rules.text(note) for note in notes if note)
    return PrunePlan(targets, freed, str(reason), notes=notes if any(notes) else ())


@frozen
class _Block:
    """An entry that a prune may clear; ``freed`` is the number of tokens that clearing it frees."""

    entry_id: int
    freed: int
    superseded: bool
    """Whether a later result made this one outdated."""
    own: bool
    """Whether this is text that the model wrote, that is, the long arguments of its calls."""


def _least_valuable(
    blocks: Sequence[_Block], anchors: Sequence[Anchor], rules: PruneRules
) -> list[_Block]:
    """Return the outdated blocks, then the least valuable ones until clearing them frees enough.

    A block's value is the sum of the scores of its anchors (names whose last mention is in the
    entry), per token freed; the value of the model's own text is multiplied by `_OWN_WORTH`. All
    blocks are returned if ``rules.wanted`` is None.
    """
    if rules.wanted is None:
        return list(blocks)
    values: dict[int, float] = {}
    for anchor in anchors:
        values[anchor.entry_id] = values.get(anchor.entry_id, 0.0) + anchor.score
    ranked: list[tuple[bool, float, int, _Block]] = []
    for block in blocks:
        worth = values.get(block.entry_id, 0.0) * (_OWN_WORTH if block.own else 1)
        ranked.append((not block.superseded, worth / block.freed, block.entry_id, block))
    chosen: list[_Block] = []
    left = rules.wanted + round(rules.budget * rules.settings.notes_share)
    for *_rank, block in sorted(ranked):
        if left > 0 or block.superseded:
            chosen.append(block)
            left -= block.freed
    return chosen


class _Zones:
    """Decides, going from the newest entry back, which entries a prune may clear."""

    def __init__(self, weights: ViewWeights, rules: PruneRules) -> None:
        self._weights = weights
        self._rules = rules
        self._turns = 0
        self._steps = 0
        self._output = 0
        settings = rules.settings
        budget = rules.budget
        self._protected = min(settings.protect_tokens, round(budget * settings.protect_share))
        self._protected_steps = min(
            settings.protect_steps, max(1, budget // max(1, settings.step_budget))
        )

    def exposed(self, entry: Entry, *, repeated: bool) -> int:
        """Return the tokens that are freed by clearing an entry; 0 if it is protected or too small.

        ``repeated`` says that a later result of the same call replaces this one. Call this method
        once for every entry, newest first.
        """
        if isinstance(entry, UserEntry) and entry.synthetic is None:
            self._turns += 1
        elif isinstance(entry, AssistantEntry) and entry.tool_calls:
            self._steps += 1
            return self._arguments(entry)
        if not isinstance(entry, ToolResultEntry) or not self._weights.is_paired(entry):
            return 0
        if not self._is_left(entry) or self._is_protected(entry.tool):
            return 0
        tokens = self._weights.of(entry)
        if not repeated:
            self._output += tokens
        in_steps = self._steps < self._protected_steps
        if tokens < MIN_OUTPUT_TOKENS or (in_steps and (repeated or self._rules.pressure)):
            return 0
        in_turns = not self._rules.pressure and self._turns < self._rules.settings.protect_turns
        beyond = repeated or (not in_turns and self._output > self._protected)
        return tokens - PLACEHOLDER_TOKENS if beyond else 0

    def _is_left(self, entry: ToolResultEntry) -> bool:
        """Return True if a prune can still clear output of a result, which is sent whole or cut."""
        view = self._weights.view
        state = view.state(entry.id)
        return state is EntryState.LIVE or (
            state is EntryState.PRUNED and entry.id in view.kept_chars
        )

    def _is_protected(self, tool: str) -> bool:
        chosen = self._rules.settings.protected_tools
        if chosen is None:
            return self._rules.tools[tool].protected
        return tool in chosen

    def _arguments(self, entry: AssistantEntry) -> int:
        """Return how many tokens are freed by clearing the long arguments of an answer.

        Returns 0 if the answer is protected, or if this would free too little.
        """
        if (
            not self._rules.pressure
            or self._steps <= self._protected_steps
            or self._output <= self._protected
        ):
            return 0
        if self._weights.view.state(entry.id) is not EntryState.LIVE:
            return 0
        freed = round(self._weights.of(entry) * long_share(entry, LONG_ARGUMENT_CHARS))
        return freed if freed >= MIN_OUTPUT_TOKENS else 0


class Superseded(StrEnum):
    """The reason why an output is out of date."""

    REPEATED = "repeated"
    """The output is outdated because the call was repeated, or because a later read showed the
    whole file."""
    CHANGED = "changed"
    """The output is outdated because the file that it shows was changed later."""


def superseded_results(view: ContextView, tools: TraitsByName) -> Mapping[int, Superseded]:
    """Return why results are outdated, by the entry id of the result."""
    stale: dict[int, Superseded] = {}
    latest: dict[tuple[str, str], int] = {}
    reads: dict[str, list[int]] = {}
    for call, result in _answered_calls(view):
        if result is None or not view.is_open(result.id):
            continue
        if result.metadata.known_from is not None:
            stale.pop(result.metadata.known_from, None)
            continue  # This output refers to the earlier result and doesn't replace it.
        traits = tools[call.tool]
        completed = result.status is ToolStatus.COMPLETED
        if traits.repeatable and (completed or traits.repeats_failures):
            key = (call.tool, call.arguments)
            if key in latest:
                stale[latest[key]] = Superseded.REPEATED
            latest[key] = result.id
        file = result.metadata.path or call_path(call.arguments)
        if completed and traits.reads and file:
            earlier = reads.setdefault(file, [])
            if len(parse_object(call.arguments) or ()) == 1 and result.metadata.truncation is None:
                # A read of the whole file replaces all earlier reads of parts.
                stale.update(dict.fromkeys(earlier, Superseded.REPEATED))
                earlier.clear()
            earlier.append(result.id)
        elif completed and traits.writes:
            for name in {*result.metadata.modified_files, file}:
                for read in reads.pop(name or "", ()):
                    stale.setdefault(read, Superseded.CHANGED)
    return stale


def _answered_calls(view: ContextView) -> Iterator[tuple[ToolCallPart, ToolResultEntry | None]]:
    for entry in view.entries:
        if isinstance(entry, AssistantEntry):
            yield from zip(entry.tool_calls, view.results.get(entry.id, ()), strict=True)


def plan_image_prune(
    view: ContextView, settings: ImageSettings, budget: int, tokens: Callable[[ImagePart], int]
) -> PrunePlan | None:
    """Plan which entries lose their images so that the images keep to the limits.

    The limits are a number of images and a share of ``budget``, the history budget, in tokens. If
    one is exceeded, entries keep their images from the newest back, as long as they fit. Entries
    after the model's last answer may fill the limits; older ones may fill only half, so that the
    next image doesn't break the cache again. An entry whose images don't fit is skipped, and an
    older one with fewer tokens may still keep its images. Pinned entries keep their images.
    ``tokens`` returns the tokens of one image. Returns None if the limits are met, or if no entry
    can lose any images.
    """
    loose: list[tuple[int, int, int]] = []
    count = 0
    weight = 0
    kept = 0
    kept_tokens = 0
    for entry in view.entries:
        if not view.is_open(entry.id) or not (images := entry.images):
            continue
        size = sum(map(tokens, images))
        count += len(images)
        weight += size
        if view.state(entry.id) is EntryState.PINNED:
            kept += len(images)
            kept_tokens += size
        else:
            loose.append((entry.id, len(images), size))
    heaviest = round(budget * settings.max_tokens_share)
    too_many = count > settings.max_count
    if not too_many and weight <= heaviest:
        return None
    seen = newest_seen(view.entries)
    targets: list[int] = []
    freed = 0
    for index, (entry_id, number, size) in enumerate(sorted(loose, reverse=True)):
        part = 1 if index == 0 or entry_id > seen else 2
        light = index == 0 or kept_tokens + size <= heaviest // part
        if light and kept + number <= settings.max_count // part:
            kept += number
            kept_tokens += size
        else:
            targets.append(entry_id)
            freed += size
    if not targets:
        return None
    reason = Occasion.IMAGES if too_many else Occasion.HEAVY_IMAGES
    return PrunePlan(tuple(sorted(targets)), freed, reason, ALL_TEXT)


def newest_seen(entries: Sequence[Entry]) -> int:
    """Return the id of the newest answer that did not fail; 0 if there is none.

    A model has already read the entries before this answer.
    """
    answer = newest(entries, AssistantEntry, where=lambda entry: not entry.error)
    return 0 if answer is None else answer.id
