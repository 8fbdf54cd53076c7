"""Measures the context: the size of the next request, of each entry in it, and the limits it has.

There are three measures. `Meter` gives the size that is shown and acted on; it builds on the
provider's reports. `Weights` counts each entry of a view exactly as it is sent. `ViewWeights` is a
quicker estimate for plans, which ask often.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from enum import StrEnum
from operator import attrgetter
from typing import Literal

from tui_agent.context.arguments import LONG_ARGUMENT_CHARS, argument_texts
from tui_agent.context.projection import ModelTraits
from tui_agent.context.rendering import short_count
from tui_agent.context.request import ContentText, ImageRef, Message
from tui_agent.context.settings import ContextSettings
from tui_agent.context.tokens import REQUEST_TOKENS, TokenCounter
from tui_agent.context.truncation import utf8_size
from tui_agent.context.view import ContextView, EntryState, resolve
from tui_agent.lazy import LazyPattern, dataclass, frozen
from tui_agent.session.entries import (
    INTERRUPTED_OUTPUT,
    AssistantEntry,
    CompactionEntry,
    Entry,
    ShellEntry,
    SystemEntry,
    ToolResultEntry,
    UserEntry,
)
from tui_agent.session.path_queries import PathMark, newest, place_of_newest
from tui_agent.session.records import Reported

_NO_HEAD = 4 * REQUEST_TOKENS
"""Most tokens that a request without prompt and tools takes, for any model."""

_STAND_IN = (Message("tool", (ContentText(INTERRUPTED_OUTPUT),)),)
"""Message that is sent in place of a missing result."""

_HEAD_AMONG = 50
"""First entries of a path that are searched for its head."""

MIN_SHARE = 1 / 3
"""Reported over estimated tokens of a request below which a report is not its size: tokenizers
differ by about 2."""

SLACK_BELOW = 200
"""Tokens by which a report may always be below ``MIN_SHARE``: the overhead of a small request is a
guess."""

MAX_SHARE = 5.0
"""Reported over estimated tokens above which a report is a mistake. Some gateways add prompts of
their own."""

SLACK_ABOVE = 2_000
"""Tokens by which a report may always be above ``MAX_SHARE``."""

SUSPECT_SHARE = 1.25
"""Reported over estimated tokens above which a report is compared with earlier ones (``is_stale``)."""

NOTICED_SHARE = 1 / 3
"""Share of the tokens removed from a request by which the next report has to fall to be believed."""

SMALLEST_CUT = 1_000
"""Tokens of the smallest window that a server may have; a smaller report is a miscount."""

_SAME_SIZE = 0.01
"""Largest relative difference in size of two requests that may be reported with the same tokens."""

PLACEHOLDER_TOKENS = 40
"""Tokens assumed for a placeholder."""

_BYTES_PER_TOKEN = 3
"""Bytes per token assumed for text beside a placeholder: few, so that plans free a little more than
they say."""

CountEntry = Callable[[Entry], int]
"""Returns the tokens of an entry as it was appended."""

stored_tokens: CountEntry = attrgetter("tokens")
"""Returns the count that is stored with an entry."""

_SECTION = LazyPattern(r"<([a-z][\w-]*)((?:\s[^<>]*)?)>\n?(.*?)</\1>", re.DOTALL)
_PATH = LazyPattern(r'(?:path|name|file)="([^"]*)"')


@frozen
class ModelLimits:
    """A model's window and longest answer, in tokens; ``origin`` is the source of the window's size."""

    model: str
    window: int
    max_output: int | None = None
    origin: Literal["catalog", "config", "server", "learnt", "assumed"] = "catalog"
    vision: bool = True
    documents: bool = False
    price_tier: int | None = None
    """Tokens of a request above which the model costs more, None if its price is the same for all."""

    @property
    def asked(self) -> ModelTraits:
        """The model's traits that change a request's size."""
        return ModelTraits(self.model, vision=self.vision, documents=self.documents)


@frozen
class ContextSize:
    """How much of the window the next request takes, in tokens.

    ``exact_until`` is the entry whose reported usage the total builds on, None if the whole total is
    an estimate; ``estimated`` says whether any part is. ``threshold`` is the size at which automatic
    compaction acts, None if it never does.
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
    def is_known(self) -> bool:
        """Whether the size means anything: the head is counted, or the provider reported usage."""
        return self.fixed > _NO_HEAD or self.exact_until is not None

    @property
    def percent(self) -> float:
        """Percentage of the window in use; it may exceed 100."""
        if self.window:
            return 100 * self.total / self.window
        return 0.0

    @property
    def limit(self) -> int:
        """Tokens a request may take: the threshold, or without one the window less the reserve."""
        if self.threshold is None:
            return self.window - self.reserve
        return self.threshold

    @property
    def budget(self) -> int:
        """H: the tokens history may take before compaction."""
        return max(0, self.limit - self.fixed)


