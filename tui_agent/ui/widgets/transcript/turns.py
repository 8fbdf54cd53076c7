"""Finds finished turns, decides what a folded turn hides, and makes the line that replaces it.

A turn begins with a message and ends with the last answer to it. When a turn is folded, a single
line represents the work between the message and the answer. model.py decides which turns are
folded, and stores the user's choices.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import Final, Literal

from tui_agent.app import format as wording
from tui_agent.app.format import listed
from tui_agent.context.context_status import Standing
from tui_agent.lazy import frozen
from tui_agent.session.entries import Entry, ToolResultEntry, ToolStatus
from tui_agent.tools.registry import tool_traits
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.blocks import (
    AnswerBlock,
    Block,
    EndingBlock,
    FoldingBlock,
    UserBlock,
)
from tui_agent.ui.widgets.transcript.build import is_rule
from tui_agent.ui.widgets.transcript.flows import MAX_TEXT_WIDTH
from tui_agent.ui.widgets.transcript.lines import Line, StyledSpan, crop_spans

FoldTurns = Literal["off", "work", "all"]
"""How much of a folded turn is hidden: nothing, the work, or also the last answer."""

KEY: Final = "turn"
"""The key of the block that shows a turn as a single line.

This block is in the item of the message that began the turn.
"""

MAX_LOOKED_AT: Final = 200
"""Maximum number of tool results that are read, newest first, to make the line of a turn."""

_NAMES: Final = 3
"""Maximum number of files or tools that are named in the line of a folded turn."""

_WORK: Final = frozenset({"assistant", "tool_result", "check", "user"})
"""Kinds of items that are entirely or partly hidden while their turn is folded."""


@frozen
class Turn:
    """A finished turn, with the items from the index ``start`` up to the index ``end``, excluded.

    ``start`` is the index of the message that began the turn. ``answer`` is the index of the turn's
    last answer, or ``start`` if there is none. ``calls`` is the number of tool results in the turn.
    """

    start: int
    end: int
    answer: int
    calls: int

    def __contains__(self, index: int) -> bool:
        return self.start <= index < self.end


class TurnBlock(FoldingBlock):
    """The line below the message of a finished turn.

    It shows what work was done, the number of tool calls and the duration.
    """

    kind = "turn"
    is_sendable = False

    def __init__(
        self, calls: int, results: Callable[[], Sequence[Entry]], seconds: Callable[[], float]
    ) -> None:
        """``results`` returns the turn's tool results. ``seconds`` returns its duration in seconds.

        Both functions are called each time the line is laid out.
        """
        super().__init__(KEY)
        self._calls = calls
        self._results = results
        self._seconds = seconds
        self.work_standing: Standing | None = None
        """Context status of the turn's work (whether the model receives it). None if not shown."""

    @property
    def standing(self) -> Standing | None:
        return self.work_standing

    def copy_text(self) -> str:
        return " · ".join(self._words())

    def _words(self) -> list[str]:
        seconds = self._seconds()
        results = self._results()
        words = [work_summary(results), wording.plural(self._calls, "call")]
        if seconds >= 1:
            words.append(wording.duration(seconds))
        for status, ended in ((ToolStatus.ERROR, "failed"), (ToolStatus.DENIED, "denied")):
            if count := sum(_has_status(one, status) for one in results):
                words.append(f"{count} {ended}")
        if any(_has_status(one, ToolStatus.INTERRUPTED) for one in results):
            words.append("interrupted")
        return words

    def _head(self, width: int) -> Iterable[Line]:
        done, *facts = self._words()
        spans: list[StyledSpan] = [
            (f"{self.chevron} ", "marker act:toggle"),
            (done, "title act:toggle"),
            (f" · {' · '.join(facts)}", "muted act:toggle"),
        ]
        icon, *text = crop_spans(spans, min(width, MAX_TEXT_WIDTH))
        yield Line(text, prefix=(icon,))


def work_summary(results: Sequence[Entry]) -> str:
    """Return a summary of tool calls, which names the changed files or else the tools used.

    At most `_NAMES` files or tools are named. If there is nothing to name, the summary is “worked”.
    """
    done = []
    for one in results:
        if isinstance(one, ToolResultEntry) and one.status is ToolStatus.COMPLETED:
            done.append(one)
    writes = (one.metadata.path for one in done if tool_traits()[one.tool].writes)
    changed = dict.fromkeys(PurePath(path).name for path in writes if path)
    if changed:
        return f"changed {_named(changed)}"
    used = dict.fromkeys(one.tool for one in results if isinstance(one, ToolResultEntry))
    return _named(used) or "worked"


def _has_status(result: Entry, status: ToolStatus) -> bool:
    return isinstance(result, ToolResultEntry) and result.status is status


def _named(names: Iterable[str]) -> str:
    return listed([sanitize.line(name) for name in names], _NAMES)


def turn_at(kinds: Sequence[str], starts: Callable[[int], bool], index: int) -> Turn | None:
    """Return the finished turn that contains the item at an index, or None if there is none.

    The newest turn doesn't count as finished. ``kinds`` are the kinds of all items. ``starts``
    takes the index of an item of the kind ``user``, and returns whether this item begins a turn.
    """
    start = turn_start(kinds, starts, index)
    if start is None:
        return None
    end = None
    for at in range(index + 1, len(kinds)):
        if kinds[at] == "user" and starts(at):
            end = at
            break
    if end is None:
        return None
    answer = next((at for at in range(end - 1, start, -1) if kinds[at] == "assistant"), start)
    return Turn(start, end, answer, calls=kinds[start:end].count("tool_result"))


def turn_start(kinds: Sequence[str], starts: Callable[[int], bool], index: int) -> int | None:
    """Return the index of the message that began the turn to which an item belongs.

    Returns None before the first turn.
    """
    for at in range(index, -1, -1):
        if kinds[at] == "user" and starts(at):
            return at
    return None


def is_hidden_entirely(turn: Turn, kinds: Sequence[str], index: int) -> bool:
    """Return True if no block of the item at ``index`` is shown while ``turn`` is folded.

    Only the item's kind and place are checked. A compaction's rule in the item stays visible.
    """
    return (
        turn.start < index < turn.end and index != turn.answer and kinds[index] in _WORK - {"user"}
    )


def hide_blocks(turn: Turn, index: int, kind: str, blocks: Iterable[Block], how: FoldTurns) -> None:
    """Hide the blocks of the item at ``index`` that aren't shown while its turn is folded.

    The user's messages, the rules of compactions and the reasons for failures stay visible. If
    ``how`` is "work", the text of the last answer stays visible, too.
    """
    if index == turn.start or kind not in _WORK:
        return
    for block in blocks:
        stays = is_rule(block) or isinstance(block, UserBlock | EndingBlock)
        is_answer = index == turn.answer and isinstance(block, AnswerBlock)
        block.left_out = not stays and not (is_answer and how == "work")


def zero_hidden_heights(kinds: Sequence[str], heights: list[int]) -> None:
    """Set the estimated heights of items to 0 if a finished turn probably hides the items."""
    ended = answered = False
    for index in range(len(kinds) - 1, -1, -1):
        kind = kinds[index]
        if kind == "user":
            ended = True
            answered = False
        elif ended and kind in _WORK:
            if answered or kind != "assistant":
                heights[index] = 0
            answered = answered or kind == "assistant"


def turn_block_of(blocks: Iterable[Block]) -> TurnBlock | None:
    for block in blocks:
        if isinstance(block, TurnBlock):
            return block
    return None
