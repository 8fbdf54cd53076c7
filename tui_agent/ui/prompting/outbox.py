"""Sends what the user wrote: to the agent, with what it names; as a command; to the shell."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.agent.mentions import has_mention
from tui_agent.ui.abilities import MentioningAgent
from tui_agent.ui.prompting.intent import CommandIntent, MessageIntent, ShellIntent, parse

if TYPE_CHECKING:
    from tui_agent.agent.preparing import Prepared
    from tui_agent.session.entries import UserPart
    from tui_agent.ui.screens.main import MainScreen

ANY_TIME = frozenset({"quit", "exit", "help", "keys", "doctor"})
"""Commands that need no session."""

READ_ONLY = "This session is open for reading only; /fork goes on in a copy."


class Outbox:
    """One per main screen. Messages leave in the order they were sent, however long it takes to read what they name."""

    def __init__(self, main: MainScreen) -> None:
        self._main = main
        self._early: list[tuple[str, bool]] = []
        self._sending = asyncio.Lock()

    async def send(self, text: str, *, follow_up: bool = False) -> None:
        """Do what a text asks for; before there is a session it waits for one."""
        main, intent = self._main, parse(text)
        if main.agent is None and not (isinstance(intent, CommandIntent) and intent.name in ANY_TIME):
            self._early.append((text, follow_up))
            if main.view is not None:
                main.view.open_again()
            return
        if not isinstance(intent, CommandIntent) and main.take_over.look():
            main.put_back(text)
            main.take_over.ask()
            return
        main.notice.clear()
        match intent:
            case CommandIntent(name, arguments):
                await main.run_command(name, arguments)
            case ShellIntent(command, excluded) if main.agent is not None:
                main.run_soon(main.agent.run_shell(command, excluded=excluded))
            case MessageIntent(message) if has_mention(message):
                main.run_worker(self._send_with_files(message, follow_up=follow_up), group="send", exit_on_error=False)
            case MessageIntent(message):
                self._submit(message, follow_up=follow_up)
            case _:
                pass

    def send_early(self) -> None:
        """Send what was sent before there was a session."""
        early, self._early = self._early, []
        for text, follow_up in early:
            self._main.call_later(self.send, text, follow_up=follow_up)

    def take_back(self) -> None:
        """Put what was sent before there was a session back into the prompt: there will be none."""
        early, self._early = self._early, []
        self._main.put_back("\n".join(text for text, _ in early))

    def send_prepared(self, prepared: Prepared) -> None:
        """Send a message that was made ready, with the model and agent it wants."""
        agent = self._main.agent
        if agent is None:
            return
        if prepared.model is not None:
            agent.change_model(prepared.model)
        if prepared.mode is not None:
            agent.change_mode(prepared.mode)
        self._submit(prepared.parts, follow_up=False)
        self._warn(prepared.problem)

    async def _send_with_files(self, text: str, *, follow_up: bool) -> None:
        from tui_agent.agent.attachments import load_message

        main = self._main
        async with self._sending:
            if main.agent is None:
                return
            agent: object = main.agent
            named = agent.load_named if isinstance(agent, MentioningAgent) else None
            put_blob = main.services.store.put_blob
            loaded = await load_message(text, main.cwd, main.agent.session, put_blob, named=named)
            self._submit(loaded.parts, follow_up=follow_up)
            self._warn(loaded.problem)

    def _warn(self, problem: str | None) -> None:
        """Say what is wrong with a message that was sent; the line above the prompt is cleared when its run begins."""
        if problem is not None:
            self._main.notify(problem, severity="warning", markup=False)

    def _submit(self, message: str | Sequence[UserPart], *, follow_up: bool) -> None:
        from tui_agent.session.errors import StoreError
        from tui_agent.session.typed import typed_text

        main = self._main
        if main.agent is None:
            return
        if main.agent.session.read_only:
            refusal = main.services.store.read_only
            main.put_back(message if isinstance(message, str) else typed_text(message))
            main.say(refusal.message if refusal else READ_ONLY, "warning")
            return
        main.undone.clear()
        try:
            main.agent.submit(message, follow_up=follow_up)
        except StoreError as error:
            main.prompt.set_draft(message if isinstance(message, str) else typed_text(message))
            main.say(error.message, "error")
