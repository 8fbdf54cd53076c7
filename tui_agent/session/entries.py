"""The entries of a session: a closed union of immutable records that form an append-only tree.

Everything a session knows is an entry; a change of the model's view (compaction, prune, context
edit, model change) is an entry too and never touches another one. Ids are integers that ascend
within a session and are written ``#412`` for people and models. Tokens are estimates in the model's
tokens, times are milliseconds since the epoch, blobs are hexadecimal SHA-256 digests of content
kept in the store.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeGuard, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tui_agent.pictures import PDF
from tui_agent.session.counting import Scripts
from tui_agent.session.effort import DEFAULT_EFFORT, Effort

SKILL_PREFIX = "skill:"
"""Begins the path of an attached part that is a skill's text."""
AGENT_PREFIX = "agent:"
"""Begins the path of an attached part that names an agent for a task."""
SESSION_PREFIX = "session:"
"""Begins the path of an attached part from another session (``session:1a2b3c4d#34``)."""
DIAGNOSTICS_PREFIX = "diagnostics:"
"""Begins the path of an attached part with checkers' findings in a file, their number first."""
PLAN_PATH = "plan:"
"""The path of an attached part that is a plan the user approved."""

_NAMED = ("#", SKILL_PREFIX, AGENT_PREFIX, SESSION_PREFIX, DIAGNOSTICS_PREFIX, PLAN_PATH)
"""Begins the path of an attached part that is no file."""

REASONING = "reasoning"
"""The part of answers that a provider refused to take back, as ``ContextEditEntry.parts`` says
it."""

INTERRUPTED_OUTPUT = "[Tool execution was interrupted]"
"""Stands in for the result of a call that never ended."""


Role = Literal["asked", "attached", "said", "reasoned", "called", "returned", "noted"]
"""What a text of an entry is.

It was asked in the user's name, or attached; said by a model (an answer, a summary), or reasoned;
called (the arguments of a tool call, the user's command), or returned by that; or noted by the
program, for people.
"""

CONTENT: Final[tuple[Role, ...]] = ("asked", "attached", "said", "returned")
"""The texts that are a message's content."""


class Said(NamedTuple):
    """A text of an entry.

    ``name`` is the file, the tool or the command line that the text belongs to.
    """

    role: Role
    text: str
    name: str = ""


class _Record(BaseModel):
    """Base of everything stored: frozen, and strict about unknown fields."""

    # Checking is compiled when the first of a kind is made: compiling all of them is a tenth of a
    # start.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


# -- parts -----------------------------------------------------------------------------------------


class TextPart(_Record):
    """Text as written by the user or the model.

    ``typed`` is what the user typed where that is something else: the line of a command (``/review
    app.py``) of which this text and all other parts of the message were made.
    """

    type: Literal["text"] = "text"
    text: str
    typed: str | None = Field(default=None, exclude_if=lambda typed: typed is None)


class FilePart(_Record):
    """A file the user attached with ``@path``; ``text`` is what the model is shown of it.

    A path can also name what is no file: an entry (``#412``), a skill (``skill:pdf``), an agent
    (``agent:explore``), a directory (``src/``), a server's resource (``docs:memo://today``).
    """

    type: Literal["file"] = "file"
    path: str
    text: str

    @property
    def is_file(self) -> bool:
        is_named = self.path.startswith(_NAMED) or "://" in self.path
        return not is_named and not self.path.endswith("/")


