"""Loads a session's tools from tool files and add-ons, and reloads tool files that have changed."""

import asyncio
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tui_agent.context.truncation import OutputLimits
from tui_agent.errors import ToolError
from tui_agent.files.inside import read_file, read_inside
from tui_agent.lazy import dataclass, frozen
from tui_agent.processes.environment import SafeEnvironment, command_environment
from tui_agent.sandbox import Sandbox, View, Writes
from tui_agent.say_once import SayOnce
from tui_agent.text_files.encodings import settings_text
from tui_agent.tools.base import ToolContext
from tui_agent.tools.functions.add_ons import AddOns, load_add_ons, without_clashes
from tui_agent.tools.reads import FileReads
from tui_agent.tools.registry import BUILTIN

if TYPE_CHECKING:
    from tui_agent.tools.functions.add_on_tool import AddOnTool
    from tui_agent.tools.functions.file_tool import EndedFile, FileTool

# The modules that run tool files are imported only if there is such a file.

DESCRIBE_SECONDS = 30.0
"""Time limit for loading a tool file, in seconds."""
MAX_TOOLS = 50
"""Maximum number of functions that one file can offer. It is limited because each function costs
tokens in every request."""
_RESERVED = frozenset({*BUILTIN, "mcp"})
"""Names that no tool made from a function may have."""


MAX_FILE_BYTES = 1_000_000
"""Maximum size of a tool file, in bytes."""


