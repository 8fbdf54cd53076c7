"""The main screen, which is the controller's frontend: header, session, prompt, gauge, status line.

It is painted before the modules for sessions are imported; ``attach`` adds the session's view. The
screen decides when a page or question opens over it, what Escape does, where typed keys go, and
whether sent text answers a question. The widgets around the conversation, with the rest of the
frontend, are in session_frame.py.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from textual import events, on, work
from textual.binding import Binding

from tui_agent.app.commands import command_table, find
from tui_agent.app.format import dotted
from tui_agent.app.frontend import (
    UNREQUESTED,
    Choice,
    EditedText,
    FindPage,
    HelpPage,
    Opened,
    Page,
    Question,
    Shown,
    SubagentPage,
    requested_at,
)
from tui_agent.app.intent import CommandIntent, MessageIntent, parse
from tui_agent.app.services import Look, OpenRequest
from tui_agent.ui.bindings import NO_KEY, hidden, keys_of
from tui_agent.ui.later import Later
from tui_agent.ui.screens.session_frame import SessionFrame
from tui_agent.ui.terminal_suspend import EditorError, edit_in_editor
from tui_agent.ui.widgets.completion import CompletionPopup
from tui_agent.ui.widgets.gauge import Gauge
from tui_agent.ui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from textual.screen import Screen

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.events import AgentEvent
    from tui_agent.app.services import AppServices
    from tui_agent.config import Config
    from tui_agent.ui.widgets.session_view import SessionView

T = TypeVar("T")

WARNING_SECONDS = 20
"""Seconds for which a warning about the start of the program is shown."""
DOUBLE_PRESS_SECONDS = 1.5
"""Maximum time between two presses of a key that count as a double press, in seconds."""
SEND_NOW_DELAY = 0.5
"""Seconds after a message during which Enter doesn't send the waiting messages, because a key that
bounces may send Enter twice."""
PRESSED_TWICE = frozenset(f"transcript.{name}" for name in ("retry", "undo", "restore", "compact"))
"""Binding ids of the actions on a block of the conversation whose key must be pressed twice.

