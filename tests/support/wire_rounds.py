"""Plays whole rounds with a native wire and no connection: bytes in, entry out, the next request's body out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.request import ModelRequest
from tui_agent.model.catalog import Catalog
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
from tui_agent.model.providers import PROVIDERS
from tui_agent.model.route import Route, Router
from tui_agent.model.settings import ModelSettings
from tui_agent.model.wires.http import EventDecoder
from tui_agent.model.wires.wire import Reader, Wire
from tui_agent.session.entries import (
    AssistantEntry,
    AssistantPart,
    Entry,
    ReasoningPart,
    SystemEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolSchema,
    ToolStatus,
    Usage,
    UserEntry,
)

KEYS = {"ANTHROPIC_API_KEY": "sk-ant-x"} | {
    key: "x" for row in PROVIDERS.values() for key in row.keys[:1]
}
READ = ToolSchema(
    name="read", description="Read a file.", parameters={"type": "object", "properties": {}}
)


def route_to(model: str, **settings: Any) -> Route:
    """Return the route of a model as the user's settings make it."""
    return _route(model, {model: ModelSettings(**settings)}) if settings else _plain_route(model)


@cache
def _plain_route(model: str) -> Route:
    return _route(model, {})


def _route(model: str, models: dict[str, ModelSettings]) -> Route:
    return Router(Catalog(models), KEYS, models=models).route(model)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a reader made of an answer, or everything that a stream gave."""

    events: Sequence[ModelEvent]
    error: ModelError | None = None

    @property
    def failure(self) -> ModelError:
        assert self.error is not None, f"it did not fail: {self.text}"
        return self.error

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def reasoning(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))

    @property
    def calls(self) -> list[ToolCallReady]:
        return [event for event in self.events if isinstance(event, ToolCallReady)]

    @property
    def written(self) -> dict[int, tuple[str, str, str]]:
        """Calls as they were seen being written, by number: id, tool, arguments."""
        calls: dict[int, tuple[str, str, str]] = {}
        for event in self.events:
            if isinstance(event, ToolCallDelta):
                _id, _tool, before = calls.get(event.index, ("", "", ""))
                calls[event.index] = (event.call_id, event.tool, before + event.arguments)
        return calls

    @property
    def pages(self) -> list[PageFound]:
        return [event for event in self.events if isinstance(event, PageFound)]

    @property
    def usage(self) -> UsageReport | None:
        return next((event for event in self.events if isinstance(event, UsageReport)), None)

    @property
    def used(self) -> Usage:
        """The tokens that were reported."""
        assert self.usage is not None
        return self.usage.usage

    @property
    def finished(self) -> Finished:
        return next(event for event in self.events if isinstance(event, Finished))

    def entry(self, model: str, entry_id: int) -> AssistantEntry:
        """Return the entry the agent makes of it."""
        parts: list[AssistantPart] = []
        if self.reasoning or self.finished.reasoning_blob:
            parts.append(
                ReasoningPart(text=self.reasoning, blob=self.finished.reasoning_blob, model=model)
            )
        if self.text:
            parts.append(TextPart(text=self.text))
        parts += [
            ToolCallPart(call_id=call.call_id, tool=call.tool, arguments=call.arguments)
            for call in self.calls
        ]
        return AssistantEntry(
            id=entry_id, parts=tuple(parts), model=model, finish=self.finished.reason
        )


def read(reader: Reader, body: bytes, cuts: Iterable[int] = ()) -> Heard:
    """Feed a body, cut at the places given, to a reader until it has heard enough.

    Raises:
        WireFailure: as the reader does.
    """
    decoder, events, start = EventDecoder(), list[ModelEvent](), 0
    for end in (*sorted(cuts), len(body)):
        for name, data in decoder.feed(body[start:end]):
            if not reader.done:
                events += reader.feed(name, data)
        start = end
    if not reader.done:
        for name, data in decoder.end():
            events += reader.feed(name, data)
    return Heard((*events, *reader.end()))


def first_path() -> list[Entry]:
    """Return a session as it is when its first request is made."""
    return [
        SystemEntry(
            id=1, blocks=("You work.", "In a directory."), tools=(READ,), model="", mode="build"
        ),
        UserEntry(id=2, parts=(TextPart(text="Go on."),)),
    ]


def answered(path: Sequence[Entry], heard: Heard, model: str) -> list[Entry]:
    """Return the path with an answer, the results of its calls, and the user's next word where there are none."""
    path = [*path, heard.entry(model, len(path) + 1)]
    for call in heard.calls:
        path.append(
            ToolResultEntry(
                id=len(path) + 1,
                call_id=call.call_id,
                tool=call.tool,
                status=ToolStatus.COMPLETED,
                output="done",
            )
        )
    if not heard.calls:
        path.append(UserEntry(id=len(path) + 1, parts=(TextPart(text="And now?"),)))
    return path


def request_of(path: Sequence[Entry], model: str, **fields: Any) -> ModelRequest:
    """Return the request a path stands for."""
    return replace(project(path, ModelTraits(model)), **fields)


def second_body(wire: Wire, route: Route, heard: Heard, **fields: Any) -> dict[str, Any]:
    """Return the body of the request that follows an answer to the first one."""
    model = route.info.id
    return wire.call(request_of(answered(first_path(), heard, model), model, **fields), route).body
