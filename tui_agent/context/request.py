"""The request of one model call: messages, tools and options, independent of the provider.

`request_bytes` and `canonical_message` give a request in one form for all providers, close to the
OpenAI chat format. This form is shown, compared and measured, but never sent: `model.wires` builds
what is sent to a provider.
"""

import json
from collections.abc import Iterable
from dataclasses import field
from typing import Any, Literal

from tui_agent.lazy import frozen
from tui_agent.session.effort import Effort
from tui_agent.session.entries import ToolSchema

CacheTtl = Literal["5m", "1h"]
"""How long the provider is asked to keep a request in its cache: five minutes or an hour."""


@frozen
class ContentText:
    """A piece of text inside a message."""

    text: str


@frozen
class ImageRef:
    """Refers by blob to an image or PDF in a message. The bytes are added when it is sent."""

    blob: str
    mime: str
    text: str = ""
    """The text that is sent if the server doesn't accept the image; "" for a general note."""


@frozen
class RequestToolCall:
    """An earlier tool call, sent back to the model. ``arguments`` is a JSON object as text."""

    call_id: str
    tool: str
    arguments: str


@frozen
class Message:
    """One message of a request.

    ``origin`` contains the ids of the entries that the message was made from (none for placeholders
    of the program); it is not sent. ``reasoning`` contains the provider's blobs (JSON text), sent
    back byte for byte. ``cache`` asks the provider, if it supports that, to cache everything up to
    and including this message. ``failed`` marks the result of a failed call, for formats that can
    express it.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: tuple[ContentText | ImageRef, ...] = ()
    tool_calls: tuple[RequestToolCall, ...] = ()
    call_id: str | None = None
    reasoning: tuple[str, ...] = ()
    cache: bool = False
    failed: bool = False
    origin: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.content if isinstance(part, ContentText))


@frozen
class ModelRequest:
    """One call to a model.

    If ``max_output_tokens`` is None, the provider limits the answer; if ``effort`` is None, it
    chooses the level of thinking. ``session`` is the session's id, by which a provider finds the
    conversation's cache. ``cache_ttl`` is the lifetime requested for the cache. ``compact`` asks
    for the provider's own compaction of the messages instead of an answer. ``ping`` sends the
    request only to keep it in the provider's cache, with the shortest answer that the provider
    allows.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    max_output_tokens: int | None = None
    tool_choice: Literal["auto", "none"] = "auto"
    effort: Effort | None = None
    session: str | None = None
    cache_ttl: CacheTtl = "5m"
    compact: bool = False
    ping: bool = False
    search_hosts: tuple[str, ...] | None = None
    """Hosts that the provider's own web search may use; () for all hosts, None for no search."""
    blobs: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)
    """Bytes of the images named by ``ImageRef``, by blob; ignored when comparing requests."""

    @property
    def answer_tokens(self) -> int | None:
        """Maximum tokens of the answer (1 for a ping); None leaves the limit to the provider."""
        if self.ping:
            return 1
        return self.max_output_tokens


def calls_in(messages: Iterable[Message]) -> dict[str, RequestToolCall]:
    """Return the tool calls in messages by call id, in the order of the messages."""
    return {call.call_id: call for message in messages for call in message.tool_calls}


def wire_tool(tool: ToolSchema) -> dict[str, Any]:
    """Return a tool in the OpenAI function format."""
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    }


def wire_calls(message: Message) -> list[dict[str, Any]]:
    """Return an assistant message's tool calls in the OpenAI chat format."""
    return [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.tool, "arguments": call.arguments},
        }
        for call in message.tool_calls
    ]


def _canonical_part(part: ContentText | ImageRef) -> dict[str, Any]:
    if isinstance(part, ContentText):
        return {"type": "text", "text": part.text}
    return {"type": "image", "blob": part.blob, "mime": part.mime}


def canonical_message(message: Message) -> dict[str, Any]:
    """Return a message in one form for all providers: OpenAI chat, with image blobs and reasoning.

    This form is shown, compared and measured, but never sent.
    """
    made: dict[str, Any] = {"role": message.role}
    if any(isinstance(part, ImageRef) for part in message.content):
        made["content"] = list(map(_canonical_part, message.content))
    else:
        made["content"] = message.text
    if message.tool_calls:
        made["tool_calls"] = wire_calls(message)
    if message.call_id is not None:
        made["tool_call_id"] = message.call_id
    if message.reasoning:
        made["reasoning"] = list(message.reasoning)
    return made


def request_bytes(request: ModelRequest) -> bytes:
    """Return the canonical bytes of a request: tools, then messages, one JSON document per line.

    Cache marks and the model's name are left out, because they can change without changing the text
    that the model reads.
    """
    lines = [
        json.dumps(wire_tool(tool), ensure_ascii=False, sort_keys=True) for tool in request.tools
    ]
    lines += [
        json.dumps(canonical_message(message), ensure_ascii=False) for message in request.messages
    ]
    return "\n".join(lines).encode("utf-8", "surrogatepass") + b"\n"