class ImagePart(_Record):
    """An image, or a PDF of some pages, in the blob store.

    Width and height are pixels, 0 when unknown.
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
        """What it is called: an image, or a document."""
        return "document" if self.mime == PDF else "image"

    @property
    def is_document(self) -> bool:
        return self.mime == PDF


class ReasoningPart(_Record):
    """What the model thought.

    ``blob`` is the provider's own JSON for it, kept byte for byte, because signed thinking must go
    back exactly as it came or not at all. ``model`` is the only model it may go back to.
    """

    type: Literal["reasoning"] = "reasoning"
    text: str
    blob: str | None = None
    model: str = ""


class ToolCallPart(_Record):
    """A call the model asked for.

    ``arguments`` is the JSON text as the model wrote it, valid or not.
    """

    type: Literal["tool_call"] = "tool_call"
    call_id: str
    tool: str
    arguments: str
    as_text: bool = False
    """The model wrote it into its answer; its server returned no native call."""


UserPart = Annotated[TextPart | FilePart | ImagePart, Field(discriminator="type")]
AssistantPart = Annotated[TextPart | ReasoningPart | ToolCallPart, Field(discriminator="type")]


class Usage(_Record):
    """Tokens as the provider counted them.

    ``input`` excludes what was read from or written to the prompt cache; ``output`` includes
    ``reasoning``.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """Tokens the next request starts from: everything sent plus everything answered."""
        return self.input + self.cache_read + self.cache_write + self.output

    @property
    def prompt(self) -> int:
        return self.input + self.cache_read + self.cache_write


class ToolSchema(_Record):
    """A tool as the model is told of it. ``parameters`` is a JSON schema."""

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
    """What was left out of a tool output when it was born. Bytes are UTF-8."""

    total_lines: int
    total_bytes: int
    kept_lines: int
    kept_bytes: int


class ToolMetadata(_Record):
    """Facts about a tool result that the program uses and the model is not shown."""

    path: str | None = None
    diff: str | None = None
    additions: int = 0
    deletions: int = 0
    exit_code: int | None = None
    count: int | None = None
    """Matches, files or lines, whatever the tool counts."""
    truncation: Truncation | None = None
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    session: str | None = None
    """The session a subagent worked in, before subagents worked on branches."""
    branch: int | None = Field(default=None, exclude_if=lambda branch: branch is None)
    """The last entry of the branch a subagent worked on."""

    @property
    def of_subagent(self) -> bool:
        return self.session is not None or self.branch is not None

    opens_window: bool = Field(default=False, exclude_if=lambda opens: not opens)
    """The model asked for a new context window."""
    known_from: int | None = Field(default=None, exclude_if=lambda known: known is None)
    """The earlier result this one points to or tells the difference from, instead of saying all of
    it again."""
    is_known: bool = Field(default=False, exclude_if=lambda known: not known)
    """Everything in it was in ``known_from``: it tells nothing new."""


class PinnedText(_Record):
    """A pinned entry as a summary carries it: its id and all the model is shown of it."""

    id: int
    text: str


class StateText(_Record):
    """State that outlives a summary because it is no conversation: the to-do list, a loaded skill."""

    tool: str
    """The tool that made it: todo, skill."""
    name: str = ""
    text: str


class SummaryDetails(_Record):
    """What code, not the model, carried through a summary.

    File lists are cumulative, oldest touch first.
    """

    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    """Lines as the model is shown them."""
    user_messages: tuple[str, ...] = ()
    rules: tuple[str, ...] = Field(default=(), exclude_if=lambda rules: not rules)
    """Sentences of the user that bind, word by word, as the model is shown them: ``#34 Never …``."""
    rules_known: tuple[str, ...] = Field(default=(), exclude_if=lambda rules: not rules)
    """Those and the ones that stand in carried messages; the model is not shown this list."""
    rules_lost: int = Field(default=0, exclude_if=lambda count: not count)
    """Rules that no longer fit: what the user has to be told."""
    untold: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """Names that the agent used while the summary was written, and of which it says nothing; the
    model is not shown this list."""
    pinned: tuple[PinnedText, ...] = ()
    state: tuple[StateText, ...] = ()
    shown_files: int | None = None
    """Newest paths of each file list that the model is shown; None is all."""
    file_ids: dict[str, int] = Field(default_factory=dict, exclude_if=lambda ids: not ids)
    """The newest entries that name those files, which the model is shown beside them."""
    hook: str = Field(default="", exclude_if=lambda hook: not hook)
    """A hook's data to keep with it, as JSON; the model is not shown it."""
    remembered: tuple[str, ...] = ()
    """Encoded anchors the next summary starts from; the model is not shown them."""


