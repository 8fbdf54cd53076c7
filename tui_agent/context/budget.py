"""Measures the next request and each of its entries in tokens, and computes the token limits.

A request is made from a path, that is, from the entries from the root of the session tree to a
leaf. There are three measures. `Meter` returns the size that users see and that decisions are based
on; it starts from the provider's reports. `Weights` counts each entry of a view exactly as it is
sent. `ViewWeights` is a faster estimate, for plans that compare many cuts. This module also decides
which reports to believe (`_tells_size`, `judge_report`), and when the head (the system prompt and
the tool definitions) is so large that the user is warned (`overhead`). Nothing is appended, sent or
shown here.
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
"""A request whose fixed part has at most this many tokens is assumed to contain no system prompt
and no tools yet."""

_STAND_IN = (Message("tool", (ContentText(INTERRUPTED_OUTPUT),)),)
"""Message that is sent instead of the result of a tool call that has none."""

_HEAD_AMONG = 50
"""Number of entries at the beginning of a path that are searched for its head (the system prompt
and the tool definitions)."""

MIN_SHARE = 1 / 3
"""Lowest believable ratio of reported to estimated tokens of a request, because tokenizers differ
by a factor of about 2."""

SLACK_BELOW = 200
"""A report may be this many tokens below ``MIN_SHARE`` of the estimate, because the overhead of a
small request is only guessed."""

MAX_SHARE = 5.0
"""Highest believable ratio of reported to estimated tokens. The ratio is high behind gateways that
add their own prompts."""

SLACK_ABOVE = 2_000
"""A report may be this many tokens above ``MAX_SHARE`` times the estimate."""

SUSPECT_SHARE = 1.25
"""Ratio of reported to estimated tokens above which a report is compared with earlier ones (see
``is_stale``)."""

NOTICED_SHARE = 1 / 3
"""If a request is much smaller than an earlier one, its reported size must have fallen, too. If the
report fell by less than this share of the difference, it is stale."""

SMALLEST_CUT = 1_000
"""A report of at least this many tokens may mean that the server cut the request to its window. A
smaller report is a miscount."""

_SAME_SIZE = 0.01
"""If two requests have the same reported size, the reports are believed only if the estimates of
the requests differ by at most this share."""

PLACEHOLDER_TOKENS = 40
"""Number of tokens assumed for the placeholder of a cleared entry."""

_BYTES_PER_TOKEN = 3
"""Number of bytes per token assumed for the text beside a placeholder. It is low, so that plans
free at least as many tokens as they promise."""

CountEntry = Callable[[Entry], int]
"""Counts the tokens of an entry as if it were sent whole."""

stored_tokens: CountEntry = attrgetter("tokens")
"""Returns the token count that is stored with an entry."""

_SECTION = LazyPattern(r"<([a-z][\w-]*)((?:\s[^<>]*)?)>\n?(.*?)</\1>", re.DOTALL)
_PATH = LazyPattern(r'(?:path|name|file)="([^"]*)"')


WINDOW_ORIGINS = {
    "catalog": "from the catalog",
    "config": "from the settings",
    "server": "from its server",
    "assumed": "assumed",
    "learnt": "learnt from a refused request",
}
"""Text that says where the size of a model's context window comes from, by
``ContextSize.window_origin``. Where there is little room, "assumed" and "learnt" are used alone."""


@frozen
class ModelLimits:
    """A model's limits: its window and longest answer in tokens, and the files that it accepts.

    ``max_output`` is None if unknown; ``origin`` says where ``window`` comes from. ``vision`` says
    whether the model accepts images, ``documents`` whether it accepts PDF files.
    """

    model: str
    window: int
    max_output: int | None = None
    origin: Literal["catalog", "config", "server", "learnt", "assumed"] = "catalog"
    vision: bool = True
    documents: bool = False
    price_tier: int | None = None
    """Tokens of a request above which the price per token rises, None if it never does."""

    @property
    def asked(self) -> ModelTraits:
        """The model's traits that affect the size of a request."""
        return ModelTraits(self.model, vision=self.vision, documents=self.documents)


