"""The base class of tools: name, short description, pydantic input model, one coroutine."""

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
"""The built-in tools' parameters, written by scripts/reference.py, because making them takes 10
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
"""Keywords left out of schemas, because every request pays for each token and some providers refuse
bounds. A call that breaks a bound gets an error that says so."""


class ToolInput(BaseModel):
    """Base of every tool's arguments."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


@frozen
class FoundEntry:
    """An entry of the session that a search found.

    ``here`` is True if it is on the current branch.
    """

    entry_id: int
    kind: str
    gist: str
    """The entry in one line."""
    lines: Sequence[tuple[int, str]]
    """The matching lines, with their numbers."""
    beside: str
    """Its counterpart in words: the call of a result, or the results of an answer."""
    here: bool


class Archive(Protocol):
    """All entries of the session, in the model's view or not, on any branch."""

    def text(self, entry_id: int) -> str | None:
        """Return an entry's whole text, with full outputs; None if there is no such entry."""

    def remembered(self, topic: str) -> str | None:
        """Return the entry, as text, that a line of the memory comes from.

        None if there is none.
        """

    def names_in_use(self) -> Mapping[str, float]:
        """Return the names in the model's view, each with its likelihood of being used again."""
        ...

    def images(self, entry_id: int) -> Sequence[ImagePart]: ...

    def search(self, query: str, limit: int) -> list[FoundEntry]: ...


@frozen
class SubagentReport:
    """A subagent's result; ``branch`` is the last entry of its branch."""

    text: str
    branch: int | None
    steps: int
    error: str | None = None


class SubagentHost(Protocol):
    """Starts subagents."""

    def branch_of(self, call_id: str) -> int | None:
        """Return the last entry of the subagent started for a call, None if there is none."""
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
        """Have a subagent do a task for a call; cancelling ends it.

        With ``in_conversation`` it continues the conversation as the calling model was sent it.
        Raises ToolError if there is no such agent.
        """
        ...

    async def go_on(
        self, branch: int, task: str, progress: Callable[[str], None], *, call_id: str
    ) -> SubagentReport:
        """Give the subagent that made an entry another task, in the same branch.

        Raises ToolError if no subagent made the entry.
        """
        ...

    def agent_of(self, branch: int) -> str:
        """Return the name of the subagent that made an entry; raises ToolError if none did."""
        ...


class EditorText(Protocol):
    """An editor with open files, which may have unsaved text."""

    async def unsaved(self, path: Path) -> str | None:
        """Return the editor's unsaved text of a file, None if it is the text on disk."""
        ...

    async def save(self, path: Path) -> bool:
        """Have the editor save its unsaved text of a file.

        Returns True if that is the text the model has read.
        """
        ...


@dataclass
class ToolContext:
    """Everything that a running call may use; made for each call.

    ``report`` shows live output. ``put_blob`` stores bytes and returns their digest.
    """

    cwd: Path
    project: Path
    limits: OutputLimits
    reads: FileReads
    put_blob: Callable[[bytes], str]
    report: Callable[[str], None] = lambda _text: None
    stands_for: Path | None = None
    """The project that ``project`` is a copy of, whose paths then mean those of the copy; None if
    it is none."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The environment of child processes, without secrets."""
    vision: bool = True
    """Whether the model accepts images."""
    document_pages: int = 0
    """Maximum pages of a PDF that the model accepts unchanged, 0 if it accepts none."""
    archive: Archive | None = None
    """The session's entries; None without a session."""
    in_view: Callable[[str], Sequence[ToolResultEntry]] = lambda _file: ()
    """Returns the reads of a file that the model still sees as they were, newest first."""
    call_id: str = ""
    """The id of the call."""
    subagents: SubagentHost | None = None
    """Starts subagents; None in a subagent."""
    jobs: Jobs | None = None
    """The session's background jobs; None if nothing may keep running after its call."""
    sandbox: Sandbox | None = None
    """The sandbox for commands; None if they run without one."""
    view: View = View()
    """The view that limits what a command in the sandbox can write and reach."""
    allow_host: AllowHost | None = None
    """Asks whether a running command may reach a host; None if no one can be asked."""
    request_grants: Callable[[Grants, str], Awaitable[Grants | str]] | None = None
    """Asks for grants that a command lacked; returns those for a second run, or why there is
    none."""
    recorded: Callable[[Sequence[Path] | None], AbstractAsyncContextManager[None]] | None = None
    """A context in which changes of the given files (None: of any) are recorded; None if none
    are."""
    editor: EditorText | None = None
    """The editor with open files; None without one."""
    propose: Callable[[str], str] | None = None
    """Proposes a line for the project's memory and returns it. Blocks, and raises NotKeptError.
    None if there is no memory."""
    ask: Asker | None = None
    """Asks the user questions; None if no one can be asked."""
    notify: Callable[[str], None] = lambda _text: None
    """Shows the user a message that is not part of the output."""
    allowed: frozenset[tuple[Permission, str]] | None = None
    """Permissions and patterns that the call was allowed; None if nothing was decided."""
    harmless: bool = False
    """Whether the call was allowed as a command that only reads."""
    searcher: Searcher | None = None
    """Searches the web through the model's provider; None if that isn't possible."""
    verdict: Callable[[PermissionNeed], Literal["allow", "ask", "deny"]] = lambda _need: "ask"
    """Returns the rules' verdict on a need found while the call runs, such as the target of a
    redirect."""


