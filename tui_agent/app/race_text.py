"""Formats races as text: the cost before the start, the progress, and the results.

A race runs several agents, the runners, on one prompt. All functions are pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.format import about_cost, changes_text, money, one_line, plural, seconds, tokens
from tui_agent.app.frontend import Heading
from tui_agent.lazy import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_agent.session.entries import RaceEntry, RaceRunner

MANY_FILES = 10_000
"""Minimum number of project files for the question before a race to mention the number.

Copying so many files for each runner takes seconds.
"""
STATE_MARKS: Mapping[str, str] = {
    "waiting": "·",
    "working": "●",
    "checking": "◐",
    "done": "○",
    "passed": "✓",
    "failed": "✗",
    "paused": "‖",
    "stopped": "■",
    "error": "!",
    "cut_off": "…",
}
"""The glyph that shows the state of a runner."""


@frozen
class RacePrice:
    """The possible cost of a race, in US dollars.

    ``each`` is the cost limit of a runner, None for no limit. ``prefix`` is the number of tokens
    with which each runner begins; ``prefix_cost`` is the price of these tokens for all runners
    together, None if unknown.
    """

    runners: int
    each: float | None
    prefix: int
    prefix_cost: float | None
    alike: bool = True
    """Whether all runners begin with the same context."""
    files: int = 0
    """Number of files in the project, which are copied for each runner."""
    steps: int | None = None
    """Maximum number of steps of each runner; None for no limit."""

    @property
    def most(self) -> float | None:
        """Maximum cost of all runners together; None for no limit."""
        if self.each is None:
            return None
        return self.each * self.runners

    def sentence(self) -> str:
        """Return one or two sentences about starting the race: its attempts, limits and cost."""
        who = plural(self.runners, "attempt")
        if self.steps is not None:
            who += f" of at most {plural(self.steps, 'step')}"
        if self.files >= MANY_FILES:
            who += f", each in its own copy of the project ({self.files:,} files)"
        if self.most is None or self.each is None:
            limit = f"{who}, no cost limit."
        else:
            limit = f"{who}, at most {money(self.each)} each, {money(self.most)} together."
        if not self.prefix:
            return limit
        price = about_cost(self.prefix_cost, " for all")
        same = "" if self.alike else "at most "
        return f"{limit} Each starts with {same}{tokens(self.prefix)} tokens{price}."


def at_work(rows: Sequence[RaceRunner]) -> str:
    """Return how many runners are still working: ``race 2 of 3 at work``, or ``race over``."""
    working = sum(not row.state.is_over for row in rows)
    if working:
        return f"race {working} of {len(rows)} at work"
    return "race over"


def ranked(rows: Sequence[RaceRunner]) -> list[tuple[int, RaceRunner]]:
    """Return the runners with their numbers (from 1), best first."""
    return sorted(enumerate(rows, 1), key=lambda row: row[1].rank)


def cells(row: RaceRunner, streamed: str = "") -> tuple[str, ...]:
    """Return the cells of a runner's table row: state, check, changes, steps, tokens, cost, time.

    ``streamed`` is the text of the unfinished answer, whose tokens are estimated and added.
    """
    if row.check is None:
        check = ""
    elif row.check.exit_code is None:
        check = "not run"
    else:
        check = f"exit {row.check.exit_code}"
    # Providers report the tokens of a request only when it ends, and not if it was stopped.
    is_reported = bool(row.tokens or not row.steps)
    used = "–"
    if is_reported:
        used = tokens(row.tokens)
    if streamed:
        used = f"~{tokens(row.tokens + len(streamed) // 4)}"
    return (
        f"{STATE_MARKS[row.state]} {row.state.replace('_', ' ')}",
        check,
        changes_text(row.files, row.additions, row.deletions) or "no change",
        plural(row.steps, "step"),
        used,
        money(row.cost) if is_reported else "–",
        seconds(row.seconds),
    )


def headline(row: RaceRunner) -> str:
    """Return a runner's name and, if known, the size of its next request in tokens."""
    if not row.next_request:
        return row.name
    return f"{row.name} · next request {tokens(row.next_request)}"


def race_lines(rows: Sequence[RaceRunner], taken: int | None = None) -> list[str]:
    """Return the table of the runners, best first, with problems and last lines of failed checks.

    ``taken`` is the number of the runner whose work was taken, None if there is none.
    """
    in_order = list(ranked(rows))
    table = [(f"{number}", headline(row), *cells(row)) for number, row in in_order]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines: list[str] = []
    for (number, row), line in zip(in_order, table, strict=True):
        text = "  ".join(map(str.ljust, line, widths)).rstrip()
        lines.append(f"{text}  ← taken" if number == taken else text)
        if row.problem:
            lines.append(f"   {one_line(row.problem, 200)}")
        if row.state == "failed" and row.check is not None:
            for last in row.check.last_lines[-3:]:
                lines.append(f"   {one_line(last, 200)}")
    return lines


def entry_lines(entry: RaceEntry) -> list[str]:
    """Return a finished race as lines: prompt, table of runners, check, money saved, comparison."""
    return [
        Heading(one_line(entry.prompt, 200)),
        *race_lines(entry.runners, entry.taken),
        *tail_lines(entry),
    ]


def tail_lines(entry: RaceEntry) -> list[str]:
    """Return the lines below a finished race's table: its check, the money saved, the comparison.

    Lines about what the race doesn't have are left out.
    """
    if entry.check:
        check = [f"check: {one_line(entry.check, 200)}"]
    else:
        check = []
    if entry.saved:
        saved = [f"Stopping the others early saved about {money(entry.saved)}."]
    else:
        saved = []
    return [*check, *saved, *entry.comparison.splitlines()]
