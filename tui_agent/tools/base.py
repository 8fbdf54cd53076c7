"""Base classes of tools, the context that is passed to a call, and the result that it returns.

Also defines the interfaces through which tools reach the session (`Archive`, `SubagentHost`,
`EditorText`), which other modules implement, and makes the parameter schemas sent to models.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from tui_agent.context.projection import ModelTraits
from tui_agent.context.truncation import OutputLimits
from tui_agent.json_text import plain_value
from tui_agent.lazy import dataclass, frozen
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.processes.jobs import Jobs
from tui_agent.sandbox import Sandbox
from tui_agent.sandbox.view import AllowHost, Grants, View
from tui_agent.session.entries import ImagePart, ToolMetadata, ToolResultEntry, ToolSchema
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.questions import Asker
from tui_agent.tools.reads import FileReads
from tui_agent.web.searching import Searcher

InputT = TypeVar("InputT", bound="ToolInput")

PARAMETERS = Path(__file__).with_name("parameters.json")
"""JSON file with the parameter schema of each built-in tool, by name of the input class.
scripts/reference.py writes it, because generating the schemas at each start would take 10 ms."""

_NOISE = frozenset(
    {
        "title",
        "default",
        "additionalProperties",
        "minimum",
        "exclusiveMinimum",
        "maximum",
        "minItems",
        "minLength",
    }
)
"""JSON schema keywords left out of tool schemas, because they cost tokens in every request, and
some providers refuse bounds. A call with a value out of bounds still gets an error that says so."""


class ToolInput(BaseModel):
    """Base class of the tools' input models: a call's arguments, validated and immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


@frozen
class FoundEntry:
    """An entry of the session that a search found.

    ``kind`` is its entry kind (see the glossary). ``here`` is True if it is on the current path,
    False if it is on another branch.
    """

    entry_id: int
    kind: str
    gist: str
    """The entry summed up in one line."""
    lines: Sequence[tuple[int, str]]
    """The lines that match best, each with its number in the entry's text, from 1."""
    beside: str
    """One line: the tool call of a tool result, or the results of an answer's tool calls; "" for
    other entries."""
    here: bool


class Archive(Protocol):
    """Reads all entries of the session, in context or not, on any branch."""

    def text(self, entry_id: int) -> str | None:
        """Return an entry's text, with full outputs; None if there is no such entry or no text."""

    def remembered(self, topic: str) -> str | None:
        """Return the text of the entry from which the memory's line on ``topic`` was made.

        None if the memory has no such line, or the entry is unknown.
        """

    def names_in_use(self) -> Mapping[str, float]:
        """Return the names, paths, commands and the like in the context, each with a score.

        A higher score means that the name is more likely to be used again.
        """
        ...

    def images(self, entry_id: int) -> Sequence[ImagePart]: ...

    def search(self, query: str, limit: int) -> list[FoundEntry]: ...


@frozen
class SubagentReport:
    """A subagent's result: its last text, and its number of steps.

    ``branch`` is the id of the last entry on the subagent's branch, None if the branch is empty.
    ``error`` says why the subagent stopped early, None if it didn't.
    """

    text: str
    branch: int | None
    steps: int
    error: str | None = None


class SubagentHost(Protocol):
    """Starts and continues subagents for calls of the ``task`` tool."""

    def take_branch(self, call_id: str) -> int | None:
        """Return the id of the last entry on the branch of a call's subagent, and forget the id.

        None if no subagent worked for the call, or if its id was already returned.
        """
        ...

    def names(self) -> dict[str, str]: ...

    async def run(
        self,
        agent: str,
        task: str,
        progress: Callable[[str], None],
        *,
        call_id: str,
        in_conversation: bool = False,
    ) -> SubagentReport:
        """Start a subagent of the kind ``agent`` for a task. Cancelling ends the subagent.

        ``progress`` is called with a line for each tool call of the subagent. With
        ``in_conversation``, the subagent sees the conversation that the calling model was sent,
        otherwise only the task. Raises ToolError if there is no such kind.
        """
        ...

    async def resume(
        self, branch: int, task: str, progress: Callable[[str], None], *, call_id: str
    ) -> SubagentReport:
        """Give the subagent that wrote the entry ``branch`` another task, below that entry.

        Raises ToolError if the entry was not written by a subagent.
        """
        ...

    def agent_of(self, branch: int) -> str:
        """Return the kind ("explore") of the subagent that wrote the entry ``branch``.

        Raises ToolError if the entry was not written by a subagent.
        """
        ...


class EditorText(Protocol):
    """The editor in which the program runs. Its open files may have unsaved text."""

    async def unsaved(self, path: Path) -> str | None:
        """Return a file's unsaved text; None if it equals the file on disk or can't be read."""
        ...

    async def save(self, path: Path) -> bool:
        """Make the editor save a file that has unsaved text.

        Returns True if the editor saved the text that ``unsaved`` returned last. False if it saved
        another text, could not save it, or had nothing to save.
        """
        ...


