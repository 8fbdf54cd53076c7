"""Makes tools from the functions of a tool file, and runs each call in a sandboxed process.

The constants of the file declare which hosts, paths, environment variables and time limit its
functions need. This module turns them into the permissions of a call, and into what its process may
access.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, ValidationError

from tui_agent.errors import ToolError
from tui_agent.lazy import frozen
from tui_agent.path_checks import at_home, is_among, real_path
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.processes.capture import plain_text
from tui_agent.processes.environment import command_environment
from tui_agent.sandbox import Grants, Sandbox, View, Writes
from tui_agent.session.entries import ToolSchema
from tui_agent.tools.base import DynamicTool, RawInput, ToolContext, ToolResult
from tui_agent.tools.functions.in_process import result_of
from tui_agent.tools.functions.signature import Returned
from tui_agent.tools.programs import EndedProgram, Program, ending, run_program

DEFAULT_TIMEOUT = 120.0
"""Time limit of a call, in seconds, if the file declares none."""
MAX_TIMEOUT = 3_600.0
"""Maximum time limit of a call, in seconds."""


Host = Annotated[str, Field(pattern=r"^(\*|[A-Za-z0-9.-]+)$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]

# -- the process of a file -------------------------------------------------------------------------
MAX_ANSWER_BYTES = 100_000_000
"""Maximum size, in bytes, of an answer that is read from the process."""

LAST_LINES = 20
"""Number of lines shown from the end of the output if a process ended without an answer."""

_PACKAGE = Path(__file__).parents[2]
_BEGIN = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
package, *libraries = sys.argv.pop(1).split("\\n")
sys.path += libraries
# Loaded by its path, because Landlock, at least, forbids listing the directory that contains it.
spec = spec_from_file_location("tui_agent", f"{package}/__init__.py", submodule_search_locations=[package])
sys.modules["tui_agent"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["tui_agent"])
from tui_agent.tools.functions.runner import main
main()
"""


