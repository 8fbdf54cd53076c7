"""Lets the model host answer two requests to itself, so that the first real one finds everything loaded.

Providers' adapters import more when they are first used; a fifth of a second would fall on the first prompt.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

_CHUNK: dict[str, Any] = {"id": "0", "object": "chat.completion.chunk", "created": 0, "model": "rehearsal"}
_OPENAI: list[tuple[str, dict[str, Any]]] = [
    ("", {**_CHUNK, "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}]}),
    ("", {**_CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
    ("", {**_CHUNK, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}),
]
_MESSAGE: dict[str, Any] = {
    "id": "0",
    "type": "message",
    "role": "assistant",
    "model": "rehearsal",
    "content": [],
    "stop_reason": None,
}
_ANTHROPIC: list[tuple[str, dict[str, Any]]] = [
    ("message_start", {"message": {**_MESSAGE, "usage": {"input_tokens": 1, "output_tokens": 1}}}),
    ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
    ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "x"}}),
    ("content_block_stop", {"index": 0}),
    ("message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
    ("message_stop", {}),
]
_TOOL = {"type": "function", "function": {"name": "x", "description": "", "parameters": {"type": "object"}}}
_SECONDS = 10.0


def _stream(path: str) -> bytes:
    if "messages" in path:
        events = [f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in _ANTHROPIC]
    else:
        events = [*(f"data: {json.dumps(data)}\n\n" for _name, data in _OPENAI), "data: [DONE]\n\n"]
    body = "".join(events)
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
    return f"{head}\r\n{body}".encode()


async def _reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    writer.write(_stream(head.split(b" ", 2)[1].decode()))
    await writer.drain()
    writer.close()


async def rehearse(answer: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
    """Have ``answer`` make a request of each common kind to a server of this process's own, on the loopback."""
    server = await asyncio.start_server(_reply, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for model, base_url in (("openai/rehearsal", f"{url}/v1"), ("anthropic/claude-rehearsal", url)):
            call = {
                "model": model,
                "base_url": base_url,
                "api_key": "none",
                "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "x"}],
                "tools": [_TOOL],
                "max_tokens": 16,
            }
            async with asyncio.timeout(_SECONDS):
                await answer(call)