@dataclass
class ToolContext:
    """Everything that a running call may use. Each call has a context of its own.

    ``cwd`` is the working directory. ``limits`` are the limits of the output, ``reads`` the states
    of the files read so far in the session. ``put_blob`` stores bytes and returns the blob's name,
    their SHA-256. ``report`` shows live output to the user.
    """

    cwd: Path
    project: Path
    limits: OutputLimits
    reads: FileReads
    put_blob: Callable[[bytes], str]
    report: Callable[[str], None] = lambda _text: None
    stands_for: Path | None = None
    """The original project if ``project`` is a race runner's copy of it, else None. Paths into the
    original are then taken as paths into the copy."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The environment of child processes, without secrets."""
    vision: bool = True
    """Whether the model accepts images."""
    document_pages: int = 0
    """Maximum pages of a PDF that the model accepts as a PDF; 0 if it accepts none."""
    archive: Archive | None = None
    """The session's entries; None without a session."""
    in_view: Callable[[str], Sequence[ToolResultEntry]] = lambda _file: ()
    """Returns the results of earlier reads of a file, newest first, if the model still sees them
    unchanged. Takes the file's path as results show it: relative to the project, or absolute
    outside it."""
    call_id: str = ""
    """The id of the call, as the provider gave it."""
    subagents: SubagentHost | None = None
    """Starts subagents; None in a subagent, which can't start any."""
    jobs: Jobs | None = None
    """The session's background jobs; None if commands can't become jobs."""
    sandbox: Sandbox | None = None
    """The sandbox for commands; None if they run without one."""
    view: View = View()
    """The view that limits what a command in the sandbox can read, change and reach."""
    allow_host: AllowHost | None = None
    """Asks the user whether a running command may reach a host; None if no one can be asked."""
    request_grants: Callable[[Grants, str], Awaitable[Grants | str]] | None = None
    """Asks the user for grants that a command lacked. Takes the grants and the command's name.
    Returns the grants for a second run, or a text that tells the model why they were refused. The
    attribute is None if no grants can be requested."""
    recorded: Callable[[Sequence[Path] | None], AbstractAsyncContextManager[None]] | None = None
    """Returns a context manager. It records, for checkpoints, the changes made inside it to the
    given files, or to any file of the project if given None. The attribute is None if the
    session records no changes."""
    editor: EditorText | None = None
    """The editor in which the program runs; None if it runs in none."""
    propose: Callable[[str], str] | None = None
    """Proposes a line for the project's memory and returns the line as stored. Blocks: call it in
    a thread. Raises NotKeptError if the line can't be stored. The attribute is None if there is no
    memory."""
    ask: Asker | None = None
    """Asks the user questions; None if no one can be asked."""
    notify: Callable[[str], None] = lambda _text: None
    """Shows the user a message that isn't part of the output."""
    allowed: frozenset[tuple[Permission, str]] | None = None
    """The permissions, each with its pattern, that were allowed before the call ran. If the call
    then needs another one, it fails. None if permissions were not checked."""
    harmless: bool = False
    """Whether the call needs only harmless permissions, because all its commands are known to be
    read-only."""
    searcher: Searcher | None = None
    """Searches the web through the model's provider; None if the provider can't."""
    verdict: Callable[[PermissionNeed], Literal["allow", "ask", "deny"]] = lambda _need: "ask"
    """Returns the rules' verdict on a need found while the call runs, such as the host to which an
    address redirects."""


@frozen
class ToolResult:
    """The result of a finished call.

    ``output`` is the text for the model, already cut to the limits. ``full_output`` names the blob
    with the whole output, None if none is stored. ``title`` is the heading of the call's card.
    """

    output: str
    title: str = ""
    is_error: bool = False
    attachments: tuple[ImagePart, ...] = ()
    full_output: str | None = None
    metadata: ToolMetadata = ToolMetadata.model_construct()


