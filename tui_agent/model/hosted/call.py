"""Turns a request into what litellm is called with: messages in the OpenAI format, images inline, cache marks."""

import json
from collections.abc import Iterable
from typing import Any

from tui_agent.context.request import Effort, Message, ModelRequest, wire_tool
from tui_agent.model.route import Route
from tui_agent.model.wires.wire import chat_part, one_system_message

_MARK = {"type": "ephemeral"}
_MARKS_ON_CALLS = {"anthropic", "vertex_ai", "azure_ai"}
"""Providers where a mark on a tool call reaches the model; elsewhere it has to be on text."""


def build_call(request: ModelRequest, route: Route, *, with_reasoning: bool = True) -> dict[str, Any]:
    """Return the arguments of ``litellm.acompletion`` for a request. The key is among them."""
    call = route.call()
    call["messages"] = build_messages(request, route, with_reasoning=with_reasoning)
    if request.tools:
        call["tools"] = [wire_tool(tool) for tool in request.tools]
        if request.tool_choice != "auto":
            call["tool_choice"] = request.tool_choice
    if request.max_output_tokens is not None:
        call["max_tokens"] = request.max_output_tokens
    if request.effort is not None:
        call.setdefault("reasoning_effort", "none" if request.effort is Effort.OFF else str(request.effort))
    return call


def build_messages(request: ModelRequest, route: Route, *, with_reasoning: bool = True) -> list[dict[str, Any]]:
    marked = route.info.cache_marks
    messages = request.messages if marked else one_system_message(request.messages)
    return [_wire(message, request, route, marked=marked, with_reasoning=with_reasoning) for message in messages]


def _wire(
    message: Message, request: ModelRequest, route: Route, *, marked: bool, with_reasoning: bool
) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role}
    parts = [chat_part(part, request) for part in message.content]
    mark = marked and message.cache
    mark_on_call = mark and bool(message.tool_calls) and route.provider.id in _MARKS_ON_CALLS
    if message.role == "tool":
        wire["tool_call_id"] = message.call_id
    # Marks move on with every request. Where they may stand on text it is always sent in parts, so that what a mark has
    # left is, to the byte, what it was.
    if not (marked and parts) and all(part["type"] == "text" for part in parts):
        # A call's message without text has no content at all; Bedrock refuses an empty one.
        wire["content"] = "".join(part["text"] for part in parts) or (None if message.tool_calls else "")
    else:
        wire["content"] = parts
    if mark and message.role == "tool":
        # A tool's result is one block, whatever is in it.
        wire["cache_control"] = _MARK
    elif mark and not mark_on_call and parts:
        parts[-1]["cache_control"] = _MARK
    if message.tool_calls:
        wire["tool_calls"] = _calls(message, mark=mark_on_call)
    if with_reasoning and message.reasoning:
        wire |= _reasoning(message.reasoning, route)
    return wire


def _calls(message: Message, *, mark: bool) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = [
        {"id": call.call_id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}
        for call in message.tool_calls
    ]
    if mark:
        calls[-1]["cache_control"] = _MARK
    return calls


def _reasoning(blobs: Iterable[str], route: Route) -> dict[str, Any]:
    """Return the fields that carry reasoning back, in the form it came."""
    fields: dict[str, Any] = {}
    for blob in blobs:
        try:
            data = json.loads(blob)
        except ValueError:
            continue
        if not isinstance(data, dict):
            continue
        for name in ("thinking_blocks", "reasoning_details"):
            if isinstance(data.get(name), list):
                fields.setdefault(name, []).extend(data[name])
        if isinstance(data.get("provider_specific_fields"), dict):
            fields["provider_specific_fields"] = data["provider_specific_fields"]
        if route.provider.chat.reasoning_back == "reasoning_content" and isinstance(data.get("reasoning_content"), str):
            fields["reasoning_content"] = fields.get("reasoning_content", "") + data["reasoning_content"]
    return fields
