"""The race page, which shows and compares the runners, and lets the user take one of them.

A race gives one task to several agents, its runners. To take a runner is to accept its result. The
`RaceView` does the work: it stops, steers, compares, merges and takes runners, and ends the race.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final

from rich.cells import set_cell_size
from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content

from tui_agent.app.format import dotted, money, one_line, short_model, visible
from tui_agent.app.frontend import Choice, TextLine
from tui_agent.app.race_text import headline
from tui_agent.errors import UserFacingError
from tui_agent.session.entries import RunnerState
from tui_agent.ui.bindings import hidden
from tui_agent.ui.later import Later
from tui_agent.ui.screens.page import PanePage
from tui_agent.ui.widgets.line_list import LineList
from tui_agent.ui.widgets.runner_pane import RunnerPane
from tui_agent.ui.widgets.table_list import TableList
from tui_agent.ui.widgets.transcript.lines import StyledSpan
from tui_agent.ui.widgets.transcript.races import COLUMNS, race_cells, ranked
from tui_agent.ui.widgets.two_columns import HangingText, wrap_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_agent.app.controller import Controller
    from tui_agent.app.race_views import RaceView
    from tui_agent.session.entries import RaceRunner

REFRESH_SECONDS: Final = 0.25
"""Seconds for which the runners' events are collected before the page is drawn again."""
MARK: Final = "▸"
"""Character that marks the runner with which the next diff will compare another runner."""
MIN_WIDTH_FOR_COLUMNS: Final = 100
"""Minimum width, in cells, at which the runners of a race are shown side by side."""

TONES: Final = {
    RunnerState.WAITING: "faint",
    RunnerState.WORKING: "accent",
    RunnerState.CHECKING: "accent",
    RunnerState.DONE: "text",
    RunnerState.PASSED: "good",
    RunnerState.FAILED: "error",
    RunnerState.PAUSED: "text",
    RunnerState.STOPPED: "warning",
    RunnerState.ERROR: "error",
    RunnerState.CUT_OFF: "warning",
}
RUNNING_KEYS: Final = "enter look  x stop  X stop all  w message  d diff  space mark  esc back"
OVER_KEYS: Final = (
    "enter look  t take  d diff  space mark  C compare  M merge  w message  X end  esc back"
)
HELD_UP_KEYS: Final = "enter look  t take  c continue  d diff  space mark  M merge  X end  esc back"
"""Keys that are shown after the race for a runner that stopped before it was done."""
PAST_KEYS: Final = "enter look  t go there  d diff  space mark  M merge  esc back"
MAX_COLUMNS: Final = 3
"""Maximum number of runners of a race that are shown side by side."""
GAP: Final = 2
HELD_UP: Final = frozenset(
    {RunnerState.CUT_OFF, RunnerState.PAUSED, RunnerState.STOPPED, RunnerState.ERROR}
)


async def act_on_runner(
    controller: Controller, race: RaceView, number: int, act: str, *, other: int | None = None
) -> bool:
    """Perform an action on a runner of a race; return True if the user took the runner's result.

    ``act`` is "stop", "diff", "steer" or "take". Runners are numbered from 1. ``other`` is the
    runner that a diff compares with; None means the start of the race.
    """
    runner = race.runners[number - 1]
    match act:
        case "stop":
            race.stop(number)
        case "diff":
            await race.diff(number, other)
        case "steer":  # a working runner reads the message at its next step; an ended one restarts
            if text := await controller.ask(TextLine(f"Message to {runner.name}", confirm="send")):
                await race.steer(number, text)
        case "take":
            if runner.state is RunnerState.FAILED:
                answers = [("n", "no, go back"), ("y", "yes, take it")]
                question = Choice("The runner failed the check. Take it anyway?", answers)
                if await controller.ask(question) != "y":
                    return False
            return await race.take(number)
    return False


