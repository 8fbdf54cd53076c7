"""What a benchmark gives: rows with a value, a target and a verdict, as a table and as JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One measured number.

    ``target`` is the most it may be, in the same unit, None when there is no target. ``note`` says how it was
    measured and what it is to be compared with.
    """

    benchmark: str
    what: str
    value: float
    unit: str
    target: float | None = None
    note: str = ""
    ratio: float | None = None
    """How many times that of a floor measured in the same run, which the note names; None where there is none."""

    @property
    def ok(self) -> bool | None:
        """Whether the target is met, None without a target."""
        return None if self.target is None else self.value <= self.target

    def as_json(self) -> dict[str, Any]:
        """Return the row and its verdict."""
        return asdict(self) | {"ok": self.ok}


def milliseconds(seconds: Iterable[float]) -> float:
    """Return the median of some seconds in milliseconds."""
    return median(seconds) * 1000


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that ``share`` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(rows: Sequence[Row]) -> str:
    """Lay the rows out in columns."""
    cells = [("", "benchmark", "what", "measured", "target", "x floor", "note")]
    for row in rows:
        mark = {True: "ok", False: "OVER", None: ""}[row.ok]
        target = "" if row.target is None else f"≤ {_number(row.target)} {row.unit}"
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        cells.append(
            (
                mark,
                row.benchmark,
                row.what,
                f"{_number(row.value)} {row.unit}",
                target,
                ratio,
                row.note,
            )
        )
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in cells)


def beside(rows: Sequence[Row]) -> str:
    """Lay rows called ``WHO: WHAT`` out as a Markdown table with a column for each program, then their notes."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        who, _colon, what = row.what.partition(": ")
        found.setdefault(what, {})[who] = row
    names = list(dict.fromkeys(row.what.partition(": ")[0] for row in rows))
    lines = [f"| | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    notes: list[str] = []
    for what, by_name in found.items():
        shown = [_value(by_name.get(name)) for name in names]
        lines.append(f"| {what} | {' | '.join(shown)} |")
        notes += [f"{row.what}: {row.note}" for row in by_name.values() if row.note]
    return "\n".join([*lines, "", *notes])


def _value(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{_number(row.value)} {row.unit}".strip()


def _number(value: float) -> str:
    if value and abs(value) < 10:
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{value:,.0f}"
