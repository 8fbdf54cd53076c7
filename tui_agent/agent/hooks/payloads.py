"""Defines the JSON that hooks read (payloads) and write (answers), as types.

``python -m tui_agent.agent.hooks.payloads`` prints the JSON schemas.
"""

import json
import sys
from typing import Any, Literal, Self, TypeVar, dataclass_transform, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter

from tui_agent.lazy import dataclass

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def _payload(kind: type[T]) -> type[T]:
    """Decorate a class as a frozen dataclass with keyword-only fields."""
    return dataclass(kind, frozen=True, kw_only=True)


# -- payloads ------------------------------------------------------------------------------------------------


@_payload
class About:
    """The session and directories of an event; part of every payload.

    ``parent`` is the ID of the session that a subagent works in; None for the main agent.
    """

    session: str = ""
    parent: str | None = None
    cwd: str = ""
    project: str = ""
    model: str = ""


@_payload
class EntryText:
    """One entry of the session, with its text as the summarising model receives it."""

    id: int
    kind: str
    text: str


@_payload
class Files:
    """Files that were read or modified in the entries to summarise or in earlier summaries.

    Paths are ordered by last use, the oldest first. A modified file is not listed as read.
    """

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


@_payload
class SessionStart:
    """Sent once per process and session, before the first message.

    ``resumed`` is True if the session already held messages.
    """

    event: Literal["session_start"] = "session_start"
    about: About
    resumed: bool


@_payload
class UserPrompt:
    """Sent before a user's message is added; ``mid_run`` is True if a run is in progress."""

    event: Literal["user_prompt"] = "user_prompt"
    about: About
    prompt: str
    mid_run: bool


@_payload
class BeforeTool:
    """Sent before a tool call is checked against the permission rules and run."""

    event: Literal["before_tool"] = "before_tool"
    about: About
    call_id: str
    tool: str
    arguments: dict[str, Any]


@_payload
class AfterTool:
    """Sent after a tool call; ``output`` is the text for the model, ``seconds`` how long it ran."""

    event: Literal["after_tool"] = "after_tool"
    about: About
    call_id: str
    tool: str
    arguments: dict[str, Any]
    output: str
    is_error: bool
    seconds: float


@_payload
class BeforeCompact:
    """Sent before a compaction, with everything the summary would be made from.

    ``entries`` and ``turn_prefix`` (the first part of a turn that is too large to keep whole) are
    summarised; ``conversation`` is their text as the summarising model receives it. Entries before
    ``first_kept_id`` are no longer sent to the model. ``branch`` holds all entries of the path,
    including those before an earlier summary. Sizes are in tokens: ``budget`` limits the whole
    history, ``summary_tokens`` the summary.
    """

    event: Literal["before_compact"] = "before_compact"
    about: About
    trigger: str
    focus: str | None
    entries: tuple[EntryText, ...]
    turn_prefix: tuple[EntryText, ...]
    branch: tuple[EntryText, ...]
    conversation: str
    previous_summary: str
    files: Files
    first_kept_id: int | None
    tokens_before: int
    tokens_summarised: int
    tokens_kept: int
    budget: int
    summary_tokens: int
    settings: dict[str, Any]


@_payload
class AfterCompact:
    """Sent after a compaction was recorded as the entry ``entry``.

    ``model`` is None if a hook or the program wrote the summary.
    """

    event: Literal["after_compact"] = "after_compact"
    about: About
    entry: int
    trigger: str
    summary: str
    first_kept_id: int | None
    tokens_before: int
    tokens_after: int
    model: str | None


