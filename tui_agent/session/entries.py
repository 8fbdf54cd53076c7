"""Defines the entries of a session, which are immutable records in an append-only tree.

Everything that happens in a session is stored as an entry. The leaf and its moves, the labels, the
title and the drafts are stored separately. A compaction, prune, context edit or model change is an
entry, too, which changes how other entries are sent to the model, but never the entries themselves.
Ids are integers that ascend within a session and are written ``#412`` for people and models. Token
counts are estimates, times are in milliseconds since the epoch, and a blob is named by the
hexadecimal SHA-256 digest of its content.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeGuard, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tui_agent.pictures import PDF
from tui_agent.session.counting import Scripts
from tui_agent.session.effort import DEFAULT_EFFORT, Effort
from tui_agent.whole_numbers import plural, whole_number

SKILL_PREFIX = "skill:"
"""Prefix of ``path`` in an attached `FilePart` that contains a skill's text (``skill:pdf``)."""
AGENT_PREFIX = "agent:"
"""Prefix of ``path`` in an attached `FilePart` that names the agent to use (``agent:explore``)."""
SESSION_PREFIX = "session:"
"""Prefix of ``path`` in a `FilePart` with text of another session (``session:1a2b3c4d#34``)."""
DIAGNOSTICS_PREFIX = "diagnostics:"
"""Prefix of ``path`` in a `FilePart` that lists the problems in a file (``diagnostics:src/a.py``).

The text of the part begins with the number of new problems.
"""
PLAN_PATH = "plan:"
"""Value of ``path`` in an attached `FilePart` that contains a plan which the user approved."""

_NAMED = ("#", SKILL_PREFIX, AGENT_PREFIX, SESSION_PREFIX, DIAGNOSTICS_PREFIX, PLAN_PATH)
"""Prefixes of ``path`` in attached parts that are not files."""

REASONING = "reasoning"
"""Value in ``ContextEditEntry.parts`` that stands for reasoning which a provider refused."""

INTERRUPTED_OUTPUT = "[Tool execution was interrupted]"
"""Text stored as the output of a tool call that was interrupted before it returned."""

ALL_TEXT = 1_000_000_000
"""Value of `PruneEntry.keep_chars` that keeps all text, so that only images are removed."""


_OCCASIONS = {
    "btw": "side question",
    "check_failed": "the check failed",
    "diagnostics": "new problems",
    "format_missed": "the answer has the wrong format",
    "goal_missed": "the goal hasn't been reached",
    "instructions": "a directory's instructions",
    "job": "background job",
    "repeating": "the answer repeated itself",
    "says_nothing": "no answer",
    "sent_back": "a hook asks for more",
    "step_limit": "the last step",
    "unread_call": "a tool call that can't be read",
}
"""Words that are shown for values of `UserEntry.synthetic`. A value that is not listed is shown as
it is."""


Role = Literal["asked", "attached", "said", "reasoned", "called", "returned", "noted"]
"""The role of a text in an entry.

"asked" is a message by the user or by the program on their behalf, and "attached" a file attached
to such a message. "said" is a model's answer or summary, and "reasoned" a model's reasoning.
"called" stands for the arguments of a tool call, or the user's shell command, and "returned" for
the output of a tool or command. "noted" is a note by the program for the user.
"""

CONTENT: Final[tuple[Role, ...]] = ("asked", "attached", "said", "returned")
"""The roles whose texts are the content of a message, and not reasoning, arguments or notes."""


class Said(NamedTuple):
    """One of the texts that an entry contains, with the text's role.

    ``name`` is the path of an attached file, the name of a tool, or the command line (``/review``)
    from which the text was made; "" for any other text.
    """

    role: Role
    text: str
    name: str = ""


class _Record(BaseModel):
    """Base class of all stored records, which are immutable and refuse unknown fields."""

    # The validator of a class is built when it is first used, because building all of them takes a
    # tenth of the start-up time.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


# -- parts -----------------------------------------------------------------------------------------


class TextPart(_Record):
    """Text written by the user or the model.

    ``typed`` is the command line (``/review app.py``) from which this text and all other parts of
    the message were made; None if they were not made from a command line.
    """

    type: Literal["text"] = "text"
    text: str
    typed: str | None = Field(default=None, exclude_if=lambda typed: typed is None)


class FilePart(_Record):
    """A file that the user attached with ``@path``, or something else attached like a file.

    ``text`` is the part of the file that is sent to the model. `is_file` is False if ``path`` names
    something else, such as an entry (``#412``), a skill (``skill:pdf``), an agent
    (``agent:explore``), a directory (``src/``) or an MCP server's resource (``docs:memo://today``).
    """

    type: Literal["file"] = "file"
    path: str
    text: str
    problem: str = Field(default="", exclude_if=lambda problem: not problem)
    """What the file is if ``text`` is a note instead of its content, such as "a binary file"."""

    @property
    def is_file(self) -> bool:
        is_named = self.path.startswith(_NAMED) or "://" in self.path
        return not is_named and not self.path.endswith("/")