class FileChange(_Record):
    """One change of a file.

    A missing blob means the file was absent, unless a reason says why it has no image.

    ``path`` is relative to the project. A digest may name a blob that was dropped when images took
    too much room.
    """

    path: str
    before: str | None = None
    after: str | None = None
    before_object: str = ""
    """Git's name for the content before, where there is no blob of it."""
    before_mode: int = 0
    """Permission bits, 0 for no file."""
    after_mode: int = 0
    no_before: str = ""
    """Why there is no image of the file as it was, although there was one: it was too large,
    say."""
    no_after: str = ""
    job: bool = False
    """It was seen while a background job ran, so that the user may have made it."""


class RunnerState(StrEnum):
    """How far a runner of a race is."""

    WAITING = "waiting"
    """Its copy of the project is being made."""
    WORKING = "working"
    CHECKING = "checking"
    """It has ended, and the check runs in its copy."""
    DONE = "done"
    """It has ended on its own; there was no check."""
    PASSED = "passed"
    """The check ended with exit code 0."""
    FAILED = "failed"
    """The check ended otherwise, or could not be run."""
    PAUSED = "paused"
    """It made the steps it was to look ahead; there was no check. It can be continued."""
    STOPPED = "stopped"
    """The user stopped it, or another one was first."""
    ERROR = "error"
    """It could not go on; ``problem`` says why."""
    CUT_OFF = "cut_off"
    """The program ended in the middle of it. It can be continued."""

    @property
    def is_over(self) -> bool:
        return self not in {RunnerState.WAITING, RunnerState.WORKING, RunnerState.CHECKING}


class CheckResult(_Record):
    """How a race's check ended in one copy.

    ``exit_code`` is None where it could not be run or took too long.
    """

    exit_code: int | None
    seconds: float = 0.0
    last_lines: tuple[str, ...] = ()


class RaceRunner(_Record):
    """What one runner of a race is, and what it reached.

    Money is US dollars; the branch is ``root`` to ``leaf``.
    """

    name: str
    model: str = ""
    effort: Effort | None = None
    mode: str = ""
    context: str = Field(default="", exclude_if=lambda context: not context)
    """The part of the conversation it saw: "pruned", "compacted" or "without #12 #14"; "" for all."""
    next_request: int = Field(default=0, exclude_if=lambda tokens: not tokens)
    """Tokens of the request with which its branch goes on; 0 unless contexts are compared."""
    root: int | None = None
    """The first entry of its branch; None before there is one."""
    leaf: int | None = None
    """The last entry of its branch."""
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
    """How long it worked, its check left out."""

    @property
    def rank(self) -> tuple[int, float, float]:
        """Sorts runners, the best first: by the check, then by cost, then by time."""
        best = (RunnerState.PASSED, RunnerState.DONE, RunnerState.PAUSED, RunnerState.FAILED)
        return best.index(self.state) if self.state in best else len(best), self.cost, self.seconds


# -- entries ---------------------------------------------------------------------------------------


