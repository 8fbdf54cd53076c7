"""The base of tools: a name, a short description, a pydantic input model and one coroutine."""

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
"""The built-in tools' parameters by their input, written by scripts/reference.py: making them takes 10 ms."""

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
"""Left out of schemas: every token is paid on every request, some providers refuse bounds, and a
call that breaks one gets an error that says so."""


class ToolInput(BaseModel):
    """Base of every tool's arguments."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


@frozen
class FoundEntry:
    """An entry of the session that a search found.

    ``here`` tells whether it is on the current branch.
    """

    entry_id: int
    kind: str
    gist: str
    """The entry in a line."""
    lines: Sequence[tuple[int, str]]
    """The lines that fit, with their numbers."""
    beside: str
    """Its counterpart: the call that a result answers, the results of an answer."""
    here: bool


class Archive(Protocol):
    """Everything the session ever held, in view or not, on any branch."""

    def text(self, entry_id: int) -> str | None:
        """Return all of an entry as text, full outputs included; None when there is no such entry."""

    def remembered(self, topic: str) -> str | None:
        """Return the entry that a line of the project's memory comes from, None where there is none."""

    def names_in_use(self) -> Mapping[str, float]:
        """Return the names in the model's view, with how likely each is to be used again."""
        ...

    def images(self, entry_id: int) -> Sequence[ImagePart]: ...

    def search(self, query: str, limit: int) -> list[FoundEntry]: ...


@frozen
class SubagentReport:
    """A subagent's result.

    ``branch`` is the last entry of the branch on which its work can be read.
    """

    text: str
    branch: int | None
    steps: int
    error: str | None = None


class SubagentHost(Protocol):
    """Starts subagents."""

    def branch_of(self, call_id: str) -> int | None:
        """Return the last entry of the subagent that was started for a call, None when none was."""
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

        With ``in_conversation`` it goes on from the conversation as the model that made the call
        was sent it.

        Raises:
            ToolError: there is no such kind.
        """
        ...

    async def go_on(
        self, branch: int, task: str, progress: Callable[[str], None], *, call_id: str
    ) -> SubagentReport:
        """Have the subagent that made an entry go on with another task, knowing all it did.

        Raises:
            ToolError: the entry is none of a subagent's.
        """
        ...

    def agent_of(self, branch: int) -> str:
        """Return the kind of the subagent that made an entry.

        Raises ToolError where there is none.
        """
        ...


class EditorText(Protocol):
    """An editor that has files open, perhaps with text that is not saved."""

    async def unsaved(self, path: Path) -> str | None:
        """Return the text of a file as the editor has it, None where that is the text on disk."""
        ...

    async def save(self, path: Path) -> bool:
        """Have it save other text of a file.

        Returns whether that is the text the model has read.
        """
        ...


@dataclass
class ToolContext:
    """Everything a running call may use. One is made per call.

    ``report`` sends live output to the screen and may be called as often as one likes. ``put_blob``
    stores bytes and returns their digest.
    """

    cwd: Path
    project: Path
    limits: OutputLimits
    reads: FileReads
    put_blob: Callable[[bytes], str]
    report: Callable[[str], None] = lambda _text: None
    stands_for: Path | None = None
    """The project that ``project`` is a copy of: its paths mean those of the copy. None where it is
    no copy."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment for child processes, secrets already taken out."""
    vision: bool = True
    """Whether the model takes images."""
    document_pages: int = 0
    """Pages of a PDF that the model may be sent as they are, 0 where it takes none."""
    archive: Archive | None = None
    """The session's past; None where there is no session."""
    in_view: Callable[[str], Sequence[ToolResultEntry]] = lambda _file: ()
    """Returns the reads of a file that the model still sees as they were, newest first."""
    call_id: str = ""
    """The call this is for."""
    subagents: SubagentHost | None = None
    """Who does tasks; None for a subagent itself."""
    jobs: Jobs | None = None
    """The session's background jobs; None where nothing may go on after its call."""
    sandbox: Sandbox | None = None
    """The sandbox for commands; None where they run without one."""
    view: View = View()
    """The view that limits a command in the sandbox: its writes, its reach."""
    allow_host: AllowHost | None = None
    """Asks whether a running command may reach a host; None where nobody can be asked."""
    request_grants: Callable[[Grants, str], Awaitable[Grants | str]] | None = None
    """Asks for the grants a command lacked, given them and the command; returns the grants for a
    second run."""
    recorded: Callable[[Sequence[Path] | None], AbstractAsyncContextManager[None]] | None = None
    """Records changes to some files while it is entered, to any for None; None where nothing is
    recorded."""
    editor: EditorText | None = None
    """The editor with files open; None where there is none."""
    propose: Callable[[str], str] | None = None
    """Proposes a line for the project's memory and returns it; None where nothing is kept. Blocks,
    and raises NotKeptError."""
    ask: Asker | None = None
    """Asks the user questions; None where nobody can be asked."""
    notify: Callable[[str], None] = lambda _text: None
    """Tells the user something that is no output."""
    allowed: frozenset[tuple[Permission, str]] | None = None
    """Permissions and patterns that the call was allowed; None where nobody decides."""
    harmless: bool = False
    """The call was allowed as a command that only reads."""
    searcher: Searcher | None = None
    """Searches the web at the model's provider; None where that can't."""
    verdict: Callable[[PermissionNeed], Literal["allow", "ask", "deny"]] = lambda _need: "ask"
    """The rules' verdict on a need that turns up while the call runs: where a redirect leads."""


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
    """A thing the model can call."""

    name: ClassVar[str]
    description: ClassVar[str]
    Input: type[InputT]
    read_only: ClassVar[bool] = False
    """Calls may run in parallel and change nothing."""
    traits: ClassVar[ToolTraits] = ToolTraits()
    """Facts about the tool that others need, by its name alone."""
    instead: ClassVar[Mapping[str, str]] = {}
    """Advice for fields the tool does not have, by the field."""

    def offered_to(self, model: ModelTraits) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the tool is listed when a head is rendered for a model."""
        return True

    @property
    def missing(self) -> str:
        """The sentence on what it takes to be offered, "" for nothing a user could do."""
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
        """End what calls in a project have started for later ones."""

    def touches(self, arguments: InputT, context: ToolContext) -> tuple[Path, ...] | None:  # noqa: ARG002 - for subclasses
        """Return the files a call may change, as they are after links; None when it may be any.

        Takes a moment.

        Raises:
            ToolError: the call cannot work.
        """
        return () if self.read_only else None

    def command(self, arguments: InputT) -> str:  # noqa: ARG002 - for subclasses
        """Return the command a call runs in the sandbox, as a line; "" where it runs nothing there."""
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
    """Return a name without case, hyphens and underscores, by which other programs' names are known."""
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
    """Arguments as the model wrote them; whoever offers the tool checks them."""

    values: dict[str, Any]


class DynamicTool(Tool[RawInput]):
    """A tool made from a schema that came from outside."""

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