@frozen
class SwitchAhead:
    """The next request's size with the current model (``before``) and with another one (``after``).

    ``pruned`` is its size with the other model after pruning, in tokens.
    """

    before: ContextSize
    after: ContextSize
    pruned: int

    @property
    def fits(self) -> bool:
        """Whether the other model can continue without a compaction."""
        return self.pruned <= self.after.limit


@frozen
class FixedPart:
    """One part of the fixed tokens: a system block, a section of one, or a tool."""

    label: str
    tokens: int
    tool: str | None = None


@frozen
class Overhead:
    """The fixed tokens, and the history budget that they leave.

    ``parts`` has the largest first; it is empty unless the overhead is ``crowded``.
    """

    tokens: int
    budget: int
    crowded: bool
    """Whether the user is warned at the start: the overhead exceeds ``compaction.overhead_share`` of
    the window, or the history budget is below ``compaction.minimum_budget``."""
    parts: tuple[FixedPart, ...]
    early: int | None = None
    """The threshold in tokens, if the budget is too small only because of it; else None."""


def within(limits: ModelLimits, settings: ContextSettings) -> ModelLimits:
    """Return the limits with the window from the settings, if that is smaller."""
    own = settings.for_model(limits.model).window
    if own is None or own >= limits.window:
        return limits
    return replace(limits, window=own, origin="config")


def reserve(limits: ModelLimits, settings: ContextSettings) -> int:
    return settings.for_model(limits.model).compaction.reserve(limits.window, limits.max_output)


def threshold(limits: ModelLimits, settings: ContextSettings) -> int | None:
    """Return the tokens at which automatic compaction acts, None if it never does."""
    compaction = settings.for_model(limits.model).compaction
    return compaction.threshold_at(
        limits.window, reserve(limits, settings), price_tier=limits.price_tier
    )


class Weights:
    """Counts the entries of one view exactly as the model is sent them, in uncorrected tokens."""

    def __init__(self, view: ContextView, counter: TokenCounter, asked: ModelTraits) -> None:
        self._view = view
        self._counter = counter
        self._asked = asked
        self._answered = view.answered()

    def head(self) -> int:
        system = self._view.system
        return REQUEST_TOKENS + (self._counter.stored(system) if system else 0)

    def all(self) -> Iterator[tuple[Entry, int]]:
        """Yield the entries that are sent, in the order of the request, with their tokens."""
        compaction = self._view.compaction
        if compaction is None:
            entries = self._view.entries
        else:
            entries = (compaction, *self._view.entries)
        for entry in entries:
            if tokens := self.of(entry):
                yield entry, tokens

    def of(self, entry: Entry) -> int:
        """Return the tokens an entry adds to the request, 0 if it is not sent.

        Placeholders for missing results count for the entry of the call.
        """
        if not entry.is_sent or self._view.states.get(entry.id) is EntryState.DROPPED:
            return 0
        if isinstance(entry, ToolResultEntry) and entry.id not in self._answered:
            return 0
        if entry.kind == "compaction" and entry is not self._view.compaction:
            return 0
        if isinstance(entry, AssistantEntry):
            return self._answer(entry)
        if self._is_whole(entry):
            return self._counter.stored(entry)
        return self._counted(entry)

    def _answer(self, entry: AssistantEntry) -> int:
        results = self._view.results.get(entry.id, ())
        is_foreign = entry.model != self._asked.model and bool(entry.reasoning)
        if self._is_whole(entry) and not self._is_parted(results) and not is_foreign:
            tokens = self._counter.stored(entry)
        else:
            tokens = self._counted(entry)
        # Placeholders are counted only if there are any: otherwise no encoding has to be loaded.
        if None in results:
            return tokens + self._counter.messages(_STAND_IN) * results.count(None)
        return tokens

    def _is_parted(self, results: Sequence[ToolResultEntry | None]) -> bool:
        """Whether the user hid a call of an answer together with its result."""
        states = self._view.states
        if not states:
            return False
        return any(one and states.get(one.id) is EntryState.DROPPED for one in results)

    def _is_whole(self, entry: Entry) -> bool:
        if isinstance(entry, CompactionEntry):
            carried = entry.details.pinned
            if len(self._view.pinned) < len(carried):
                return False
        if entry.id in self._view.left_out:
            return False
        return self._view.is_open(entry.id) and all(map(self._asked.takes, entry.images))

    def _counted(self, entry: Entry) -> int:
        """Count the messages of an entry that is not sent as it was stored."""
        counter = self._counter
        messages = counter.told(entry, self._view, self._asked)
        sent: set[str] = set()
        for message in messages:
            sent.update(part.blob for part in message.content if isinstance(part, ImageRef))
        return counter.messages(messages) + counter.images(entry, sent)


