"""Sends each request to its model's client (the demo's script or the providers'), and single questions to a model."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from tui_agent.context.request import ModelRequest
from tui_agent.lazy import dataclass
from tui_agent.model.client import ProviderClient
from tui_agent.model.demo import DEMO_MODEL, DemoClient
from tui_agent.model.protocol import ErrorKind, Finished, ModelClient, ModelError, ModelEvent, TextDelta, UsageReport
from tui_agent.session.entries import Usage

NO_MODEL = ""
"""The model of a program that has none yet."""


class RoutedClient:
    """A ``ModelClient`` over both."""

    def __init__(self, providers: ProviderClient, demo: DemoClient) -> None:
        self._providers = providers
        self._demo = demo

    def warm(self, model: str) -> None:
        """Load what the model needs, so that it is ready when the first message is sent."""
        if model not in {NO_MODEL, DEMO_MODEL}:
            self._providers.warm(model)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream the answer to a request.

        Raises:
            ModelError: the request failed, or no model was chosen.
        """
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


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer: its text, why it ended ("error" where it broke off), US dollars and tokens."""

    text: str
    finish: str
    cost: float
    usage: Usage


async def complete(client: ModelClient, request: ModelRequest) -> Completion:
    """Send a request beside the conversation and return the whole answer; raises as the client does."""
    text, finish, cost, usage = "", "error", 0.0, Usage()
    async with aclosing(client.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta():
                    text += event.text
                case Finished():
                    finish = event.reason
                case UsageReport():
                    cost, usage = cost + (event.cost or 0), event.usage
                case _:
                    pass
    return Completion(text, finish, cost, usage)
