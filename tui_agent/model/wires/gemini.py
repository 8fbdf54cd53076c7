"""Google's format for Gemini, ``streamGenerateContent``: builds requests and reads answers.

Source: ai.google.dev, "GenerateContent", "Function calling", "Thinking" and "Thought signatures".
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tui_agent.context.request import (
    ContentText,
    ImageRef,
    Message,
    ModelRequest,
    RequestToolCall,
    calls_in,
)
from tui_agent.json_text import as_dict, as_text, first_object, loads, objects
from tui_agent.model.errors import Failure
from tui_agent.model.protocol import (
    Finished,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
)
from tui_agent.model.providers import LEVELS
from tui_agent.model.route import Route
from tui_agent.model.wires.wire import (
    Call,
    Reader,
    WireFailure,
    blobs,
    check_error,
    image_base64,
    parse,
    stand_in,
)
from tui_agent.session.effort import Effort
from tui_agent.session.entries import ToolSchema

_REASONS: dict[str, FinishReason] = {"STOP": "stop", "MAX_TOKENS": "length"}
_FILTERED = {
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "MODEL_ARMOR",
}
_NO_SIGNATURE = "skip_thought_signature_validator"
"""Google's placeholder signature for calls of other models; Gemini 3 and newer refuse a call
without a signature."""
_SIGNATURE_IN_ID = "__thought__"
"""Separator between a call's id and a signature. litellm wrote such ids in older sessions."""
_NEEDED = {"thoughtSignature", "part", "id"}
"""Fields that can't be restored from the answer's text and calls. A part that contains one of them
must be kept."""
_GENERATION = re.compile(r"(?:^|/)gemini-(\d+)")
_VERSIONED = re.compile(r"/v\d+\w*$")
_LEVELS = {**LEVELS, Effort.OFF: "minimal", Effort.MINIMAL: "minimal"}
_BUDGETS = {
    Effort.OFF: 0,
    Effort.MINIMAL: 512,
    Effort.LOW: 1_024,
    Effort.MEDIUM: 8_192,
    Effort.HIGH: 24_576,
    Effort.XHIGH: 24_576,
    Effort.MAX: 24_576,
}
"""Thinking budgets of Gemini 2 models, in tokens. The last one is the largest that all these models
accept."""


# -- the request --------------------------------------------------------------------------------------------


def call(request: ModelRequest, route: Route, *, with_reasoning: bool = True) -> Call:
    body: dict[str, Any] = {}
    system = "\n\n".join(message.text for message in request.messages if message.role == "system")
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_tool(tool) for tool in request.tools]}]
        if request.tool_choice == "none":
            body["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
    options = dict(route.options)
    config = {**_config(request, route), **(options.pop("generationConfig", None) or {})}
    if config:
        body["generationConfig"] = config
    body |= options
    body["contents"] = list(_contents(request, route, with_reasoning=with_reasoning))
    version = "" if _VERSIONED.search(route.base_url) else "/v1beta"
    return Call(f"{version}/models/{route.name}:streamGenerateContent?alt=sse", body)


def _tool(tool: ToolSchema) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": tool.parameters,
    }


def _config(request: ModelRequest, route: Route) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if request.answer_tokens is not None:
        config["maxOutputTokens"] = request.answer_tokens
    if not route.info.reasoning:
        return config
    thinking: dict[str, Any] = {"includeThoughts": request.effort is not Effort.OFF}
    if request.effort is not None:
        if _signs_calls(route):
            thinking["thinkingLevel"] = _LEVELS[request.effort]
        else:
            thinking["thinkingBudget"] = _BUDGETS[request.effort]
    return {**config, "thinkingConfig": thinking}


def _signs_calls(route: Route) -> bool:
    """Return whether the model is Gemini 3 or newer, which signs calls and has thinking levels.

    The result is also True for a name without a number.
    """
    found = _GENERATION.search(route.name)
    return found is None or int(found[1]) >= 3


