"""Sends each request to the demo's client or the providers' client, depending on its model.

Also sends single requests outside the conversation and returns their whole answers. Failed requests
are not retried here. `complete_in_time` adds the cost to the session; callers of `complete` have to
do so.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import field
from typing import TYPE_CHECKING

from tui_agent.agent.channel import Journal
from tui_agent.context.request import ModelRequest
from tui_agent.lazy import dataclass
from tui_agent.model.client import ProviderClient
from tui_agent.model.demo import DEMO_MODEL, DemoClient
from tui_agent.model.protocol import (
    ErrorKind,
    Finished,
    ModelClient,
    ModelError,
    ModelEvent,
    PageFound,
    ReasoningDelta,
    TextDelta,
    TextWasReasoning,
    ToolCallReady,
    UsageReport,
)
from tui_agent.session.entries import Usage
from tui_agent.session.records import Purpose

if TYPE_CHECKING:
    from tui_agent.agent.ports import AgentPorts

NO_MODEL = ""
"""Placeholder for the model's name until the user chooses a model."""


class RoutedClient:
    """A ``ModelClient`` that sends the demo's requests to a script, and others to providers."""

    def __init__(self, providers: ProviderClient, demo: DemoClient) -> None:
        self._providers = providers
        self._demo = demo

    def warm(self, model: str) -> None:
        if model not in {NO_MODEL, DEMO_MODEL}:
            self._providers.warm(model)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if request.model == NO_MODEL:
            raise ModelError(
                ErrorKind.NOT_FOUND,
                "No model is chosen yet: enter an API key with /login, pick a model with /model or --model, or try "
                "the demo: tui-agent --demo.",
            )
        client = self._demo if request.model == DEMO_MODEL else self._providers
        async with aclosing(client.stream(request)) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        await self._providers.aclose()


@dataclass
class CallCost:
    """The total usage and cost of some model calls. ``cost`` is in US dollars, None if unknown."""

    usage: Usage = field(default_factory=Usage)
    cost: float | None = None


@dataclass
class Completion:
    """A complete answer. ``finish`` says why it ended; it is "error" if the stream broke off."""

    text: str = ""
    finish: str = "error"
    tool_calls: int = 0
    """Number of tool calls in the answer."""
    is_thinking: bool = False
    """Whether the answer contains reasoning."""
    item: str | None = None
    """JSON text to send back to the provider: the reasoning or, if requested, its own compaction.

    None if the answer contains neither.
    """
    pages: list[PageFound] = field(default_factory=list)
    """Web pages that the provider's own search found, or that the answer cites."""


async def complete(
    client: ModelClient,
    request: ModelRequest,
    spent: CallCost,
    progress: Callable[[str], None] = lambda _text: None,
) -> Completion:
    """Send a request and return the whole answer; nothing is appended to the session.

    Usage and cost are added to ``spent``, even if the request fails. ``progress`` is called with
    every piece of the text. Raises ModelError.
    """
    answer = Completion()
    async with aclosing(client.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta():
                    answer.text += event.text
                    progress(event.text)
                case ReasoningDelta():
                    answer.is_thinking = True
                case TextWasReasoning():
                    answer.text = ""
                    answer.is_thinking = True
                case ToolCallReady():
                    answer.tool_calls += 1
                case PageFound():
                    answer.pages.append(event)
                case Finished():
                    answer.finish = event.reason
                    answer.item = event.reasoning_blob
                case UsageReport(usage=usage, cost=cost):
                    before = spent.usage.model_dump()
                    now = usage.model_dump()
                    spent.usage = Usage(**{name: before[name] + now[name] for name in before})
                    if cost is not None:
                        spent.cost = (spent.cost or 0.0) + cost
                case _:
                    pass
    return answer


async def complete_in_time(
    ports: "AgentPorts",
    request: ModelRequest,
    journal: Journal,
    seconds: float | None,
    purpose: Purpose = Purpose.OTHER,
) -> Completion:
    """Send a request outside the conversation and return the whole answer.

    The cost is added to the run's costs and, under ``purpose``, to the session's costs, even if the
    request fails. Raises ModelError, and TimeoutError after ``seconds`` unless that is None.
    """
    spent = CallCost()
    try:
        async with asyncio.timeout(seconds):
            return await complete(ports.client, request, spent)
    finally:
        ports.meter.spend(spent.cost, spent.usage.total)
        if spent.cost:
            journal.add_cost(spent.cost, purpose)
