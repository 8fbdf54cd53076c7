"""The ``bash`` tool: a command, its output and how it ended."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from pydantic import Field, field_validator

from tui_agent.session.entries import ToolMetadata, Truncation
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.capture import plain_text
from tui_agent.tools.environment import SafeEnvironment, command_environment, withheld_from
from tui_agent.tools.errors import ToolError
from tui_agent.tools.interactive import advice
from tui_agent.tools.job import job_result
from tui_agent.tools.outputs import FILTER_OUTPUT, Output, finish
from tui_agent.tools.paths import check_allowed
from tui_agent.tools.permission import Permission, PermissionNeed
from tui_agent.tools.process import Command, Run, run_command
from tui_agent.tools.sandbox import Held, Sandbox

DEFAULT_TIMEOUT = 120
"""Seconds a command may take when the model names none."""

MAX_TIMEOUT = 600
"""Seconds a command may take at most."""

FIRST_LOOK = 0.5
"""Seconds a background job is watched before its call returns: most that can't work end by then."""

_TITLE_CHARS = 200
_FENCE = re.compile(r"\A\s*```(?:bash|sh|shell|console)?[ \t]*\n(.*?)\n?```\s*\Z", re.DOTALL)


class BashInput(ToolInput):
    """Arguments of ``bash``."""

    command: str
    timeout: float = Field(default=DEFAULT_TIMEOUT, gt=0, description="Seconds, at most 600")
    background: bool = False
    network: bool = Field(default=False, description="Needs internet or a local port")

    @field_validator("command")
    @classmethod
    def _bare(cls, command: str) -> str:
        """Take off what a command stands in where it is shown to people: a code fence, prompts."""
        if fenced := _FENCE.match(command):
            command = fenced[1]
        lines = command.split("\n")
        return "\n".join(line[2:] for line in lines) if all(line.startswith("$ ") for line in lines) else command


class BashTool(Tool[BashInput]):
    """Runs a shell command."""

    name = "bash"
    description = (
        "Run a bash command without terminal or input. Each call starts in the working directory. "
        "It ends after timeout (default 120 s); servers go in the background, as a job."
    )
    Input = BashInput

    def needs(self, arguments: BashInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        """Return a bash need for the whole command, and one for the network where a sandbox keeps it away."""
        command = _checked(arguments.command)
        sandbox = context.sandbox
        if sandbox is not None and (refusal := sandbox.refusal()):
            raise ToolError(refusal)
        inside = sandbox is not None and sandbox.covers(command)
        need = PermissionNeed(Permission.BASH, command, detail=command, detail_kind="command", sandboxed=inside)
        if not (inside and arguments.network):
            return (need,)
        return (need, PermissionNeed(Permission.NETWORK, command, detail=command, detail_kind="command"))

    def touches(self, arguments: BashInput, context: ToolContext) -> tuple[()] | None:
        """Return nothing for a command that only reads."""
        from tui_agent.tools.shell.needs import command_needs

        needs = command_needs(arguments.command, context.cwd, context.project)
        return () if needs and all(need.harmless for need in needs) else None

    async def run(self, arguments: BashInput, context: ToolContext) -> ToolResult:
        """Run it; a cancelled call has reported what came out until then."""
        timeout = min(arguments.timeout, MAX_TIMEOUT)
        if context.sandbox is not None and (notice := await asyncio.to_thread(context.sandbox.notice)):
            context.notify(notice)
        started = await asyncio.to_thread(_command, arguments, context, timeout)
        command, sandbox = started.command, started.sandbox
        run = Run()
        try:
            if arguments.background:
                return await self._background(arguments, command, context)
            await run_command(command, context.report, run)
            _adopt(arguments, context, run)
        except OSError as error:
            raise ToolError(f"The command could not be started: {error.strerror or error}.") from error
        finally:
            removed = sandbox.tidy(context.project) if sandbox is not None else ""
        output = await asyncio.to_thread(_output, arguments, run, started, context)
        if removed:
            output = replace(output, footer="\n".join(filter(None, [output.footer, removed])))
        return await finish(output, context)

    @staticmethod
    async def _background(arguments: BashInput, command: Command, context: ToolContext) -> ToolResult:
        if context.jobs is None:
            raise ToolError("Nothing can run in the background here; run it without.")
        job = await context.jobs.start(arguments.command, command, context.put_blob)
        try:
            with job.listening(context.report), contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FIRST_LOOK):
                    await job.ended.wait()
        except asyncio.CancelledError:
            await asyncio.shield(job.stop())
            raise
        return await job_result(job, context, first=True)

    def title(self, arguments: BashInput) -> str:
        """Return the command on one line."""
        return " ".join(arguments.command.split())[:_TITLE_CHARS]


