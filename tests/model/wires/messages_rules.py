"""What Anthropic's Messages interface refuses, from its documentation and its error texts, not from our code.

Sources: platform.claude.com/docs, "Messages", "Define tools", "Handle tool calls", "Vision", "Thinking", "Preserved
thinking", "Prompt caching"; the wording of its 400s as public reports quote it.
"""

# ruff: noqa: PT018 - a rule is one sentence

import re
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
THINKING = {"thinking", "redacted_thinking"}
OF_USER = {"text", "image", "tool_result"}


def check(body: dict[str, Any], headers: dict[str, str]) -> None:
    """Fail unless the request is one the interface accepts; the message says where and why not."""
    assert headers.get("anthropic-version") == "2023-06-01", "anthropic-version"
    assert isinstance(body["max_tokens"], int) and body["max_tokens"] >= 1, "max_tokens"
    _thinking(body, headers)
    for tool in body.get("tools", ()):
        _tool(tool)
    assert not ("tool_choice" in body and not body.get("tools")), "tool_choice without tools"
    for block in body.get("system", ()):
        assert block["type"] == "text", "system: only text"
        _text(block["text"], "system")
    turns = body["messages"]
    assert turns, "messages: at least one"
    compacts = "compaction" in body or turns[0]["content"][0]["type"] == "compaction"
    assert not compacts or "compact-2026-09-04" in headers.get("anthropic-beta", ""), (
        "compaction: beta"
    )
    assert not (compacts and "context_management" in body), "compaction beside context_management"
    assert turns[0]["role"] == "user", "first message must use the user role"
    asked: list[str] = []
    server_calls: set[str] = set()
    seen: set[str] = set()
    for at, turn in enumerate(turns):
        where = f"messages.{at}"
        assert turn["role"] in ("user", "assistant"), f"{where}: role {turn['role']}"
        assert at == 0 or turns[at - 1]["role"] != turn["role"], f"{where}: roles must alternate"
        assert turn["content"], f"{where}: content must not be empty"
        if turn["role"] == "user":
            _user(turn["content"], asked, where)
            asked = []
        else:
            assert not asked, f"{where}: tool_use ids without tool_result: {asked}"
            asked = _assistant(turn["content"], where, server_calls)
            assert not seen.intersection(asked), f"{where}: tool_use ids must be unique"
            seen.update(asked)
    assert not asked, f"tool_use ids without tool_result blocks: {asked}"
    _end(turns)
    _marks(body)


def _thinking(body: dict[str, Any], headers: dict[str, str]) -> None:
    thinking = body.get("thinking")
    betas = headers.get("anthropic-beta", "").split(",")
    if thinking is None:
        return
    assert thinking["type"] in ("adaptive", "enabled", "disabled", "between_tools"), (
        f"thinking.type {thinking}"
    )
    if thinking["type"] == "enabled":
        assert thinking["budget_tokens"] >= 1024, "thinking.budget_tokens: at least 1024"
        assert thinking["budget_tokens"] < body["max_tokens"], (
            "max_tokens must be greater than budget_tokens"
        )
        assert "output_config" not in body, "effort beside a budget"
        _begins_with_thinking(body["messages"])
    else:
        assert "budget_tokens" not in thinking, "budget_tokens: extra input"
    assert "block_binding" not in thinking or thinking["type"] == "adaptive", (
        "block_binding with thinking off"
    )
    assert "block_binding" not in thinking or "thinking-binding-controls-2026-08-01" in betas, (
        "block_binding: beta"
    )


def _begins_with_thinking(turns: list[dict[str, Any]]) -> None:
    """When thinking is enabled, the assistant's turn that is being gone on with must start with a thinking block."""
    begun = None
    for turn in turns:
        if turn["role"] == "assistant":
            begun = begun or turn
        elif all(block["type"] != "tool_result" for block in turn["content"]):
            begun = None
    if begun is not None:
        assert begun["content"][0]["type"] in THINKING, (
            "expected thinking, but found something else"
        )


def _tool(tool: dict[str, Any]) -> None:
    if "type" in tool and tool["type"] != "custom":
        return
    assert NAME.fullmatch(tool["name"]), f"tools: name {tool['name']!r}"
    schema = tool["input_schema"]
    assert schema.get("type") == "object", "tools: input_schema.type"
    for word in ("oneOf", "allOf", "anyOf"):
        assert word not in schema, f"tools: input_schema does not support {word} at the top level"