@frozen
class ToolResult:
    """The result of a finished call.

    ``output`` is the text for the model, already within the limits.

    ``full_output`` is the blob of everything, when something was left out. ``title`` is a few words
    for a card.
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
    """Facts about the tool for code that only knows its name."""
    instead: ClassVar[Mapping[str, str]] = {}
    """Advice for fields that the tool doesn't have, by field."""

    def offered_to(self, model: ModelTraits) -> bool:  # noqa: ARG002 - for subclasses
        """Return True if the tool is offered to a model in the head."""
        return True

    @property
    def missing(self) -> str:
        """Return a sentence on what the user can do to have the tool offered, "" for nothing."""
        return ""

    @abstractmethod
    def needs(self, arguments: InputT, context: ToolContext) -> tuple[PermissionNeed, ...]:
        """Return the permissions the call needs, before it runs; may read files to show a diff.

        Raises:
            ToolError: the call cannot work (no such file, no match), so there is nothing to ask.
        """

    @abstractmethod
    async def run(self, arguments: InputT, context: ToolContext) -> ToolResult:
        """Do it. Cancellation must end every process the call started.

        Raises:
            ToolError: it could not be done; the message goes to the model.
        """

    def warm(self, environment: Mapping[str, str]) -> None:
        """Preload modules and programs for the first call. ``environment`` is its program's."""

    async def aclose(self, project: Path) -> None:
        """End everything that calls in a project have started for later calls."""

    def touches(self, arguments: InputT, context: ToolContext) -> tuple[Path, ...] | None:  # noqa: ARG002 - for subclasses
        """Return the files a call may change, as they are after links; None when it may be any.

        Takes a moment.

        Raises:
            ToolError: the call cannot work.
        """
        return () if self.read_only else None

    def command(self, arguments: InputT) -> str:  # noqa: ARG002 - for subclasses
        """Return the command line that a call runs in the sandbox, "" if it runs none."""
        return ""

    def title(self, arguments: InputT) -> str:
        """Return a few words for the card while the call runs: a path, a command, a pattern."""
        return next((str(value) for value in arguments.model_dump().values() if value), "")

    def resolve(self, arguments: InputT) -> "tuple[Tool[Any], ToolInput]":
        """Return the tool that does it, and its arguments: this one, unless it only passes calls on.

        Raises:
            ToolError: the call names a tool that is not there.
        """
        return self, arguments

    def schema(self) -> ToolSchema:
        """Return the tool as shown to the model, without the noise pydantic adds to a schema."""
        return ToolSchema(
            name=self.name, description=self.description, parameters=_parameters(self.Input)
        )


class FreeTool(Tool[InputT]):
    """A tool whose calls need no permission."""

    def needs(self, arguments: InputT, context: ToolContext) -> tuple[PermissionNeed, ...]:  # noqa: ARG002 - as inherited
        return ()


@cache
def _parameters(accepted: type[ToolInput]) -> dict[str, Any]:
    """Return a tool's parameters as a JSON schema; cached, because every step of a run asks for all tools'."""
    return _written_parameters().get(input_name(accepted)) or made_parameters(accepted)


@cache
def _written_parameters() -> dict[str, dict[str, Any]]:
    written: dict[str, dict[str, Any]] = json.loads(PARAMETERS.read_bytes())
    return written


def plain_name(name: str) -> str:
    """Return a name in lower case without hyphens and underscores, for comparison."""
    return name.replace("_", "").replace("-", "").lower()


def input_name(accepted: type[ToolInput]) -> str:
    return f"{accepted.__module__}.{accepted.__qualname__}"


def made_parameters(accepted: type[ToolInput]) -> dict[str, Any]:
    parameters: dict[str, Any] = slim_schema(accepted.model_json_schema())
    return parameters


def slim_schema(schema: Any, definitions: dict[str, Any] | None = None) -> Any:
    """Return a JSON schema with references inlined, without noise and the docstrings of models."""
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
    """Arguments as the model wrote them, which the tool's provider checks."""

    values: dict[str, Any]


class DynamicTool(Tool[RawInput]):
    """A tool with a schema from outside."""

    # One class serves many tools, so a built-in tool's class attributes are set on each instance
    # here.
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
        shown = ", ".join(f"{name}={value}" for name, value in arguments.values.items())
        for value in arguments.values.values():
            if isinstance(value, str) and value.strip():
                shown = value
                break
        return " ".join(shown.split())[:80]
