"""The jobs page, which shows background jobs, stops them and types into their terminals."""

import time

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Key, Paste
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui_agent.agent.agent import Agent
from tui_agent.agent.events import JobsChanged
from tui_agent.app.controller import Controller
from tui_agent.app.format import one_line, plural, seconds
from tui_agent.errors import ToolError
from tui_agent.processes.jobs import Job, JobState
from tui_agent.processes.terminal import KEYS, Terminal
from tui_agent.ui.bindings import hidden
from tui_agent.ui.inbox import AgentEvents, Inbox
from tui_agent.ui.screens.page import PanePage
from tui_agent.ui.widgets.options import Options
from tui_agent.ui.widgets.plain_text import PlainText
from tui_agent.ui.widgets.transcript import sanitize

MAX_OUTPUT_CHARS = 20_000
"""Maximum number of characters that are shown from the end of a job's output."""

TAKEN_KEYS = "ctrl+] give the terminal back"
RELEASE = "ctrl+right_square_bracket"
REDRAW_SECONDS = 0.1
"""Seconds between redraws of a terminal that the user types into."""

MAX_PASTED_CHARS = 1_000
"""Maximum number of characters of a paste that are typed into a job's terminal. Further characters
are dropped."""

_SIGNS = {"backslash": "\\", "circumflex_accent": "^", "underscore": "_"}
"""Characters that can be typed together with Ctrl, by Textual's names of their keys."""

TEXT_PAUSE_SECONDS = 0.5
"""Seconds for which the agent's text events are collected before they are handled. The time is
long, because this page doesn't show the text."""


def state_words(state: JobState, now: float) -> str:
    """Return a job's state and duration, and a failed job's exit code.

    An example is "ended after 3 s, exit 1". ``now`` is the current time, in seconds since the
    epoch.
    """
    took = seconds((now if state.ended_at is None else state.ended_at) - state.started_at)
    if state.running:
        return f"running {took}"
    if state.stopped:
        return f"stopped after {took}"
    return f"ended after {took}" + (f", exit {state.exit_code}" if state.exit_code else "")


def text_of_key(event: Key) -> str:
    """Return a key as text for `Job.type`: its character, or a name such as <up> or <C-a>.

    Returns "" if the terminal has no such key.
    """
    if event.is_printable and event.character:
        return event.character
    name = event.key.replace("+", "-")
    if name in KEYS:
        return f"<{name}>"
    letter = name.removeprefix("ctrl-")
    letter = _SIGNS.get(letter, letter)
    return f"<C-{letter}>" if name.startswith("ctrl-") and len(letter) == 1 else ""


def terminal_content(terminal: Terminal) -> Content:
    """Return the text on a terminal's screen, with highlights and the cursor in reverse video."""
    rows = []
    for row in terminal.rows():
        line = Content()
        for part in row:
            style = "reverse" if part.stands_out else ""
            line += Content.styled(sanitize.output(part.text), style)
        rows.append(line)
    return Content("\n").join(rows)


