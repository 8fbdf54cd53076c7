"""Ollama's own chat, which alone takes the size of the window: its chat completions cut a longer prompt silently."""

import json
from typing import Any

from tui_agent.context.request import ImageRef, Message, ModelRequest, wire_tool
from tui_agent.json_text import as_dict, as_text, loads, objects
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
"""The models that take a level of thinking; others take a switch
(docs.ollama.com/capabilities/thinking)."""

_TOP = {"format", "keep_alive", "logprobs", "think", "truncate", "shift"}
"""Fields beside the messages; all others are the model's ``options``."""


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
    tools = {call.call_id: call.tool for message in request.messages for call in message.tool_calls}
    body |= {"options": options, "messages": []}
    for message in one_system_message(request.messages):
        body["messages"].append(_message(message, request, tools, with_reasoning=with_reasoning))
    return Call("/api/chat", body, optional=("think",) if "think" in body else ())


def _message(
    message: Message, request: ModelRequest, tools: dict[str, str], *, with_reasoning: bool
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
        wire |= {"tool_name": tools.get(message.call_id, ""), "tool_call_id": message.call_id}
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.call_id,
                "function": {"name": call.tool, "arguments": loads(call.arguments)},
            }
            for call in message.tool_calls
        ]
    # Sessions from before have it under the name litellm gave it.
    kept = (
        as_text(blob.get("reasoning") or blob.get("reasoning_content")) for blob in blobs(message)
    )
    thinking = ""
    if with_reasoning:
        thinking = "".join(kept)
    if thinking:
        return {**wire, "thinking": thinking}
    return wire


class OllamaReader(Reader):
    """Takes lines of JSON; calls come whole."""

    def __init__(self, request: ModelRequest, route: Route) -> None:
        super().__init__(request, route)
        self._reasoning: list[str] = []
        self._calls: list[ToolCallReady] = []
        self._last: dict[str, Any] = {}

    def feed(self, event: str, data: str) -> list[ModelEvent]:
        line = parse(data, event)
        if line.get("done"):
            self._last = line
            self.finished = True
            self.done = True
        message = as_dict(line.get("message"))
        events: list[ModelEvent] = []
        if thinking := message.get("thinking"):
            self._reasoning.append(str(thinking))
            events.append(ReasoningDelta(str(thinking)))
        if content := message.get("content"):
            events.append(TextDelta(str(content)))
        events += map(self._take_call, objects(message.get("tool_calls")))
        return events

    def _take_call(self, made: dict[str, Any]) -> ModelEvent:
        function = made.get("function") or {}
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            text = arguments
        else:
            text = json.dumps(arguments or {}, ensure_ascii=False)
        call = ToolCallReady(self.ids.take(made.get("id")), str(function.get("name") or ""), text)
        self._calls.append(call)
        return ToolCallDelta(len(self._calls) - 1, call.call_id, call.tool, text)

    def end(self) -> list[ModelEvent]:
        if not self.finished:
            raise WireFailure(Failure(cause="closed"))
        numbers = {
            "prompt": self._last.get("prompt_eval_count"),
            "completion": self._last.get("eval_count"),
        }
        blob = None
        if self._reasoning:
            blob = json.dumps({"reasoning": "".join(self._reasoning)}, ensure_ascii=False)
        cut = self._last.get("done_reason") == "length"
        if cut:
            reason: FinishReason = "length"
        elif self._calls:
            reason = "tool_calls"
        else:
            reason = "stop"
        return [*self._calls, *self.report(numbers), Finished(reason, blob)]


reader = OllamaReader
