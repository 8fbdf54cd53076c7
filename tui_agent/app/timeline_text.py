"""Texts and plotted values of the timeline, which shows the size of each request.

The requests are those on the path from the root of the session tree to one entry. All functions are
pure.
"""

from collections.abc import Sequence
from datetime import datetime

from tui_agent.agent.context_map import ContextBlock, MapChange
from tui_agent.agent.timeline import Mark, Step
from tui_agent.app.context_text import miss_words
from tui_agent.app.format import dotted, money, plural, short_model, tokens
from tui_agent.plot import Series

MARKS: dict[Mark, str] = {
    Mark.COMPACTION: "◆",
    Mark.PRUNE: "◇",
    Mark.MOVE: "↩",
    Mark.MISS: "×",
    Mark.EDIT: "•",
}
"""Glyph of each kind of event, such as a compaction, that can happen before a step."""
_WEIGHTS = {MARKS[mark]: len(MARKS) - place for place, mark in enumerate(Mark)}
_LEAST_SHARE = 4
"""Divisor of the context window that decides how high the plot reaches.

If the largest request takes at least 1/4 of the window, the plot's top is the whole window.
Otherwise, the top is slightly above that request.
"""


def series_of(steps: Sequence[Step]) -> Series:
    """Return the values to plot for each step: tokens of the fixed beginning, and all tokens.

    The fixed beginning consists of the system prompt and the tools.
    """
    heads = [step.head for step in steps]
    totals = [step.total for step in steps]
    # Use the last step's window: a larger window of an earlier step would make all steps look
    # small.
    window = 0
    if steps:
        window = steps[-1].window
    peak = max(totals, default=0)
    if peak * _LEAST_SHARE >= window:
        top = window
    else:
        top = round(peak * 1.15)
    marks = {at: MARKS[step.marks[0]] for at, step in enumerate(steps) if step.marks}
    return Series((heads, totals), max(1, top, peak), marks, _WEIGHTS)


def legend(steps: Sequence[Step]) -> str:
    """Return a line that explains the glyphs in the plot of these steps."""
    there: set[Mark] = set()
    for step in steps:
        there.update(step.marks[:1])
    return "  ".join(f"{MARKS[mark]} {mark}" for mark in Mark if mark in there)


def heading(steps: Sequence[Step], at: int) -> str:
    """Return the heading of the text about the step at the index ``at``.

    The heading contains the step's number, entry and time, or the words "next request".
    """
    step = steps[at]
    if step.answer is None:
        if at:
            return f"Next request, after {plural(at, 'step')}"
        return "Context of the next request"
    when = ""
    if step.at:
        when = f" · {datetime.fromtimestamp(step.at / 1000).astimezone():%Y-%m-%d %H:%M}"
    return f"Step {at + 1} of {len(steps) - 1} · request of #{step.answer}{when}"


def step_words(step: Step, dollars: float | None) -> list[str]:
    """Return lines about an answered request: model, cached share, answer size, price, cache miss.

    ``dollars`` is the extra cost of the cache miss, None if unknown.
    """
    share = "nothing cached"
    if step.total and step.cached:
        share = f"{step.cached / step.total:.0%} read from the cache"
    price = ""
    if step.cost is not None:
        price = money(step.cost)
    if step.answered:
        answered = f"{tokens(step.answered)} answered"
    else:
        answered = ""
    lines = [dotted(short_model(step.model), share, answered, price)]
    if step.miss is not None:
        lines.append(miss_words(step.miss, dollars))
    return lines


def change_words(change: MapChange) -> str:
    """Return a sentence about the blocks added, removed or changed since the previous step."""
    parts = [f"+{_counted(change.came)} added" if change.came else ""]
    if change.went:
        parts.append(f"−{_counted(change.went)} removed{_span(change.went)}")
    freed = 0
    less: list[ContextBlock] = []
    for before, after in change.changed:
        if after.tokens < before.tokens:
            freed += before.tokens - after.tokens
            less.append(after)
    if less:
        states = "/".join(dict.fromkeys(block.state.word for block in less))
        parts.append(f"{len(less)} {states} −{tokens(freed)}{_span(less)}")
    if len(less) < len(change.changed):
        parts.append(f"{len(change.changed) - len(less)} pinned or restored")
    changes = dotted(*parts)
    if changes:
        return f"Since the previous step: {changes}."
    return "The same as in the previous step."


def _counted(blocks: Sequence[ContextBlock]) -> str:
    return f"{plural(len(blocks), 'block')} {tokens(sum(block.tokens for block in blocks))}"


def _span(blocks: Sequence[ContextBlock]) -> str:
    """Return the entry numbers of blocks as `` (#3–#9)``; "" if no block comes from an entry."""
    ids: set[int] = set()
    for block in blocks:
        if not block.is_head:
            ids.update(block.origin)
    if not ids:
        return ""
    if len(ids) == 1:
        return f" (#{min(ids)})"
    return f" (#{min(ids)}–#{max(ids)})"
