"""The events that an agent emits for its frontends.

Every event is a frozen dataclass; durations are in seconds. All content that is kept is in entries;
the events only report that something is new. Also defines the questions to the user and their
answers, which frontends give to `Agent.answer_permission`.
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
    """A run began."""


@frozen
class EntryAppended:
    """An entry was stored on the path; it is the leaf unless others were stored right after it."""

    entry: Entry


@frozen
class RequestStarted:
    """A request is being sent to ``model``. ``step`` counts from 1 within the run."""

    step: int
    model: str


@frozen
class PromptProgress:
    """The server (llama.cpp) has read ``processed`` of the request's ``total`` tokens.

    Both numbers include cached tokens.
    """

    processed: int
    total: int


@frozen
class AnswerDelta:
    """The next piece of the model's answer."""

    text: str


@frozen
class ReasoningProgress:
    """The next piece of the model's reasoning."""

    text: str


@frozen
class AnswerWasReasoning:
    """All of the answer's text so far turned out to be reasoning; ``text`` repeats it."""

    text: str


@frozen
class ToolCallProgress:
    """The model is writing a tool call; ``arguments`` is its JSON text so far."""

    call_id: str
    tool: str
    arguments: str


@frozen
class ToolStarted:
    """A tool call was allowed and runs now; ``arguments`` is JSON text."""

    call_id: str
    tool: str
    title: str
    arguments: str


@frozen
class ToolOutput:
    """The next piece of a running tool call's output; it may contain control characters."""

    call_id: str
    text: str


@frozen
class ToolFinished:
    """A tool call ended; its result follows as an entry."""

    call_id: str
    tool: str
    status: str
    metadata: ToolMetadata
    seconds: float


@frozen
class ChecksAwaited:
    """The next request waits briefly until these checkers have checked the edited files."""

    checkers: tuple[str, ...]


class Decision(StrEnum):
    """The decisions with which the user can answer a permission question."""

    ONCE = "once"
    SESSION = "session"
    PROJECT = "project"
    """Allow the call in this project, now and in later sessions.

    Offered if the request has ``rules``.
    """
    DENY = "deny"
    STOP = "stop"
    """Deny the call and end the run. Offered if the request has a ``loop``."""


@frozen
class PermissionAnswer:
    """The user's answer to a permission question: a decision, with a ``note`` for the model.

    After a denial, the note says what to do instead, and is part of the call's result. After an
    approval, it is sent with the run's next step, as a message from the user.

    ``patterns`` are the patterns of the offered rules as the user edited them; empty if not edited.
    """

    decision: Decision
    note: str = ""
    patterns: tuple[str, ...] = ()


@frozen
class PermissionRequest:
    """A question to the user: may a call run, or may a run go on (budget, repetition)?

    ``reason`` says why the user is asked, as a clause. ``rules`` are the texts of the rules that
    are created if the user allows the call for the session or project; if there are none, the call
    can be allowed only once.
    """

    call_id: str
    tool: str
    title: str
    needs: tuple[PermissionNeed, ...]
    reason: str
    rules: tuple[str, ...]
    loop: tuple[str, ...] = ()
    """The outputs of a doom loop's calls, oldest first.

    If the question is about an answer that repeats itself, contains the repeated text twice. Empty
    if the question is about something else.
    """
    question: str = ""
    """The text of the question; if it is "", screens describe ``needs`` instead."""
    once: str = "run it once more"
    """Label of the user's answer that lets a doom loop continue once."""
    command: str = ""
    """The call's command line; ``needs`` may concern only parts of it. "" if it runs no command."""
    again: bool = False
    """Whether the command has already run, and failed without the permissions in ``needs``."""


@frozen
class PermissionAsked:
    """The user is asked for permission, and the run waits for the answer.

    A frontend without a user has to answer with a denial.
    """

    request: PermissionRequest


@frozen
class PermissionSettled:
    """The user answered a permission question, or it was withdrawn, which counts as "deny"."""

    call_id: str
    decision: Decision


@frozen
class QuestionAsked:
    """The model or an MCP server asks the user a question; the tool call waits for the answer.

    ``text`` is the question, or the first of several.
    """

    text: str


@frozen
class QuestionsAnswered:
    """All questions from the model and from MCP servers have been answered or withdrawn."""


@frozen
class RetryScheduled:
    """A request failed and is repeated after ``seconds``.

    ``attempt`` is the number of the failed attempt, ``attempts`` the maximum number of attempts.
    ``kept`` is the id of the entry with the failed answer; None if the answer had no content. If
    the server is still loading the model, ``loading`` is the number of seconds waited for it so
    far, and the attempt doesn't count; otherwise it is None.
    """

    attempt: int
    attempts: int
    seconds: float
    reason: str
    kept: int | None = None
    loading: float | None = None