class ImagePart(_Record):
    """An image or a PDF in the blob store.

    Width and height are in pixels, 0 if unknown. ``pages`` is a PDF's number of pages, 0 if unknown
    or for an image.
    """

    type: Literal["image"] = "image"
    blob: str
    mime: str
    width: int = 0
    height: int = 0
    path: str | None = None
    pages: int = Field(default=0, exclude_if=lambda pages: not pages)

    @property
    def kind(self) -> str:
        """The word for this part in texts, which is "document" for a PDF and otherwise "image"."""
        return "document" if self.mime == PDF else "image"

    @property
    def is_document(self) -> bool:
        return self.mime == PDF


class ReasoningPart(_Record):
    """The model's reasoning.

    ``blob`` is the reasoning as the provider's own JSON, None if there is none. The JSON is kept
    byte for byte, because signed reasoning must be sent back exactly as it was received, or not at
    all. It may be sent only to ``model``.
    """

    type: Literal["reasoning"] = "reasoning"
    text: str
    blob: str | None = None
    model: str = ""


class ToolCallPart(_Record):
    """A tool call that the model made.

    ``arguments`` is the JSON text as the model wrote it, valid or not.
    """

    type: Literal["tool_call"] = "tool_call"
    call_id: str
    tool: str
    arguments: str
    as_text: bool = False
    """Whether the model wrote the call as text in its answer, because its server doesn't support
    tool calls."""


UserPart = Annotated[TextPart | FilePart | ImagePart, Field(discriminator="type")]
AssistantPart = Annotated[TextPart | ReasoningPart | ToolCallPart, Field(discriminator="type")]


class Usage(_Record):
    """Numbers of tokens of a request and its answer, as counted by the provider.

    ``input`` excludes tokens read from or written to the prompt cache; ``output`` includes
    ``reasoning``.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """Number of tokens of the request and its answer together."""
        return self.input + self.cache_read + self.cache_write + self.output

    @property
    def prompt(self) -> int:
        return self.input + self.cache_read + self.cache_write


class ToolSchema(_Record):
    """A tool as it is described to the model. ``parameters`` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolStatus(StrEnum):
    """How a tool call ended."""

    COMPLETED = "completed"
    ERROR = "error"
    DENIED = "denied"
    INTERRUPTED = "interrupted"


class Truncation(_Record):
    """Size of a tool's output before and after truncation, in lines and in bytes of UTF-8."""

    total_lines: int
    total_bytes: int
    kept_lines: int
    kept_bytes: int


class ToolMetadata(_Record):
    """Facts about a tool result for the program's own use, which are not sent to the model."""

    path: str | None = None
    diff: str | None = None
    additions: int = 0
    deletions: int = 0
    exit_code: int | None = None
    count: int | None = None
    """Number of matches, files or lines in the result, depending on the tool."""
    truncation: Truncation | None = None
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    session: str | None = None
    """Id of the subagent's session if an old version stored the result; otherwise None, because
    subagents now work on a branch."""
    branch: int | None = Field(default=None, exclude_if=lambda branch: branch is None)
    """Id of the last entry of the subagent's branch; None if the call ran no subagent."""

    @property
    def of_subagent(self) -> bool:
        return self.session is not None or self.branch is not None

    opens_window: bool = Field(default=False, exclude_if=lambda opens: not opens)
    """Whether the model requested a new context window with this call."""
    known_from: int | None = Field(default=None, exclude_if=lambda known: known is None)
    """Id of the earlier result that this one refers to, or from which it shows only the
    differences, in order to save tokens."""
    is_known: bool = Field(default=False, exclude_if=lambda known: not known)
    """Whether the whole result is contained in the earlier result ``known_from``."""
    running_jobs: tuple[int, ...] = Field(default=(), exclude_if=lambda numbers: not numbers)
    """Numbers of the background jobs that were running according to the result."""
    ended_jobs: tuple[int, ...] = Field(default=(), exclude_if=lambda numbers: not numbers)
    """Numbers of the background jobs that the result says have ended."""


class PinnedText(_Record):
    """A pinned entry that a compaction keeps verbatim, with its id and its text as it is sent."""

    id: int
    text: str


class StateText(_Record):
    """The state of a tool, such as the to-do list, that a compaction keeps besides its summary."""

    tool: str
    """The tool to which the state belongs ("todo" or "skill"), or "plan" for the approved plan."""
    name: str = ""
    text: str


