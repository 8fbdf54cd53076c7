"""The one measure of how big the context is, and the thresholds derived from it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tui_agent.context.estimate import Estimate, RequestModel, appended_tokens, estimate_path
from tui_agent.context.reports import Report, is_plausible, is_stale, is_suspect, judge
from tui_agent.context.settings import ContextSettings
from tui_agent.context.tokens import TokenCounter
from tui_agent.session.entries import AssistantEntry, CompactionEntry, Entry, ReasoningPart, SystemEntry
from tui_agent.session.path_queries import newest, place_of_newest

_SECTION = re.compile(r"<([a-z][\w-]*)((?:\s[^<>]*)?)>\n?(.*?)</\1>", re.DOTALL)
_PATH = re.compile(r'(?:path|name|file)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """What is known of a model's sizes, in tokens. ``origin`` says where the window's number comes from."""

    model: str
    window: int
    max_output: int | None = None
    origin: Literal["catalog", "config", "server", "learnt", "assumed"] = "catalog"
    vision: bool = True


@dataclass(frozen=True, slots=True)
class ContextSize:
    """How much of the window the next request takes, in tokens.

    ``exact_until`` is the entry whose reported usage the total builds on, None when all of it is estimated.
    ``threshold`` is where automatic compaction acts, None when it never does.
    """

    fixed: int
    history: int
    total: int
    window: int
    reserve: int
    threshold: int | None
    exact_until: int | None
    estimated: bool
    window_origin: str = "catalog"

    @property
    def percent(self) -> float:
        """Share of the window in use, 0 to 100 and more."""
        return 100 * self.total / self.window if self.window else 0.0

    @property
    def budget(self) -> int:
        """H: the tokens history may take before compaction."""
        return max(0, (self.threshold if self.threshold is not None else self.window - self.reserve) - self.fixed)


@dataclass(frozen=True, slots=True)
class SwitchAhead:
    """The next request with the model of now, and with another: as the history is, and after pruning (tokens)."""

    before: ContextSize
    after: ContextSize
    pruned: int

    @property
    def fits(self) -> bool:
        """Whether the other model can go on without a compaction."""
        size = self.after
        return self.pruned <= (size.window - size.reserve if size.threshold is None else size.threshold)


@dataclass(frozen=True, slots=True)
class FixedPart:
    """One part of the fixed overhead: a system block or a section of one, or a tool."""

    label: str
    tokens: int
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class Overhead:
    """The fixed overhead and what it leaves. ``parts`` are the largest first."""

    tokens: int
    budget: int
    crowded: bool
    """Worth a warning at the start: over ``compaction.overhead_share`` of the window, or a history budget below
    ``compaction.minimum_budget``."""
    parts: tuple[FixedPart, ...]
    early: int | None = None
    """The threshold, when it is what makes the budget small and not the window."""


def within(limits: ModelLimits, settings: ContextSettings) -> ModelLimits:
    """Return the limits with the user's own window, where that is smaller."""
    own = settings.for_model(limits.model).window
    if own is None or own >= limits.window:
        return limits
    return replace(limits, window=own, origin="config")


def reserve(limits: ModelLimits, settings: ContextSettings) -> int:
    """Return the tokens kept free for the answer."""
    return settings.for_model(limits.model).compaction.reserve(limits.window, limits.max_output)


def threshold(limits: ModelLimits, settings: ContextSettings) -> int | None:
    """Return the tokens at which automatic compaction acts, None when it never does."""
    compaction = settings.for_model(limits.model).compaction
    return compaction.threshold_at(limits.window, reserve(limits, settings))


def measure(
    path: Sequence[Entry],
    limits: ModelLimits,
    settings: ContextSettings,
    counter: TokenCounter,
) -> ContextSize:
    """Measure the next request of a path.

    The newest report of the provider that still holds, plus an estimate of what was appended since; without one, an
    estimate of everything.
    """
    return Meter(limits, settings, counter).measure(path)


def estimate_tokens(path: Sequence[Entry], limits: ModelLimits, counter: TokenCounter) -> int:
    """Return the estimate of a whole request without regard to reports: what a report is compared with to learn."""
    return counter.calibrated(estimate_path(path, counter, RequestModel(limits.model, limits.vision)).total)


