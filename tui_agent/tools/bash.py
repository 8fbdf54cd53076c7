"""The ``bash`` tool: runs a shell command, and returns its output and exit code.

Decides whether a command runs in the sandbox (`_sandbox_of`), and starts it in the foreground or as
a job. Explains failures caused by missing input or a missing terminal (`advice`). The module
``programs`` runs the command, and ``sandbox`` decides which files the command may see and which of
its changes are kept.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from tui_agent.errors import ToolError
from tui_agent.lazy import LazyPattern
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.processes.capture import plain_text
from tui_agent.processes.environment import SafeEnvironment, command_environment, withheld_from
from tui_agent.processes.jobs import Job
from tui_agent.processes.own_programs import find_shell
from tui_agent.processes.process import Command
from tui_agent.processes.terminal import KIND, Terminal, in_terminal
from tui_agent.sandbox import Sandbox
from tui_agent.session.entries import ToolMetadata, Truncation
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.job import job_result
from tui_agent.tools.outputs import FILTER_OUTPUT, SMALL, Output, finish
from tui_agent.tools.paths import check_allowed
from tui_agent.tools.programs import (
    EndedProgram,
    Program,
    ending,
    launch_program,
    not_started,
    recorded,
    run_or_move,
)

NO_OUTPUT = "[No output.]"
"""Text that the model gets as the output of a successful command that wrote nothing."""

MOVED = "[The user moved the command to the background, so that you can continue. It has no time limit now.]"
"""Note for the model that the user moved a command to the background."""

ON_A_LAYER = (
    "[The command may not see later changes to the project. Its own permitted changes are moved into "
    "the project when it ends.]"
)
"""Note for the model on a command that was moved to the background and works on a separate layer.
It says how the command's files and those of the project differ until the command ends."""

DEFAULT_TIMEOUT = 120
"""Time limit of a command, in seconds, if the model doesn't give one."""

MAX_TIMEOUT = 600
"""Maximum time limit of a command, in seconds."""

JOB_START_SECONDS = 0.5
"""Number of seconds for which a call that starts a background job waits for the job's end. Most
commands that fail have ended by then."""

TERMINAL_START_SECONDS = 10
"""Maximum number of seconds that a call waits for the first screen of a program which it started in
a terminal."""

_TITLE_CHARS = 200
_ONLY_OUTPUT = (
    "[A background job can change build output only. To change files of the project, run "
    "the command without background.]"
)
_FENCE = LazyPattern(r"\A\s*```(?:bash|sh|shell|console)?[ \t]*\n(.*?)\n?```\s*\Z", re.DOTALL)

_MAX_TAIL_CHARS = 4_000
"""Number of characters at the end of a command's output that are searched for a question to the
user."""

_NO_TERMINAL = "The command needs a terminal. Run it with terminal = true, or use a command that prints and ends."

_WANTS_TERMINAL = (
    r"/dev/tty: No such device|[Ii]nappropriate ioctl for device|not a (tty|TTY|terminal)\b|is not to a terminal"
    r"|failed tty get|no tty\b|requires? an? (interactive )?(tty|TTY|terminal)|Raw mode is not supported"
    r"|Error opening terminal|must be run (in|from) a terminal|[Tt]erminal is (dumb|not fully functional)"
    r"|TERM environment variable (not set|needs set)"
)
_SIGNS = tuple(
    (LazyPattern(sign, re.MULTILINE), text)
    for sign, text in (
        (
            r"sudo: (a terminal is required|no tty present|a password is required|\d+ incorrect password)",
            "sudo can't ask for a password here. Work without root, or ask the user to run the command with !.",
        ),
        (
            r"Aborting commit due to empty commit message|Aborting due to empty (commit|tag) message|no tag message\?",
            "No editor can open here. Give the message with -m or -F, or keep the present one with --no-edit.",
        ),
        (
            r"terminal prompts disabled|could not read (Username|Password) for",
            "Git can't ask for a user name or password here. Ask the user to log in, or use a remote without login.",
        ),
        (
            r"Host key verification failed",
            "ssh can't ask about an unknown host here. Ask the user to connect once, with !ssh HOST.",
        ),
        (
            r"Permission denied \([^)\n]*(publickey|password|keyboard-interactive)",
            "ssh can't ask for a password or passphrase here. Ask the user to load a key into ssh-agent.",
        ),
        (
            r"npx canceled due to missing packages and no YES option|Ok to proceed\? \(y\)",
            "Answer the question beforehand: npx --yes, npm init -y, npm create NAME -- --yes.",
        ),
        (
            r"^EOFError: EOF when reading a line|^EOF when reading a line|end of file on (std)?input",
            "The command reads input but has none. Pipe the input in or use a here-document.",
        ),
        (
            r"the input device is not a TTY|cannot enable tty mode on non tty input",
            "There is no terminal. Leave out -t and -i.",
        ),
        (_WANTS_TERMINAL, _NO_TERMINAL),
    )
)

