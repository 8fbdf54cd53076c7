"""What a model with an honest tokenizer counts; every text once, since each request repeats those before it."""

from functools import lru_cache

from tui_agent.context.request import Message, ModelRequest
from tui_agent.context.tokens import TokenCounter
from tui_agent.session.entries import ToolSchema


def request_size(request: ModelRequest) -> int:
    """Return the tokens of a request."""
    messages = sum(_message_size(request.model, message) for message in request.messages)
    return messages + sum(
        _tool_size(request.model, tool.model_dump_json()) for tool in request.tools
    )


@lru_cache(512)
def _message_size(model: str, message: Message) -> int:
    return TokenCounter(model).messages((message,))


@lru_cache(512)
def _tool_size(model: str, tool: str) -> int:
    return TokenCounter(model).schema(ToolSchema.model_validate_json(tool))