_HEAD_AMONG = 50
"""Entries of a path among which its head is."""


@dataclass(slots=True)
class Meter:
    """Measures one growing path again and again; only what was appended costs time.

    What it remembers never changes a result: ``measure`` with a fresh one gives the same.
    """

    limits: ModelLimits
    settings: ContextSettings
    counter: TokenCounter
    _estimate: Estimate | None = field(default=None, init=False)
    _head: tuple[SystemEntry, int] | None = field(default=None, init=False)
    _barren: tuple[Entry, Entry, int] | None = field(default=None, init=False)

    def measure(self, path: Sequence[Entry]) -> ContextSize:
        """Measure the next request of a path."""
        limits = within(self.limits, self.settings)
        asked = RequestModel(limits.model, limits.vision)
        anchor = find_anchor(path, limits.model, self._searched(path))
        if anchor is None:
            self._barren = (path[0], path[-1], len(path)) if path else None
            self._estimate = estimate_path(path, self.counter, asked, self._estimate)
            fixed = self.counter.calibrated(self._estimate.head)
            total = self.counter.calibrated(self._estimate.total)
            exact_until, estimated = None, True
        else:
            appended = appended_tokens(path[anchor:], self.counter, asked)
            fixed = self.counter.calibrated(self._fixed(path))
            reported, says_all = reported_tokens(path[anchor], self.counter)
            total = reported + self.counter.calibrated(appended)
            exact_until = path[anchor].id
            estimated = appended > 0 or not says_all or not _has_own_head(path, anchor)
        return ContextSize(
            fixed=min(fixed, total),
            history=max(0, total - fixed),
            total=total,
            window=limits.window,
            reserve=reserve(limits, self.settings),
            threshold=threshold(limits, self.settings),
            exact_until=exact_until,
            estimated=estimated,
            window_origin=limits.origin,
        )

    def estimate_tokens(self, path: Sequence[Entry]) -> int:
        """Return the estimate of the whole request without regard to reports."""
        asked = RequestModel(self.limits.model, self.limits.vision)
        self._estimate = estimate_path(path, self.counter, asked, self._estimate)
        return self.counter.calibrated(self._estimate.total)

    def _searched(self, path: Sequence[Entry]) -> int:
        """Return how many entries at the path's start are known to hold no report that counts."""
        if self._barren is None:
            return 0
        first, last, length = self._barren
        same = length <= len(path) and path[0] is first and path[length - 1] is last
        return length if same else 0

    def _fixed(self, path: Sequence[Entry]) -> int:
        system = newest(path, SystemEntry)
        if system is None:
            return 0
        if self._head is None or self._head[0] is not system:
            self._head = (system, system.tokens or self.counter.head(system))
        return self._head[1]


def find_anchor(path: Sequence[Entry], model: str, start: int = 0) -> int | None:
    """Return the position of the newest answer whose reported usage still tells the context's size.

    It does not when the answer failed, was cut off or came from another model, when the report is missing or absurd,
    and when the view changed after it. Entries before ``start`` are not looked at.
    """
    for at in range(len(path) - 1, start - 1, -1):
        entry = path[at]
        if entry.breaks_prefix:
            return None
        if isinstance(entry, AssistantEntry) and entry.model == model and _tells_size(path, at):
            return at
    return None


def newest_report(path: Sequence[Entry]) -> AssistantEntry | None:
    """Return the newest answer if it is whole, not followed by a compaction, and its report can be its size."""
    at = place_of_newest(path, AssistantEntry, CompactionEntry)
    entry = None if at is None else path[at]
    return entry if at is not None and isinstance(entry, AssistantEntry) and _tells_size(path, at) else None


def _has_own_head(path: Sequence[Entry], anchor: int) -> bool:
    """Whether an answer was given to a head of this program; one that came from another was given to a foreign one."""
    return any(isinstance(entry, SystemEntry) and entry.id for entry in path[: min(anchor, _HEAD_AMONG)])