class EntryBase(_Record):
    """Fields every entry has. ``id`` is 0 until the store has appended the entry.

    Traits of a kind of entry are class variables; the values here are those of a kind that only the
    program needs.
    """

    letter: ClassVar[str]
    """Stands for the kind where there are very many entries; `UNKNOWN_KIND` is none of them."""
    is_message: ClassVar[bool | None] = False
    """Whether the model is sent such entries as messages; None: it depends on the entry, see
    `is_sent`."""
    sets_state: ClassVar[bool] = False
    """Only the last one on a path holds: the head, the model, the mode, the effort."""
    edits_view: ClassVar[bool] = False
    """Changes the model's view of other entries."""
    breaks_prefix: ClassVar[bool] = False
    """Changes the earlier part of the request, too: the request after it need not extend the one
    before it."""
    frees_room: ClassVar[bool] = False
    """Makes the next request smaller."""
    costs: ClassVar[bool] = False
    """Was made by a request: has a model, usage and a cost."""
    starts_turn: ClassVar[bool] = False
    """A turn begins with it, if the model is sent it: something the user did, or a branch they came
    from."""
    follows_calls: ClassVar[bool] = False
    """Belongs to the calls of the answer before it."""
    is_dialogue: ClassVar[bool] = False
    """Said by the user or the model: no earlier request is made again after it."""
    is_mentionable: ClassVar[bool] = False
    """Says something to a person or a model, so that one may want to name it in a message."""
    in_outline: ClassVar[bool] = False
    """Has a row in the outline of a path."""
    is_shown: ClassVar[bool] = True
    """Whether the transcript has something for it."""
    is_marker: ClassVar[bool] = False
    """The transcript shows it as one line."""
    is_quiet: ClassVar[bool] = False
    """The tree shows it only where it shows everything."""
    undone_alone: ClassVar[bool | None] = False
    """At the end of a path it is undone alone, the turn before it stays; None: it depends on the
    entry."""

    id: int = 0
    parent_id: int | None = None
    created_at: int = 0
    preview: str = ""
    tokens: int = 0
    scripts: Scripts = Field(default=(), exclude_if=lambda scripts: not scripts)
    """Those of the tokens that are outside ASCII, by script."""

    @property
    def is_sent(self) -> bool:
        """Whether the model is sent this entry as a message, unless it is edited out."""
        return bool(self.is_message)

    @property
    def images(self) -> Sequence[ImagePart]:
        return ()

    def said(self) -> Iterator[Said]:
        """Yield all texts of the entry, in the order in which they are read.

        The search index is built from them: the texts of a stored entry must stay the same as long
        as the schema version does.
        """
        raise NotImplementedError(type(self).__name__)

    def texts(self, *roles: Role) -> list[str]:
        """Return the texts of some roles, in order."""
        return [said.text for said in self.said() if said.role in roles]


# Pydantic goes through the annotations of every base again for each kind, 2 ms of a start for these.
for _name in EntryBase.__class_vars__:
    del EntryBase.__annotations__[_name]


class BookkeepingEntry(EntryBase):
    """An entry that is no message: what the program records, of which people read the preview."""

    def said(self) -> Iterator[Said]:
        yield Said("noted", self.preview)


class SystemEntry(BookkeepingEntry):
    """The rendered head of every request after it: prompt and tools, the same in every project, and the opening.

    The last one on the path wins.
    """

    letter = "f"
    sets_state = True
    breaks_prefix = True
    is_quiet = True
    is_shown = False

    kind: Literal["system"] = "system"
    blocks: tuple[str, ...]
    opening: str = Field(default="", exclude_if=lambda text: not text)
    """Text particular to this session, sent as the conversation's first message; sessions from
    before have it as the second of the blocks."""
    tools: tuple[ToolSchema, ...] = ()
    model: str
    mode: str = "build"


class UserEntry(EntryBase):
    """A message of the user, or one written by the program on their behalf (``synthetic`` names why)."""

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
    """Sent while the agent was working; the model sees it wrapped as a reminder, then and ever
    after."""

    @property
    def text(self) -> str:
        """The text as it is sent, without attachments."""
        return joined_text(self.parts)

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
        """How many problems checkers found that are new, by file of the project.

        Empty for any other message.
        """
        found: dict[str, int] = {}
        if not self.synthetic:
            return found
        for file in self.attached:
            if file.path.startswith(DIAGNOSTICS_PREFIX):
                count = file.text.partition(" ")[0]
                if count.isdecimal():
                    found[file.path.removeprefix(DIAGNOSTICS_PREFIX)] = int(count)
        return found


