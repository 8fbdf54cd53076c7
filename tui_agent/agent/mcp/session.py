"""The servers as one session's agent has them: what screens and commands ask, and what servers ask of the session."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing

from tui_agent.agent.events import CostKnown, Notice
from tui_agent.agent.journal import Journal
from tui_agent.agent.mcp.questions import Answer, Sampled, SamplingOrder, SamplingQuestion, ServerQuestion
from tui_agent.agent.mcp.records import LogLevel, McpPrompt, McpResource, McpServerStatus, McpTemplate
from tui_agent.agent.mcp.settings import McpServerSettings
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.request import ModelRequest
from tui_agent.model.protocol import Finished, ModelError, TextDelta, UsageReport
from tui_agent.session.entries import Usage, UserPart

RELOADED = "The model is told of the servers' tools anew with the next request; what the provider had cached is lost."


class SessionMcp:
    """Servers for one session.

    ``tell_anew`` renders the next head anew, ``is_running`` tells whether the session works just now.
    """

    def __init__(
        self,
        journal: Journal,
        ports: AgentPorts,
        *,
        model: Callable[[], str],
        tell_anew: Callable[[], None],
        is_running: Callable[[], bool],
    ) -> None:
        self._hub = hub = ports.mcp
        self._ports = ports
        self._session = journal.session
        self._put_blob = ports.put_blob
        self._emit = journal.channel.emit
        self._model = model
        self._tell_anew = tell_anew
        self._is_running = is_running
        self._leave = (hub.subscribe(self._emit), hub.join(self))
        self.asker: Callable[[ServerQuestion], Awaitable[Answer]] | None = None
        """Asks the person; None where there is none."""

    # -- what servers ask -------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Whether the session works just now."""
        return self._is_running()

    @property
    def can_ask(self) -> bool:
        """Whether there is a person."""
        return self.asker is not None

    async def ask(self, question: ServerQuestion) -> Answer:
        return Answer() if self.asker is None else await self.asker(question)

    async def sample(self, order: SamplingOrder) -> Sampled:
        """Have the model answer a server, if the person lets it; what that costs is the session's and is told."""
        model = self._model()
        counter = self._ports.directory.counter(model)
        sent = sum(counter.text(message.text) for message in order.messages)
        allowed = await self.ask(SamplingQuestion(order, model, sent))
        if allowed.action != "accept":
            return Sampled(refusal="The user does not allow it.")
        request = ModelRequest(model, order.messages, max_output_tokens=order.max_tokens, tool_choice="none")
        text, finish, cost, used = "", "stop", 0.0, Usage()
        try:
            async with aclosing(self._ports.client.stream(request)) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        text += event.text
                    elif isinstance(event, Finished):
                        finish = event.reason
                    elif isinstance(event, UsageReport):
                        cost, used = cost + (event.cost or 0), event.usage
        except ModelError as error:
            return Sampled(refusal=error.message)
        if cost:
            self._session.add_cost(cost)
            self._emit(CostKnown())
        price = f", ${cost:.4f}" if cost else ""
        self._emit(Notice(f"{order.server} had an answer of {model}: {used.prompt:,} + {used.output:,} tokens{price}."))
        return Sampled(text, model, finish)

    # -- what screens and commands ask ------------------------------------------------------------------------

    def start(self) -> None:
        """Start the servers in the background; done once."""
        self._hub.start()

    def status(self) -> tuple[McpServerStatus, ...]:
        """Return the state of every server, in the order they are configured."""
        directory, model = self._ports.directory, self._model()
        counter = directory.counter(model)
        return self._hub.status(counter.schema, window=directory.limits(model).window, count_text=counter.text)

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
        for leave in self._leave:
            leave()