class SummaryDetails(_Record):
    """Facts about the summarised entries that the program keeps besides the model's summary.

    The lists of files include those of earlier summaries. They begin with the file that was touched
    longest ago.
    """

    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    """Lines with anchors (facts that the program's code found), as they are sent to the model."""
    user_messages: tuple[str, ...] = ()
    rules: tuple[str, ...] = Field(default=(), exclude_if=lambda rules: not rules)
    """The user's standing rules (sentences in messages that state a lasting rule), verbatim, as
    they are sent to the model, for example ``#34 Never …``."""
    rules_known: tuple[str, ...] = Field(default=(), exclude_if=lambda rules: not rules)
    """All standing rules (lasting rules in the user's messages) that were found so far, including
    those in ``user_messages``. They are not sent to the model."""
    rules_lost: int = Field(default=0, exclude_if=lambda count: not count)
    """Number of standing rules that were left out because they no longer fit. The user must be
    warned about them."""
    untold: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """Names that are still in use but are missing from the summary. They are not sent to the model.
    """
    pinned: tuple[PinnedText, ...] = ()
    state: tuple[StateText, ...] = ()
    shown_files: int | None = None
    """How many of the newest paths in each list of files are sent to the model; None for all paths.
    """
    file_ids: dict[str, int] = Field(default_factory=dict, exclude_if=lambda ids: not ids)
    """The id of the newest entry that names a file, by the file's path. It is sent to the model
    together with the path."""
    hook: str = Field(default="", exclude_if=lambda hook: not hook)
    """Data that a hook stored for itself, as JSON. It is not sent to the model."""
    remembered: tuple[str, ...] = ()
    """Encoded anchors (facts that the program itself keeps through compactions) for the next
    summary. They are not sent to the model."""


class FileChange(_Record):
    """One change of a file; ``path`` is relative to the project.

    ``before`` and ``after`` are the blobs of the two snapshots. None means that the file didn't
    exist, unless ``no_before`` or ``no_after`` says why there is no snapshot. A blob may have been
    deleted since then, because the snapshots took too much space.
    """

    path: str
    before: str | None = None
    after: str | None = None
    before_object: str = ""
    """Id of the git object with the content before the change, if no blob has it."""
    before_mode: int = 0
    """Permission bits of the file, 0o120000 for a link (its blob is the target), 0 for no file."""
    after_mode: int = 0
    no_before: str = ""
    """The reason why there is no snapshot of the file before the change, such as the file's size.
    "" if there is a snapshot, or if there was no file."""
    no_after: str = ""
    job: bool = False
    """Whether the change was found while a background job ran, so the user may have made it."""


class DirectoryChange(_Record):
    """A directory that was created or removed; ``path`` is relative to the project."""

    path: str
    before_mode: int | None = None
    """Permission bits of the directory before the change; None if it didn't exist."""
    after_mode: int | None = None


class RunnerState(StrEnum):
    """The state of a runner, one of the agents that work on the same prompt in a race."""

    WAITING = "waiting"
    """The copy of the project for the runner is being created."""
    WORKING = "working"
    CHECKING = "checking"
    """The runner has finished, and the check command is running in its copy of the project."""
    DONE = "done"
    """The runner has finished, and its work was not checked."""
    PASSED = "passed"
    """The check ended with exit code 0."""
    FAILED = "failed"
    """The check ended with another exit code, took too long, or couldn't be run."""
    PAUSED = "paused"
    """The runner reached its step limit, so that its work wasn't checked. The runner can be
    continued."""
    STOPPED = "stopped"
    """The user stopped the runner, or the runner was stopped because another one won."""
    ERROR = "error"
    """The runner failed; ``problem`` says why."""
    CUT_OFF = "cut_off"
    """The program ended while the runner was working. The runner can be continued."""

    @property
    def is_over(self) -> bool:
        return self not in {RunnerState.WAITING, RunnerState.WORKING, RunnerState.CHECKING}


class CheckResult(_Record):
    """The result of the check command in the copy of the project of one runner of a race.

    ``exit_code`` is None if the check couldn't be run or took too long.
    """

    exit_code: int | None
    seconds: float = 0.0
    last_lines: tuple[str, ...] = ()


