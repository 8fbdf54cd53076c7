"""The widgets around the open session (header, notices, prompt, gauge, status), and their data.

This is one half of the frontend that the controller calls. The other half is in main.py: questions,
pages and keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events, work
from textual.app import ComposeResult
from textual.geometry import Region, Size
from textual.strip import Strip

from tui_agent.app.commands import key_of
from tui_agent.app.controller import Controller
from tui_agent.app.format import short_path
from tui_agent.app.frontend import Frontend, Remedy, Severity
from tui_agent.app.unsent import UnsentKeeper
from tui_agent.ui.attention import Attention
from tui_agent.ui.bindings import EVERYWHERE, find_binding
from tui_agent.ui.error_boundary import BoundedScreen
from tui_agent.ui.prompting.sources import FileSource, sources
from tui_agent.ui.widgets.attachments import AttachmentStrip
from tui_agent.ui.widgets.completion import CompletionPopup
from tui_agent.ui.widgets.fast_paint import BackgroundContainer, empty_lines
from tui_agent.ui.widgets.gauge import Gauge, numbers
from tui_agent.ui.widgets.header import MIN_TERMINAL_SIZE, SessionHeader
from tui_agent.ui.widgets.notice import NoticeLine
from tui_agent.ui.widgets.prompt import Prompt
from tui_agent.ui.widgets.status import StatusLine
from tui_agent.ui.widgets.user_status import UserStatusLine

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.agent.events import AgentEvent
    from tui_agent.app.run_state import RunState
    from tui_agent.app.side_by_side import Aside

MAX_HISTORY = 1_000
"""Maximum number of earlier messages in the prompt's history."""


