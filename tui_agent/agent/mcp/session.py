"""MCP servers in one session: their questions and sampling requests, and what they take of its requests."""

from collections.abc import Awaitable, Callable

from tui_agent.agent.clients import complete
from tui_agent.agent.events import CostKnown, Notice
from tui_agent.agent.mcp.questions import Answer, Sampled, SamplingOrder, SamplingQuestion, ServerQuestion
from tui_agent.agent.mcp.records import McpServerStatus
from tui_agent.agent.ports import Owner
from tui_agent.context.request import ModelRequest
from tui_agent.model.protocol import ModelError

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

    async def sample(self, order: SamplingOrder) -> Sampled:
        """Have the model answer a server, if the person lets it; what that costs is the session's and is told."""
        model = self._agent.model
        counter = self._agent.ports.directory.counter(model)
        sent = sum(counter.text(message.text) for message in order.messages)
        allowed = await self.ask(SamplingQuestion(order, model, sent))
        if allowed.action != "accept":
            return Sampled(refusal="The user does not allow it.")
        request = ModelRequest(model, order.messages, max_output_tokens=order.max_tokens, tool_choice="none")
        try:
            answer = await complete(self._agent.ports.client, request)
        except ModelError as error:
            return Sampled(refusal=error.message)
        if answer.cost:
            self._agent.session.add_cost(answer.cost)
            self._emit(CostKnown())
        price, used = f", ${answer.cost:.4f}" if answer.cost else "", answer.usage
        self._emit(Notice(f"{order.server} had an answer of {model}: {used.prompt:,} + {used.output:,} tokens{price}."))
        return Sampled(answer.text, model, answer.finish)

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
