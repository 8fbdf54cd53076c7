"""The background jobs of a session: their states, their output, and a key to stop one."""

import time
from typing import ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui_agent.agent.agent import Agent
from tui_agent.agent.events import JobsChanged
from tui_agent.app.controller import Controller
from tui_agent.app.format import one_line, plural, seconds
from tui_agent.app.frontend import TextLine
from tui_agent.errors import ToolError
from tui_agent.processes.jobs import Job, JobState
from tui_agent.ui.inbox import AgentEvents, Inbox
from tui_agent.ui.screens.page import PanePage
from tui_agent.ui.widgets.options import Options
from tui_agent.ui.widgets.transcript import sanitize

MAX_OUTPUT_CHARS = 20_000
"""Characters of a job's output that are shown: the last ones."""

KEY_NAMES = "<C-c>, <Esc>, <Up>, <Tab> are keys; Enter is added."

WORDS_SECONDS = 0.5
"""Time for which the agent's events, which change nothing here, are kept together."""


def how_it_is(state: JobState, now: float) -> str:
    """Return how a job is doing, in a few words. ``now`` is seconds since the epoch."""
    took = seconds((now if state.ended_at is None else state.ended_at) - state.started_at)
    if state.running:
        return f"running {took}"
    if state.stopped:
        return f"stopped after {took}"
    return f"ended after {took}" + (f", exit {state.exit_code}" if state.exit_code else "")


class JobsScreen(PanePage):
    """Shows jobs over the conversation; it follows their output."""

    KEYS = "x stop it  w type  ↑↓ job  pgup/pgdn scroll  y copy output  esc back"
    AUTO_FOCUS = "OptionList"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "stop", "stop it", show=False),
        Binding("w", "type", "type into its terminal", show=False),
        Binding("y", "copy", "copy output", show=False),
        Binding("space", "scroll(1)", "down", show=False, priority=True),
    ]

    listing = getters.query_one(Options)
    output = getters.query_one("#output", Static)

    def __init__(self, controller: Controller, agent: Agent) -> None:
        super().__init__()
        self._controller = controller
        self._agent = agent
        self._inbox = Inbox(self, pause=lambda: WORDS_SECONDS)

    def body(self) -> ComposeResult:
        yield Options(id="files", compact=True)
        with VerticalScroll(id="pane", can_focus=False):
            yield Static(id="output", markup=False)

    def on_mount(self) -> None:
        self.when_left(self._agent.channel.subscribe(self._inbox.put))
        self.set_interval(1.0, self._show_times)
        self._show()

    @on(AgentEvents)
    def _on_agent_event(self, message: AgentEvents) -> None:
        if any(isinstance(event, JobsChanged) for event in message.inbox.take()):
            self._show()

    def _show(self) -> None:
        jobs = list(self._agent.jobs)
        at = self.listing.highlighted
        if [str(job.id) for job in jobs] != [option.id for option in self.listing.options]:
            self.listing.set_options(Option("", id=str(job.id)) for job in jobs)
            if at is None:
                self.listing.highlighted = len(jobs) - 1
            else:
                self.listing.highlighted = min(at, len(jobs) - 1)
        self._show_times()
        self._show_output()

    def _show_times(self) -> None:
        jobs = list(self._agent.jobs)
        running = sum(job.running for job in jobs)
        self.heading.update(
            f"Background jobs · {plural(running, 'job')} running" if running else "Background jobs"
        )
        now = time.time()
        for job in jobs:
            if job.running:
                mark = "◐"
            elif job.exit_code:
                mark = "✗"
            else:
                mark = "●"
            how = how_it_is(job, now)
            state = how
            if self.size.width >= 60:
                state = f"{how:<22}"
            text = f"{mark} {job.id}  {state}  {one_line(job.command, 200)}"
            self.listing.replace_option_prompt(str(job.id), Content(text))

    @property
    def _shown(self) -> int | None:
        option = self.listing.highlighted_option
        if option is not None and option.id:
            return int(option.id)
        return None

    @on(OptionList.OptionHighlighted)
    def _highlighted(self) -> None:
        self._show_output()
        self.pane.scroll_end(animate=False)

    def _show_output(self) -> None:
        follows = self.pane.scroll_offset.y >= self.pane.max_scroll_y
        text = ""
        if self._shown is not None:
            text = self._agent.jobs.find(self._shown).tail(MAX_OUTPUT_CHARS)
        self.output.update(sanitize.output(text) or "(it has printed nothing)")
        if follows:
            self.pane.scroll_end(animate=False)

    async def action_stop(self) -> None:
        if self._shown is not None:
            await self._agent.jobs.find(self._shown).stop()
            self._show()

    def action_type(self) -> None:
        if self._shown is not None:
            self._controller.soon(self._type(self._agent.jobs.find(self._shown)))

    async def _type(self, job: Job) -> None:
        """Ask for a line, and type it into a job's terminal with Enter at its end."""
        if job.terminal is None:
            self.notice.say_briefly(f"Job {job.id} takes no input: it runs without a terminal.")
            return
        text = await self._controller.ask(TextLine("Type into the terminal", "", "send", KEY_NAMES))
        if text is None:
            return
        try:
            job.type(f"{text}\n")
        except ToolError as error:
            self.notice.say_briefly(str(error))

    def action_copy(self) -> None:
        if self._shown is not None:
            self.app.copy_to_clipboard(self._agent.jobs.find(self._shown).tail(MAX_OUTPUT_CHARS))
