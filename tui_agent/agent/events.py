"""The events of a run: what the full-screen app, the headless mode and any other way in see.

Entries are the truth; events say when to look. Every event is a frozen dataclass; times are
seconds.
"""

from dataclasses import field
from enum import StrEnum
from typing import Literal

from tui_agent.lazy import dataclass, frozen
from tui_agent.permission import PermissionNeed
from tui_agent.processes.jobs import JobState
from tui_agent.session.entries import Entry, RaceRunner, ToolMetadata

Severity = Literal["information", "warning", "error"]


@frozen
class RunStarted:
    """The agent began to work on queued messages."""


@frozen
class EntryAppended:
    """An entry was committed at the leaf."""

    entry: Entry


@frozen
class RequestStarted:
    """A request was sent. ``step`` counts from 1 within the run."""

    step: int
    model: str


@frozen
class PromptProgress:
    """The server (llama.cpp) has read ``processed`` of the request's ``total`` tokens, cached ones included."""

    processed: int
    total: int


@frozen
class AnswerDelta:
    """The next piece of the answer."""

    text: str


@frozen
class ReasoningProgress:
    """The next piece of the model's reasoning."""

    text: str


@frozen
class AnswerWasReasoning:
    """All of the answer so far was the model's reasoning: ``text``."""

    text: str


@frozen
class ToolCallProgress:
    """The model is writing a tool call; ``arguments`` is its JSON text so far."""

    call_id: str
    tool: str
    arguments: str


@frozen
class ToolStarted:
    """A call is allowed and runs."""

    call_id: str
    tool: str
    title: str
    arguments: str


@frozen
class ToolOutput:
    """Live output of a running call, raw: it may contain control characters."""

    call_id: str
    text: str


@frozen
class ToolFinished:
    """A call ended; its result follows as an entry."""

    call_id: str
    tool: str
    status: str
    metadata: ToolMetadata
    seconds: float


@frozen
class ChecksAwaited:
    """The next request waits briefly for these checkers of edited files."""

    checkers: tuple[str, ...]


class Decision(StrEnum):
    """Answers to a permission question."""

    ONCE = "once"
    SESSION = "session"
    PROJECT = "project"
    """In this project, in later sessions too. Offered where there are rules to make."""
    DENY = "deny"
    STOP = "stop"
    """Refuse, and end the run. Offered where ``PermissionRequest.loop`` is set."""


@frozen
class PermissionAnswer:
    """What the user decided; ``note`` tells the model what to do instead (with deny).

    ``patterns`` are those of the offered rules as the user changed them; empty to take them as
    offered.
    """

    decision: Decision
    note: str = ""
    patterns: tuple[str, ...] = ()


@frozen
class PermissionRequest:
    """A question to the user before a call runs.

    ``reason`` says why it asks; ``rules`` are the rules that "always in this session" would create,
    as shown. Without any, what is asked about can only be allowed once.
    """

    call_id: str
    tool: str
    title: str
    needs: tuple[PermissionNeed, ...]
    reason: str
    rules: tuple[str, ...]
    loop: tuple[str, ...] = ()
    """For a doom loop: what the repeated calls gave so far, oldest first."""
    question: str = ""
    """The question in its own words; empty: those of the needs."""
    once: str = "run it once more"
    """What a yes to a doom loop does."""
    command: str = ""
    """The whole command line, where only parts of it are asked about."""
    again: bool = False
    """The command has run and ended for want of what is asked about."""


@frozen
class PermissionAsked:
    """A call needs permission. The run waits for an answer; without a screen it is refused."""

    request: PermissionRequest


@frozen
class PermissionSettled:
    """The permission question was answered."""

    call_id: str
    decision: Decision


@frozen
class RetryScheduled:
    """The request failed and is repeated after ``seconds``.

    ``kept``: id of the entry with the failed attempt's text. ``loading``: seconds waited so far for
    a server that is loading the model; such waits don't count as attempts.
    """

    attempt: int
    attempts: int
    seconds: float
    reason: str
    kept: int | None = None
    loading: float | None = None