class RaceRunner(_Record):
    """A runner, that is, an agent that takes part in a race, and its result.

    Costs are in US dollars. The runner's branch goes from ``root`` to ``leaf``.
    """

    name: str
    model: str = ""
    effort: Effort | None = None
    mode: str = ""
    context: str = Field(default="", exclude_if=lambda context: not context)
    """How the context with which the runner began was shortened: "pruned", "compacted" or "without
    #12 #14". "" if the runner began with the whole conversation."""
    next_request: int = Field(default=0, exclude_if=lambda tokens: not tokens)
    """Number of tokens of the next request on the runner's branch; 0 unless the race compares
    contexts."""
    root: int | None = None
    """Id of the first entry of the runner's branch; None if there is none yet."""
    leaf: int | None = None
    """Id of the last entry of the runner's branch; None if there is none yet."""
    state: RunnerState = RunnerState.WAITING
    problem: str = ""
    check: CheckResult | None = None
    files: int = 0
    additions: int = 0
    deletions: int = 0
    steps: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    """Number of seconds that the runner worked, without its check."""

    @property
    def rank(self) -> tuple[int, float, float]:
        """Sort key that puts the best runner first, by its state, its cost and its seconds.

        The order of states is passed, done, paused, failed, any other.
        """
        best = (RunnerState.PASSED, RunnerState.DONE, RunnerState.PAUSED, RunnerState.FAILED)
        return best.index(self.state) if self.state in best else len(best), self.cost, self.seconds


# -- entries ---------------------------------------------------------------------------------------


class EntryBase(_Record):
    """The fields of every entry. ``id`` is 0 until the store has appended the entry.

    The class variables are traits that all entries of a kind share; their defaults are for a kind
    that is neither sent to the model nor shown as a message.
    """

    letter: ClassVar[str]
    """The letter that stands for the kind in compact lists of entries; never `UNKNOWN_KIND`."""
    is_message: ClassVar[bool | None] = False
    """Whether entries of this kind are sent to the model as messages; None if this depends on the
    entry (see `is_sent`)."""
    sets_state: ClassVar[bool] = False
    """Whether only the last entry of this kind on a path has an effect, as for the system prompt,
    the model, the mode and the effort."""
    edits_view: ClassVar[bool] = False
    """Whether an entry of this kind changes how other entries are sent to the model."""
    breaks_prefix: ClassVar[bool] = False
    """Whether an entry of this kind changes earlier parts of the request. If so, the next request
    may no longer begin with the same text as the previous one."""
    frees_room: ClassVar[bool] = False
    """Whether an entry of this kind makes the next request smaller."""
    costs: ClassVar[bool] = False
    """Whether an entry of this kind results from a model request, so that it has a model, usage and
    cost."""
    starts_turn: ClassVar[bool] = False
    """Whether an entry of this kind begins a new turn if it is sent to the model."""
    follows_calls: ClassVar[bool] = False
    """Whether an entry of this kind belongs to the tool calls of the preceding answer."""
    is_dialogue: ClassVar[bool] = False
    """Whether an entry of this kind is a message by the user or the model."""
    is_mentionable: ClassVar[bool] = False
    """Whether the completion in the prompt offers entries of this kind, because users may want to
    cite their text."""
    in_outline: ClassVar[bool] = False
    """Whether the panel with the outline of a session path has a row for an entry of this kind."""
    is_shown: ClassVar[bool] = True
    """Whether the transcript shows anything for an entry of this kind."""
    is_marker: ClassVar[bool] = False
    """Whether the transcript shows an entry of this kind as a single line."""
    is_quiet: ClassVar[bool] = False
    """Whether the session tree hides entries of this kind unless it is set to show everything."""
    undone_alone: ClassVar[bool | None] = False
    """Whether undo removes only this entry, instead of its whole turn, if the entry is the last one
    on the session path. None if this depends on the entry."""

    id: int = 0
    parent_id: int | None = None
    created_at: int = 0
    preview: str = ""
    tokens: int = 0
    scripts: Scripts = Field(default=(), exclude_if=lambda scripts: not scripts)
    """Number of the entry's tokens that are outside ASCII or are digits, by character class (see
    `Scripts`)."""

    @property
    def is_sent(self) -> bool:
        """Whether this entry is sent to the model as a message, unless a context edit hides it."""
        return bool(self.is_message)

    @property
    def images(self) -> Sequence[ImagePart]:
        return ()

    def said(self) -> Iterator[Said]:
        """Yield all texts of the entry, in reading order.

        The search index is built from these texts. So a change of the texts that a kind of entry
        yields needs a new schema version.
        """
        raise NotImplementedError(type(self).__name__)

    def texts(self, *roles: Role) -> list[str]:
        """Return the entry's texts that have one of the roles, in reading order."""
        return [said.text for said in self.said() if said.role in roles]


# For each kind, Pydantic reads the annotations of every base class again. Deleting those of the
# class variables makes the program start 2 ms sooner.
for _name in EntryBase.__class_vars__:
    del EntryBase.__annotations__[_name]


class BookkeepingEntry(EntryBase):
    """A record of something that the program did, and not a message.

    The preview is its only text.
    """

    def said(self) -> Iterator[Said]:
        yield Said("noted", self.preview)


