"""What a search has found: the first lines by path are kept, all matches are counted."""

from collections.abc import Callable
from dataclasses import field

from tui_agent.lazy import dataclass

MAX_ROWS = 200
"""Lines that are shown."""

MAX_COLUMNS = 300
"""Characters shown of a line."""


@dataclass(frozen=True, slots=True)
class MatchRow:
    """A line as it is shown; ``hit`` is off for one that only stands beside a match."""

    text: str
    hit: bool


@dataclass(slots=True)
class Matches:
    """Matches by path, in whatever order files come in. ``files`` counts those with a match."""

    total: int = 0
    files: int = 0
    secrets: list[str] = field(default_factory=list)
    timed_out: bool = False
    _rows: dict[str, list[tuple[int, MatchRow]]] = field(default_factory=dict)
    _held: int = 0
    _last_path: str = ""
    _limit: str | None = None
    """Paths after this one are past what is shown."""

    def add(self, path: str, number: int, line: str, *, hit: bool = True) -> None:
        """Take a line; those of one file come together and in order."""
        if hit:
            self.total += 1
            self.files += path != self._last_path
            self._last_path = path
        if self._limit is not None and path > self._limit:
            return
        rows = self._rows.setdefault(path, [])
        if len(rows) < MAX_ROWS:
            rows.append((number, MatchRow(f"{number}{':' if hit else '-'} {_cut(line)}", hit)))
            self._held += 1
        if self._held > 10 * MAX_ROWS:
            self._forget()

    def rows(self, shown: Callable[[str], str], *, apart: bool) -> list[MatchRow]:
        """Return the first lines by path.

        Args:
            shown: returns a path as it is shown.
            apart: whether a line of dashes stands where lines are left out.
        """
        found: list[MatchRow] = []
        for path in sorted(self._rows):
            name, last = shown(path), -1
            for number, row in self._rows[path]:
                if apart and found and number != last + 1:
                    found.append(MatchRow("--", hit=False))
                found.append(MatchRow(f"{name}:{row.text}", row.hit))
                last = number
                if len(found) >= MAX_ROWS:
                    return found
        return found

    def _forget(self) -> None:
        kept: dict[str, list[tuple[int, MatchRow]]] = {}
        self._held = 0
        for path in sorted(self._rows):
            kept[path] = self._rows[path]
            self._held += len(kept[path])
            self._limit = path
            if self._held >= MAX_ROWS:
                break
        self._rows = kept


def _cut(line: str) -> str:
    line = line.rstrip("\r\n")
    return line if len(line) <= MAX_COLUMNS else f"{line[:MAX_COLUMNS]} [...]"
