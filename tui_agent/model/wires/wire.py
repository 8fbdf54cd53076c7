"""The interface of a wire: a provider format's call for a request and reader of the answer.

Wires do no input and output and have no clock: the same request makes the same bytes, and a reader
is fed server-sent events that others read. ``http`` sends and receives for all of them.
"""

import base64
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from itertools import takewhile
from typing import Any, Protocol, TypeGuard

from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, calls_in
from tui_agent.json_text import as_dict, loads
from tui_agent.lazy import frozen
from tui_agent.model.error_body import is_error
from tui_agent.model.errors import Failure
from tui_agent.model.protocol import (
    FinishReason,
    ModelEvent,
    PromptProgress,
    ToolCallDelta,
    ToolCallReady,
    UsageReport,
)
from tui_agent.model.route import Route
from tui_agent.model.written_calls import CallIds
from tui_agent.session.entries import Usage

PROGRESS = "return_progress"
"""llama.cpp's request field for progress reports on reading the prompt."""

LOST_IMAGE = "[image: no longer available]"
"""Text in place of a lost image, so that the conversation can continue."""

# -- usage --------------------------------------------------------------------------------------------------
TICKS_PER_DOLLAR = 10_000_000_000
"""xAI's unit of cost: ticks per US dollar."""

MAX_TOKENS = 100_000_000
"""Number of tokens above which a report is taken for nonsense."""


@frozen
class Call:
    """The HTTP call for a request.

    ``path`` is appended to the route's address; ``headers`` don't include the key.
    """

    path: str
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    """Fields of the body that can be omitted if a server refuses them."""


def progress_of(event: dict[str, Any]) -> list[ModelEvent]:
    """Return an event for the progress of reading the prompt, if the server's event reports it."""
    match event.get("prompt_progress"):
        case {"processed": int(processed), "total": int(total)} if processed < total:
            return [PromptProgress(processed, total)]
        case _:
            return []


class WireFailure(Exception):  # noqa: N818 - it carries a Failure
    """An answer failed: the provider reported an error, or ended it before it was complete."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text or failure.cause or "failed")
        self.failure = failure


class Reader(ABC):
    """Assembles one answer from the provider's events."""

    def __init__(self, request: ModelRequest, route: Route) -> None:
        self.route = route
        self.ids = CallIds(calls_in(request.messages))
        self.calls: list[ToolCallReady] = []
        """The calls, in formats that send them whole."""
        self.usage: dict[str, Any] = {}
        """The usage reported so far, by the format's names or those of `report`."""
        self.finished = False
        """Whether the provider has sent the reason of the end; a broken connection is then
        harmless."""
        self.done = False
        """Whether the format's final event has come, after which nothing needs to be awaited."""

    @abstractmethod
    def feed(self, event: str, data: str) -> list[ModelEvent]:
        """Take a server-sent event and return the events it adds to the answer.

        ``event`` is "" where the server names none. A server that answers with one JSON document
        instead of a stream is read by feeding the document.

        Raises:
            WireFailure: the event is an error, or can't be read (cause "broken").
        """

    @abstractmethod
    def end(self) -> list[ModelEvent]:
        """Return the events that end the answer: complete calls, usage, reason. Called once.

        Raises WireFailure if the answer is incomplete (cause "closed").
        """

    def reason(self, of_answer: FinishReason, *, marked: bool) -> FinishReason:
        """Return the reason of the end.

        Without an end mark it is "length" if the server sends marks.
        """
        if marked or not self.route.end_marks:
            return of_answer
        return "length"

    def take_call(self, given: str | None, tool: str, arguments: str) -> ToolCallDelta:
        """Add a whole call. ``given`` is the provider's id, ``arguments`` JSON text."""
        call = ToolCallReady(self.ids.take(given), tool, arguments)
        self.calls.append(call)
        return ToolCallDelta(len(self.calls) - 1, call.call_id, tool, arguments)

    def count(self, numbers: Mapping[str, Any]) -> None:
        """Add a report of usage. Later numbers replace earlier ones, except zeros and missing ones."""
        self.usage |= {name: value for name, value in numbers.items() if value}

    def report(
        self, numbers: Mapping[str, Any], cost: float | None = None, *, hour_writes: int = 0
    ) -> list[ModelEvent]:
        """Return the event that reports usage, none if it is unknown.

        ``cost`` is the provider's own number, ``hour_writes`` are tokens cached for an hour.
        """
        usage = usage_of(numbers)
        if usage is None:
            return []
        if cost is None:
            hour_writes = max(0, min(hour_writes, usage.cache_write))
            cost = self.route.info.cost(usage, hour_writes=hour_writes)
        return [UsageReport(usage, cost)]