class ShellEntry(EntryBase):
    """A command the user ran themselves with ``!`` (or ``!!``: ``excluded`` from the model's view)."""

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
    """One answer of the model: text, reasoning and the tool calls it asked for."""

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
    """US dollars; None when the price is unknown."""
    finish: Literal[
        "stop", "tool_calls", "length", "content_filter", "pause", "error", "interrupted"
    ] = "stop"
    """Why it ended. ``pause``: the provider goes on with it when it is sent the conversation
    again."""
    error: str | None = None
    """The failure, or why the provider refused to answer, in a sentence."""
    interrupted: bool = False
    estimate: int = 0
    """Tokens the program had estimated for the request; with ``usage`` it calibrates later
    estimates."""
    started_at: int = 0
    first_token_at: int | None = None

    @property
    def text(self) -> str:
        """The answer without reasoning and tool calls."""
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
    """What a tool call gave.

    ``output`` is what the model sees; ``full_output`` is the blob of all of it.
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
        """Return all of the output, what the model was not sent too, if ``blob`` still has it."""
        if self.full_output and (full := blob(self.full_output)) is not None:
            return full.decode("utf-8", "replace")
        return self.output

    def said(self) -> Iterator[Said]:
        yield Said("noted", self.title, self.tool)
        yield Said("returned", self.output)


class SummaryEntry(EntryBase):
    """A summary of other entries: what it says, who wrote it, what code carried through it."""

    summary: str
    style: Literal["summary", "notes", "native", "hook"] = Field(
        default="summary", exclude_if=lambda style: style == "summary"
    )
    """Who wrote the summary: a summariser, the model in its working notes (older versions), the
    provider, a hook."""
    details: SummaryDetails = SummaryDetails.model_construct()
    model: str | None = None
    usage: Usage | None = None
    cost: float | None = None

    def said(self) -> Iterator[Said]:
        yield Said("said", self.summary)


class CompactionEntry(SummaryEntry):
    """A summary that stands for everything on the path before ``first_kept_id``."""

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
    """The provider's own compaction, JSON text: goes back byte for byte to ``model``, in place of
    ``summary``."""
    instructions: str | None = None
    prepared: bool = Field(default=False, exclude_if=lambda prepared: not prepared)
    """Whether the summary was written beside the work, so that nothing waited for it."""

    def is_read_by(self, model: str | None) -> bool:
        """Whether a model, if one is named, can read it.

        Those that can't read an item get the entries instead.
        """
        return self.item is None or not model or self.model == model


class BranchSummaryEntry(SummaryEntry):
    """A summary of a branch that was left at ``from_id``, told to the branch it was appended to."""

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
    """A race that ended: who ran from ``start`` on, what each reached, and which one was taken."""

    letter = "o"
    undone_alone = True
    in_outline = True
    is_marker = True

    kind: Literal["race"] = "race"
    prompt: str
    start: int | None = None
    """The entry whose children the runners' branches are."""
    check: str = ""
    """The command that was run in each copy, "" for none."""
    runners: tuple[RaceRunner, ...]
    taken: int | None = None
    """The number of the runner whose branch goes on, counted from 1; None when none was taken."""
    saved: float = 0.0
    """US dollars that stopping the others early saved, at the rate they were spending."""
    comparison: str = ""
    """How the changes differ, as a model sees it."""

    @property
    def winner(self) -> RaceRunner | None:
        if self.taken is None:
            return None
        return self.runners[self.taken - 1]


class CheckEntry(BookkeepingEntry):
    """The project's check ran because the model said that it was done.

    The model is sent a failure as a message.
    """

    letter = "q"
    in_outline = True
    is_marker = True

    kind: Literal["check"] = "check"
    command: str
    output: str
    """The end of its output."""
    exit_code: int | None = None
    """None where it could not be run or took too long."""
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
    """The branch of a subagent begins here: it goes on from the conversation, or from nothing."""

    letter = "p"
    in_outline = True
    is_shown = False

    kind: Literal["subagent"] = "subagent"
    agent: str
    """The kind of agent."""
    task: str
    call_id: str
    call: int | None = None
    """The entry that asked for it, under which the tree shows the branch."""


