"""Mouse selection across blocks: rows as numbers, and the logical text between two of them."""

import re
from typing import Final

from textual.geometry import Offset
from textual.selection import Selection

from tui_agent.ui.widgets.transcript.model import Row, TranscriptModel

ROW_SPAN: Final = 1_000_000
"""Rows of one item at most. A row's number stays the same when items above it change their height."""

_MAX_ROWS: Final = 50_000
_WORD: Final = re.compile(r"[\w./~@#%:+-]+|\S")


def row_id(index: int, line: int) -> int:
    """Return the number of a row, ascending through the transcript."""
    return index * ROW_SPAN + min(line, ROW_SPAN - 1)


def selected_text(model: TranscriptModel, selection: Selection, bounds: tuple[int, int]) -> str:
    """Return the text of a selection: without decoration, with wrapped lines joined as they were.

    Ends that are open are at ``bounds``, the numbers of two rows.
    """
    first = selection.start.y if selection.start is not None else bounds[0]
    last = selection.end.y if selection.end is not None else bounds[1]
    parts: list[str] = []
    for row in _rows_between(model, first, last):
        number = row_id(row.index, row.item_line)
        text = row.line.text
        start = selection.start.x if selection.start is not None and number == first else 0
        end = selection.end.x if selection.end is not None and number == last else len(text)
        if parts:
            parts.append(row.line.join if row.block_line else "\n")
        if not start and (not parts or parts[-1].endswith("\n")) and row.line.join == "\n":
            parts.append(row.line.lead)
        parts.append(text[start:end])
    return "".join(parts).rstrip("\n")


def _rows_between(model: TranscriptModel, first: int, last: int) -> list[Row]:
    rows: list[Row] = []
    index, line = divmod(first, ROW_SPAN)
    while index < len(model) and row_id(index, line) <= last and len(rows) < _MAX_ROWS:
        height = model.ensure(index)
        while line < height and row_id(index, line) <= last:
            rows.append(model.row(index, line))
            line += 1
        index, line = index + 1, 0
    return rows


def word_at(text: str, position: int) -> tuple[int, int] | None:
    """Return where the word at a character begins and ends; paths and addresses are words."""
    for found in _WORD.finditer(text):
        if found.start() <= position < found.end():
            return found.span()
    return None


def selection_of(row: int, span: tuple[int, int]) -> Selection:
    """Return the selection of some characters of one row."""
    return Selection(Offset(span[0], row), Offset(span[1], row))