@frozen
class QueueChanged:
    """Waiting messages: ``steer`` is sent after the current step, ``follow_up`` when the agent is idle."""

    steer: tuple[str, ...] = ()
    follow_up: tuple[str, ...] = ()


@frozen
class MessageRefused:
    """A hook refused the user's message ``text``."""

    text: str
    reason: str


@frozen
class Notice:
    """A message for the user: information, warning or error.

    ``action`` names a command that helps, ``label`` what it does where that isn't its name.
    """

    message: str
    severity: Severity = "information"
    action: str | None = None
    label: str = ""


@frozen
class CacheMissed:
    """The provider did not find ``tokens`` of the ``expected`` tokens in its cache.

    ``cause`` is the reason, None if unknown.
    """

    tokens: int
    expected: int
    model: str
    cause: str | None = None


@frozen
class CompactionStarted:
    """The history is being summarised."""

    trigger: str
    tokens_before: int


@frozen
class CompactionProgress:
    """The next piece of the summary."""

    text: str


@frozen
class CompactionEnded:
    """The compaction was appended, or failed with ``error`` and changed nothing.

    ``steps`` names further measures that made room. ``trigger``: manual, threshold, overflow or
    model_switch.
    """

    error: str | None = None
    steps: tuple[str, ...] = ()
    trigger: str = "manual"


@frozen
class LeafMoved:
    """The session continues at another entry."""

    leaf: int | None


@frozen
class JobsChanged:
    """A background job started, ended or printed something.

    All jobs of the session, oldest first.
    """

    jobs: tuple[JobState, ...]


@frozen
class TitleChanged:
    """The session has a new title."""

    title: str


@frozen
class HeadKnown:
    """The system text and tools of a new session's first request are known."""


@frozen
class CostKnown:
    """The cost of a long session was added up."""


@frozen
class RaceStarted:
    """A race began at entry ``start``.

    ``most`` is its highest cost in US dollars, None if unknown.
    """

    race: str
    start: int | None
    prompt: str
    check: str
    runners: tuple[RaceRunner, ...]
    most: float | None


@frozen
class RunnerChanged:
    """A runner's state, check or figures changed. ``number`` counts from 1."""

    race: str
    number: int
    runner: RaceRunner


@frozen
class RaceEnded:
    """All runners of a race have ended. ``picked``: the runner chosen by ``--pick``.

    ``saved``: estimated US dollars saved by stopping the others early.
    """

    race: str
    picked: int | None = None
    saved: float = 0.0


@frozen
class RunEnded:
    """The agent is idle.

    ``reason``: done, interrupted, error, step_limit, stopped, budget, or length.

    ``length``: the last answer was cut off at a limit. ``error``: one sentence. ``needs_key``: the
    provider's key is missing or was refused. ``budget``: which one is used up, cost, tokens or
    time. ``check``: passed or failed.
    """

    reason: Literal["done", "length", "interrupted", "error", "step_limit", "stopped", "budget"]
    error: str | None = None
    steps: int = 0
    needs_key: bool = False
    budget: Literal["cost", "tokens", "time"] | None = None
    check: Literal["passed", "failed"] | None = None


AgentEvent = (
    RunStarted
    | EntryAppended
    | RequestStarted
    | PromptProgress
    | AnswerDelta
    | ReasoningProgress
    | AnswerWasReasoning
    | ToolCallProgress
    | ToolStarted
    | ToolOutput
    | ToolFinished
    | ChecksAwaited
    | PermissionAsked
    | PermissionSettled
    | RetryScheduled
    | QueueChanged
    | MessageRefused
    | Notice
    | CacheMissed
    | CompactionStarted
    | CompactionProgress
    | CompactionEnded
    | LeafMoved
    | TitleChanged
    | JobsChanged
    | CostKnown
    | HeadKnown
    | RaceStarted
    | RunnerChanged
    | RaceEnded
    | RunEnded
)


@dataclass
class LiveAnswer:
    """The answer being streamed right now, for a screen that opens in the middle of it."""

    text: str = ""
    reasoning: str = ""
    calls: list[ToolCallProgress] = field(default_factory=list)