class DeclaredNeeds(BaseModel):
    """The access that a tool file's functions need, as declared by constants in the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    NETWORK: tuple[Host, ...] = ()
    """Hosts that the functions connect to; ``*`` for every public host."""
    READS: tuple[str, ...] = ()
    """Paths outside the project that the functions read."""
    WRITES: tuple[str, ...] = ()
    """Paths that the functions may change. ``.`` stands for the project's files; other paths are
    outside the project."""
    ENVIRONMENT: tuple[Variable, ...] = ()
    """Environment variables that are passed to the functions although they look like secrets."""
    READ_ONLY: bool = False
    """Whether calls of the function change nothing, so that they may run in parallel."""
    TIMEOUT: float = Field(default=DEFAULT_TIMEOUT, gt=0, le=MAX_TIMEOUT)

    def words(self) -> str:
        """Return the needs as text for the user, such as "reaches example.org; changes nothing"."""
        changed = []
        for path in self.WRITES:
            changed.append("files of the project" if _place(path) is None else path)
        rows = {
            "reaches": self.NETWORK,
            "reads": self.READS,
            "changes": changed,
            "gets": self.ENVIRONMENT,
        }
        said = [f"{what} {', '.join(names)}" for what, names in rows.items() if names]
        if self.READ_ONLY:
            said.append("changes nothing")
        return "; ".join(said)


class FileTool(DynamicTool):
    """A tool made from one function of a tool file. Each call runs the file's current text."""

    def __init__(
        self,
        schema: ToolSchema,
        declared: DeclaredNeeds,
        *,
        path: Path,
        shown: str,
        source: Callable[[], str],
    ) -> None:
        """Create the tool for one function in the file ``path``.

        ``shown`` is the file's name for the user. ``source`` returns the file's current text, and
        raises OSError or ValueError if the file can't be read.
        """
        super().__init__(schema, read_only=declared.READ_ONLY)
        self.path = path
        self.shown = shown
        self.declared = declared
        self._source = source

    @property
    def about(self) -> str:
        """What the file's functions need, as text for the user; "" if it declares no needs."""
        return self.declared.words()

    def command(self, arguments: RawInput) -> str:
        return f"{self.name} {json.dumps(arguments.values, ensure_ascii=False)}"

    def needs(self, arguments: RawInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        from tui_agent.shell.needs import outside_need

        declared = self.declared
        sandbox = self._sandbox(context)
        written = _places(declared.WRITES)
        changes_project = len(written) < len(declared.WRITES) and not declared.READ_ONLY
        run = PermissionNeed(
            Permission.TOOL,
            self.name,
            detail=self.command(arguments),
            sandboxed=sandbox is not None,
            changes=("sources",) if changes_project else (),
        )
        needs = [run]
        for host in declared.NETWORK if sandbox is not None else ():
            needs.append(PermissionNeed(Permission.NETWORK, host, aliases=(self.name,)))
        for path in (*_places(declared.READS), *written):
            if sandbox is None or not sandbox.shows(path, context.project):
                needs.append(outside_need(path))
        for path in written:
            needs.append(PermissionNeed(Permission.EDIT, str(path)))
        for name in self._passed_variables():
            needs.append(PermissionNeed(Permission.READ, f"${name}", secret=True))
        return tuple(needs)

    def _passed_variables(self) -> dict[str, str]:
        return {name: os.environ[name] for name in self.declared.ENVIRONMENT if name in os.environ}

    def touches(self, arguments: RawInput, context: ToolContext) -> tuple[()] | None:
        del arguments
        if self.read_only or self._sandbox(context) is not None:
            return ()
        return None

    async def run(self, arguments: RawInput, context: ToolContext) -> ToolResult:
        if context.sandbox is not None and (
            notice := await asyncio.to_thread(context.sandbox.notice, context.project)
        ):
            context.notify(notice)
        try:
            source = await asyncio.to_thread(self._source)
        except (OSError, ValueError) as error:
            raise ToolError(f"{self.path.name} can't be read any more: {error}") from None
        sandbox = await asyncio.to_thread(self._sandbox, context)
        context.view = await asyncio.to_thread(view_of_file, self.path, context, sandbox)
        if self.read_only:
            # Changes that the process makes to files are discarded, and the user is not asked to
            # keep them.
            view = replace(
                context.view,
                writes=Writes.NOTHING,
                grants=context.view.grants.without_changes,
            )
            context = replace(context, view=view, request_grants=None)
        environment = command_environment(context.environment) | self._passed_variables()
        ended = await run_file(
            self.path,
            {"source": source, "function": self.name, "arguments": arguments.values},
            context,
            sandbox,
            environment,
            name=self.command(arguments),
            seconds=self.declared.TIMEOUT,
        )
        answer = ended.answer
        note = ended.program.note
        if answer is None:
            raise ToolError(ended.why(self.declared.TIMEOUT))
        if answer.error:
            said = "\n  ".join([answer.error, *answer.frames])
            raise ToolError(f"{said}\n{note}".rstrip())
        return await result_of(
            Returned(answer.text, answer.images), self.title(arguments), context, footer=note
        )

    def _sandbox(self, context: ToolContext) -> Sandbox | None:
        """Return the sandbox in which calls run; None if they run outside a sandbox.

        Calls run outside a sandbox if none is active, or if it can't limit the network to the hosts
        that the file declares.

        Raises:
            ToolError: the settings require a sandbox, and there is none.
        """
        sandbox = context.sandbox
        if sandbox is None:
            return None
        if refusal := sandbox.refusal():
            raise ToolError(refusal)
        wanted = context.view.opened(Grants(hosts=frozenset(self.declared.NETWORK)))
        if sandbox.active and not sandbox.why_unsupported(wanted):
            return sandbox
        return None


def view_of_file(path: Path, context: ToolContext, sandbox: Sandbox | None) -> View:
    """Return a call's view with read access to all that a tool file's process imports.

    The view says what the process can access. Python, this package, pydantic and the file's
    directory are added to it. Without a sandbox, the view is returned unchanged. The function reads
    the file system, so call it in a thread.
    """
    if sandbox is None:
        return context.view
    shown = (real_path(context.project), Path("/usr"))
    places = (sys.prefix, sys.base_prefix, *_import_places(), str(path.parent))
    wanted = {real_path(Path(place)) for place in places}
    read = frozenset(place for place in wanted if not is_among(place, shown))
    return context.view.opened(Grants(read=read))


def _place(text: str) -> Path | None:
    """Return a declared path, resolved; None if it is relative, which means the project."""
    path = at_home(text)
    if path.is_absolute():
        return Path(os.path.realpath(path))
    return None


def _places(texts: Iterable[str]) -> list[Path]:
    """Return the declared paths that are absolute or begin with ``~``, resolved."""
    places = []
    for text in texts:
        place = _place(text)
        if place is not None:
            places.append(place)
    return places


class Answer(BaseModel):
    """The answer that a tool file's process gives to a request.

    A process that failed sets ``error``, ``line`` and ``frames``. The answer to a call contains
    ``text`` and ``images``. The answer to a request to describe the file contains ``tools``,
    ``problems`` and ``declared``.
    """

    model_config = ConfigDict(defer_build=True)

    error: str = ""
    line: int = 0
    """Line of the file in which the error was raised; 0 if unknown. ``frames`` is the traceback."""
    frames: tuple[str, ...] = ()
    text: str = ""
    images: tuple[Base64Bytes, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    problems: tuple[dict[str, Any], ...] = ()
    declared: dict[str, Any] = Field(default_factory=dict)


@frozen
class EndedFile:
    """A tool file's process that has ended.

    ``answer`` is None if the process timed out or gave no valid answer. ``printed`` contains the
    last lines of the process's output.
    """

    program: EndedProgram
    answer: Answer | None
    printed: str

    def why(self, seconds: float) -> str:
        """Return a message that says why there is no answer; ``seconds`` is the time limit."""
        if self.program.run.timed_out:
            said = f"The process took longer than {seconds:g} s and was stopped."
        else:
            said = f"The process ended without an answer. {ending(self.program.run)}".strip()
        if self.printed:
            said = f"{said}\nLast lines of its output:\n{self.printed}"
        return f"{said}\n{self.program.note}".rstrip()


async def run_file(  # noqa: PLR0913 - a file and how to run it
    path: Path,
    request: dict[str, Any],
    context: ToolContext,
    sandbox: Sandbox | None,
    environment: dict[str, str],
    *,
    name: str,
    seconds: float,
) -> EndedFile:
    """Run a tool file in a process, in ``sandbox`` unless that is None, until the process ends.

    ``request`` is passed to ``runner.main``. It contains the file's text as "source", and for a
    call also the function's name and arguments. ``name`` is shown to the user if the process needs
    more access. ``seconds`` is the time limit.

    Raises:
        ToolError: the process could not be started, or its answer is too large.
    """
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as said:
        asked.write(json.dumps(request | {"path": str(path)}).encode())
        asked.flush()
        descriptors = (asked.fileno(), said.fileno())
        words = (
            sys.executable,
            "-I",
            "-B",
            "-c",
            _BEGIN,
            "\n".join(_import_places()),
            *map(str, descriptors),
        )
        ended = await run_program(
            Program(name, words, environment, seconds, descriptors), context, sandbox
        )
        answer = await asyncio.to_thread(_answer, said.fileno())
    lines = plain_text(ended.run.capture.raw()).rstrip().splitlines()[-LAST_LINES:]
    return EndedFile(ended, None if ended.run.timed_out else answer, "\n".join(lines))


@lru_cache(maxsize=1)
def _import_places() -> tuple[str, ...]:
    """Return the directories from which a tool file's process imports this package and pydantic."""
    spec = find_spec("pydantic")
    libraries = []
    if spec is not None and spec.origin:
        libraries = [str(Path(spec.origin).parents[1])]
    return (str(_PACKAGE), *libraries)


def _answer(descriptor: int) -> Answer | None:
    """Read the answer of a tool file's process from an open file; None if it is empty or invalid.

    Raises ToolError if the answer is larger than ``MAX_ANSWER_BYTES``.
    """
    size = os.fstat(descriptor).st_size
    if not size:
        return None
    if size > MAX_ANSWER_BYTES:
        raise ToolError(
            f"The result is larger than {MAX_ANSWER_BYTES // 1_000_000} MB: write a file and return its path."
        )
    try:
        return Answer.model_validate_json(os.pread(descriptor, size, 0))
    except ValidationError:
        return None