class SystemEntry(BookkeepingEntry):
    """The system prompt, the tools and the opening message with which later requests begin.

    The prompt and the tools are the same in all projects. The last system entry on the path
    applies.
    """

    letter = "f"
    sets_state = True
    breaks_prefix = True
    is_quiet = True
    is_shown = False

    kind: Literal["system"] = "system"
    blocks: tuple[str, ...]
    opening: str = Field(default="", exclude_if=lambda text: not text)
    """Text about the session's project, which is sent as the first message. "" in older sessions,
    where this text is the second of ``blocks``."""
    tools: tuple[ToolSchema, ...] = ()
    model: str
    mode: str = "build"


class UserEntry(EntryBase):
    """A message by the user, or by the program on their behalf.

    ``synthetic`` says why the program wrote it; None for the user's own message.
    """

    letter = "d"
    is_message = True
    starts_turn = True
    is_dialogue = True
    is_mentionable = True
    in_outline = True

    kind: Literal["user"] = "user"
    parts: tuple[UserPart, ...]
    synthetic: str | None = None
    mid_run: bool = False
    """Whether the message was sent while the agent was working. It is then wrapped in a reminder
    for the model."""

    @property
    def text(self) -> str:
        """The message's text as sent to the model, without attachments."""
        return joined_text(self.parts)

    @property
    def occasion(self) -> str:
        """Why the program wrote the message, in words for the user; "" if the user wrote it."""
        stored = self.synthetic or ""
        return _OCCASIONS.get(stored, stored)

    @property
    def attached(self) -> list[FilePart]:
        return [part for part in self.parts if isinstance(part, FilePart)]

    @property
    def images(self) -> Sequence[ImagePart]:
        return [part for part in self.parts if isinstance(part, ImagePart)]

    def said(self) -> Iterator[Said]:
        for part in self.parts:
            match part:
                case TextPart():
                    yield Said("asked", part.text, part.typed or "")
                case FilePart():
                    yield Said("attached", part.text, part.path)
                case ImagePart():
                    yield Said("noted", part.path or "")

    @property
    def diagnostics(self) -> dict[str, int]:
        """The number of new problems that checkers found in each file, by the file's path.

        Empty if the message isn't the program's report about problems.
        """
        found: dict[str, int] = {}
        if not self.synthetic:
            return found
        for file in self.attached:
            if file.path.startswith(DIAGNOSTICS_PREFIX):
                count = whole_number(file.text.partition(" ")[0])
                if count is not None:
                    found[file.path.removeprefix(DIAGNOSTICS_PREFIX)] = count
        return found


class ShellEntry(EntryBase):
    """A command that the user ran with ``!``.

    ``excluded`` is True if the command was run with ``!!``; it is then not sent to the model.
    """

    letter = "g"
    undone_alone = True
    is_message = None
    starts_turn = True
    is_mentionable = True

    kind: Literal["shell"] = "shell"
    command: str
    output: str
    exit_code: int | None = None
    excluded: bool = False

    @property
    def is_sent(self) -> bool:
        return not self.excluded

    def said(self) -> Iterator[Said]:
        yield Said("called", self.command)
        yield Said("returned", self.output)


_ENDINGS = {
    "length": "cut off at the output limit",
    "unmarked": "not marked as complete",
    "content_filter": "stopped by the content filter",
}
"""Words for an answer that ended early although nothing failed, by its finish reason."""


class AssistantEntry(EntryBase):
    """One answer of the model, with its text, reasoning and tool calls."""

    letter = "b"
    is_message = True
    costs = True
    is_dialogue = True
    is_mentionable = True

    kind: Literal["assistant"] = "assistant"
    parts: tuple[AssistantPart, ...]
    model: str
    usage: Usage | None = None
    cost: float | None = None
    """Cost of the request and its answer in US dollars; None if the price is unknown."""
    finish: Literal[
        "stop",
        "tool_calls",
        "length",
        "unmarked",
        "content_filter",
        "pause",
        "error",
        "interrupted",
        "repetition",
    ] = "stop"
    """The reason why the answer ended. ``length`` means that it was cut off at its token limit,
    ``unmarked`` that the server ended it without marking it as complete. ``pause`` means that the
    provider continues the answer when the conversation is sent again, ``repetition`` that the
    program stopped an answer that repeats itself."""
    error: str | None = None
    """A sentence that says why the request failed or the provider refused to answer; otherwise
    None."""
    interrupted: bool = False
    """Whether the answer was stopped, by the user or by the program, before the model was done."""
    estimate: int = 0
    """Estimated number of tokens of the request. It is compared with ``usage`` to calibrate later
    estimates."""
    started_at: int = 0
    first_token_at: int | None = None

    @property
    def text(self) -> str:
        """The text of the answer, without reasoning and tool calls."""
        return "".join([part.text for part in self.parts if part.type == "text"])

    @property
    def ending(self) -> str:
        """Why the answer is incomplete, in a few words; "" if it is complete."""
        if self.finish == "repetition":
            return "repeats itself"
        if self.interrupted:
            return "interrupted"
        if self.error:
            return "failed"
        return _ENDINGS.get(self.finish, "")

    @property
    def reasoning(self) -> tuple[ReasoningPart, ...]:
        return tuple([part for part in self.parts if part.type == "reasoning"])

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        return tuple([part for part in self.parts if part.type == "tool_call"])

    def said(self) -> Iterator[Said]:
        for part in self.parts:
            match part:
                case TextPart():
                    yield Said("said", part.text, part.typed or "")
                case ReasoningPart():
                    yield Said("reasoned", part.text)
                case ToolCallPart():
                    yield Said("called", part.arguments, part.tool)
        yield Said("noted", self.error or "")