class Tool(ABC, Generic[InputT]):
    """A tool that the model can call."""

    name: ClassVar[str]
    description: ClassVar[str]
    Input: type[InputT]
    read_only: ClassVar[bool] = False
    """Whether calls change nothing, and so may run in parallel."""
    traits: ClassVar[ToolTraits] = ToolTraits()
    """Facts about the tool for code that knows only the tool's name."""
    instead: ClassVar[Mapping[str, str]] = {}
    """Advice for the error about a field that the tool lacks, by the field's name."""

    def offered_to(self, model: ModelTraits) -> bool:  # noqa: ARG002 - for subclasses
        """Return True if requests to a model include the tool. Calls work even if they don't."""
        return True

    @property
    def missing(self) -> str:
        """A sentence on what the user must set up before the tool is offered; "" if nothing."""
        return ""

    @abstractmethod
    def needs(self, arguments: InputT, context: ToolContext) -> tuple[PermissionNeed, ...]:
        """Return the permissions that a call needs, before it runs. May read files for a diff.

        Raises:
            ToolError: the call can't work (no such file, no match), so the user isn't asked.
        """

    @abstractmethod
    async def run(self, arguments: InputT, context: ToolContext) -> ToolResult:
        """Run the call. When cancelled, end all processes that it started.

        Raises:
            ToolError: the call failed; the message goes to the model.
        """

    def warm(self, environment: Mapping[str, str]) -> None:
        """Load modules that the first call needs, so that it is fast; does nothing by default.

        ``environment`` is the environment of child processes.
        """

    async def aclose(self, project: Path) -> None:
        """End processes that calls in a project left running for later calls.

        Does nothing by default.
        """

    def touches(self, arguments: InputT, context: ToolContext) -> tuple[Path, ...] | None:  # noqa: ARG002 - for subclasses
        """Return the real paths of the files that a call may change; None if it may change any.

        Reads the file system: call it in a thread.

        Raises:
            ToolError: the call can't work.
        """
        return () if self.read_only else None

    def command(self, arguments: InputT) -> str:  # noqa: ARG002 - for subclasses
        """Return the command line that a call runs in the sandbox; "" if it runs none."""
        return ""

    def title(self, arguments: InputT) -> str:
        """Return the heading of the call's card while it runs.

        By default, this is the first argument that isn't empty.
        """
        return next((str(value) for value in arguments.model_dump().values() if value), "")

    def resolve(self, arguments: InputT) -> "tuple[Tool[Any], ToolInput]":
        """Return the tool that runs the call, with its arguments.

        This is the tool itself, unless it only forwards calls to others.

        Raises:
            ToolError: the arguments name a tool that doesn't exist.
        """
        return self, arguments

    def schema(self) -> ToolSchema:
        """Return the name, description and parameters that are sent to the model."""
        return ToolSchema(
            name=self.name, description=self.description, parameters=_parameters(self.Input)
        )


class FreeTool(Tool[InputT]):
    """A tool whose calls need no permission."""

    def needs(self, arguments: InputT, context: ToolContext) -> tuple[PermissionNeed, ...]:  # noqa: ARG002 - as inherited
        return ()


@cache
def _parameters(accepted: type[ToolInput]) -> dict[str, Any]:
    """Return the JSON schema of a tool's parameters; cached, because each step needs it."""
    return _written_parameters().get(input_name(accepted)) or generate_parameters(accepted)


@cache
def _written_parameters() -> dict[str, dict[str, Any]]:
    written: dict[str, dict[str, Any]] = json.loads(PARAMETERS.read_bytes())
    return written


def plain_name(name: str) -> str:
    """Return a name in lower case without hyphens and underscores, for comparison."""
    return name.replace("_", "").replace("-", "").lower()


def input_name(accepted: type[ToolInput]) -> str:
    """Return an input class's module and name, which is its key in the file ``PARAMETERS``."""
    return f"{accepted.__module__}.{accepted.__qualname__}"


def generate_parameters(accepted: type[ToolInput]) -> dict[str, Any]:
    """Return the JSON schema of an input class, generated by pydantic and then slimmed."""
    parameters: dict[str, Any] = slim_schema(accepted.model_json_schema())
    return parameters


def slim_schema(schema: Any, definitions: dict[str, Any] | None = None) -> Any:
    """Return a JSON schema with references inlined, and without parts that cost tokens needlessly.

    The removed parts are titles, defaults, most bounds, null as an alternative, and descriptions of
    objects, which are docstrings of classes. ``definitions`` are the ``$defs`` of the schema that
    contains a nested one.
    """
    schema = dict(schema)
    definitions = schema.pop("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        slim = slim_schema(definitions[schema["$ref"].rpartition("/")[2]], definitions)
        if "description" in schema:
            slim["description"] = schema["description"]
        return slim
    if "anyOf" in schema:
        options = [option for option in schema.pop("anyOf") if option != {"type": "null"}]
        if len(options) == 1:
            return slim_schema(options[0] | schema, definitions)
        return {"anyOf": [slim_schema(option, definitions) for option in options]}
    for name in _NOISE:
        schema.pop(name, None)
    if "properties" in schema:
        schema.pop("description", None)
        fields = schema["properties"].items()
        schema["properties"] = {name: slim_schema(field, definitions) for name, field in fields}
    if "items" in schema:
        schema["items"] = slim_schema(schema["items"], definitions)
    return schema


class RawInput(ToolInput):
    """Arguments as the model wrote them. The server or function behind the tool checks them."""

    values: dict[str, Any]


class DynamicTool(Tool[RawInput]):
    """Base class of tools whose schema isn't built in: of MCP servers, tool files and add-ons."""

    # One class serves many tools, so these attributes, which built-in tools have on the class, are
    # set on each instance.
    name: str  # type: ignore[misc]  # of the instance
    description: str  # type: ignore[misc]  # of the instance
    read_only: bool  # type: ignore[misc]  # of the instance
    Input = RawInput

    def __init__(self, schema: ToolSchema, *, read_only: bool = False) -> None:
        self.name = schema.name
        self.description = schema.description
        self.read_only = read_only
        self._schema = schema

    def schema(self) -> ToolSchema:
        return self._schema

    def title(self, arguments: RawInput) -> str:
        values = arguments.values.items()
        shown = ", ".join(f"{name}: {plain_value(value)}" for name, value in values)
        for value in arguments.values.values():
            if isinstance(value, str) and value.strip():
                shown = value
                break
        return " ".join(shown.split())[:80]