@frozen
class ContextSize:
    """The size of the next request in tokens, and the window that the request has to fit into.

    ``total`` is ``fixed`` (the system prompt and the tool definitions) plus ``history``.
    ``exact_until`` is the id of the answer whose reported usage the total is based on, None if the
    whole total is an estimate. ``estimated`` says that at least part of the total is an estimate.
    ``reserve`` stays free for the answer. ``threshold`` is the size above which automatic
    compaction starts, None if it never does.
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
        """Whether the size can be relied on.

        It can if the head (system prompt and tool definitions) has been counted, or if the provider
        has reported usage.
        """
        return self.fixed > _NO_HEAD or self.exact_until is not None

    @property
    def percent(self) -> float:
        """Percentage of the window in use; it may exceed 100."""
        if self.window:
            return 100 * self.total / self.window
        return 0.0

    @property
    def limit(self) -> int:
        """Maximum tokens of a request: the threshold or, if None, the window minus the reserve."""
        if self.threshold is None:
            return self.window - self.reserve
        return self.threshold

    @property
    def budget(self) -> int:
        """The history budget H: the number of tokens above which the history is compacted."""
        return max(0, self.limit - self.fixed)


@frozen
class SwitchAhead:
    """The size of the next request with the current model (``before``) and another (``after``).

    ``pruned`` is the size with the other model, in tokens, if old outputs are cleared first.
    """

    before: ContextSize
    after: ContextSize
    pruned: int

    @property
    def fits(self) -> bool:
        """Whether the other model can continue the conversation without a compaction."""
        return self.pruned <= self.after.limit


@frozen
class FixedPart:
    """A part of what every request contains: a system block, a section of one, or a tool.

    ``tool`` is the tool's name, None for text.
    """

    label: str
    tokens: int
    tool: str | None = None


@frozen
class Overhead:
    """The tokens of a request's fixed part, and the history budget that this part leaves.

    ``parts`` contains the parts of the head (the system prompt and the tool definitions), the
    largest first; it is empty unless ``crowded``.
    """

    tokens: int
    budget: int
    crowded: bool
    """Whether the user is warned at the start, because the overhead exceeds
    ``compaction.overhead_share`` of the window or the history budget is below
    ``compaction.minimum_budget``."""
    parts: tuple[FixedPart, ...]
    early: int | None = None
    """The threshold, in tokens, if only the threshold makes the history budget too small; otherwise
    None."""


def within(limits: ModelLimits, settings: ContextSettings) -> ModelLimits:
    """Return ``limits``, with the window from the settings if that window is smaller."""
    own = settings.for_model(limits.model).window
    if own is None or own >= limits.window:
        return limits
    return replace(limits, window=own, origin="config")


def reserve(limits: ModelLimits, settings: ContextSettings) -> int:
    return settings.for_model(limits.model).compaction.reserve(limits.window, limits.max_output)


def threshold(limits: ModelLimits, settings: ContextSettings) -> int | None:
    """Return the size in tokens above which automatic compaction starts, None if it never does."""
    compaction = settings.for_model(limits.model).compaction
    return compaction.threshold_at(
        limits.window, reserve(limits, settings), price_tier=limits.price_tier
    )


class Weights:
    """Counts the tokens of each entry of a view, exactly as the entry is sent to a model.

    The counts are uncorrected; `TokenCounter` explains what that means.
    """

    def __init__(self, view: ContextView, counter: TokenCounter, asked: ModelTraits) -> None:
        self._view = view
        self._counter = counter
        self._asked = asked
        self._answered = view.answered()

    def head(self) -> int:
        """Return the tokens of the current system entry, plus the fixed overhead of a request."""
        system = self._view.system
        return REQUEST_TOKENS + (self._counter.stored(system) if system else 0)

    def all(self) -> Iterator[tuple[Entry, int]]:
        """Yield (entry, tokens) for each entry that the view sends, in the order of the request."""
        compaction = self._view.compaction
        if compaction is None:
            entries = self._view.entries
        else:
            entries = (compaction, *self._view.entries)
        for entry in entries:
            if tokens := self.of(entry):
                yield entry, tokens

    def of(self, entry: Entry) -> int:
        """Return how many tokens an entry of the view adds to the request; 0 if it is not sent.

        The tokens of an answer include the placeholders for its calls that have no result.
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
        # Counting placeholders loads an encoding, so it is done only if there are any.
        if None in results:
            return tokens + self._counter.messages(_STAND_IN) * results.count(None)
        return tokens

    def _is_parted(self, results: Sequence[ToolResultEntry | None]) -> bool:
        """Return True if the user hid a result of an answer, and with it the result's call."""
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
        """Return the tokens of an entry that isn't sent in its stored form."""
        counter = self._counter
        messages = counter.messages_for(entry, self._view, self._asked)
        sent: set[str] = set()
        for message in messages:
            sent.update(part.blob for part in message.content if isinstance(part, ImageRef))
        return counter.messages(messages) + counter.images(entry, sent)