@frozen
class Estimate:
    """The estimate of a path's request, in uncorrected tokens, and what is needed to continue it.

    ``settled`` is the history before the newest answer, which is at position ``cut``: appended
    entries can't change it. ``path`` marks the path it was made of. If ``cut`` is None, the estimate
    can't be continued.
    """

    head: int
    settled: int
    unsettled: int
    cut: int | None
    path: PathMark

    @property
    def history(self) -> int:
        return self.settled + self.unsettled

    @property
    def total(self) -> int:
        return self.head + self.settled + self.unsettled


def estimate_path(
    path: Sequence[Entry],
    counter: TokenCounter,
    asked: ModelTraits,
    before: Estimate | None = None,
) -> Estimate:
    """Estimate the tokens of a path's request.

    ``before`` is an earlier estimate with the same counter and model; if the path only grew since,
    only the appended entries are counted. The result is the same without it.
    """
    if before is not None and before.cut is not None and _only_grew(path, before.path):
        tail = path[before.cut :]
        weights = Weights(resolve(tail), counter, asked)
        newest = place_of_newest(tail, AssistantEntry) or 0
        return Estimate(
            head=before.head,
            settled=before.settled + sum(map(weights.of, tail[:newest])),
            unsettled=sum(map(weights.of, tail[newest:])),
            cut=before.cut + newest,
            path=PathMark.of(path),
        )
    weights = Weights(resolve(path), counter, asked)
    total = sum(tokens for _, tokens in weights.all())
    answer = place_of_newest(path, AssistantEntry)
    compaction = place_of_newest(path, CompactionEntry)
    # Results of calls before a compaction may still reach over it.
    cut: int | None = answer or 0
    if compaction is not None and (answer is None or answer < compaction):
        cut = None
    unsettled = 0
    if cut is not None:
        unsettled = sum(map(weights.of, path[cut:]))
    return Estimate(
        head=weights.head(),
        settled=total - unsettled,
        unsettled=unsettled,
        cut=cut,
        path=PathMark.of(path),
    )


def _only_grew(path: Sequence[Entry], before: PathMark) -> bool:
    """Whether a path continues an earlier one and changes nothing that was sent for it."""
    if not before.begins(path):
        return False
    return not any(entry.breaks_prefix for entry in path[before.length :])


def appended_tokens(entries: Sequence[Entry], counter: TokenCounter, asked: ModelTraits) -> int:
    """Return the uncorrected tokens of the entries after an answer with reported usage.

    ``entries`` begins with that answer. Its calls that still wait for a result count as 0.
    """
    if len(entries) == 1:
        return 0
    view = resolve(entries)
    weights = Weights(view, counter, asked)
    tokens = sum(map(weights.of, entries[1:]))
    missing = view.results.get(entries[0].id, ()).count(None)
    if missing and newest(entries[1:], AssistantEntry) is not None:
        tokens += missing * counter.messages(_STAND_IN)
    return tokens


def estimate_tokens(path: Sequence[Entry], limits: ModelLimits, counter: TokenCounter) -> int:
    """Estimate a whole request without the provider's reports, which are compared with it."""
    return counter.calibrated(estimate_path(path, counter, limits.asked).total)


