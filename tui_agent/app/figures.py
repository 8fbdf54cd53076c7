"""The pictures of an exported session: its context over the steps, its cost by request and by day. Pure."""

from collections.abc import Callable, Sequence
from html import escape

from tui_agent.app.format import money, tokens
from tui_agent.app.spending import day_series, day_words, spending, step_series, step_words
from tui_agent.app.timeline_text import legend, series_of
from tui_agent.context.timeline import CHANGING_KINDS, ModelScale, PathShape, Step, steps_of
from tui_agent.plot import Series, columns
from tui_agent.session.entries import AssistantEntry, BranchSummaryEntry, CompactionEntry
from tui_agent.session.formats.copies import SessionCopy
from tui_agent.session.formats.html import Figure
from tui_agent.session.records import RequestRecord

_WIDTH, _HEIGHT = 600, 100
"""Units of the picture; it is stretched to the page."""
_MAX_COLUMNS = 300


def svg_of(series: Series, label: str, about: Callable[[int], tuple[str, int | None]]) -> str:
    """Return a series as an SVG element, its marks below it.

    ``label`` says what it shows, for who can't see it; ``about`` returns what a step says when it is pointed at, and
    the entry it is a link to.
    """
    shown = columns(series, _MAX_COLUMNS)
    cells = sum(column.cells for column in shown) or 1
    pieces: list[str] = []
    edges: list[tuple[float, float]] = []
    at = 0
    for column in shown:
        edges.append((at / cells * _WIDTH, (at + column.cells) / cells * _WIDTH))
        at += column.cells
    for number in range(len(series.levels) - 1, -1, -1):
        path = [f"M0 {_HEIGHT}"]
        for column, (left, right) in zip(shown, edges, strict=True):
            y = _HEIGHT - min(1.0, series.levels[number][column.peak] / series.top) * _HEIGHT
            path.append(f"L{left:.1f} {y:.1f}L{right:.1f} {y:.1f}")
        name = "only" if len(series.levels) == 1 else f"part{number}"
        pieces.append(f'<path class="{name}" d="{"".join(path)}L{_WIDTH} {_HEIGHT}Z"/>')
    marks: list[str] = []
    for column, (left, right) in zip(shown, edges, strict=True):
        if column.mark:
            marks.append(f'<span style="left:{left / _WIDTH:.2%}">{escape(column.mark)}</span>')
            pieces.append(f'<line class="mark" x1="{left:.1f}" x2="{left:.1f}" y1="0" y2="{_HEIGHT}"/>')
        text, entry_id = about(column.peak)
        point = f'<rect class="point" x="{left:.1f}" y="0" width="{right - left:.1f}" height="{_HEIGHT}"/>'
        point = f"<g><title>{escape(f'{column.mark} {text}'.strip())}</title>{point}</g>"
        pieces.append(f'<a href="#e{entry_id}">{point}</a>' if entry_id is not None else point)
    return (
        f'<svg class="plot" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}">{"".join(pieces)}</svg>'
        + (f'<div class="marks" aria-hidden="true">{"".join(marks)}</div>' if marks else "")
    )


_COLD_SECONDS = 300
"""How long a provider is taken to remember a request; who exports may have set something else then."""


def figures_of(copy: SessionCopy, window_of: Callable[[str], int]) -> list[Figure]:
    """Return the pictures there is something to see on."""
    records = requests_of(copy)
    found: list[Figure] = []
    if len(steps := _steps(copy, records, window_of)) > 1:
        series = series_of(steps)
        shown = steps[-1].window
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
