"""Runs the program of a tool call, in the sandbox or outside it.

If the program lacked access that the user then grants, the program runs again. Processes that the
program leaves running become a background job. The caller decides whether to use the sandbox, and
what the program may see and change in it.
"""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

from tui_agent.errors import ToolError
from tui_agent.lazy import frozen
from tui_agent.processes.capture import plain_text
from tui_agent.processes.jobs import Foreground, Job
from tui_agent.processes.process import Command, CommandRun, run_command
from tui_agent.processes.terminal import Terminal
from tui_agent.sandbox import CommandOutcome, Launch, Sandbox, SandboxError, View
from tui_agent.tools.base import ToolContext

_SEARCH_NOTICE_SECONDS = 1.0
"""Number of seconds after which the user is told that files are being searched for secrets."""
MAX_RUNS = 4
"""Maximum number of runs of one program, each with more access than the run before."""


@frozen
class Program:
    """A program that is to be run for a tool call.

    ``name`` is its name for the user, ``words`` the argument list, ``timeout`` the time limit in
    seconds, and ``descriptors`` are file descriptors that the program inherits. ``terminal`` is the
    terminal in which it runs, None for pipes.
    """

    name: str
    words: tuple[str, ...]
    environment: Mapping[str, str]
    timeout: float
    descriptors: tuple[int, ...] = ()
    terminal: Terminal | None = None
    foreground: Foreground | None = None
    """Lets the user move the program to the background; None if the program can't be moved."""

    @property
    def is_moved(self) -> bool:
        return self.foreground is not None and self.foreground.moved.is_set()

    def command(self, context: ToolContext, launch: Launch | None = None) -> Command:
        """Return the command that runs the program in the sandbox which ``launch`` set up.

        If ``launch`` is None, the command runs the program outside the sandbox.
        """
        if launch is None:
            return Command(
                self.words,
                context.cwd,
                self.environment,
                self.timeout,
                self.descriptors,
                terminal=self.terminal,
            )
        return Command(
            launch.arguments,
            context.cwd,
            launch.environment,
            self.timeout,
            (*launch.descriptors, *self.descriptors),
            terminal=self.terminal,
            wait_for_others=launch.gone if launch.info >= 0 else None,
        )


@frozen
class EndedProgram:
    """The last run of a program, and a note for the model on the sandbox's effects, "" for none."""

    run: CommandRun
    note: str = ""


async def run_program(
    program: Program, context: ToolContext, sandbox: Sandbox | None
) -> EndedProgram:
    """Run a program until it ends or exceeds its time limit.

    If ``sandbox`` is None, the program runs outside the sandbox. If the program lacked access in
    the sandbox, the user is asked to grant that access. If they do, the program runs again, up to
    ``MAX_RUNS`` times in all. The last run is returned. Output is reported while the program runs,
    so nothing is lost if the call is cancelled.

    Raises:
        ToolError: the program could not be started, or the sandbox can't be set up.
    """
    if sandbox is None:
        run = CommandRun()
        await _run(program, program.command(context), context, run)
        return EndedProgram(run)
    view = context.view
    runs = 1
    ended, outcome = await _run_in(view, program, context, sandbox)
    while context.request_grants is not None and runs < MAX_RUNS:
        wanted = outcome.wanted
        if wanted is None or program.is_moved:
            break
        granted = await context.request_grants(wanted, outcome.lost)
        if isinstance(granted, str):
            return replace(ended, note="\n".join(filter(None, [ended.note, f"[{granted}]"])))
        if sandbox.why_unsupported(view.opened(granted)) or not granted.beyond(view.grants):
            break
        view = view.opened(granted)
        runs = runs + 1
        ended, outcome = await _run_in(view, program, context, sandbox)
    return ended