def _user(blocks: list[dict[str, Any]], asked: list[str], where: str) -> None:
    waiting, others = list(asked), False
    if blocks[0]["type"] == "compaction":
        assert where == "messages.0", f"{where}: compaction_block_misplaced"
        assert blocks[0].keys() == {"type", "content", "signature"}, (
            f"{where}: extra inputs are not permitted"
        )
        blocks = blocks[1:]
    for at, block in enumerate(blocks):
        place = f"{where}.content.{at}"
        assert block["type"] in OF_USER, f"{place}: {block['type']} in a user turn"
        if block["type"] != "tool_result":
            others = True
            _content(block, place)
            continue
        assert not others, f"{place}: tool_result must come first"
        assert block["tool_use_id"] in waiting, (
            f"{place}: unexpected tool_use_id {block['tool_use_id']!r}"
        )
        waiting.remove(block["tool_use_id"])
        assert block.get("is_error") in (None, True, False), f"{place}: is_error"
        for inner in block.get("content", ()):
            assert inner["type"] in ("text", "image"), f"{place}: {inner['type']} in a result"
            _content(inner, place)
    assert not waiting, f"{where}: tool_use ids were found without tool_result blocks: {waiting}"


def _assistant(blocks: list[dict[str, Any]], where: str, server_calls: set[str]) -> list[str]:
    asked = []
    for at, block in enumerate(blocks):
        place = f"{where}.content.{at}"
        match block["type"]:
            case "text":
                _text(block["text"], place)
                assert "chars" not in block, f"{place}: extra input"
            case "thinking":
                assert isinstance(block.get("thinking"), str), f"{place}.thinking"
                assert block.get("signature"), f"{place}.signature: field required"
            case "redacted_thinking":
                assert block.get("data"), f"{place}.data: field required"
            case "tool_use":
                assert CALL_ID.fullmatch(block["id"]), f"{place}.id: {block['id']!r}"
                assert NAME.fullmatch(block["name"]), f"{place}.name: {block['name']!r}"
                assert isinstance(block["input"], dict), f"{place}.input: should be an object"
                asked.append(block["id"])
            case "server_tool_use":
                assert isinstance(block["input"], dict), f"{place}.input: should be an object"
                server_calls.add(block["id"])
            case "image" | "tool_result" | "added":
                raise AssertionError(f"{place}: {block['type']} in an assistant turn")
            case kind if kind.endswith("_tool_result"):
                assert block["tool_use_id"] in server_calls, (
                    f"{place}: result without its server_tool_use"
                )
            case _:
                pass
    assert len(asked) == len(set(asked)), f"{where}: tool_use ids must be unique"
    return asked


def _content(block: dict[str, Any], where: str) -> None:
    if block["type"] == "text":
        _text(block["text"], where)
        return
    source = block["source"]
    assert source["media_type"] in IMAGES, f"{where}: media_type {source['media_type']}"
    assert source["data"], f"{where}: empty image"


def _text(text: Any, where: str) -> None:
    assert isinstance(text, str) and text.strip(), (
        f"{where}: text content blocks must contain non-whitespace text"
    )


def _end(turns: list[dict[str, Any]]) -> None:
    last = turns[-1]["content"][-1]
    if turns[-1]["role"] == "assistant" and last["type"] == "text":
        assert last["text"] == last["text"].rstrip(), (
            "final assistant content cannot end with trailing whitespace"
        )


def _marks(body: dict[str, Any]) -> None:
    blocks = [*body.get("tools", ()), *body.get("system", ())]
    for turn in body["messages"]:
        blocks += turn["content"]
    marked = [block for block in blocks if "cache_control" in block]
    assert len(marked) <= 4, (
        f"a maximum of 4 blocks with cache_control may be provided, found {len(marked)}"
    )
    ttls = [block["cache_control"].get("ttl", "5m") for block in marked]
    assert ttls == sorted(ttls), "a mark of an hour must not come after one of 5 minutes"
    for block in marked:
        assert block.get("type") not in THINKING, f"cache_control on {block.get('type')}"
