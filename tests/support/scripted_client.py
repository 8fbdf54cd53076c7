"""A model client that plays a script and records what it was asked."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

from tests.support.request_sizes import request_size
from tui_agent.context.request import ModelRequest
from tui_agent.model.protocol import (
    Finished,
    ModelError,
    ModelEvent,
    PageFound,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallReady,
    UsageReport,
)
from tui_agent.session.entries import Usage


@dataclass(frozen=True)
class Call:
    """A tool call to make."""

    tool: str
    arguments: str
    call_id: str = ""


def call(tool: str, **arguments: object) -> Call:
    return Call(tool, json.dumps(arguments))


HONEST = Usage(input=100, output=10)
"""Stands for what was really read, as far as the program can count it."""


@dataclass(frozen=True)
class Reply:
    """One answer. ``hang`` waits for ever after the text; ``error`` is raised after it, and its ``cost``."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    usage: Usage | None = HONEST
    finish: str | None = None
    note: str = ""
    error: ModelError | None = None
    hang: bool = False
    cost: float | None = None
    pages: tuple[PageFound, ...] = ()


Script = Sequence[Reply] | Callable[[ModelRequest], Reply]


class ScriptedClient:
    """Answers each request with the next reply; the last one repeats."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[ModelRequest] = []
        self.hanging = asyncio.Event()
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        number = len(self.requests)
        reply = (
            self.script(request)
            if callable(self.script)
            else self.script[min(number, len(self.script)) - 1]
        )
        try:
            async for event in self.events(_counted(reply, request), number):
                yield event
        finally:
            self.closed += 1

    async def events(self, reply: Reply, number: int) -> AsyncIterator[ModelEvent]:
        await asyncio.sleep(0)
        if reply.reasoning:
            yield ReasoningDelta(reply.reasoning)
        for start in range(0, len(reply.text), 10):
            yield TextDelta(reply.text[start : start + 10])
            await asyncio.sleep(0)
        if reply.hang:
            self.hanging.set()
            await asyncio.Event().wait()
        if reply.error:
            if reply.usage and reply.cost is not None:
                yield UsageReport(reply.usage, reply.cost)
            raise reply.error
        for page in reply.pages:
            yield page
        for index, call in enumerate(reply.calls):
            call_id = call.call_id or f"call_{number}_{index}"
            yield ToolCallDelta(index, call_id, call.tool, call.arguments)
            yield ToolCallReady(call_id, call.tool, call.arguments)
        if reply.usage:
            yield UsageReport(reply.usage, reply.cost)
        yield Finished(reply.finish or ("tool_calls" if reply.calls else "stop"), note=reply.note)

    async def aclose(self) -> None:
        return None


def _counted(reply: Reply, request: ModelRequest) -> Reply:
    if reply.usage is not HONEST:
        return reply
    return replace(
        reply, usage=Usage(input=max(request_size(request), HONEST.input), output=HONEST.output)
    )
