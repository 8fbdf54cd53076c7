"""Puts a provider's stream together: pieces of text, reasoning and tool calls in, the host's events out.

Chunks have the shape of OpenAI's ``chat.completion.chunk``, which litellm makes of every provider's stream. Providers
differ in how they number, name and cut tool calls; every call leaves here with an id of its own and whole arguments.
"""

import json
from collections.abc import Iterable
from dataclasses import field
from typing import Any

from tui_agent.lazy import dataclass
from tui_agent.model.hosted import lines
from tui_agent.model.hosted.lines import Event
from tui_agent.model.written_calls import WrittenCalls

_REASONS = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
}


@dataclass(slots=True)
class Assembly:
    """One answer being put together, with its ``calls``."""

    calls: WrittenCalls
    finish: str | None = None
    has_content: bool = False
    _blocks: list[dict[str, Any]] = field(default_factory=list)
    _block_open: bool = False
    _reasoning: list[str] = field(default_factory=list)
    _details: list[dict[str, Any]] = field(default_factory=list)
    _signatures: list[str] = field(default_factory=list)

    def take(self, chunk: Any) -> list[Event]:
        choices = getattr(chunk, "choices", None)
        if not choices:
            return []
        choice = choices[0]
        self.finish = _get(choice, "finish_reason") or self.finish
        delta = _get(choice, "delta")
        if delta is None:
            return []
        events = self._take_reasoning(delta)
        text = _get(delta, "content")
        if isinstance(text, str) and text:
            events.append([lines.TEXT, text])
        for call in _get(delta, "tool_calls") or ():
            events.append(self._take_call(call))
        self.has_content = self.has_content or bool(events)
        return events

    @property
    def is_usable(self) -> bool:
        """Whether what came can stand for a whole answer: something was said, and every call is complete."""
        return self.has_content and self.calls.are_whole

    def end(self) -> list[Event]:
        """Return the events that end the answer: whole calls, why it ended, what to send back of the reasoning."""
        events: list[Event] = [[lines.CALL, call.call_id, call.tool, call.arguments] for call in self.calls.calls]
        reason = _REASONS.get(self.finish or "stop", "stop")
        if self.calls.calls and reason == "stop":
            reason = "tool_calls"
        events.append([lines.FINISHED, reason, self._blob()])
        return events

    def _take_reasoning(self, delta: Any) -> list[Event]:
        specific = _get(delta, "provider_specific_fields")
        specific = specific if isinstance(specific, dict) else {}
        for block in _get(delta, "thinking_blocks") or ():
            self._take_block(block)
        for detail in _get(delta, "reasoning_details") or specific.get("reasoning_details") or ():
            _extend_details(self._details, detail)
        self._signatures.extend(sign for sign in specific.get("thought_signatures") or () if isinstance(sign, str))
        thought = _get(delta, "reasoning_content") or _get(delta, "reasoning")
        if not isinstance(thought, str) or not thought:
            return []
        self._reasoning.append(thought)
        return [[lines.THINKING, thought]]

    def _take_block(self, block: Any) -> None:
        """Add a piece of a thinking block. A signature ends its block; it covers the text byte for byte."""
        if not isinstance(block, dict):
            return
        if block.get("type") == "redacted_thinking":
            self._blocks.append(dict(block))
            self._block_open = False
            return
        if not self._block_open:
            self._blocks.append({"type": "thinking", "thinking": ""})
            self._block_open = True
        self._blocks[-1]["thinking"] += block.get("thinking") or ""
        if signature := block.get("signature"):
            self._blocks[-1]["signature"] = signature
            self._block_open = False

    def _take_call(self, piece: Any) -> Event:
        function = _get(piece, "function")
        given, tool = _get(piece, "id") or "", _get(function, "name") or ""
        position, call, arguments = self.calls.take(_get(piece, "index"), given, tool, _get(function, "arguments"))
        return [lines.CALL_DELTA, position, call.call_id, call.tool, arguments]

    def _blob(self) -> str | None:
        blob: dict[str, Any] = {}
        if self._blocks:
            blob["thinking_blocks"] = self._blocks
        elif self._details:
            blob["reasoning_details"] = self._details
        elif self._reasoning:
            blob["reasoning_content"] = "".join(self._reasoning)
        if self._signatures:
            blob["provider_specific_fields"] = {"thought_signatures": self._signatures}
        return json.dumps(blob, ensure_ascii=False) if blob else None


def call_ids(messages: Iterable[dict[str, Any]]) -> set[str]:
    """Return the ids of all tool calls in a request."""
    return {call["id"] for message in messages for call in message.get("tool_calls") or () if call.get("id")}


def _extend_details(details: list[dict[str, Any]], piece: Any) -> None:
    """Join pieces of one of OpenRouter's reasoning details; a detail is told by its type and index."""
    if not isinstance(piece, dict):
        return
    last = details[-1] if details else None
    if last and (last.get("type"), last.get("index")) == (piece.get("type"), piece.get("index")):
        for key, value in piece.items():
            joined = key in {"text", "summary", "data"} and isinstance(value, str) and isinstance(last.get(key), str)
            last[key] = last[key] + value if joined else (value if value is not None else last.get(key))
    else:
        details.append(dict(piece))


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)
