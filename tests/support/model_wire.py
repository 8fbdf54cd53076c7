"""How a scripted turn looks on the wire: OpenAI chat completions and Responses, Anthropic messages, Ollama, Gemini."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.model_script import AUTO, STANDARD_USAGE, Recorded, Turn, cut
from tests.support.responses_wire import responses_events

Event = tuple[str | None, dict[str, Any]]
"""A server-sent event: its name (Anthropic names them) and its data."""

NDJSON = "ndjson"
"""Marks an event that is a plain line of JSON, as Ollama sends them."""

_ANTHROPIC_STOP = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}


def finish_of(turn: Turn) -> str:
    return turn.finish or ("tool_calls" if turn.tool_calls else "stop")


def _usage_of(turn: Turn) -> Mapping[str, Any]:
    return STANDARD_USAGE if turn.usage == AUTO or turn.usage is None else turn.usage


def _id(prefix: str, index: int, given: str | None, turn_number: int) -> str:
    return f"{prefix}_{turn_number}_{index}" if given is None else given


def encode_event(event: Event) -> bytes:
    name, data = event
    # Half a character has no bytes; as JSON it is an escape.
    text = json.dumps(data, ensure_ascii=False).encode(errors="backslashreplace")
    if name == NDJSON:
        return text + b"\n"
    head = f"event: {name}\n" if name else ""
    return head.encode() + b"data: " + text + b"\n\n"


# -- OpenAI ---------------------------------------------------------------------------------------------------


def openai_usage(turn: Turn) -> dict[str, Any]:
    usage = _usage_of(turn)
    prompt = usage.get("input", 0)
    numbers = all(isinstance(usage.get(key, 0), int) for key in ("input", "cache_read", "output"))
    if numbers:
        prompt += usage.get("cache_read", 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.get("output", 0),
        "total_tokens": prompt + usage.get("output", 0) if numbers else 0,
        "prompt_tokens_details": {"cached_tokens": usage.get("cache_read", 0)},
        "completion_tokens_details": {"reasoning_tokens": usage.get("reasoning", 0)},
    }


def openai_events(turn: Turn, request: Recorded, number: int) -> Iterator[Event]:
    model = request.json.get("model", "scripted")
    base = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": model,
    }

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
        return None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in cut(turn.reasoning, 3) if turn.reasoning else ():
        yield chunk({"reasoning_content": piece})
    for piece in turn.pieces():
        yield chunk({"content": piece})
    for index, call in enumerate(turn.tool_calls):
        first, *rest = cut(call.text, call.pieces)
        call_id = _id("call", index, call.call_id, number)
        head = {
            "index": index,
            "type": "function",
            "function": {"name": call.tool, "arguments": first},
        }
        yield chunk({"tool_calls": [head | ({"id": call_id} if call_id else {})]})
        for piece in rest:
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, finish_of(turn))
    if turn.usage is not None and request.json.get("stream_options", {}).get("include_usage"):
        yield None, {**base, "choices": [], "usage": openai_usage(turn)}


# -- Anthropic ------------------------------------------------------------------------------------------------


def anthropic_usage(turn: Turn) -> dict[str, Any]:
    usage = _usage_of(turn)
    return {
        "input_tokens": usage.get("input", 0),
        "cache_creation_input_tokens": usage.get("cache_write", 0),
        "cache_read_input_tokens": usage.get("cache_read", 0),
        "output_tokens": usage.get("output", 0),
    }


def anthropic_blocks(turn: Turn, number: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if turn.reasoning:
        blocks.append({"type": "thinking", "thinking": turn.reasoning, "signature": turn.signature})
    if turn.redacted:
        blocks.append({"type": "redacted_thinking", "data": turn.redacted})
    if turn.text:
        blocks.append({"type": "text", "text": turn.text})
    for index, call in enumerate(turn.tool_calls):
        call_id = _id("toolu", index, call.call_id, number)
        blocks.append({"type": "tool_use", "id": call_id, "name": call.tool, "input": call})
    return blocks


def _block_deltas(block: dict[str, Any], turn: Turn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": piece} for piece in cut(block["thinking"], 3)
            ]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {"type": "thinking", "thinking": "", "signature": ""}, deltas
        case "text":
            return {"type": "text", "text": ""}, [
                {"type": "text_delta", "text": piece} for piece in turn.pieces()
            ]
        case "tool_use":
            call = block["input"]
            pieces = [] if call.text == "{}" else cut(call.text, call.pieces)
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces]
            ]
        case _:
            return block, []


def anthropic_events(turn: Turn, request: Recorded, number: int) -> Iterator[Event]:
    usage = anthropic_usage(turn)
    message = {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": request.json.get("model", "scripted"),
        "content": [], "stop_reason": None, "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1} if turn.usage is not None else {},
    }  # fmt: skip
    yield "message_start", {"type": "message_start", "message": message}
    yield "ping", {"type": "ping"}
    for index, block in enumerate(anthropic_blocks(turn, number)):
        start, deltas = _block_deltas(block, turn)
        yield (
            "content_block_start",
            {"type": "content_block_start", "index": index, "content_block": start},
        )
        for delta in deltas:
            yield (
                "content_block_delta",
                {"type": "content_block_delta", "index": index, "delta": delta},
            )
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": _ANTHROPIC_STOP[finish_of(turn)], "stop_sequence": None}
    told = {"output_tokens": usage["output_tokens"]} if turn.usage is not None else {}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": told}
    yield "message_stop", {"type": "message_stop"}


# -- Ollama ---------------------------------------------------------------------------------------------------


def ollama_events(turn: Turn, request: Recorded, number: int) -> Iterator[Event]:
    base = {"model": request.json.get("model"), "created_at": "2025-01-01T00:00:00Z"}

    def line(**message: Any) -> Event:
        return NDJSON, {
            **base,
            "message": {"role": "assistant", "content": "", **message},
            "done": False,
        }

    for piece in cut(turn.reasoning, 3) if turn.reasoning else ():
        yield line(thinking=piece)
    for piece in turn.pieces():
        yield line(content=piece)
    if turn.tool_calls:
        calls = [
            {"function": {"name": call.tool, "arguments": json.loads(call.text)}}
            for call in turn.tool_calls
        ]
        yield line(tool_calls=calls)
    usage = _usage_of(turn)
    counts = {"prompt_eval_count": usage.get("input", 0), "eval_count": usage.get("output", 0)}
    done = {
        **base,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": turn.finish or "stop",
    }
    yield NDJSON, {**done, **(counts if turn.usage is not None else {})}


# -- Gemini ---------------------------------------------------------------------------------------------------

_GEMINI_FINISH = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}


def gemini_parts(turn: Turn) -> Iterator[dict[str, Any]]:
    for piece in cut(turn.reasoning, 3) if turn.reasoning else ():
        yield {"text": piece, "thought": True}
    for piece in turn.pieces():
        yield {"text": piece}
    for index, call in enumerate(turn.tool_calls):
        part: dict[str, Any] = {"functionCall": {"name": call.tool, "args": json.loads(call.text)}}
        # Of parallel calls the first carries the signature.
        yield part | ({"thoughtSignature": turn.signature} if index == 0 else {})


def gemini_events(turn: Turn, _request: Recorded, number: int) -> Iterator[Event]:
    usage = _usage_of(turn)
    numbers = all(isinstance(value, int) for value in usage.values())
    counts = {
        "promptTokenCount": usage.get("input", 0) + usage.get("cache_read", 0)
        if numbers
        else usage.get("input"),
        "candidatesTokenCount": usage.get("output", 0) - usage.get("reasoning", 0)
        if numbers
        else usage.get("output"),
    }
    for name, key in (
        ("cachedContentTokenCount", "cache_read"),
        ("thoughtsTokenCount", "reasoning"),
    ):
        if usage.get(key):
            counts[name] = usage[key]
    parts = list(gemini_parts(turn)) or [{"text": ""}]
    for part in parts:
        candidate: dict[str, Any] = {"content": {"parts": [part], "role": "model"}, "index": 0}
        if part is parts[-1]:
            # The reason comes with the last piece of content, whatever that is.
            candidate["finishReason"] = _GEMINI_FINISH.get(finish_of(turn), "STOP")
        event = {
            "candidates": [candidate],
            "modelVersion": "scripted",
            "responseId": f"gemini-{number}",
        }
        yield None, event | ({"usageMetadata": counts} if turn.usage is not None else {})


_GEMINI_ERRORS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE",
}  # fmt: skip

_ANTHROPIC_ERRORS = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error",
    529: "overloaded_error",
}  # fmt: skip


def error_body(wire: str, status: int, message: str, code: str | None) -> dict[str, Any]:
    text = message or f"scripted status {status}"
    if wire == "ollama":
        return {"error": text}
    if wire == "gemini":
        return {
            "error": {
                "code": status,
                "message": text,
                "status": code or _GEMINI_ERRORS.get(status, "INTERNAL"),
            }
        }
    if wire == "anthropic":
        return {
            "type": "error",
            "error": {"type": code or _ANTHROPIC_ERRORS.get(status, "api_error"), "message": text},
        }
    return {
        "error": {"message": text, "type": "invalid_request_error", "param": None, "code": code}
    }


EVENTS = {
    "openai": openai_events, "anthropic": anthropic_events, "ollama": ollama_events, "gemini": gemini_events,
    "responses": responses_events,
}  # fmt: skip
PATHS = {
    "/chat/completions": "openai", "/responses": "responses", "/messages": "anthropic", "/api/chat": "ollama",
    ":streamGenerateContent": "gemini",
}  # fmt: skip
"""How a request's path ends, and the format it is in."""
