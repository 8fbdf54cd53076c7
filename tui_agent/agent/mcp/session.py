"""The servers as one session's agent has them: what screens and commands ask, and when the model is told anew."""

from collections.abc import Callable, Mapping

from tui_agent.agent.events import Notice
from tui_agent.agent.mcp.content import PutBlob
from tui_agent.agent.mcp.hub import McpHub
from tui_agent.agent.mcp.records import LogLevel, McpPrompt, McpResource, McpServerStatus, McpTemplate
from tui_agent.agent.mcp.settings import McpServerSettings
from tui_agent.context.tokens import TokenCounter
from tui_agent.session.entries import UserPart

RELOADED = "The model is told of the servers' tools anew with the next request; what the provider had cached is lost."


class SessionMcp:
    """Servers for one session.

    ``emit`` hears what the user should know, ``tell_anew`` renders the next head anew, ``measures`` gives what counts
    tokens for the model and its window.
    """

    def __init__(
        self,
        hub: McpHub,
        put_blob: PutBlob,
        emit: Callable[[Notice], None],
        tell_anew: Callable[[], None],
        measures: Callable[[], tuple[TokenCounter, int]],
    ) -> None:
        self._hub = hub
        self._measures = measures
        self._put_blob = put_blob
        self._emit = emit
        self._tell_anew = tell_anew
        self._unsubscribe = hub.subscribe(emit)

    def start(self) -> None:
        """Start the servers in the background; done once."""
        self._hub.start()

    def status(self) -> tuple[McpServerStatus, ...]:
        """Return the state of every server, in the order they are configured."""
        counter, window = self._measures()
        return self._hub.status(counter.schema, window=window, count_text=counter.text)

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call ``watcher`` whenever ``status`` may be different; the returned function ends that."""
        return self._hub.watch(watcher)

    def switch(self, server: str, tool: str, *, on: bool) -> McpServerSettings:
        """Offer a tool or not from the next head on, by the server's name for it; returns the settings for that.

        Raises:
            McpError: it cannot be switched.
        """
        return self._hub.switch(server, tool, on=on)

    async def sign_out(self, name: str) -> None:
        """Forget the login to a server, which asks for another one then.

        Raises:
            McpError: it has none.
        """
        await self._hub.sign_out(name)

    async def restart(self, name: str) -> None:
        """Stop a server and start it again in the background.

        Raises:
            McpError: there is no server of that name, or it is disabled.
        """
        await self._hub.restart(name)

    async def reload(self) -> None:
        """Read the configuration anew and tell the model of the tools there are: the next request misses the cache."""
        await self._hub.reload()
        self._tell_anew()
        self._emit(Notice(RELOADED))

    def prompts(self) -> tuple[McpPrompt, ...]:
        """Return the prompts that can be used as commands."""
        return self._hub.prompts()

    def resources(self) -> tuple[McpResource, ...]:
        """Return the resources that can be mentioned."""
        return self._hub.resources()

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str]) -> tuple[UserPart, ...]:
        """Return a prompt as parts of a message to send.

        Raises:
            McpError: it cannot be had.
        """
        return await self._hub.prompt(server, name, arguments, self._put_blob)

    async def resource(self, mention: str) -> tuple[UserPart, ...]:
        """Return a resource, named ``server:uri``, as parts of a message.

        Raises:
            McpError: it cannot be had.
        """
        return await self._hub.resource(mention, self._put_blob)

    def templates(self) -> tuple[McpTemplate, ...]:
        """Return the templates of resources that can be mentioned once their gaps are filled in."""
        return self._hub.templates()

    async def set_log_level(self, server: str, level: LogLevel) -> None:
        """Ask a server for messages from a level on.

        Raises:
            McpError: there is no such server.
        """
        await self._hub.set_log_level(server, level)

    def close(self) -> None:
        """Hear no more of the servers; they go on for others."""
        self._unsubscribe()
