"""OpenAI's Responses format: builds requests and reads answers.

Each request has the whole conversation as items, and nothing is stored at the provider (``store``
is false, no ``previous_response_id``). The encrypted reasoning items of an answer are kept, and
sent back in their original positions. OpenAI refuses a reasoning item that isn't followed by its
original item, so if that item has changed, the reasoning is left out. Sources:
https://platform.openai.com/docs/api-reference/responses; "Reasoning models" on the same site.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any

from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, RequestToolCall
from tui_agent.json_text import as_dict, as_list, as_text, objects
from tui_agent.lazy import dataclass
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
from tui_agent.model.providers import OPENAI_LEVELS, ResponsesFormat
from tui_agent.model.request_pictures import images_in
from tui_agent.model.route import Route
from tui_agent.model.streamed_calls import is_object
from tui_agent.model.wires.wire import (
    PROGRESS,
    Call,
    Reader,
    WireFailure,
    compacted,
    image_url,
    kept_items,
    named_cost,
    one_system_message,
    parse,
    progress_of,
    stand_in,
)
from tui_agent.pictures import PDF
from tui_agent.session.effort import Effort
from tui_agent.session.entries import ToolSchema

_PATH = "/responses"
_MIN_OUTPUT_TOKENS = 16
"""The smallest value of ``max_output_tokens`` that OpenAI accepts."""
_MAX_CACHE_KEY_CHARS = 64
_BETWEEN = "\n\n"
"""Separator between messages if an answer contains several, and between the parts of a reasoning
summary."""

_OPTIONAL = (
    "reasoning.summary",
    "reasoning.effort",
    "include",
    "prompt_cache_key",
    "store",
    "max_output_tokens",
    PROGRESS,
)
"""Fields of the request that can be left out if a server refuses them."""

_ECHOES = frozenset({"response.created", "response.in_progress", "response.queued"})
"""Events that only repeat the request. They are skipped, except for the progress that llama.cpp adds
to them."""

_LAST = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}
)

_HOSTED = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "mcp_list_tools", "mcp_call"}
)
"""Item types of tools that the provider runs itself, such as its web search. These items need no
result and are sent back unchanged, like reasoning."""

_BARE = frozenset({"type", "chars"})
"""A placeholder that has only these fields can be restored from the answer's text and calls
alone."""

_Part = tuple[str, int]
"""Identifies a part of an item by the kind of its text ("text", "summary" or "content") and its
index."""


# -- the request --------------------------------------------------------------------------------------------


def call(request: ModelRequest, route: Route, *, with_reasoning: bool = True) -> Call:
    """Return the HTTP call for a request.

    If ``request.compact`` is set, it is the call for the provider's compaction. Without
    ``with_reasoning``, reasoning is neither sent back nor requested.
    """
    form = route.provider.responses
    items = _input(request, form, with_reasoning=with_reasoning)
    body: dict[str, Any] = {"model": route.name, "input": items}
    if request.compact:
        return Call(f"{_PATH}/compact", body, {"accept": "application/json"})
    body |= {"stream": True, "store": False}
    if form.system == "instructions":
        head = one_system_message(request.messages)[:1]
        body["instructions"] = "".join(message.text for message in head if message.role == "system")
    options = dict(route.options)
    tools = [_tool(tool) for tool in request.tools]
    tools += as_list(options.pop("tools", []))
    if request.search_hosts is not None:
        tools = [_search_tool(request.search_hosts)]
    if tools:
        body["tools"] = tools
        if request.tool_choice != "auto":
            body["tool_choice"] = request.tool_choice
    if request.answer_tokens is not None:
        body["max_output_tokens"] = max(request.answer_tokens, _MIN_OUTPUT_TOKENS)
    if form.cache_key and request.session:
        body["prompt_cache_key"] = request.session[:_MAX_CACHE_KEY_CHARS]
    if route.chat.prompt_progress:
        body[PROGRESS] = True
    body |= _thinking(request, route, form, with_reasoning=with_reasoning)
    return Call(_PATH, {**body, **options}, optional=_OPTIONAL)


def _tool(tool: ToolSchema) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


def _search_tool(hosts: Sequence[str]) -> dict[str, Any]:
    if hosts:
        return {"type": "web_search", "filters": {"allowed_domains": list(hosts)}}
    return {"type": "web_search"}


def _thinking(
    request: ModelRequest, route: Route, form: ResponsesFormat, *, with_reasoning: bool
) -> dict[str, Any]:
    effort = request.effort
    levels = {**OPENAI_LEVELS, Effort.MAX: route.info.max_effort}
    reasoning: dict[str, str] = {}
    if effort is not None:
        reasoning["effort"] = levels[effort]
    fields: dict[str, Any] = {}
    pattern = form.thinking
    # A model without encrypted reasoning refuses a request for it.
    by_catalog = route.info.reasoning and not route.is_small_server
    if with_reasoning and pattern and (by_catalog or re.search(pattern, route.name)):
        fields["include"] = ["reasoning.encrypted_content"]
        if form.summary and effort is not Effort.OFF:
            reasoning["summary"] = form.summary
    if reasoning:
        fields["reasoning"] = reasoning
    return fields


def _input(
    request: ModelRequest, form: ResponsesFormat, *, with_reasoning: bool
) -> list[dict[str, Any]]:
    """Return the items of a conversation. Later messages never change the items of earlier ones.

    If the provider accepts only text in results, the images of an answer's results follow in a user
    message after the last of these results.
    """
    items: list[dict[str, Any]] = []
    moved: list[dict[str, Any]] = []
    for message in one_system_message(request.messages):
        if moved and message.role != "tool":
            items.append({"role": "user", "content": moved})
            moved = []
        match message.role:
            case "system" if form.system == "instructions":
                pass
            case "system":
                items.append({"role": form.system, "content": message.text})
            case "user":
                kept, said = compacted(message) if with_reasoning else ([], message)
                items += kept
                if said.content:
                    items.append({"role": "user", "content": _content(said, request)})
            case "assistant":
                items.extend(_answer(message, with_reasoning=with_reasoning))
            case "tool" if form.images_in_results:
                items.append(_result(message, _content(message, request)))
            case "tool":
                items.append(_result(message, message.text))
                moved += [_part(image, request) for image in images_in(message)]
    if moved:
        items.append({"role": "user", "content": moved})
    return items


def _result(message: Message, output: str | list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": message.call_id, "output": output}


def _content(message: Message, request: ModelRequest) -> str | list[dict[str, Any]]:
    if not any(images_in(message)):
        return message.text
    return [_part(part, request) for part in message.content]


def _part(part: ContentText | ImageRef, request: ModelRequest) -> dict[str, Any]:
    if isinstance(part, ContentText):
        return {"type": "input_text", "text": part.text}
    url = image_url(part, request)
    if url is None:
        return {"type": "input_text", "text": stand_in(part)}
    if part.mime == PDF:
        return {"type": "input_file", "filename": "document.pdf", "file_data": url}
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _answer(message: Message, *, with_reasoning: bool) -> list[dict[str, Any]]:
    """Return an answer's items, in their original order if it is known.

    If it isn't, or if the text or the calls have changed, the text comes first, then the calls,
    without reasoning.
    """
    kept = kept_items(message, "responses")
    if kept is None or not _fits(kept, message):
        kept = [{"type": "function_call"}] * len(message.tool_calls)
        if message.text:
            kept.insert(0, {"type": "message", "chars": len(message.text)})
    return list(_replayed(kept, message, with_reasoning=with_reasoning))


def _fits(kept: Sequence[Any], message: Message) -> bool:
    """Return whether the kept items still match the answer, with as much text and as many calls."""
    total = 0
    calls = 0
    for item in kept:
        kind = as_dict(item).get("type")
        if kind == "function_call":
            calls += 1
        elif kind in ("message", "added"):
            chars = item.get("chars")
            if not isinstance(chars, int) or chars <= 0:
                return False
            total += chars
        elif not isinstance(item, dict):
            return False
    return total == len(message.text) and calls == len(message.tool_calls)


def _replayed(
    kept: Sequence[dict[str, Any]], message: Message, *, with_reasoning: bool
) -> Iterator[dict[str, Any]]:
    text = message.text
    start = 0
    calls = iter(message.tool_calls)
    for item in kept:
        match item.get("type"):
            case "message":
                own_id = item.get("id") if with_reasoning else None
                piece = text[start : start + item["chars"]]
                yield _message(piece, own_id, item.get("phase"))
                start += item["chars"]
            case "added":
                start += item["chars"]
            case "function_call":
                own_id = item.get("id") if with_reasoning else None
                yield _function_call(own_id, next(calls))
            case str(kind) if with_reasoning and (kind == "reasoning" or kind in _HOSTED):
                yield item


def _message(text: str, own_id: str | None, phase: str | None) -> dict[str, Any]:
    """Return a message item for a text.

    With ``own_id``, the item has this id and the provider's form.
    """
    # llama.cpp requires the type even for the message of an answer.
    item: dict[str, Any] = {"type": "message"}
    if own_id is None:
        item |= {"role": "assistant", "content": text}
    else:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        item |= {"id": own_id, "role": "assistant", "status": "completed", "content": content}
    if phase is not None:
        item["phase"] = phase
    return item


def _function_call(own_id: str | None, each: RequestToolCall) -> dict[str, Any]:
    item = {"type": "function_call"}
    if own_id is not None:
        item["id"] = own_id
    return item | {"call_id": each.call_id, "name": each.tool, "arguments": each.arguments}


# -- the answer ---------------------------------------------------------------------------------------------


def reader(request: ModelRequest, route: Route) -> "ResponsesReader | CompactionReader":
    return (CompactionReader if request.compact else ResponsesReader)(request, route)


class CompactionReader(Reader):
    """Reads the answer from ``/responses/compact``, a single JSON document.

    All items of the answer are kept to be sent back, except system and developer messages, which
    are in every request anyway. Sources: OpenAI, "Compact a response"; xAI, "Context Compaction".
    """

    _document: Mapping[str, Any] = MappingProxyType({})

    def feed(self, event: str, data: str) -> list[ModelEvent]:
        self._document = parse(data, event)
        self.finished = True
        return []

    def end(self) -> list[ModelEvent]:
        output = objects(self._document.get("output"))
        items = [item for item in output if item.get("role") not in ("system", "developer")]
        if not any(item.get("type") == "compaction" for item in items):
            raise WireFailure(Failure("the answer has no compaction", cause="broken"))
        return [*_usage(self, self._document), Finished("stop", json.dumps({"compacted": items}))]


@dataclass(eq=False)
class _Item:
    """The part of one item of the answer that has been received."""

    type: str
    position: int = 0
    """Number of calls before this item in the answer. If the item is a call itself, this is its
    index."""
    call_id: str = ""
    tool: str = ""
    pieces: list[str] = field(default_factory=list)
    """Pieces of a call's arguments (JSON text)."""
    passed_on: dict[_Part, list[str]] = field(default_factory=dict)
    """The pieces of text or reasoning that have been passed on. The keys are the parts of the
    item."""
    whole: dict[str, Any] | None = None
    """The item as the provider sent it when it was complete; None while it is incomplete."""

    @property
    def first_kind(self) -> str:
        """The kind of the first part of the item that was passed on; "" if none was."""
        for kind, _index in self.passed_on:
            return kind
        return ""

    def rest_of(self, part: _Part, text: object) -> str:
        """Return the part of ``text`` that was not passed on yet.

        The result is "" if ``text`` doesn't begin with the pieces that were passed on.
        """
        sent = "".join(self.passed_on.get(part, ()))
        if isinstance(text, str) and text.startswith(sent):
            return text[len(sent) :]
        return ""

    @property
    def is_complete(self) -> bool:
        return self.whole is not None and self.whole.get("status") != "incomplete"

    @property
    def goes_back(self) -> bool:
        """Whether the item can be sent back with the answer. Only the item itself is examined.

        Messages need text, reasoning items their content (encrypted or plain, because the provider
        doesn't store it), and items of the provider's tools must be complete.
        """
        match self.type:
            case "message":
                return bool(self.passed_on)
            case "function_call":
                return True
            case "reasoning":
                return self.whole is not None and bool(
                    self.whole.get("encrypted_content") or self.whole.get("content")
                )
            case _:
                return self.type in _HOSTED and self.is_complete