@dataclass
class Meter:
    """Measures one growing path again and again; only appended entries take time.

    What it remembers never changes a result: a new meter measures the same.
    """

    limits: ModelLimits
    settings: ContextSettings
    counter: TokenCounter
    _estimate: Estimate | None = field(default=None, init=False)
    _head: tuple[SystemEntry, int] | None = field(default=None, init=False)
    _barren: PathMark = field(default=PathMark(), init=False)
    """Marks a path without a usable report, which is not searched again."""

    def measure(self, path: Sequence[Entry]) -> ContextSize:
        """Measure the next request of a path.

        The size is the provider's newest report that still holds, plus an estimate of the entries
        appended since; without a report, an estimate of everything.
        """
        limits = within(self.limits, self.settings)
        asked = limits.asked
        searched = 0
        if self._barren.begins(path):
            searched = self._barren.length
        anchor = find_anchor(path, limits.model, searched)
        if anchor is None:
            self._barren = PathMark.of(path)
            self._estimate = estimate_path(path, self.counter, asked, self._estimate)
            fixed = self.counter.calibrated(self._estimate.head)
            total = self.counter.calibrated(self._estimate.total)
            exact_until = None
            estimated = True
        else:
            appended = appended_tokens(path[anchor:], self.counter, asked)
            fixed = self.counter.calibrated(self._fixed(path))
            reported, says_all = reported_tokens(path[anchor], self.counter)
            total = reported + self.counter.calibrated(appended)
            exact_until = path[anchor].id
            # An imported answer was reported for another program's head.
            head = newest(path[: min(anchor, _HEAD_AMONG)], SystemEntry)
            is_ours = head is not None and head.id > 0
            estimated = appended > 0 or not says_all or not is_ours
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

    def counted(self, path: Sequence[Entry]) -> int:
        """Return the uncorrected tokens of the whole request, without the provider's reports."""
        asked = self.limits.asked
        self._estimate = estimate_path(path, self.counter, asked, self._estimate)
        return self._estimate.total

    def adopt(self, counter: TokenCounter) -> bool:
        """Continue with a counter that differs only in its calibration; return False for any other."""
        if (
            counter != self.counter
            and replace(counter, calibration=self.counter.calibration) != self.counter
        ):
            return False
        self.counter = counter
        return True

    def _fixed(self, path: Sequence[Entry]) -> int:
        system = newest(path, SystemEntry)
        if system is None:
            return 0
        if self._head is None or self._head[0] is not system:
            self._head = (system, self.counter.stored(system))
        return self._head[1]


def find_anchor(path: Sequence[Entry], model: str, start: int = 0) -> int | None:
    """Return the position of the newest answer whose reported usage still holds, None if none does.

    A report does not hold if the answer failed or was interrupted, is another model's, if the report
    is missing or implausible, or if the view changed after it. Entries before ``start`` are not
    searched.
    """
    for at in range(len(path) - 1, start - 1, -1):
        entry = path[at]
        if entry.breaks_prefix:
            return None
        if isinstance(entry, AssistantEntry) and entry.model == model and _tells_size(path, at):
            return at
    return None


def newest_report(path: Sequence[Entry]) -> AssistantEntry | None:
    """Return the newest answer if its report is usable and no compaction follows it, else None."""
    at = place_of_newest(path, AssistantEntry, CompactionEntry)
    if at is None:
        return None
    entry = path[at]
    if isinstance(entry, AssistantEntry) and _tells_size(path, at):
        return entry
    return None


def _tells_size(path: Sequence[Entry], at: int) -> bool:
    answer = path[at]
    if not isinstance(answer, AssistantEntry) or answer.usage is None:
        return False
    failed = (
        answer.error is not None or answer.interrupted or answer.finish in ("error", "interrupted")
    )
    if failed or judge(answer.usage, answer.estimate) is not Report.USABLE:
        return False
    # Some servers report their first request's tokens every time; the calibration must not learn
    # from that.
    for before in _answers_before(path, at, answer.model):
        if before.usage is not None:
            differ = abs(answer.estimate - before.estimate) > answer.estimate * _SAME_SIZE
            if differ and before.usage.prompt == answer.usage.prompt:
                return False
            break
    if answer.usage.prompt <= answer.estimate * SUSPECT_SHARE:
        return True
    return not any(is_stale(answer, one) for one in _answers_before(path, at, answer.model))


def _answers_before(path: Sequence[Entry], at: int, model: str) -> Iterator[AssistantEntry]:
    """Yield a model's answers before a position, newest first, without copying a long path."""
    for place in range(at - 1, -1, -1):
        entry = path[place]
        if isinstance(entry, AssistantEntry) and entry.model == model:
            yield entry


def reported_tokens(entry: Entry, counter: TokenCounter) -> tuple[int, bool]:
    """Return the tokens of an answer's request and of the answer, and whether both are as reported.

    The next request starts from them, so reasoning that is not sent back does not count. If the
    reported length of the answer is implausible for its text (some servers count reasoning without
    saying so), it is estimated. (0, False) if the entry has no report.
    """
    if not isinstance(entry, AssistantEntry) or entry.usage is None:
        return 0, False
    written = entry.usage.output
    if not any(part.blob for part in entry.reasoning):
        written = max(0, written - entry.usage.reasoning)
    estimate = counter.entry(entry)
    if estimate * MIN_SHARE - SLACK_BELOW <= written <= estimate * MAX_SHARE + SLACK_ABOVE:
        return entry.usage.prompt + written, True
    return entry.usage.prompt + estimate, False