def _tells_size(path: Sequence[Entry], at: int) -> bool:
    answer = path[at]
    if not isinstance(answer, AssistantEntry) or not _is_valid(answer):
        return False
    if not is_suspect(answer):
        return True
    earlier = (entry for entry in reversed(path[:at]) if isinstance(entry, AssistantEntry))
    return not any(entry.model == answer.model and is_stale(answer, entry) for entry in earlier)


def reported_tokens(entry: Entry, counter: TokenCounter) -> tuple[int, bool]:
    """Return what a report says the next request starts from, all that was read and written, and whether it says all.

    Reasoning that does not go back to the model is not part of it. Where an answer's reported length cannot be that
    of what goes back (a server that counts reasoning without telling, or nonsense), its estimate takes the place.
    """
    if not isinstance(entry, AssistantEntry) or entry.usage is None:
        return 0, False
    goes_back = any(isinstance(part, ReasoningPart) and part.blob for part in entry.parts)
    written = entry.usage.output - (0 if goes_back else min(entry.usage.reasoning, entry.usage.output))
    estimate = counter.entry(entry)
    if is_plausible(written, estimate):
        return entry.usage.prompt + written, True
    return entry.usage.prompt + estimate, False


def overhead(system: SystemEntry, limits: ModelLimits, settings: ContextSettings, counter: TokenCounter) -> Overhead:
    """Return the fixed overhead of every request and its largest parts."""
    limits = within(limits, settings)
    tokens = counter.calibrated(counter.head(system))
    at = threshold(limits, settings)
    budget = max(0, (limits.window - reserve(limits, settings) if at is None else at) - tokens)
    parts = sorted(head_parts(system, counter), key=lambda part: -part.tokens)
    allowed = settings.for_model(limits.model).compaction
    crowded = budget < allowed.minimum_budget or tokens > allowed.overhead_share * limits.window
    room = limits.window - reserve(limits, settings) - tokens
    early = at if budget < allowed.minimum_budget <= room else None
    return Overhead(tokens, budget, crowded, tuple(parts), early)


def overhead_parts(parts: Sequence[FixedPart]) -> tuple[tuple[str, int], ...]:
    """Return the names and tokens of a head's parts, all tools as one."""
    tools = [part.tokens for part in parts if part.tool is not None]
    named = [(part.label, part.tokens) for part in parts if part.tool is None]
    return (*named, *([("tools", sum(tools))] if tools else []))


def describe_overhead(fixed: int, window: int, parts: Sequence[tuple[str, int]]) -> str:
    """Return a sentence that names what leaves no room: ``Fixed overhead 21k of 32k: tools 12k, AGENTS.md 7k``."""
    largest = sorted(parts, key=lambda part: -part[1])[:3]
    told = ", ".join(f"{name} {_thousands(tokens)}" for name, tokens in largest)
    return f"Fixed overhead {_thousands(fixed)} of {_thousands(window)}{f': {told}' if told else ''}."


def _thousands(tokens: int) -> str:
    return str(tokens) if tokens < 1_000 else f"{tokens / 1_000:.1f}".removesuffix(".0") + "k"


def head_parts(system: SystemEntry, counter: TokenCounter) -> list[FixedPart]:
    """Return the parts of a head in the order they are sent."""
    parts = [FixedPart(f"tool {tool.name}", counter.schema(tool), tool.name) for tool in system.tools]
    return parts + [FixedPart(label, counter.text(text)) for label, text in head_sections(system)]


def head_sections(system: SystemEntry) -> Iterator[tuple[str, str]]:
    """Yield the parts of a head's system messages with their texts.

    A block that holds tagged sections (``<instructions path="AGENTS.md">``) is told apart by them.
    """
    for number, block in enumerate(system.blocks):
        rest = _SECTION.sub("", block)
        if rest.strip():
            yield "agent prompt" if number == 0 else "environment", rest
        for section in _SECTION.finditer(block):
            path = _PATH.search(section[2])
            yield path[1] if path else section[1], section[0]


def _is_valid(entry: AssistantEntry) -> bool:
    if entry.error is not None or entry.interrupted or entry.finish in ("error", "interrupted"):
        return False
    return judge(entry.usage, entry.estimate) is Report.USABLE