@frozen
class FoundFile:
    """A tool file that was found.

    ``shown`` is the file's name for the user. ``inside`` is the project in which the file must be,
    or None for one of the user's own files.
    """

    path: Path
    shown: str
    inside: Path | None = None

    def source(self) -> str:
        """Return the file's current text.

        Raises:
            OSError: the file can't be read, or is a link that leads out of the project.
            ValueError: the file isn't text, or is larger than ``MAX_FILE_BYTES``.
        """
        limit = MAX_FILE_BYTES + 1
        data, _state = (
            read_file(self.path, limit)
            if self.inside is None
            else read_inside(self.inside, self.path, limit)
        )
        if len(data) > MAX_FILE_BYTES:
            raise ValueError(f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB")
        return settings_text(data)


@frozen
class ToolPlace:
    """The working directory, project, environment and sandbox in which tool files run."""

    cwd: Path
    project: Path
    environment: Mapping[str, str]
    sandbox: Sandbox | None


@frozen
class LoadedFile:
    """The result of loading a tool file, with its text, its tools and a sentence for each problem.

    ``source`` is None if the file can't be read.
    """

    source: str | None
    tools: "tuple[FileTool, ...]" = ()
    problems: tuple[str, ...] = ()
    is_tried_again: bool = False
    """Whether the file is loaded again next time even if its text is the same, because the cause of
    the failure may be outside the file, such as a module that isn't installed."""


@dataclass
class ToolFiles:
    """Loads and keeps the tools of tool files and add-ons.

    ``find`` returns the tool files, and a sentence for the user on each that can't be used;
    ``find_add_ons`` returns the tools of add-ons.
    """

    find: Callable[[], tuple[list[FoundFile], list[str]]] = lambda: ([], [])
    find_add_ons: Callable[[], AddOns] = AddOns
    tools: "tuple[FileTool | AddOnTool, ...]" = ()
    """All tools that the last `load` found."""
    problems: tuple[str, ...] = ()
    """A sentence for the user on each file or tool that can't be used, as of the last `load`."""
    _loaded: dict[FoundFile, LoadedFile] = field(default_factory=dict)
    _said: SayOnce = field(default_factory=SayOnce)
    _reading: asyncio.Lock | None = None

    async def load(self, place: ToolPlace) -> None:
        """Load new and changed tool files and find add-ons; set ``tools`` and ``problems``.

        Files are loaded in parallel, each in a separate process, in the sandbox if there is one.
        """
        self._reading = self._reading or asyncio.Lock()
        async with self._reading:
            found, problems, add_ons = await asyncio.to_thread(self._find_all)
            read = await asyncio.gather(*(self._read(file, place) for file in found))
            self._loaded = dict(zip(found, read, strict=True))
            tools: dict[str, FileTool] = {}
            for file, loaded in self._loaded.items():
                problems += loaded.problems
                problems += _offer(file, loaded, tools)
            taken = {name: tool.shown for name, tool in tools.items()}
            added, clashes = without_clashes(add_ons.tools, taken)
            self.tools = (*tools.values(), *added)
            self.problems = (*problems, *add_ons.problems, *clashes)

    def _find_all(self) -> tuple[list[FoundFile], list[str], AddOns]:
        found, problems = self.find()
        return found, problems, self.find_add_ons()

    def take_problems(self) -> str:
        """Return the problems that no earlier call returned, as one text; "" if there are none."""
        return " ".join(self._said.remember_all(self.problems))

    async def _read(self, file: FoundFile, place: ToolPlace) -> LoadedFile:
        """Load a tool file if necessary, and return the result.

        The file is loaded again only if its text has changed, or after certain failures.
        """
        try:
            source = await asyncio.to_thread(file.source)
        except (OSError, ValueError) as error:
            return LoadedFile(None, problems=(f"{file.shown} can't be read: {error}.",))
        known = self._loaded.get(file)
        if known is not None and known.source == source and not known.is_tried_again:
            return known
        return await _describe(file, source, place)


def installed_add_ons(left_out: Collection[str]) -> AddOns:
    """Import the installed add-ons and return their tools. Call it in a thread.

    ``left_out`` contains the names of distributions that are not imported; "*" stands for all.
    """
    return load_add_ons(left_out, _RESERVED)


def _offer(file: FoundFile, loaded: LoadedFile, tools: "dict[str, FileTool]") -> Iterator[str]:
    """Add a file's tools to ``tools``; yield a sentence for each tool that can't be offered.

    A tool can't be offered if its name is taken. One sentence covers all tools beyond `MAX_TOOLS`.
    """
    for tool in loaded.tools[:MAX_TOOLS]:
        if tool.name in _RESERVED:
            yield f"{file.shown}: {tool.name} is the name of a built-in tool; call the function something else."
        elif tool.name in tools:
            yield f"{file.shown}: {tools[tool.name].shown} has a tool {tool.name} already."
        else:
            tools[tool.name] = tool
    if len(loaded.tools) > MAX_TOOLS:
        yield (
            f"{file.shown}: {len(loaded.tools)} functions; the first {MAX_TOOLS} are tools. "
            "Choose others with __all__."
        )


async def _describe(file: FoundFile, source: str, place: ToolPlace) -> LoadedFile:
    """Run a tool file's text ``source`` in a process that returns a description of its tools."""
    from tui_agent.tools.functions.file_tool import run_file, view_of_file

    sandbox = place.sandbox
    # In the sandbox, changes that the file makes while it is loaded are discarded, and no host on
    # the network can be reached.
    context = ToolContext(
        cwd=place.cwd,
        project=place.project,
        limits=OutputLimits(),
        reads=FileReads(),
        put_blob=lambda _data: "",
        environment=place.environment,
        sandbox=sandbox,
        view=View(Writes.NOTHING),
    )
    if sandbox is not None and (refusal := await asyncio.to_thread(sandbox.refusal)):
        return LoadedFile(source, problems=(f"{file.shown}: {refusal}",), is_tried_again=True)
    try:
        active = sandbox if sandbox is not None and sandbox.active else None
        context.view = await asyncio.to_thread(view_of_file, file.path, context, active)
        environment = command_environment(place.environment or SafeEnvironment(os.environ))
        ended = await run_file(
            file.path,
            {"source": source},
            context,
            active,
            environment,
            name=file.shown,
            seconds=DESCRIBE_SECONDS,
        )
    except (ToolError, OSError) as error:
        return LoadedFile(source, problems=(f"{file.shown}: {error}",), is_tried_again=True)
    return _read_description(file, source, ended)


def _read_description(file: FoundFile, source: str, ended: "EndedFile") -> LoadedFile:
    """Return the tools that a tool file's process described, with a sentence for each problem.

    If the process gave no valid answer, there are no tools, and a problem says why.
    """
    from tui_agent.tools.functions.file_tool import DeclaredNeeds, FileTool
    from tui_agent.tools.functions.in_process import schema_of

    answer = ended.answer
    if answer is None:
        why = " ".join(ended.why(DESCRIBE_SECONDS).split())
        return LoadedFile(source, problems=(f"{file.shown} could not be loaded: {why}",))
    if answer.error:
        if answer.line:
            line = f":{answer.line}"
        else:
            line = ""
        problem = f"{file.shown}{line}: {' '.join(answer.error.split())}."
        return LoadedFile(source, problems=(problem,), is_tried_again=True)
    problems = [f"{file.shown}:{row.get('line')}: {row.get('text')}." for row in answer.problems]
    try:
        declared = DeclaredNeeds.model_validate(answer.declared)
        tools = []
        for said in map(_DescribedTool.model_validate, answer.tools):
            schema = schema_of(said.name, said.description, said.parameters)
            tools.append(
                FileTool(schema, declared, path=file.path, shown=file.shown, source=file.source)
            )
    except (ValidationError, LookupError, TypeError, AttributeError) as error:
        first = None
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False)[0]
        if first is None:
            why = "it reported tool definitions that are not valid"
        else:
            why = f"{first['loc'][0]}: {first['msg']}"
        return LoadedFile(source, problems=(*problems, f"{file.shown}: {why}."))
    return LoadedFile(source, tuple(tools), tuple(problems))


class _DescribedTool(BaseModel):
    """The description of a tool that a tool file's process sent.

    It is validated, because the process isn't trusted.
    """

    model_config = ConfigDict(defer_build=True)

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")
    description: str = Field(min_length=1)
    parameters: dict[str, Any]
