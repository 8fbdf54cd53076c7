"""Sends each request to its model's client (the demo's script or the providers'), and single questions to a model."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import field

from tui_agent.agent.channel import Journal
from tui_agent.agent.events import CostKnown
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

NO_MODEL = ""
"""The model of a program that has none yet."""


class RoutedClient:
    """A ``ModelClient`` over both."""

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
                "No model is chosen yet: enter a key with /login, pick a model with /model or --model, or try the "
                "demo: tui-agent --demo.",
            )
        client = self._demo if request.model == DEMO_MODEL else self._providers
        async with aclosing(client.stream(request)) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        await self._providers.aclose()


@dataclass
class CallCost:
    """The total cost of some calls; ``cost`` is US dollars, None when no price is known."""

    usage: Usage = field(default_factory=Usage)
    cost: float | None = None


@dataclass
class Completion:
    """A whole answer: its text, why it ended ("error" where it broke off), the calls it asked for.

    ``item`` is JSON text that the provider wants back with it.
    """

    text: str = ""
    finish: str = "error"
    tool_calls: int = 0
    is_thinking: bool = False
    """It holds reasoning."""
    item: str | None = None
    pages: list[PageFound] = field(default_factory=list)
    """What the provider's own search found, and what the answer cites."""


async def complete(
    client: ModelClient,
    request: ModelRequest,
    spent: CallCost,
    progress: Callable[[str], None] = lambda _text: None,
) -> Completion:
    """Send a request beside the conversation and return the whole answer.

    Raises as the client does.

    Its cost is added to ``spent`` even if it fails; ``progress`` is given every piece of text.
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
    client: ModelClient,
    request: ModelRequest,
    journal: Journal,
    seconds: float | None,
    purpose: Purpose = Purpose.OTHER,
) -> Completion:
    """Return the whole answer to a request beside the conversation.

    The session pays for it, failed or not. Raises TimeoutError after ``seconds`` (None: never), and
    as the client does.
    """
    spent = CallCost()
    try:
        async with asyncio.timeout(seconds):
            return await complete(client, request, spent)
    finally:
        if spent.cost:
            journal.session.add_cost(spent.cost, purpose)
            journal.channel.emit(CostKnown())
