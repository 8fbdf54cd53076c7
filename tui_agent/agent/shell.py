"""Runs a command the user typed with ``!``: the bash tool without a question, its output in a shell entry."""

import asyncio
from collections.abc import Callable

from tui_agent.agent.channel import EventChannel
from tui_agent.agent.checkpoints.recorder import Recorder, run_watched
from tui_agent.agent.events import ToolFinished, ToolOutput, ToolStarted
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.truncation import OutputLimits
from tui_agent.errors import ToolError
from tui_agent.processes.capture import plain_text
from tui_agent.session.entries import ShellEntry, ToolMetadata
from tui_agent.tools.base import ToolContext
from tui_agent.tools.bash import BashInput, BashTool
from tui_agent.tools.reads import FileReads

SHELL_CALL = "shell:"
"""How the call ids begin under which a command of the user's own is reported while it runs."""
INTERRUPTED = "(interrupted)"
"""The last line of what an interrupted command printed."""
MAX_LIVE_CHARS = 20_000
"""Characters of a running command's output that are kept when it is interrupted: the last ones."""


async def run_shell(
    command: str, ports: AgentPorts, channel: EventChannel, recorder: Recorder | None = None, *, excluded: bool
) -> ShellEntry:
    """Run a command in the working directory and return its entry, not yet appended.

    Cancelling it ends the command; the entry has what was printed until then.
    """
    started = ports.clock()
    call_id = f"{SHELL_CALL}{started}"
    channel.emit(ToolStarted(call_id, "$", command, ""))
    printed, status, entry = "", "interrupted", None

    def report(text: str) -> None:
        nonlocal printed
        printed = (printed + text)[-MAX_LIVE_CHARS:]
        channel.emit(ToolOutput(call_id, text))

    try:
        entry = await _run(command, ports, report, recorder, excluded)
        status = "error" if entry.exit_code else "completed"
    except asyncio.CancelledError:
        entry = interrupted(command, printed, excluded=excluded)
    finally:
        exit_code = None if entry is None else entry.exit_code
        seconds = (ports.clock() - started) / 1000
        channel.emit(ToolFinished(call_id, "$", status, ToolMetadata(exit_code=exit_code), seconds))
    return entry


def interrupted(command: str, printed: str = "", *, excluded: bool) -> ShellEntry:
    kept = plain_text(printed.encode()).rstrip("\n")
    return ShellEntry(command=command, output=f"{kept}\n{INTERRUPTED}".lstrip("\n"), excluded=excluded)


async def _run(
    command: str,
    ports: AgentPorts,
    report: Callable[[str], None],
    recorder: Recorder | None,
    excluded: bool,  # noqa: FBT001 - the caller's
) -> ShellEntry:
    context = ToolContext(
        cwd=ports.cwd,
        project=ports.project,
        limits=OutputLimits(),
        reads=FileReads(),
        put_blob=ports.put_blob,
        report=report,
        environment=ports.environment,
    )
    try:
        result = await run_watched(recorder, BashTool(), BashInput(command=command), context)
    except ToolError as error:
        return ShellEntry(command=command, output=str(error), excluded=excluded)
    return ShellEntry(command=command, output=result.output, exit_code=result.metadata.exit_code, excluded=excluded)
