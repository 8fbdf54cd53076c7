"""What OpenAI's and Anthropic's chat interfaces refuse, written down from their documentation, not from our code.

It works on the wire form alone. Sources: OpenAI API reference "Create chat completion"; Anthropic API reference
"Messages", "Tool use", "Vision"; litellm's conversion of the first into the second.
"""

import json
import re
from typing import Any

from tui_agent.context.request import ModelRequest, canonical_message, request_bytes, wire_tool

TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
ANTHROPIC_CALL_ID = re.compile(r"^[a-zA-Z0-9_-]+$")


class InvalidRequestError(AssertionError):
    """The request would be refused; the message says where and why."""


def validate(
    request: ModelRequest,
    *,
    vision: bool = True,
    alternating: bool = False,
    foreign_ids: bool = False,
) -> None:
    """Raise ``InvalidRequestError`` unless the request is one that a strict server accepts."""
    payload = json.loads(json.dumps([canonical_message(message) for message in request.messages]))
    request_bytes(request).decode("utf-8")
    head = [message for message in payload if message["role"] == "system"]
    body = payload[len(head) :]
    _require(payload[: len(head)] == head, "a system message stands after another message")
    _require(len(head) <= 2, "too many system messages")
    for message in head:
        _text(message["content"], "system")
    if body:
        _require(body[0]["role"] == "user", f"conversation starts with {body[0]['role']}")
    _calls_are_answered(body)
    for at, message in enumerate(body):
        where = f"message {at} ({message['role']})"
        _require(message["role"] in ("user", "assistant", "tool"), f"{where}: unknown role")
        _content(message, where, vision=vision)
        if alternating and at:
            _alternates(body[at - 1]["role"], message["role"], where)
    _call_ids(body, strict=not foreign_ids)
    for tool in map(wire_tool, request.tools):
        _require(bool(TOOL_NAME.match(tool["function"]["name"])), "tool name")
    _cache_marks(request)


def _require(holds: bool, complaint: str) -> None:
    if not holds:
        raise InvalidRequestError(complaint)


def _text(value: Any, where: str) -> None:
    _require(isinstance(value, str) and bool(value.strip()), f"{where}: empty text")
    _require("\0" not in value, f"{where}: NUL")
    value.encode("utf-8")


def _content(message: dict[str, Any], where: str, *, vision: bool) -> None:
    role, content = message["role"], message["content"]
    if role == "assistant":
        _require(isinstance(content, str), f"{where}: parts in an answer")
        if content:
            _text(content, where)
        _require(bool(content) or bool(message.get("tool_calls")), f"{where}: empty answer")
        for call in message.get("tool_calls", []):
            _require(bool(TOOL_NAME.match(call["function"]["name"])), f"{where}: tool name")
            arguments = json.loads(call["function"]["arguments"], parse_constant=_no_constants)
            _require(isinstance(arguments, dict), f"{where}: arguments are no object")
            json.dumps(arguments, ensure_ascii=False).encode("utf-8")
        return
    _require("tool_calls" not in message, f"{where}: calls outside an answer")
    # A provider's compaction goes back where the summary is told.
    items = message.get("reasoning", [])
    _require(
        all("compacted" in json.loads(item) for item in items),
        f"{where}: reasoning outside an answer",
    )
    if isinstance(content, str):
        _text(content, where)
        return
    _require(bool(content), f"{where}: no parts")
    for part in content:
        if part["type"] == "text":
            _text(part["text"], where) if part["text"] != "\n\n" else None
        else:
            _require(vision, f"{where}: image for a model without vision")
            _require(role == "user", f"{where}: image in a tool result")
            _require(bool(part["blob"]), f"{where}: image without data")


def _calls_are_answered(body: list[dict[str, Any]]) -> None:
    waiting: list[str] = []
    for at, message in enumerate(body):
        if message["role"] == "tool":
            call_id = message.get("tool_call_id")
            _require(
                call_id in waiting,
                f"message {at}: result {call_id!r} answers no call of the answer before it",
            )
            waiting.remove(str(call_id))
            continue
        _require(not waiting, f"message {at}: calls {waiting} are not answered")
        _require("tool_call_id" not in message, f"message {at}: call id outside a result")
        waiting = [call["id"] for call in message.get("tool_calls", [])]
    _require(not waiting, f"calls {waiting} at the end are not answered")


def _call_ids(body: list[dict[str, Any]], *, strict: bool) -> None:
    ids = [call["id"] for message in body for call in message.get("tool_calls", [])]
    _require(len(ids) == len(set(ids)), "a call id occurs twice")
    for call_id in ids:
        _require(bool(call_id.strip()) and call_id.isascii(), f"call id {call_id!r}")
        if strict:
            _require(
                bool(ANTHROPIC_CALL_ID.match(call_id)) and len(call_id) <= 64,
                f"call id {call_id!r}",
            )


def _alternates(before: str, role: str, where: str) -> None:
    follows = {"user": ("assistant",), "assistant": ("user", "tool"), "tool": ("tool", "assistant")}
    _require(role in follows[before], f"{where}: {role} after {before}")


def _cache_marks(request: ModelRequest) -> None:
    _require(sum(message.cache for message in request.messages) <= 4, "more than four cache marks")


def _no_constants(name: str) -> None:
    raise InvalidRequestError(f"{name} in arguments")