_SSH_NOTICE = "Pseudo-terminal will not be allocated because stdin is not a terminal."
"""A message of ssh that doesn't mean that ssh failed, because ssh works without a terminal."""

_YES_OR_NO = LazyPattern(
    r"[\[(](y/n|yes/no|y/N|Y/n|yes|no)(/[^\])]*)?[\])]\s*[?:]?\s*(abort\.?)?$", re.IGNORECASE
)
_QUESTION = LazyPattern(r"\S.*\?\s*$")
_PROMPT = LazyPattern(r"\S.*([:>?]|[\])])\s*$")
_READ = LazyPattern(
    r"(^|[;&|(]|\b(do|then|while|until)\b)\s*(IFS=\S*\s+)?(read|select)\b", re.MULTILINE
)

_ASKED = (
    "The command asked a question and got no answer, because it has no input. "
    "Use a flag such as --yes, or pipe the answer in."
)
_EMPTY_INPUT = (
    "read found no input, because the command has none. Pipe the input in or use a here-document."
)


class BashInput(ToolInput):
    """Arguments of the ``bash`` tool."""

    command: str
    timeout: float = Field(default=DEFAULT_TIMEOUT, gt=0, description="Seconds, at most 600")
    background: bool = False
    terminal: bool = Field(
        default=False, description="Run as a job in a terminal; job types into it"
    )
    network: bool = Field(default=False, description="Needs internet or a local port")

    @field_validator("command")
    @classmethod
    def _bare(cls, command: str) -> str:
        """Return a command without a code fence around it and without ``$`` prompts."""
        if fenced := _FENCE.match(command):
            command = fenced[1]
        lines = command.split("\n")
        if all(line.startswith("$ ") for line in lines):
            return "\n".join(line[2:] for line in lines)
        return command


