"""A table under a cursor, drawn by the line."""

from collections.abc import Sequence

from tui_agent.ui.widgets.line_list import LineList, StyledSpan
from tui_agent.ui.widgets.transcript.columns import Cells, Column, table_row, widths


class TableList(LineList):
    """Rows of cells below a heading that stays; ``show`` gives it others."""

    HEADED = True

    def __init__(self, columns: Sequence[Column], *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._columns = columns
        self._cells: Sequence[Cells] = ()
        self._wide: tuple[int, dict[int, int]] = (-1, {})

    def show(self, rows: Sequence[Cells], *, cursor: int | None = None) -> None:
        """Show rows; the cursor stays at its place if none is named."""
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
        """Return the titles of the columns that are shown."""
        titles = [(column.title, "heading") for column in self._columns]
        return table_row(self._columns, self._widths(width), titles)

    def row(self, index: int, width: int) -> Sequence[StyledSpan]:
        return table_row(self._columns, self._widths(width), self._cells[index])
