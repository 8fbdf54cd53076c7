"""The two kinds of hooks: a command that reads and writes JSON, and a function of an installed package."""

import asyncio
import inspect
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from fnmatch import fnmatchcase
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from tui_agent.agent.hooks.payloads import ANSWERS, HookAnswer, Payload, refusal
from tui_agent.agent.hooks.settings import HookSettings
from tui_agent.errors import UserFacingError
from tui_agent.files.own_git import find_project
from tui_agent.json_text import loads
from tui_agent.lazy import dataclass
from tui_agent.processes.user_command import CommandFailedError, run_command, shell_command
from tui_agent.sandbox import Sandbox, SandboxError, View

log = logging.getLogger(__name__)

ENTRY_POINTS = "tui_agent.hooks"
"""The group of entry points that name a module or object with functions called like the events."""
FUNCTION_SECONDS = 30
REFUSED = 2
"""The exit code with which a command refuses."""


class HookError(UserFacingError):
    """A hook did not do its work; the message says why, to a person."""


class Handler(Protocol):
    """A hook."""

    @property
    def name(self) -> str: ...

    def handles(self, event: str, tool: str) -> bool:
        """Whether it wants an event; ``tool`` is the tool's name, empty where there is none."""
        ...

    async def __call__(self, payload: Payload) -> HookAnswer:
        """Ask it.

        Raises:
            HookError: it failed, or took too long.
        """
        ...


@dataclass(frozen=True, slots=True)
class Containment:
    """What the commands of a session run in, and in which view."""

    sandbox: Sandbox | None
    view: Callable[[], View]


@dataclass(frozen=True, slots=True)
class CommandHook:
    """A command of the settings. ``environment`` is the one it gets, secrets taken out."""

    settings: HookSettings
    cwd: Path
    environment: Mapping[str, str]
    containment: Containment | None = None
    """Where it runs if its settings say so; None for outside."""
    changed: Callable[[Path, str], str] = lambda _project, _command: ""
    """Names a file of the project that it runs and that is not as it was trusted."""
    report: Callable[[str], None] = lambda _text: None
    """Takes what the sandbox did not keep."""

    @property
    def name(self) -> str:
        command = " ".join(self.settings.command.split())
        return command if len(command) <= 60 else f"{command[:59]}…"

    def handles(self, event: str, tool: str) -> bool:
        return event == self.settings.event and (not tool or fnmatchcase(tool, self.settings.matcher))

    async def __call__(self, payload: Payload) -> HookAnswer:
        try:
            code, out, errors = await self._run(payload.model_dump_json().encode())
        except (CommandFailedError, SandboxError) as error:
            raise HookError(str(error)) from None
        said = " ".join(errors.decode("utf-8", "replace").split())
        if code == REFUSED and (refused := refusal(payload.event, said or "no reason given")) is not None:
            return refused
        if code != 0:
            raise HookError(f"it ended with {code}{f': {said[:300]}' if said else ''}")
        text = out.decode("utf-8", "replace").strip()
        if not text:
            return ANSWERS[payload.event]()
        try:
            answer = loads(text)
        except ValueError:
            raise HookError(f"what it wrote is not JSON: {text[:80]!r}") from None
        return checked(payload.event, answer)

    async def _run(self, given: bytes) -> tuple[int, bytes, bytes]:
        settings, project = self.settings, find_project(self.cwd)
        command = shell_command(settings.command, self.cwd, self.environment, settings.timeout, project)
        held = self.containment if settings.sandboxed else None
        sandbox = held.sandbox if held is not None else None
        if sandbox is not None and (refusal := await asyncio.to_thread(sandbox.refusal)):
            raise HookError(refusal)
        if held is None or sandbox is None or not sandbox.active:
            changed = await asyncio.to_thread(self.changed, project, settings.command)
            if changed:
                raise HookError(f"{changed} is not as you trusted it, so it was not run; start anew to be asked")
            return await run_command(command, given)
        # Inside, programs that the project brings along may be found.
        environment = {**command.environment, "PATH": self.environment.get("PATH", os.defpath)}
        launch = await sandbox.launch(command.arguments, self.cwd, project, held.view(), environment)
        held_command = replace(
            command, arguments=launch.arguments, environment=launch.environment, descriptors=launch.descriptors
        )
        said, code = "", None
        try:
            code, out, errors = await run_command(held_command, given)
            said = errors.decode("utf-8", "replace")
        finally:
            ending = asyncio.ensure_future(sandbox.finish(launch, said, code))
            await asyncio.shield(ending)
        if note := ending.result().note:
            self.report(f"The hook “{self.name}” runs in the sandbox: {note}")
        return code, out, errors


@dataclass(frozen=True, slots=True)
class FunctionHook:
    """The functions of an installed package, by event; plain or ``async``."""

    name: str
    functions: Mapping[str, Callable[[Any], Any]]
    timeout: float = FUNCTION_SECONDS

    def handles(self, event: str, tool: str) -> bool:
        del tool
        return event in self.functions

    async def __call__(self, payload: Payload) -> HookAnswer:
        """Call the function. A plain one runs in a thread, where it goes on by itself after the time limit."""
        function = self.functions[payload.event]
        try:
            async with asyncio.timeout(self.timeout):
                if inspect.iscoroutinefunction(function):
                    answer = await function(payload)
                else:
                    answer = await asyncio.to_thread(function, payload)
        except TimeoutError:
            raise HookError(f"it took longer than {self.timeout:g} s") from None
        except Exception as error:  # somebody else's code: it may fail in any way
            raise HookError(f"{type(error).__name__}: {error}") from error
        return checked(payload.event, answer)


def checked(event: str, answer: object) -> HookAnswer:
    """Return an answer as the model of its event.

    Raises:
        HookError: it does not fit.
    """
    expected = ANSWERS[event]
    if answer is None:
        return expected()
    if isinstance(answer, BaseModel):
        answer = answer.model_dump()
    try:
        return expected.model_validate(answer)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the answer"
        raise HookError(f"its answer does not fit: {where}: {first['msg']}") from None


@dataclass(frozen=True, slots=True)
class LoadedHooks:
    """The hooks there are, and what is wrong with others."""

    handlers: tuple[Handler, ...] = ()
    problems: tuple[str, ...] = field(default_factory=tuple)


def from_entry_points(points: Iterable[EntryPoint]) -> LoadedHooks:
    """Return the hooks of installed packages, by name. Imports them; run it in a thread."""
    found: list[Handler] = []
    problems: list[str] = []
    for point in sorted(points, key=lambda point: point.name):
        try:
            offered = point.load()
        except Exception as error:  # somebody else's code: importing it may fail in any way
            log.warning("hook %s", point.name, exc_info=error)
            problems.append(f"The hook {point.name} cannot be loaded: {type(error).__name__}: {error}.")
            continue
        functions = {event: getattr(offered, event) for event in ANSWERS if callable(getattr(offered, event, None))}
        if functions:
            found.append(FunctionHook(point.name, functions))
        else:
            problems.append(f"The hook {point.name} has no function named like an event: {', '.join(ANSWERS)}.")
    return LoadedHooks(tuple(found), tuple(problems))


def from_settings(
    settings: Iterable[HookSettings],
    cwd: Path,
    environment: Mapping[str, str],
    changed: Callable[[Path, str], str] = lambda _project, _command: "",
) -> LoadedHooks:
    return LoadedHooks(tuple(CommandHook(row, cwd, environment, changed=changed) for row in settings))
