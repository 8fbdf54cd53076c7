"""The one verdict on an answer: of the conversation, of a subagent, and of a model that writes a summary."""

from enum import StrEnum

from tui_agent.session.entries import AssistantEntry

_ANNOUNCES = (":", "：", "…", "...")
"""Ends of a text that announces what isn't there."""


class Verdict(StrEnum):
    """What an answer is. Each has one rule in the loop, and a summary takes only a whole one."""

    WHOLE = "whole"
    """It says something and asks for nothing: the end of a turn."""
    CALLS = "calls"
    """It calls tools, all of them whole."""
    CUT = "cut"
    """It ended at its limit of tokens: a call that it ends in may be half of one."""
    SILENT = "says nothing"
    THINKING = "thinking only"
    PROMISED = "promises calls"
    """It announces a call that isn't there, or that is written as text that can't be read."""
    REFUSED = "refused"
    """The provider or the model declined to answer."""
    PAUSED = "paused"
    """The provider wants the conversation sent again, to go on."""
    BROKEN = "broken"
    """It was interrupted, or failed."""


ENDS_TURN = frozenset({Verdict.WHOLE, Verdict.CUT, Verdict.REFUSED})
"""Verdicts on answers without calls after which nothing is left to do."""
NUDGED = frozenset({Verdict.SILENT, Verdict.THINKING, Verdict.PROMISED})
"""Verdicts on answers that the model is asked to mend, once."""

_FINISHES = {
    "pause": Verdict.PAUSED,
    "content_filter": Verdict.REFUSED,
    "length": Verdict.CUT,
    "interrupted": Verdict.BROKEN,
    "error": Verdict.BROKEN,
}
"""What the provider's word for the end says by itself."""


def judge(
    finish: str, text: str, *, calls: int, is_thinking: bool = False, unread: str = ""
) -> Verdict:
    """Return the verdict on an answer.

    ``finish`` is why it ended, in our words. ``is_thinking``: it holds reasoning. ``unread`` is why
    calls that it wrote as text can't be read.
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
    """Return the verdict on an answer of the conversation."""
    return judge(
        answer.finish,
        answer.text,
        calls=len(answer.tool_calls),
        is_thinking=bool(answer.reasoning),
        unread=unread,
    )
