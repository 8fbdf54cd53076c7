"""`TableList`, a table with a cursor and a fixed heading, and functions to lay out its rows."""

from collections.abc import Sequence
from typing import Final

from tui_agent.lazy import frozen
from tui_agent.ui.widgets.line_list import LineList
from tui_agent.ui.widgets.transcript.lines import StyledSpan, cells, crop_spans, spans_width

_GAP: Final = 2
_MIN_GROWING: Final = 10
"""Minimum width, in cells, of a column that ``grows`` with the table."""

Cells = Sequence[StyledSpan]
"""The cells of a row, with one styled span for each column."""


@frozen
class Column:
    """A column of a table.

    If the table is too narrow, the columns with the lowest ``wanted`` are left out first. If
    ``right`` is True, the texts are aligned to the right. If ``grows`` is True, the column is as
    wide as its content if there is room. Otherwise, it shrinks, but not below `_MIN_GROWING`.
    """

    title: str
    wanted: int = 0
    right: bool = False
    grows: bool = False


def widths(columns: Sequence[Column], rows: Sequence[Cells], room: int) -> dict[int, int]:
    """Return the widths, in cells, of the columns to show. The keys are the columns' indices.

    Columns that are empty in every row and columns that don't fit in ``room`` cells are left out.
    """
    natural: dict[int, int] = {}
    shown: dict[int, int] = {}
    for place, column in enumerate(columns):
        texts = [row[place][0] for row in rows]
        if not any(texts):
            continue
        natural[place] = max(map(cells, (column.title, *texts)))
        shown[place] = natural[place]
        if column.grows:
            shown[place] = min(natural[place], _MIN_GROWING)
    while len(shown) > 1 and _spare(shown, room) < 0:
        del shown[min(shown, key=lambda place: columns[place].wanted)]
    spare = max(0, _spare(shown, room))
    for place, width in shown.items():
        if columns[place].grows:
            shown[place] = min(natural[place], width + spare)
    return shown


def _spare(shown: dict[int, int], room: int) -> int:
    return room - sum(shown.values()) - _GAP * (len(shown) - 1)


def table_row(columns: Sequence[Column], wide: dict[int, int], row: Cells) -> list[StyledSpan]:
    """Return the spans of a table row. The cells are cut or padded to the widths ``wide``."""
    spans: list[StyledSpan] = []
    for place, width in wide.items():
        cell = list(crop_spans([row[place]], width))
        pad = (" " * (width - spans_width(cell)), "text")
        if spans:
            spans.append((" " * _GAP, "text"))
        if columns[place].right:
            spans += [pad, *cell]
        else:
            spans += [*cell, pad]
    return spans


class TableList(LineList):
    """A table that scrolls below a heading with the titles of its columns."""

    HEADED = True

    def __init__(self, columns: Sequence[Column], *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._columns = columns
        self._cells: Sequence[Cells] = ()
        self._wide: tuple[int, dict[int, int]] = (-1, {})

    def show(self, rows: Sequence[Cells], *, cursor: int | None = None) -> None:
        """Replace the rows of the table, and move the cursor to the row ``cursor``.

        If ``cursor`` is None, the cursor stays where it is unless its row no longer exists.
        """
        if rows == self._cells and cursor is None:
            return
        self._cells = rows
        self._wide = (-1, {})
        if len(rows) != self.count or cursor is not None:
            self.set_count(len(rows), cursor=cursor)
        else:
            self.refresh()

    def _widths(self, width: int) -> dict[int, int]:
        if self._wide[0] != width:
            self._wide = width, widths(self._columns, self._cells, width - 1)
        return self._wide[1]

    def heading(self, width: int) -> Sequence[StyledSpan]:
        titles = [(column.title, "heading") for column in self._columns]
        return table_row(self._columns, self._widths(width), titles)

    def row(self, index: int, width: int) -> Sequence[StyledSpan]:
        return table_row(self._columns, self._widths(width), self._cells[index])
