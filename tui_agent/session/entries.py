"""The entries of a session: a closed union of immutable records that form an append-only tree.

What happens in a session is stored as entries; the leaf, its moves, labels, the title and drafts
are stored separately. A compaction, prune, context edit or model change is also an entry: it
changes how other entries are sent to the model, never the entries themselves. Ids are integers that
ascend within a session and are written ``#412`` for people and models. Token counts are estimates,
times are in milliseconds since the epoch, and a blob is named by the hexadecimal SHA-256 digest of
its content.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeGuard, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tui_agent.pictures import PDF
from tui_agent.session.counting import Scripts
from tui_agent.session.effort import DEFAULT_EFFORT, Effort
from tui_agent.whole_numbers import whole_number

SKILL_PREFIX = "skill:"
"""Path prefix of an attached `FilePart` that holds a skill's text (``skill:pdf``)."""
AGENT_PREFIX = "agent:"
"""Path prefix of an attached `FilePart` that names the agent to use (``agent:explore``)."""
SESSION_PREFIX = "session:"
"""Path prefix of a `FilePart` with text from another session (``session:1a2b3c4d#34``)."""
DIAGNOSTICS_PREFIX = "diagnostics:"
"""Path prefix of a `FilePart` with the problems found in one file (``diagnostics:src/a.py``).

Its text begins with the number of new problems."""
PLAN_PATH = "plan:"
"""Path of an attached `FilePart` that holds a plan the user approved."""

_NAMED = ("#", SKILL_PREFIX, AGENT_PREFIX, SESSION_PREFIX, DIAGNOSTICS_PREFIX, PLAN_PATH)
"""Path prefixes of attached parts that are not files."""

REASONING = "reasoning"
"""Value in ``ContextEditEntry.parts`` that stands for reasoning which a provider refused."""

INTERRUPTED_OUTPUT = "[Tool execution was interrupted]"
"""Output of a tool call that was cut off before it returned."""

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
"""Words shown for values of `UserEntry.synthetic`; a value not listed is shown as it is."""


Role = Literal["asked", "attached", "said", "reasoned", "called", "returned", "noted"]
"""The role of a text in an entry.

"asked": a message by the user or by the program on their behalf; "attached": a file attached to
such a message; "said": a model's answer or summary; "reasoned": a model's reasoning; "called": the
arguments of a tool call, or the user's shell command; "returned": the output of a tool or command;
"noted": a note by the program for the user.
"""

CONTENT: Final[tuple[Role, ...]] = ("asked", "attached", "said", "returned")
"""The roles whose texts are the content of a message: no reasoning, arguments or notes."""


class Said(NamedTuple):
    """One text of an entry, with its role.

    ``name`` is the path of an attached file, the name of a tool, or the command line (``/review``)
    from which the text was made; "" for any other text.
    """

    role: Role
    text: str
    name: str = ""


