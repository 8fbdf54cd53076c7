"""Ollama's own chat format: builds requests and reads answers.

It is used instead of Ollama's chat completions, which don't accept a window size and silently cut
longer prompts.
"""

import json
from collections.abc import Mapping
from typing import Any

from tui_agent.context.request import (
    ImageRef,
    Message,
    ModelRequest,
    RequestToolCall,
    calls_in,
    wire_tool,
)
from tui_agent.json_text import as_dict, as_text, loads, objects
from tui_agent.model.errors import Failure
from tui_agent.model.protocol import (
    Finished,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
)
from tui_agent.model.route import Route
from tui_agent.model.wires.wire import (
    Call,
    Reader,
    WireFailure,
    blobs,
    image_base64,
    one_system_message,
    parse,
    stand_in,
)
from tui_agent.pictures import PDF
from tui_agent.session.effort import Effort

_LEVELED = "gpt-oss"
"""Text that is part of the names of models that accept a thinking level; other models can only turn
thinking on or off (docs.ollama.com/capabilities/thinking)."""

_TOP = {"format", "keep_alive", "logprobs", "think", "truncate", "shift"}
"""Options in the settings that are top-level fields of the body. All other options go to
``options``."""


def call(request: ModelRequest, route: Route, *, with_reasoning: bool = True) -> Call:
    options: dict[str, Any] = {"num_ctx": route.info.context_window}
    if request.answer_tokens is not None:
        options["num_predict"] = request.answer_tokens
    options |= {key: value for key, value in route.options.items() if key not in _TOP}
    body: dict[str, Any] = {"model": route.name, "stream": True}
    if request.tools and request.tool_choice != "none":
        body["tools"] = [wire_tool(tool) for tool in request.tools]
    if request.effort is not None and with_reasoning:
        on = request.effort is not Effort.OFF
        if on and _LEVELED in route.name:
            body["think"] = route.chat.levels[request.effort]
        else:
            body["think"] = on
    body |= {key: value for key, value in route.options.items() if key in _TOP}
    called = calls_in(request.messages)
    messages = []
    for message in one_system_message(request.messages):
        messages.append(_message(message, request, called, with_reasoning=with_reasoning))
    body |= {"options": options, "messages": messages}
    return Call("/api/chat", body, optional=("think",) if "think" in body else ())


def _message(
    message: Message,
    request: ModelRequest,
    called: Mapping[str, RequestToolCall],
    *,
    with_reasoning: bool,
) -> dict[str, Any]:
    images: list[str] = []
    lost = ""
    for part in message.content:
        if not isinstance(part, ImageRef):
            continue
        data = image_base64(part, request)
        if data is None or part.mime == PDF:
            lost += stand_in(part)
        else:
            images.append(data)
    wire: dict[str, Any] = {
        "role": message.role,
        "content": "\n".join(filter(None, (message.text, lost))),
    }
    if images:
        wire["images"] = images
    if message.call_id is not None:
        call = called.get(message.call_id)
        wire |= {"tool_name": call.tool if call else "", "tool_call_id": message.call_id}
    if message.tool_calls:
        wire["tool_calls"] = [_call(call) for call in message.tool_calls]
    thinking = ""
    if with_reasoning:
        for blob in blobs(message):
            # In older sessions, the reasoning has the name that litellm gave it.
            thinking += as_text(blob.get("reasoning") or blob.get("reasoning_content"))
    if thinking:
        wire["thinking"] = thinking
    return wire


def _call(call: RequestToolCall) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": loads(call.arguments)}
    return {"id": call.call_id, "function": function}


class OllamaReader(Reader):
    """Reads Ollama's answers: JSON lines, which never split a tool call."""

    def __init__(self, request: ModelRequest, route: Route) -> None:
        super().__init__(request, route)
        self._reasoning: list[str] = []
        self._last: dict[str, Any] = {}

    def feed(self, event: str, data: str) -> list[ModelEvent]:
        line = parse(data, event)
        if line.get("done"):
            self._last = line
            self.finished = True
            self.done = True
        message = as_dict(line.get("message"))
        events: list[ModelEvent] = []
        if thinking := as_text(message.get("thinking")):
            self._reasoning.append(thinking)
            events.append(ReasoningDelta(thinking))
        if content := as_text(message.get("content")):
            events.append(TextDelta(content))
        for call in objects(message.get("tool_calls")):
            events.append(self._take_call(call))
        return events

    def _take_call(self, made: dict[str, Any]) -> ModelEvent:
        function = as_dict(made.get("function"))
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments or {}, ensure_ascii=False)
        return self.take_call(as_text(made.get("id")), as_text(function.get("name")), arguments)

    def end(self) -> list[ModelEvent]:
        if not self.finished:
            raise WireFailure(Failure(cause="ended"))
        numbers = {
            "prompt": self._last.get("prompt_eval_count"),
            "completion": self._last.get("eval_count"),
        }
        blob = None
        if self._reasoning:
            blob = json.dumps({"reasoning": "".join(self._reasoning)}, ensure_ascii=False)
        reason: FinishReason = "tool_calls" if self.calls else "stop"
        if self._last.get("done_reason") == "length":
            reason = "length"
        return [*self.calls, *self.report(numbers), Finished(reason, blob)]


reader = OllamaReader
