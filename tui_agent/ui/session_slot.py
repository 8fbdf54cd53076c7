"""Holds the one session that is open with its agent: opens, listens, lets go."""

import asyncio
from collections.abc import Callable

from textual.message_pump import MessagePump

from tui_agent.ui.inbox import Inbox
from tui_agent.ui.services import AgentPort, AppServices, OpenHow, OpenRequest

COPYING = "Copying the session …"
"""Said while a session is forked, in a thread: of 100,000 entries that takes seconds."""


class SessionSlot:
    """At most one session at a time. What its agent says goes to ``receiver`` as ``AgentEvents``."""

    def __init__(self, services: AppServices, receiver: MessagePump) -> None:
        self._services = services
        self._inbox = Inbox(receiver)
        self._unsubscribe: Callable[[], None] | None = None
        self.agent: AgentPort | None = None
        """The agent of the open session; None before the first is open."""

    async def open(self, request: OpenRequest) -> AgentPort:
        """Open a session in place of the one that is open.

        Raises:
            SessionHeld: another live program has it.
            StoreError: it can't be opened. In both cases the one that was open stays.
        """
        forks = request.how is OpenHow.FORK
        opened = self._services.open_session
        session = await asyncio.to_thread(opened, request) if forks else opened(request)
        await self.close()
        self.agent = self._services.make_agent(session)
        self._unsubscribe = self.agent.subscribe(self._inbox.put)
        return self.agent

    async def close(self) -> None:
        """End the run and let go of the session."""
        agent, self.agent = self.agent, None
        if agent is None:
            return
        if self._unsubscribe is not None:
            self._unsubscribe()
        self._inbox.take()
        await agent.aclose()
        self._services.close_session(agent.session)
