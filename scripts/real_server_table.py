"""Writes the table of a real server in docs/measured.md from what ``make neighbours`` recorded."""

import json
from pathlib import Path

from tests.neighbours.llama_server import RESULTS

DOCUMENT = Path(__file__).parents[1] / "docs" / "measured.md"
BEGIN, END = (
    "<!-- real server: written by scripts/real_server_table.py -->\n",
    "<!-- end of real server -->\n",
)


def table() -> str:
    """Return the table as Markdown: the first and the last turn as cached + uncached → written, in tokens."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))
    lines = [
        f"| {name} | {_turn(facts[0])} | {_turn(facts[-1]) if facts[1:] else ''} |\n"
        for name, facts in sorted(rows.items())
    ]
    return "| cached + uncached → written | first turn | last turn |\n|---|---|---|\n" + "".join(
        lines
    )


def _turn(fact: object) -> str:
    return "{} + {} → {}".format(*fact) if isinstance(fact, list) else str(fact)


if __name__ == "__main__":
    before, _begin, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}", encoding="utf-8")
