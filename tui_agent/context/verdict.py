"""Classifies a model's answer, which may end the turn, call tools, be cut off or be unusable.

The same verdicts are used for the conversation, subagents and summarisers. The caller
(``agent.loop``, ``summariser``) decides how to act on a verdict.
"""

from enum import StrEnum

from tui_agent.session.entries import AssistantEntry

_ANNOUNCES = (":", "：", "…", "...")
"""If a text ends with one of these, it announces that something follows, such as a tool call."""


class Verdict(StrEnum):
    """Says whether a model's answer can be used. Only a WHOLE answer can be a summary."""

    WHOLE = "whole"
    """The answer is a complete text without tool calls, which ends the turn."""
    CALLS = "calls"
    """The answer contains complete tool calls."""
    CUT = "cut"
    """The answer reached its token limit, so that its last call may be incomplete."""
    UNMARKED = "unmarked"
    """The server ended the answer without marking it as complete; it may be complete or not."""
    SILENT = "says nothing"
    """The answer is unusable because it contains no text, no calls and no reasoning."""
    THINKING = "thinking only"
    """The answer is unusable because it contains only reasoning."""
    PROMISED = "promises calls"
    """The text announces a tool call that is missing, or contains one that can't be parsed."""
    REFUSED = "refused"
    """The provider or the model refused to answer."""
    PAUSED = "paused"
    """The provider will continue the answer when the conversation is sent again."""
    BROKEN = "broken"
    """The answer is incomplete because it was interrupted or failed."""


ENDS_TURN = frozenset({Verdict.WHOLE, Verdict.CUT, Verdict.UNMARKED, Verdict.REFUSED})
"""Verdicts with which an answer ends the turn, if it contains no calls."""
NUDGED = frozenset({Verdict.SILENT, Verdict.THINKING, Verdict.PROMISED})
"""Verdicts after which the model is asked once more, because it gave no usable answer."""

_FINISHES = {
    "pause": Verdict.PAUSED,
    "content_filter": Verdict.REFUSED,
    "length": Verdict.CUT,
    "unmarked": Verdict.UNMARKED,
    "interrupted": Verdict.BROKEN,
    "repetition": Verdict.BROKEN,
    "error": Verdict.BROKEN,
}
"""Verdicts that follow from the finish reason alone, whatever the answer contains. The keys are the
finish reasons."""


def judge(
    finish: str, text: str, *, calls: int, is_thinking: bool = False, unread: str = ""
) -> Verdict:
    """Judge an answer by its finish reason and its contents, and return the verdict.

    ``finish`` is a value of ``AssistantEntry.finish``, ``calls`` the number of tool calls.
    ``is_thinking`` says that the answer contains reasoning. ``unread`` says why a call written in
    the answer's text can't be parsed; "" if there is no such call.
    """
    by_finish = _FINISHES.get(finish)
    if calls and by_finish in {None, Verdict.PAUSED, Verdict.UNMARKED}:
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
    """Judge a stored answer, and return the verdict.

    ``unread`` has the same meaning as for ``judge``.
    """
    return judge(
        answer.finish,
        answer.text,
        calls=len(answer.tool_calls),
        is_thinking=bool(answer.reasoning),
        unread=unread,
    )