@frozen
class QueueChanged:
    """The queue of the user's waiting messages changed.

    ``steer`` are the messages for the next step, ``follow_up`` those for when the agent is idle.
    ``checked`` are the messages that come before these: their hooks are running, and they can't be
    taken back.
    """

    steer: tuple[str, ...] = ()
    follow_up: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()


@frozen
class HookAwaited:
    """The agent has been waiting for ``seconds`` until the hook ``name`` answers.

    ``event`` is the event for which the hook runs. `HookAnswered` follows.
    """

    event: str
    name: str
    seconds: float

    @property
    def sentence(self) -> str:
        return f"Waiting for the {self.event} hook “{self.name}”."


@frozen
class HookAnswered:
    """The agent no longer waits for the hook ``name``, which answered, failed or was stopped."""

    event: str
    name: str


@frozen
class MessageRefused:
    """A hook refused the user's message ``text``."""

    text: str
    reason: str


@frozen
class Notice:
    """A message to show to the user.

    ``action`` is the name of a command to offer with it, None if there is none; ``label`` is the
    text of that offer, "" for the command's name.
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
    """A compaction began; ``tokens_before`` is the history's size before it."""

    trigger: str
    tokens_before: int


@frozen
class CompactionProgress:
    """The next piece of the summary."""

    text: str


@frozen
class CompactionEnded:
    """A compaction ended.

    ``error`` is a sentence that says why nothing was changed, None for success. ``steps`` describes
    further measures that made room. ``trigger`` is manual, threshold, overflow or model_switch.
    """

    error: str | None = None
    steps: tuple[str, ...] = ()
    trigger: str = "manual"


@frozen
class LeafMoved:
    """The session's leaf, that is, its current entry, is now the entry with the id ``leaf``.

    None stands for the point before the first entry.
    """

    leaf: int | None


@frozen
class JobsChanged:
    """A job started, ended or printed something; ``jobs`` are the session's jobs, oldest first."""

    jobs: tuple[JobState, ...]


@frozen
class TitleChanged:
    """The session has a new title."""

    title: str


@frozen
class HeadKnown:
    """The system prompt and tools of a new session's first request are now known.

    Screens can then show the size of that request before a message is sent.
    """


@frozen
class CostKnown:
    """The session's cost changed without a new answer, or was added up for a long session."""


@frozen
class RaceStarted:
    """A race began at entry ``start``.

    ``most`` is its maximum cost in US dollars, None if unknown.
    """

    race: str
    start: int | None
    prompt: str
    check: str
    runners: tuple[RaceRunner, ...]
    most: float | None


@frozen
class RunnerChanged:
    """The state, check or figures of a race's runner changed. ``number`` counts from 1."""

    race: str
    number: int
    runner: RaceRunner


@frozen
class RaceEnded:
    """All runners of a race have ended.

    ``picked`` is the number of the runner that was picked automatically; None if none was.
    ``saved`` is an estimate of the US dollars saved by stopping the other runners early.
    """

    race: str
    picked: int | None = None
    saved: float = 0.0


@frozen
class RunEnded:
    """A run ended and the agent is idle.

    ``reason`` says why it ended; "length" means that the last answer was cut off at its token
    limit, "unmarked" that the server ended it without marking it as complete. ``error`` is a
    sentence for the user; None if there is nothing to say. ``needs_key`` is True if the provider's
    API key is missing or was refused. ``budget`` is the budget that is used up; None if the run
    ended for another reason. ``check`` is the result of the project's check; None if it did not
    run.
    """

    reason: Literal[
        "done", "length", "unmarked", "interrupted", "error", "step_limit", "stopped", "budget"
    ]
    error: str | None = None
    steps: int = 0
    needs_key: bool = False
    budget: Literal["cost", "tokens", "time"] | None = None
    check: Literal["passed", "failed"] | None = None

    @property
    def has_answer(self) -> bool:
        """Whether the run ended with an answer of the model, possibly an incomplete one."""
        return self.reason in {"done", "length", "unmarked"}


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
    | QuestionAsked
    | QuestionsAnswered
    | RetryScheduled
    | QueueChanged
    | HookAwaited
    | HookAnswered
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
    """The part of the answer streamed so far, for a screen that opens in the middle of it."""

    text: str = ""
    reasoning: str = ""
    calls: list[ToolCallProgress] = field(default_factory=list)
