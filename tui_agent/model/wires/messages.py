"""Anthropic's Messages format: builds requests and reads answers.

Source: Anthropic's API reference ("Messages", "Streaming", "Tool use", "Thinking", "Prompt
caching", "Stop reasons"); the thinking parameters of each model are in ``model.claude``.

An answer's reasoning blob lists its content blocks in order. Blocks that are signed or encrypted,
or belong to the provider's own tools, are kept unchanged. ``{"type": "text", "chars": n}`` and
``{"type": "tool_use"}`` are placeholders for the next ``n`` characters of the answer's text and for
its next call; ``{"type": "added", "chars": n}`` is text for the user that isn't sent back.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, RequestToolCall
from tui_agent.json_text import as_dict, as_list, as_text, loads, objects, table_in
from tui_agent.lazy import dataclass
from tui_agent.model.claude import BUDGETS, MIN_BUDGET, Claude, claude
from tui_agent.model.errors import Failure
from tui_agent.model.protocol import (
    Finished,
    FinishReason,
    ModelEvent,
    PageFound,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallReady,
)
from tui_agent.model.providers import LEVELS
from tui_agent.model.route import Route
from tui_agent.model.streamed_calls import is_object
from tui_agent.model.wires.wire import (
    Call,
    Reader,
    WireFailure,
    blobs,
    cache_mark,
    compacted,
    image_base64,
    parse,
    stand_in,
)
from tui_agent.pictures import PDF
from tui_agent.session.effort import Effort

ContentBlock = dict[str, Any]
"""A content block of Anthropic's format, or a placeholder for one in a reasoning blob."""

DEFAULT_MAX_OUTPUT = 32_000
"""The limit of an answer, in tokens, for a model whose limit is unknown; the format requires
one."""

_VERSION = "2023-06-01"
_INTERLEAVED = "interleaved-thinking-2025-05-14"
_BINDING = "thinking-binding-controls-2026-08-01"
_COMPACTION = "compact-2026-09-04"

_SEARCH = "web_search_20250305"
"""The provider's own search tool, in the version that all models with web search accept."""
_MAX_SEARCHES = 2

_MAX_CACHE_MARKS = 4
_MARKABLE = {"text", "image", "document", "tool_use", "tool_result"}
_THINKING = {"thinking", "redacted_thinking"}

_SHORT_ANSWER = 8_192
"""If the requested answer limit is below this number of tokens, the thinking budget is added to it;
a larger limit includes thinking."""

_WORDS = {**LEVELS, Effort.OFF: "low", Effort.XHIGH: "xhigh", Effort.MAX: "max"}
"""Anthropic's names for the effort levels. "low" is sent for off if a model always thinks."""

# -- answers ------------------------------------------------------------------------------------------------
_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "pause_turn": "pause",
}
_FULL = "model_context_window_exceeded"

_READABLE = {
    "query",
    "url",
    "command",
    "code",
    "path",
    "title",
    "text",
    "stdout",
    "stderr",
    "error_code",
    "tool_name",
    "model",
}
"""Fields whose text is shown to the user, in the blocks of the provider's own tools."""

_MAX_MESSAGE_CHARS = 240


# -- requests -----------------------------------------------------------------------------------------------


def call(request: ModelRequest, route: Route, *, with_reasoning: bool = True) -> Call:
    model = claude(route.name)
    thinking = _thinking(request, route, model)
    if not with_reasoning:
        thinking.field = {}
        thinking.effort = ""
    turns = _turns(
        request,
        route,
        keep_thinking=with_reasoning and not thinking.is_off,
        keep_summary=with_reasoning,
        signed=model is not None,
    )
    if model is not None and model.style == "budget" and not _may_think_on(turns):
        thinking.field.clear()
    body: dict[str, Any] = {
        "model": route.name,
        "max_tokens": thinking.room(request),
        "stream": True,
    }
    if system := _system(request, route):
        body["system"] = system
    body["messages"] = turns
    options = dict(route.options)
    tools = _tools(request, eager=model is not None and _is_makers_own(route))
    if request.search_hosts is not None:
        tools = [_search_tool(request.search_hosts)]
        options.pop("tools", None)
    elif isinstance(more := options.get("tools"), list):
        # Add the provider's own tools that are requested in the settings.
        options["tools"] = [*tools, *more]
    if tools:
        body["tools"] = tools
        if request.tool_choice != "auto" and not request.compact:
            body["tool_choice"] = {"type": request.tool_choice}
    if thinking.field:
        body["thinking"] = thinking.field
    if thinking.effort:
        body["output_config"] = {"effort": thinking.effort}
    compacts = request.compact or (bool(turns) and turns[0]["content"][0]["type"] == "compaction")
    if request.compact:
        body["compaction"] = {"type": "summarize"}
    if compacts:
        # A compaction block can't be combined with context edits by the provider.
        options.pop("context_management", None)
    headers = _headers(route, model, body, compacts=compacts)
    return Call(
        "/messages",
        {**body, **options},
        headers,
        optional=("output_config",) if thinking.effort else (),
    )


