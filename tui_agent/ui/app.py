"""The Textual application: starts and ends the program, and handles what all screens share.

It applies themes, makes keys take effect in the order typed, writes the terminal's title and other
escape sequences, copies text to the clipboard, and tunes the garbage collector after the start. The
caller decides what is shown first (`LoadServices`); the session and its commands belong to the
controller of `MainScreen`.
"""

import asyncio
import gc
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import Any

import textual.screen
from rich.segment import Segment
from rich.text import Text
from textual import events, on, work
from textual.color import Color
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter
from textual.geometry import Size
from textual.reactive import var
from textual.screen import Screen

from tui_agent.app.frontend import HelpPage
from tui_agent.app.services import AppServices, FirstView, Look
from tui_agent.app.session_commands import detach_if_closed
from tui_agent.resources import style_path
from tui_agent.safe_text import ACTING
from tui_agent.ui import background, clipboard, terminal, terminal_input
from tui_agent.ui.attention import TerminalWrite
from tui_agent.ui.bindings import EVERYWHERE, hidden
from tui_agent.ui.contrast import (
    HIGH_CONTRAST,
    HIGH_CONTRAST_LIGHT,
    WHITE_LIGHT,
    readable_variables,
)
from tui_agent.ui.driver import TerminalDriver, TerminalGone
from tui_agent.ui.error_boundary import ErrorBoundary
from tui_agent.ui.key_order import KeyDone, KeyOrder
from tui_agent.ui.later import Later
from tui_agent.ui.part_styles import PartStylesheet
from tui_agent.ui.screens.main import MainScreen
from tui_agent.ui.terminal_suspend import lending

log = logging.getLogger(__name__)

FIRST_STYLES = ("app.tcss", "prompt.tcss", "standing.tcss")
"""Style sheets that are needed for the first paint."""

SESSION_STYLES = ("transcript.tcss", "question.tcss")
"""Style sheets of the widgets that show a session, read after the first paint."""

LATER_STYLES = ("screens.tcss", "tree.tcss")
"""Style sheets of all other screens, read in this order when the first of these screens is
opened."""

RESIZE_SETTLE_SECONDS = 0.3
"""Seconds without another resize after which the terminal's size is taken as final."""

GC_THRESHOLDS = (20_000, 10, 10)
"""Thresholds of the garbage collector, set after the start (see `gc.set_threshold`).

They are higher than Python's defaults, because a full collection takes 75 ms in a session of
100,000 entries, and reading that session's tree would cause five full collections with the
defaults.
"""

QUIT_HINT = "Press ctrl+c again to quit."

QUIT_SECONDS = 2.0
"""Seconds between two presses of ctrl+c within which the second one quits."""

LoadServices = Callable[[], Awaitable[tuple[AppServices, FirstView]]]
"""Type of a function that builds the objects which the controller needs, and returns them with the
view to show first."""