@_payload
class BeforeTree:
    """Sent before the user moves to another entry.

    ``target`` is the entry the user chose. ``leaf`` is the new leaf. If ``target`` is a user's
    message, it returns to the prompt for editing, and ``leaf`` is the entry before it. ``old_leaf``
    is the current leaf, and ``entries`` are those that leave the path. An ID is None if it stands
    for the point before the first entry.

    ``wants_summary`` is True if the user asked for a summary of ``entries``; ``focus`` is what the
    summary should emphasise.
    """

    event: Literal["before_tree"] = "before_tree"
    about: About
    target: int | None
    leaf: int | None
    old_leaf: int | None
    common_ancestor: int | None
    wants_summary: bool
    focus: str
    entries: tuple[EntryText, ...]
    conversation: str
    files: Files
    settings: dict[str, Any]


@_payload
class AfterTree:
    """Sent after the user has moved to another entry.

    ``summary`` summarises the branch that was left, for the model; None if there is no summary.
    """

    event: Literal["after_tree"] = "after_tree"
    about: About
    leaf: int | None
    old_leaf: int | None
    summary: str | None


@_payload
class RunEnd:
    """Sent when a run has ended; ``answer`` is the model's last text."""

    event: Literal["run_end"] = "run_end"
    about: About
    reason: str
    error: str | None
    steps: int
    answer: str


@_payload
class BeforeEnd:
    """Sent before a run ends because the model considers the work done.

    ``answer`` is the model's last text; ``sent_back`` counts how often hooks made it continue in
    this run.
    """

    event: Literal["before_end"] = "before_end"
    about: About
    answer: str
    sent_back: int


@_payload
class PermissionQuestion:
    """Sent before the user is asked to allow a tool call; ``reason`` says why they are asked."""

    event: Literal["permission"] = "permission"
    about: About
    call_id: str
    tool: str
    arguments: dict[str, Any]
    reason: str


@_payload
class Notification:
    """Sent when the user is needed: for a question (``permission``), or after a run (``idle``)."""

    event: Literal["notification"] = "notification"
    about: About
    kind: Literal["permission", "idle"]
    message: str


@_payload
class SubagentStart:
    """Sent when a subagent starts a task."""

    event: Literal["subagent_start"] = "subagent_start"
    about: About
    agent: str
    task: str


@_payload
class SessionEnd:
    """Sent when a session is closed, because another one is opened or the program ends."""

    event: Literal["session_end"] = "session_end"
    about: About


Payload = (
    SessionStart
    | UserPrompt
    | BeforeTool
    | AfterTool
    | BeforeCompact
    | AfterCompact
    | BeforeTree
    | AfterTree
    | RunEnd
    | BeforeEnd
    | PermissionQuestion
    | Notification
    | SubagentStart
    | SessionEnd
)


# -- answers of hooks -----------------------------------------------------------------------------------------


class HookAnswer(BaseModel):
    """Base class of the hooks' answers. ``notice`` is a text that is shown to the user."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    notice: str = ""
    _hook: str = PrivateAttr(default="")

    @property
    def hook(self) -> str:
        """The hook that gave the answer, as its command and its place; "" if it isn't known."""
        return self._hook

    def given_by(self, hook: str) -> Self:
        """Return the answer as the answer of a hook, named by its command and its place."""
        answer = self.model_copy()
        answer._hook = hook  # noqa: SLF001 - of the same class
        return answer

    @classmethod
    def refusing(cls, reason: str) -> Self | None:  # noqa: ARG003 - for subclasses
        """Return a hook's answer that refuses an event with a reason.

        None if events of this type can't be refused.
        """
        return None

    @classmethod
    def telling(cls, text: str) -> Self:  # noqa: ARG003 - for subclasses
        """Return a hook's answer that gives ``text`` to the model.

        Returns an empty answer if the event's answers have no text for the model.
        """
        return cls()


class ContextAnswer(HookAnswer):
    """A hook's answer, whose ``context`` is a text for the model; "" if there is none."""

    context: str = ""

    @classmethod
    def telling(cls, text: str) -> Self:
        return cls(context=text)


class UserPromptAnswer(ContextAnswer):
    """A hook's answer to a user's message: ``block`` rejects it, with ``message`` as the reason.

    ``context`` is sent to the model together with the message.
    """

    block: bool = False
    message: str = ""

    @classmethod
    def refusing(cls, reason: str) -> Self:
        return cls(block=True, message=reason)


