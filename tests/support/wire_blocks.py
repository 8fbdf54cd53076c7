"""Takes requests apart as a provider's cache sees them, in every wire format."""

import json
from typing import Any


def blocks(body: dict[str, Any]) -> list[str]:
    """Return what a request holds piece by piece, in the order a cache sees it, without the marks on it."""
    system = body.get("system", [])
    pieces = [("tools", tool) for tool in body.get("tools", [])]
    pieces += [("system", part) for part in ([system] if isinstance(system, str) else system)]
    pieces += [("system", part) for part in body.get("systemInstruction", {}).get("parts", ())]
    pieces += [(item.get("type", "message"), item) for item in body.get("input", ())]
    pieces += [
        (content["role"], part) for content in body.get("contents", ()) for part in content["parts"]
    ]
    for message in body.get("messages", ()):
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        pieces += [(message["role"], part) for part in parts]
        pieces += [("call", call) for call in message.get("tool_calls") or ()]
    return [json.dumps([role, _unmarked(piece)], ensure_ascii=False) for role, piece in pieces]


def _unmarked(piece: Any) -> Any:
    return (
        {k: v for k, v in piece.items() if k != "cache_control"}
        if isinstance(piece, dict)
        else piece
    )


def texts(body: dict[str, Any]) -> list[str]:
    """Return what a model reads of a request: every text, call and tool, without the JSON around them."""
    tools = [
        one for tool in body.get("tools", []) for one in tool.get("functionDeclarations", [tool])
    ]
    found = [json.dumps(tool, ensure_ascii=False, separators=(",", ":")) for tool in tools]
    found += map(_item_text, body.get("input", ()))
    found += [_gemini_text(part) for part in body.get("systemInstruction", {}).get("parts", ())]
    found += [
        _gemini_text(part) for content in body.get("contents", ()) for part in content["parts"]
    ]
    for message in [*body.get("system", []), *body.get("messages", ())]:
        content = message.get("content") or message.get("text") or ""
        found += [content] if isinstance(content, str) else map(_text, content)
        calls = (call["function"] for call in message.get("tool_calls") or ())
        found += [f"{call['name']}{call['arguments']}" for call in calls]
    return found


def _item_text(item: dict[str, Any]) -> str:
    """Return what a model reads of an item of OpenAI's Responses."""
    match item.get("type"):
        case "function_call":
            return f"{item['name']}{item['arguments']}"
        case "reasoning":
            return "".join(part["text"] for part in item["summary"])
        case _:
            content = item.get("output") or item.get("content") or ""
            return content if isinstance(content, str) else "".join(map(_text, content))


def _gemini_text(part: dict[str, Any]) -> str:
    """Return what a model reads of a part of a request to Gemini."""
    if call := part.get("functionCall"):
        return f"{call['name']}{json.dumps(call['args'], ensure_ascii=False)}"
    if result := part.get("functionResponse"):
        return "".join(map(str, result["response"].values()))
    return str(part.get("text") or "")


def _text(part: dict[str, Any]) -> str:
    match part["type"]:
        case "tool_use":
            return f"{part['name']}{json.dumps(part['input'], ensure_ascii=False)}"
        case "tool_result":
            content = part["content"]
            return content if isinstance(content, str) else "".join(map(_text, content))
        case _:
            return str(part.get("text") or part.get("thinking") or "")
