"""Defines the base classes of tools, the context passed to a call, and the result of a call.

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
"""JSON file with the parameter schema of each built-in tool, by the name of its input class. The
file is written by scripts/reference.py, because generating the schemas at each start would take 10
ms."""

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
"""JSON schema keywords that are left out of tool schemas, because they cost tokens in every
request, and because some providers refuse bounds. If a call's value is out of bounds, an error
message says so."""


class ToolInput(BaseModel):
    """Base class of the tools' input models, which are the validated arguments of a call.

    Instances are immutable.
    """

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
    """A description of the entry in one line."""
    lines: Sequence[tuple[int, str]]
    """The entry's lines that match best, each with its line number, counted from 1."""
    beside: str
    """One line about the entry. For a tool result, this is its tool call. For an answer, it lists
    the results of the answer's tool calls. "" for other entries."""
    here: bool


class Archive(Protocol):
    """Reads all entries of the session on all branches, whether or not they are in the context."""

    def text(self, entry_id: int) -> str | None:
        """Return the text of an entry, with full outputs; None if there is no entry or no text."""

    def remembered(self, topic: str) -> str | None:
        """Return the text of the entry from which the project memory's line on ``topic`` was made.

        Returns None if the memory has no such line, or if the entry is unknown.
        """

    def names_in_use(self) -> Mapping[str, float]:
        """Return the names, paths, commands and similar words in the context, each with a score.

        A higher score means that the name is more likely to be used again.
        """
        ...

    def images(self, entry_id: int) -> Sequence[ImagePart]: ...

    def search(self, query: str, limit: int) -> list[FoundEntry]: ...


@frozen
class SubagentReport:
    """A subagent's result, with its last text and its number of steps.

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

        Returns None if no subagent worked for the call, or if the id was already returned.
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
        ``in_conversation``, the subagent sees the conversation that was sent to the calling model;
        otherwise it sees only the task. Raises ToolError if there is no such kind.
        """
        ...

    async def resume(
        self, branch: int, task: str, progress: Callable[[str], None], *, call_id: str
    ) -> SubagentReport:
        """Give another task to the subagent that wrote the entry ``branch``, and continue there.

        Raises ToolError if the entry was not written by a subagent.
        """
        ...

    def agent_of(self, branch: int) -> str:
        """Return the kind of the subagent, such as "explore", that wrote the entry ``branch``.

        Raises ToolError if the entry was not written by a subagent.
        """
        ...


class EditorText(Protocol):
    """The editor in which the program runs, whose open files may have unsaved text."""

    async def unsaved(self, path: Path) -> str | None:
        """Return a file's unsaved text in the editor, or None.

        The result is None if the text equals the file on disk or can't be read.
        """
        ...

    async def save(self, path: Path) -> bool:
        """Make the user's editor save a file that has unsaved text.

        Returns True if the editor saved the text that ``unsaved`` returned last. Returns False if
        it saved another text, could not save the file, or had nothing to save.
        """
        ...


@dataclass
class ToolContext:
    """Gives a running tool call access to the session, the project and the user.

    Each call has its own context. ``cwd`` is the working directory. ``limits`` are the limits of
    the output, ``reads`` the states of the files read so far in the session. ``put_blob`` stores
    bytes and returns the blob's name, their SHA-256. ``report`` shows live output to the user.
    """

    cwd: Path
    project: Path
    limits: OutputLimits
    reads: FileReads
    put_blob: Callable[[bytes], str]
    report: Callable[[str], None] = lambda _text: None
    stands_for: Path | None = None
    """The original project if ``project`` is a copy of it for a race runner; otherwise None. In a
    copy, paths into the original project are taken as paths into the copy."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The environment of child processes, without secrets."""
    vision: bool = True
    """Whether the model accepts images."""
    document_pages: int = 0
    """Maximum number of pages of a PDF that the model accepts; 0 if it doesn't accept PDFs."""
    archive: Archive | None = None
    """Gives access to the session's entries; None if there is no session."""
    in_view: Callable[[str], Sequence[ToolResultEntry]] = lambda _file: ()
    """Returns the results of earlier reads of a file, newest first, that the model still sees
    unchanged. Takes the file's path as results show it, that is, relative to the project, or
    absolute if the file is outside it."""
    call_id: str = ""
    """The id of the call, as the provider assigned it."""
    subagents: SubagentHost | None = None
    """Starts subagents; None in a subagent, which can't start any."""
    jobs: Jobs | None = None
    """The session's background jobs; None if commands can't become jobs."""
    sandbox: Sandbox | None = None
    """The sandbox in which commands run; None if they run without a sandbox."""
    view: View = View()
    """Describes what a command in the sandbox can read, change and reach."""
    allow_host: AllowHost | None = None
    """Asks the user whether a running command may reach a host; None if there is no user to ask."""
    request_grants: Callable[[Grants, Sequence[str]], Awaitable[Grants | str]] | None = None
    """Asks the user to grant a command the access that it lacked in the sandbox. Takes the missing
    grants, and the files of the project whose changes were not kept. Returns the grants for a
    second run, or a text that tells the model why they were refused. The attribute is None if no
    grants can be requested."""
    recorded: Callable[[Sequence[Path] | None], AbstractAsyncContextManager[None]] | None = None
    """Returns a context manager that records, for checkpoints, how the given files are changed in
    its ``with`` block. If it is given None, changes to any file of the project are recorded. The
    attribute is None if the session records no changes."""
    editor: EditorText | None = None
    """The editor in which the program runs; None if the program doesn't run in an editor."""
    propose: Callable[[str], str] | None = None
    """Proposes a line for the project's memory and returns the line as stored. Call it in a thread,
    because it blocks. Raises NotKeptError if the line can't be stored. The attribute is None if the
    project has no memory."""
    ask: Asker | None = None
    """Asks the user questions; None if there is no user to ask."""
    notify: Callable[[str], None] = lambda _text: None
    """Shows the user a message that isn't part of the call's output."""
    allowed: frozenset[tuple[Permission, str]] | None = None
    """The permissions, each with its pattern, that were allowed before the call ran. The call fails
    if it needs another permission. None if permissions were not checked."""
    harmless: bool = False
    """Whether all commands of the call are known to be read-only, so that the call needs only
    harmless permissions."""
    searcher: Searcher | None = None
    """Searches the web through the model's provider; None if the provider can't search."""
    verdict: Callable[[PermissionNeed], Literal["allow", "ask", "deny"]] = lambda _need: "ask"
    """Returns the permission rules' decision on a permission that turns out to be needed while the
    call runs, such as for the host to which an address redirects."""


