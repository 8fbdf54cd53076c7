"""Converts a Jupyter notebook to the text of its cells, for reading and editing, and back. Pure.

Each cell begins with a line with its number and type (``# %% [3] code``). The outputs follow the
code, each line marked by ``#: ``. A changed text is converted back to the notebook's JSON;
metadata, ids, attachments, and the outputs of cells whose code is unchanged are kept.
"""

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from tui_agent.errors import ToolError
from tui_agent.lazy import LazyPattern, frozen

KINDS = ("code", "markdown", "raw")
NEW_CELL = 0
"""Value of `Cell.number` for a new cell, that is, one whose first line contains no number."""
OUTPUT_MARK = "#: "
"""Prefix of each line of a cell's outputs."""
MAX_OUTPUT_LINES = 30
"""Maximum number of lines shown of a cell's outputs."""
MAX_OUTPUT_LINE = 300
"""Maximum characters shown of a line of a cell's output."""
_WITH_IDS = (4, 5)
"""First version of the notebook format in which cells have ids."""
_HEAD = LazyPattern(r"# %% (?:\[(\d{1,6})\] )?(code|markdown|raw)")
_AMBIGUOUS = LazyPattern(r"^(?:# %% (?:\[\d+\] )?(?:code|markdown|raw)$|#: |#:$)", re.MULTILINE)
_LAYOUTS = tuple(
    (indent, ascii_only) for indent in (1, 2, 4, None, "\t") for ascii_only in (False, True)
)

Cell = dict[str, Any]


@frozen
class _EditedCell:
    """A cell in an edited text: its number (`NEW_CELL` for a new cell), its type and its lines."""

    number: int
    kind: str
    lines: list[str]

    @property
    def source(self) -> str:
        return "\n".join(self.lines)


@frozen
class Notebook:
    """A notebook: its JSON text on disk, the parsed JSON, and the text of its cells."""

    raw: str
    values: dict[str, Any]
    text: str

    def changed(self, text: str) -> str:
        """Return the notebook's JSON text after its cells' text was changed to ``text``.

        A cell keeps the metadata of the old cell with its number. The JSON keeps the file's
        indentation. Raises ToolError if ``text`` doesn't begin with a cell.
        """
        cells: list[Cell] = self.values["cells"]
        used: set[int] = set()
        made = []
        for written in _cells_in(text):
            number = written.number
            old = None
            if 1 <= number <= len(cells) and number not in used:
                used.add(number)
                old = cells[number - 1]
            made.append(self._cell(written, old))
        return _in_layout(self.values | {"cells": made}, self.raw)

    def _cell(self, written: _EditedCell, old: Cell | None) -> Cell:
        if old is not None and _source(old) == written.source and old["cell_type"] == written.kind:
            return old
        cell: Cell = dict(old or {"cell_type": written.kind, "metadata": {}})
        version = (self.values.get("nbformat", 4), self.values.get("nbformat_minor", 0))
        if "id" not in cell and version >= _WITH_IDS:
            cell["id"] = secrets.token_hex(4)
        cell["cell_type"] = written.kind
        if isinstance(cell.get("source"), str):
            cell["source"] = written.source
        else:
            cell["source"] = written.source.splitlines(keepends=True)
        if written.kind == "code":
            # The old outputs don't belong to the new code.
            cell |= {"execution_count": None, "outputs": []}
            cell.pop("attachments", None)
        else:
            cell.pop("execution_count", None)
            cell.pop("outputs", None)
        return cell


def opened(name: str, raw: str) -> Notebook | None:
    """Return the notebook for a file's name and its JSON text.

    Returns None if the name doesn't end in ``.ipynb``, if the JSON text is not a notebook with
    cells, or if a cell contains lines that look like this module's marks.
    """
    if not name.lower().endswith(".ipynb"):
        return None
    try:
        values = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    cells = values.get("cells")
    if not isinstance(cells, list) or not cells or not all(map(_is_cell, cells)):
        return None
    if any(_AMBIGUOUS.search(_source(cell)) for cell in cells):
        return None
    lines: list[str] = []
    for number, cell in enumerate(cells, 1):
        lines += _shown(number, cell)
    return Notebook(raw, values, "\n".join(lines) + "\n")


def _is_cell(cell: object) -> bool:
    if not isinstance(cell, dict) or cell.get("cell_type") not in KINDS:
        return False
    return is_source(cell.get("source"))


def is_source(value: object) -> bool:
    """Return True if a parsed JSON value can be a cell's source: a string or a list of strings."""
    if isinstance(value, list):
        return all(isinstance(line, str) for line in value)
    return isinstance(value, str)


def _source(cell: Cell) -> str:
    return _text(cell["source"])


def _shown(number: int, cell: Cell) -> Iterator[str]:
    yield f"# %% [{number}] {cell['cell_type']}"
    yield from _source(cell).split("\n")
    outputs = cell.get("outputs")
    if cell["cell_type"] == "code" and isinstance(outputs, list):
        lines: list[str] = []
        for output in outputs:
            lines += _output_lines(output)
        yield from (f"{OUTPUT_MARK}{line[:MAX_OUTPUT_LINE]}" for line in lines[:MAX_OUTPUT_LINES])
        if len(lines) > MAX_OUTPUT_LINES:
            yield f"{OUTPUT_MARK}[{len(lines) - MAX_OUTPUT_LINES:,} more lines of output]"


def _output_lines(output: object) -> Sequence[str]:
    """Return the lines of a cell's output as plain text.

    Of images, videos and application data, only the type is shown; HTML is omitted.
    """
    if not isinstance(output, dict):
        return ()
    if output.get("output_type") == "error":
        return (f"{output.get('ename')}: {output.get('evalue')}",)
    data = output.get("data")
    if not isinstance(data, dict):
        return _text(output.get("text")).rstrip("\n").split("\n")
    lines: list[str] = []
    if "text/plain" in data:
        lines = _text(data["text/plain"]).rstrip("\n").split("\n")
    lines += [f"[{kind}]" for kind in data if kind.startswith(("image/", "application/", "video/"))]
    return lines


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return ""


def _cells_in(text: str) -> list[_EditedCell]:
    found: list[_EditedCell] = []
    for line in text.removesuffix("\n").split("\n"):
        head = _HEAD.fullmatch(line)
        if head is not None:
            found.append(_EditedCell(int(head[1] or NEW_CELL), head[2], []))
        elif found and not _is_output(line):
            found[-1].lines.append(line)
        elif not found and line.strip():
            break
    if not found:
        raise ToolError(
            "Nothing was changed: each cell of a notebook must begin with a line like “# %% code” "
            "or “# %% markdown”."
        )
    return found


def _is_output(line: str) -> bool:
    return line.startswith(OUTPUT_MARK) or line == OUTPUT_MARK.rstrip()


def _in_layout(values: dict[str, Any], like: str) -> str:
    """Return values as JSON text with the indentation, escapes and final line feeds of ``like``.

    ``like`` is another JSON text; if its layout is unusual, the indentation is one space.
    """
    before = json.loads(like)
    end = like[len(like.rstrip("\n")) :]
    for indent, ascii_only in _LAYOUTS:
        if json.dumps(before, indent=indent, ensure_ascii=ascii_only) + end == like:
            return json.dumps(values, indent=indent, ensure_ascii=ascii_only) + end
    return json.dumps(values, indent=1, ensure_ascii=False) + end
