"""MCP servers in one session: their questions, and what they take of its requests."""

from collections.abc import Awaitable, Callable

from tui_agent.agent.events import Notice
from tui_agent.agent.mcp.questions import Answer, ServerQuestion
from tui_agent.agent.mcp.records import McpServerStatus
from tui_agent.agent.ports import Owner

RELOADED = "The model is told of the servers' tools anew with the next request; what the provider had cached is lost."


class SessionMcp:
    """Answers servers for one session. What concerns the servers alone is asked of the hub, ``ports.mcp``."""

    def __init__(self, agent: Owner, tell_anew: Callable[[], None]) -> None:
        """``tell_anew`` has the next head rendered again."""
        self._agent = agent
        self._tell_anew = tell_anew
        self._hub = hub = agent.ports.mcp
        self._emit = agent.channel.emit
        self._leave = (hub.subscribe(self._emit), hub.join(self))
        self.asker: Callable[[ServerQuestion], Awaitable[Answer]] | None = None
        """Asks the person; None where there is none."""

    # -- what servers ask -------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        return self._agent.running

    @property
    def can_ask(self) -> bool:
        return self.asker is not None

    async def ask(self, question: ServerQuestion) -> Answer:
        return Answer() if self.asker is None else await self.asker(question)

    def status(self) -> tuple[McpServerStatus, ...]:
        directory, model = self._agent.ports.directory, self._agent.model
        counter = directory.counter(model)
        return self._hub.status(counter.schema, window=directory.limits(model).window, count_text=counter.text)

    async def reload(self) -> None:
        """Read the configuration anew and tell the model of the tools there are: the next request misses the cache."""
        await self._hub.reload()
        self._tell_anew()
        self._emit(Notice(RELOADED))

    def close(self) -> None:
        """Hear no more of the servers; they go on for others."""
        for leave in self._leave:
            leave()