async def run_or_move(
    program: Program, context: ToolContext, sandbox: Sandbox | None
) -> EndedProgram | Job:
    """Run a program like `run_program`; if the user moves it to the background, return its job."""
    jobs = context.jobs
    if jobs is None:
        return await run_program(program, context, sandbox)
    with jobs.foreground(program.name) as foreground:

        def report(text: str) -> None:
            if not foreground.moved.is_set():
                context.report(text)

        program = replace(program, foreground=foreground)
        watched = replace(context, report=report)
        running = asyncio.ensure_future(run_program(program, watched, sandbox))
        moving = asyncio.ensure_future(foreground.moved.wait())
        try:
            await asyncio.wait({running, moving}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.wait({running})
            raise
        finally:
            moving.cancel()
    run = foreground.run
    if running.done() or run is None:
        return await running

    async def note() -> str:
        try:
            return (await running).note
        except ToolError as error:
            return str(error)

    ending = asyncio.ensure_future(note())
    return jobs.take_over(foreground, run, ending, context.put_blob)


async def _run_in(
    view: View, program: Program, context: ToolContext, sandbox: Sandbox
) -> tuple[EndedProgram, CommandOutcome]:
    """Run a program in the sandbox once; return the run, and what the sandbox says about it."""
    run = CommandRun()
    async with recorded(context, sandbox, view):
        launch = await launch_program(program, context, sandbox, view, live=False)
        try:
            await _run(program, program.command(context, launch), context, run)
        finally:
            said = plain_text(run.capture.raw())
            code = None if run.timed_out else run.exit_code
            ending = asyncio.ensure_future(sandbox.finish(launch, said, code, context.recorded))
            await asyncio.shield(ending)
        outcome = ending.result()
    if notice := sandbox.failure_notice():
        context.notify(notice)
    return EndedProgram(run, outcome.note), outcome


async def _run(program: Program, command: Command, context: ToolContext, run: CommandRun) -> None:
    if program.foreground is not None:
        program.foreground.run = run
    try:
        await run_command(command, context.report, run)
    except OSError as error:
        raise not_started(error) from error
    if run.left is not None and context.jobs is not None:
        # Processes that the program left running become a background job.
        run.job = context.jobs.adopt(program.name, run.left).id


async def launch_program(
    program: Program, context: ToolContext, sandbox: Sandbox, view: View, *, live: bool
) -> Launch:
    """Prepare the sandbox for a program; ``live`` is True for a background job.

    Notifies the user if searching files for secrets takes long.

    Raises:
        ToolError: the sandbox can't be set up.
    """

    def tell() -> None:
        if sandbox.searching:
            context.notify(
                f"Searching {sandbox.searching:,} files for secrets before the command may see them"
            )

    telling = asyncio.get_running_loop().call_later(_SEARCH_NOTICE_SECONDS, tell)
    try:
        return await sandbox.launch(
            program.words,
            context.cwd,
            context.project,
            view,
            program.environment,
            live=live,
            allow_host=context.allow_host,
        )
    except (SandboxError, OSError) as error:
        raise ToolError(f"The sandbox could not be set up, so nothing was run: {error}") from error
    finally:
        telling.cancel()


@contextlib.asynccontextmanager
async def recorded(context: ToolContext, sandbox: Sandbox, view: View) -> AsyncIterator[None]:
    """Record, for checkpoints, the changes that a program makes to the project in a ``with`` block.

    Nothing is recorded if the sandbox doesn't let the program change source files, or if the
    program writes to a separate layer. In the latter case the sandbox records the changes when it
    moves them into the project.
    """
    recorded = context.recorded if view.changes_sources else None
    if recorded is None or await asyncio.to_thread(sandbox.is_layered, view):
        yield
        return
    async with recorded(None):
        yield


def not_started(error: OSError) -> ToolError:
    """Return the error for a command that could not be started."""
    return ToolError(f"The command could not be started: {error.strerror or error}.")


def ending(run: CommandRun) -> str:
    """Return notes for the model on a program's exit code or signal, and on processes left running.

    Returns "" if the run succeeded and left no process running.
    """
    notes = []
    if run.exit_code is not None and run.exit_code < 0:
        names = {member.value: member.name for member in signal.Signals}
        notes.append(f"[Ended by {names.get(-run.exit_code, f'signal {-run.exit_code}')}.]")
    elif run.exit_code:
        notes.append(f"[Exit code {run.exit_code}.]")
    if run.left is not None:
        if run.job is not None:
            job = f" It is job {run.job}."
        else:
            job = ""
        notes.append(
            f"[Still running, without output: {run.left.names()}.{job} It ends when tui-agent ends.]"
        )
    return "\n".join(notes)