class RaceScreen(PanePage):
    """The page that shows a race. Closing the page does not stop the race's runners."""

    AUTO_FOCUS = "TableList"
    BINDINGS = [
        hidden("space", "mark", "mark", priority=True),
        hidden("d", "runner('diff')", "diff"),
        hidden("C", "runner('compare')", "compare all"),
        hidden("t", "runner('take')", "take"),
        hidden("M", "runner('merge')", "merge"),
        hidden("w", "runner('steer')", "message"),
        hidden("x", "runner('stop')", "stop"),
        hidden("X", "stop_all", "stop all"),
        hidden("c", "runner('go_on')", "continue"),
    ]

    table = getters.query_one(TableList)
    details = getters.query_one(HangingText)
    live = getters.query_one("#runners-live", Horizontal)

    def __init__(self, controller: Controller, race: RaceView) -> None:
        super().__init__()
        self._controller = controller
        self._race = race
        self._numbers: list[int] = []
        self._marked: int | None = None
        self._was_over = self._is_over
        """Whether all runners had already ended when the page was last drawn."""
        self._redrawing = Later(self, self._draw)

    def body(self) -> ComposeResult:
        yield TableList(COLUMNS, id="runners")
        with VerticalScroll(id="pane", can_focus=False):
            yield HangingText(id="details")
        yield Horizontal(id="runners-live")

    def on_mount(self) -> None:
        self.when_left(self._race.subscribe(self._draw_soon))
        self.set_interval(REFRESH_SECONDS, self._tick)
        # Wait for a refresh, because the page's inner containers may not have been composed yet.
        self.call_after_refresh(self._draw)

    def _tick(self) -> None:
        """Draw the page again while the race runs.

        Output, times and costs change without events.
        """
        if not self._is_over:
            self._draw()

    def on_resize(self) -> None:
        if self._numbers:
            self._draw()

    # -- showing

    def _draw_soon(self, _event: object = None) -> None:
        self._redrawing.after(REFRESH_SECONDS)

    def _draw(self) -> None:
        race = self._race.now()
        at = self.number
        self._race = race
        runners = ranked(race.runners)
        self._numbers = [number for number, _runner in runners]
        rows = [self._row(number, runner) for number, runner in runners]
        self.heading.update(f"Race: {one_line(race.prompt, 300)}")
        counts = Counter(runner.state.replace("_", " ") for _number, runner in runners)
        cost = money(sum(runner.cost for _number, runner in runners))
        self.show_facts(
            " · ".join([*(f"{count} {state}" for state, count in counts.items()), cost])
        )
        ended = self._is_over and not self._was_over
        self._was_over = self._is_over
        place = None
        if at in self._numbers:
            place = self._numbers.index(at)
        self.table.show(rows, cursor=0 if ended else place)
        self.table.styles.height = min(len(rows) + 1, max(3, self.size.height // 2))
        self._show_details()

    def _row(self, number: int, runner: RaceRunner) -> Sequence[StyledSpan]:
        streamed = self._race.streamed(number)
        taken = number == self._race.taken
        row = race_cells(number, runner, TONES[runner.state], taken=taken, streamed=streamed)
        if self._race.is_asking(number):
            row[2] = ("? asks you", "warning")
        if number == self._marked:
            row[0] = (f"{MARK}{number}", "accent")
        else:
            row[0] = (f" {number}", "text")
        return row

    @property
    def number(self) -> int | None:
        if not self._numbers:  # the user may press a key before the page is drawn
            return None
        if self.table.cursor < len(self._numbers):
            return self._numbers[self.table.cursor]
        return None

    @on(LineList.Highlighted)
    def _show_details(self) -> None:
        if self.number is None:
            return
        runner = self._race.runners[self.number - 1]
        self.pane.display = not self._show_live(self.number)
        tells_one = self._was_over and not self._are_compared
        if tells_one:
            lines = [*self._details(runner)]
        else:
            lines = [*self._last_lines()]
        if tells_one and runner.check is None:
            lines += self._race.written(self.number).splitlines()
        self.details.update("\n".join(map(visible, lines)))
        self.keys.show(self._keys_of(runner))

    def _keys_of(self, runner: RaceRunner) -> str:
        if self._race.is_past:
            return PAST_KEYS
        if not self._was_over:
            return RUNNING_KEYS
        if runner.state in HELD_UP:
            return HELD_UP_KEYS
        return OVER_KEYS

    def _show_live(self, number: int) -> bool:
        """Show live conversations: all if they fit side by side, else that of runner ``number``.

        When all runners have ended, shows only the conversation of runner ``number``, or none if
        this runner has a check or a problem. Shows none while the answers are compared. Returns
        True if any conversation is shown.
        """
        agents = [self._race.agent_of(at) for at in range(1, len(self._race.runners) + 1)]
        runner = self._race.runners[number - 1]
        if self._are_compared:
            shown = []
        elif not self._was_over:
            shown = [at for at, one in enumerate(agents, 1) if one]
        elif agents[number - 1] is not None and runner.check is None and not runner.problem:
            shown = [number]
        else:
            shown = []
        if self.size.width < MIN_WIDTH_FOR_COLUMNS or len(agents) > MAX_COLUMNS:
            if number in shown:
                shown = [number]
            else:
                shown = []
        self.live.display = bool(shown)
        for _ in range(len(shown) - len(self.live.children)):
            self.live.mount(RunnerPane())
        for place, pane in enumerate(self.live.query(RunnerPane)):
            pane.display = place < len(shown)
            if not pane.display:
                continue
            if not pane.is_mounted:
                # A pane that is not mounted yet can't follow a runner, so draw the page again
                # later.
                self._draw_soon()
                continue
            agent = agents[shown[place] - 1]
            if agent is not None:
                name = visible(headline(self._race.runners[shown[place] - 1]))
                pane.follow(f"{shown[place]} {name}", agent)
        return bool(shown)

    def action_scroll(self, pages: int) -> None:
        if not self.live.display:
            super().action_scroll(pages)
            return
        for pane in self.live.query(RunnerPane):
            if pane.display:
                pane.transcript.action_move(0, pages)

    @property
    def _are_compared(self) -> bool:
        """Whether the page compares answers. It does if the runners have different contexts."""
        return any(runner.context for runner in self._race.runners)

    def _details(self, runner: RaceRunner) -> Iterator[str]:
        facts = (
            short_model(runner.model),
            runner.effort and f"effort {runner.effort}",
            runner.mode,
        )
        yield dotted(headline(runner), *facts)
        if runner.problem:
            yield runner.problem
        if runner.check is not None:
            yield f"$ {self._race.check}"
            yield from runner.check.last_lines

    def _last_lines(self) -> Sequence[str]:
        """Return each runner's name and last lines of output.

        The runners are side by side if there is room, otherwise one below the other.
        """
        runners = self._race.runners
        size = self.pane.scrollable_content_region.size
        in_columns = size.width >= MIN_WIDTH_FOR_COLUMNS and len(runners) <= MAX_COLUMNS
        if in_columns:
            width = (size.width - GAP * (len(runners) - 1)) // len(runners)
        else:
            width = size.width
        rows = max(2, size.height if in_columns else size.height // len(runners))
        shown = []
        for number, runner in enumerate(runners, 1):
            written = self._written(number, runner, max(8, width))
            shown.append([f"{number} {headline(runner)}", *written[1 - rows :]])
        if not in_columns:
            return [*chain.from_iterable(shown)]
        lines = []
        for row in zip_longest(*shown, fillvalue=""):
            cells = [set_cell_size(line, width) for line in row]
            lines.append((" " * GAP).join(cells).rstrip())
        return lines

    def _written(self, number: int, runner: RaceRunner, width: int) -> list[str]:
        lines = []
        if runner.state.is_over:
            lines = list(self._details(runner))[1:]
        if not runner.state.is_over or self._are_compared:
            lines += self._race.written(number).splitlines()
        found = []
        for line in lines:
            found.extend(wrap_columns(Content(visible(line)), width).plain.split("\n"))
        return found

    # -- acting

    def action_mark(self) -> None:
        if self._marked == self.number:
            self._marked = None
        else:
            self._marked = self.number
        self._draw()

    @property
    def _is_over(self) -> bool:
        return all(runner.state.is_over for runner in self._race.runners)

    def action_stop_all(self) -> None:
        """Stop all runners of the race.

        If all have already ended, ask whether to end the race without choosing a winner.
        """
        if self._is_over:
            self.action_runner("end")
        else:
            self._race.stop(None)

    @on(LineList.Chosen)
    def _chosen(self) -> None:
        self.action_runner("watch")

    def action_runner(self, act: str) -> None:
        if self.number is not None:
            self._controller.soon(self._act(act, self.number), changes_files=True)

    async def _act(self, act: str, number: int) -> None:
        """Perform an action on a runner or on the race; leave the page if that ends the race."""
        try:
            match act:
                case "watch":
                    self._race.watch(number)
                case "go_on":
                    self._race.go_on(number)
                case "compare":
                    self.notice.say("Comparing the changes …")
                    await self._race.compare()
                    self.notice.say_briefly("The comparison was added to the race's result.")
                case "merge":
                    self.notice.say("Summarising the runner's findings …")
                    await self._race.merge(number)
                    self.notice.say_briefly("The runner's findings were added to the conversation.")
                case "end":
                    why = "The branches stay in the tree; the copies of the project are deleted."
                    answers = [("y", "yes, end it"), ("n", "no, go back")]
                    answer = await self._controller.ask(
                        Choice("End the race without taking a runner?", answers, why=why)
                    )
                    if answer == "y" and await self._race.end():
                        self.dismiss(None)
                case _:
                    marked = None
                    if self._marked != number:
                        marked = self._marked
                    if await act_on_runner(self._controller, self._race, number, act, other=marked):
                        self.dismiss(None)
        except UserFacingError as error:
            self.notice.say_briefly(str(error))