def _contents(
    request: ModelRequest, route: Route, *, with_reasoning: bool
) -> Iterator[dict[str, Any]]:
    tools: dict[str, RequestToolCall] = {}
    given: dict[str, str] = {}
    results: list[dict[str, Any]] = []
    for message in request.messages:
        if message.role == "tool":
            results += _result(message, request, tools, given)
            continue
        if results:
            # The results of one answer's calls must be in one message, with one result for each
            # call.
            yield {"role": "user", "parts": results}
            results = []
        if message.role == "assistant":
            tools |= {item.call_id: item for item in message.tool_calls}
            kept: list[dict[str, Any]] = []
            for blob in blobs(message) if with_reasoning else ():
                kept += objects(blob.get("gemini"))
            given |= {item["call"]: item["id"] for item in kept if "call" in item and "id" in item}
            parts = list(_answer(message, kept, signs=_signs_calls(route)))
            if parts:
                yield {"role": "model", "parts": parts}
        elif message.role == "user":
            parts = [_part(part, request) for part in message.content]
            yield {"role": "user", "parts": parts or [{"text": ""}]}
    if results:
        yield {"role": "user", "parts": results}


def _part(part: ContentText | ImageRef, request: ModelRequest) -> dict[str, Any]:
    if isinstance(part, ContentText):
        return {"text": part.text}
    data = image_base64(part, request)
    if data is None:
        return {"text": stand_in(part)}
    return {"inlineData": {"mimeType": part.mime, "data": data}}


def _result(
    message: Message,
    request: ModelRequest,
    tools: dict[str, RequestToolCall],
    given: dict[str, str],
) -> list[dict[str, Any]]:
    call_id = message.call_id or ""
    called = tools.get(call_id)
    response: dict[str, Any] = {
        "name": called.tool if called is not None else "unknown",
        "response": {"error" if message.failed else "output": message.text},
    }
    if call_id in given:
        response["id"] = given[call_id]
    images = [_part(part, request) for part in message.content if isinstance(part, ImageRef)]
    return [{"functionResponse": response}, *images]


def _answer(
    message: Message, kept: list[dict[str, Any]], *, signs: bool
) -> Iterator[dict[str, Any]]:
    """Yield the parts of an answer in their original order, each with its signature.

    If they no longer fit the message, the text comes first, then the calls with their signatures.
    ``signs`` says that the model requires a signature on the first call; if that call has none, a
    placeholder is sent.
    """
    calls = calls_in([message])
    written = [item for item in kept if "call" in item]
    if not _fits(message, kept, written):
        if message.text:
            kept = [{"text": len(message.text)}]
        else:
            kept = []
        signed = {item["call"]: item for item in written}
        kept += [signed.get(call_id, {"call": call_id}) for call_id in calls]
    at = 0
    needs_signature = signs
    for item in kept:
        if "call" in item:
            yield _call_part(calls[item["call"]], item, needs_signature=needs_signature)
            needs_signature = False
        elif isinstance(item.get("text"), int):
            yield {"text": message.text[at : at + item["text"]], **_signature(item)}
            at += item["text"]
        elif isinstance(item.get("part"), dict):
            yield item["part"]


def _fits(
    message: Message, kept: Sequence[dict[str, Any]], written: Sequence[dict[str, Any]]
) -> bool:
    """Return whether an answer's kept parts still match its text and calls.

    They match if they stand for as many characters as the text has, and for the same calls in
    order.
    """
    chars = 0
    for item in kept:
        if isinstance(item.get("text"), int):
            chars += item["text"]
    calls = [item["call"] for item in written]
    return bool(kept) and chars == len(message.text) and calls == list(calls_in([message]))


def _call_part(
    called: RequestToolCall, kept: dict[str, Any], *, needs_signature: bool
) -> dict[str, Any]:
    function: dict[str, Any] = {"name": called.tool, "args": loads(called.arguments)}
    if "id" in kept:
        function["id"] = kept["id"]
    signature = _signature(kept)
    if not signature and _SIGNATURE_IN_ID in called.call_id:
        signature = {"thoughtSignature": called.call_id.partition(_SIGNATURE_IN_ID)[2]}
    if not signature and needs_signature:
        signature = {"thoughtSignature": _NO_SIGNATURE}
    return {"functionCall": function, **signature}


def _signature(kept: dict[str, Any]) -> dict[str, str]:
    if kept.get("thoughtSignature"):
        return {"thoughtSignature": kept["thoughtSignature"]}
    return {}


# -- the answer ---------------------------------------------------------------------------------------------


