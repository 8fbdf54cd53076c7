"""What the runners of a race share: places for requests, the wait after a rate limit, answers to questions."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

from tui_agent.agent.events import PermissionAnswer, PermissionRequest
from tui_agent.context.request import ModelRequest
from tui_agent.model.protocol import ErrorKind, ModelClient, ModelError, ModelEvent

PARALLEL_REQUESTS = 8
"""Requests of one race that are answered at a time."""
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0
"""Seconds that all wait after a rate limit whose provider names no time: doubled each time, up to the longest."""


class SharedClient:
    """A ``ModelClient`` for all runners: when one meets a rate limit, the others send nothing until it is over."""

    def __init__(
        self,
        client: ModelClient,
        places: int = PARALLEL_REQUESTS,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._places = asyncio.Semaphore(places)
        self._clock = clock
        self._sleep = sleep
        self._free_at = 0.0
        self._pause = FIRST_PAUSE

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream the answer to a request once there is a place for it; raises as the client does."""
        async with self._places:
            while (wait := self._free_at - self._clock()) > 0:
                await self._sleep(wait)
            try:
                async with aclosing(self._client.stream(request)) as events:
                    async for event in events:
                        yield event
            except ModelError as error:
                if error.kind in {ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED}:
                    self._free_at = max(self._free_at, self._clock() + (error.retry_after or self._pause))
                    self._pause = min(LONGEST_PAUSE, self._pause * 2)
                raise
            self._pause = FIRST_PAUSE

    async def aclose(self) -> None:
        """The client is somebody else's to close."""


class SharedQuestions:
    """Passes questions of runners on; the answer to one holds for every runner that asks the same."""

    def __init__(self, ask: Callable[[PermissionRequest], Awaitable[PermissionAnswer]]) -> None:
        self._ask = ask
        self._answers: dict[tuple[object, ...], asyncio.Future[PermissionAnswer]] = {}

    async def ask(self, request: PermissionRequest, runner: str) -> PermissionAnswer:
        """Return the user's answer to what a runner asks. A circle that one goes round in is asked about by itself."""
        needs = frozenset((need.permission, need.pattern) for need in request.needs)
        key: tuple[object, ...] = (request.tool, request.rules, request.reason, needs)
        if request.loop:
            key = (*key, runner)
        if key not in self._answers or self._answers[key].cancelled():
            named = replace(request, title=f"{runner}: {request.title}")
            asking = self._answers[key] = asyncio.ensure_future(self._ask(named))
            if request.loop:
                asking.add_done_callback(lambda _done: self._answers.pop(key, None))
        return await asyncio.shield(self._answers[key])

    def close(self) -> None:
        """Withdraw open questions."""
        for asking in self._answers.values():
            asking.cancel()