@dataclass(frozen=True, slots=True)
class _Started:
    """A command as it is run, the sandbox it is in, and how it is held there."""

    command: Command
    sandbox: Sandbox | None = None
    held: Held | None = None


def _command(arguments: BashInput, context: ToolContext, timeout: float) -> _Started:
    from tui_agent.tools.shell.needs import command_needs

    environment = command_environment(context.environment or SafeEnvironment(os.environ))
    text = _checked(arguments.command)
    words: tuple[str, ...] = (_shell(), "-c", text)
    sandbox = context.sandbox
    if sandbox is not None and (refusal := sandbox.refusal()):
        raise ToolError(refusal)
    needs = command_needs(text, context.cwd, context.project)
    # What a command is called by rules may change with what its words match; where it reaches may not.
    check_allowed((need for need in needs if need.permission is not Permission.BASH), context)
    if sandbox is None or not sandbox.covers(text):
        return _Started(Command(words, context.cwd, environment, timeout))
    held = None if arguments.network else _held(needs, context.project)
    if context.held and held is None:
        raise ToolError("It would do something else by now than when it was allowed; nothing was done.")
    words = sandbox.wrap(words, context.cwd, context.project, network=arguments.network, held=held)
    return _Started(
        Command(words, context.cwd, sandbox.environment(environment, context.project), timeout), sandbox, held
    )


def _held(needs: Sequence[PermissionNeed], project: Path) -> Held | None:
    """Return how a command is held that may run unasked because it only builds and tests; None for any other."""
    from tui_agent.tools.shell.builders import is_held

    if not is_held(needs):
        return None
    named = (need.pattern for need in needs if need.permission in {Permission.READ, Permission.EDIT})
    return Held(frozenset((project.resolve() / pattern).resolve() for pattern in named))


def _output(arguments: BashInput, run: Run, started: _Started, context: ToolContext) -> Output:
    raw, capture = run.capture.raw(), run.capture
    timeout, sandbox = started.command.timeout, started.sandbox
    text = plain_text(raw)
    failed = run.timed_out or run.exit_code != 0
    hint = advice(arguments.command, text, failed=failed)
    if failed and sandbox is not None and not hint:
        hint = sandbox.advice(text, context.project, network=arguments.network, held=started.held)
    withheld = withheld_from(context.environment, arguments.command, text, failed=failed)
    ending = "\n".join(filter(None, [_ending(run, timeout), hint, withheld]))
    if not text.strip() and not ending:
        ending = "[No output.]"
    seen = Truncation(total_lines=capture.total_lines, total_bytes=capture.total_bytes, kept_lines=0, kept_bytes=0)
    return Output(
        text=text,
        title=BashTool().title(arguments),
        keep="ends",
        footer=ending,
        cut_hint=FILTER_OUTPUT,
        metadata=ToolMetadata(exit_code=run.exit_code),
        is_error=run.exit_code != 0,
        raw=raw,
        seen=seen,
    )


def _adopt(arguments: BashInput, context: ToolContext, run: Run) -> None:
    """List what the command left behind with the jobs."""
    if run.left is not None and context.jobs is not None:
        run.job = context.jobs.adopt(arguments.command, run.left).id


def _ending(run: Run, timeout: float) -> str:
    if run.timed_out:
        longer = "Give a longer timeout or use" if timeout < MAX_TIMEOUT else "For what takes longer use"
        return f"[Stopped after {timeout:g} s with everything it started. {longer} background.]"
    notes = []
    if run.exit_code is not None and run.exit_code < 0:
        notes.append(f"[Ended by {_signal_name(-run.exit_code)}.]")
    elif run.exit_code:
        notes.append(f"[Exit code {run.exit_code}.]")
    if run.left is not None:
        job = f" It is job {run.job}." if run.job is not None else ""
        notes.append(f"[Left running, its output is lost: {run.left.names()}.{job} It ends with this program.]")
    return "\n".join(notes)


def _signal_name(number: int) -> str:
    known = {member.value: member.name for member in signal.Signals}
    return known.get(number, f"signal {number}")


def _checked(command: str) -> str:
    if not command.strip():
        raise ToolError("command is empty.")
    if "\0" in command:
        raise ToolError("command holds a NUL character.")
    return command


@lru_cache(maxsize=1)
def _shell() -> str:
    return shutil.which("bash") or shutil.which("sh") or "/bin/sh"
