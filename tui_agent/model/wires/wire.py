"""The interface of wires (the providers' formats), and code that they share.

A wire implements one provider format: it builds the HTTP call for a request, and its reader turns
the answer into events. Wires do no I/O and have no clock; ``http`` sends and receives for all of
them. The same request always produces the same bytes.
"""

import base64
import sys
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
from tui_agent.model.streamed_calls import CallIds
from tui_agent.session.entries import Usage

PROGRESS = "return_progress"
"""Request field that asks llama.cpp to report its progress while it reads the prompt."""

LOST_IMAGE = "[image: no longer available]"
"""Text that is sent instead of an image whose bytes are lost, so that the conversation can
continue."""

# -- usage --------------------------------------------------------------------------------------------------
TICKS_PER_DOLLAR = 10_000_000_000
"""Number of xAI's ticks (its unit of cost) in one US dollar."""

MAX_TOKENS = 100_000_000
"""Largest plausible number of tokens. A usage report with a larger number is ignored."""


@frozen
class Call:
    """The HTTP call for a request.

    ``path`` is appended to the address of the route. ``headers`` don't include the key.
    """

    path: str
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    """Fields that can be left out of the body if a server refuses them; ``a.b`` is field b of a."""


def progress_of(event: dict[str, Any]) -> list[ModelEvent]:
    """Return the progress that a llama.cpp event reports, as a list of one event.

    The list is empty if the event reports no progress, or if the progress is complete.
    """
    match event.get("prompt_progress"):
        case {"processed": int(processed), "total": int(total)} if processed < total:
            return [PromptProgress(processed, total)]
        case _:
            return []


class WireFailure(Exception):  # noqa: N818 - it carries a Failure
    """Raised if an answer fails. ``failure`` contains the facts.

    The provider reported an error, the connection failed, or the answer ended before it was
    complete.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text or failure.cause or "failed")
        self.failure = failure


class Reader(ABC):
    """Turns the provider's events of one answer into model events."""

    def __init__(self, request: ModelRequest, route: Route) -> None:
        self.route = route
        self.ids = CallIds(calls_in(request.messages))
        self.calls: list[ToolCallReady] = []
        """The tool calls received so far, in formats that send each call as a whole; otherwise
        empty."""
        self.usage: dict[str, Any] = {}
        """The numbers reported so far, under the format's own names or those of `usage_of`."""
        self.finished = False
        """Whether the provider has sent the finish reason. After that, a broken connection is
        harmless."""
        self.done = False
        """Whether the final event of the format has been received, after which no more data is
        needed."""

    @abstractmethod
    def feed(self, event: str, data: str) -> list[ModelEvent]:
        """Add one server-sent event and return the resulting model events.

        ``event`` is the event's name, "" if it has none. If the server answers with one JSON
        document instead of a stream, that document is the only event.

        Raises:
            WireFailure: the event is an error, or can't be parsed (cause "broken").
        """

    @abstractmethod
    def end(self) -> list[ModelEvent]:
        """Return the last events of the answer: its complete calls, its usage and `Finished`.

        This method is called once, after all input. It raises WireFailure if the answer is
        incomplete (cause "ended") or unusable.
        """

    def reason(self, of_answer: FinishReason, *, marked: bool) -> FinishReason:
        """Return the finish reason ``of_answer``, or "unmarked" if the end mark is missing.

        The mark is not expected from a server that never sends one (`Route.end_marks`).
        """
        if marked or not self.route.end_marks:
            return of_answer
        return "unmarked"

    def take_call(self, given: str | None, tool: str, arguments: str) -> ToolCallDelta:
        """Add a whole call to ``calls`` and return the event for it.

        ``given`` is the provider's id, None or "" for none; ``arguments`` is JSON text.
        """
        call = ToolCallReady(self.ids.take(given), tool, arguments)
        self.calls.append(call)
        return ToolCallDelta(len(self.calls) - 1, call.call_id, tool, arguments)

    def count(self, numbers: Mapping[str, Any]) -> None:
        """Add the numbers of a report to ``usage``, where they replace earlier ones.

        Numbers that are 0 or None are ignored.
        """
        self.usage |= {name: value for name, value in numbers.items() if value}

    def report(
        self, numbers: Mapping[str, Any], cost: float | None = None, *, hour_writes: int = 0
    ) -> list[ModelEvent]:
        """Return a list with one `UsageReport`; the list is empty if the usage is unknown.

        ``numbers`` are the provider's numbers, under the names that `usage_of` expects. ``cost`` is
        the provider's price in US dollars; if None, the catalog's prices are used. ``hour_writes``
        is the number of tokens cached for an hour.
        """
        usage = usage_of(numbers)
        if usage is None:
            return []
        if cost is None:
            hour_writes = max(0, min(hour_writes, usage.cache_write))
            cost = self.route.info.cost(usage, hour_writes=hour_writes)
        return [UsageReport(usage, cost)]