@frozen
class Estimate:
    """The estimated tokens of a path's request (uncorrected), in parts that `estimate_path` reuses.

    ``settled`` is the size of the history before the newest answer; appended entries don't change
    this size. ``cut`` is that answer's index on the path. If the estimate can't be continued when
    the path grows, ``cut`` is None and ``settled`` is the whole history. ``path`` marks the path
    that was estimated.
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
    """Estimate the uncorrected tokens of a path's request.

    ``before`` is an earlier estimate with the same counter and model. It only saves time, because
    if the path has only grown since, the entries before the answer that was newest then aren't
    counted again.
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
    # A call before the compaction may still receive its result after the compaction.
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
    """Return True if a path only adds to an earlier path, and only appends to its request."""
    if not before.begins(path):
        return False
    return not any(entry.breaks_prefix for entry in path[before.length :])


def appended_tokens(entries: Sequence[Entry], counter: TokenCounter, asked: ModelTraits) -> int:
    """Return the uncorrected tokens of the entries after an answer with reported usage.

    ``entries`` begins with that answer, which is not counted. Its calls without a result count as
    placeholders only if another answer follows.
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
    """Estimate the size of the whole request for a path of entries, in the model's own tokens.

    The provider's usage reports are not used, because they are compared with this estimate.
    """
    return counter.calibrated(estimate_path(path, counter, limits.asked).total)


@dataclass
class Meter:
    """Measures the requests of one growing path, counting only newly appended entries.

    Its caches only save time, because a new meter returns the same results.
    """

    limits: ModelLimits
    settings: ContextSettings
    counter: TokenCounter
    _estimate: Estimate | None = field(default=None, init=False)
    _head: tuple[SystemEntry, int] | None = field(default=None, init=False)
    _barren: PathMark = field(default=PathMark(), init=False)
    """Says that a path has no usable report, so that the path isn't searched again."""

    def measure(self, path: Sequence[Entry]) -> ContextSize:
        """Return the size of the next request of a path.

        The total is the provider's newest report that is still valid, plus an estimate of the
        entries appended since. Without such a report, it is an estimate of the whole request.
        """
        limits = within(self.limits, self.settings)
        asked = limits.asked
        searched = 0
        if self._barren.begins(path):
            searched = self._barren.length
        reported_at = place_of_report(path, limits.model, searched)
        if reported_at is None:
            self._barren = PathMark.of(path)
            self._estimate = estimate_path(path, self.counter, asked, self._estimate)
            fixed = self.counter.calibrated(self._estimate.head)
            total = self.counter.calibrated(self._estimate.total)
            exact_until = None
            estimated = True
        else:
            appended = appended_tokens(path[reported_at:], self.counter, asked)
            fixed = self.counter.calibrated(self._fixed(path))
            reported, says_all = reported_tokens(path[reported_at], self.counter)
            total = reported + self.counter.calibrated(appended)
            exact_until = path[reported_at].id
            # An imported answer's report counts the head that another program sent, not this head.
            head = newest(path[: min(reported_at, _HEAD_AMONG)], SystemEntry)
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
        """Estimate the whole request in uncorrected tokens, without the provider's reports."""
        asked = self.limits.asked
        self._estimate = estimate_path(path, self.counter, asked, self._estimate)
        return self._estimate.total

    def adopt(self, counter: TokenCounter) -> bool:
        """Replace the counter by ``counter`` and return True, if at most their calibrations differ.

        If it differs from the present counter in anything else, change nothing and return False.
        """
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


