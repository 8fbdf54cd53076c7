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
        return (
            self.arguments if isinstance(self.arguments, str) else json.dumps(dict(self.arguments))
        )


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
        if self.chunks is None:
            words = self.text.split(" ")
            return (
                [word if i == 0 else f" {word}" for i, word in enumerate(words)]
                if self.text
                else []
            )
        if isinstance(self.chunks, int):
            return cut(self.text, self.chunks)
        return list(self.chunks)


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
    headers = dict(more.pop("headers", {}))
    if retry_after is not None:
        headers["retry-after"] = retry_after
    return Turn(fault=Fault("status", status=number, message=message, headers=headers, **more))


def echo(request: Recorded) -> Turn:
    return Turn(text=f"You said: {request.prompt}")
