"""Where a search began, and which hit of it comes next. Pure."""

from tui_agent.lazy import dataclass
from tui_agent.ui.widgets.tree.finding import Hits
from tui_agent.ui.widgets.tree.outline import Outline, TreeOptions


@dataclass(slots=True)
class SearchBegun:
    """A search that is being typed, and where it began."""

    cursor: int
    entry: int | None
    view: TreeOptions


def hit_from(hits: Hits, outline: Outline, entry_id: int, step: int) -> int | None:
    """Return the hit some hits on from an entry; with 0 the first at or after it."""
    place = outline.index.locate(entry_id)
    if place is None:
        return None
    rows = outline.rows(place[0])
    row = rows.at_or_above(place[1])
    first = rows[row].first if row >= 0 else 0
    number = hits.number((place[0], first))
    here = hits.entry(number) if number < hits.total else None
    on_hit = here is not None and here >= entry_id and hits.number((place[0], place[1] + 1)) > number
    return hits.entry(number + step if on_hit or step <= 0 else number)