class BashTool(Tool[BashInput]):
    """Runs a shell command in the foreground or as a background job, with or without a terminal."""

    name = "bash"
    description = (
        "Run a bash command in the working directory, without input. "
        "Servers go in the background, as a job."
    )
    Input = BashInput
    instead: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("cwd", "workdir"), "begin the command with cd DIR &&"),
        **dict.fromkeys(("stdin", "input"), "use a here-document in the command"),
    }
    traits = ToolTraits(
        basic=True,
        kind="execute",
        other_names="shell sh terminal exec execute executebash executecommand run runbash runcommand "
        "runinterminal runshellcommand runterminalcmd runterminalcommand",
        repeatable=True,
        repeats_failures=True,
        output="log",
        says_arguments=True,
    )

    def needs(self, arguments: BashInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        command = _checked(arguments.command)
        if context.sandbox is not None and (refusal := context.sandbox.refusal()):
            raise ToolError(refusal)
        inside = _sandbox_of(arguments, context) is not None
        return (
            PermissionNeed(
                Permission.BASH, command, detail=command, detail_kind="command", sandboxed=inside
            ),
        )

    def touches(self, arguments: BashInput, context: ToolContext) -> tuple[()] | None:
        from tui_agent.shell.needs import command_needs

        if _sandbox_of(arguments, context) is not None:
            return ()
        needs = command_needs(arguments.command, context.cwd, context.project)
        if needs and all(need.harmless for need in needs):
            return ()
        return None

    def warm(self, environment: Mapping[str, str]) -> None:
        from tui_agent.shell.needs import command_needs

        command_needs("true", Path(), Path())
        command_environment(environment)
        advice("true", "", failed=False)

    async def run(self, arguments: BashInput, context: ToolContext) -> ToolResult:
        """Run the command and return its output, or start it as a job and return its first output.

        Output is reported while the command runs, so that the output isn't lost if the call is
        cancelled.
        """
        if context.sandbox is not None and (
            notice := await asyncio.to_thread(context.sandbox.notice, context.project)
        ):
            context.notify(notice)
        sandbox = await asyncio.to_thread(_sandbox_of, arguments, context)
        environment = await asyncio.to_thread(
            _child_environment, arguments, context, inside=sandbox is not None
        )
        words = (find_shell(context.project), "-c", arguments.command)
        program = Program(
            arguments.command, words, environment, min(arguments.timeout, MAX_TIMEOUT)
        )
        if arguments.terminal:
            environment["TERM"] = KIND
            screen = Terminal()
            held = replace(program, words=in_terminal(words, context.project), terminal=screen)
            return await _in_background(held, context, sandbox)
        if arguments.background:
            return await _in_background(program, context, sandbox)
        ended = await run_or_move(program, context, sandbox)
        if isinstance(ended, Job):
            ended.is_contained = sandbox is not None
            note = MOVED
            if sandbox is not None and sandbox.is_layered(context.view):
                note = f"{MOVED}\n{ON_A_LAYER}"
            return await job_result(ended, context, first=True, note=note)
        if ended.run.capture.total_bytes <= SMALL:
            output = _output(arguments, ended, context)
        else:
            output = await asyncio.to_thread(_output, arguments, ended, context)
        return await finish(output, context)

    def command(self, arguments: BashInput) -> str:
        return arguments.command

    def title(self, arguments: BashInput) -> str:
        return " ".join(arguments.command.split())[:_TITLE_CHARS]


async def _in_background(
    program: Program, context: ToolContext, sandbox: Sandbox | None
) -> ToolResult:
    if sandbox is None:
        return await _start_job(program.command(context), program.name, context, contained=False)
    view = context.view
    async with recorded(context, sandbox, view):
        launch = await launch_program(program, context, sandbox, view, live=True)

        async def ended(said: str, code: int | None) -> str:
            outcome = await sandbox.finish(launch, said, code, context.recorded)
            if notice := sandbox.failure_notice():
                context.notify(notice)
            unchanged = outcome.wanted is not None and outcome.wanted.sources
            return "\n".join(filter(None, [outcome.note, _ONLY_OUTPUT if unchanged else ""]))

        looked_at = partial(sandbox.publish_outputs, launch)
        command = replace(program.command(context, launch), ended=ended, looked_at=looked_at)
        try:
            return await _start_job(command, program.name, context, contained=True)
        except (ToolError, OSError):
            await sandbox.finish(launch, "", None)
            raise


def _sandbox_of(arguments: BashInput, context: ToolContext) -> Sandbox | None:
    """Return the sandbox in which a command runs; None if it runs outside the sandbox.

    The command runs outside if there is no sandbox, if the settings exclude the command, or if the
    sandbox can't give it the access that it needs.
    """
    sandbox = context.sandbox
    if (
        sandbox is None
        or not sandbox.is_used_for(arguments.command)
        or sandbox.why_unsupported(context.view)
    ):
        return None
    return sandbox


def _child_environment(
    arguments: BashInput, context: ToolContext, *, inside: bool
) -> dict[str, str]:
    """Check that a command may still run, and return the environment variables for it.

    ``inside`` is True if the command runs in the sandbox.

    Raises:
        ToolError: no command may run, or the command's effect has changed since it was allowed.
    """
    from tui_agent.shell.needs import command_needs

    text = _checked(arguments.command)
    sandbox = context.sandbox
    if sandbox is not None and (refusal := sandbox.refusal()):
        raise ToolError(refusal)
    environment = command_environment(context.environment or SafeEnvironment(os.environ))
    if inside:
        return environment
    needs = command_needs(text, context.cwd, context.project)
    # The pattern for the command itself may change with the files that its wildcards match. The
    # other permissions that it needs, such as for paths that it reads or writes, must not change.
    check_allowed((need for need in needs if need.permission is not Permission.BASH), context)
    if context.harmless and not all(need.harmless for need in needs):
        raise ToolError(
            "The command would now do something different from what was allowed, so it was not run."
        )
    return environment


async def _start_job(
    command: Command, name: str, context: ToolContext, *, contained: bool
) -> ToolResult:
    if context.jobs is None:
        raise ToolError(
            "Commands can't run in the background here. Run the command without background."
        )
    try:
        job = context.jobs.start(name, command, context.put_blob)
    except OSError as error:
        raise not_started(error) from error
    job.is_contained = contained
    try:
        if job.terminal is not None:
            with job.listening(context.report):
                await job.answered(None, TERMINAL_START_SECONDS)
            return await job_result(job, context, first=True)
        with job.listening(context.report), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(JOB_START_SECONDS):
                await job.ended.wait()
    except asyncio.CancelledError:
        await asyncio.shield(job.stop())
        raise
    return await job_result(job, context, first=True)


def _output(arguments: BashInput, ended: EndedProgram, context: ToolContext) -> Output:
    run = ended.run
    raw = run.capture.raw()
    capture = run.capture
    text = plain_text(raw)
    failed = run.timed_out or run.exit_code != 0
    how = ending(run)
    limit = min(arguments.timeout, MAX_TIMEOUT)
    if run.timed_out:
        longer = "For a longer command use"
        if limit < MAX_TIMEOUT:
            longer = "Give a longer timeout or use"
        others = "with all its processes"
        if run.exit_code is None:
            others = f"but process {run.pid} can't be ended and still runs"
        how = f"[Stopped after {limit:g} s, {others}. {longer} background.]"
    hint = advice(arguments.command, text, failed=failed)
    sandbox = _sandbox_of(arguments, context)
    masked = {} if sandbox is None else sandbox.masks.of_variables()
    withheld = withheld_from(
        context.environment, arguments.command, text, failed=failed, given=masked
    )
    footer = "\n".join(filter(None, [how, hint, ended.note, withheld]))
    if not text.strip() and not footer:
        footer = NO_OUTPUT
    seen = Truncation(
        total_lines=capture.total_lines, total_bytes=capture.total_bytes, kept_lines=0, kept_bytes=0
    )
    return Output(
        text=text,
        title=BashTool().title(arguments),
        keep="ends",
        footer=footer,
        cut_hint=FILTER_OUTPUT,
        metadata=ToolMetadata(
            exit_code=run.exit_code, running_jobs=() if run.job is None else (run.job,)
        ),
        is_error=run.exit_code != 0,
        raw=raw,
        seen=seen,
    )


def _checked(command: str) -> str:
    if not command.strip():
        raise ToolError("command is empty.")
    if "\0" in command:
        raise ToolError("command contains a NUL character.")
    return command


def advice(command: str, output: str, *, failed: bool) -> str:
    """Return a line of advice if a command asked for missing input or a terminal; otherwise "".

    A sign of this is a question at the end of the output, such as "(y/n)", or an unfinished last
    line that ends with a question mark. If the command ``failed`` (timed out, or ended with an exit
    code other than 0), there are more signs: a known error message, an unfinished last line that
    looks like a prompt, and no output at all from a command that calls ``read``.
    """
    end = output[-_MAX_TAIL_CHARS:].replace(_SSH_NOTICE, "")
    if failed:
        for sign, text in _SIGNS:
            if sign.search(end):
                return f"[{text}]"
    last = end.rpartition("\n")[2]
    if (
        _YES_OR_NO.search(end.rstrip())
        or _QUESTION.search(last)
        or (failed and _PROMPT.search(last))
    ):
        return f"[{_ASKED}]"
    if failed and not output.strip() and _READ.search(command):
        return f"[{_EMPTY_INPUT}]"
    return ""