class ToolResultEntry(EntryBase):
    """The result of a tool call.

    ``output`` is the text sent to the model. ``full_output`` names the blob with the whole output;
    None if ``output`` is the whole output, or if the tool can produce the rest again.
    """

    letter = "c"
    is_message = True
    follows_calls = True
    is_mentionable = True

    kind: Literal["tool_result"] = "tool_result"
    call_id: str
    tool: str
    status: ToolStatus
    output: str
    attachments: tuple[ImagePart, ...] = ()
    full_output: str | None = None
    title: str = ""
    metadata: ToolMetadata = ToolMetadata.model_construct()
    started_at: int = 0
    ended_at: int = 0

    @property
    def images(self) -> Sequence[ImagePart]:
        return self.attachments

    def whole_output(self, blob: Callable[[str], bytes | None]) -> str:
        """Return the whole output of the call, or ``output`` if the blob with it doesn't exist.

        ``blob`` returns a blob's bytes by its digest, None if it has been deleted.
        """
        if self.full_output and (full := blob(self.full_output)) is not None:
            return full.decode("utf-8", "replace")
        return self.output

    def said(self) -> Iterator[Said]:
        yield Said("noted", self.title, self.tool)
        yield Said("returned", self.output)


class SummaryEntry(EntryBase):
    """A summary of other entries, with its text, its author, and the details the program kept."""

    summary: str
    style: Literal["summary", "notes", "native", "hook"] = Field(
        default="summary", exclude_if=lambda style: style == "summary"
    )
    """The author of the summary. "summary" is a summariser model, "notes" the model itself (in
    older versions), "native" the provider, and "hook" a hook."""
    details: SummaryDetails = SummaryDetails.model_construct()
    model: str | None = None
    usage: Usage | None = None
    cost: float | None = None

    def said(self) -> Iterator[Said]:
        yield Said("said", self.summary)


class CompactionEntry(SummaryEntry):
    """A summary that replaces all entries on the session path before the entry ``first_kept_id``.

    If ``first_kept_id`` is None, the summary replaces all entries before this one.
    """

    letter = "h"
    undone_alone = True
    is_message = True
    edits_view = True
    breaks_prefix = True
    frees_room = True
    costs = True
    is_mentionable = True
    in_outline = True
    is_marker = True

    kind: Literal["compaction"] = "compaction"
    first_kept_id: int | None
    tokens_before: int
    tokens_after: int
    trigger: Literal["manual", "threshold", "overflow", "model_switch", "idle", "notes"]
    item: str | None = Field(default=None, exclude_if=lambda item: item is None)
    """The result of the provider's own compaction, as JSON. It is sent to ``model`` byte for byte
    instead of ``summary``. None if there is only ``summary``."""
    instructions: str | None = None
    prepared: bool = Field(default=False, exclude_if=lambda prepared: not prepared)
    """Whether the summary was prepared in the background while the agent was still working."""

    def is_read_by(self, model: str | None) -> bool:
        """Return True if this compaction can be sent to ``model``.

        A provider's ``item`` can be sent only to the model that created it; any other model is sent
        the summarised entries themselves. The result is also True if the model is unknown (None or
        "").
        """
        return self.item is None or not model or self.model == model


class BranchSummaryEntry(SummaryEntry):
    """A summary of the branch that the user left, which ends at ``from_id``.

    It is stored below the entry to which the user moved.
    """

    letter = "i"
    undone_alone = True
    is_message = True
    costs = True
    starts_turn = True
    is_mentionable = True
    in_outline = True
    is_marker = True

    kind: Literal["branch_summary"] = "branch_summary"
    from_id: int


