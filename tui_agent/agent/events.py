"""The events of a run: what the full-screen app, the headless mode and any other way in see.

Entries are the truth; events say when to look. Every event is a frozen dataclass; times are seconds.
"""

from dataclasses import field
from enum import StrEnum
from typing import Literal

from tui_agent.lazy import dataclass
from tui_agent.permission import PermissionNeed
from tui_agent.processes.jobs import JobState
from tui_agent.session.entries import Entry, RaceRunner, ToolMetadata


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The agent began to work on queued messages."""


@dataclass(frozen=True, slots=True)
class EntryAppended:
    """An entry was committed at the leaf."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """A request went out; nothing has come back. ``step`` counts from 1 within the run."""

    step: int
    model: str


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """The server is reading the request: ``processed`` of ``total`` tokens, those from its cache included."""

    processed: int
    total: int


@dataclass(frozen=True, slots=True)
class AnswerDelta:
    """More of the answer that is being streamed."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningProgress:
    """More of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallProgress:
    """A tool call is being written; ``arguments`` is all of its JSON text so far."""

    call_id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call passed its permission check and runs."""

    call_id: str
    tool: str
    title: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """Live output of a running call, raw (may hold control characters)."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A call ended; its ``tool_result`` entry follows as ``EntryAppended``."""

    call_id: str
    tool: str
    status: str
    metadata: ToolMetadata
    seconds: float


@dataclass(frozen=True, slots=True)
class ChecksAwaited:
    """The next request waits a moment for checkers of edited files, by their names."""

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


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """What the user decided; ``note`` tells the model what to do instead (with deny).

    ``patterns`` are those of the offered rules as the user changed them; empty to take them as offered.
    """

    decision: Decision
    note: str = ""
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """A question to the user before a call runs.

    ``reason`` says why it asks; ``rules`` are the rules that "always in this session" would create, as shown. Without
    any, what is asked about can only be allowed once.
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


@dataclass(frozen=True, slots=True)
class PermissionAsked:
    """The run waits for an answer, given with ``Agent.answer_permission(call_id, answer)``."""

    request: PermissionRequest


@dataclass(frozen=True, slots=True)
class PermissionSettled:
    """The question is no longer open."""

    call_id: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """The request failed and will be tried again after ``seconds`` (counted from now)."""

    attempt: int
    attempts: int
    seconds: float
    reason: str
    kept: int | None = None
    """The entry beside the path that holds what the failed attempt had said, if it had said anything."""
    loading: float | None = None
    """Seconds waited so far for a server that loads the model; such waits aren't counted as attempts."""


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """The messages that wait: ``steer`` go in after the current tool batch, ``follow_up`` when idle."""

    steer: tuple[str, ...] = ()
    follow_up: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MessageRefused:
    """A hook kept a message of the user's out of the conversation; ``text`` is what they typed."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the user should know that is no entry. ``action`` names a command that helps."""

    message: str
    severity: Literal["information", "warning", "error"] = "information"
    action: str | None = None


@dataclass(frozen=True, slots=True)
class CacheMissed:
    """The provider read so many tokens of the last request anew that it was expected to have in its cache.

    ``cause`` is why, as far as it is known (a ``BreakCause``), None when the provider alone knows.
    """

    tokens: int
    expected: int
    model: str
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class CompactionStarted:
    """The history is being summarised."""

    trigger: str
    tokens_before: int


@dataclass(frozen=True, slots=True)
class CompactionProgress:
    """More of the summary that is being written."""

    text: str


@dataclass(frozen=True, slots=True)
class CompactionEnded:
    """Compaction committed (its entry was appended), or there is none for the reason ``error`` gives.

    ``steps`` names what had to be done beside the summary. Without a commit the path is as it was.
    """

    error: str | None = None
    steps: tuple[str, ...] = ()
    trigger: str = "manual"


@dataclass(frozen=True, slots=True)
class LeafMoved:
    """The session's leaf is elsewhere: look at the path again."""

    leaf: int | None


@dataclass(frozen=True, slots=True)
class JobsChanged:
    """A background job started, ended or wrote something; all of the session's, oldest first."""

    jobs: tuple[JobState, ...]


@dataclass(frozen=True, slots=True)
class TitleChanged:
    """The session has a better title than its first message."""

    title: str


@dataclass(frozen=True, slots=True)
class HeadKnown:
    """What a new session's first request begins with was read: measure it again."""


@dataclass(frozen=True, slots=True)
class CostKnown:
    """What a long session has cost so far was added up."""


@dataclass(frozen=True, slots=True)
class RaceStarted:
    """A race began: its runners from ``start`` on, and the most it can cost in US dollars, None where nobody knows."""

    race: str
    start: int | None
    prompt: str
    check: str
    runners: tuple[RaceRunner, ...]
    most: float | None


@dataclass(frozen=True, slots=True)
class RunnerChanged:
    """A runner of a race is further: another state, an entry, a figure. ``number`` counts from 1."""

    race: str
    number: int
    runner: RaceRunner


@dataclass(frozen=True, slots=True)
class RaceEnded:
    """No runner of a race does anything any more; one may be taken. ``picked`` is who was first, if that was asked."""

    race: str
    picked: int | None = None
    saved: float = 0.0
    """US dollars that stopping the others early saved, at the rate they were spending."""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The agent is idle. ``error`` is one sentence for a person when it ended for another reason than being done.

    ``length``: the last answer was cut off at the model's or the server's limit.
    """

    reason: Literal["done", "length", "interrupted", "error", "step_limit", "stopped", "budget"]
    error: str | None = None
    steps: int = 0
    needs_key: bool = False
    """The error is that the provider wants a key, or another one."""
    budget: Literal["cost", "tokens", "time"] | None = None
    """What of its budget the run used up, where that is why it ended."""
    check: Literal["passed", "failed"] | None = None
    """How the project's check ended last, where one ran."""


AgentEvent = (
    RunStarted
    | EntryAppended
    | RequestStarted
    | PromptProgress
    | AnswerDelta
    | ReasoningProgress
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


@dataclass(slots=True)
class LiveAnswer:
    """The answer being streamed right now, for a screen that opens in the middle of it."""

    text: str = ""
    reasoning: str = ""
    calls: list[ToolCallProgress] = field(default_factory=list)
