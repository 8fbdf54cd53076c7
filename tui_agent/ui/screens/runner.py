"""A runner of a race, entered like a subagent: watched while it works, told something, stopped, read afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from tui_agent.agent.agent import Agent
from tui_agent.app import race_text
from tui_agent.app.format import one_line, short_model, visible
from tui_agent.app.frontend import TextLine
from tui_agent.errors import UserFacingError
from tui_agent.ui.gauge_reading import gauge_reading
from tui_agent.ui.screens.race import REFRESH_SECONDS, RaceScreen, take_runner
from tui_agent.ui.screens.subagent import SubagentScreen
from tui_agent.ui.widgets.gauge import Gauge
from tui_agent.ui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from textual.timer import Timer

    from tui_agent.app.controller import Controller
    from tui_agent.app.race_views import RaceView
    from tui_agent.ui.widgets.transcript.transcript import ShownAgent

OVER_KEYS = "j/k blocks  space fold  y copy  t take  d diff  w write to it  esc back"


class RunnerScreen(SubagentScreen):
    """Shows one runner over the race, which goes on beneath. The gauge is that of its next request."""

    KEYS = "j/k blocks  space fold  w write to it  x stop  d diff  y copy  esc back"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "steer", "write to it", show=False, id="runner.steer"),
        Binding("x", "stop", "stop", show=False, id="runner.stop"),
        Binding("d", "diff", "diff", show=False, id="runner.diff"),
        Binding("t", "take", "take", show=False, id="runner.take"),
    ]

    gauge = getters.query_one(Gauge)
    keys = getters.query_one("#keys", KeyLine)

    def __init__(self, controller: Controller, runner: ShownAgent, race: RaceView, number: int) -> None:
        super().__init__(controller, runner)
        self._race = race
        self._number = number
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """The subagent's page, with a gauge before the keys."""
        *above, keys = super().compose()
        yield from above
        yield Gauge(self._controller.clock)
        yield keys

    def on_mount(self) -> None:
        self.when_left(self._race.subscribe(self._measure_soon))

    def _open(self) -> None:
        super()._open()
        self._measure()

    def _measure_soon(self) -> None:
        """Measure once for many events: an answer comes in hundreds of pieces."""
        if self._timer is None:
            self._timer = self.set_timer(REFRESH_SECONDS, self._measure)

    def _measure(self) -> None:
        """Show how much of its window is used."""
        self._timer = None
        if isinstance(self._subagent, Agent):
            self.gauge.reading = gauge_reading(self._subagent, self._controller.clock())
        self.gauge.display = self.gauge.reading is not None
        self._tell()

    def _tell(self) -> None:
        runner = self._race.runners[self._number - 1]
        self.heading.update(f"{visible(runner.name)}: {one_line(self._race.prompt, 200)}")
        state, *others = race_text.cells(runner)
        self.facts.update(" · ".join(filter(None, [self._asking or state, short_model(runner.model), *others])))
        self.keys.show(OVER_KEYS if runner.state.is_over else self.KEYS)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A runner is no session that could be copied, and one that works can't be taken."""
        over = self._race.runners[self._number - 1].state.is_over
        allowed = {"fork": False, "take": over, "stop": not over}
        return allowed.get(action, True) and super().check_action(action, parameters)

    @on(Gauge.Pressed)
    def _gauge_pressed(self, message: Gauge.Pressed) -> None:
        message.stop()

    def action_steer(self) -> None:
        """Send the runner a message: while it works for its next step, afterwards it begins to work again."""
        self._do(self._steer())

    async def _steer(self) -> None:
        name = self._race.runners[self._number - 1].name
        if text := await self._controller.ask(TextLine(f"Message to {name}", confirm="send")):
            await self._race.steer(self._number, text)

    def action_stop(self) -> None:
        self._race.stop(self._number)

    def action_diff(self) -> None:
        self._do(self._race.diff(self._number, None))

    def action_take(self) -> None:
        self._do(self._take())

    async def _take(self) -> None:
        if await take_runner(self._controller, self._race, self._number):
            pages = [screen for screen in self.app.screen_stack if isinstance(screen, RaceScreen)]
            (pages[0] if pages else self).dismiss(None)

    def _do(self, work: Awaitable[object]) -> None:
        self._controller.soon(self._done(work))

    async def _done(self, work: Awaitable[object]) -> None:
        try:
            await work
        except UserFacingError as error:
            self.notify(str(error), severity="warning", markup=False)
