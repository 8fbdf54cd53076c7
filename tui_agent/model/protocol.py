"""The interface of model clients: one method that streams typed events, and one exception."""

from collections.abc import AsyncGenerator
from enum import StrEnum
from typing import Literal, Protocol

from tui_agent.context.request import ModelRequest
from tui_agent.errors import UserFacingError
from tui_agent.lazy import frozen
from tui_agent.session.entries import Usage

FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "pause", "unmarked"]
"""The reason why an answer ended. ``length`` means that a limit was reached or that the answer was
cut off, ``pause`` that the provider continues the answer if the conversation is sent again."""


@frozen
class TextDelta:
    """The next piece of the answer's text."""

    text: str


@frozen
class ReasoningDelta:
    """The next piece of the model's thinking."""

    text: str


@frozen
class TextWasReasoning:
    """The answer's text so far was reasoning: it ended with ``</think>`` but had no ``<think>``."""


@frozen
class ToolCallDelta:
    """A piece of a tool call. ``index`` says to which of the answer's calls it belongs."""

    index: int
    call_id: str
    tool: str
    arguments: str
    """The new piece of the JSON text of the call's arguments."""


@frozen
class ToolCallReady:
    """A complete tool call. ``arguments`` is JSON text as the model wrote it, even if invalid."""

    call_id: str
    tool: str
    arguments: str


@frozen
class PageFound:
    """A page that the provider's web search found or the answer cites.

    ``text`` is the cited text or the answer's words before the citation, "" for a search result.
    ``day`` is the page's date as the provider writes it, "" if unknown.
    """

    url: str
    title: str = ""
    text: str = ""
    day: str = ""


@frozen
class UsageReport:
    """The tokens of a request and its answer, and their price.

    ``cost`` is in US dollars, None if unknown.
    """

    usage: Usage
    cost: float | None = None


@frozen
class PromptProgress:
    """Reports how much of the prompt the provider has read.

    ``processed`` of the ``total`` tokens have been read; both numbers include cached tokens.
    """

    processed: int
    total: int


@frozen
class LimitWindow:
    """The usage limit of a subscription for one period of time.

    ``name`` is the period (``5 h``), ``used`` the used share (1 is all), ``resets_at`` the end of
    the period in seconds since the epoch, None if unknown.
    """

    name: str
    used: float
    resets_at: float | None


@frozen
class PlanSeen:
    """The provider reported the subscription's usage.

    This event comes before the first piece of an answer.
    """

    windows: tuple[LimitWindow, ...]


@frozen
class PartLeftOut:
    """A notice that parts of the request that the provider can't use were changed or left out.

    It comes before the first piece of the answer. If it comes just before the end, it only warns
    that the answer may be incomplete. ``messages`` are sentences for the user. ``blobs`` are the
    pictures that were left out; ``reasoning`` is True if the reasoning of earlier answers was left
    out. These pictures and this reasoning have to be left out of later requests, too.
    """

    messages: tuple[str, ...]
    blobs: frozenset[str] = frozenset()
    reasoning: bool = False


@frozen
class Finished:
    """The last event of a stream that did not fail.

    ``reasoning_blob`` is JSON with the answer's reasoning, to be sent back with the answer; None if
    there is none. ``note`` is the provider's reason for refusing to answer, "" if it gives none.
    """

    reason: FinishReason
    reasoning_blob: str | None = None
    note: str = ""
    marked: bool = True
    """Whether the provider marked the end of the answer. Without a mark, the connection just
    ended."""


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
    """The kinds of model call failures that are handled differently."""

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
    """The server is running but still loading the model, which takes minutes."""
    UNKNOWN = "unknown"


class ModelError(UserFacingError):
    """Raised if a model call failed.

    ``message`` is for the user and includes a remedy. ``retry_after`` is the wait that the provider
    asks for, in seconds; ``status`` is the HTTP status. ``window`` and ``sent`` are the sizes of
    the context window and the request in tokens, if an overflow error states them.
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
    """Streams a model's answers to requests."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream the answer to a request.

        Closing the iterator (``aclose``) cancels the request at the provider.

        Raises:
            ModelError: the request failed, before or in the middle of the answer.
        """
        ...

    async def aclose(self) -> None:
        """Close all connections and processes. The client can't be used afterwards."""
        ...