class RaceEntry(BookkeepingEntry):
    """A finished race, with its runners and the runner whose work was taken."""

    letter = "o"
    undone_alone = True
    in_outline = True
    is_marker = True

    kind: Literal["race"] = "race"
    prompt: str
    start: int | None = None
    """Id of the entry after which the runners' branches begin; None if they begin the session."""
    check: str = ""
    """The check command that ran in each runner's copy of the project; "" if there was none."""
    runners: tuple[RaceRunner, ...]
    taken: int | None = None
    """Number, counted from 1, of the runner whose work was taken; None if none was taken."""
    saved: float = 0.0
    """US dollars saved by stopping the other runners early, at the rate they were spending."""
    comparison: str = ""
    """A model's comparison of the runners' changes."""

    @property
    def winner(self) -> RaceRunner | None:
        if self.taken is None:
            return None
        return self.runners[self.taken - 1]


class CheckEntry(BookkeepingEntry):
    """The result of the project's check command, which ran when the model ended its turn.

    If the check fails, its output is also sent to the model, in a separate message.
    """

    letter = "q"
    in_outline = True
    is_marker = True

    kind: Literal["check"] = "check"
    command: str
    output: str
    """The end of the check's output."""
    exit_code: int | None = None
    """Exit code of the check; None if the check couldn't be run or took too long."""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return self.exit_code == 0

    @property
    def result(self) -> str:
        if self.exit_code is None:
            return "not finished"
        return f"exit code {self.exit_code}"


class SubagentEntry(BookkeepingEntry):
    """Marks the beginning of a subagent's branch."""

    letter = "p"
    in_outline = True
    is_shown = False

    kind: Literal["subagent"] = "subagent"
    agent: str
    """The name of the subagent."""
    task: str
    call_id: str
    call: int | None = None
    """Id of the answer that contains the tool call. The tree shows the subagent's branch below that
    answer."""


class PruneEntry(BookkeepingEntry):
    """Clears or shortens old tool outputs, long arguments or images in later requests."""

    letter = "j"
    undone_alone = True
    edits_view = True
    breaks_prefix = True
    frees_room = True
    is_marker = True

    kind: Literal["prune"] = "prune"
    targets: tuple[int, ...]
    tokens_freed: int
    reason: str
    keep_chars: int = 0
    """Number of characters that are kept of each long text in a pruned entry, from the beginning
    and the end of the text. 0 if the text is replaced with a placeholder."""
    notes: tuple[str, ...] = ()
    """Texts that are added to the placeholders, one for each of ``targets``, in their order. Empty
    if no text is added."""

    @property
    def removes_images(self) -> bool:
        """Whether only images are removed, so that every text is kept as a whole."""
        return self.keep_chars >= ALL_TEXT

    @property
    def effect(self) -> str:
        """A phrase that says what the prune did, such as ``cleared 2 tool outputs``."""
        count = len(self.targets)
        entries = plural(count, "entry")
        if self.removes_images:
            return f"cleared the images of {entries}"
        if self.keep_chars:
            # The text says "entries", because messages and the arguments of tool calls are
            # shortened, too.
            return f"shortened {entries}"
        return f"cleared {count} tool output{'' if count == 1 else 's'}"


class ContextEditEntry(BookkeepingEntry):
    """Changes how one entry is sent to the model.

    The user makes the change (drop, mask, pin, restore or edit), or the program makes it after a
    provider refused parts of the entry (leave_out).
    """

    letter = "k"
    undone_alone = True
    edits_view = True
    breaks_prefix = True
    is_marker = True
    is_quiet = True

    kind: Literal["context_edit"] = "context_edit"
    target: int
    action: Literal["drop", "mask", "pin", "restore", "edit", "leave_out"]
    text: str = Field(default="", exclude_if=lambda text: not text)
    """For an ``edit``, the text that is sent to the model instead of the entry's content."""
    parts: tuple[str, ...] = Field(default=(), exclude_if=lambda parts: not parts)
    """For a ``leave_out``, the blobs of the images that are left out. `REASONING` also leaves out
    the reasoning of all earlier answers."""
    note: str = Field(default="", exclude_if=lambda note: not note)
    """For a ``leave_out``, the reason, in words for the user."""


class ModelChangeEntry(BookkeepingEntry):
    """A change of the model for later requests."""

    letter = "l"
    sets_state = True
    breaks_prefix = True
    is_marker = True
    is_quiet = True

    kind: Literal["model_change"] = "model_change"
    model: str
    stands_in_for: str | None = Field(default=None, exclude_if=lambda model: model is None)
    """The chosen model if ``model`` is used because the chosen one can't be used; otherwise None.
    """

    @property
    def label(self) -> str:
        """The model's name for the user, and the name of the chosen model if it replaces one."""
        if self.stands_in_for:
            return f"{self.model}, standing in for {self.stands_in_for}"
        return self.model