class JobsScreen(PanePage):
    """The page that shows background jobs. It is updated while they run.

    The user can type into a job's terminal.
    """

    KEYS = "x stop it  w take over  ↑↓ job  pgup/pgdn scroll  y copy output  esc back"
    AUTO_FOCUS = "OptionList"
    BINDINGS = [
        hidden("x", "stop", "stop it"),
        hidden("w", "take_over", "type into its terminal"),
        hidden("y", "copy", "copy output"),
        hidden("space", "scroll(1)", "down", priority=True),
    ]

    listing = getters.query_one(Options)
    output = getters.query_one("#output", PlainText)

    def __init__(self, controller: Controller, agent: Agent) -> None:
        super().__init__()
        self._controller = controller
        self._agent = agent
        self._inbox = Inbox(self, pause=lambda: TEXT_PAUSE_SECONDS)
        self._taken: Job | None = None

    def body(self) -> ComposeResult:
        yield Options(id="files", compact=True)
        with VerticalScroll(id="pane", can_focus=False):
            yield PlainText(id="output")

    def on_mount(self) -> None:
        self.when_left(self._agent.channel.subscribe(self._inbox.put))
        self.when_left(self._give_back)
        self.set_interval(1.0, self._show_list)
        self._redraw_timer = self.set_interval(REDRAW_SECONDS, self._show_output, pause=True)
        self._show()

    @on(AgentEvents)
    def _on_agent_event(self, message: AgentEvents) -> None:
        if any(isinstance(event, JobsChanged) for event in message.inbox.take()):
            if self._taken is not None and self._taken.ended.is_set():
                self._give_back()
            self._show()

    def _show(self) -> None:
        self._show_list()
        self._show_output()

    def _show_list(self) -> None:
        """Show the jobs with their current states in the list. The selected job stays selected."""
        jobs = list(self._agent.jobs)
        names = [str(job.id) for job in jobs]
        if names != [option.id for option in self.listing.options]:
            at = self.listing.highlighted
            selected = self.listing.highlighted_option
            self.listing.set_options(Option("", id=name) for name in names)
            if at is None or selected is None:
                self.listing.highlighted = len(jobs) - 1
            elif selected.id in names:
                self.listing.highlighted = names.index(selected.id)
            else:
                self.listing.highlighted = min(at, len(jobs) - 1)
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
            how = state_words(job, now)
            state = how
            if self.size.width >= 60:
                state = f"{how:<22}"
            text = f"{mark} {job.id}  {state}  {one_line(job.command, 200)}"
            self.listing.replace_option_prompt(str(job.id), Content(text))

    @property
    def _shown(self) -> Job | None:
        option = self.listing.highlighted_option
        if option is not None and option.id:
            return self._agent.jobs.find(int(option.id))
        return None

    @on(OptionList.OptionHighlighted)
    def _highlighted(self) -> None:
        self._show_output()
        self.pane.scroll_end(animate=False)

    def _show_output(self) -> None:
        follows = self.pane.scroll_offset.y >= self.pane.max_scroll_y
        shown: Content | str = ""
        job = self._shown
        if job is not None and job.terminal is not None:
            shown = terminal_content(job.terminal)
        elif job is not None:
            shown = sanitize.output(job.tail(MAX_OUTPUT_CHARS))
        self.output.update(shown or "(no output)")
        if follows:
            self.pane.scroll_end(animate=False)

    async def action_stop(self) -> None:
        if (job := self._shown) is not None:
            await job.stop()
            self._show()

    @property
    def takes_every_key(self) -> bool:  # type: ignore[override]  # changes here
        return self._taken is not None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - as inherited
        """Disable all actions while a job's terminal is taken over and receives every key."""
        return self._taken is None

    def action_take_over(self) -> None:
        job = self._shown
        if job is None:
            return
        if job.terminal is None:
            self.notice.say_briefly(f"Job {job.id} takes no input: it runs without a terminal.")
            return
        if job.ended.is_set():
            self.notice.say_briefly(f"Job {job.id} has ended.")
            return
        self._taken = job
        job.is_taken = True
        self.set_focus(None)
        self.add_class("-taken")
        self.call_after_refresh(self.pane.scroll_end, animate=False)
        self.keys.show(TAKEN_KEYS)
        self._redraw_timer.resume()

    def _give_back(self) -> None:
        if self._taken is None:
            return
        self._taken.is_taken = False
        self._taken = None
        self._redraw_timer.pause()
        self.remove_class("-taken")
        self.keys.show(self.KEYS)
        self.listing.focus()

    def on_key(self, event: Key) -> None:
        if self._taken is None:
            return
        event.stop()
        event.prevent_default()
        if event.key == RELEASE:
            self._give_back()
        else:
            self._type(text_of_key(event))

    def on_paste(self, event: Paste) -> None:
        if self._taken is not None:
            event.stop()
            text = event.text.replace("\r\n", "\n")
            # Type the characters one by one; as a whole, a pasted text such as <Enter> could be
            # read as a key's name.
            for character in text[:MAX_PASTED_CHARS]:
                self._type(character)
            if len(text) > MAX_PASTED_CHARS:
                self.notice.say_briefly(f"Only {MAX_PASTED_CHARS:,} characters were pasted.")

    def _type(self, text: str) -> None:
        try:
            if self._taken is not None:
                self._taken.type(text)
        except ToolError as error:
            self.notice.say_briefly(str(error))

    def action_copy(self) -> None:
        if (job := self._shown) is not None:
            self.app.copy_to_clipboard(job.tail(MAX_OUTPUT_CHARS))