class PruneEntry(BookkeepingEntry):
    """Old tool results that are placeholders from here on."""

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
    """Characters of each target that stay, from its head and tail, instead of a placeholder."""
    notes: tuple[str, ...] = ()
    """Each target's placeholder text beside its gist, in the order of ``targets``; empty for
    none."""


class ContextEditEntry(BookkeepingEntry):
    """A change to the model's view of one entry: the user's own, or of parts that a provider refused."""

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
    """For an ``edit``: the text that the model is sent in place of the content."""
    parts: tuple[str, ...] = Field(default=(), exclude_if=lambda parts: not parts)
    """What is left out of it: images, by blob, or `REASONING`, which counts for the answers before
    it too."""
    note: str = Field(default="", exclude_if=lambda note: not note)
    """Why parts are left out, for people."""


class ModelChangeEntry(BookkeepingEntry):
    """The model from here on."""

    letter = "l"
    sets_state = True
    breaks_prefix = True
    is_marker = True
    is_quiet = True

    kind: Literal["model_change"] = "model_change"
    model: str
    stands_in_for: str | None = Field(default=None, exclude_if=lambda model: model is None)
    """The model that the user chose, which can't be used for now."""

    @property
    def told(self) -> str:
        """The change as people read it."""
        if self.stands_in_for:
            return f"{self.model}, standing in for {self.stands_in_for}"
        return self.model


class EffortChangeEntry(BookkeepingEntry):
    """How much the model thinks from here on, whichever model it is; None: as the settings say."""

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
    """The mode (build, plan, ...) from here on."""

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
    """In the order of the changes; a file that someone else changed in between is there more than
    once."""
    omitted: int = 0
    """Files that changed too, of which nothing is known: there were too many."""
    put_back_to: int | None = Field(default=None, exclude_if=lambda entry: entry is None)
    """The user had files put back to how they were at this entry, 0 for the beginning, and stayed
    where they were."""

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
"""Any entry. Closed: a new kind is a migration."""

KINDS: Final[Mapping[str, type[EntryBase]]] = {
    entry.model_fields["kind"].default: entry for entry in get_args(get_args(Entry)[0])
}
"""The class of each kind, by its name: a header or an outline knows only the kind of an entry."""

OF_A_TURN: Final = (
    TextPart,
    UserEntry,
    Usage,
    ToolCallPart,
    AssistantEntry,
    ToolMetadata,
    ToolResultEntry,
)
"""Classes any turn makes. The checks of each are built with the first of them, unless
``model_rebuild`` did before."""


def kinds(holds: Callable[[type[EntryBase]], bool | None]) -> tuple[str, ...]:
    return tuple(kind for kind, entry in KINDS.items() if holds(entry))


EntryAdapter: TypeAdapter[Entry] = TypeAdapter(Entry, config=ConfigDict(defer_build=True))
"""Validates and dumps any entry."""


def command_line(parts: Sequence[UserPart]) -> str | None:
    """Return the command the message was made by, as it was typed.

    None when the typed text itself is sent.
    """
    for part in parts:
        if isinstance(part, TextPart) and part.typed is not None:
            return part.typed
    return None


def joined_text(parts: Iterable[UserPart | AssistantPart]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def is_by_user(entry: EntryBase) -> TypeGuard[UserEntry]:
    """Whether an entry is a message that the user wrote, not the program on their behalf."""
    return isinstance(entry, UserEntry) and entry.synthetic is None


def typed_text(parts: Sequence[UserPart]) -> str:
    """Return the text of a message as the user typed it, without attachments.

    The line of a command stands for everything that was made of it.
    """
    line = command_line(parts)
    if line is None:
        return joined_text(parts)
    return line


def prompt_text(parts: Sequence[UserPart]) -> str:
    """Return the text to edit a message as: the typed text, and attachments it does not name."""
    text = typed_text(parts)
    if command_line(parts) is not None:
        # Attachments it names were read for the command, and are again when the line is sent.
        return text
    paths = [part.path for part in parts if not isinstance(part, TextPart) and part.path]
    return " ".join([text, *(f"@{path}" for path in paths if f"@{path}" not in text)]).strip()
