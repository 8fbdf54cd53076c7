"""The pictures of an exported session: its context over the steps, its cost by request and by day. Pure."""

from collections.abc import Callable, Sequence

from tui_agent.app.format import money, tokens
from tui_agent.app.spending import day_series, day_words, spending, step_series, step_words
from tui_agent.app.timeline_words import legend, series_of
from tui_agent.context.timeline import CHANGING_KINDS, ModelScale, PathShape, Step, steps_of
from tui_agent.session.entries import AssistantEntry, BranchSummaryEntry, CompactionEntry
from tui_agent.session.formats.copies import SessionCopy
from tui_agent.session.formats.html import Figure
from tui_agent.session.formats.svg import svg_of
from tui_agent.session.records import RequestRecord

_COLD_SECONDS = 300
"""How long a provider is taken to remember a request; who exports may have set something else then."""


def figures_of(copy: SessionCopy, window_of: Callable[[str], int]) -> list[Figure]:
    """Return the pictures there is something to see on."""
    records = requests_of(copy)
    found: list[Figure] = []
    if len(steps := _steps(copy, records, window_of)) > 1:
        series = series_of(steps)
        shown = max(step.window for step in steps)
        window = f" of a window of {tokens(shown)}" if shown else ""
        title = f"Context over {len(steps)} steps, up to {tokens(max(step.total for step in steps))}{window}"
        found.append(Figure(title, svg_of(series, title, lambda at: _about(steps, at)), legend(steps)))
    spent = spending(records, (), 0.0, {}, lambda _model, _usage: None)
    if len(records) > 1 and spent.total.cost:
        series = step_series(spent)
        title = f"Cost by request, up to {money(series.top)}"
        note = f"{spent.total.dollars} in all"
        found.append(Figure(title, svg_of(series, title, lambda at: (step_words(spent, at), records[at].id)), note))
    if len(spent.days) > 1:
        series = day_series(spent)
        title = f"Cost by day, up to {money(series.top)}"
        note = f"{min(spent.days)} to {max(spent.days)}"
        found.append(Figure(title, svg_of(series, title, lambda at: (day_words(spent, at), None)), note))
    return found


def requests_of(copy: SessionCopy) -> list[RequestRecord]:
    """Return what the entries of a copy say of the requests that made them."""
    return [
        RequestRecord(
            entry.id,
            entry.kind,
            entry.created_at,
            entry.model or "",
            entry.cost,
            entry.estimate if isinstance(entry, AssistantEntry) else 0,
            isinstance(entry, AssistantEntry) and (entry.error is not None or entry.interrupted),
            *((use.input, use.output, use.cache_read, use.cache_write) if (use := entry.usage) else (0, 0, 0, 0)),
        )
        for entry in copy.entries
        if isinstance(entry, AssistantEntry | CompactionEntry | BranchSummaryEntry)
    ]


def _steps(copy: SessionCopy, records: Sequence[RequestRecord], window_of: Callable[[str], int]) -> list[Step]:
    path = copy.path()
    others = {entry.id for entry in copy.entries if not isinstance(entry, AssistantEntry)}
    shape = PathShape(
        [entry.id for entry in path],
        records,
        [entry for entry in path if entry.kind in CHANGING_KINDS],
        [entry.id for entry in path if not others.isdisjoint(range((entry.parent_id or 0) + 1, entry.id))],
        lambda: [entry.tokens for entry in path],
    )
    return steps_of(shape, lambda model: ModelScale(window_of(model)), _COLD_SECONDS)


def _about(steps: Sequence[Step], at: int) -> tuple[str, int | None]:
    step = steps[at]
    about = "" if step.exact else "~"
    marks = f" · {', '.join(step.marks)} before it" if step.marks else ""
    return (
        f"Step {at + 1}: {about}{tokens(step.total)} tokens, {tokens(step.head)} of them the prompt{marks}",
        step.answer,
    )