@frozen
class ToolResult:
    """The result of a finished tool call.

    ``output`` is the text for the model, already cut to the limits. ``full_output`` names the blob
    with the whole output, or None if none is stored. ``title`` is the heading of the call's card.
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
    """Whether calls of the tool change nothing, so that they may run in parallel."""
    traits: ClassVar[ToolTraits] = ToolTraits()
    """Facts about the tool for code that knows only the tool's name."""
    instead: ClassVar[Mapping[str, str]] = {}
    """Advice to add to the error message about an unknown field, by the field's name."""

    def offered_to(self, model: ModelTraits) -> bool:  # noqa: ARG002 - for subclasses
        """Return True if requests to a model include the tool.

        The tool runs when it is called even if no request includes it.
        """
        return True

    @property
    def missing(self) -> str:
        """A sentence on what the user must set up before the tool is offered; "" if nothing."""
        return ""

    @abstractmethod
    def needs(self, arguments: InputT, context: ToolContext) -> tuple[PermissionNeed, ...]:
        """Return the permissions that a call needs. Called before the call runs.

        May read files in order to show a diff.

        Raises:
            ToolError: the call would fail (because of a missing file or match), so the user isn't
                asked.
        """

    @abstractmethod
    async def run(self, arguments: InputT, context: ToolContext) -> ToolResult:
        """Run the call. If it is cancelled, end all processes that it started.

        Raises:
            ToolError: the call failed; the message goes to the model.
        """

    def warm(self, environment: Mapping[str, str]) -> None:
        """Load modules that the first call needs, so that the call is fast.

        Does nothing by default. ``environment`` is the environment of child processes.
        """

    async def aclose(self, project: Path) -> None:
        """End the processes that calls in a project left running for later calls.

        Does nothing by default.
        """

    def touches(self, arguments: InputT, context: ToolContext) -> tuple[Path, ...] | None:  # noqa: ARG002 - for subclasses
        """Return the real paths of the files that a call may change; None if it may change any.

        The method reads the file system, so call it in a thread.

        Raises:
            ToolError: the call would fail anyway.
        """
        return () if self.read_only else None

    def command(self, arguments: InputT) -> str:  # noqa: ARG002 - for subclasses
        """Return the command line that a call runs in the sandbox; "" if it runs none."""
        return ""

    def title(self, arguments: InputT) -> str:
        """Return the heading of the card that shows the call while it runs.

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
    """Return the JSON schema of a tool's parameters, cached because every request needs it."""
    return _written_parameters().get(input_name(accepted)) or generate_parameters(accepted)


@cache
def _written_parameters() -> dict[str, dict[str, Any]]:
    written: dict[str, dict[str, Any]] = json.loads(PARAMETERS.read_bytes())
    return written


def plain_name(name: str) -> str:
    """Return a name in lower case without hyphens and underscores, for comparison."""
    return name.replace("_", "").replace("-", "").lower()


def input_name(accepted: type[ToolInput]) -> str:
    """Return the module and name of an input class, which is its key in the file ``PARAMETERS``."""
    return f"{accepted.__module__}.{accepted.__qualname__}"


def generate_parameters(accepted: type[ToolInput]) -> dict[str, Any]:
    """Return the JSON schema of an input class, generated by pydantic and then slimmed."""
    parameters: dict[str, Any] = slim_schema(accepted.model_json_schema())
    return parameters


def slim_schema(schema: Any, definitions: dict[str, Any] | None = None) -> Any:
    """Return a JSON schema with references inlined, and without parts that cost tokens needlessly.

    The removed parts are titles, defaults, most bounds, null as an alternative, and the
    descriptions of objects, which pydantic takes from the docstrings of classes. ``definitions``
    are the ``$defs`` of the schema that contains a nested one.
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
    """The arguments of a call as the model wrote them.

    They are checked by the MCP server or the function that the tool calls.
    """

    values: dict[str, Any]


class DynamicTool(Tool[RawInput]):
    """Base class of tools whose schema isn't built in, from MCP servers, tool files and add-ons."""

    # One class serves many tools. So these attributes are set on each instance, and not on the
    # class as for built-in tools.
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