class Report(StrEnum):
    """How far a report of usage can be trusted."""

    USABLE = "usable"
    MISSING = "missing"
    CUT = "cut"
    """Far too few tokens, but enough for a small window: the server seems to have cut the request."""
    TOO_FEW = "too_few"
    TOO_MANY = "too_many"


def judge(usage: Reported | None, estimate: int) -> Report:
    """Judge a report by the estimate of the same request, in the model's tokens (0: unknown).

    Tokens read from a cache or written to it are part of the report.
    """
    if usage is None or usage.prompt <= 0:
        return Report.MISSING
    if not estimate:
        return Report.USABLE
    if usage.prompt < estimate * MIN_SHARE - SLACK_BELOW:
        if usage.prompt >= SMALLEST_CUT:
            return Report.CUT
        return Report.TOO_FEW
    if usage.prompt > estimate * MAX_SHARE + SLACK_ABOVE:
        return Report.TOO_MANY
    return Report.USABLE


def is_stale(answer: AssistantEntry, before: AssistantEntry) -> bool:
    """Whether a report has not fallen although the request is much smaller than an earlier one.

    Some servers report all tokens of a session, or the same number every time. If that were taken
    for the size of the next request, one compaction would follow the other.
    """
    if answer.usage is None or before.usage is None or not before.usage.prompt:
        return False
    made = before.estimate - answer.estimate
    fell = before.usage.prompt - answer.usage.prompt
    return made > before.estimate // 10 and fell < made * NOTICED_SHARE


def is_silent_overflow(answer: AssistantEntry, window: int) -> bool:
    """Whether the server accepted more input than the window holds.

    Some servers silently cut off the oldest messages; only the input they report shows it.
    """
    usable = judge(answer.usage, answer.estimate) is Report.USABLE and answer.error is None
    return usable and answer.usage is not None and answer.usage.prompt > window


def complaint(answer: AssistantEntry, window: int) -> str | None:
    """Return a notice on a report that is not used or shows an overflow, None if it is fine.

    ``window`` is the model's window as far as it is known, in tokens.
    """
    if answer.usage is not None and is_silent_overflow(answer, window):
        return (
            f"The server reports {answer.usage.prompt:,} tokens for a window of {window:,}: it may have left out the "
            "oldest messages. Room is made before the next request; if its window is larger, set it (/settings)."
        )
    verdict = judge(answer.usage, answer.estimate)
    if answer.usage is None or verdict in (Report.USABLE, Report.MISSING):
        return None
    said = f"The server reports {answer.usage.prompt:,} tokens for a request of about {answer.estimate:,}"
    if verdict is Report.CUT:
        return (
            f"{said}: it seems to have read only a part. Its window may be smaller than the "
            f"{window:,} configured here."
        )
    return f"{said}; its count is not used."


class ViewWeights:
    """Estimates the tokens of one view's entries quickly, from their stored counts."""

    def __init__(self, view: ContextView, count: CountEntry = stored_tokens) -> None:
        self.view = view
        self._count = count
        self._answered = view.answered()

    def of(self, entry: Entry) -> int:
        """Return the tokens an entry takes as the model sees it, 0 if it is not sent."""
        if not entry.is_sent or entry.kind == "compaction" or not self.is_paired(entry):
            return 0
        state = self.view.state(entry.id)
        if state is EntryState.DROPPED:
            return 0
        if state in (EntryState.LIVE, EntryState.PINNED):
            return self._count(entry)
        if isinstance(entry, AssistantEntry) and state is EntryState.PRUNED:
            kept = self.view.kept_chars.get(entry.id)
            cut = long_share(entry, kept or LONG_ARGUMENT_CHARS, words=bool(kept))
            return round(self._count(entry) * (1 - cut))
        note = len(self.view.notes.get(entry.id, "")) // _BYTES_PER_TOKEN
        return min(self._count(entry), PLACEHOLDER_TOKENS + note + self._left(entry, state))

    def _left(self, entry: Entry, state: EntryState) -> int:
        """Return the tokens of the text that a prune left of an entry."""
        match entry:
            case UserEntry() if state is EntryState.PRUNED:
                most = self.view.kept_chars.get(entry.id)
                texts = [text[:most] for text in entry.texts("asked", "attached")]
                return sum(map(utf8_size, texts)) // _BYTES_PER_TOKEN
            case ToolResultEntry() | ShellEntry():
                kept = min(len(entry.output), self.view.kept_chars.get(entry.id, 0))
                return utf8_size(entry.output[:kept]) // _BYTES_PER_TOKEN
            case _:
                return 0

    def all(self) -> list[int]:
        """Return the tokens of each entry of the view, in order."""
        return [self.of(entry) for entry in self.view.entries]

    def is_paired(self, entry: Entry) -> bool:
        """Whether an entry is sent as far as pairs go: False for a tool result without its call."""
        return not isinstance(entry, ToolResultEntry) or entry.id in self._answered


