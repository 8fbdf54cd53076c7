"""The page with the conversation of a subagent or of a race's runner, updated while it works.

A race gives one task to several agents, its runners. The user can continue a subagent's branch in a
copy of the session. A runner has the same actions as on the race page (race.py).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import getters, on
from textual.app import ComposeResult

from tui_agent.agent.agent import Agent
from tui_agent.agent.events import PermissionAsked, PermissionSettled, RunEnded
from tui_agent.app import race_text
from tui_agent.app.format import dotted, money, one_line, plural, short_model, visible
from tui_agent.app.frontend import RunnerPage
from tui_agent.app.services import OpenRequest
from tui_agent.errors import UserFacingError
from tui_agent.session.entries import AssistantEntry, SubagentEntry
from tui_agent.session.path_queries import newest
from tui_agent.ui.bindings import hidden
from tui_agent.ui.gauge_reading import gauge_reading
from tui_agent.ui.inbox import AgentEvents, Inbox
from tui_agent.ui.later import Later
from tui_agent.ui.screens.page import FramedPage
from tui_agent.ui.screens.race import REFRESH_SECONDS, RaceScreen, act_on_runner
from tui_agent.ui.widgets.gauge import Gauge
from tui_agent.ui.widgets.transcript import messages
from tui_agent.ui.widgets.transcript.transcript import Transcript

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller
    from tui_agent.app.frontend import SubagentPage
    from tui_agent.app.race_views import RaceView

SUBAGENT_KEYS = "j/k blocks  space fold  y copy  f continue in a copy  esc back"
RUNNER_KEYS = "j/k blocks  space fold  w message  x stop  d diff  y copy  esc back"
ENDED_KEYS = "j/k blocks  space fold  y copy  t take  d diff  w message  esc back"


class BranchScreen(FramedPage[None]):
    """The page that shows the conversation of a subagent, or of a runner in a race.

    The gauge shows the next request on its branch.
    """

    AUTO_FOCUS = "Transcript"
    BINDINGS = [
        hidden("backspace", "back", "back"),
        hidden("f", "fork", "continue in a copy", id="subagent.fork"),
        hidden("w", "runner('steer')", "message", id="runner.steer"),
        hidden("x", "runner('stop')", "stop", id="runner.stop"),
        hidden("d", "runner('diff')", "diff", id="runner.diff"),
        hidden("t", "runner('take')", "take", id="runner.take"),
    ]

    transcript = getters.query_one(Transcript)
    gauge = getters.query_one(Gauge)

    def __init__(self, controller: Controller, page: SubagentPage | RunnerPage) -> None:
        super().__init__()
        self._controller = controller
        self._watched = page.watched
        self._race: RaceView | None = None
        self._number = 0
        if isinstance(page, RunnerPage):
            self._race = page.race
            self._number = page.number
        else:
            self.when_left(page.close)
        self._asking = ""
        self._measuring = Later(self, self._measure)
        self._inbox = Inbox(self, pause=lambda: self.transcript.pause)

    def body(self) -> ComposeResult:
        yield Transcript()
        yield Gauge(self._controller.clock)

    def on_mount(self) -> None:
        self.when_left(self._watched.channel.subscribe(self._inbox.put))
        if self._race is not None:
            self.when_left(self._race.subscribe(self._measure_soon))
        self.call_after_refresh(self._open)

    def _open(self) -> None:
        self.transcript.on_resize()
        self._inbox.take()
        self.transcript.open(self._watched)
        self._measure()

    def _measure_soon(self) -> None:
        """Schedule one `_measure` for many events, as an answer arrives in hundreds of pieces."""
        self._measuring.after(REFRESH_SECONDS)

    def _measure(self) -> None:
        if isinstance(self._watched, Agent):
            self.gauge.reading = gauge_reading(self._watched, self._controller.clock())
        self.gauge.display = self.gauge.reading is not None
        self._show_details()

    def _show_details(self) -> None:
        if self._race is None:
            heading, keys, facts = self._about_subagent()
        else:
            heading, keys, facts = self._about_runner(self._race)
        self.heading.update(heading)
        self.keys.show(keys)
        self.show_facts(dotted(*facts))

    def _about_runner(self, race: RaceView) -> tuple[str, str, list[str]]:
        runner = race.runners[self._number - 1]
        state, *others = race_text.cells(runner, race.streamed(self._number))
        keys = ENDED_KEYS if runner.state.is_over else RUNNER_KEYS
        facts = [self._asking or state, short_model(runner.model), *others]
        return f"{visible(runner.name)}: {one_line(race.prompt, 200)}", keys, facts

    def _about_subagent(self) -> tuple[str, str, list[str]]:
        session = self._watched.session
        parent = self._controller.agent
        info = session.info
        first = self._first_entry()
        agent = info.agent
        task = info.title
        start = None
        costs: dict[int, float] = {}
        if first is not None:
            agent = first.agent
            task = first.task
            start = first.parent_id
            costs = session.reader.costs()
        own = session.reader.parting(session.leaf, start).left
        owner = info
        if parent is not None:
            owner = parent.session.info
        answer = newest(session.active_path(), AssistantEntry)
        model = info.model
        if answer is not None:
            model = answer.model
        state = self._asking or ("working" if self._watched.running else "done")
        name = one_line(owner.title or owner.first_message, 60)
        spent = sum(costs.get(entry_id, 0.0) for entry_id in own.ids)
        facts = [f"subagent of “{name}”", short_model(model), plural(len(own), "entry"), state]
        heading = f"{one_line(agent, 40) or 'subagent'}: {one_line(task, 200)}"
        return heading, SUBAGENT_KEYS, [*facts, money(spent) if spent else ""]

    def _first_entry(self) -> SubagentEntry | None:
        """Return the first entry of a subagent's branch.

        Returns None if the subagent has its own session, and so has no branch in this one.
        """
        session = self._watched.session
        first = None
        if session.leaf is not None:
            first = session.reader.spine().subagent_of(session.leaf)
        for entry in session.entries([first or 0]):
            if isinstance(entry, SubagentEntry):
                return entry
        return None

    @on(AgentEvents)
    def _on_subagent_event(self, message: AgentEvents) -> None:
        for event in message.inbox.take():
            self.transcript.apply(event)
            match event:
                case PermissionAsked():
                    self._asking = "asks for permission"
                case PermissionSettled() | RunEnded():
                    self._asking = ""
                case _:
                    pass
        self._show_details()

    def action_fork(self) -> None:
        self.dismiss(None)
        self._controller.soon(self._fork())

    async def _fork(self) -> None:
        session = self._watched.session
        info = await asyncio.to_thread(
            self._controller.services.store.fork, session.id, session.leaf
        )
        await self._controller.open(OpenRequest(info.id))

    # -- a runner

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the actions that don't apply to the shown branch.

        A subagent has no runner actions. A runner can't be forked; a running one can't be taken,
        and an ended one can't be stopped.
        """
        if self._race is None:
            return action != "runner"
        if action == "fork":
            return False
        is_over = self._race.runners[self._number - 1].state.is_over
        return parameters != (("stop",) if is_over else ("take",)) and super().check_action(
            action, parameters
        )

    def action_runner(self, act: str) -> None:
        if self._race is not None:
            work = self._act(act, self._race, self._number)
            self._controller.soon(work, changes_files=True)

    async def _act(self, act: str, race: RaceView, number: int) -> None:
        try:
            if await act_on_runner(self._controller, race, number, act):
                races = [page for page in self.app.screen_stack if isinstance(page, RaceScreen)]
                (races[0] if races else self).dismiss(None)
        except UserFacingError as error:
            self.notice.say_briefly(str(error))

    # -- requests of the conversation

    @on(messages.ActionRequested)
    def _block_action(self, message: messages.ActionRequested) -> None:
        from tui_agent.app.session_commands import open_text

        if message.action == "open":
            open_text(self._controller, self._watched.session.entry(message.entry_id))