class ResponsesReader(Reader):
    """Reads answers in the Responses format, whose items arrive whole or in pieces."""

    def __init__(self, request: ModelRequest, route: Route) -> None:
        super().__init__(request, route)
        self._searches = request.search_hosts is not None
        self._items: list[_Item] = []
        self._by_key: dict[int | str | None, _Item] = {}
        """Items by ``output_index``, or by id if there is none; some servers change ids between
        events."""
        self._runs: list[tuple[_Item | None, int]] = []
        """The answer's text in order, as (item, number of characters). The item is None for text
        that this program added for the user."""
        self._thought: tuple[int, str, int] | None = None
        """The last reasoning that was passed on: its item (identified by ``id()``) and its part."""
        self._refused = False
        self._response: dict[str, Any] = {}
        """The provider's final object for the whole answer; {} until it is received."""
        self._out: list[ModelEvent] = []
        """Events that the current call of ``feed`` will return."""

    def feed(self, event: str, data: str) -> list[ModelEvent]:
        if self.finished or event in _ECHOES or not data.strip():
            if event in _ECHOES and '"prompt_progress"' in data:
                return progress_of(parse(data))
            return []
        if data.strip() == "[DONE]":
            self.done = True
            return []
        self._take(event, parse(data, event))
        out = self._out
        self._out = []
        return out

    def end(self) -> list[ModelEvent]:
        # Some servers send only [DONE] at the end; it counts if all items are complete.
        closed = bool(self._items) and all(item.whole is not None for item in self._items)
        if not self.finished and not (self.done and closed):
            raise WireFailure(Failure("the answer ended without its final event", cause="ended"))
        calls = self._calls()
        ready = [ToolCallReady(call.call_id, call.tool, "".join(call.pieces)) for call in calls]
        cause = as_dict(self._response.get("incomplete_details")).get("reason")
        reason: FinishReason = "tool_calls" if calls else "stop"
        if cause == "content_filter" or (self._refused and not calls):
            reason = "content_filter"
        elif cause or self._response.get("status") == "incomplete":
            reason = "length"
        places = self._places()
        blob = None
        if not all(_is_bare(place) for place in places):
            blob = json.dumps({"responses": places})
        return [*ready, *_usage(self, self._response), Finished(reason, blob)]

    def _calls(self) -> list[_Item]:
        return [item for item in self._items if item.type == "function_call"]

    def _take(self, event: str, value: dict[str, Any]) -> None:
        delta = value.get("delta")
        match value.get("type") or event:
            case "response.output_text.delta" | "response.refusal.delta":
                self._text(self._item(value, "message"), _part_of(value, "text"), delta)
            case "response.function_call_arguments.delta":
                self._arguments(self._item(value, "function_call"), delta)
            case "response.function_call_arguments.done":
                self._rest_of_arguments(self._item(value, "function_call"), value.get("arguments"))
            case "response.reasoning_summary_text.delta":
                self._reasoning(self._item(value, "reasoning"), _part_of(value, "summary"), delta)
            case "response.reasoning_text.delta":
                self._reasoning(self._item(value, "reasoning"), _part_of(value, "content"), delta)
            case "response.output_item.added":
                if isinstance(whole := value.get("item"), dict):
                    self._take_item(self._opened(value, whole.get("type")), whole)
            case "response.output_item.done":
                if isinstance(whole := value.get("item"), dict):
                    self._close(self._item(value, whole.get("type")), whole)
            case kind:
                self._take_rest(str(kind), value)

    def _take_rest(self, kind: str, value: dict[str, Any]) -> None:
        """Read an event about the whole answer; other events are ignored.

        Raises WireFailure if the provider reports that the answer failed or was cancelled.
        """
        response = value if value.get("object") == "response" else value.get("response")
        if isinstance(response, dict):
            status = kind.removeprefix("response.") if kind in _LAST else response.get("status")
            if status in ("failed", "cancelled"):
                error = response.get("error") or {"message": f"The response was {status}."}
                raise WireFailure(Failure(json.dumps({"error": error}, ensure_ascii=False)))
            if status in ("completed", "incomplete"):
                self._take_response(response)

    def _take_response(self, response: dict[str, Any]) -> None:
        """Read the final object for the answer, and take from it the items that weren't streamed.

        If the number of its items differs from the number streamed, its items are ignored.
        """
        self.finished = self.done = True
        self._response = response
        output = objects(response.get("output"))
        if not self._items:
            for index, whole in enumerate(output):
                self._close(self._opened({"output_index": index}, whole.get("type")), whole)
        elif len(output) == len(self._items):
            for item, whole in zip(self._items, output, strict=True):
                if item.whole is None and item.type == whole.get("type"):
                    self._close(item, whole)

    # -- items ----------------------------------------------------------------------------------------------

    def _item(self, value: dict[str, Any], kind: object) -> _Item:
        """Return the item of an event; a new one of the type ``kind`` if there is none yet."""
        item = self._by_key.get(_key(value))
        if item is None:
            return self._opened(value, kind)
        return item

    def _opened(self, value: dict[str, Any], kind: object) -> _Item:
        known = self._by_key.get(_key(value))
        if known is not None and known.whole is None and known.type == kind:
            return known
        item = _Item(str(kind), len(self._calls()))
        self._by_key[_key(value)] = item
        self._items.append(item)
        return item

    def _close(self, item: _Item, whole: dict[str, Any]) -> None:
        if item.whole is not None:
            return
        self._take_item(item, whole)
        item.whole = whole
        if item.type == "message":
            self._cite(objects(whole.get("content")))

    def _cite(self, parts: Sequence[dict[str, Any]]) -> None:
        """Append a list of cited sources that the text doesn't name.

        If the request asked for a web search, also pass on the cited pages as events.
        """
        text = "".join([as_text(part.get("text")) for part in parts])
        lines: dict[str, None] = {}
        for part in parts:
            if self._searches:
                self._out += _cited(part)
            for note in objects(part.get("annotations")):
                if line := _source(note, text):
                    lines[f"- {line}"] = None
        if lines:
            self._add("\n".join(["\n\nSources:", *lines]))

    def _take_item(self, item: _Item, whole: dict[str, Any]) -> None:
        """Read an event's new or complete item, and pass on what wasn't streamed yet."""
        match item.type:
            case "message":
                for index, part in enumerate(objects(whole.get("content"))):
                    self._refused = self._refused or part.get("type") == "refusal"
                    rest = item.rest_of(("text", index), part.get("text") or part.get("refusal"))
                    self._text(item, ("text", index), rest)
            case "reasoning":
                kind = item.first_kind or ("summary" if whole.get("summary") else "content")
                for index, part in enumerate(objects(whole.get(kind))):
                    place = (kind, index)
                    self._reasoning(item, place, item.rest_of(place, part.get("text")))
            case "function_call":
                if isinstance(tool := whole.get("name"), str):
                    item.tool = tool
                if not item.call_id:
                    given = whole.get("call_id") or whole.get("id")
                    item.call_id = self.ids.take(given if isinstance(given, str) else None)
                    self._out.append(ToolCallDelta(item.position, item.call_id, item.tool, ""))
                self._rest_of_arguments(item, whole.get("arguments"))

    # -- pieces ---------------------------------------------------------------------------------------------

    def _text(self, item: _Item, part: _Part, text: object) -> None:
        if not isinstance(text, str) or not text:
            return
        item.passed_on.setdefault(part, []).append(text)
        if self._runs and self._runs[-1][0] is item:
            self._runs[-1] = (item, self._runs[-1][1] + len(text))
        else:
            if self._runs:
                self._add(_BETWEEN)
            self._runs.append((item, len(text)))
        self._out.append(TextDelta(text))

    def _add(self, text: str) -> None:
        self._runs.append((None, len(text)))
        self._out.append(TextDelta(text))

    def _reasoning(self, item: _Item, part: _Part, text: object) -> None:
        if not isinstance(text, str) or not text:
            return
        item.passed_on.setdefault(part, []).append(text)
        place = (id(item), *part)
        between = _BETWEEN if self._thought not in (None, place) else ""
        self._thought = place
        self._out.append(ReasoningDelta(between + text))

    def _arguments(self, call: _Item, piece: object) -> None:
        if isinstance(piece, str) and piece:
            call.pieces.append(piece)
            self._out.append(ToolCallDelta(call.position, call.call_id, call.tool, piece))

    def _rest_of_arguments(self, call: _Item, whole: object) -> None:
        if isinstance(whole, dict):
            whole = json.dumps(whole, ensure_ascii=False)
        if not isinstance(whole, str):
            return
        sent = "".join(call.pieces)
        if whole.startswith(sent):
            self._arguments(call, whole[len(sent) :])
        elif not is_object(sent):
            call.pieces = [whole]

    # -- the end --------------------------------------------------------------------------------------------

    def _places(self) -> list[dict[str, Any]]:
        """Return the answer's items to send back, in order, with placeholders for text and calls.

        Returns [] if the texts of two messages were interleaved, so that they can't be told apart.
        """
        speakers = [item for item, _ in self._runs if item is not None]
        if [item for item in self._items if item.type == "message" and item.passed_on] != speakers:
            return []
        runs = iter(self._runs)
        places: list[dict[str, Any]] = []
        for item, own_id in self._kept():
            if item.type == "message":
                for speaker, chars in runs:
                    if speaker is item:
                        places.append(_place(item, own_id=own_id, chars=chars))
                        break
                    places.append({"type": "added", "chars": chars})
            elif item.type == "function_call":
                places.append(_place(item, own_id=own_id))
            elif item.whole is not None and isinstance(item.whole.get("type"), str):
                places.append(item.whole)
        for _, chars in runs:
            places.append({"type": "added", "chars": chars})
        return places

    def _kept(self) -> list[tuple[_Item, bool]]:
        """Return the items to send back, each paired with True if its id may be sent with it.

        The provider refuses a reasoning item without the item after it, so such reasoning is left
        out. It also refuses an item with its id if the reasoning before it is missing. In that case
        the id is left out or, for a call of the provider's own tools, the whole item.
        """
        kept: set[int] = set()
        followed = False
        for item in reversed(self._items):
            goes = item.goes_back and (followed or item.type != "reasoning")
            followed = goes and item.is_complete
            if goes:
                kept.add(id(item))
        found: list[tuple[_Item, bool]] = []
        reasoned: bool | None = None
        for item in self._items:
            if item.type == "reasoning":
                reasoned = id(item) in kept
            if id(item) in kept and (reasoned is not False or item.type not in _HOSTED):
                found.append((item, reasoned is True))
        return found


