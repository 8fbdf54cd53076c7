"""A unified diff as rows: what was removed stands beside what was added in its place, and each has its code."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import zip_longest
from typing import Final, Literal

from tui_agent.editing.diffs import BoundedMatcher
from tui_agent.lazy import dataclass
from tui_agent.ui.widgets.transcript.code import Code, language_of_path

DiffRowKind = Literal["context", "removed", "added", "gap", "file", "note"]
Spans = tuple[tuple[int, int], ...]
"""Parts of a line: characters, ``end`` exclusive."""

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_PIECE: Final = re.compile(r"\w+|\s+|.")

_MIN_SIMILARITY: Final = 0.5
"""How alike two lines have to be for their difference to be marked; otherwise all of it is one."""

_MAX_COMPARED_CHARS: Final = 400
"""Characters up to which two lines are compared word by word."""

_MAX_STEPS: Final = 50_000
"""Pairs of equal words looked at for two lines."""

_NEAR: Final = 2
"""Characters between two marked parts that are marked too: a lone bracket in between would only flicker."""


@dataclass(slots=True)
class DiffRow:
    """A row of a diff. Rows that are no code (a gap between hunks, a file's name, a note) have their text in ``told``.

    ``old`` and ``new`` are line numbers, 0 where the line is not in that version. ``partner`` is the row that stands
    beside a changed one.
    """

    kind: DiffRowKind
    old: int = 0
    new: int = 0
    code: Code = field(default_factory=lambda: Code(""))
    index: int = 0
    told: str = ""
    partner: "DiffRow | None" = None

    @property
    def text(self) -> str:
        """The line without its sign, harmless and without tabs."""
        return self.code.lines[self.index] if self.code.lines else self.told

    def marks(self) -> Spans:
        """Return what of the line is not in its partner; nothing when they have little in common."""
        if self.partner is None:
            return ()
        removed, added = (self, self.partner) if self.kind == "removed" else (self.partner, self)
        return changed_parts(removed.text, added.text)[self.kind == "added"]


class _Reader:
    """Reads a diff line by line. How many lines a hunk has is counted: a line may look like a file's head."""

    def __init__(self) -> None:
        self._rows: list[DiffRow] = []
        self._old = self._new = self._old_left = self._new_left = 0
        self._codes = {"old": Code(""), "new": Code("")}
        self._lines: dict[str, list[str]] = {"old": [], "new": []}
        self._language = ""
        self._before_name = ""
        self._begun = False

    def read(self, lines: Sequence[str]) -> list[DiffRow]:
        for line in lines:
            if self._old_left > 0 or self._new_left > 0:
                self._in_hunk(line[:1], line[1:])
            else:
                self._between(line)
        self._end_hunk()
        return self._rows

    def _in_hunk(self, sign: str, text: str) -> None:
        if sign == "\\":
            self._note(text)
            return
        removed, added = sign == "-", sign == "+"
        kind: DiffRowKind = "removed" if removed else "added" if added else "context"
        side = "old" if removed else "new"
        row = DiffRow(kind, 0 if added else self._old, 0 if removed else self._new, self._codes[side])
        row.index = len(self._lines[side])
        self._rows.append(row)
        if not added:
            self._lines["old"].append(text)
            self._old, self._old_left = self._old + 1, self._old_left - 1
        if not removed:
            self._lines["new"].append(text)
            self._new, self._new_left = self._new + 1, self._new_left - 1

    def _between(self, line: str) -> None:
        if hunk := _HUNK.match(line):
            self._end_hunk()
            self._old, self._new = int(hunk[1]), int(hunk[3])
            self._old_left, self._new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            if self._begun:
                self._rows.append(DiffRow("gap", told="⋯"))
            self._begun = True
        elif line.startswith("--- "):
            self._before_name = line[4:]
        elif line.startswith("+++ "):
            self._end_hunk()
            name = line[4:]
            # A removed file is known by its old name.
            path = self._before_name if name == "/dev/null" else name
            self._language = language_of_path(path)
            self._rows.append(DiffRow("file", told=path.removeprefix("a/").removeprefix("b/")))
            self._begun = False
        elif line.startswith("\\"):
            self._note(line[1:])

    def _note(self, text: str) -> None:
        if not text.strip().startswith("No newline"):
            self._rows.append(DiffRow("note", told=text.strip()))
            self._old_left = self._new_left = 0

    def _end_hunk(self) -> None:
        for side, code in self._codes.items():
            code.replace(0, self._lines[side])
            self._lines[side] = []
        # A file's head ends a hunk that the next one's head ends again: nothing may be taken from its rows then.
        self._codes = {side: Code(self._language, "output") for side in ("old", "new")}


def read_diff(text: str) -> list[DiffRow]:
    """Return the rows of a unified diff of one or several files; the name of a single file is left out."""
    rows = _Reader().read(text.rstrip("\n").split("\n"))
    if sum(row.kind == "file" for row in rows) < 2:
        rows = [row for row in rows if row.kind != "file"]
    for removed, added in _changes(rows):
        for before, after in zip(removed, added, strict=False):
            before.partner, after.partner = after, before
    return rows


def side_by_side(rows: Sequence[DiffRow]) -> list[tuple[DiffRow | None, DiffRow | None]]:
    """Return the rows in pairs, old beside new; a row of both versions, or of none, is its own pair."""
    pairs: list[tuple[DiffRow | None, DiffRow | None]] = []
    removed: list[DiffRow] = []
    added: list[DiffRow] = []

    def flush() -> None:
        pairs.extend(zip_longest(removed, added))
        removed.clear()
        added.clear()

    for row in rows:
        if row.kind == "removed":
            if added:
                flush()
            removed.append(row)
        elif row.kind == "added":
            added.append(row)
        else:
            flush()
            pairs.append((row, row))
    flush()
    return pairs


def _changes(rows: Sequence[DiffRow]) -> Iterator[tuple[list[DiffRow], list[DiffRow]]]:
    """Yield what was removed and what was added in its place."""
    removed: list[DiffRow] = []
    added: list[DiffRow] = []
    for row in [*rows, DiffRow("gap")]:
        if row.kind == "added":
            added.append(row)
        else:
            if added:
                yield removed, added
                removed, added = [], []
            removed = [*removed, row] if row.kind == "removed" else []


@lru_cache(maxsize=2_048)
def changed_parts(old: str, new: str) -> tuple[Spans, Spans]:
    """Return what two lines do not have in common, in each of them; nothing when that would be most of them."""
    if max(len(old), len(new)) > _MAX_COMPARED_CHARS:
        return (), ()
    before, after = _PIECE.findall(old), _PIECE.findall(new)
    matcher = BoundedMatcher(before, after, autojunk=False, steps=_MAX_STEPS)
    same = sum(len("".join(before[block.a : block.a + block.size]).strip()) for block in matcher.get_matching_blocks())
    if same < _MIN_SIMILARITY * min(len(old.strip()), len(new.strip())):
        return (), ()
    codes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        _spans(before, [(code[1], code[2]) for code in codes]),
        _spans(after, [(code[3], code[4]) for code in codes]),
    )


def _spans(pieces: Sequence[str], parts: Sequence[tuple[int, int]]) -> Spans:
    starts = [0]
    for piece in pieces:
        starts.append(starts[-1] + len(piece))
    spans: list[tuple[int, int]] = []
    for first, last in parts:
        start, end = starts[first], starts[last]
        if spans and start - spans[-1][1] <= _NEAR:
            spans[-1] = (spans[-1][0], end)
        elif end > start:
            spans.append((start, end))
    return tuple(spans)
