"""Sends each request to the client its model belongs to: the demo's script, or the model host."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from tui_agent.context.request import ModelRequest
from tui_agent.model.client import HostClient
from tui_agent.model.demo import DEMO_MODEL, DemoClient
from tui_agent.model.protocol import ErrorKind, ModelError, ModelEvent

NO_MODEL = ""
"""The model of a program that has none yet."""


class RoutedClient:
    """A ``ModelClient`` over both. Only a request to a real model starts the host."""

    def __init__(self, host: HostClient, demo: DemoClient) -> None:
        self._host = host
        self._demo = demo

    def warm(self, model: str) -> None:
        """Start the host, if the model needs it, so that it is ready when the first message is sent."""
        if model not in {NO_MODEL, DEMO_MODEL}:
            self._host.warm()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream the answer to a request.

        Raises:
            ModelError: the request failed, or no model was chosen.
        """
        if request.model == NO_MODEL:
            raise ModelError(
                ErrorKind.NOT_FOUND,
                "No model is chosen yet: pick one with /model or --model, or try the demo: tui-agent --demo.",
            )
        client = self._demo if request.model == DEMO_MODEL else self._host
        async with aclosing(client.stream(request)) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        """End the host."""
        await self._host.aclose()