class ControlCharacterFilter(LineFilter):
    """Removes control characters and text direction marks from everything that is drawn.

    These characters have no width, so the layout does not change.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - as inherited
        """Return the segments without control characters and text direction marks.

        If there is nothing to remove, returns the list itself. Textual's own control segments are
        kept unchanged.
        """
        for segment in segments:
            if ACTING.search(segment.text):
                break
        else:
            return segments
        return [
            segment if segment.control else Segment(ACTING.sub("", segment.text), segment.style)
            for segment in segments
        ]


# Seconds between paints. With Textual's default of 1/60, a change would wait 8 ms on average before
# it is painted.
textual.screen.UPDATE_PERIOD = 1 / 120  # type: ignore[misc]


class TuiAgentApp(ErrorBoundary[int]):
    """The full-screen program. ``run`` returns the program's exit code."""

    TITLE = "tui-agent"
    ENABLE_COMMAND_PALETTE = True
    PAUSE_GC_ON_SCROLL = True
    # Replaces Textual's `sub_title`, because a change of that attribute repaints the whole screen.
    # Here no widget shows the text; only the terminal's title does.
    sub_title = var("")
    BINDINGS = [
        hidden("ctrl+q", "leave", "Quit", priority=True),
        hidden("ctrl+c", "help_quit", system=True),
        *EVERYWHERE,
    ]

    def __init__(
        self, load: LoadServices, look: Look, memory: background.BackgroundMemory | None = None
    ) -> None:
        """Create the application.

        ``load`` is called once, after the first paint. ``memory`` stores whether the terminal's
        background is light, so that the next start can choose a theme. If it is None, nothing is
        stored.
        """
        # If NO_COLOR is set, use only the terminal's own colours. Emphasis is then shown by bold,
        # dim, underline and reverse.
        colourless = None
        if "NO_COLOR" in os.environ:
            colourless = True
        super().__init__(
            css_path=[style_path(name) for name in FIRST_STYLES], ansi_color=colourless
        )
        self.stylesheet = PartStylesheet.in_place_of(self.stylesheet)
        # This filter must be the last one, so that no character that a terminal acts on is drawn.
        self._filters.append(ControlCharacterFilter())
        for theme in (WHITE_LIGHT, HIGH_CONTRAST, HIGH_CONTRAST_LIGHT):
            self.register_theme(theme)
        self.main = MainScreen(self.apply_look)
        """The main screen, which stays open below all other screens."""
        self.failure: Exception | None = None
        """The error that ended the program while it was loading; None if there was none."""
        self._load = load
        self._last_ctrl_c = float("-inf")
        self._copying = asyncio.Lock()
        self._keys = KeyOrder(self, self.main.controller.shown)
        self.is_refocusing = False
        """Whether a change of the terminal's focus is now making Textual move the focus between
        widgets."""
        self._settling = Later(self, self._check_size)
        self._is_quick_resize = False
        """Whether the time between the last two resizes was less than `RESIZE_SETTLE_SECONDS`."""
        self._animations = self.animation_level
        self._memory = memory
        self._guessed = terminal.default_theme(last=memory.light() if memory is not None else None)
        self._terminals_theme = self._guessed
        self._chosen: str | None = ""
        self._follows_terminal = False
        self.apply_look(look)

    def apply_look(self, look: Look) -> None:
        """Apply the theme and motion settings.

        Sets the theme only if its setting has changed since the last call. If the setting is None
        or names no known theme, the theme follows the terminal's background.
        """
        if look.reduced_motion:
            self.animation_level = "none"
        else:
            self.animation_level = self._animations
        if look.theme == self._chosen:
            return
        self._chosen = look.theme
        self._follows_terminal = look.theme not in self.available_themes
        if self._follows_terminal:
            self.theme = self._terminals_theme
        else:
            self.theme = str(look.theme)

    # -- start and end

    def get_css_variables(self) -> dict[str, str]:
        return readable_variables(super().get_css_variables())

    def get_default_screen(self) -> Screen[object]:
        self.main.fit(self.size)
        return self.main  # type: ignore[return-value]  # its result has another type

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - as inherited
        """Disable the program's own actions while the page on top receives every key."""
        return not any(getattr(page, "takes_every_key", False) for page in self.screen_stack[-1:])

    async def on_event(self, event: events.Event) -> None:
        if self._keys.enqueue(event):
            return
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            focused = self.focused
            # The prompt itself records the times of its own keys, because that is cheaper.
            if focused is None or focused is not self.main.prompt:
                if self.main.keeps_from_page(event):
                    return
                self.main.key_pressed()
        await super().on_event(event)

    def on_key_done(self, message: KeyDone) -> None:
        self.call_later(message.done.set)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Make the focused field's cursor blink only if the prompt's cursor blinks."""
        if hasattr(event.widget, "cursor_blink"):
            event.widget.cursor_blink = self.main.prompt.cursor_blink

    def on_mount(self) -> None:
        self._write(terminal.PUSH_TITLE)
        self.watch(self, "sub_title", self._title_changed)
        self.app_resume_signal.subscribe(self, self._resumed)
        self.call_after_refresh(self._painted)

    def _painted(self) -> None:
        if isinstance(self._driver, TerminalDriver):
            where = self.main.prompt.cursor_screen_offset
            self._driver.painted(where.y, where.x, vi=self.main.prompt.vim)
            if self._can_ask_for_background:
                # Terminals in browsers use other drivers. They must not be asked, because they
                # would type the answer into the prompt.
                self._write(background.QUESTION)
        self._install_services()

    @property
    def _can_ask_for_background(self) -> bool:
        is_silent = os.environ.get("TERM", "") in background.SILENT_TERMINALS
        return self._follows_terminal and not self.no_color and not is_silent

    def on_paste_coming(self, message: terminal_input.PasteComing) -> None:
        self.main.say(f"Receiving a paste: {message.characters:,} characters so far.")

    def on_background_known(self, message: terminal_input.BackgroundKnown) -> None:
        self._terminals_theme = terminal.THEMES[message.light]
        if self._follows_terminal and self.theme == self._guessed:
            self.theme = self._terminals_theme
        if self._memory is not None:
            self.run_worker(
                partial(self._memory.keep, light=message.light), thread=True, group="memory"
            )

    @work(group="start")
    async def _install_services(self) -> None:
        """Import and build what the first paint did not need, then show the requested view.

        If the services can't be built, the program ends with exit code 1, and `failure` holds the
        error.
        """
        for name in SESSION_STYLES:
            self._read_style(name)
            await asyncio.sleep(0)  # let the application handle pending keys
        try:
            await asyncio.to_thread(import_module, "tui_agent.ui.widgets.session_view")
            services, start = await self._load()
        except Exception as error:  # noqa: BLE001 - the program ends, the caller reports it
            self.failure = error
            self.exit(1)
            return
        await self.main.attach(services)
        from tui_agent.app.welcome import ask_for_trust, begin_welcome, begin_with_list

        controller = self.main.controller
        await ask_for_trust(controller)
        await controller.open(start.request)
        match start.screen:
            case "sessions":
                begin_with_list(controller, start.prompt)
            case "welcome":
                begin_welcome(controller, start.prompt)
            case _:
                if start.prompt:
                    await controller.outbox.send(start.prompt)
        self.is_started = True
        services.on_ready()
        first_turn = await asyncio.to_thread(import_module, "tui_agent.ui.first_turn")
        await asyncio.to_thread(first_turn.prepare_first_turn)
        # The objects built so far live as long as the program. Exclude them from garbage
        # collection, which was off until now.
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        gc.enable()

    def get_driver_class(self) -> type[Driver]:
        driver = super().get_driver_class()
        if driver is LinuxDriver:
            return TerminalDriver
        return driver

    def end(self, number: int) -> bool:
        """Exit because of signal ``number``, with code 128 + ``number``, without asking the user.

        If another program has borrowed the terminal, ends that program first. On SIGHUP, the agent
        continues detached if ``ui.closed_terminal`` says so.

        Returns True. If the signal comes from a key meant for the program that has borrowed the
        terminal, such as an editor, does nothing and returns False.
        """
        if lending.is_for_borrower(number):
            return False
        if number == signal.SIGHUP and self.main.view is not None:
            detach_if_closed(self.main.controller)
        # First end the other program, so that the terminal's state can be restored.
        lending.take_back(partial(self.exit, return_code=128 + number))
        return True

    def on_transcript_copy_requested(self, message: Any) -> None:
        self.copy_to_clipboard(message.text)

    def on_transcript_link_clicked(self, message: Any) -> None:
        self.open_url(message.href)

    def on_terminal_gone(self, _message: TerminalGone) -> None:
        self.end(signal.SIGHUP)

    def _read_style(self, name: str) -> None:
        path = style_path(name)
        if not self.stylesheet.has_source(str(path)):
            self.stylesheet.read(path)
            self.stylesheet.parse()

    def push_screen(self, *given: Any, **named: Any) -> Any:
        """Push a screen over the current one; first read `LATER_STYLES` if not done yet."""
        for name in LATER_STYLES:
            self._read_style(name)
        return super().push_screen(*given, **named)

    def on_resize(self, event: events.Resize) -> None:
        """Repaint if a burst of resizes ended at the old size, and check the size when they stop.

        If the terminal is back at its old size, Textual sees no change and doesn't repaint,
        although the terminal has lost the cells that it cut off in between.
        """
        if self.screen_stack and event.size == self.screen.size:
            self.screen.refresh()
        if self.is_headless:
            return
        self._is_quick_resize = self._settling.is_waiting
        self._settling.debounce(RESIZE_SETTLE_SECONDS)

    def _check_size(self) -> None:
        """Adopt the terminal's current size if Textual missed the last resize.

        If it didn't, but there were several quick resizes, lays out the screen again.
        """
        if not isinstance(self._driver, TerminalDriver):
            return
        actual = Size(*self._driver.terminal_size())
        if not (actual.width and actual.height and self.screen_stack):
            return
        if actual != self.screen.size:
            self.post_message(events.Resize(actual, actual))
        elif self._is_quick_resize:
            self.screen.refresh(layout=True)

    def validate_app_focus(self, app_focus: bool) -> bool:  # noqa: FBT001 - called by Textual
        """Set `is_refocusing` while Textual handles a change of the terminal's focus.

        `watch_app_focus`, called after the change, resets it. Returns the value unchanged.
        """
        self.is_refocusing = app_focus != self.app_focus
        return app_focus

    def watch_app_focus(self) -> None:
        """Focus the prompt if the terminal is focused and the main screen has no focused widget.

        Also resets `is_refocusing`.
        """
        self.is_refocusing = False
        if (
            self.app_focus
            and self.screen_stack
            and self.screen is self.main
            and self.main.focused is None
        ):
            self.main.prompt.focus()

    @on(events.AppBlur)
    @on(events.AppFocus)
    def _focus_changed(self, event: events.AppBlur | events.AppFocus) -> None:
        self.main.attention.focus_changed(focused=isinstance(event, events.AppFocus))

    def on_text_selected(self) -> None:
        main = self.main
        copies = main.view is not None and main.controller.services.config().ui.copy_on_select
        if copies and (text := self.screen.get_selected_text()):
            self.copy_to_clipboard(text)

    def on_terminal_write(self, message: TerminalWrite) -> None:
        self._write(message.sequence)

    def _title_changed(self, title: str) -> None:
        self._write(terminal.title_sequence(f"{title} · tui-agent" if title else "tui-agent"))

    def action_suspend_process(self) -> None:
        controller = self.main.controller
        if controller.attached.is_set() and controller.services.detach_terminals():
            return
        if not isinstance(self._driver, TerminalDriver):
            return
        self._write(terminal.progress(terminal.Progress.NONE) + terminal.POP_TITLE)
        stopped = self._driver.suspend_to_shell()
        self._write(terminal.PUSH_TITLE)
        self._resumed()
        if not stopped:
            self.notify(
                "Can't suspend: tui-agent was not started by a shell, so nothing could resume it.",
                severity="warning",
            )

    def action_redraw(self) -> None:
        """Clear the terminal and draw everything again, after something else has written to it."""
        self._write(terminal.CLEAR)
        self._resumed()

    def _resumed(self, _app: object = None) -> None:
        """Redraw everything after another program has used the terminal."""
        self._title_changed(self.sub_title)
        self.refresh(layout=True)

    def _write(self, sequence: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    def on_unmount(self) -> None:
        self._write(terminal.progress(terminal.Progress.NONE) + terminal.POP_TITLE)

    def _fatal_error(self) -> None:
        log.critical("The interface failed", exc_info=self._exception)
        files = []
        for handler in logging.root.handlers:
            if isinstance(handler, logging.FileHandler):
                files.append(handler.baseFilename)
        where = ""
        if files:
            where = f" Details are in {files[0]}."
        self.bell()
        self.panic(
            Text(f"tui-agent hit an internal error and had to exit. Your session is saved.{where}")
        )

    def action_command_palette(self) -> None:
        from tui_agent.ui.screens.help import HelpScreen

        if not any(isinstance(screen, HelpScreen) for screen in self.screen_stack):
            self.main.show(HelpPage(with_keys=False))

    # -- copying and quitting

    def copy_to_clipboard(self, text: str) -> None:
        self._clipboard = text
        self._copy(text)

    @work(group="copy")
    async def _copy(self, text: str) -> None:
        await self.main.controller.attached.wait()
        services = self.main.controller.services
        async with self._copying:
            if text is not self._clipboard:
                return  # a newer text is waiting, which will be copied instead
            how = await asyncio.to_thread(
                clipboard.copy, text, self._write, services.state_dir, services.cwd
            )
        self.notify(how, timeout=4)

    def action_help_quit(self) -> None:
        """Handle Ctrl+C if no text is selected.

        Interrupts the agent if it works; otherwise clears the prompt if it contains text; otherwise
        quits. Quitting takes two presses within `QUIT_SECONDS` seconds; the first shows a hint.
        """
        main = self.main
        now = main.clock()
        if main.check_action("interrupt", ()):
            main.action_interrupt()
            return
        if self.screen is main and main.prompt.text:
            main.prompt.clear_to_history()
            return
        if now - self._last_ctrl_c <= QUIT_SECONDS:
            main.controller.begin("quit")
            return
        self._last_ctrl_c = now
        if self.screen is main:
            main.notice.say_briefly(QUIT_HINT)
        else:
            self.notify(QUIT_HINT, timeout=QUIT_SECONDS)

    async def action_leave(self) -> None:
        self.main.controller.begin("quit")