class BeforeToolAnswer(HookAnswer):
    """A hook's answer before a tool call.

    ``deny`` refuses the call, with ``message`` as the reason for the model. ``allow`` runs it
    without asking the user, unless a rule denies it. ``ask`` always asks the user, with ``message``
    as the reason. ``arguments`` replaces the call's arguments; None keeps them.
    """

    decision: Literal["allow", "deny", "ask"] | None = None
    message: str = ""
    arguments: dict[str, Any] | None = None

    @classmethod
    def refusing(cls, reason: str) -> Self:
        return cls(decision="deny", message=reason)


class AfterToolAnswer(HookAnswer):
    """A hook's answer after a tool call; ``append`` is added to the output for the model."""

    append: str = ""

    @classmethod
    def telling(cls, text: str) -> Self:
        return cls(append=text)


class SummaryAnswer(ContextAnswer):
    """A hook's answer before a compaction, or before a move to another entry.

    ``cancel`` stops the compaction or the move, with ``message`` as the reason. ``summary`` is used
    instead of one written by a model. ``context`` is added to the user's focus, for the model that
    writes the summary. ``details`` is stored with the entry; no model sees it.
    """

    cancel: bool = False
    message: str = ""
    summary: str = ""
    details: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def refusing(cls, reason: str) -> Self:
        return cls(cancel=True, message=reason)

    @property
    def kept_details(self) -> str:
        """The details that a hook stores with the entry, as JSON text; "" if there are none."""
        if not self.details:
            return ""
        return json.dumps(self.details, ensure_ascii=False)

    def focus(self, given: str | None) -> str:
        """Return the user's focus ``given``, then the hook's context; "" if there is neither."""
        return "\n\n".join(filter(None, [given, self.context.strip()]))


class CompactAnswer(SummaryAnswer):
    """A hook's answer before a compaction.

    ``first_kept`` is the first entry to keep, instead of the planned one; None keeps the plan.
    """

    first_kept: int | None = None


class BeforeEndAnswer(HookAnswer):
    """A hook's answer before a run ends.

    ``block`` makes the model continue, with ``message`` as its task.
    """

    block: bool = False
    message: str = ""

    @classmethod
    def refusing(cls, reason: str) -> Self:
        return cls(block=True, message=reason)


class PermissionQuestionAnswer(HookAnswer):
    """A hook's answer to a permission question, instead of the user's.

    If ``decision`` is None, the user is asked. ``message`` tells the model why the call was denied.
    """

    decision: Literal["allow", "deny"] | None = None
    message: str = ""

    @classmethod
    def refusing(cls, reason: str) -> Self:
        return cls(decision="deny", message=reason)


ANSWERS: dict[str, type[HookAnswer]] = {
    "session_start": ContextAnswer,
    "user_prompt": UserPromptAnswer,
    "before_tool": BeforeToolAnswer,
    "after_tool": AfterToolAnswer,
    "before_compact": CompactAnswer,
    "after_compact": HookAnswer,
    "before_tree": SummaryAnswer,
    "after_tree": HookAnswer,
    "run_end": HookAnswer,
    "before_end": BeforeEndAnswer,
    "permission": PermissionQuestionAnswer,
    "notification": HookAnswer,
    "subagent_start": HookAnswer,
    "session_end": HookAnswer,
}
"""The type of a hook's answer to each event."""


def schemas() -> dict[str, dict[str, Any]]:
    """Return, for each event, the JSON schemas of its payload (``given``) and its ``answer``."""
    found: dict[str, dict[str, Any]] = {}
    for given, (event, answer) in zip(get_args(Payload), ANSWERS.items(), strict=True):
        found[event] = {
            "given": TypeAdapter(given).json_schema(),
            "answer": answer.model_json_schema(),
        }
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schemas(), indent=1) + "\n")
