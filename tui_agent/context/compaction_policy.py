"""Decides when automatic compaction runs or waits, and when a summary is prepared.

All functions are pure. The decisions depend on the path (the entries from the root of the session
tree to the current one), its size and the settings, on the seconds that the last summary took, and
on a ``FailureRecord`` that the agent keeps, because failed compactions leave no entry.
``agent.context_keeper`` asks for these decisions and carries them out. After a request that was too
large it decides for itself: it compacts without a model, even if `hold` returns a reason, unless
the reason is ``OFF``. ``agent.prepared_summary`` asks whether a prepared summary is still valid.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from tui_agent.context.budget import ContextSize
from tui_agent.context.settings import CompactionSettings
from tui_agent.lazy import frozen
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    SystemEntry,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.path_queries import newest

if TYPE_CHECKING:
    from tui_agent.context.compaction import Trigger

    _Span = tuple[int, int]
    """Beginning and end of a piece of work, in milliseconds since the epoch."""

OVERFLOW_ATTEMPTS = 2
"""If this many requests in a row exceed the window, the agent stops and asks the user."""

STEPS_AHEAD = (2, 6)
"""Minimum and maximum number of steps before the threshold at which the preparation of a summary
begins."""
AHEAD_SHARE = 0.4
"""Largest share of the history budget that the steps during the preparation of a summary are
expected to take."""
SUMMARY_SECONDS = 20.0
"""Number of seconds that the first summary of a session is expected to take."""
_MEASURED_STEPS = 4
"""Number of newest steps from which the size and duration of a step are estimated."""
_REMEMBERED_STEPS = 12
"""The estimated size of a step is at least the mean of this many newest steps, because a few small
steps say little about the next ones."""


class HoldReason(StrEnum):
    """The reason why automatic compaction must not run now; the values are sentences for the user.

    It applies to compaction by a model. If a request is too large, a compaction without a model
    still runs, except with ``OFF``.
    """

    OFF = "Automatic compaction is off."
    PAUSED = "Automatic compaction is paused after repeated failures; it is tried again after your next message."
    NO_STEP = "The context is full again although it was just compacted."


@frozen
class FailureRecord:
    """The number of failed compactions in a row.

    ``user_id`` is the id of the newest user message at the last failure, 0 if there is none.
    """

    failures: int = 0
    user_id: int = 0

    def failed(self, path: Sequence[Entry]) -> "FailureRecord":
        """Return the record after another failure. A new user message restarts the count."""
        user_id = newest_user_id(path)
        return FailureRecord(self.failures + 1 if user_id == self.user_id else 1, user_id)


NO_FAILURES = FailureRecord()
"""The record at the start of a session and after each successful compaction: no failures."""


def is_due(size: ContextSize) -> bool:
    """Return True if the next request is larger than the threshold for automatic compaction."""
    return size.threshold is not None and size.total > size.threshold


@frozen
class StepSizes:
    """The estimated size and duration of a step; all values are 0 before the first step.

    ``mean`` and ``largest`` are tokens. ``seconds`` is the median duration of the request, the
    answer and the calls, without the user's pauses; 0 if the entries don't show it.
    """

    mean: float = 0.0
    largest: int = 0
    seconds: float = 0.0


def step_sizes(path: Sequence[Entry]) -> StepSizes:
    """Estimate the size and duration of a step from the newest steps of a path."""
    brought: list[int] = []
    durations: list[int] = []
    step = 0
    spans: list[_Span] = []
    for entry in reversed(path):
        if len(brought) == _REMEMBERED_STEPS:
            break
        # The system prompt, the tools and summaries don't count as part of a step.
        if entry.is_sent and not isinstance(entry, SystemEntry | CompactionEntry):
            step += entry.tokens
        spans += _spans_of(entry)
        if is_completed(entry):
            brought.append(step)
            durations.append(_total(spans))
            step = 0
            spans = []
    if not brought:
        return StepSizes()
    recent = brought[:_MEASURED_STEPS]
    mean = max(sum(recent) / len(recent), sum(brought) / len(brought))
    return StepSizes(mean, max(recent), _median(durations[:_MEASURED_STEPS]) / 1_000)


def _spans_of(entry: Entry) -> "list[_Span]":
    """Return the time span in which the model or a tool worked on an entry, as a list of one.

    The list is empty if the span is unknown. A denied call has no span, because its time is the
    wait for the user's answer.
    """
    match entry:
        case AssistantEntry(started_at=started_at, created_at=ended_at):
            pass
        case ToolResultEntry(status=ToolStatus.DENIED):
            return []
        case ToolResultEntry(started_at=started_at, ended_at=ended_at):
            pass
        case _:
            return []
    if not 0 < started_at < ended_at:
        return []
    return [(started_at, ended_at)]


def _total(spans: "Sequence[_Span]") -> int:
    """Return how much time the given spans cover. Spans may overlap."""
    total = 0
    until = 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def _median(values: Sequence[int]) -> int:
    """Return the median: the middle value or, of two middle values, the smaller one.

    The median is used so that one long wait, such as for the user's answer to a question, has
    little effect.
    """
    return sorted(values)[(len(values) - 1) // 2]


def kept_ahead(
    size: ContextSize,
    steps: StepSizes,
    settings: CompactionSettings,
    *,
    summary_seconds: float = SUMMARY_SECONDS,
) -> int | None:
    """Return how many of the newest tokens to keep if a summary is prepared now, None if too early.

    Preparation starts early enough for the steps that the agent is expected to take while the
    summary is written. Those steps will be kept, too. Therefore fewer tokens are kept now than a
    compaction at the threshold would keep (but at least a quarter), and the summary covers about
    the same entries. The function also returns None without a threshold, or before the first step.
    """
    if size.threshold is None or not steps.mean:
        return None
    least, most = STEPS_AHEAD
    count = most
    if steps.seconds:
        count = max(least, min(most, math.ceil(summary_seconds / steps.seconds) + 1))
    ahead = min(count * steps.mean, AHEAD_SHARE * size.budget)
    left = max(0, size.threshold - size.total)
    if left > max(least * steps.largest, ahead):
        return None
    keep = settings.keep_recent_tokens(size.budget)
    return max(keep - left, keep // 4)


def missing_meanwhile(size: ContextSize) -> int:
    """Return by how many tokens a request exceeds what may be sent while a summary is prepared.

    The result is 0 if the request may be sent. Until the summary is ready, a request may exceed the
    limit by half the reserve, but at most by an eighth of the limit.
    """
    beyond = min(size.reserve // 2, size.limit // 8)
    return max(0, size.total - size.limit - beyond)


def changes_since(path: Sequence[Entry], cut: int) -> tuple[int, ...] | None:
    """Return the ids of compactions and context edits after ``cut`` that concern entries before it.

    The newest is first. Returns None if ``cut`` is not on the path. A prepared summary of the
    entries before ``cut`` stays valid as long as this result stays the same. Prunes are not
    included, because the summary was written from the whole outputs.
    """
    changes: list[int] = []
    for entry in reversed(path):
        if entry.id == cut:
            return tuple(changes)
        match entry:
            case CompactionEntry():
                changes.append(entry.id)
            case ContextEditEntry(target=target) if target < cut:
                changes.append(entry.id)
            case _:
                pass
    return None


def hold(
    path: Sequence[Entry], settings: CompactionSettings, record: FailureRecord, trigger: "Trigger"
) -> HoldReason | None:
    """Return why a compaction with this trigger must not run now, None if it may.

    A compaction that the user requests may always run.
    """
    if trigger == "manual":
        return None
    if not settings.auto or settings.threshold == 0:
        return HoldReason.OFF
    if record.failures >= settings.failures_before_pause and newest_user_id(path) == record.user_id:
        return HoldReason.PAUSED
    for entry in reversed(path):
        if is_completed(entry):
            break
        if isinstance(entry, CompactionEntry) and entry.model is not None:
            return HoldReason.NO_STEP
    return None


def is_completed(entry: Entry) -> bool:
    """Return True for an answer of the model that neither failed nor was interrupted."""
    return isinstance(entry, AssistantEntry) and entry.error is None and not entry.interrupted


def newest_user_id(path: Sequence[Entry]) -> int:
    """Return the id of the newest message that the user wrote, 0 if there is none."""
    typed = newest(path, UserEntry, where=lambda entry: entry.synthetic is None)
    return 0 if typed is None else typed.id
