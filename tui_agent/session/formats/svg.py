"""A plot as a picture in a page: as wide as the page, each column a link to what it stands for."""

from collections.abc import Callable
from html import escape

from tui_agent.plot import Series, columns

__all__ = ["svg_of"]

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
