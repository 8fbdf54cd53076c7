"""Second defence: decides when old tool outputs are cleared, and plans which.

Pruning changes messages that were sent before, which costs the provider's prompt cache. So it waits
until that is free or necessary, and then clears all it can in one entry.
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
"""Smallest output that is cleared, in tokens: a placeholder for a smaller one saves nothing."""
_OWN_WORTH = 8
"""How many times as much the agent's own text is worth as an output with the same names: it can't be
read again."""
_ENOUGH = 0.75
"""Least share of the wanted tokens that a prune under pressure has to free to be made at all."""
_ALL_TEXT = 1_000_000_000
"""Characters of text that stay in a prune of images: more than any text has."""


class Occasion(StrEnum):
    """Why a prune may happen now; its value is stored in the entry as the reason."""

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
    """The circumstances that decide whether to prune now."""

    asked: bool = False
    """The user asked for it."""
    in_work: bool = False
    """The agent is working: turns protect nothing, only the newest tokens and steps do."""
    model_switched: bool = False
    run_ended: bool = False
    cache_cold: bool = False


@frozen
class PrunePlan:
    """Entries to clear, or to cut to ``keep_chars`` characters if that is not 0; outdated ones first.

    ``notes`` are texts added to the placeholders, in the order of ``targets``, or empty.
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
        """Yield the targets with their notes, "" for none."""
        notes = iter(self.notes)
        for target in self.targets:
            yield target, next(notes, "")

    def only(self, kept: AbstractSet[int]) -> "PrunePlan | None":
        """Return the plan with only the targets that are in ``kept``, None if there are none."""
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
        """Return the view as it will be once the plan's entry is on the path."""
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
    """Return why to prune now, None if pruning has to wait.

    With the setting "run_end" it happens after every run and at no other time, as in OpenCode; with
    "off" only if the user asks.
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
    """Whether the context is so full that turns no longer protect their outputs."""
    return size.total > settings.pressure * size.limit


@frozen
class PruneRules:
    """The rules of a prune. ``budget`` is the history budget in tokens."""

    settings: PruneSettings
    budget: int
    tools: TraitsByName
    pressure: bool = False
    minimum: int | None = None
    """Least tokens that a prune must free; None: as the settings say."""
    wanted: int | None = None
    """Tokens to free, after which the rest stays; None clears everything that is not protected."""
    count: CountEntry = stored_tokens
    text: Callable[[str], int] = lambda text: len(text) // 3 + 1
    """Returns the tokens of a note's text; the default is a rough estimate."""


def plan_prune(
    view: ContextView, rules: PruneRules, reason: str = Occasion.PRESSURE
) -> PrunePlan | None:
    """Plan which entries to clear; None if it would free too little.

    Protected are the newest tokens of output, pinned entries, results of protected tools, and the
    results of the last turns or, under pressure, of the last steps. An output that is repeated
    later, because the same call ran again, is only protected by the last steps. Of the rest the
    least valuable outputs are cleared, as many as needed; under pressure also the long arguments of
    old steps.
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
        # A prune that frees too little would be followed at once by a compaction, which prunes too.
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
    """An entry that may be cleared, and the tokens that frees."""

    entry_id: int
    freed: int
    superseded: bool
    own: bool
    """Whether it is the model's own text: long arguments of its calls."""


def _least_valuable(
    blocks: Sequence[_Block], anchors: Sequence[Anchor], rules: PruneRules
) -> list[_Block]:
    """Return the blocks to clear: all outdated ones, then the least valuable until enough is freed.

    A block's value is the sum of the scores of names that it was the last to hold, per token freed.
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
    """Decides, from the newest entry back, which entries are not protected from a prune."""

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
        """Return the tokens that clearing an entry frees, 0 if it is protected or too small.

        It has to be called once for every entry, newest first.
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
        """Whether a result still has output to clear: it is live, or was only cut."""
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
        """Return the tokens that clearing an old step's long arguments frees, 0 if they are protected."""
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
    """Why an output is out of date."""

    REPEATED = "repeated"
    """The same call was made again later."""
    CHANGED = "changed"
    """The file that it shows was changed later."""


def superseded_results(view: ContextView, tools: TraitsByName) -> Mapping[int, Superseded]:
    """Return the results that later ones made outdated, with the reason, by entry id."""
    stale: dict[int, Superseded] = {}
    latest: dict[tuple[str, str], int] = {}
    reads: dict[str, list[int]] = {}
    for call, result in _answered_calls(view):
        if result is None or not view.is_open(result.id):
            continue
        if result.metadata.known_from is not None:
            stale.pop(result.metadata.known_from, None)
            continue  # It refers to the earlier result instead of replacing it.
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
                # A file read whole replaces all its parts read before.
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
    """Plan which entries lose their images because a request has too many or too large ones, else None.

    Images that the model has answered keep half of the limits, so that the next image does not break
    the cache again; newer ones may fill the limits. The newest entry with images keeps them whatever
    their tokens, unless they are too many. Pinned entries keep theirs. Text beside images stays.
    ``tokens`` counts one image, ``budget`` is the history budget.
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
    return PrunePlan(tuple(sorted(targets)), freed, reason, _ALL_TEXT)


def newest_seen(entries: Sequence[Entry]) -> int:
    """Return the id of the newest successful answer, up to which a model has seen the entries; 0: none."""
    answer = newest(entries, AssistantEntry, where=lambda entry: not entry.error)
    return 0 if answer is None else answer.id