class SessionFrame(BoundedScreen[None], Frontend):
    """The part of the controller's frontend that handles neither the transcript nor pages.

    Methods that need the session's agent do nothing until a session is open.
    """

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (70, "-normal"), (120, "-wide")]
    VERTICAL_BREAKPOINTS = [
        (0, "-tiny"),
        (18, "-short"),
        (23, "-low"),
        (28, "-tall"),
        (40, "-huge"),
    ]

    def __init__(self, on_event: Callable[[AgentEvent], None]) -> None:
        """Create the frame. ``on_event`` is called with events of the open session's agent."""
        super().__init__()
        self.controller = Controller(self, on_event)
        """The controller, which keeps the open session and runs the user's commands."""
        self.keymap: Mapping[str, str] = {}
        self.attention = Attention(self, self.controller, lambda: self.prompt.last_typed)
        """The notifier, which shows the agent's state in the terminal's title and notifies a user
        who is away."""
        self._files = FileSource(self.controller)
        self.unsent = UnsentKeeper(self.controller)
        """The object that saves the prompt's draft and the waiting messages for the next start."""
        self._was_shown = False

        # The widgets are attributes, not looked up: commands may still use them while the program
        # ends and removes them from the screen.
        self.header = SessionHeader(short_path(Path.cwd()))
        self.body = BackgroundContainer(id="body")
        self.notice = NoticeLine()
        self.popup = CompletionPopup(
            lambda: self.controller.commands,
            sources(self.controller, self._files),
            self._prompt_keys,
        )
        self.attachments = AttachmentStrip(self.controller)
        self.prompt = Prompt(self.popup, self._history, self.clock, self.take_back, self.key_of)
        self.gauge = Gauge(self.clock)
        self._user_status = UserStatusLine(
            self._state,
            lambda: self.controller.cwd,
            self._problem_of_command,
            self.warn,
        )
        self.status = StatusLine(self.clock, self.key_of)

    def compose(self) -> ComposeResult:
        yield self.header
        with self.body:
            yield self.notice
            yield self.popup
        yield self.attachments
        yield self.prompt
        yield self.gauge
        yield self._user_status
        yield self.status

    def _problem_of_command(self, cwd: Path, command: str) -> str:
        """Return why a command from the settings must not run in ``cwd``; "" if it may.

        Reads files.
        """
        return self.controller.services.problem_of_command(cwd, command)

    def key_of(self, name: str) -> str:
        """Return the first key of an action as text to show; ``name`` is the action's binding id.

        For a command without a key, returns ``/name``; for another action without a key, "".
        """
        own = find_binding(name, (*EVERYWHERE, *self.BINDINGS, *Prompt.BINDINGS))
        if own is None or own.action.startswith("command("):
            return key_of(name, self.keymap)
        return self.keymap.get(name, own.key).partition(",")[0]

    def _prompt_keys(self) -> Sequence[tuple[str, str]]:
        from tui_agent.ui.key_help import rebindable_actions
        from tui_agent.ui.prompt_keys import prompt_keys

        return prompt_keys(rebindable_actions(self.BINDINGS), self.keymap)

    def fit(self, size: Size) -> None:
        """Set the CSS classes for the terminal's size.

        Called before the first layout, so that widgets are styled only once.
        """
        for cells, breakpoints in (
            (size.width, self.HORIZONTAL_BREAKPOINTS),
            (size.height, self.VERTICAL_BREAKPOINTS),
        ):
            self.add_class(
                max((least, name) for least, name in breakpoints if cells >= least)[1], update=False
            )

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Skip restyling when first shown, because mounting has already styled the screen."""
        event.refresh_styles = event.refresh_styles and self._was_shown
        self._was_shown = True

    def render_lines(self, crop: Region) -> list[Strip]:
        return empty_lines(self, crop) or super().render_lines(crop)

    @property
    def agent(self) -> Agent | None:
        return self.controller.agent

    @property
    def is_closed(self) -> bool:
        return not self.app.is_running

    def update_node_styles(self, animate: bool = True) -> None:  # noqa: FBT001, FBT002 - as inherited
        """Restyle all widgets, except after a change of the terminal's focus, to save time."""
        if not getattr(self.app, "is_refocusing", False):
            super().update_node_styles(animate)

    def clock(self) -> float:
        """Return the current time in seconds since the epoch, by the controller's clock."""
        return self.controller.clock()

    def on_resize(self, event: events.Resize) -> None:
        self.header.cramped = (
            event.size.width < MIN_TERMINAL_SIZE.width
            or event.size.height < MIN_TERMINAL_SIZE.height
        )

    def say(
        self, message: str, severity: Severity = "information", remedy: Remedy | None = None
    ) -> None:
        self.notice.say(message, severity, remedy)

    def announce(self, message: str, severity: Severity = "information") -> None:
        if self.app.screen is self:
            self.say(message, severity)
        else:
            self.notify(message, severity=severity)

    def warn(self, message: str) -> None:
        self.notify(message, severity="warning")

    @property
    def progress(self) -> RunState:
        return self.status.state

    def show_asides(self, asides: Sequence[Aside]) -> None:
        from tui_agent.app.side_by_side import count_words

        self.status.asides = count_words(asides)

    def call_to_aside(self, aside: Aside, sentence: str) -> None:
        self.notify(f"{sentence} · {self.key_of('sessions')}")
        self.attention.notify_about_aside(aside, sentence)

    def show_live_size(self) -> None:
        """Add the estimated size of the answer being streamed, if there is one, to the gauge."""
        from tui_agent.ui.gauge_reading import with_live

        shown = self.gauge.reading
        measured = self.gauge.measured
        live = None
        if self.agent is not None:
            live = self.agent.live
        if shown is None or measured is None or live is None:
            return
        grown = with_live(measured, live)
        if numbers(grown.size) != numbers(shown.size):
            self.gauge.reading = grown

    def refresh_facts(self) -> None:
        """Update all widgets around the session with the current facts about its agent.

        If the agent has a model, also cancels the first start's question about the model to use.
        """
        from tui_agent.ui.gauge_reading import budget_words, gauge_reading

        if (agent := self.agent) is None:
            return
        if agent.model and self.controller.choosing is not None:
            self.controller.choosing.cancel()
        info = agent.session.info
        self.header.title = info.title or info.first_message
        self.header.directory = short_path(info.cwd)
        if self.status.model != agent.model:
            self.attachments.reload()
        self.status.stands_in_for = agent.stands_in_for or ""
        self.status.mode = agent.mode
        self.status.model = agent.model
        self.status.leaf = agent.session.leaf
        self.status.effort = agent.effort.level or ""
        reading = gauge_reading(agent, self.clock())
        self.gauge.measure(reading)
        self.status.cost = reading.cost
        self.status.budgets = budget_words(agent.allowance)
        self.status.plan = agent.ports.directory.plan.words(agent.model, now=self.clock())
        self.status.used = agent.session_tokens()
        self.status.goal = agent.goals.words or agent.repeated_message.words
        self.show_race()
        self.refresh_bindings()
        self.attention.show_title()
        self._user_status.run_soon()

    def show_race(self) -> None:
        from tui_agent.app.race_text import at_work

        race = self.controller.race
        if race is not None:
            self.status.race = at_work([runner.record for runner in race.runners])
        else:
            self.status.race = ""

    def _state(self) -> Mapping[str, object] | None:
        """Return the facts about the session that the command ``ui.status_line`` receives.

        Returns None without a session.
        """
        agent = self.agent
        reading = self.gauge.reading
        if agent is None or reading is None:
            return None
        info = agent.session.info
        size = reading.size
        return {
            "session": {
                "id": info.id,
                "title": info.title or info.first_message,
                "entry": agent.session.leaf,
            },
            "directory": info.cwd,
            "branch": self.header.branch,
            "model": agent.model,
            "effort": agent.effort.level,
            "mode": agent.mode,
            "running": agent.running,
            "context": {
                "tokens": size.total,
                "window": size.window,
                "percent": round(size.percent, 1),
            },
            "cost": reading.cost,
            "cache_share": reading.cache_share,
        }

    def use_theme(self, name: str) -> bool:
        if name not in self.app.available_themes:
            return False
        self.app.theme = name
        return True

    def clear_notice(self) -> None:
        self.notice.clear()

    def warnings_read(self) -> None:
        self.controller.warnings.unread = self.status.warnings = 0
        self.notice.clear()

    def copy(self, text: str) -> None:
        self.app.copy_to_clipboard(text)

    def open_page(self, url: str) -> None:
        self.app.open_url(url)

    def leave(self) -> None:
        self.app.exit()

    @property
    def draft(self) -> str:
        return self.prompt.draft

    @property
    def stashed(self) -> str:
        return self.prompt.stashed

    def forget_stash(self) -> None:
        self.prompt.forget_stash()

    def set_draft(self, text: str) -> None:
        self.prompt.replace_draft(text)

    def rewrite_typed(self, clean: Callable[[str], str]) -> None:
        self.prompt.rewrite_typed(clean)

    def put_back(self, text: str) -> None:
        draft = self.prompt.draft
        if text:
            self.prompt.set_draft(f"{text}\n{draft}" if draft.strip() else text)
        self.prompt.focus()

    def take_back(self) -> bool:
        """Move the last waiting message back into the prompt. Return False if none is waiting."""
        if self.agent is None or (text := self.agent.take_back()) is None:
            return False
        self.put_back(text)
        return True

    def restore_message(self, text: str) -> None:
        """Put a message that was undone into the prompt, before the draft.

        Replaces a message that was put there before, unless the user has changed it.
        """
        self.prompt.restore(text)
        self.prompt.focus()

    def withdraw_message(self, text: str) -> None:
        self.prompt.withdraw(text)

    def show_running(self) -> None:
        self.prompt.running = self.agent is not None and self.agent.running
        self._user_status.run_soon()
        self.refresh_bindings()

    def leave_warnings(self) -> None:
        """Clear the notice above the prompt. Its warnings still count in the status line."""
        self.controller.warnings.unread += self.notice.warnings
        self.status.warnings = self.controller.warnings.unread
        self.notice.clear()

    def files_changed(self) -> None:
        if self.agent is not None and self.is_running:
            self.refresh_files()

    @work(exclusive=True, group="branch")
    async def refresh_files(self) -> None:
        """Discard the list of files for completion, and update the header's git branch."""
        self._files.forget()
        self.header.branch = await self.controller.services.branch(self.controller.cwd) or ""

    def _history(self) -> Sequence[str]:
        if not self.controller.attached.is_set():
            return ()
        store = self.controller.services.store
        return [typed.text for typed in store.typed_in(self.controller.project, MAX_HISTORY)]
