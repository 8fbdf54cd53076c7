"""Sends what the user wrote: to the agent, with what it names; as a command; to the shell."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.agent.mentions import has_mention
from tui_agent.app.intent import CommandIntent, MessageIntent, ShellIntent, parse

if TYPE_CHECKING:
    from tui_agent.agent.preparing import Prepared
    from tui_agent.app.desk import Desk
    from tui_agent.session.entries import UserPart

SESSIONLESS_COMMANDS = frozenset({"quit", "exit", "help", "keys", "doctor"})
"""Commands that need no session."""


class Outbox:
    """One per desk. Messages leave in the order they were sent, however long it takes to read what they name."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._early: list[tuple[str, bool]] = []
        self._sending = asyncio.Lock()

    async def send(self, text: str, *, follow_up: bool = False) -> None:
        """Do what a text asks for; before there is a session it waits for one."""
        desk, intent = self._desk, parse(text)
        if desk.agent is None and not (isinstance(intent, CommandIntent) and intent.name in SESSIONLESS_COMMANDS):
            self._early.append((text, follow_up))
            desk.open_again()
            return
        if not isinstance(intent, CommandIntent) and desk.take_over.look():
            desk.face.put_back(text)
            desk.soon(desk.take_over.ask())
            return
        desk.face.clear_notice()
        match intent:
            case CommandIntent(name, arguments):
                desk.begin(name, arguments)
            case ShellIntent(command, excluded) if desk.agent is not None:
                desk.soon(desk.agent.run_shell(command, excluded=excluded))
            case MessageIntent(message) if has_mention(message):
                desk.soon(self._send_with_files(message, follow_up=follow_up))
            case MessageIntent(message):
                self._submit(message, follow_up=follow_up)
            case _:
                pass

    def send_early(self) -> None:
        """Send what was sent before there was a session."""
        early, self._early = self._early, []
        for text, follow_up in early:
            self._desk.soon(self.send(text, follow_up=follow_up))

    def take_back(self) -> None:
        """Put what was sent before there was a session back into the prompt: there will be none."""
        early, self._early = self._early, []
        self._desk.face.put_back("\n".join(text for text, _ in early))

    def send_prepared(self, prepared: Prepared) -> None:
        """Send a message that was made ready, with the model and agent it wants."""
        agent = self._desk.agent
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

        desk = self._desk
        async with self._sending:
            if (agent := desk.agent) is None:
                return
            put_blob = desk.services.store.put_blob
            loaded = await load_message(text, desk.cwd, agent.session, put_blob, named=agent.load_named)
            self._submit(loaded.parts, follow_up=follow_up)
            self._warn(loaded.problem)

    def _warn(self, problem: str | None) -> None:
        """Say what is wrong with a message that was sent; the line above the prompt is cleared when its run begins."""
        if problem is not None:
            self._desk.face.warn(problem)

    def _submit(self, message: str | Sequence[UserPart], *, follow_up: bool) -> None:
        from tui_agent.app.desk import READ_ONLY
        from tui_agent.session.errors import StoreError
        from tui_agent.session.typed import typed_text

        desk = self._desk
        if desk.agent is None:
            return
        if desk.agent.session.read_only:
            refusal = desk.services.store.read_only
            desk.face.put_back(message if isinstance(message, str) else typed_text(message))
            desk.say(refusal.message if refusal else READ_ONLY, "warning")
            return
        desk.undone.clear()
        try:
            desk.agent.submit(message, follow_up=follow_up)
        except StoreError as error:
            desk.face.set_draft(message if isinstance(message, str) else typed_text(message))
            desk.say(error.message, "error")