class Wire(Protocol):
    """The functions of a provider's format. Each format is a module of this package."""

    def call(self, request: ModelRequest, route: Route, *, with_reasoning: bool = True) -> Call:
        """Return the HTTP call for a request.

        When a conversation grows, the new body begins with the same bytes as the one before.
        Without ``with_reasoning``, reasoning is neither sent back nor requested.
        """
        ...

    reader: Callable[[ModelRequest, Route], Reader]


def parse(data: str, event: str = "") -> dict[str, Any]:
    """Return the JSON object in an event's data.

    Raises:
        WireFailure: the data isn't a JSON object (cause "broken"), or it reports an error.
    """
    try:
        value = loads(data)
    except ValueError:
        value = None
    if event == "error" and not isinstance(value, dict):
        raise WireFailure(Failure(data))
    if not isinstance(value, dict):
        raise WireFailure(Failure(data[:300], cause="broken"))
    check_error(value, data, event)
    return value


def check_error(value: dict[str, Any], data: str, event: str = "") -> None:
    """Raise WireFailure if a JSON object in an answer reports an error of the provider.

    ``data`` is the object's JSON text.
    """
    if is_error(value, event):
        given = as_dict(value.get("headers"))
        headers = {str(name).lower(): str(said) for name, said in given.items()}
        raise WireFailure(Failure(data, headers=headers))


def cache_mark(request: ModelRequest) -> dict[str, str]:
    """Return Anthropic's cache mark, which asks to cache everything up to the block that has it.

    The request's ``cache_ttl`` decides how long the cache is kept.
    """
    if request.cache_ttl == "1h":
        return {"type": "ephemeral", "ttl": "1h"}
    return {"type": "ephemeral"}


def stand_in(image: ImageRef) -> str:
    """Return the text that replaces an image or PDF: its own text, or else ``LOST_IMAGE``."""
    return image.text or LOST_IMAGE


def image_url(image: ImageRef, request: ModelRequest) -> str | None:
    """Return an image or PDF as a data URL; None if the request doesn't have its bytes."""
    data = image_base64(image, request)
    if data is None:
        return None
    return f"data:{image.mime};base64,{data}"


def image_base64(image: ImageRef, request: ModelRequest) -> str | None:
    """Return the bytes of an image or PDF in base64; None if the request doesn't contain them."""
    content = request.blobs.get(image.blob)
    if content is None:
        return None
    return base64.b64encode(content).decode("ascii")


def one_system_message(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return messages with the system messages at the beginning joined into one.

    Some servers' templates accept only one. Don't use this function with cache marks, because they
    need separate messages.
    """
    messages = tuple(messages)
    head = list(takewhile(lambda message: message.role == "system", messages))
    if len(head) < 2:
        return messages
    text = "\n\n".join(message.text for message in head)
    return (Message("system", (ContentText(text),)), *messages[len(head) :])


def blobs(message: Message) -> list[dict[str, Any]]:
    """Return the reasoning blobs of a message as dicts. Blobs that can't be parsed are left out."""
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
    """Return the list called ``name`` in a message's reasoning blobs; None if no blob has one."""
    for blob in blobs(message):
        if isinstance(items := blob.get(name), list):
            return items
    return None


def compacted(message: Message) -> tuple[list[dict[str, Any]], Message]:
    """Return the items of a provider's own compaction, and the rest of the message.

    The rest is the message without its first part (the items' text) and without blank texts. If the
    message has no compaction, returns [] and the message itself.
    """
    kept = kept_items(message, "compacted")
    if kept is None:
        return [], message
    beside = []
    for part in message.content[1:]:
        if not isinstance(part, ContentText) or part.text.strip():
            beside.append(part)
    return kept, replace(message, content=tuple(beside))


def usage_of(reported: Mapping[str, Any]) -> Usage | None:
    """Return the usage for the numbers that a provider reported; None if they aren't usable.

    ``reported`` contains prompt, completion, cache_read, cache_write and reasoning, in tokens.
    Returns None if ``prompt`` or ``completion`` isn't plausible, or if no prompt tokens are
    reported; other missing or implausible numbers count as 0. ``prompt`` is assumed to include
    cached tokens, as OpenAI's does. If it is smaller than the number of cached tokens, it is taken
    as the number of uncached tokens.
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
    # Every request has at least one token, but servers that don't count tokens report zero.
    return usage if usage.prompt > 0 else None


def named_cost(reported: Mapping[str, Any]) -> float | None:
    """Return the price, in US dollars, that a usage report states; None if it states none.

    OpenRouter and others call it ``cost``; xAI reports ``cost_in_usd_ticks``.
    """
    ticks = reported.get("cost_in_usd_ticks")
    named = ticks / TICKS_PER_DOLLAR if _is_number(ticks) else reported.get("cost")
    return float(named) if _is_number(named) and named >= 0 else None


def _is_number(value: Any) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # A whole number in JSON may be too large for a float. NaN fails this comparison, too.
    return -sys.float_info.max <= value <= sys.float_info.max


def _count(value: Any) -> int | None:
    """Return a reported number of tokens as an int. A missing number (None) becomes 0.

    Returns None if the number isn't plausible.
    """
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # NaN fails this comparison.
    if 0 <= value <= MAX_TOKENS:
        return int(value)
    return None