def too_large(entries: Sequence[Entry], tokens: Sequence[int], most: int) -> str:
    """Return a sentence that names the largest entry if it takes more than ``most`` tokens, else ""."""
    largest = max(range(len(entries)), key=tokens.__getitem__, default=None)
    if largest is None or tokens[largest] <= most:
        return ""
    entry = entries[largest]
    return f"#{entry.id} ({entry.kind.replace('_', ' ')}) alone takes {tokens[largest]:,}: hide or clear it."


def long_share(entry: AssistantEntry, keep_chars: int, *, words: bool = False) -> float:
    """Return the share of an answer that cutting its long arguments to ``keep_chars`` frees, 0 to 1.

    With ``words`` the answer's text is cut too. Texts that are little longer are not cut.
    """
    texts = argument_texts(entry)
    long = texts
    if words:
        long = [*texts, entry.text]
    excess = sum(len(text) - keep_chars for text in long if len(text) > keep_chars * 5 // 4)
    if excess:
        return excess / (sum(map(len, texts)) + len(entry.text))
    return 0.0


def overhead(
    system: SystemEntry, limits: ModelLimits, settings: ContextSettings, counter: TokenCounter
) -> Overhead:
    limits = within(limits, settings)
    tokens = counter.calibrated(counter.head(system))
    at = threshold(limits, settings)
    room = limits.window - reserve(limits, settings) - tokens
    budget = room if at is None else at - tokens
    allowed = settings.for_model(limits.model).compaction
    crowded = budget < allowed.minimum_budget or tokens > allowed.overhead_share * limits.window
    early = at if budget < allowed.minimum_budget <= room else None
    parts: list[FixedPart] = []
    if crowded:
        parts = sorted(head_parts(system, counter), key=lambda part: -part.tokens)
    return Overhead(tokens, max(0, budget), crowded, tuple(parts), early)


def overhead_parts(parts: Sequence[FixedPart]) -> tuple[tuple[str, int], ...]:
    """Return the names and tokens of a head's parts, with all tools as one part."""
    named: list[tuple[str, int]] = []
    tools = 0
    for part in parts:
        if part.tool is None:
            named.append((part.label, part.tokens))
        else:
            tools += part.tokens
    if tools:
        named.append(("tools", tools))
    return tuple(named)


def describe_overhead(fixed: int, window: int, parts: Sequence[tuple[str, int]]) -> str:
    """Return a sentence on the largest parts, as in ``Fixed overhead 21k of 32k: tools 12k.``."""
    largest = sorted(parts, key=lambda part: -part[1])[:3]
    names = ", ".join(f"{name} {short_count(tokens)}" for name, tokens in largest)
    return f"Fixed overhead {short_count(fixed)} of {short_count(window)}{f': {names}' if names else ''}."


def head_parts(system: SystemEntry, counter: TokenCounter) -> list[FixedPart]:
    parts = [
        FixedPart(f"tool {tool.name}", counter.schema(tool), tool.name) for tool in system.tools
    ]
    return parts + [FixedPart(label, counter.text(text)) for label, text in head_sections(system)]


def head_sections(system: SystemEntry) -> Iterator[tuple[str, str]]:
    """Yield the parts of a head's system blocks and opening, as label and text.

    Tagged sections (``<instructions path="AGENTS.md">``) are parts of their own.
    """
    for number, block in enumerate((*system.blocks, system.opening)):
        rest = _SECTION.sub("", block)
        if rest.strip():
            yield "agent prompt" if number == 0 else "environment", rest
        for section in _SECTION.finditer(block):
            path = _PATH.search(section[2])
            yield path[1] if path else section[1], section[0]
