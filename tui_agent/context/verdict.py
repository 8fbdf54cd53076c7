"""Judges answers of models: whether one ends the turn, calls tools, was cut off, or is unusable.

The same verdicts serve the conversation, subagents and summarisers.
"""

from enum import StrEnum

from tui_agent.session.entries import AssistantEntry

_ANNOUNCES = (":", "：", "…", "...")
"""Endings of a text that announces something to follow, such as a tool call."""


class Verdict(StrEnum):
    """What kind of answer a model gave; only WHOLE can be a summary."""

    WHOLE = "whole"
    """A complete text without tool calls: the end of a turn."""
    CALLS = "calls"
    """Complete tool calls."""
    CUT = "cut"
    """It ended at its token limit: its last call may be incomplete."""
    SILENT = "says nothing"
    THINKING = "thinking only"
    PROMISED = "promises calls"
    """It announces a call but holds none, or holds one as text that can't be parsed."""
    REFUSED = "refused"
    """The provider or the model declined to answer."""
    PAUSED = "paused"
    """The provider wants the conversation sent again before it continues the answer."""
    BROKEN = "broken"
    """It was interrupted, or failed."""


ENDS_TURN = frozenset({Verdict.WHOLE, Verdict.CUT, Verdict.REFUSED})
"""Verdicts that end a turn, if the answer has no calls."""
NUDGED = frozenset({Verdict.SILENT, Verdict.THINKING, Verdict.PROMISED})
"""Verdicts after which the model is asked once to answer again."""

_FINISHES = {
    "pause": Verdict.PAUSED,
    "content_filter": Verdict.REFUSED,
    "length": Verdict.CUT,
    "interrupted": Verdict.BROKEN,
    "error": Verdict.BROKEN,
}
"""Verdicts that follow from the finish reason alone."""


def judge(
    finish: str, text: str, *, calls: int, is_thinking: bool = False, unread: str = ""
) -> Verdict:
    """Return the verdict on an answer.

    ``finish`` is the finish reason as ``AssistantEntry.finish`` stores it, ``calls`` the number of
    tool calls. ``is_thinking``: it holds reasoning. ``unread`` says why calls in its text can't be
    parsed, "" if there are none.
    """
    by_finish = _FINISHES.get(finish)
    if calls and by_finish in {None, Verdict.PAUSED}:
        return Verdict.CALLS
    if by_finish is not None:
        return by_finish
    said = text.strip()
    if not said:
        return Verdict.THINKING if is_thinking else Verdict.SILENT
    if unread or (finish == "tool_calls" and said.endswith(_ANNOUNCES)):
        return Verdict.PROMISED
    return Verdict.WHOLE


def verdict_on(answer: AssistantEntry, unread: str = "") -> Verdict:
    """Return the verdict on a stored answer; ``unread`` as in ``judge``."""
    return judge(
        answer.finish,
        answer.text,
        calls=len(answer.tool_calls),
        is_thinking=bool(answer.reasoning),
        unread=unread,
    )