def place_of_report(path: Sequence[Entry], model: str, start: int = 0) -> int | None:
    """Return the index of the newest answer whose reported usage is still valid, or None.

    A report is not valid if the answer failed, was interrupted or came from another model, if the
    report is missing or implausible, or if a later entry changed earlier parts of the request. Entries
    before the index ``start`` are not searched.
    """
    for at in range(len(path) - 1, start - 1, -1):
        entry = path[at]
        if entry.breaks_prefix:
            return None
        if isinstance(entry, AssistantEntry) and entry.model == model and _tells_size(path, at):
            return at
    return None


def newest_report(path: Sequence[Entry]) -> AssistantEntry | None:
    """Return the path's newest answer; None if its report isn't usable or a compaction follows it.

    Unlike `place_of_report`, this function accepts an answer of any model, even if earlier parts of
    the request have changed since.
    """
    at = place_of_newest(path, AssistantEntry, CompactionEntry)
    if at is None:
        return None
    entry = path[at]
    if isinstance(entry, AssistantEntry) and _tells_size(path, at):
        return entry
    return None


def _tells_size(path: Sequence[Entry], at: int) -> bool:
    """Return True if the entry at an index is an answer whose reported size can be believed."""
    answer = path[at]
    if not isinstance(answer, AssistantEntry) or answer.usage is None:
        return False
    failed = (
        answer.error is not None or answer.interrupted or answer.finish in ("error", "interrupted")
    )
    if failed or judge_report(answer.usage, answer.estimate) is not Report.USABLE:
        return False
    # Some servers report the tokens of their first request every time; the calibration must not
    # learn from that.
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
    """Yield a model's answers that are before an index of the path, newest first."""
    for place in range(at - 1, -1, -1):
        entry = path[place]
        if isinstance(entry, AssistantEntry) and entry.model == model:
            yield entry


def reported_tokens(entry: Entry, counter: TokenCounter) -> tuple[int, bool]:
    """Return the tokens of a request and its answer together, and whether both were reported.

    Reasoning that is not sent back with the next request is not counted. If the reported length of
    the answer is implausible for its text (some servers include reasoning without saying so), the
    answer's estimate is used instead. Returns (0, False) for an entry without a report.
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
    """Whether the number of tokens that a provider reports for a request is plausible."""

    USABLE = "usable"
    MISSING = "missing"
    CUT = "cut"
    """The report has too few tokens, but at least `SMALLEST_CUT`. The server seems to have cut the
    request to a smaller window."""
    TOO_FEW = "too_few"
    """The report has too few tokens, and fewer than `SMALLEST_CUT`, so the server must have
    miscounted."""
    TOO_MANY = "too_many"


def judge_report(usage: Reported | None, estimate: int) -> Report:
    """Compare a provider's report with this program's estimate of the same request.

    Both are in the model's tokens. If the estimate is 0 (unknown), every report is usable. A report
    of 0 tokens counts as missing.
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
    """Return True if a report is hardly smaller than the report of an earlier, much larger request.

    ``before`` is the earlier request's answer. Some servers report all tokens of a session, or the
    same number every time; believing them would cause one compaction after another.
    """
    if answer.usage is None or before.usage is None or not before.usage.prompt:
        return False
    made = before.estimate - answer.estimate
    fell = before.usage.prompt - answer.usage.prompt
    return made > before.estimate // 10 and fell < made * NOTICED_SHARE


def is_silent_overflow(answer: AssistantEntry, window: int) -> bool:
    """Return True if an answered request exceeds the window, according to a plausible report.

    Some servers silently cut off the oldest messages instead of refusing such a request. Returns
    False for an answer with an error.
    """
    usable = judge_report(answer.usage, answer.estimate) is Report.USABLE and answer.error is None
    return usable and answer.usage is not None and answer.usage.prompt > window