class EffortChangeEntry(BookkeepingEntry):
    """A change of the effort for later requests, with any model.

    An ``effort`` of None returns to the settings' effort.
    """

    letter = "n"
    sets_state = True
    is_marker = True
    is_quiet = True

    kind: Literal["effort_change"] = "effort_change"
    effort: Effort | None

    @property
    def level(self) -> str:
        return self.effort or DEFAULT_EFFORT


class ModeChangeEntry(BookkeepingEntry):
    """A change of the mode (build, plan, …) for later requests."""

    letter = "m"
    sets_state = True
    is_marker = True
    is_quiet = True

    kind: Literal["mode_change"] = "mode_change"
    mode: str


class CheckpointEntry(BookkeepingEntry):
    """Records the files that changed since the last checkpoint on the session path."""

    letter = "e"
    follows_calls = True
    undone_alone = None
    is_quiet = True
    is_shown = False

    kind: Literal["checkpoint"] = "checkpoint"
    files: tuple[FileChange, ...]
    """The changes of files, oldest first. A file occurs more than once if another program changed
    it between two of the agent's changes."""
    omitted: int = 0
    """Number of changed files that are not in ``files``, because there were too many."""
    directories: tuple[DirectoryChange, ...] = Field(default=(), exclude_if=lambda found: not found)
    """The directories that were created or removed."""
    put_back_to: int | None = Field(default=None, exclude_if=lambda entry: entry is None)
    """Id of the entry to whose state the user restored the files without moving in the tree; 0 for
    the beginning of the session. None if the files were not restored in this way."""

    def said(self) -> Iterator[Said]:
        for change in self.files:
            yield Said("noted", change.path)
        for directory in self.directories:
            yield Said("noted", directory.path)


Entry = Annotated[
    SystemEntry
    | UserEntry
    | ShellEntry
    | AssistantEntry
    | ToolResultEntry
    | CompactionEntry
    | BranchSummaryEntry
    | RaceEntry
    | CheckEntry
    | SubagentEntry
    | PruneEntry
    | ContextEditEntry
    | ModelChangeEntry
    | EffortChangeEntry
    | ModeChangeEntry
    | CheckpointEntry,
    Field(discriminator="kind"),
]
"""Any kind of entry. The union is closed, so a new kind needs a migration."""

KINDS: Final[Mapping[str, type[EntryBase]]] = {
    entry.model_fields["kind"].default: entry for entry in get_args(get_args(Entry)[0])
}
"""The class of each kind of entry, by the kind's name."""

OF_A_TURN: Final = (
    TextPart,
    UserEntry,
    Usage,
    ToolCallPart,
    AssistantEntry,
    ToolMetadata,
    ToolResultEntry,
)
"""Entry classes that every turn uses. ``model_rebuild`` builds their validators before the first
turn."""


def kinds(holds: Callable[[type[EntryBase]], bool | None]) -> tuple[str, ...]:
    return tuple(kind for kind, entry in KINDS.items() if holds(entry))


EntryAdapter: TypeAdapter[Entry] = TypeAdapter(Entry, config=ConfigDict(defer_build=True))
"""Validates entries of all kinds, and converts them to JSON."""


def command_line(parts: Sequence[UserPart]) -> str | None:
    """Return the command line (``/review app.py``) from which a message was made.

    Returns None if the message was not made from a command line.
    """
    for part in parts:
        if isinstance(part, TextPart) and part.typed is not None:
            return part.typed
    return None


def joined_text(parts: Iterable[UserPart | AssistantPart]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def is_by_user(entry: EntryBase) -> TypeGuard[UserEntry]:
    """Return True if the entry is a message by the user, not by the program on their behalf."""
    return isinstance(entry, UserEntry) and entry.synthetic is None


def typed_text(parts: Sequence[UserPart]) -> str:
    """Return the text (without attachments) or command line of a message as the user typed it."""
    line = command_line(parts)
    if line is None:
        return joined_text(parts)
    return line


def prompt_text(parts: Sequence[UserPart]) -> str:
    """Return a message as text for the prompt, to edit and send it again.

    The result is the typed text, followed by ``@path`` for each attachment with a path that the
    text doesn't name. For a message made from a command line, the result is only that line.
    """
    text = typed_text(parts)
    if command_line(parts) is not None:
        # Attachments are left out, because the files that the command line names are attached again
        # when the line is sent.
        return text
    paths = [part.path for part in parts if not isinstance(part, TextPart) and part.path]
    return " ".join([text, *(f"@{path}" for path in paths if f"@{path}" not in text)]).strip()