class GeminiReader(Reader):
    """Reads Gemini's answers, which contain each tool call as a whole."""

    def __init__(self, request: ModelRequest, route: Route) -> None:
        super().__init__(request, route)
        self._finish = ""
        self._said = ""
        self._kept: list[dict[str, Any]] = []

    def feed(self, event: str, data: str) -> list[ModelEvent]:
        if data.lstrip().startswith("["):
            # Without server-sent events, the whole answer is received as one list.
            try:
                chunks = objects(loads(data))
            except ValueError:
                raise WireFailure(Failure(data[:300], cause="broken")) from None
            for chunk in chunks:
                check_error(chunk, json.dumps(chunk, ensure_ascii=False))
        else:
            chunks = [parse(data, event)]
        events: list[ModelEvent] = []
        for chunk in chunks:
            events += self._take(chunk)
        return events

    def end(self) -> list[ModelEvent]:
        if not self.finished:
            raise WireFailure(Failure(cause="ended"))
        finish = self._finish
        note = ""
        reason: FinishReason
        if finish in _FILTERED or finish.startswith("blocked:"):
            reason = "content_filter"
            note = self._said
        elif finish not in _REASONS:
            # After MALFORMED_FUNCTION_CALL and the like, a retry may produce a better answer.
            error = {"code": finish, "message": self._said or f"the answer ended with {finish}"}
            raise WireFailure(Failure(json.dumps({"error": error}), status=502))
        elif self.calls and finish == "STOP":
            reason = "tool_calls"
        else:
            reason = _REASONS[finish]
        blob = None
        if any(not _NEEDED.isdisjoint(item) for item in self._kept):
            blob = json.dumps({"gemini": self._kept}, ensure_ascii=False)
        return [*self.calls, *self.report(self.usage), Finished(reason, blob, note)]

    def _take(self, chunk: dict[str, Any]) -> list[ModelEvent]:
        self._take_usage(as_dict(chunk.get("usageMetadata")))
        feedback = as_dict(chunk.get("promptFeedback"))
        if feedback.get("blockReason"):
            self._finish = f"blocked:{feedback['blockReason']}"
            self.finished = True
            self._said = str(feedback.get("blockReasonMessage") or feedback["blockReason"])
        candidate = first_object(chunk.get("candidates"))
        events: list[ModelEvent] = []
        for part in objects(as_dict(candidate.get("content")).get("parts")):
            events += self._take_part(part)
        if finish := candidate.get("finishReason"):
            self._finish = str(finish)
            self._said = str(candidate.get("finishMessage") or finish)
            self.finished = True
        return events

    def _take_part(self, part: dict[str, Any]) -> list[ModelEvent]:
        called = part.get("functionCall")
        text = part.get("text")
        if isinstance(called, dict):
            return [self._take_call(called, part)]
        if isinstance(text, str) and part.get("thought"):
            if part.get("thoughtSignature"):
                self._kept.append({"part": part})
            if text:
                return [ReasoningDelta(text)]
            return []
        if isinstance(text, str):
            self._keep_text(len(text), _signature(part))
            if text:
                return [TextDelta(text)]
            return []
        # Any other part, such as one of a tool that Google runs, is kept and sent back unchanged.
        self._kept.append({"part": part})
        return []

    def _keep_text(self, size: int, signature: dict[str, str]) -> None:
        """Record the length of a piece of text; adjacent pieces without signatures are joined."""
        last = self._kept[-1] if self._kept else {}
        if isinstance(last.get("text"), int) and not signature and "thoughtSignature" not in last:
            last["text"] += size
        elif size or signature:
            self._kept.append({"text": size, **signature})

    def _take_call(self, called: dict[str, Any], part: dict[str, Any]) -> ModelEvent:
        given = as_text(called.get("id"))
        arguments = json.dumps(called.get("args") or {}, ensure_ascii=False)
        written = self.take_call(given, str(called.get("name") or ""), arguments)
        place = {"call": written.call_id}
        if given:
            place["id"] = given
        self._kept.append({**place, **_signature(part)})
        return written

    def _take_usage(self, reported: dict[str, Any]) -> None:
        def number(name: str) -> int:
            value = reported.get(name)
            return value if type(value) is int else 0

        thoughts = number("thoughtsTokenCount")
        self.count(
            {
                "prompt": number("promptTokenCount") + number("toolUsePromptTokenCount"),
                "completion": number("candidatesTokenCount") + thoughts,
                "cache_read": number("cachedContentTokenCount"),
                "reasoning": thoughts,
            }
        )


reader = GeminiReader
