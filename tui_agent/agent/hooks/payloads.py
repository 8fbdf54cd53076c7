"""The payloads of hooks and their answers: the schema of the JSON that commands read and write.

``python -m tui_agent.agent.hooks.payloads`` prints it as JSON schemas.
"""

import json
import sys
from typing import Any, Literal, Self, TypeVar, dataclass_transform, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tui_agent.lazy import dataclass

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def _payload(kind: type[T]) -> type[T]:
    """Make a frozen dataclass whose fields are given by name."""
    return dataclass(kind, frozen=True, kw_only=True)


# -- payloads ------------------------------------------------------------------------------------------------


@_payload
class About:
    """Where it happens.

    ``parent`` is the session where a subagent works in it, None for the agent one talks to.
    """

    session: str = ""
    parent: str | None = None
    cwd: str = ""
    project: str = ""
    model: str = ""


@_payload
class EntryText:
    """One entry of the session, with its text as a summariser reads it."""

    id: int
    kind: str
    text: str


@_payload
class Files:
    """Files read and modified so far, cumulative over earlier summaries, the longest untouched first."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


@_payload
class SessionStart:
    """Before the first message of this program in a session.

    ``resumed``: the session held messages already.
    """

    event: Literal["session_start"] = "session_start"
    about: About
    resumed: bool


@_payload
class UserPrompt:
    """Before a message of the user enters the conversation; ``mid_run`` while the agent works."""

    event: Literal["user_prompt"] = "user_prompt"
    about: About
    prompt: str
    mid_run: bool


@_payload
class BeforeTool:
    """Before a call is checked against the rules and runs."""

    event: Literal["before_tool"] = "before_tool"
    about: About
    call_id: str
    tool: str
    arguments: dict[str, Any]


@_payload
class AfterTool:
    """After a call ran. ``output`` is the text shown to the model, ``seconds`` how long it took."""

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
    """Before the history is summarised: everything the summary would be made of.

    ``entries`` and ``turn_prefix`` (the first part of a turn that is too big to stay whole) are
    summarised, ``conversation`` is their text as a summariser would read it, entries before
    ``first_kept_id`` leave the model's view. ``branch`` are all entries of the path, those before an
    earlier summary too. Sizes are tokens; ``budget`` limits the whole history, ``summary_tokens``
    the summary.
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
    """After a compaction was committed as entry ``entry``.

    ``model`` is None when no model wrote the summary.
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
    """Before the leaf moves.

    ``target`` is the entry that was chosen, ``leaf`` where it goes: before a message of the user's,
    whose text is edited. ``old_leaf`` is where it was, ``entries`` those leaving the path.

    ``wants_summary`` says whether the user asked for a summary of them, ``focus`` its emphasis.
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
    """After the leaf moved.

    ``summary`` is the summary of the branch left, given to the new one; None for nothing.
    """

    event: Literal["after_tree"] = "after_tree"
    about: About
    leaf: int | None
    old_leaf: int | None
    summary: str | None


@_payload
class RunEnd:
    """After the agent became idle; ``answer`` is the last thing it said."""

    event: Literal["run_end"] = "run_end"
    about: About
    reason: str
    error: str | None
    steps: int
    answer: str


@_payload
class BeforeEnd:
    """Before the agent stops working because it thinks that it is done.

    ``answer`` is the last thing it said, ``sent_back`` how often a hook sent it back in this run.
    """

    event: Literal["before_end"] = "before_end"
    about: About
    answer: str
    sent_back: int


@_payload
class PermissionQuestion:
    """Before the user is asked whether a call may run. ``reason`` says why it asks."""

    event: Literal["permission"] = "permission"
    about: About
    call_id: str
    tool: str
    arguments: dict[str, Any]
    reason: str


@_payload
class Notification:
    """When the user is called: a question waits (``kind`` permission), or a run ended (idle)."""

    event: Literal["notification"] = "notification"
    about: About
    kind: Literal["permission", "idle"]
    message: str


@_payload
class SubagentStart:
    """When a subagent begins a task."""

    event: Literal["subagent_start"] = "subagent_start"
    about: About
    agent: str
    task: str


@_payload
class SessionEnd:
    """When a session is closed here: another one is opened, or the program ends."""

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
    """Base of every hook's answer: ``notice`` is shown to the user."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    notice: str = ""

    @classmethod
    def refusing(cls, reason: str) -> Self | None:  # noqa: ARG003 - for those that can
        """Return the answer that refuses an event; None where it is too late to refuse."""
        return None

    @classmethod
    def telling(cls, text: str) -> Self:  # noqa: ARG003 - for those that can
        """Return the answer that gives the model a text; an empty one where it can't be told."""
        return cls()


class ContextAnswer(HookAnswer):
    """``context`` is given to the model."""

    context: str = ""

    @classmethod
    def telling(cls, text: str) -> Self:
        return cls(context=text)


class UserPromptAnswer(ContextAnswer):
    """``block`` keeps the message out, with ``message`` as the reason.

    ``context`` is given to the model with the message.
    """

    block: bool = False
    message: str = ""

    @classmethod
    def refusing(cls, reason: str) -> Self:
        return cls(block=True, message=reason)


class BeforeToolAnswer(HookAnswer):
    """``deny`` refuses the call and tells the model ``message``.

    ``allow`` answers a question for the user.

    ``ask`` has the user asked, with ``message`` as the reason.

    ``allow`` never overrules a rule that denies. ``arguments`` takes the place of the call's.
    """

    decision: Literal["allow", "deny", "ask"] | None = None
    message: str = ""
    arguments: dict[str, Any] | None = None

    @classmethod
    def refusing(cls, reason: str) -> Self:
        return cls(decision="deny", message=reason)


class AfterToolAnswer(HookAnswer):
    """``append`` is added to the output shown to the model."""

    append: str = ""

    @classmethod
    def telling(cls, text: str) -> Self:
        return cls(append=text)


class SummaryAnswer(ContextAnswer):
    """``cancel`` stops it, with ``message`` as the reason.

    ``summary`` takes the place of a model's.

    ``context`` is given to the model that writes the summary, beside the user's focus. ``details``
    is kept with the entry for whoever wants it later; the model is not shown it.
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
        """The details as JSON; "" for none."""
        if not self.details:
            return ""
        return json.dumps(self.details, ensure_ascii=False)

    def focus(self, given: str | None) -> str:
        """Return the user's focus with the hook's context, "" for neither."""
        return "\n\n".join(filter(None, [given, self.context.strip()]))


class CompactAnswer(SummaryAnswer):
    """``first_kept`` is the entry that the summary ends before, in place of the plan's."""

    first_kept: int | None = None


class BeforeEndAnswer(HookAnswer):
    """``block`` sends the model back to work, with ``message`` for it."""

    block: bool = False
    message: str = ""

    @classmethod
    def refusing(cls, reason: str) -> Self:
        return cls(block=True, message=reason)


class PermissionQuestionAnswer(HookAnswer):
    """``decision`` answers for the user; ``message`` tells the model why it is refused."""

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
"""The answer that belongs to each event."""


def schemas() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for given, (event, answer) in zip(get_args(Payload), ANSWERS.items(), strict=True):
        found[event] = {
            "given": TypeAdapter(given).json_schema(),
            "answer": answer.model_json_schema(),
        }
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schemas(), indent=1) + "\n")