def complaint(answer: AssistantEntry, window: int) -> str | None:
    """Return a notice if an answer's report is implausible or shows an overflow; otherwise None.

    ``window`` is the window assumed for the model, in tokens.
    """
    if answer.usage is not None and is_silent_overflow(answer, window):
        return (
            f"The server reports {answer.usage.prompt:,} tokens for a window of {window:,}. It may have left out the "
            "oldest messages. The next request will be made smaller. "
            "If the model's window is larger, set it in /settings."
        )
    verdict = judge_report(answer.usage, answer.estimate)
    if answer.usage is None or verdict in (Report.USABLE, Report.MISSING):
        return None
    said = f"The server reports {answer.usage.prompt:,} tokens for a request of about {answer.estimate:,}"
    if verdict is Report.CUT:
        return (
            f"{said}. It seems to have read only part of the request. "
            f"The model's window may be smaller than the {window:,} tokens assumed here. If so, set it in /settings."
        )
    return f"{said}. This count is not used."


class ViewWeights:
    """Estimates the tokens of one view's entries from stored counts, without counting text."""

    def __init__(self, view: ContextView, count: CountEntry = stored_tokens) -> None:
        self.view = view
        self._count = count
        self._answered = view.answered()

    def of(self, entry: Entry) -> int:
        """Return the estimated tokens of an entry as the view sends it.

        The result is 0 for an entry that is not sent, and for a compaction.
        """
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
        """Estimate the tokens that a prune left of an entry's text."""
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
        """Return the tokens of all entries of the view, in the view's order."""
        return [self.of(entry) for entry in self.view.entries]

    def is_paired(self, entry: Entry) -> bool:
        """Return False if an entry is a tool result without its call, which is never sent.

        For all other entries, the function returns True.
        """
        return not isinstance(entry, ToolResultEntry) or entry.id in self._answered


def too_large(entries: Sequence[Entry], tokens: Sequence[int], most: int) -> str:
    """Return a sentence about the largest entry if it exceeds ``most`` tokens; otherwise "".

    ``tokens`` contains the token count of each entry, in the order of ``entries``.
    """
    largest = max(range(len(entries)), key=tokens.__getitem__, default=None)
    if largest is None or tokens[largest] <= most:
        return ""
    entry = entries[largest]
    return (
        f"#{entry.id} ({entry.kind.replace('_', ' ')}) alone takes {tokens[largest]:,} tokens: "
        "hide or clear it in /context."
    )


def long_share(entry: AssistantEntry, keep_chars: int, *, words: bool = False) -> float:
    """Return the share of an answer (0 to 1) that is freed by cutting its long tool arguments.

    Every text in the arguments that is more than a quarter longer than ``keep_chars`` characters is
    cut to that length. With ``words``, so is the answer's own text.
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
    """Return the tokens of the system prompt and the tools, and the budget that they leave."""
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
    """Return (label, tokens) for each part of the head. All tools together are one part.

    The part with the tools is the last one and is labelled "tools".
    """
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
    """Return a sentence about the size of the head (system prompt and tool definitions).

    It also names the three largest parts. ``parts`` contains (name, tokens) for each part. Example:
    ``Instructions and tools take 21k of the window's 32k tokens: tools 12k.``
    """
    largest = sorted(parts, key=lambda part: -part[1])[:3]
    names = ", ".join(f"{name} {short_count(tokens)}" for name, tokens in largest)
    if names:
        names = f": {names}"
    sizes = f"{short_count(fixed)} of the window's {short_count(window)} tokens"
    return f"Instructions and tools take {sizes}{names}."


def head_parts(system: SystemEntry, counter: TokenCounter) -> list[FixedPart]:
    parts = [
        FixedPart(f"tool {tool.name}", counter.schema(tool), tool.name) for tool in system.tools
    ]
    return parts + [FixedPart(label, counter.text(text)) for label, text in head_sections(system)]


def head_sections(system: SystemEntry) -> Iterator[tuple[str, str]]:
    """Yield (label, text) for each part of the system prompt and of the opening message.

    Each tagged section (``<instructions path="AGENTS.md">``) is one part, labelled by its path or
    tag; the rest of each block is another.
    """
    for number, block in enumerate((*system.blocks, system.opening)):
        rest = _SECTION.sub("", block)
        if rest.strip():
            yield "agent prompt" if number == 0 else "environment", rest
        for section in _SECTION.finditer(block):
            path = _PATH.search(section[2])
            yield path[1] if path else section[1], section[0]