class _Record(BaseModel):
    """Base of all stored records: frozen, and strict about unknown fields."""

    # A class's validator is built at its first use: building all takes a tenth of the start-up
    # time.
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

    ``text`` is the part of the file that is sent to the model. `is_file` is False if the path names
    something else, such as an entry (``#412``), a skill (``skill:pdf``), an agent
    (``agent:explore``), a directory (``src/``) or an MCP server's resource
    (``docs:memo://today``).
    """

    type: Literal["file"] = "file"
    path: str
    text: str

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
        """The word for this part in texts: "document" for a PDF, else "image"."""
        return "document" if self.mime == PDF else "image"

    @property
    def is_document(self) -> bool:
        return self.mime == PDF


class ReasoningPart(_Record):
    """The model's reasoning.

    ``blob`` is the provider's own JSON, None if there is none. It is kept byte for byte, because
    signed reasoning must be sent back exactly as received, or not at all. It may be sent only to
    ``model``.
    """

    type: Literal["reasoning"] = "reasoning"
    text: str
    blob: str | None = None
    model: str = ""


class ToolCallPart(_Record):
    """A tool call by the model.

    ``arguments`` is the JSON text as the model wrote it, valid or not.
    """

    type: Literal["tool_call"] = "tool_call"
    call_id: str
    tool: str
    arguments: str
    as_text: bool = False
    """Whether the model wrote the call as text in its answer, because its server supports no tool
    calls."""


UserPart = Annotated[TextPart | FilePart | ImagePart, Field(discriminator="type")]
AssistantPart = Annotated[TextPart | ReasoningPart | ToolCallPart, Field(discriminator="type")]


class Usage(_Record):
    """Tokens as counted by the provider.

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
        """Tokens of the request and its answer together."""
        return self.input + self.cache_read + self.cache_write + self.output

    @property
    def prompt(self) -> int:
        return self.input + self.cache_read + self.cache_write


class ToolSchema(_Record):
    """A tool as described to the model. ``parameters`` is a JSON schema."""

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
    """Facts about a tool result for the program; not sent to the model."""

    path: str | None = None
    diff: str | None = None
    additions: int = 0
    deletions: int = 0
    exit_code: int | None = None
    count: int | None = None
    """Number of matches, files or lines, depending on the tool."""
    truncation: Truncation | None = None
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    session: str | None = None
    """Id of the subagent's session in a result that an old version stored; otherwise None, because
    subagents now work on a branch."""
    branch: int | None = Field(default=None, exclude_if=lambda branch: branch is None)
    """Id of the last entry of the subagent's branch; None if the call ran no subagent."""

    @property
    def of_subagent(self) -> bool:
        return self.session is not None or self.branch is not None

    opens_window: bool = Field(default=False, exclude_if=lambda opens: not opens)
    """Whether the model asked for a new context window with this call."""
    known_from: int | None = Field(default=None, exclude_if=lambda known: known is None)
    """Id of the earlier result that this one refers to, or is a diff against, to save tokens."""
    is_known: bool = Field(default=False, exclude_if=lambda known: not known)
    """Whether the whole result is contained in the earlier result ``known_from``."""
    running_jobs: tuple[int, ...] = Field(default=(), exclude_if=lambda numbers: not numbers)
    """Numbers of the background jobs that the result says are running."""
    ended_jobs: tuple[int, ...] = Field(default=(), exclude_if=lambda numbers: not numbers)
    """Numbers of the background jobs that the result says have ended."""


class PinnedText(_Record):
    """A pinned entry that a compaction carries verbatim: its id, and its text as sent."""

    id: int
    text: str


class StateText(_Record):
    """Tool state that a compaction keeps besides its summary, such as the to-do list."""

    tool: str
    """What the state is: "todo" or "skill" (the tool that it belongs to), or "plan" (the approved
    plan)."""
    name: str = ""
    text: str


class SummaryDetails(_Record):
    """What the program itself keeps of the summarised entries, besides the model's summary.

    File lists include those of earlier summaries; the file touched longest ago comes first.
    """

    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    """Anchor lines (facts found by the program's code), as sent to the model."""
    user_messages: tuple[str, ...] = ()
    rules: tuple[str, ...] = Field(default=(), exclude_if=lambda rules: not rules)
    """The user's standing rules, verbatim, as sent to the model: ``#34 Never …``."""
    rules_known: tuple[str, ...] = Field(default=(), exclude_if=lambda rules: not rules)
    """All standing rules found so far, including those in ``user_messages``; not sent to the
    model."""
    rules_lost: int = Field(default=0, exclude_if=lambda count: not count)
    """Number of rules left out because they no longer fit; the user must be warned."""
    untold: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """Names that are still in use but missing from the summary; not sent to the model."""
    pinned: tuple[PinnedText, ...] = ()
    state: tuple[StateText, ...] = ()
    shown_files: int | None = None
    """Number of newest paths from each file list that the model is sent; None for all paths."""
    file_ids: dict[str, int] = Field(default_factory=dict, exclude_if=lambda ids: not ids)
    """The id of the newest entry that names a file, by the file's path. Sent with the path."""
    hook: str = Field(default="", exclude_if=lambda hook: not hook)
    """A hook's own data, as JSON; not sent to the model."""
    remembered: tuple[str, ...] = ()
    """Encoded anchors for the next summary; not sent to the model."""


class FileChange(_Record):
    """One change of a file; ``path`` is relative to the project.

    ``before`` and ``after`` are the blobs of the two snapshots. None means that the file didn't
    exist, unless ``no_before`` or ``no_after`` says why there is no snapshot. A blob may have been
    deleted since, because snapshots took too much space.
    """

    path: str
    before: str | None = None
    after: str | None = None
    before_object: str = ""
    """Id of the git object with the content before the change, if no blob has it."""
    before_mode: int = 0
    """Permission bits; 0 if there was no file."""
    after_mode: int = 0
    no_before: str = ""
    """Why there is no snapshot of the file before the change, such as its size; "" if there is
    one, or there was no file."""
    no_after: str = ""
    job: bool = False
    """Whether the change was found while a background job ran, so the user may have made it."""


class RunnerState(StrEnum):
    """The state of a race's runner."""

    WAITING = "waiting"
    """The runner's copy of the project is being made."""
    WORKING = "working"
    CHECKING = "checking"
    """The runner has finished, and the check runs in its copy."""
    DONE = "done"
    """The runner has finished; there was no check."""
    PASSED = "passed"
    """The check ended with exit code 0."""
    FAILED = "failed"
    """The check ended with another exit code, took too long, or couldn't be run."""
    PAUSED = "paused"
    """The runner reached its step limit; there was no check. It can be continued."""
    STOPPED = "stopped"
    """The user stopped the runner, or another runner won."""
    ERROR = "error"
    """The runner failed; ``problem`` says why."""
    CUT_OFF = "cut_off"
    """The program ended while the runner worked. It can be continued."""

    @property
    def is_over(self) -> bool:
        return self not in {RunnerState.WAITING, RunnerState.WORKING, RunnerState.CHECKING}


class CheckResult(_Record):
    """The result of a race's check in one copy.

    ``exit_code`` is None if the check couldn't be run or took too long.
    """

    exit_code: int | None
    seconds: float = 0.0
    last_lines: tuple[str, ...] = ()


class RaceRunner(_Record):
    """A runner of a race and its result.

    Costs are in US dollars; the branch goes from ``root`` to ``leaf``.
    """

    name: str
    model: str = ""
    effort: Effort | None = None
    mode: str = ""
    context: str = Field(default="", exclude_if=lambda context: not context)
    """The context the runner began with: "pruned", "compacted" or "without #12 #14"; "" for the
    whole conversation."""
    next_request: int = Field(default=0, exclude_if=lambda tokens: not tokens)
    """Tokens of the next request on the runner's branch; 0 unless the race compares contexts."""
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
    """Seconds the runner worked, excluding its check."""

    @property
    def rank(self) -> tuple[int, float, float]:
        """Sort key that puts the best runner first: by state, then cost, then seconds.

        The order of states is passed, done, paused, failed, any other.
        """
        best = (RunnerState.PASSED, RunnerState.DONE, RunnerState.PAUSED, RunnerState.FAILED)
        return best.index(self.state) if self.state in best else len(best), self.cost, self.seconds


# -- entries ---------------------------------------------------------------------------------------


class EntryBase(_Record):
    """The fields of every entry. ``id`` is 0 until the store has appended the entry.

    The class variables are traits that all entries of a kind share; their defaults suit a kind that
    is neither sent to the model nor shown as a message.
    """

    letter: ClassVar[str]
    """The letter that stands for the kind in compact lists of entries; never `UNKNOWN_KIND`."""
    is_message: ClassVar[bool | None] = False
    """Whether entries of this kind are sent to the model as messages; None if this depends on the
    entry (see `is_sent`)."""
    sets_state: ClassVar[bool] = False
    """Whether only the last entry of this kind on a path has effect: head, model, mode, effort."""
    edits_view: ClassVar[bool] = False
    """Whether an entry of this kind changes how other entries are sent to the model."""
    breaks_prefix: ClassVar[bool] = False
    """Whether an entry of this kind changes earlier parts of the request, so that the next request
    may no longer begin with the previous one."""
    frees_room: ClassVar[bool] = False
    """Whether an entry of this kind makes the next request smaller."""
    costs: ClassVar[bool] = False
    """Whether an entry of this kind results from a request, and has a model, usage and cost."""
    starts_turn: ClassVar[bool] = False
    """Whether an entry of this kind begins a turn if it is sent to the model."""
    follows_calls: ClassVar[bool] = False
    """Whether an entry of this kind belongs to the tool calls of the answer before it."""
    is_dialogue: ClassVar[bool] = False
    """Whether an entry of this kind is a message by the user or the model."""
    is_mentionable: ClassVar[bool] = False
    """Whether the prompt's completion offers entries of this kind, because their text is worth
    citing."""
    in_outline: ClassVar[bool] = False
    """Whether an entry of this kind has a row in the outline of a path."""
    is_shown: ClassVar[bool] = True
    """Whether the transcript shows anything for an entry of this kind."""
    is_marker: ClassVar[bool] = False
    """Whether the transcript shows an entry of this kind as a single line."""
    is_quiet: ClassVar[bool] = False
    """Whether the tree hides entries of this kind unless it shows everything."""
    undone_alone: ClassVar[bool | None] = False
    """Whether undo removes only this entry when it is the last one on a path, instead of its whole
    turn; None if this depends on the entry."""

    id: int = 0
    parent_id: int | None = None
    created_at: int = 0
    preview: str = ""
    tokens: int = 0
    scripts: Scripts = Field(default=(), exclude_if=lambda scripts: not scripts)
    """Number of tokens that are not ASCII or are digits, by character class (see `Scripts`)."""

    @property
    def is_sent(self) -> bool:
        """Whether this entry is sent to the model as a message, unless a context edit hides it."""
        return bool(self.is_message)

    @property
    def images(self) -> Sequence[ImagePart]:
        return ()

    def said(self) -> Iterator[Said]:
        """Yield all texts of the entry, in reading order.

        The search index is built from them, so changing what a kind yields needs a new schema
        version.
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
    """A record of something the program did, not a message; its only text is its preview."""

    def said(self) -> Iterator[Said]:
        yield Said("noted", self.preview)


class SystemEntry(BookkeepingEntry):
    """The beginning of later requests: the system prompt, the tools and the opening message.

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
    """Text about this session's project, sent as the first message; "" in older sessions, where
    it is the second of ``blocks``."""
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
    """Whether the message was sent during a run; it is then wrapped in a reminder for the model."""

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
        """The number of new problems that checkers found, by path.

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


class AssistantEntry(EntryBase):
    """One answer of the model: text, reasoning and tool calls."""

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
    """In US dollars; None if the price is unknown."""
    finish: Literal[
        "stop", "tool_calls", "length", "content_filter", "pause", "error", "interrupted"
    ] = "stop"
    """Why the answer ended. ``pause``: the provider continues the answer when the conversation is
    sent again."""
    error: str | None = None
    """Why the request failed or the provider refused to answer, as a sentence; else None."""
    interrupted: bool = False
    estimate: int = 0
    """Estimated tokens of the request, compared with ``usage`` to calibrate later estimates."""
    started_at: int = 0
    first_token_at: int | None = None

    @property
    def text(self) -> str:
        """The text of the answer, without reasoning and tool calls."""
        return "".join([part.text for part in self.parts if part.type == "text"])

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
    it is None if ``output`` is the whole output, or if the tool can produce the rest again.
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
        """Return the whole output, or ``output`` if there is no blob or it was deleted.

        ``blob`` returns a blob's bytes by its digest, None if it has been deleted.
        """
        if self.full_output and (full := blob(self.full_output)) is not None:
            return full.decode("utf-8", "replace")
        return self.output

    def said(self) -> Iterator[Said]:
        yield Said("noted", self.title, self.tool)
        yield Said("returned", self.output)


class SummaryEntry(EntryBase):
    """A summary of other entries: its text, its author, and the details the program kept."""

    summary: str
    style: Literal["summary", "notes", "native", "hook"] = Field(
        default="summary", exclude_if=lambda style: style == "summary"
    )
    """Who wrote the summary: "summary": a summariser model; "notes": the model itself (older
    versions); "native": the provider; "hook": a hook."""
    details: SummaryDetails = SummaryDetails.model_construct()
    model: str | None = None
    usage: Usage | None = None
    cost: float | None = None

    def said(self) -> Iterator[Said]:
        yield Said("said", self.summary)


class CompactionEntry(SummaryEntry):
    """A summary that replaces everything on the path before the entry ``first_kept_id``.

    If ``first_kept_id`` is None, it replaces everything before this entry.
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
    """The provider's own compaction as JSON, which is sent to ``model`` byte for byte instead of
    ``summary``; None if there is only ``summary``."""
    instructions: str | None = None
    prepared: bool = Field(default=False, exclude_if=lambda prepared: not prepared)
    """Whether the summary was written in the background during the preceding work."""

    def is_read_by(self, model: str | None) -> bool:
        """Return True if this compaction can be sent to ``model``.

        A provider's ``item`` can only be sent to the model that made it; any other model is sent
        the summarised entries themselves. Also True if the model is unknown (None or "").
        """
        return self.item is None or not model or self.model == model


class BranchSummaryEntry(SummaryEntry):
    """A summary of the branch that ends at ``from_id``, stored where the user moved to."""

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
    """A finished race: its runners, and which one was taken."""

    letter = "o"
    undone_alone = True
    in_outline = True
    is_marker = True

    kind: Literal["race"] = "race"
    prompt: str
    start: int | None = None
    """Id of the entry after which the runners' branches begin; None if they begin the session."""
    check: str = ""
    """The check command that ran in each copy, "" for none."""
    runners: tuple[RaceRunner, ...]
    taken: int | None = None
    """Number of the runner that was taken, counted from 1; None if none was."""
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
    """A run of the project's check command, made when the model ended its turn.

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
    """None if the check couldn't be run or took too long."""
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
    """The first entry of a subagent's branch."""

    letter = "p"
    in_outline = True
    is_shown = False

    kind: Literal["subagent"] = "subagent"
    agent: str
    """The name of the agent."""
    task: str
    call_id: str
    call: int | None = None
    """Id of the answer that has the tool call; the tree shows the branch below that answer."""


class PruneEntry(BookkeepingEntry):
    """Clears or shortens old outputs, long arguments or images in later requests."""

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
    """Maximum characters that are kept of each text of a target, from the text's beginning and end;
    0 to replace the target with a placeholder."""
    notes: tuple[str, ...] = ()
    """Texts to add to the targets' placeholders, one for each of ``targets``; empty if no text is
    added."""

    @property
    def removes_images(self) -> bool:
        """Whether only images were removed, and every text is kept whole."""
        return self.keep_chars >= ALL_TEXT

    @property
    def effect(self) -> str:
        """What was done, in words: ``cleared 2 tool outputs``."""
        count = len(self.targets)
        entries = "1 entry" if count == 1 else f"{count} entries"
        if self.removes_images:
            return f"cleared the images of {entries}"
        if self.keep_chars:
            # Messages and the arguments of calls are shortened, too.
            return f"shortened {entries}"
        return f"cleared {count} tool output{'' if count == 1 else 's'}"


class ContextEditEntry(BookkeepingEntry):
    """Changes how one entry is sent to the model.

    Made by the user (drop, mask, pin, restore, edit), or by the program after a provider refused
    parts of the entry (leave_out).
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
    """For an ``edit``: the text that is sent to the model instead of the entry's content."""
    parts: tuple[str, ...] = Field(default=(), exclude_if=lambda parts: not parts)
    """For a ``leave_out``: the blobs of the images left out, or `REASONING`, which also leaves out
    the reasoning of all earlier answers."""
    note: str = Field(default="", exclude_if=lambda note: not note)
    """For a ``leave_out``: the reason, in words for the user."""


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
    """The chosen model, if it can't be used and ``model`` stands in for it; else None."""

    @property
    def label(self) -> str:
        """Text for the user: the model's name, and the model that it stands in for, if any."""
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
    """The files that changed since the last checkpoint on the path."""

    letter = "e"
    follows_calls = True
    undone_alone = None
    is_quiet = True
    is_shown = False

    kind: Literal["checkpoint"] = "checkpoint"
    files: tuple[FileChange, ...]
    """The changes, oldest first. A file may occur more than once, if another program changed it
    between two of the agent's changes."""
    omitted: int = 0
    """Number of further changed files that are not in ``files``, because there were too many."""
    put_back_to: int | None = Field(default=None, exclude_if=lambda entry: entry is None)
    """If the user restored the files to an earlier state without moving in the tree, the id of the
    entry with that state, 0 for the beginning of the session; else None."""

    def said(self) -> Iterator[Said]:
        for change in self.files:
            yield Said("noted", change.path)


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
"""Any entry. The union is closed: a new kind needs a migration."""

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
"""Classes that every turn uses. Their validators are built ahead of the first turn, by
``model_rebuild``."""


def kinds(holds: Callable[[type[EntryBase]], bool | None]) -> tuple[str, ...]:
    return tuple(kind for kind, entry in KINDS.items() if holds(entry))


EntryAdapter: TypeAdapter[Entry] = TypeAdapter(Entry, config=ConfigDict(defer_build=True))
"""Validates and dumps any entry."""


def command_line(parts: Sequence[UserPart]) -> str | None:
    """Return the command line (``/review app.py``) that a message was made from.

    None if it was not made from a command line.
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
    """Return a message as the user typed it, without attachments: its text, or its command line."""
    line = command_line(parts)
    if line is None:
        return joined_text(parts)
    return line


def prompt_text(parts: Sequence[UserPart]) -> str:
    """Return a message as text for the prompt, to edit and send it again.

    This is the typed text, followed by ``@path`` for each attachment with a path that the text
    doesn't name. For a message made from a command line, it is only that line.
    """
    text = typed_text(parts)
    if command_line(parts) is not None:
        # The files that the command line names are attached again when the line is sent.
        return text
    paths = [part.path for part in parts if not isinstance(part, TextPart) and part.path]
    return " ".join([text, *(f"@{path}" for path in paths if f"@{path}" not in text)]).strip()
