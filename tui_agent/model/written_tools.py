"""Rewrites requests for servers without tool calls, describing the tools in the prompt.

The model then writes calls in its answer's text, where `text_calls` finds them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from tui_agent.context.request import (
    ContentText,
    Message,
    ModelRequest,
    RequestToolCall,
    calls_in,
)
from tui_agent.session.entries import ToolSchema


def written(request: ModelRequest, words: str) -> ModelRequest:
    """Return the request with its tools, calls and results as text in the messages.

    ``words`` is the part of the prompt on how to call tools; ``{tools}`` in it is replaced by the
    tools' descriptions and schemas.
    """
    called = calls_in(request.messages)
    messages = [_as_text(message, called) for message in request.messages]
    if request.tools:
        messages = _with_words(messages, words.replace("{tools}", _listed(request.tools)))
    return replace(request, messages=tuple(messages), tools=(), tool_choice="auto")


def _with_words(messages: Sequence[Message], words: str) -> list[Message]:
    """Return the messages with ``words`` appended to the last of the initial system messages.

    If there is none, ``words`` become a system message.
    """
    head = list(takewhile(lambda message: message.role == "system", messages))
    if not head:
        return [Message("system", (ContentText(words),)), *messages]
    last = replace(head[-1], content=(*head[-1].content, ContentText(f"\n\n{words}")))
    return [*head[:-1], last, *messages[len(head) :]]


def _listed(tools: Sequence[ToolSchema]) -> str:
    return "\n\n".join([_told(tool) for tool in tools])


def _told(tool: ToolSchema) -> str:
    parameters = json.dumps(tool.parameters, ensure_ascii=False)
    return f"## {tool.name}\n{tool.description.strip()}\nParameters: {parameters}"


def _as_text(message: Message, called: Mapping[str, RequestToolCall]) -> Message:
    if message.role == "tool":
        call = called.get(message.call_id or "")
        name = call.tool if call is not None else "tool"
        heading = ContentText(f"Result of {name}:\n")
        return replace(message, role="user", content=(heading, *message.content), call_id=None)
    if not message.tool_calls:
        return message
    calls = ""
    for call in message.tool_calls:
        written = f'{{"name": {json.dumps(call.tool)}, "arguments": {call.arguments}}}'
        calls += f"\n<tool_call>\n{written}\n</tool_call>"
    content = (*message.content, ContentText(calls))
    return replace(message, content=content, tool_calls=())
