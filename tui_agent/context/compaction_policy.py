"""When compaction may act and when it has to stop: no endless loops, and "off" means off.

All of it follows from the path, apart from compactions that failed: they leave nothing on the path,
so the agent keeps a ``FailureRecord`` for them.
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
    UserEntry,
)
from tui_agent.session.path_queries import newest

if TYPE_CHECKING:
    from tui_agent.context.compaction import Trigger

OVERFLOW_ATTEMPTS = 2
"""Requests that may end in an overflow, one after the other, before the agent stops and asks."""

STEPS_AHEAD = (2, 6)
"""Fewest and most steps before the threshold at which a summary is begun beside the work."""
AHEAD_SHARE = 0.4
"""Largest share of the history budget those steps may fill: what they bring is not summarised."""
SUMMARY_SECONDS = 20.0
"""How long a summary is expected to take where none was written yet."""
_MEASURED_STEPS = 4
"""Newest steps that tell how much a step brings, and how long it takes."""
_REMEMBERED_STEPS = 12
"""Newest steps, those before a compaction too, whose mean is the least a step is taken to bring: a
few small ones promise nothing."""


class HoldReason(StrEnum):
    """Why automatic compaction has to wait; the value is a sentence for a person."""

    OFF = "Automatic compaction is off."
    PAUSED = "Automatic compaction is paused after repeated failures; it is tried again after your next message."
    NO_STEP = "The context is full again although it was compacted just before."


@frozen
class FailureRecord:
    """Compactions that failed in a row, and the newest user message there was at that time."""

    failures: int = 0
    user_id: int = 0

    def failed(self, path: Sequence[Entry]) -> "FailureRecord":
        user_id = newest_user_id(path)
        return FailureRecord(self.failures + 1 if user_id == self.user_id else 1, user_id)


NO_FAILURES = FailureRecord()
"""The record at the start and after every compaction that was committed."""


def is_due(size: ContextSize) -> bool:
    """Whether the next request, as measured, passes the threshold."""
    return size.threshold is not None and size.total > size.threshold


@frozen
class StepSizes:
    """About how much the newest steps added to the context; all 0 before the first step.

    ``mean`` and ``largest`` are tokens of one step, ``seconds`` is how long one step took.
    """

    mean: float = 0.0
    largest: int = 0
    seconds: float = 0.0


def step_sizes(path: Sequence[Entry]) -> StepSizes:
    """Return the sizes of the newest steps."""
    brought: list[int] = []
    ended_at: list[int] = []
    step = 0
    for entry in reversed(path):
        if len(brought) == _REMEMBERED_STEPS:
            break
        # Neither the head nor a summary is part of a step.
        if entry.is_sent and not isinstance(entry, SystemEntry | CompactionEntry):
            step += entry.tokens
        if is_completed(entry):
            brought.append(step)
            ended_at.append(entry.created_at)
            step = 0
    if not brought:
        return StepSizes()
    recent = brought[:_MEASURED_STEPS]
    oldest_at = ended_at[len(recent) - 1]
    seconds = (path[-1].created_at - oldest_at) / 1_000 / max(1, len(recent) - 1)
    mean = max(sum(recent) / len(recent), sum(brought) / len(brought))
    return StepSizes(mean, max(recent), seconds)


def kept_ahead(
    size: ContextSize,
    steps: StepSizes,
    settings: CompactionSettings,
    *,
    summary_seconds: float = SUMMARY_SECONDS,
) -> int | None:
    """Return the tokens that a summary begun now leaves as they are, None while it is too early.

    It is begun so many steps before the threshold as will be taken while it is written. They are
    fewer than a compaction keeps, at least a quarter of it, because those steps are added: so about
    the same entries are summarised as would be then.
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
    """Return the tokens missing for a request over the threshold to leave while the summary is written.

    0 where nobody has to wait for it. Half the reserve stays for the answer, and a threshold that
    somebody chose is passed by an eighth at most.
    """
    beyond = min(size.reserve // 2, size.limit // 8)
    return max(0, size.total - size.limit - beyond)


def changes_since(path: Sequence[Entry], cut: int) -> tuple[int, ...] | None:
    """Return the entries after ``cut`` that change what the model's view of those before it says.

    None when ``cut`` is not on the path. A summary up to there still holds while they stay the
    same. What a prune clears was there when the summary was begun.
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
    """Return why a compaction with this trigger must not run now; None when it may.

    A person always may, and so may a model that asks for a new window.
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
    """Whether the entry is an answer of the model that neither failed nor was interrupted."""
    return isinstance(entry, AssistantEntry) and entry.error is None and not entry.interrupted


def newest_user_id(path: Sequence[Entry]) -> int:
    """Return the id of the newest message a person wrote, 0 when there is none."""
    typed = newest(path, UserEntry, where=lambda entry: entry.synthetic is None)
    return 0 if typed is None else typed.id
