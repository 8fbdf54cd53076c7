"""What a scripted model says: turns, tool calls and the faults a provider can play."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

AUTO: Literal["auto"] = "auto"
"""Usage that is made up from the lengths of what was sent and answered."""

STANDARD_USAGE = {"input": 100, "output": 20}


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of a turn. ``arguments`` is JSON text (valid or not) or an object; ``call_id`` "" leaves it out."""

    tool: str
    arguments: str | Mapping[str, Any] = "{}"
    call_id: str | None = None
    pieces: int = 1

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(dict(self.arguments))


@dataclass(frozen=True, slots=True)
class Fault:
    """One way for the provider to fail. ``after`` counts chunks of the answer that are sent before it."""

    kind: Literal["status", "silent", "stall", "cut", "malformed", "stream_error"]
    after: int = 0
    status: int = 500
    message: str = ""
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer. ``usage`` None leaves it out, "auto" is about what the request holds.

    Its keys are input, output, cache_read, cache_write and reasoning.
    ``chunks`` is how many pieces the text is sent in (None: words) or the pieces themselves; ``delay`` the seconds
    before each; ``wire_bytes`` the size of the writes to the socket; ``events`` raw stream events instead of all.
    """

    text: str = ""
    tool_calls: Sequence[Call] = ()
    chunks: int | Sequence[str] | None = None
    delay: float = 0.0
    first_delay: float = 0.0
    reasoning: str = ""
    signature: str = "c2lnbmVk"
    redacted: str | None = None
    finish: str | None = None
    usage: Mapping[str, Any] | Literal["auto"] | None = AUTO
    wire_bytes: int | None = None
    fault: Fault | None = None
    events: Sequence[Mapping[str, Any]] | None = None

    def pieces(self) -> list[str]:
        """The text in the pieces it is sent in."""
        if self.chunks is None:
            words = self.text.split(" ")
            return [word if i == 0 else f" {word}" for i, word in enumerate(words)] if self.text else []
        if isinstance(self.chunks, int):
            return cut(self.text, self.chunks)
        return list(self.chunks)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Turn":
        """Build a turn from its JSON form, as a script file has it."""
        fields = dict(data)
        fields["tool_calls"] = tuple(Call(**call) for call in fields.get("tool_calls", ()))
        if fault := fields.get("fault"):
            fields["fault"] = Fault(**fault)
        return Turn(**fields)


@dataclass(slots=True)
class Recorded:
    """A request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int = 0
    aborted: bool = False
    """The client closed the connection before the answer was complete."""
    finished: bool = False

    @property
    def honest_usage(self) -> dict[str, int]:
        """About what a provider counts, and never less than the standard."""
        return {**STANDARD_USAGE, "input": max(STANDARD_USAGE["input"], len(self.body) // 4)}

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body) if self.body else {}

    @property
    def prompt(self) -> str:
        """Text of the last user message."""
        for message in reversed(self.json.get("messages") or self.json.get("input") or []):
            if message.get("role") == "user":
                content = message["content"]
                if isinstance(content, str):
                    return content
                return "".join(part.get("text", "") for part in content)
        return ""


Script = Sequence[Turn] | Callable[[Recorded], Turn]


def cut(text: str, count: int) -> list[str]:
    """Cut text into ``count`` pieces of about the same length."""
    count = max(1, min(count, len(text)) if text else 1)
    edges = [len(text) * i // count for i in range(count + 1)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]


def status(number: int, message: str = "", *, retry_after: str | None = None, **more: Any) -> Turn:
    """A turn that fails with an HTTP status."""
    headers = dict(more.pop("headers", {}))
    if retry_after is not None:
        headers["retry-after"] = retry_after
    return Turn(fault=Fault("status", status=number, message=message, headers=headers, **more))


def echo(request: Recorded) -> Turn:
    """Answer with what the user said."""
    return Turn(text=f"You said: {request.prompt}")


@dataclass(frozen=True, slots=True)
class Overflow:
    """How a provider says that the request does not fit; ``window`` and ``sent`` are what its text names."""

    provider: str
    status: int
    message: str
    window: int | None = None
    sent: int | None = None
    code: str | None = None


OVERFLOWS = (
    Overflow(
        "openai",
        400,
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 135123 tokens. "
        "Please reduce the length of the messages.",
        128000,
        135123,
        "context_length_exceeded",
    ),
    Overflow(
        "openai-responses",
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        code="context_length_exceeded",
    ),
    Overflow("anthropic", 400, "prompt is too long: 213462 tokens > 200000 maximum", 200000, 213462),
    Overflow(
        "anthropic-output",
        400,
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or "
        "`max_tokens` and try again",
        200000,
        190000,
    ),
    Overflow(
        "google",
        400,
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        1048575,
        1196265,
    ),
    Overflow(
        "mistral",
        400,
        "Prompt contains 40231 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32768,
        40231,
    ),
    Overflow(
        "groq",
        400,
        "Please reduce the length of the messages or completion.",
        code="context_length_exceeded",
    ),
    Overflow(
        "deepseek",
        400,
        "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens "
        "(66000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
        65536,
        66000,
    ),
    Overflow(
        "openrouter",
        400,
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 41122 tokens "
        "(33122 of text input, 8000 in the output). Please reduce the length of either one.",
        32768,
        33122,
    ),
    Overflow(
        "together",
        422,
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. "
        "Given: 9000 `inputs` tokens and 512 `max_new_tokens`",
        8193,
        9000,
    ),
    Overflow(
        "xai",
        400,
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        131072,
        537812,
    ),
    Overflow(
        "llama.cpp",
        400,
        "the request exceeds the available context size, try increasing it",
        code="exceed_context_size_error",
    ),
    Overflow(
        "llama.cpp-numbers",
        400,
        "request (9012 tokens) exceeds the available context size (8192 tokens), try increasing it",
        8192,
        9012,
        "exceed_context_size_error",
    ),
    Overflow(
        "lmstudio",
        400,
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 6021>= "
        "n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input",
        4096,
        6021,
    ),
    Overflow(
        "vllm",
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 "
        "tokens and your request has 5120 input tokens (4096 > 8192 - 5120).",
        8192,
        5120,
    ),
    Overflow("bedrock", 400, "Input is too long for requested model."),
    Overflow(
        "cohere",
        400,
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4610. Try using a "
        "shorter prompt",
        4081,
        4610,
    ),
    Overflow("ollama", 400, "prompt too long; exceeded max context length by 1210 tokens"),
    Overflow("cerebras", 400, "Current length is 9211 while limit is 8192", 8192, 9211, "context_length_exceeded"),
    Overflow(
        "kimi",
        400,
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 270001)",
        262144,
        270001,
    ),
    Overflow("minimax", 400, "invalid params, context window exceeds limit (2013)"),
    Overflow("copilot", 400, "prompt token count of 131500 exceeds the limit of 128000", 128000, 131500),
    Overflow(
        "fireworks",
        400,
        "The prompt is too long: 140201, model maximum context length: 131071",
        131071,
        140201,
    ),
    Overflow(
        "azure",
        400,
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 301004 tokens. "
        "Please reduce the length of the messages.",
        272000,
        301004,
        "context_length_exceeded",
    ),
    Overflow("zai", 400, "Prompt exceeds max length", code="1261"),
    Overflow(
        "huggingface",
        422,
        "Input validation error: `inputs` must have less than 4096 tokens. Given: 5001",
        4096,
        5001,
    ),
)