# -- fields of events ---------------------------------------------------------------------------------------


def _usage(reader: Reader, response: Mapping[str, Any]) -> list[ModelEvent]:
    reported = as_dict(response.get("usage"))
    read = as_dict(reported.get("input_tokens_details"))
    written = as_dict(reported.get("output_tokens_details"))
    numbers = {
        "prompt": reported.get("input_tokens"),
        "completion": reported.get("output_tokens"),
        "cache_read": read.get("cached_tokens"),
        "cache_write": read.get("cache_write_tokens"),
        "reasoning": written.get("reasoning_tokens"),
    }
    return reader.report(numbers, named_cost(reported))


def _key(value: dict[str, Any]) -> int | str | None:
    """Return the key in ``_by_key`` of an event's item.

    This is the event's ``output_index`` or, without one, the item's id.
    """
    index = value.get("output_index")
    if isinstance(index, int):
        return index
    own = value.get("item_id") or as_dict(value.get("item")).get("id")
    return own if isinstance(own, str) else None


def _part_of(value: dict[str, Any], kind: str) -> _Part:
    index = value.get("summary_index" if kind == "summary" else "content_index")
    return kind, index if isinstance(index, int) else 0


def _source(note: dict[str, Any], text: str) -> str | None:
    """Return a cited source as Markdown, that is, as a link or a file name.

    Returns None if the text already contains it.
    """
    url = note.get("url")
    title = note.get("title")
    if isinstance(url, str) and url:
        if url in text:
            return None
        if isinstance(title, str) and title and title != url:
            return f"[{title}]({url})"
        return url
    name = note.get("filename")
    if isinstance(name, str) and name and name not in text:
        return name
    return None


