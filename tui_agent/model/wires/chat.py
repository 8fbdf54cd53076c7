"""The chat completions format of OpenAI, in the variants of other providers.

``route.chat`` describes the variant for requests. Answers in all known variants are read, whatever
the provider: calls with any numbering, reasoning in five places, usage in any chunk.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from tui_agent.context.request import (
    ContentText,
    ImageRef,
    Message,
    ModelRequest,
    wire_calls,
    wire_tool,
)
from tui_agent.json_text import as_dict, as_list, as_text, first_object, objects
from tui_agent.model.errors import Failure
from tui_agent.model.protocol import (
    Finished,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallReady,
)
from tui_agent.model.providers import ChatFormat
from tui_agent.model.route import Route
from tui_agent.model.streamed_calls import StreamedCalls, is_object
from tui_agent.model.wires.thinking_tags import CLOSE, OPEN, ThinkingTags
from tui_agent.model.wires.wire import (
    PROGRESS,
    Call,
    Reader,
    WireFailure,
    blobs,
    cache_mark,
    image_url,
    named_cost,
    one_system_message,
    parse,
    progress_of,
    stand_in,
)
from tui_agent.pictures import PDF
from tui_agent.session.effort import Effort

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "MAX_TOKENS": "length",
    "model_length": "length",  # Mistral
    "content_filter": "content_filter",
    "sensitive": "content_filter",  # Z.ai
    "model_context_window_exceeded": "length",  # Z.ai, Claude behind gateways
}
"""What the values of ``finish_reason`` mean. Several providers have values of their own."""

_FAILED = {"error", "network_error", "insufficient_system_resource", "abort"}
"""Values of ``finish_reason`` with which providers report that they failed: OpenRouter and Mistral,
Z.ai, DeepSeek, vLLM."""

_REASONING = ("reasoning_content", "reasoning", "reasoning_text")
"""Fields with reasoning as text. The first that has text is used; some servers send two copies."""

_OPTIONAL = (
    "stream_options",
    "reasoning_effort",
    "reasoning",
    "thinking",
    "enable_thinking",
    "thinking_budget",
    "chat_template_kwargs",
    "prompt_cache_key",
    "session_id",
    "tool_choice",
    "usage",
    "max_tokens",
    "max_completion_tokens",
    PROGRESS,
)

_KEPT_FIELDS = (*_REASONING, "reasoning_details", "thinking_blocks")

_JOINED = {"text", "summary", "data", "thinking"}


# -- the request --------------------------------------------------------------------------------------------


def call(request: ModelRequest, route: Route, *, with_reasoning: bool = True) -> Call:
    chat = route.chat
    body: dict[str, Any] = {"model": route.name, "stream": True}
    if chat.asks_for_usage:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [wire_tool(tool) for tool in request.tools]
        if request.tool_choice != "auto":
            body["tool_choice"] = request.tool_choice
    if request.answer_tokens is not None:
        body[chat.max_tokens] = request.answer_tokens
    if with_reasoning:
        body |= _effort(request.effort, route)
    if chat.cache_key and request.session:
        body[chat.cache_key] = request.session
    if route.chat.prompt_progress:
        body[PROGRESS] = True
    headers = {}
    if chat.cache_key_header and request.session:
        headers = {chat.cache_key_header: request.session}
    body |= {**chat.fields, **route.options}
    messages = request.messages
    if not route.info.cache_marks:
        messages = one_system_message(messages)
    body["messages"] = []
    for message in messages:
        reasons = with_reasoning and message.role == "assistant"
        body["messages"].append(chat_message(message, request, route, with_reasoning=reasons))
    return Call("/chat/completions", body, headers, optional=_OPTIONAL)


def _effort(effort: Effort | None, route: Route) -> dict[str, Any]:  # noqa: PLR0911 - one arm per form
    chat = route.chat
    if effort is None:
        if chat.thinking and route.info.reasoning:
            return {"thinking": {"type": "enabled", **chat.thinking}}
        return {}
    level = chat.levels[effort]
    on = effort is not Effort.OFF
    match chat.effort:
        case "reasoning_effort":
            return {"reasoning_effort": level}
        case "reasoning" if on:
            return {"reasoning": {"effort": level}}
        case "reasoning":
            return {"reasoning": {"enabled": False}}
        case "thinking" if on:
            return {"thinking": {"type": "enabled", **chat.thinking}, "reasoning_effort": level}
        case "thinking":
            return {"thinking": {"type": "disabled"}}
        case "enable_thinking":
            return {"enable_thinking": on}
        case "chat_template" if on:
            return {"chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": level}
        case "chat_template":
            return {"chat_template_kwargs": {"enable_thinking": False}}
        case _:
            return {}


def chat_message(
    message: Message, request: ModelRequest, route: Route, *, with_reasoning: bool = False
) -> dict[str, Any]:
    """Return a message in the chat completions format.

    With ``with_reasoning``, the message's reasoning is added in the provider's field.
    """
    wire: dict[str, Any] = {"role": message.role}
    if message.call_id is not None:
        wire["tool_call_id"] = message.call_id
    parts = [_part(part, request) for part in message.content]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    # Cache marks move to other messages in the next request. If the model accepts marks, text is
    # always sent in parts, so that its other bytes stay the same without the mark.
    if parts and (route.info.cache_marks or len(texts) < len(parts)):
        wire["content"] = parts
        if message.cache and route.info.cache_marks:
            parts[-1]["cache_control"] = cache_mark(request)
    else:
        # With calls but no text, the content is null; some servers refuse an empty text.
        wire["content"] = "".join(texts) or (None if message.tool_calls else "")
    if message.tool_calls:
        wire["tool_calls"] = wire_calls(message)
    if with_reasoning:
        kept = blobs(message)
        _put_back(kept, wire, route.chat)
        # Extra fields received with a call, such as Google's signature, are sent back with it.
        extras: dict[str, Any] = {}
        for blob in kept:
            extras |= as_dict(blob.get("extra_content"))
        for call in wire.get("tool_calls", ()):
            if (extra := extras.get(call["id"])) is not None:
                call["extra_content"] = extra
    return wire


def _part(part: ContentText | ImageRef, request: ModelRequest) -> dict[str, Any]:
    if isinstance(part, ContentText):
        return {"type": "text", "text": part.text}
    url = image_url(part, request)
    if url is None or part.mime == PDF:
        return {"type": "text", "text": stand_in(part)}
    return {"type": "image_url", "image_url": {"url": url}}


def _put_back(kept: list[dict[str, Any]], wire: dict[str, Any], chat: ChatFormat) -> None:
    form = chat.reasoning_back
    plain = "".join([_plain(blob) for blob in kept])
    match form:
        case "reasoning_content" | "reasoning":
            if plain or (chat.reasoning_required and wire.get("tool_calls")):
                # DeepSeek and Kimi refuse calls without reasoning, even calls of other models.
                wire[form] = plain or " "
        case "details":
            details = []
            for blob in kept:
                details += as_list(blob.get("reasoning_details"))
            if details:
                wire["reasoning_details"] = details
            elif plain:
                wire["reasoning"] = plain
        case "as_received" | "with_tags":
            for blob in kept:
                wire |= {key: value for key, value in blob.items() if key in _KEPT_FIELDS}
                written = as_text(blob.get("thinking"))
                if form == "with_tags" and written and isinstance(wire["content"], str | None):
                    wire["content"] = written + (wire["content"] or "")


def _plain(blob: Mapping[str, Any]) -> str:
    for name in _REASONING:
        if text := as_text(blob.get(name)):
            return text
    text = as_text(blob.get("thinking")).strip().removeprefix(OPEN).removesuffix(CLOSE).strip()
    return text or _text_of(blob.get("reasoning_details"))


def _text_of(details: Any) -> str:
    """Return the texts in a list of reasoning details, joined; "" for anything else."""
    texts = []
    for detail in objects(details):
        texts.append(as_text(detail.get("text") or detail.get("summary")))
    return "".join(texts)


# -- the answer ---------------------------------------------------------------------------------------------


class ChatReader(Reader):
    """Reads answers in the chat completions format, in all known variants of it."""

    def __init__(self, request: ModelRequest, route: Route) -> None:
        super().__init__(request, route)
        self._finish = ""
        self._refused = False
        self._has_content = False
        self._streamed = StreamedCalls(self.ids)
        self._reasoning: dict[str, list[str]] = {}
        self._details = _Blocks()
        self._blocks = _Blocks()
        self._extras: dict[str, Any] = {}
        self._signatures: list[str] = []
        self._tags = ThinkingTags()
        self._cost: float | None = None

    def feed(self, event: str, data: str) -> list[ModelEvent]:
        if data.strip() == "[DONE]":
            self.done = True
            return []
        chunk = parse(data, event)
        self._take_usage(chunk)
        choice = _choice(chunk)
        if choice.get("error"):
            raise WireFailure(Failure(json.dumps({"error": choice["error"]}, ensure_ascii=False)))
        events = progress_of(chunk) + self._take(_said(choice))
        if finish := choice.get("finish_reason"):
            if str(finish) in _FAILED:
                raise WireFailure(Failure(f"the answer ended with “{finish}”", status=502))
            self._finish = str(finish)
            self.finished = True
            self.done = self.done or "message" in choice
        return events

    def end(self) -> list[ModelEvent]:
        calls = self._streamed.calls
        is_whole = self._has_content and all(is_object(call.arguments) for call in calls)
        marked = self.finished or self.done
        if not self.finished and not (is_whole and (marked or self.route.is_small_server)):
            raise WireFailure(Failure(cause="ended"))
        if self._finish == "model_context_window_exceeded" and not self._has_content:
            raise WireFailure(Failure(self._finish, status=400))
        events = self._tags.end()
        events += [ToolCallReady(call.call_id, call.tool, call.arguments) for call in calls]
        events += self.report(self.usage, self._cost)
        reason = _REASONS.get(self._finish, "stop")
        if self._refused:
            reason = "content_filter"
        elif calls and reason == "stop":
            reason = "tool_calls"
        reason = self.reason(reason, marked=marked)
        events.append(Finished(reason, self._blob(), marked=marked))
        return events

    def _take(self, delta: dict[str, Any]) -> list[ModelEvent]:
        events = self._take_reasoning(delta)
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                events += self._tags.take(content, reasoned=bool(self._reasoning))
        elif content:
            for part in as_list(content):
                events += self._take_part(part)
        if refusal := as_text(delta.get("refusal")):
            self._refused = True
            events.append(TextDelta(refusal))
        for piece in objects(delta.get("tool_calls")):
            events.append(self._take_call(piece))
        if former := as_dict(delta.get("function_call")):
            events.append(self._take_call({"index": 0, "function": former}))
        if events:
            self._has_content = True
        return events

    def _take_part(self, part: Any) -> list[ModelEvent]:
        """Read one part of a Mistral content list. Only parts with text or thinking are used."""
        match part:
            case {"type": "text", "text": str(text)} if text:
                return [TextDelta(text)]
            case {"type": "thinking", "thinking": list(pieces)}:
                return self._reason("thinking_parts", _text_of(pieces))
            case {"type": "thinking", "thinking": str(text)}:
                return self._reason("thinking_parts", text)
            case _:
                return []

    def _take_reasoning(self, delta: dict[str, Any]) -> list[ModelEvent]:
        details = as_list(delta.get("reasoning_details"))
        for detail in details:
            self._details.add(detail)
        for block in as_list(delta.get("thinking_blocks")):
            self._blocks.add(block)
        signatures = as_list(delta.get("thought_signatures"))
        self._signatures += [sign for sign in signatures if isinstance(sign, str)]
        for name in _REASONING:
            if text := as_text(delta.get(name)):
                return self._reason(name, text)
        return self._reason("", _text_of(details))

    def _reason(self, name: str, text: str) -> list[ModelEvent]:
        if not text:
            return []
        if name:
            self._reasoning.setdefault(name, []).append(text)
        return [ReasoningDelta(text)]

    def _take_call(self, piece: dict[str, Any]) -> ModelEvent:
        function = as_dict(piece.get("function"))
        given = as_text(piece.get("id"))
        tool = as_text(function.get("name"))
        position, call, arguments = self._streamed.take(
            piece.get("index"), given, tool, function.get("arguments")
        )
        if extra := piece.get("extra_content"):
            self._extras[call.call_id] = extra
        return ToolCallDelta(position, call.call_id, call.tool, arguments)

    def _take_usage(self, chunk: dict[str, Any]) -> None:
        own = as_dict(chunk.get("x_groq"))
        reported = as_dict(chunk.get("usage") or own.get("usage") or _choice(chunk).get("usage"))
        if not reported:
            return
        apart = self.route.chat.reasoning_apart
        self.count(_numbers(reported, apart=bool(apart and re.search(apart, self.route.name))))
        cost = named_cost(reported)
        if cost is not None:
            self._cost = cost

    def _blob(self) -> str | None:
        blob: dict[str, Any] = {}
        if details := self._details.whole():
            blob["reasoning_details"] = details
        elif blocks := self._blocks.whole():
            blob["thinking_blocks"] = blocks
        elif self._reasoning:
            name, pieces = next(iter(self._reasoning.items()))
            blob["reasoning_content" if name == "thinking_parts" else name] = "".join(pieces)
        elif self._tags.parts:
            blob["thinking"] = "".join(self._tags.parts)
        if self._extras:
            blob["extra_content"] = self._extras
        if self._signatures:
            blob["provider_specific_fields"] = {"thought_signatures": self._signatures}
        if blob:
            return json.dumps(blob, ensure_ascii=False)
        return None


def _choice(chunk: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first choice of a chunk, {} if it has none."""
    return first_object(chunk.get("choices"))


