"""Whether what a server reports of a request can be its size; where it can't, what to say of it."""

from enum import StrEnum

from tui_agent.session.entries import AssistantEntry
from tui_agent.session.records import Reported

MIN_SHARE = 1 / 3
"""Reported over estimated tokens of a request below which a report is not its size: tokenizers differ by about 2."""
SLACK_BELOW = 200
"""Tokens a report may always be below that: a small request is mostly what the estimate guesses of its frame."""
MAX_SHARE = 5.0
"""Reported over estimated tokens above which a report is a mistake. Some gateways add prompts of their own."""
SLACK_ABOVE = 2_000
"""Tokens a report may always be above that."""
SUSPECT_SHARE = 1.25
"""Reported over estimated tokens above which a report is held against the one before room was made."""
NOTICED_SHARE = 1 / 3
"""Share of the tokens taken out of a request by which a report has to fall to be one of that request."""
SMALLEST_CUT = 1_000
"""Tokens of the smallest window that a server is believed to have; a smaller report was not counted properly."""


class Report(StrEnum):
    """What a report of usage is worth."""

    USABLE = "usable"
    MISSING = "missing"
    CUT = "cut"
    """Far too few tokens, and as many as a small window holds: the server seems to have left out the rest."""
    TOO_FEW = "too_few"
    TOO_MANY = "too_many"


def judge(usage: Reported | None, estimate: int) -> Report:
    """Judge a report by the estimate of the same request, in the model's tokens; 0 where there is none.

    What was read from a cache or written to it is part of the report.
    """
    if usage is None or usage.prompt <= 0:
        return Report.MISSING
    if not estimate:
        return Report.USABLE
    if usage.prompt < estimate * MIN_SHARE - SLACK_BELOW:
        return Report.CUT if usage.prompt >= SMALLEST_CUT else Report.TOO_FEW
    if usage.prompt > estimate * MAX_SHARE + SLACK_ABOVE:
        return Report.TOO_MANY
    return Report.USABLE


def is_plausible(reported: int, estimate: int) -> bool:
    """Whether a reported number of tokens can be the size of what was estimated."""
    return estimate * MIN_SHARE - SLACK_BELOW <= reported <= estimate * MAX_SHARE + SLACK_ABOVE


def is_suspect(answer: AssistantEntry) -> bool:
    """Whether a report tells of so much more than was estimated that it may be one of another request."""
    return answer.usage is not None and answer.usage.prompt > answer.estimate * SUSPECT_SHARE


def is_stale(answer: AssistantEntry, before: AssistantEntry) -> bool:
    """Whether a report did not notice the room that was made since an earlier answer.

    Some servers report all tokens of a session, or the same number every time. Taken for the size of the next request
    that would ask for compaction after compaction.
    """
    if answer.usage is None or before.usage is None or not before.usage.prompt:
        return False
    made = before.estimate - answer.estimate
    fell = before.usage.prompt - answer.usage.prompt
    return made > before.estimate // 10 and fell < made * NOTICED_SHARE


def is_silent_overflow(answer: AssistantEntry, window: int) -> bool:
    """Whether an answer was made of more input than the window holds, although the server refused nothing.

    Some servers cut the oldest messages off without a word; what they report as input gives it away.
    """
    usable = judge(answer.usage, answer.estimate) is Report.USABLE and answer.error is None
    return usable and answer.usage is not None and answer.usage.prompt > window


def complaint(answer: AssistantEntry, window: int) -> str | None:
    """Return a sentence on a report that is not used or tells of an overflow, None when there is nothing to say.

    ``window`` is the model's as far as it is known, in tokens.
    """
    if answer.usage is not None and is_silent_overflow(answer, window):
        return (
            f"The server reports {answer.usage.prompt:,} tokens for a window of {window:,}: it may have left out the "
            "oldest messages. Room is made before the next request; if its window is larger, set it (/settings)."
        )
    verdict = judge(answer.usage, answer.estimate)
    if answer.usage is None or verdict in (Report.USABLE, Report.MISSING):
        return None
    told = f"The server reports {answer.usage.prompt:,} tokens for a request of about {answer.estimate:,}"
    if verdict is Report.CUT:
        return (
            f"{told}: it seems to have read only a part. Its window may be smaller than the {window:,} configured here."
        )
    return f"{told}; its count is not used."