def _cited(part: Mapping[str, Any]) -> Iterator[ModelEvent]:
    """Yield a `PageFound` for each page that a text cites.

    The page's ``text`` is the words before the citation, from the line's start or the end of the
    previous citation.
    """
    text = as_text(part.get("text"))
    end = 0
    for note in objects(part.get("annotations")):
        start = note.get("start_index")
        if not isinstance(start, int) or not end <= start <= len(text):
            start = end
        begun = max(end, text.rfind("\n", 0, start) + 1)
        if url := as_text(note.get("url")):
            words = text[begun:start].strip(" -*•([.,")
            yield PageFound(url=url, title=as_text(note.get("title")), text=words)
        if isinstance(closes := note.get("end_index"), int) and start <= closes <= len(text):
            end = closes


def _is_bare(place: Mapping[str, Any]) -> bool:
    """Return True if the answer's text and calls are enough to restore a kept item."""
    return place.keys() <= _BARE and place.get("type") != "added"


def _place(item: _Item, *, own_id: bool, **more: object) -> dict[str, Any]:
    """Return the placeholder for a message or call.

    It omits the text, because the session's entry already contains the text.
    """
    whole = item.whole or {}
    fields: dict[str, Any] = {"type": item.type, **more}
    if own_id and isinstance(whole.get("id"), str):
        fields["id"] = whole["id"]
    if item.type == "message" and isinstance(whole.get("phase"), str):
        fields["phase"] = whole["phase"]
    return fields
