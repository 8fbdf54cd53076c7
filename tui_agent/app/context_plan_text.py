"""Describes the size and cost of planned compactions and prunes, and of finished summaries.

A prune clears old tool outputs from the context. All functions are pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.app.format import about_cost, money, one_line, plural, tokens
from tui_agent.app.strip_markdown import plain_preview
from tui_agent.session.entries import Entry, is_by_user

if TYPE_CHECKING:
    from tui_agent.agent.compaction_drafts import Draft
    from tui_agent.app.edit_cost import Edit
    from tui_agent.context.commit_plan import Commit
    from tui_agent.context.compaction import CompactionPlan
    from tui_agent.context.pruning import PrunePlan


def compaction_text(plan: CompactionPlan, forecast: Commit, dollars: float | None = None) -> str:
    """Return the text of a compaction preview.

    It says how large the history is before and after, what is summarised and what is kept.

    ``forecast`` is the planned compaction with an empty summary; ``dollars`` is the maximum cost of
    writing the summary, None if unknown.
    """
    goes = (*plan.history, *plan.turn_prefix)
    kept = [entry for entry in plan.kept if entry.is_sent]
    before = forecast.tokens_before
    carried = max(0, forecast.tokens_after - plan.tokens_kept)
    most = min(before, forecast.tokens_after + plan.summary_tokens)
    lines = [_row("History", f"{tokens(before)} → at most {tokens(most)} tokens")]
    goes_tokens = max(0, before - plan.tokens_kept)
    summarised = f"{_counts(goes)} · {tokens(goes_tokens)} tokens"
    if goes:
        summarised += f" · up to #{goes[-1].id}"
    lines.append(_row("Summarised", summarised))
    stays = f"{_counts(kept)} · {tokens(plan.tokens_kept)} tokens"
    if kept:
        stays += f" · from {_named(kept[0])}"
    lines.append(_row("Kept as is", stays))
    if plan.prunes:
        count = sum(len(prune.targets) for prune in plan.prunes)
        cleared = f"{plural(count, 'old output')}; the agent can read them again"
        lines.append(_row("Cleared", cleared))
    if carried:
        also = "your messages, the plan, pins, files, to-dos, facts"
        lines.append(_row("Also kept", f"{also} · {tokens(carried)} tokens"))
    summary = f"at most {tokens(plan.summary_tokens)} tokens"
    if dollars:
        summary += f", for at most {money(dollars)}"
    lines.append(_row("Summary", summary))
    return "\n".join(lines)


def _row(name: str, text: str) -> str:
    return f"{name:<12}{text}"


def _counts(entries: Sequence[Entry]) -> str:
    turns = 0
    for entry in entries:
        if is_by_user(entry):
            turns += 1
    if turns:
        return f"{plural(turns, 'turn')} · {plural(len(entries), 'entry')}"
    return plural(len(entries), "entry")


def _named(entry: Entry) -> str:
    words = one_line(plain_preview(entry.kind, entry.preview), 40)
    if words:
        return f"#{entry.id} “{words}”"
    return f"#{entry.id}"


def written_summary_text(commit: Commit, draft: Draft) -> str:
    """Return a line about a finished summary: the history's size before and after, and its cost."""
    spent = [f"{tokens(commit.tokens_before)} → {tokens(commit.tokens_after)} tokens of history"]
    if commit.steps:
        spent.append(", ".join(commit.steps))
    if draft.spent.cost:
        spent.append(f"writing it cost {money(draft.spent.cost)}")
    return " · ".join(spent)


def prune_instead(prunes: Sequence[PrunePlan]) -> str:
    """Return a sentence that suggests clearing old tool outputs instead of compacting.

    It says how many tokens this would free.
    """
    count = sum(len(plan.targets) for plan in prunes)
    freed = sum(plan.tokens_freed for plan in prunes)
    return f"{plural(count, 'output')} can be cleared instead, which frees {tokens(freed)} tokens."


def prune_price(plan: PrunePlan, edit: Edit | None, *, warm: bool, dollars: float | None) -> str:
    """Return a sentence that says how many tokens a prune frees, and what it costs.

    ``dollars`` is the price of the cached tokens that are read again, None if unknown. ``warm`` is
    True if the prompt cache is warm.
    """
    freed = f"This frees {tokens(plan.tokens_freed)} tokens"
    if not warm:
        cost = "the cache is cold anyway, so it costs nothing"
    elif edit is None or not edit.reread:
        cost = "nothing cached is lost"
    else:
        cost = f"{tokens(edit.reread)} cached tokens are read again{about_cost(dollars)}"
    return f"{freed}; {cost}."