These actions cost money, go to another entry or change the context.
"""
REWIND_HINT = "Press Escape again to go back to an earlier message."

_answered_at: ContextVar[float] = ContextVar("_answered_at", default=float("-inf"))
"""Time, by ``clock``, at which the user last answered or closed a question that the current task
asked."""


class MainScreen(SessionFrame):
    """The main screen, which is the controller's frontend in the terminal.

    It shows the session and opens pages.
    """

    has_screen = True
    keeps_asides = True
    AUTO_FOCUS = "Prompt"
    BINDINGS = [
        Binding("escape", "step_back", "back", key_display="esc"),
        Binding("escape", "interrupt", "interrupt", key_display="esc"),
        hidden("escape", "rewind", "rewind"),
        hidden("tab", "tab", "answer a question, or focus the conversation", id="leave_prompt"),
        hidden("alt+up", "take_back", "take back", id="take_back"),
        hidden("ctrl+end", "scroll_conversation('end')", "newest", id="newest"),
        hidden("ctrl+home", "scroll_conversation('home')", "oldest", id="oldest"),
        hidden("shift+f3", "copy_code", "copy the last code block", id="copy_code"),
        hidden("ctrl+up", "show_message(-1)", "your previous message", id="message_before"),
        hidden("ctrl+down", "show_message(1)", "your next message", id="message_after"),
        *(
            Binding(
                command.key or NO_KEY,
                f"command('{command.name}')",
                command.hint or command.name,
                show=bool(command.hint),
                id=command.name,
            )
            for command in command_table()
        ),
    ]

    def __init__(self, apply_look: Callable[[Look], None]) -> None:
        """Create the screen. ``apply_look`` applies the settings for theme and motion."""
        super().__init__(self._on_agent_event)
        self._apply_look = apply_look
        self.view: SessionView | None = None
        """The view that shows the open session; None until ``attach`` is called."""
        self._escape_at = float("-inf")
        self._command_at = float("-inf")
        self._sending = Later(self, self._message_settled)
        """The call that ends the pause after a message. During this pause of `SEND_NOW_DELAY`
        seconds, Enter doesn't send the waiting messages."""
        self._typing_pause = 0.0
        self._grace = 0.0
        self._key_at = float("-inf")
        """Time, by ``clock``, at which a key was last pressed outside the prompt."""
        self._held_letter = ""
        self._is_writing = False
        self._cooled_at: float | None = None
        self._opened: tuple[object, Screen[Any]] = (None, self)
        """Identity of the page that was opened last, and the screen that shows it."""
        self._late: list[object] = []
        """Identities of the pages that will open when the user pauses typing."""
        self._moved_up = asyncio.Event()
        """Event that is set when this screen is on top again, or when a page is removed from
        `_late`. The pages in `_late` wait for it."""
        self._unseen: tuple[Screen[Any] | None, float] = (None, 0.0)
        """The last page that opened without the user's request, and the time from which on it
        receives keys."""

    async def attach(self, services: AppServices) -> None:
        """Connect the controller to the services, show their warnings, add the session's view."""
        from tui_agent.ui.widgets.session_view import SessionView

        self.controller.attach(services)
        self.apply_settings(services.config())
        for warning in services.warnings:
            # Show the warning as a toast, because the first message would clear a notice above the
            # prompt.
            self.controller.warnings.said.append((self.clock(), warning))
            self.notify(warning, severity="warning", timeout=WARNING_SECONDS)
        view = SessionView(self, services)
        await self.body.mount(view, before=self.notice)
        # Wait before using the size. Textual doesn't send a widget its first size if the screen's
        # map was read between mounting and layout (Compositor.full_map adds new widgets silently),
        # and the prompt's cursor reads the map.
        await self.wait_for_refresh()
        view.transcript.on_resize()
        self.view = view

    # -- the controller's frontend

    async def ask(self, question: Question[T]) -> T | None:
        if isinstance(question, EditedText):
            try:
                return await edit_in_editor(self.app, question.text, question.name)  # type: ignore[return-value]  # answered by a text
            except EditorError as error:
                self.say(str(error), "warning")
                return None
        from tui_agent.ui import pages

        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answered(result: Any) -> None:
            if not answer.done():
                answer.set_result(result)

        view = self.view
        if self.app.screen is not self:
            view = None
        if isinstance(question, Choice) and question.inline and view is not None:
            awaited = question.goes_on or self._is_awaited()
            take_away = view.ask_choice(question, answered, awaited=awaited)
        elif self._is_open_or_late(question):
            return None
        else:
            identity = question.identity
            self._late.append(identity)
            await self._wait_for_pause(identity)
            screen = pages.question_screen(question, self.controller)
            self._open(question, screen, answered)
            take_away = screen.leave
        try:
            found: T | None = await answer
        finally:
            # If the question was answered elsewhere or the task was cancelled, the question may
            # still be on the screen.
            take_away()
        _answered_at.set(self.clock())
        return found

    def show(self, page: Page) -> None:
        if isinstance(page, FindPage):
            if self.view is not None:
                self.view.find_bar.begin(page.query)
        elif self._is_open_or_late(page):
            if isinstance(page, SubagentPage):
                page.close()
        elif self._seconds_to_wait():
            identity = page.identity
            self._late.append(identity)
            self._show_in_a_pause(page, identity)
        else:
            self._show_now(page)

    @work
    async def _show_in_a_pause(self, page: Page, identity: object) -> None:
        await self._wait_for_pause(identity)
        self._show_now(page)

    def _show_now(self, page: Page) -> None:
        from tui_agent.ui import pages

        if isinstance(page, HelpPage):
            self._show_help(page)
        else:
            self._open(page, pages.page_screen(page, self.controller))

    def _open(
        self,
        asked: Shown,
        screen: Screen[Any],
        callback: Callable[[Any], None] | None = None,
    ) -> None:
        self._opened = (asked.identity, screen)
        follows = self.clock() - _answered_at.get() < self._grace
        if requested_at.get() == UNREQUESTED and not follows:
            self._unseen = (screen, self.clock() + self._grace)
        self.app.push_screen(screen, callback)

    def _is_open_or_late(self, asked: Shown) -> bool:
        """Return True if the page is on top already, or is waiting to open.

        This happens, for example, if its key is pressed twice. Pages are compared by ``identity``.
        """
        identity, screen = self._opened
        is_on_top = identity == asked.identity and self.app.screen is screen
        return is_on_top or asked.identity in self._late

    async def _wait_for_pause(self, identity: object) -> None:
        """Wait until the user pauses typing, because an opening page would receive the keys.

        If another page opens over this screen meanwhile, waits until it is closed; waiting pages
        open in the order of their requests. At the end, removes ``identity`` from `_late`.
        ``identity`` is the page's identity at the time of the request; a working subagent's page
        changes its identity later.
        """
        is_over_this = self.app.screen is self
        try:
            while wait := self._seconds_to_wait():
                await asyncio.sleep(wait)
                while is_over_this and not (self.app.screen is self and self._late[0] == identity):
                    await self._moved_up.wait()
        finally:
            self._late.remove(identity)
            self._wake_late_pages()

    @on(events.ScreenResume)
    def _wake_late_pages(self) -> None:
        self._moved_up.set()
        self._moved_up.clear()

    def _seconds_to_wait(self) -> float:
        """Return the number of seconds to wait before a page may open; 0.0 if it may open now.

        A page waits if the user has pressed keys since requesting it. For a page that no command
        requested, only keys in the prompt since the last command count, and only while this screen
        is on top.
        """
        asked_at = requested_at.get()
        typed = self._last_key()
        if asked_at is None and self.app.screen is not self:
            return 0.0
        if asked_at is None:
            asked_at = self._command_at
            typed = self.prompt.last_typed
        # Keys that the user pressed to answer a question don't delay the next question.
        if typed <= max(asked_at, _answered_at.get()):
            return 0.0
        return max(0.0, typed + self._typing_pause - self.clock())

    def _is_awaited(self) -> bool:
        """Return True if the user is waiting for the question that the current task asks.

        This is the case if the user requested the question and has pressed no key since.
        """
        asked_at = requested_at.get()
        if asked_at is None or asked_at == UNREQUESTED:
            return False
        return self._last_key() <= max(asked_at, _answered_at.get())

    def _last_key(self) -> float:
        """Return the time of the last key press in the program, in seconds of ``clock``."""
        return max(self._key_at, self.prompt.last_typed)

    def key_pressed(self) -> None:
        self._key_at = self.clock()

    def keeps_from_page(self, event: events.Key | events.Paste) -> bool:
        """Return True if a key or paste is not meant for the page that just opened.

        Applies to pages that open without the user's request, until the user pauses typing, and
        only to text and Enter. If this screen was on top before, the text is added to the prompt;
        otherwise it is dropped.
        """
        page, until = self._unseen
        now = self.clock()
        if page is None or page is not self.app.screen or now >= until:
            return False
        text = ""
        if isinstance(event, events.Paste):
            text = event.text
        elif event.is_printable:
            text = event.character or ""
        elif event.key != "enter":
            return False
        self._unseen = (page, now + self._typing_pause)
        if text and self.app.screen_stack[-2] is self and not self.prompt.read_only:
            self.prompt.resume_typing(text)
        return True

    def command_begins(self) -> None:
        self._command_at = self.clock()

    def opening(self) -> None:
        self.unsent.save()

    def opened(self, agent: Agent, entry: int | None = None) -> None:
        self.notice.clear()
        self.gauge.measure(None)
        self.attention.opened(agent)
        self.prompt.read_only = agent.session.read_only
        self.prompt.use_history_of(str(agent.ports.project))
        kind = agent.session.info.agent
        notes = [
            f"{kind}, a subagent: /parent goes back" if kind else "",
            "read only" if agent.session.read_only else "",
        ]
        self.header.note = dotted(*notes)
        self.refresh_facts()
        self.show_running()
        self.refresh_files()
        self.unsent.restore(agent)
        if self.view is not None:
            self.view.show_opened(agent)
            if entry is not None:
                self.view.call_after_refresh(self.view.show_entry, entry)

    def apply_settings(self, config: Config) -> None:
        settings = config.ui
        self._apply_look(Look(settings.theme, settings.reduced_motion))
        if config.keys or self.keymap:
            from tui_agent.ui.key_help import LAST_KEY_NOTICE, use_keys

            told = self.controller.services.state_dir / LAST_KEY_NOTICE
            self.keymap = use_keys(self, config.keys, told)
            self.prompt.use_keys(self.keymap, self.BINDINGS)
        self.prompt.vim = settings.vim
        self._typing_pause = settings.typing_pause
        self._grace = settings.permission_grace
        self._user_status.set_command(settings.status_line)
        self.prompt.cursor_blink = settings.cursor_blink and not settings.reduced_motion
        if self.view is not None:
            self.view.transcript.fold_turns(settings.fold_turns)
            self.view.question.set_delays(
                grace=settings.permission_grace, typing_pause=settings.typing_pause
            )

    def _show_help(self, page: HelpPage) -> None:
        from tui_agent.ui.screens.help import HelpRow, HelpScreen, help_rows

        def chosen(row: HelpRow | None) -> None:
            if row is None or not row.command:
                return
            if row.needs_argument:
                self.set_draft(f"/{row.command} ")
            else:
                self.controller.begin(row.command, row.arguments)

        rows = list(help_rows(self.controller, self.BINDINGS, self.keymap))
        self._open(page, HelpScreen(rows, with_keys=page.with_keys, query=page.query), chosen)

    def go_to(self, request: OpenRequest) -> None:
        if self.view is None or not self.view.show_if_open(request):
            self.controller.soon(self.controller.open(request))

    def jump_to(self, entry_id: int) -> bool:
        return self.view is not None and self.view.transcript.jump_to(entry_id)

    def toggle_view(self) -> bool:
        return self.view is not None and self.view.toggle_view()

    def toggle_open(self, what: Opened) -> bool:
        return self.view is not None and self.view.transcript.toggle_open(what)

    def toggle_panel(self) -> None:
        if self.view is not None:
            self.view.toggle_panel()

    async def on_unmount(self) -> None:
        self.unsent.save()
        await self.controller.close()

    # -- showing

    def action_scroll_page(self, pages: int) -> None:
        if self.view is not None:
            self.view.transcript.action_move(0, pages)

    def action_scroll_conversation(self, where: str) -> None:
        """Scroll to the start (``home``) or the end (``end``) of the conversation.

        At the end, the conversation keeps scrolling as new text arrives.
        """
        if self.view is not None:
            self.view.transcript.action_go_to(where)

    def action_show_message(self, step: int) -> None:
        if self.view is not None:
            self.view.transcript.show_message(step)

    def action_tab(self) -> None:
        """Move the focus from the prompt to the open question, or else to the recent sessions.

        If there is neither, or the prompt does not have the focus, focuses the next widget.
        """
        view = self.view
        if view is None or not self.prompt.has_focus:
            self.focus_next()
        elif view.question.asked is not None:
            view.question.arm()
        elif view.hints.display and view.hints.recent:
            view.hints.focus()
        else:
            self.focus_next()

    def _step_back(self) -> Callable[[], object] | None:
        """Return the function that Escape calls to go back one step; None if there is none.

        The first of these that applies: it closes the find bar, clears the selection, goes back in
        the open question, or returns the focus from the conversation to the prompt.
        """
        view = self.view
        if view is None:
            return None
        if view.find_bar.display:
            return view.find_bar.action_end
        if self.selections:
            return self.clear_selection
        if view.question.can_go_back:
            return view.question.action_back
        # While the terminal does not have the focus, none of its widgets has it.
        if not self.app.app_focus or self.prompt.has_focus or view.question.has_focus_within:
            return None
        return view.give_keys_back

    def action_step_back(self) -> None:
        if (leave := self._step_back()) is not None:
            leave()

    def _on_agent_event(self, event: AgentEvent) -> None:
        if self.view is not None:
            self.view.inbox.put(event)

    # -- the prompt

    @on(Prompt.Changed)
    def _prompt_changed(self, message: Prompt.Changed) -> None:
        message.stop()
        self.unsent.note_change()
        if self.attention.sign:
            self.attention.user_returned()
        if self.attachments.names or "@" in message.text_area.text:
            self.attachments.follow(message.text_area.text)
        has_draft = bool(message.text_area.text)
        reading = self.gauge.reading
        if self.view is not None:
            self.view.question.draft_changed()
            self.view.waiting.has_draft = has_draft
        if has_draft and not self._is_writing:
            # Warn only once per message, when its first character is typed.
            self.controller.warn_if_taken_over()
        self._is_writing = has_draft
        warm_until = None
        if reading is not None:
            warm_until = reading.warm_until
        if (
            warm_until is not None
            and warm_until != self._cooled_at
            and self.prompt.last_typed >= warm_until
        ):
            # If the machine was asleep, the timer for this has not fired.
            self._cooled_at = warm_until
            self._cache_may_be_cold()

    @on(Prompt.Sent)
    async def _prompt_sent(self, message: Prompt.Sent) -> None:
        self._rest_after_message()
        question = None
        if self.view is not None:
            question = self.view.question
        is_words = isinstance(parse(message.text), MessageIntent) and not message.follow_up
        if question is not None and question.comes_first and is_words:
            self.put_back(message.text)
            self.say("Answer the question first. Your message stays in the prompt.")
            return
        if question is not None and is_words and question.answer_in_words(message.text):
            self.unsent.save()
            return
        if not isinstance(parse(message.text), CommandIntent):
            # Scroll to the end, so that the user sees the answer to the message.
            self.action_scroll_conversation("end")
        await self.controller.outbox.send(message.text, follow_up=message.follow_up)
        self.unsent.save()

    @on(Prompt.SentNothing)
    def _nothing_sent(self) -> None:
        """Handle Enter in an empty prompt.

        In a session without entries, chooses the highlighted answer of the question that a new
        session starts with. In other sessions, sends the messages that are waiting for the next
        step at once, unless a question is open or a message was just sent.
        """
        agent = self.agent
        if self.view is None or agent is None:
            return
        if agent.session.leaf is None:
            self.view.question.choose_at_cursor()
        elif self.view.waiting.sends_now:
            agent.send_now()

    def on_question_prompt_note_sent(self) -> None:
        self._rest_after_message()

    def _rest_after_message(self) -> None:
        """Make Enter in an empty prompt send nothing for `SEND_NOW_DELAY` seconds."""
        self._sending.debounce(SEND_NOW_DELAY)
        if self.view is not None:
            self.view.waiting.is_settled = False

    def _message_settled(self) -> None:
        if self.view is not None:
            self.view.waiting.is_settled = True

    @on(Prompt.PasteAsked)
    @work(exclusive=True, group="paste")
    async def _paste_asked(self) -> None:
        """Paste the image in the system's clipboard into the prompt.

        Without an image, pastes the text that was last copied in this program.
        """
        from tui_agent.ui.clipboard import read_image

        await self.controller.attached.wait()
        data = await asyncio.to_thread(read_image, os.environ, self.controller.cwd)
        if data is not None:
            kept = await self.controller.attempt(
                asyncio.to_thread(self.controller.pasted.keep, data)
            )
            if kept is not None:
                self.prompt.insert_image(kept)
        elif self.app.clipboard:
            self.prompt.post_message(events.Paste(self.app.clipboard))
        else:
            self.say("The clipboard has no image. To paste text, use your terminal's paste key.")

    @on(Prompt.QuitAsked)
    @on(Gauge.Pressed)
    def _command_asked(self, message: Prompt.QuitAsked | Gauge.Pressed) -> None:
        self.controller.begin("quit" if isinstance(message, Prompt.QuitAsked) else "context")

    @on(Prompt.EditorFailed)
    def _editor_failed(self, message: Prompt.EditorFailed) -> None:
        self.say(message.reason, "warning")

    @on(CompletionPopup.Changed)
    def _popup_changed(self) -> None:
        self.refresh_bindings()

    @on(CompletionPopup.Picked)
    def _popup_picked(self) -> None:
        self.prompt.insert_choice()
        self.prompt.focus()

    @on(Gauge.Cooled)
    def _cache_may_be_cold(self) -> None:
        if self.view is not None:
            self.view.cold_cache.check()

    # -- commands

    def action_command(self, name: str) -> None:
        self.controller.begin(name)

    def action_copy_code(self) -> None:
        self.controller.begin("copy", "code")

    def action_interrupt(self) -> None:
        if self.agent is not None:
            self.agent.interrupt()

    def action_rewind(self) -> None:
        now = self.clock()
        before = self._escape_at
        self._escape_at = now
        if now - before <= DOUBLE_PRESS_SECONDS:
            self._forget_escape()
            self.controller.begin("rewind")
        elif self.agent is not None and self.agent.session.leaf is not None:
            self.say(REWIND_HINT)
            self.set_timer(DOUBLE_PRESS_SECONDS, self._forget_escape)

    def _forget_escape(self) -> None:
        self._escape_at = float("-inf")
        if self.notice.message == REWIND_HINT:
            self.notice.clear()

    def action_choose_how(self) -> None:
        self.controller.soon(self.controller.ask_about_take_over())

    def action_take_back(self) -> None:
        self.take_back()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        agent = self.agent
        match action:
            case "interrupt":
                return agent is not None and (
                    agent.running or bool(agent.shell_tasks) or self.status.state.active
                )
            case "step_back":
                return self._step_back() is not None
            case "rewind":
                return (
                    agent is not None
                    and not agent.running
                    and self.prompt.has_focus
                    and not self.prompt.text
                )
            case "take_back":
                return agent is not None and bool(agent.queue)
            case "command":
                return find(str(parameters[0]), command_table()) is not None
            case _:
                return super().check_action(action, parameters)

    # -- keys, clicks and pastes that no widget took

    def on_key(self, event: events.Key) -> None:
        """Handle a key that no widget took: Escape goes one step back, text goes to the prompt.

        A character that is bound to an action of the focused block is left to that action.
        Characters may arrive here although the prompt has the focus, because in a quick burst they
        are sent to a block before the first of them moves the focus.
        """
        if (
            event.key == "escape"
            and not self.prompt.has_focus
            and (leave := self._step_back()) is not None
        ):
            leave()
        elif event.is_printable and event.character is not None and not self.prompt.read_only:
            text = self._as_text(event)
            if text is None:
                return
            if text:
                self.prompt.resume_typing(text)
        else:
            self._forget_letter()
            return
        event.stop()
        event.prevent_default()

    def _as_text(self, event: events.Key) -> str | None:
        """Return the text to type for a key; None if the key's action should run instead.

        At the first press of a key that has to be pressed twice (`PRESSED_TWICE`), holds the
        character back and returns "". Does the same for a key that acts on other blocks, but not on
        the focused one. If a different character follows, returns both characters.
        """
        held = self._held_letter
        self._held_letter = ""
        character = event.character or ""
        if self.prompt.has_focus or not set(held) <= {character}:
            return held + character
        if event.key not in self.active_bindings:
            useless = self._useless_here(event.key)
            if not useless:
                return held + character
            self._hold(held + character, f"{character} ({useless}) does nothing on this block.")
            return ""
        binding = self.active_bindings[event.key].binding
        if held or binding.id not in PRESSED_TWICE:
            return None
        self._hold(character, f"Press {character} again: {binding.description}")
        return ""

    def _useless_here(self, key: str) -> str:
        """Return what a key of the conversation does on blocks other than the focused one.

        Returns "" if the key has no such action, or no block has the focus.
        """
        view = self.view
        if view is None or not view.transcript.has_focus or not view.transcript.focused_target():
            return ""
        bindings = keys_of(view.transcript.BINDINGS, self.keymap).get(key, ())
        return " or ".join(binding.description for binding in bindings)

    def _hold(self, letters: str, why: str) -> None:
        self._held_letter = letters
        self.say(why)
        self.set_timer(DOUBLE_PRESS_SECONDS, self._forget_letter)

    def _forget_letter(self) -> None:
        self._held_letter = ""

    def on_click(self) -> None:
        """After a click on the conversation or side panel, return the focus to the prompt."""
        view = self.view
        if view is not None and (view.transcript.has_focus or view.panel.has_focus):
            view.give_keys_back()

    @on(events.Paste)
    def _paste_elsewhere(self, event: events.Paste) -> None:
        if not self.prompt.has_focus:
            self.prompt.focus()
            self.prompt.post_message(event)
