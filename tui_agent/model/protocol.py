"""The interface of model clients: one method that streams typed events, and one exception."""

from collections.abc import AsyncGenerator
from enum import StrEnum
from typing import Literal, Protocol

from tui_agent.context.request import ModelRequest
from tui_agent.errors import UserFacingError
from tui_agent.lazy import frozen
from tui_agent.session.entries import Usage

FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "pause"]
"""Why an answer ended. ``pause``: the provider continues it when the conversation is sent again."""


@frozen
class TextDelta:
    """More text of the answer."""

    text: str


@frozen
class ReasoningDelta:
    """More of the model's thinking."""

    text: str


@frozen
class TextWasReasoning:
    """The answer's text so far was reasoning, as a closing tag came without an opening one."""


@frozen
class ToolCallDelta:
    """A piece of a tool call; ``index`` distinguishes the calls of one answer."""

    index: int
    call_id: str
    tool: str
    arguments: str
    """The new piece of the arguments' JSON text."""


@frozen
class ToolCallReady:
    """A complete tool call. ``arguments`` is the JSON text as the model wrote it, valid or not."""

    call_id: str
    tool: str
    arguments: str


@frozen
class PageFound:
    """A page that the provider's own search found, or that the answer cites: then ``text`` is of it.

    ``day`` is the page's date as the provider writes it, "" where it names none.
    """

    url: str
    title: str = ""
    text: str = ""
    day: str = ""


@frozen
class UsageReport:
    """Tokens and price of the answer; ``cost`` is US dollars, None when unknown."""

    usage: Usage
    cost: float | None = None


@frozen
class PromptProgress:
    """Progress of reading the prompt: ``processed`` of ``total`` tokens, cached ones included."""

    processed: int
    total: int


@frozen
class LimitWindow:
    """A window of a plan: its name (``5 h``), the share used, when it resets (epoch seconds)."""

    name: str
    used: float
    resets_at: float | None


@frozen
class PlanSeen:
    """The provider named the limits of the plan; comes with the first words of an answer."""

    windows: tuple[LimitWindow, ...]


@frozen
class PartLeftOut:
    """The provider refused parts of the request, so it went out in another form.

    Comes before anything of the answer, or before its end, where that is odd.

    ``messages`` are sentences for the user. ``blobs`` are pictures, which can't be sent again
    either; ``reasoning`` says that the reasoning of earlier answers can't.
    """

    messages: tuple[str, ...]
    blobs: frozenset[str] = frozenset()
    reasoning: bool = False


@frozen
class Finished:
    """The last event of a stream that did not fail.

    ``reasoning_blob`` is the provider's JSON for its reasoning, to be sent back byte for byte.
    ``note`` is the provider's reason for refusing to answer, "" when it names none.
    """

    reason: FinishReason
    reasoning_blob: str | None = None
    note: str = ""
    marked: bool = True
    """The provider said that the answer is whole, or why not; else its connection just ended."""


ModelEvent = (
    PromptProgress
    | PlanSeen
    | PartLeftOut
    | TextDelta
    | ReasoningDelta
    | TextWasReasoning
    | ToolCallDelta
    | ToolCallReady
    | PageFound
    | UsageReport
    | Finished
)


class ErrorKind(StrEnum):
    """Why a model call failed, as far as it changes the next step."""

    CONTEXT_OVERFLOW = "context_overflow"
    RATE_LIMIT = "rate_limit"
    AUTH = "auth"
    QUOTA = "quota"
    NETWORK = "network"
    OVERLOADED = "overloaded"
    INVALID_REQUEST = "invalid_request"
    NOT_FOUND = "not_found"
    CONTENT_FILTER = "content_filter"
    HOST = "host"
    LOADING = "loading"
    """The server is there and loads the model, which takes minutes."""
    UNKNOWN = "unknown"


class ModelError(UserFacingError):
    """A model call failed.

    ``message`` is one sentence for a person with a remedy. ``retry_after`` is seconds the provider
    asked to wait. ``window`` and ``sent`` are the context window and the request in tokens, when an
    overflow error named them.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        retry_after: float | None = None,
        status: int | None = None,
        window: int | None = None,
        sent: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after = retry_after
        self.status = status
        self.window = window
        self.sent = sent


class ModelClient(Protocol):
    """Anything that can answer a request."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream the answer to a request.

        Closing the iterator (``aclose``) cancels the request at the provider.

        Raises:
            ModelError: the request failed, before or in the middle of the answer.
        """
        ...

    async def aclose(self) -> None:
        """Free everything the client holds; it is not used afterwards."""
        ...
