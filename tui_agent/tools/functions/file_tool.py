"""A function of a tool file as a tool: each call is a process of its own, held to what the file declares."""

import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from tui_agent.errors import ToolError
from tui_agent.path_checks import at_home, real_path
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.processes.environment import command_environment
from tui_agent.sandbox import Grants, Sandbox, View, Writes
from tui_agent.session.entries import ToolSchema
from tui_agent.tools.base import DynamicTool, RawInput, ToolContext, ToolResult
from tui_agent.tools.functions.found import FoundFile
from tui_agent.tools.functions.in_process import told
from tui_agent.tools.functions.process import interpreter_grants, run_file
from tui_agent.tools.functions.returned import Returned

DEFAULT_TIMEOUT = 120.0
MAX_TIMEOUT = 3_600.0
"""Seconds a call may take."""


Host = Annotated[str, Field(pattern=r"^(\*|[A-Za-z0-9.-]+)$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Declared(BaseModel):
    """What a tool file's constants say that its functions need."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    NETWORK: tuple[Host, ...] = ()
    """Hosts, or ``*`` for every public one."""
    READS: tuple[str, ...] = ()
    """Paths outside of the project."""
    WRITES: tuple[str, ...] = ()
    """``.`` for the project's files, paths outside of it."""
    ENVIRONMENT: tuple[Variable, ...] = ()
    """Variables it gets although they look like secrets."""
    READ_ONLY: bool = False
    """Calls change nothing and may run side by side."""
    TIMEOUT: float = Field(default=DEFAULT_TIMEOUT, gt=0, le=MAX_TIMEOUT)

    def words(self) -> str:
        """Return what is declared, for people."""
        changed = tuple("files of the project" if _place(path) is None else path for path in self.WRITES)
        rows = {
            "reaches": self.NETWORK, "reads": self.READS, "changes": changed, "gets": self.ENVIRONMENT,
            "changes nothing": ("",) if self.READ_ONLY else (),
        }  # fmt: skip
        return "; ".join(f"{what} {', '.join(names)}".strip() for what, names in rows.items() if names)


class FileTool(DynamicTool):
    """One function of a tool file; what is called is the file as it is then."""

    def __init__(self, schema: ToolSchema, file: FoundFile, declared: Declared) -> None:
        super().__init__(schema, read_only=declared.READ_ONLY)
        self.path = file.path
        self.shown = file.shown
        self.declared = declared
        self._source = file.source

    def command(self, arguments: RawInput) -> str:
        return f"{self.name} {json.dumps(arguments.values, ensure_ascii=False)}"

    def needs(self, arguments: RawInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        """Return the need to run it, and those for what it declares.

        Raises:
            ToolError: it may only run in a sandbox, and there is none.
        """
        return tuple(self._needs(arguments, context))

    def _needs(self, arguments: RawInput, context: ToolContext) -> Iterator[PermissionNeed]:
        from tui_agent.shell.needs import outside

        declared, sandbox = self.declared, self._sandbox(context)
        changes_project = any(not _place(path) for path in declared.WRITES)
        yield PermissionNeed(
            Permission.TOOL,
            self.name,
            detail=self.command(arguments),
            sandboxed=sandbox is not None,
            changes=("sources",) if changes_project and not declared.READ_ONLY else (),
        )
        for host in declared.NETWORK if sandbox is not None else ():
            yield PermissionNeed(Permission.NETWORK, host, aliases=(self.name,))
        for path in filter(None, map(_place, (*declared.READS, *declared.WRITES))):
            if sandbox is None or not sandbox.shows(path, context.project):
                yield outside(path)
        for path in filter(None, map(_place, declared.WRITES)):
            yield PermissionNeed(Permission.EDIT, str(path))
        for name in declared.ENVIRONMENT:
            if name in os.environ:
                yield PermissionNeed(Permission.READ, f"${name}", secret=True)

    def touches(self, arguments: RawInput, context: ToolContext) -> tuple[()] | None:
        """Return nothing where the sandbox itself tells what a call changes."""
        del arguments
        return () if self.read_only or self._sandbox(context) is not None else None

    async def run(self, arguments: RawInput, context: ToolContext) -> ToolResult:
        if context.sandbox is not None and (notice := await asyncio.to_thread(context.sandbox.notice, context.project)):
            context.notify(notice)
        try:
            source = await asyncio.to_thread(self._source)
        except (OSError, ValueError) as error:
            raise ToolError(f"{self.path.name} can't be read any more: {error}") from None
        sandbox = await asyncio.to_thread(self._sandbox, context)
        context.view = await asyncio.to_thread(view_of_file, self.path, context, sandbox)
        if self.read_only:
            context = _changing_nothing(context)
        given = {name: os.environ[name] for name in self.declared.ENVIRONMENT if name in os.environ}
        environment = command_environment(context.environment) | given
        ended = await run_file(
            self.path,
            {"source": source, "function": self.name, "arguments": arguments.values},
            context,
            sandbox,
            environment,
            name=self.command(arguments),
            seconds=self.declared.TIMEOUT,
        )
        answer, note = ended.answer, ended.program.note
        if answer is None:
            raise ToolError(ended.why(self.declared.TIMEOUT))
        if answer.error:
            raise ToolError("\n".join([answer.error, *(f"  {frame}" for frame in answer.frames), note]).rstrip())
        return await told(Returned(answer.text, answer.pictures()), self.title(arguments), context, footer=note)

    def _sandbox(self, context: ToolContext) -> Sandbox | None:
        """Return what it runs in, None for without: where there is none, or none that can open what it declares.

        Raises:
            ToolError: it may only run in one.
        """
        sandbox = context.sandbox
        if sandbox is None:
            return None
        if refusal := sandbox.refusal():
            raise ToolError(refusal)
        wanted = context.view.opened(Grants(hosts=frozenset(self.declared.NETWORK)))
        return sandbox if sandbox.active and not sandbox.lacks(wanted, context.project) else None


def _changing_nothing(context: ToolContext) -> ToolContext:
    """Return the context for a call that changes nothing, whatever the mode lets others change."""

    async def request_grants(wanted: Grants, command: str) -> Grants | str:
        if wanted.beyond(wanted.changing_nothing) or context.request_grants is None:
            return "It is declared READ_ONLY: what it changed was thrown away."
        return await context.request_grants(wanted, command)

    view = View(Writes.NOTHING, context.view.grants.changing_nothing)
    return replace(context, view=view, request_grants=request_grants)


def view_of_file(path: Path, context: ToolContext, sandbox: Sandbox | None) -> View:
    """Return the view of a call, opened for the interpreter and for what stands beside the file. Looks at files."""
    if sandbox is None:
        return context.view
    beside = real_path(path.parent)
    read = frozenset[Path]() if beside.is_relative_to(real_path(context.project)) else frozenset({beside})
    return context.view.opened(interpreter_grants(context.project) | Grants(read=read))


def _place(text: str) -> Path | None:
    """Return a path outside of the project, None for one in it."""
    path = at_home(text)
    return Path(os.path.realpath(path)) if path.is_absolute() else None
