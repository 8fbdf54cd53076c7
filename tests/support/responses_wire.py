"""OpenAI's Responses as a scripted provider speaks them: output items, and the events that bring them."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.support.model_script import AUTO, STANDARD_USAGE, Recorded, Turn, cut

Item = dict[str, Any]
Event = tuple[str | None, dict[str, Any]]

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def reasoning(
    number: int, *, encrypted: str | None, summary: Sequence[str] = (), plain: str = ""
) -> Item:
    told = [{"type": "summary_text", "text": text} for text in summary]
    item: Item = {"id": f"rs_{number}", "type": "reasoning", "summary": told}
    if encrypted is not None:
        item["encrypted_content"] = encrypted
    if plain:
        item["content"] = [{"type": "reasoning_text", "text": plain}]
    return item


def message(
    number: int,
    text: str,
    *,
    phase: str | None = None,
    refusal: str = "",
    annotations: Sequence[Item] = (),
) -> Item:
    parts: list[Item] = []
    if text:
        parts.append(
            {"type": "output_text", "annotations": list(annotations), "logprobs": [], "text": text}
        )
    if refusal:
        parts.append({"type": "refusal", "refusal": refusal})
    item: Item = {"id": f"msg_{number}", "type": "message", "status": "completed", "content": parts}
    return item | ({"phase": phase} if phase else {}) | {"role": "assistant"}


def function_call(number: int, tool: str, arguments: str, call_id: str | None = None) -> Item:
    call_id = f"call_{number}" if call_id is None else call_id
    item: Item = {
        "id": f"fc_{number}",
        "type": "function_call",
        "status": "completed",
        "arguments": arguments,
    }
    return item | {"call_id": call_id, "name": tool}


def response(
    output: Sequence[Item],
    *,
    status: str = "completed",
    reason: str | None = None,
    usage: Mapping[str, Any] | None = None,
    error: Mapping[str, Any] | None = None,
) -> Item:
    """A response as it stands at its end."""
    details = {"reason": reason} if reason else None
    head: Item = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "error": error,
    }
    return head | {
        "incomplete_details": details, "model": "scripted", "output": list(output), "store": False, "usage": usage,
    }  # fmt: skip


def stream(end: Item, *, pieces: int = 3, pieces_of: Mapping[str, int] | None = None) -> list[Item]:
    """The events that bring a response, each item's text in so many pieces, some items' by their ids in others."""
    start = {
        **end,
        "status": "in_progress",
        "output": [],
        "usage": None,
        "incomplete_details": None,
    }
    events: list[Item] = [
        {"type": f"response.{kind}", "response": start} for kind in ("created", "in_progress")
    ]
    for index, item in enumerate(end["output"]):
        events += _item_events(index, item, (pieces_of or {}).get(item["id"], pieces))
    events.append({"type": f"response.{end['status']}", "response": end})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _item_events(index: int, item: Item, pieces: int) -> Iterator[Item]:
    place = {"output_index": index, "item_id": item.get("id")}
    yield {"type": "response.output_item.added", "output_index": index, "item": _opened(item)}
    match item["type"]:
        case "message":
            for at, part in enumerate(item["content"]):
                yield from _part_events(place | {"content_index": at}, part, pieces)
        case "reasoning":
            for at, part in enumerate(item["summary"]):
                where = place | {"summary_index": at}
                yield {
                    "type": "response.reasoning_summary_part.added",
                    **where,
                    "part": part | {"text": ""},
                }
                for piece in cut(part["text"], pieces):
                    yield {"type": "response.reasoning_summary_text.delta", **where, "delta": piece}
                yield {
                    "type": "response.reasoning_summary_text.done",
                    **where,
                    "text": part["text"],
                }
            for at, part in enumerate(item.get("content") or ()):
                where = place | {"content_index": at}
                for piece in cut(part["text"], pieces):
                    yield {"type": "response.reasoning_text.delta", **where, "delta": piece}
        case "function_call":
            for piece in cut(item["arguments"], pieces):
                yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield {"type": "response.function_call_arguments.done", **place, **done}
        case kind:
            yield {"type": f"response.{kind}.in_progress", **place}
            yield {"type": f"response.{kind}.completed", **place}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _part_events(where: Item, part: Item, pieces: int) -> Iterator[Item]:
    kind, key = ("output_text", "text") if part["type"] == "output_text" else ("refusal", "refusal")
    yield {"type": "response.content_part.added", **where, "part": part | {key: ""}}
    for piece in cut(part[key], pieces):
        yield {"type": f"response.{kind}.delta", **where, "delta": piece}
    for number, note in enumerate(part.get("annotations") or ()):
        told = {"annotation_index": number, "annotation": note}
        yield {"type": "response.output_text.annotation.added", **where, **told}
    yield {"type": f"response.{kind}.done", **where, key: part[key]}
    yield {"type": "response.content_part.done", **where, "part": part}


def _opened(item: Item) -> Item:
    """An item as it is when it opens: half of its encrypted content stands there already, nothing of its text."""
    encrypted = (item.get("encrypted_content") or "")[:3]
    opened = {
        "content": [],
        "arguments": "",
        "summary": [],
        "encrypted_content": encrypted,
        "status": "in_progress",
    }
    return {name: opened.get(name, value) for name, value in item.items()}


# -- scripted turns -------------------------------------------------------------------------------------------


def usage(turn: Turn) -> dict[str, Any] | None:
    if turn.usage is None:
        return None
    told = STANDARD_USAGE if turn.usage == AUTO else turn.usage
    cached = told.get("cache_read", 0)
    read = told.get("input", 0)
    read = read + cached if isinstance(read, int) and isinstance(cached, int) else read
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": told.get("output", 0),
        "total_tokens": sum(
            part for part in (read, told.get("output", 0)) if isinstance(part, int)
        ),
        "output_tokens_details": {"reasoning_tokens": told.get("reasoning", 0)},
    }


def output(turn: Turn, number: int) -> list[Item]:
    numbers = itertools.count(number * 100)
    items: list[Item] = []
    if turn.reasoning:
        items.append(reasoning(next(numbers), encrypted=turn.signature, summary=[turn.reasoning]))
    if turn.text:
        items.append(message(next(numbers), turn.text))
    for index, call in enumerate(turn.tool_calls):
        call_id = f"call_{number}_{index}" if call.call_id is None else call.call_id
        items.append(function_call(next(numbers), call.tool, call.text, call_id))
    return items


def responses_answer(turn: Turn, _request: Recorded, number: int) -> dict[str, Any]:
    reason = _INCOMPLETE.get(turn.finish or "")
    return response(
        output(turn, number),
        status="incomplete" if reason else "completed",
        reason=reason,
        usage=usage(turn),
    )


def responses_events(turn: Turn, request: Recorded, number: int) -> Iterator[Event]:
    pieces = turn.chunks if isinstance(turn.chunks, int) else max(1, len(turn.pieces()))
    end = responses_answer(turn, request, number)
    ids = [item["id"] for item in end["output"] if item["type"] == "function_call"]
    calls = {own: call.pieces for own, call in zip(ids, turn.tool_calls, strict=True)}
    for event in stream(end, pieces=pieces, pieces_of=calls):
        yield event["type"], event