@dataclass
class _Thinking:
    """The limit of the answer, in tokens, and the thinking parameters of a request.

    ``is_off`` says that thinking is turned off, so that earlier thinking isn't sent back either.
    """

    max_tokens: int
    field: dict[str, Any] = field(default_factory=dict)
    effort: str = ""
    is_off: bool = False

    def room(self, request: ModelRequest) -> int:
        """Return the request's ``max_tokens``. It is 1 for a ping without a thinking budget."""
        if request.ping and "budget_tokens" not in self.field:
            return 1
        return self.max_tokens


def _thinking(request: ModelRequest, route: Route, model: Claude | None) -> _Thinking:
    effort = request.effort
    asked = request.max_output_tokens
    most = route.info.max_output or DEFAULT_MAX_OUTPUT
    thinks = model.thinks if model is not None else route.info.reasoning
    if (model is not None and model.style == "none") or (effort is None and not thinks):
        return _Thinking(min(asked or most, most))
    if effort is Effort.OFF and (model is None or model.off is not None):
        off = model.off if model is not None else "disabled"
        return _Thinking(min(asked or most, most), {"type": off} if off else {}, is_off=True)
    room = BUDGETS.get(effort or Effort.HIGH, BUDGETS[Effort.LOW])
    answer = most if asked is None else asked
    max_tokens = min(most, answer + room if answer < _SHORT_ANSWER else answer)
    if model is not None and model.style == "adaptive":
        # Without "display", adaptive models leave their thinking out of the answer.
        said: dict[str, Any] = {"type": "adaptive", "display": "summarized"}
        if model.bound and _is_makers_own(route):
            said["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
        return _Thinking(max_tokens, said, "" if effort is None else _WORDS[effort])
    budget = min(room, max_tokens - max(MIN_BUDGET, min(answer, max_tokens // 4)))
    if effort is None or budget < MIN_BUDGET:
        return _Thinking(max_tokens)
    return _Thinking(max_tokens, {"type": "enabled", "budget_tokens": budget})


def _is_makers_own(route: Route) -> bool:
    """Return whether the request goes to Anthropic's own address.

    Other servers often refuse beta headers and fields they don't know.
    """
    return route.provider.messages.betas and route.base_url == route.provider.url


def _headers(
    route: Route, model: Claude | None, body: Mapping[str, Any], *, compacts: bool
) -> dict[str, str]:
    thinking = body.get("thinking", {})
    betas = [_COMPACTION] if compacts else []
    if model is not None and model.interleaved and thinking and body.get("tools"):
        betas.append(_INTERLEAVED)
    if "block_binding" in thinking:
        betas.append(_BINDING)
    headers = {"anthropic-version": _VERSION}
    if betas:
        # Beta headers from the user's settings are kept.
        name = "anthropic-beta"
        for header in route.headers:
            if header.lower() == name:
                name = header
        given = route.headers.get(name, "").replace(",", " ").split()
        headers[name] = ",".join(dict.fromkeys([*given, *betas]))
    return headers


def _tools(request: ModelRequest, *, eager: bool) -> list[ContentBlock]:
    tools = []
    for tool in request.tools:
        block: ContentBlock = {"name": tool.name, "input_schema": tool.parameters}
        if tool.description:
            block["description"] = tool.description
        if eager:
            # Stream the arguments as they are generated instead of value by value.
            block["eager_input_streaming"] = True
        tools.append(block)
    return tools


def _search_tool(hosts: Sequence[str]) -> ContentBlock:
    tool = {"type": _SEARCH, "name": "web_search", "max_uses": _MAX_SEARCHES}
    if hosts:
        return {**tool, "allowed_domains": list(hosts)}
    return tool


# -- messages -----------------------------------------------------------------------------------------------


def _system(request: ModelRequest, route: Route) -> list[ContentBlock]:
    marked = _marked(request, route)
    blocks: list[ContentBlock] = []
    for at, message in enumerate(request.messages):
        if message.role == "system" and message.text.strip():
            blocks.append({"type": "text", "text": message.text})
            if at in marked:
                _mark(blocks, request)
    return blocks


def _turns(
    request: ModelRequest, route: Route, *, keep_thinking: bool, keep_summary: bool, signed: bool
) -> list[dict[str, Any]]:
    """Return the messages of the request's body, with consecutive messages of one role joined.

    ``keep_thinking`` and ``keep_summary`` say whether thinking and the provider's own compaction
    are sent back, ``signed`` whether the model accepts thinking only with its signature.
    """
    marked = _marked(request, route)
    turns: list[dict[str, Any]] = []
    summary: list[ContentBlock] = []
    for at, message in enumerate(request.messages):
        match message.role:
            case "system":
                continue
            case "assistant":
                blocks = _answer(message, keep_thinking=keep_thinking, signed=signed)
            case "tool":
                blocks = [_result(message, request)]
            case _:
                kept, said = compacted(message) if keep_summary else ([], message)
                summary += kept
                blocks = _content(said, request)
        if not blocks:
            continue
        if at in marked:
            _mark(blocks, request)
        role = "assistant" if message.role == "assistant" else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    _tidy(turns)
    if summary:
        # The provider's compaction block must come before everything else.
        if not turns or turns[0]["role"] == "assistant":
            turns.insert(0, {"role": "user", "content": []})
        turns[0]["content"][:0] = summary
    return turns


def _tidy(turns: Sequence[dict[str, Any]]) -> None:
    """Put tool results first in each user turn, and strip white space from a final answer's end.

    The format requires both. The turns are changed in place.
    """
    for turn in turns:
        if turn["role"] == "user":
            turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    if turns and turns[-1]["role"] == "assistant":
        last = turns[-1]["content"][-1]
        if last["type"] == "text":
            last["text"] = last["text"].rstrip()


def _marked(request: ModelRequest, route: Route) -> set[int]:
    if not route.info.cache_marks:
        return set()
    wanted = [at for at, message in enumerate(request.messages) if message.cache]
    return set(wanted[-_MAX_CACHE_MARKS:])


def _mark(blocks: Sequence[ContentBlock], request: ModelRequest) -> None:
    """Put a cache mark on the last of the blocks that can have one, if any can."""
    for block in reversed(blocks):
        if block["type"] in _MARKABLE:
            block["cache_control"] = cache_mark(request)
            return


def _content(message: Message, request: ModelRequest) -> list[ContentBlock]:
    blocks = []
    for part in message.content:
        block = _part(part, request)
        if block is not None:
            blocks.append(block)
    return blocks


def _part(part: ContentText | ImageRef, request: ModelRequest) -> ContentBlock | None:
    """Return a part of a message as a block.

    Returns None for blank text, because Anthropic's format refuses it.
    """
    if isinstance(part, ContentText):
        if part.text.strip():
            return {"type": "text", "text": part.text}
        return None
    data = image_base64(part, request)
    if data is None:
        return {"type": "text", "text": stand_in(part)}
    kind = "document" if part.mime == PDF else "image"
    return {"type": kind, "source": {"type": "base64", "media_type": part.mime, "data": data}}


def _result(message: Message, request: ModelRequest) -> ContentBlock:
    block: ContentBlock = {"type": "tool_result", "tool_use_id": message.call_id}
    if content := _content(message, request):
        block["content"] = content
    if message.failed:
        block["is_error"] = True
    return block


def _answer(message: Message, *, keep_thinking: bool, signed: bool) -> list[ContentBlock]:
    """Return an answer's blocks, in their original order if it is known.

    If it isn't, or if the text or the calls have changed, the order is thinking, text, calls.
    ``signed`` says that the model accepts thinking only with its signature, so that thinking
    without one is left out.
    """
    text = message.text
    calls = [_tool_use(call) for call in message.tool_calls]
    kept = []
    chars = 0
    held_calls = 0
    for block in _kept(message):
        if block["type"] in _THINKING and not keep_thinking:
            continue
        if block["type"] == "thinking" and signed and not block.get("signature"):
            continue
        kept.append(block)
        chars += _chars(block)
        held_calls += block["type"] == "tool_use"
    if chars == len(text) and held_calls == len(calls):
        return list(_woven(kept, text, calls))
    thinking = [block for block in kept if block["type"] in _THINKING]
    return [*thinking, *_text_block(text), *calls]


def _tool_use(call: RequestToolCall) -> ContentBlock:
    arguments = loads(call.arguments)
    return {"type": "tool_use", "id": call.call_id, "name": call.tool, "input": arguments}


def _kept(message: Message) -> Iterator[ContentBlock]:
    """Yield copies of the blocks in an answer's reasoning blobs, placeholders included."""
    for blob in blobs(message):
        # ``thinking_blocks`` are from answers that came through litellm.
        for block in objects(blob.get("messages", blob.get("thinking_blocks"))):
            if isinstance(block.get("type"), str):
                yield dict(block)


def _chars(block: ContentBlock) -> int:
    chars = block.get("chars")
    if isinstance(chars, int) and block["type"] in ("text", "added"):
        return chars
    return 0


def _woven(
    kept: Sequence[ContentBlock], text: str, calls: Sequence[ContentBlock]
) -> Iterator[ContentBlock]:
    at = 0
    waiting = iter(calls)
    for block in kept:
        if block["type"] == "tool_use":
            yield {**block, **next(waiting)}
        elif "chars" in block:
            piece = text[at : at + _chars(block)]
            at += len(piece)
            if block["type"] == "text" and piece.strip():
                del block["chars"]
                yield {**block, "text": piece}
        else:
            yield block


def _text_block(text: str) -> list[ContentBlock]:
    if text.strip():
        return [{"type": "text", "text": text}]
    return []


def _may_think_on(turns: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether thinking can be requested.

    It can be requested in a new turn, and in a turn that began with thinking. Within any other
    turn, it is impossible.
    """
    begun = None
    for turn in turns:
        if turn["role"] == "assistant":
            begun = begun or turn
        elif not any(block["type"] == "tool_result" for block in turn["content"]):
            begun = None
    return begun is None or begun["content"][0]["type"] in _THINKING


@dataclass
class _Part:
    """The part of a content block that has been received so far."""

    type: str
    block: ContentBlock
    """The block as its start event contains it, with the fields received later."""
    pieces: list[str] = field(default_factory=list)
    """The streamed pieces of the block: its text, its thinking, or the JSON text of its
    arguments."""
    citations: list[Any] = field(default_factory=list)
    shown: int = 0
    """Number of characters that the block added to the answer's text."""
    call_id: str = ""
    number: int = 0
    """The index of this call among the calls of the answer."""

    @property
    def tool(self) -> str:
        """The name of the tool that the block calls; "" if the block names none."""
        return str(self.block.get("name") or "")

    @property
    def written(self) -> str:
        return "".join(self.pieces)

    @property
    def arguments(self) -> str:
        """The call's arguments as JSON text: as streamed, or else from the block's start event."""
        return self.written or json.dumps(self.block.get("input") or {}, ensure_ascii=False)

    def whole(self) -> ContentBlock:
        match self.type:
            case "thinking":
                return {**self.block, "thinking": self.written}
            case "server_tool_use" | "mcp_tool_use":
                arguments = loads(self.arguments) if is_object(self.arguments) else {}
                return {**self.block, "input": arguments}
            case _:
                return self.block


class MessagesReader(Reader):
    """Reads answers in Anthropic's format, even without start events of text and thinking."""

    def __init__(self, request: ModelRequest, route: Route) -> None:
        super().__init__(request, route)
        self._compact = request.compact
        self._searches = request.search_hosts is not None
        self._parts: list[_Part] = []
        self._open: dict[int | None, _Part] = {}
        self._stop = ""
        self._why = ""
        self._added = 0
        """Number of characters shown before the answer began again (see ``_begin``)."""

    def feed(self, event: str, data: str) -> list[ModelEvent]:  # noqa: PLR0911 - one arm per event
        if self.done or not data.strip():
            return []
        value = parse(data, event)
        kind = value.get("type") or event
        index = value.get("index")
        index = index if isinstance(index, int) else None
        match kind:
            case "message_start":
                return self._begin(as_dict(value.get("message")))
            case "content_block_start":
                return self._start(index, as_dict(value.get("content_block")))
            case "content_block_delta":
                return self._continue(index, as_dict(value.get("delta")))
            case "content_block_stop":
                return self._close(self._open.pop(index, None))
            case "message_delta":
                self._end(as_dict(value.get("delta")), value.get("usage"))
            case "message_stop":
                self.finished = self.done = True
            case "message":
                events = self._begin(value)
                self._end(value, None)
                self.finished = self.done = True
                return events
            case _:
                pass
        return []

    def end(self) -> list[ModelEvent]:
        if self._compact:
            return self._end_compaction()
        calls = self._calls()
        said = bool(calls) or self._has_text
        is_whole = said and all(is_object(part.arguments) for part in calls)
        if not self.finished and not (self.route.is_small_server and is_whole):
            raise WireFailure(Failure(cause="ended"))
        if self._stop == _FULL and not said:
            raise WireFailure(Failure(f"prompt is too long: {_FULL}", status=400))
        ready = [ToolCallReady(part.call_id, part.tool, part.arguments) for part in calls]
        reason = _REASONS.get(self._stop, "stop")
        if reason in ("stop", "tool_calls"):
            reason = "tool_calls" if calls else "stop"
        note = self._why if reason == "content_filter" else ""
        reason = self.reason(reason, marked=self.finished)
        finished = Finished(reason, self._blob(), note=note, marked=self.finished)
        return [*ready, *self._report(), finished]

    def _end_compaction(self) -> list[ModelEvent]:
        kept = []
        texts = []
        for part in self._parts:
            if part.type == "compaction" and part.block.get("content"):
                kept.append(part.block)
                texts.append(str(part.block["content"]))
        if not kept or self._stop != "compaction":
            raise WireFailure(
                Failure(f"the answer has no compaction: {self._stop}", cause="broken")
            )
        # The usage of the answer itself is zero, because its steps are reported in "iterations".
        for step in as_list(self.usage.get("iterations")):
            self.count(as_dict(step))
        text = TextDelta("\n\n".join(texts))
        return [text, *self._report(), Finished("stop", json.dumps({"compacted": kept}))]

    @property
    def _has_text(self) -> bool:
        return bool(self._added) or any(part.shown for part in self._parts)

    def _calls(self) -> list[_Part]:
        return [part for part in self._parts if part.type == "tool_use"]

    # -- events ---------------------------------------------------------------------------------------------

    def _begin(self, message: Mapping[str, Any]) -> list[ModelEvent]:
        """Begin the answer.

        A second start drops the blocks received so far, but their text stays on the screen. Some
        gateways send a second start when they switch servers after a failure.
        """
        self._added += sum(part.shown for part in self._parts)
        self._parts.clear()
        self._open.clear()
        self.count(as_dict(message.get("usage")))
        events: list[ModelEvent] = []
        for index, block in enumerate(as_list(message.get("content"))):
            events += self._start(index, as_dict(block))
            events += self._close(self._open.pop(index, None))
        return events

    def _start(self, index: int | None, block: ContentBlock) -> list[ModelEvent]:
        if not isinstance(block.get("type"), str):
            return []
        part = self._opened(index, block)
        match part.type:
            case "text":
                text = self._continue(index, {"type": "text_delta", "text": block.get("text")})
                return [*text, *self._cite(part, objects(block.get("citations")))]
            case "thinking":
                return self._continue(
                    index, {"type": "thinking_delta", "thinking": block.get("thinking")}
                )
            case "tool_use":
                part.number = len(self._calls()) - 1
                part.call_id = self.ids.take(as_text(block.get("id")))
                return [ToolCallDelta(part.number, part.call_id, part.tool, "")]
            case _:
                return []

    def _continue(self, index: int | None, delta: Mapping[str, Any]) -> list[ModelEvent]:
        part = self._open.get(index)
        match delta:
            case {"type": "text_delta", "text": str(text)} if text:
                if part is None or part.type != "text":
                    part = self._opened(index, {"type": "text"})
                part.pieces.append(text)
                part.shown += len(text)
                return [TextDelta(text)]
            case {"type": "thinking_delta", "thinking": str(text)} if text:
                if part is None or part.type != "thinking":
                    part = self._opened(index, {"type": "thinking"})
                part.pieces.append(text)
                return [ReasoningDelta(text)]
            case {"type": "signature_delta", "signature": str(signature)} if part is not None:
                part.block["signature"] = signature
            case {"type": "input_json_delta", "partial_json": given} if part is not None and given:
                text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
                part.pieces.append(text)
                if part.type == "tool_use":
                    return [ToolCallDelta(part.number, part.call_id, part.tool, text)]
            case {"type": "citations_delta", "citation": dict(citation)} if part is not None:
                return self._cite(part, [citation])
            case {"type": "compaction_delta"} if part is not None:
                part.block |= {key: value for key, value in delta.items() if key != "type"}
            case _:
                pass
        return []

    def _cite(self, part: _Part, citations: Sequence[dict[str, Any]]) -> list[ModelEvent]:
        part.citations += citations
        return self._pages(citations)

    def _pages(self, rows: Iterable[Mapping[str, Any]]) -> list[ModelEvent]:
        """Return a `PageFound` for each row with a URL; [] if the request asked for no search."""
        if not self._searches:
            return []
        pages: list[ModelEvent] = []
        for row in rows:
            if url := as_text(row.get("url")):
                title = as_text(row.get("title"))
                text = as_text(row.get("cited_text"))
                pages.append(PageFound(url, title, text, day=as_text(row.get("page_age"))))
        return pages

    def _opened(self, index: int | None, block: ContentBlock) -> _Part:
        part = self._open[index] = _Part(block["type"], block)
        self._parts.append(part)
        return part

    def _close(self, part: _Part | None) -> list[ModelEvent]:
        """End a block, and add the input or output of the provider's own tools to the text."""
        if part is None:
            return []
        if part.type == "tool_use" and not part.pieces and part.block.get("input"):
            part.pieces.append(part.arguments)
            return [ToolCallDelta(part.number, part.call_id, part.tool, part.written)]
        if part.type in {"text", "tool_use", *_THINKING} or self._compact:
            return []
        words = f"{tool_line(part.whole())}\n\n"
        if self._has_text:
            words = f"\n\n{words}"
        part.shown = len(words)
        return [TextDelta(words), *self._pages(objects(part.block.get("content")))]

    def _end(self, delta: Mapping[str, Any], usage: Any) -> None:
        self.count(as_dict(usage))
        if stop := as_text(delta.get("stop_reason")):
            self._stop = stop
            self.finished = True
            self._why = as_text(as_dict(delta.get("stop_details")).get("explanation"))

    # -- the end --------------------------------------------------------------------------------------------

    def _report(self) -> list[ModelEvent]:
        said = self.usage
        read = said.get("cache_read_input_tokens")
        write = said.get("cache_creation_input_tokens")
        prompt: float = 0
        for number in (said.get("input_tokens"), read, write):
            if isinstance(number, int | float):
                prompt += number
        usage = {
            "prompt": prompt,
            "completion": said.get("output_tokens"),
            "cache_read": read,
            "cache_write": write,
            "reasoning": table_in(said, "output_tokens_details").get("thinking_tokens"),
        }
        hour = table_in(said, "cache_creation").get("ephemeral_1h_input_tokens")
        return self.report(usage, hour_writes=hour if isinstance(hour, int) else 0)

    def _blob(self) -> str | None:
        """Return the blocks to send back, as JSON.

        Returns None if they are only text followed by calls, because the answer itself contains
        these.
        """
        kept: list[ContentBlock] = []
        if self._added:
            kept = [{"type": "added", "chars": self._added}]
        for part in self._parts:
            match part.type:
                case "text" if not part.shown:
                    pass
                case "text":
                    kept.append({"type": "text", "chars": part.shown})
                    if part.citations:
                        kept[-1]["citations"] = part.citations
                case "tool_use":
                    kept.append({"type": "tool_use"})
                    caller = table_in(part.block, "caller")
                    if caller.get("type", "direct") != "direct":
                        kept[-1]["caller"] = caller
                case _:
                    kept.append(part.whole())
                    if part.shown:
                        kept.append({"type": "added", "chars": part.shown})
        if _is_plain(kept):
            return None
        return json.dumps({"messages": kept})


def _is_plain(kept: Iterable[ContentBlock]) -> bool:
    """Return whether blocks are only text followed by calls, without citations and callers."""
    has_call = False
    for block in kept:
        is_call = block["type"] == "tool_use"
        if "citations" in block or "caller" in block or (has_call and not is_call):
            return False
        if not is_call and block["type"] != "text":
            return False
        has_call = is_call
    return True


def tool_line(block: Mapping[str, Any]) -> str:
    """Return a line that shows the user the input or output of one of the provider's own tools.

    The line is ``[tool] texts``, cut at ``_MAX_MESSAGE_CHARS`` characters.
    """
    kind = str(block.get("type"))
    if kind.endswith("tool_use"):
        name = block.get("name")
    else:
        name = kind.removesuffix("_tool_result")
    said = {key: value for key, value in block.items() if key not in ("type", "name")}
    line = " ".join("; ".join(_strings(said)).split())
    if len(line) > _MAX_MESSAGE_CHARS:
        line = f"{line[:_MAX_MESSAGE_CHARS]}…"
    return f"[{name}] {line}".strip()


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, str):
                if key in _READABLE and item.strip():
                    yield item
            else:
                yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


reader = MessagesReader