class Wire(Protocol):
    """One format; the modules of this package implement it."""

    def call(self, request: ModelRequest, route: Route, *, with_reasoning: bool = True) -> Call:
        """Return the call for a request. Pure: a longer conversation begins with the same bytes."""
        ...

    reader: Callable[[ModelRequest, Route], Reader]


def parse(data: str, event: str = "") -> dict[str, Any]:
    """Return the object an event's data is.

    The only place that knows an error from a part of an answer.

    Raises:
        WireFailure: it is none, or an error, which is judged as one with a status of its own.
    """
    try:
        value = loads(data)
    except ValueError:
        value = None
    if event == "error" and not isinstance(value, dict):
        raise WireFailure(Failure(data))
    if not isinstance(value, dict):
        raise WireFailure(Failure(data[:300], cause="broken"))
    if is_error(value, event):
        given = as_dict(value.get("headers"))
        headers = {str(name).lower(): str(said) for name, said in given.items()}
        raise WireFailure(Failure(data, headers=headers))
    return value


def cache_mark(request: ModelRequest) -> dict[str, str]:
    """Return Anthropic's mark, which asks to cache everything before it."""
    if request.cache_ttl == "1h":
        return {"type": "ephemeral", "ttl": "1h"}
    return {"type": "ephemeral"}


def stand_in(image: ImageRef) -> str:
    """Return the text in place of an image or PDF that can't be sent."""
    return image.text or LOST_IMAGE


def image_url(image: ImageRef, request: ModelRequest) -> str | None:
    """Return an image of a request as a data URL, None if its bytes are lost."""
    data = image_base64(image, request)
    if data is None:
        return None
    return f"data:{image.mime};base64,{data}"


def image_base64(image: ImageRef, request: ModelRequest) -> str | None:
    """Return an image's bytes in base64, None if they are lost."""
    content = request.blobs.get(image.blob)
    if content is None:
        return None
    return base64.b64encode(content).decode("ascii")


def one_system_message(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join the system messages at the head: some servers' templates take one only.

    Cache marks need them apart.
    """
    messages = tuple(messages)
    head = list(takewhile(lambda message: message.role == "system", messages))
    if len(head) < 2:
        return messages
    text = "\n\n".join(message.text for message in head)
    return (Message("system", (ContentText(text),)), *messages[len(head) :])


def blobs(message: Message) -> list[dict[str, Any]]:
    """Return the readable reasoning blobs of a message."""
    found = []
    for blob in message.reasoning:
        try:
            value = loads(blob)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def kept_items(message: Message, name: str) -> list[Any] | None:
    """Return the items that a message keeps under a format's name, None if it has none."""
    for blob in blobs(message):
        if isinstance(items := blob.get(name), list):
            return items
    return None


def compacted(message: Message) -> tuple[list[dict[str, Any]], Message]:
    """Return the items of a provider's own compaction, and the message without their text."""
    kept = kept_items(message, "compacted")
    if kept is None:
        return [], message
    beside = []
    for part in message.content[1:]:
        if not isinstance(part, ContentText) or part.text.strip():
            beside.append(part)
    return kept, replace(message, content=tuple(beside))


def usage_of(reported: Mapping[str, Any]) -> Usage | None:
    """Return the usage a provider reported, None when it reported none or nonsense.

    ``reported`` has prompt, completion, cache_read, cache_write and reasoning. ``prompt`` counts
    cached tokens too where a provider follows OpenAI, which litellm makes most of them do; one that
    is smaller than the cached ones cannot have, and counts the rest.
    """
    prompt = _count(reported.get("prompt"))
    completion = _count(reported.get("completion"))
    if prompt is None or completion is None:
        return None
    cache_read = _count(reported.get("cache_read")) or 0
    cache_write = _count(reported.get("cache_write")) or 0
    cached = cache_read + cache_write
    usage = Usage(
        input=prompt - cached if prompt >= cached else prompt,
        output=completion,
        cache_read=cache_read,
        cache_write=cache_write,
        reasoning=min(_count(reported.get("reasoning")) or 0, completion),
    )
    # A request has at least one token: servers that don't count say zero.
    return usage if usage.prompt > 0 else None


def named_cost(reported: Mapping[str, Any]) -> float | None:
    """Return the price in US dollars a provider named with its usage, None when it named none.

    OpenRouter and others call it ``cost``; xAI counts ticks, ten thousand million a dollar.
    """
    ticks = reported.get("cost_in_usd_ticks")
    named = ticks / TICKS_PER_DOLLAR if _is_number(ticks) else reported.get("cost")
    return float(named) if _is_number(named) and named >= 0 else None


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _count(value: Any) -> int | None:
    """Return a number of tokens, 0 for a missing one, None for an impossible one."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Not a number is not between anything.
    if 0 <= value <= MAX_TOKENS:
        return int(value)
    return None