def _said(choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return a choice's delta or its whole message; plain text becomes ``{"content": text}``."""
    return as_dict(choice.get("delta") or choice.get("message") or {"content": choice.get("text")})


def _numbers(reported: Mapping[str, Any], *, apart: bool) -> dict[str, Any]:
    """Return the numbers of a usage report under the names in `usage_of`; missing ones are None.

    ``apart`` says that the provider's ``completion_tokens`` don't include reasoning, so that it
    must be added. Reasoning is also added if the report's other numbers show this.
    """
    read = as_dict(reported.get("prompt_tokens_details"))
    written = as_dict(reported.get("completion_tokens_details"))
    prompt = reported.get("prompt_tokens")
    completion = reported.get("completion_tokens")
    reasoning = written.get("reasoning_tokens") or reported.get("reasoning_tokens")
    if isinstance(reasoning, int) and isinstance(completion, int) and reasoning > 0:
        total = reported.get("total_tokens")
        beside = isinstance(prompt, int) and total == prompt + completion + reasoning
        if apart or beside or reasoning > completion:
            completion += reasoning
    return {
        "prompt": prompt,
        "completion": completion,
        "cache_read": (
            read.get("cached_tokens")
            or reported.get("cache_read_input_tokens")
            or reported.get("prompt_cache_hit_tokens")  # DeepSeek
            or reported.get("cached_tokens")  # Moonshot
        ),
        "cache_write": (
            read.get("cache_write_tokens")  # OpenRouter
            or read.get("cache_creation_tokens")
            or reported.get("cache_creation_input_tokens")  # Vercel, LiteLLM's proxy
        ),
        "reasoning": reasoning,
    }


class _Blocks:
    """Assembles blocks of reasoning from streamed pieces.

    A piece whose type, index or id differs from the last block's begins a new block. So do a
    redacted block and text after a signature.
    """

    def __init__(self) -> None:
        self._blocks: list[dict[str, Any]] = []
        self._pieces: dict[str, list[str]] = {}
        """Text pieces of the last block. The keys are the names of its fields. The pieces are joined
        only at the block's end, because joining them each time would take quadratic time."""

    def add(self, piece: Any) -> None:
        if not isinstance(piece, dict):
            return
        if not self._blocks or not _continues(self._blocks[-1], piece):
            self._join()
            self._blocks.append({})
        last = self._blocks[-1]
        for key, value in piece.items():
            grows = key in self._pieces or key not in last
            if key in _JOINED and isinstance(value, str) and grows:
                self._pieces.setdefault(key, []).append(value)
                last.setdefault(key, value)
            elif key not in last or (value is not None and value != ""):
                self._pieces.pop(key, None)
                last[key] = value

    def whole(self) -> list[dict[str, Any]]:
        self._join()
        return self._blocks

    def _join(self) -> None:
        for key, pieces in self._pieces.items():
            self._blocks[-1][key] = "".join(pieces)
        self._pieces = {}


def _continues(last: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    if piece.get("type") == "redacted_thinking":
        return False  # arrives as a whole
    if (last.get("type"), last.get("index")) != (piece.get("type"), piece.get("index")):
        return False
    if last.get("signature") and (piece.get("text") or piece.get("thinking")):
        return False  # a signature ends its block
    return not (last.get("id") and piece.get("id") and last["id"] != piece["id"])


reader = ChatReader
