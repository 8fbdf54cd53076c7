"""Shows a finished race in the conversation: a line with the outcome, and a table of runners.

In a race, several agents, called runners, work on the same task. The screen of a race uses the same
columns, rows and styles.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from tui_agent.app import race_text
from tui_agent.session.entries import RaceEntry, RaceRunner, RunnerState
from tui_agent.ui.widgets.table_list import Column, table_row, widths
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.blocks import Fold, MarkerBlock
from tui_agent.ui.widgets.transcript.bodies import INDENT, TextBody, body_lines
from tui_agent.ui.widgets.transcript.lines import Line, StyledSpan

COLUMNS: Final = (
    Column("", 9),
    Column("runner", 8, grows=True),
    Column("state", 7),
    Column("check", 6),
    Column("changes", 3),
    Column("steps", 1, right=True),
    Column("tokens", 2, right=True),
    Column("cost", 5, right=True),
    Column("time", 4, right=True),
)
STYLES: Final = {
    RunnerState.WAITING: "status-idle",
    RunnerState.WORKING: "status-running",
    RunnerState.CHECKING: "status-running",
    RunnerState.DONE: "status-idle",
    RunnerState.PASSED: "status-ok",
    RunnerState.FAILED: "status-error",
    RunnerState.PAUSED: "status-idle",
    RunnerState.STOPPED: "status-warning",
    RunnerState.ERROR: "status-error",
    RunnerState.CUT_OFF: "status-warning",
}
"""Maps the states of a race's agents to styles, which are used wherever the agents are shown."""


def ranked(runners: Sequence[RaceRunner]) -> list[tuple[int, RaceRunner]]:
    """Return the runners of a race, each with its number, counted from 1.

    If all runners have ended, the best one comes first. Otherwise, they are in the order of their
    numbers.
    """
    if all(runner.state.is_over for runner in runners):
        return race_text.ranked(runners)
    return list(enumerate(runners, 1))


def race_cells(
    number: int, runner: RaceRunner, style: str, *, taken: bool = False, streamed: str = ""
) -> list[StyledSpan]:
    """Return a runner's row in the table of a race, with a span for each of `COLUMNS`.

    ``style`` is the style of the runner's state. ``taken`` says that the user took this runner's
    branch as the result of the race. ``streamed`` is the runner's unfinished answer, whose tokens
    are estimated and added to the runner's tokens.
    """
    state, *others = race_text.cells(runner, streamed)
    if taken:
        name = f"{runner.name} · taken"
    else:
        name = runner.name
    first = [(sanitize.line(name), "strong" if taken else "text"), (state, style)]
    return [(str(number), "text"), *first, *((text, "text") for text in others)]


def race_block(entry: RaceEntry) -> MarkerBlock:
    """Return the block that shows a finished race.

    It is unfolded at first, so that the user sees how to continue.
    """
    copied = "\n".join(race_text.entry_lines(entry))
    text = f"Race: {entry.preview}"
    block = MarkerBlock(
        "race",
        text,
        rule="marker",
        actions=("enter",),
        body=lambda width: _body(entry, width),
        copied=copied,
    )
    block.fold = Fold.FULL
    return block


def _body(entry: RaceEntry, width: int) -> Iterator[Line]:
    heads = [(column.title, "muted") for column in COLUMNS]
    rows = [
        race_cells(number, runner, STYLES[runner.state], taken=number == entry.taken)
        for number, runner in ranked(entry.runners)
    ]
    wide = widths(COLUMNS, rows, width - len(INDENT))
    for row in (heads, *rows):
        yield Line(table_row(COLUMNS, wide, row), prefix=((INDENT, "text"),))
    if tail := "\n".join(race_text.tail_lines(entry)):
        yield Line()
        yield from body_lines(TextBody(sanitize.text(tail), "muted"), width)
