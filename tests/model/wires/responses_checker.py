"""What OpenAI's Responses refuse, written down from their documentation and error messages, not from our code.

Sources: API reference "Create a response"; the guides "Reasoning models" and "Conversation state"; the messages "Item
'rs_..' of type 'reasoning' was provided without its required following item", "Item 'msg_..' of type 'message' was
provided without its required 'reasoning' item", "No tool output found for function call", "Item with id 'rs_..' not
found. Items are not persisted when `store` is set to false".
"""

# ruff: noqa: PT018 - a rule is one sentence

import itertools
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

Item = dict[str, Any]

TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
ROLES = {"user", "assistant", "system", "developer"}


def check(body: Item, answers: Iterable[Sequence[Item]] = ()) -> None:
    """Fail unless a strict server takes the body; the message says why not.

    ``answers`` are the output items of every answer the server gave before: it knows what belongs together.
    """
    json.dumps(body, allow_nan=False)
    assert body.get("store") is False, "stored at the provider"
    assert "previous_response_id" not in body and "conversation" not in body, (
        "state at the provider"
    )
    assert isinstance(body.get("model"), str) and bool(body["model"]), "no model"
    assert body.get("max_output_tokens", 16) >= 16, "max_output_tokens below 16"
    assert 0 < len(body.get("prompt_cache_key", "x")) <= 64, "prompt_cache_key"
    for tool in body.get("tools", ()):
        _tool(tool)
    items = body["input"]
    assert items, "nothing is asked"
    for at, item in enumerate(items):
        _item(item, f"input[{at}]")
    _pairs(items)
    _reasoning(items, [list(answer) for answer in answers])


def _tool(tool: Item) -> None:
    assert tool["type"] == "function" and bool(TOOL_NAME.match(tool["name"])), (
        f"tool {tool.get('name')!r}"
    )
    assert "function" not in tool, "a tool in the format of chat completions"
    assert isinstance(tool["parameters"], dict), "parameters of a tool"
    # A strict schema has to name every property as required and forbid others; ours don't.
    assert tool.get("strict") is False, "strict"


def _item(item: Item, where: str) -> None:
    match item.get("type", "message"):
        case "message":
            _message(item, where)
        case "function_call":
            assert TOOL_NAME.match(item["name"]), f"{where}: name"
            assert isinstance(json.loads(item["arguments"]), dict), f"{where}: arguments"
            assert bool(item["call_id"]) and len(item["call_id"]) <= 64, f"{where}: call_id"
        case "function_call_output":
            if isinstance(item["output"], list):
                _inputs(item["output"], where)
            else:
                assert isinstance(item["output"], str), f"{where}: output"
        case "reasoning":
            assert isinstance(item["summary"], list) and bool(item["id"]), f"{where}: reasoning"
            held = item.get("encrypted_content") or item.get("content")
            assert held, f"{where}: item with id {item['id']!r} not found"
        case kind:
            assert kind.endswith("_call") or kind == "mcp_list_tools", f"{where}: {kind}"
            assert kind not in {"custom_tool_call", "local_shell_call", "shell_call"}, (
                f"{where}: no output for {kind}"
            )


def _message(item: Item, where: str) -> None:
    assert item["role"] in ROLES, f"{where}: role"
    content = item["content"]
    if "id" in item:
        assert item["role"] == "assistant", f"{where}: id"
        assert all(part["type"] in {"output_text", "refusal"} for part in content), (
            f"{where}: parts"
        )
        assert all(part["text"] for part in content) and bool(content), f"{where}: empty"
    elif isinstance(content, str):
        assert content, f"{where}: empty"
    else:
        assert item["role"] == "user", f"{where}: parts of {item['role']}"
        _inputs(content, where)
    assert "phase" not in item or item["role"] == "assistant", f"{where}: phase"


def _inputs(parts: Sequence[Item], where: str) -> None:
    assert parts, f"{where}: no parts"
    for part in parts:
        if part["type"] == "input_image":
            assert re.match(r"data:image/\w+;base64,[\w+/=]+$", part["image_url"]), (
                f"{where}: image"
            )
        else:
            assert part["type"] == "input_text" and bool(part["text"]), f"{where}: {part['type']}"


def _pairs(items: Sequence[Item]) -> None:
    """Every call has its output, behind all calls of its answer and before whatever comes next."""
    waiting: list[str] = []
    answered = False
    made = [item["call_id"] for item in items if item.get("type") == "function_call"]
    assert len(made) == len(set(made)), "a call id occurs twice"
    for at, item in enumerate(items):
        match item.get("type"):
            case "function_call_output":
                assert item["call_id"] in waiting, f"input[{at}]: no call {item['call_id']!r}"
                waiting.remove(item["call_id"])
                answered = True
                continue
            case "function_call":
                assert not (answered and waiting), f"no tool output found for {waiting}"
                waiting.append(item["call_id"])
            case _ if item.get("role") == "user":
                assert not waiting, f"no tool output found for {waiting}"
        answered = False
    assert not waiting, f"no tool output found for {waiting}"


def _reasoning(items: Sequence[Item], answers: Sequence[Sequence[Item]]) -> None:
    follower = {
        a["id"]: b
        for answer in answers
        for a, b in itertools.pairwise(answer)
        if a["type"] == "reasoning"
    }
    leader: dict[str, str] = {}
    for answer in answers:
        last = None
        for item in answer:
            last = item["id"] if item["type"] == "reasoning" else last
            if item["type"] != "reasoning" and last is not None:
                leader[item["id"]] = last
    given = {item["id"]: item for answer in answers for item in answer}
    sent: set[str] = set()
    for at, item in enumerate(items):
        own = item.get("id")
        if own is None:
            continue
        assert own not in sent, f"{own} is there twice"
        sent.add(own)
        assert own in given, f"nobody gave {own}"
        if item["type"] != "reasoning":
            assert leader.get(own, own) in sent or own not in leader, f"{own} without its reasoning"
            continue
        assert item == given[own], f"{own} is not as it was given"
        wanted = follower.get(own)
        after = items[at + 1] if at + 1 < len(items) else {}
        assert wanted is not None and after.get("id") == wanted["id"], (
            f"{own} without its required following item"
        )
