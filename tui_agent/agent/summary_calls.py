"""Makes the model calls of a summary: drives the pure conversation of ``context.summariser`` with a real model."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import field, replace

from tui_agent.context.request import ModelRequest
from tui_agent.context.summariser import Summarising, SummaryAnswer, SummaryCall, SummaryFailure, build_request
from tui_agent.lazy import dataclass
from tui_agent.model.protocol import (
    ErrorKind,
    Finished,
    ModelClient,
    ModelError,
    TextDelta,
    ToolCallReady,
    UsageReport,
)
from tui_agent.session.entries import Usage


@dataclass(slots=True)
class SummaryCost:
    """What the calls of one summary cost together; ``cost`` is US dollars, None when no price is known."""

    usage: Usage = field(default_factory=Usage)
    cost: float | None = None

    def add(self, report: UsageReport) -> None:
        before, now = self.usage, report.usage
        self.usage = Usage(
            input=before.input + now.input,
            output=before.output + now.output,
            cache_read=before.cache_read + now.cache_read,
            cache_write=before.cache_write + now.cache_write,
            reasoning=before.reasoning + now.reasoning,
        )
        if report.cost is not None:
            self.cost = (self.cost or 0.0) + report.cost


@dataclass(slots=True)
class SummaryCalls:
    """Sends calls to one model. ``progress`` is told every piece of text that comes back."""

    client: ModelClient
    model: str
    live: ModelRequest | None = None
    progress: Callable[[str], None] = lambda _text: None
    spent: SummaryCost = field(default_factory=SummaryCost)

    async def run(self, conversation: Summarising) -> str | SummaryFailure:
        """Answer the conversation's calls until it returns a summary or gives up."""
        try:
            calls = next(conversation)
            while True:
                answers = await asyncio.gather(*(self._call(call) for call in calls))
                calls = conversation.send(answers)
        except StopIteration as done:
            result: str | SummaryFailure = done.value
            return result

    async def compact(self, conversation: ModelRequest) -> str | SummaryFailure:
        """Return the provider's own compaction of a conversation, JSON text to send back."""
        item: str | None = None
        try:
            async with aclosing(self.client.stream(replace(conversation, compact=True))) as events:
                async for event in events:
                    match event:
                        case UsageReport():
                            self.spent.add(event)
                        case Finished(reasoning_blob=item):
                            pass
                        case _:
                            pass
        except ModelError as error:
            return SummaryFailure(error.message)
        return item or SummaryFailure("The provider answered without a compaction.")

    async def _call(self, call: SummaryCall) -> SummaryAnswer:
        text: list[str] = []
        tool_calls = 0
        finish = "error"
        try:
            async with aclosing(self.client.stream(build_request(call, self.model, self.live))) as events:
                async for event in events:
                    match event:
                        case TextDelta(text=piece):
                            text.append(piece)
                            self.progress(piece)
                        case ToolCallReady():
                            tool_calls += 1
                        case UsageReport():
                            self.spent.add(event)
                        case Finished(reason=reason):
                            finish = reason
                        case _:
                            pass
        except ModelError as error:
            if error.kind is ErrorKind.CONTEXT_OVERFLOW:
                # Its message advises to compact, which is what this is for.
                return SummaryAnswer(error=f"the conversation is longer than {self.model} takes", too_long=True)
            return SummaryAnswer(error=error.message)
        return SummaryAnswer("".join(text), finish, tool_calls)
