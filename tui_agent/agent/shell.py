"""Runs the user's own commands without asking: typed with ``!``, in a template, or as a check.

A command that is typed or in a template (`run_shell`) runs outside the sandbox; a check
(`run_check`) runs in it. Both record changes to files if they are given a recorder. Nothing is
appended here: the caller appends the entry if it is wanted, and the checkpoint with the changes.
"""

import asyncio
import time
from typing import TYPE_CHECKING, Any

from tui_agent.agent.channel import EventChannel
from tui_agent.agent.checkpoints.recorder import Recorder, watched
from tui_agent.agent.events import ToolFinished, ToolOutput, ToolStarted
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.truncation import OutputLimits
from tui_agent.errors import ToolError
from tui_agent.processes.capture import plain_text
from tui_agent.session.entries import CheckEntry, ShellEntry, ToolMetadata
from tui_agent.tools.base import ToolContext
from tui_agent.tools.bash import BashInput, BashTool
from tui_agent.tools.reads import FileReads

if TYPE_CHECKING:
    from tui_agent.sandbox.view import View

SHELL_CALL = "shell:"
"""Prefix of the call ids in the events of the user's own commands."""
INTERRUPTED = "(interrupted)"
"""Line that is appended to the output of an interrupted command."""
MAX_LIVE_CHARS = 20_000
"""Number of characters that are kept from the end of an interrupted command's output."""

CHECK_SECONDS = 600
"""Timeout of a check command, in seconds."""

_OUTPUT_CHARS = 8_000
"""Number of characters that are kept from the end of a check's output."""


async def run_shell(
    command: str,
    ports: AgentPorts,
    channel: EventChannel,
    recorder: Recorder | None = None,
    *,
    excluded: bool,
) -> ShellEntry:
    """Run a command, emit its output as events, and return its entry, which is not appended.

    Cancelling this ends the command and returns an entry with the output so far. ``recorder``
    records the command's changes to files. If ``excluded``, the model does not see the entry.
    """
    started = ports.clock()
    call_id = f"{SHELL_CALL}{started}"
    channel.emit(ToolStarted(call_id, "$", command, ""))
    printed = ""
    status = "interrupted"
    exit_code = None

    def report(text: str) -> None:
        nonlocal printed
        printed = (printed + text)[-MAX_LIVE_CHARS:]
        channel.emit(ToolOutput(call_id, text))

    try:
        exit_code, output = await _run(
            BashInput(command=command), _context(ports, report=report), recorder
        )
        status = "error" if exit_code else "completed"
    except asyncio.CancelledError:
        return interrupted(command, printed, excluded=excluded)
    finally:
        seconds = (ports.clock() - started) / 1000
        channel.emit(ToolFinished(call_id, "$", status, ToolMetadata(exit_code=exit_code), seconds))
    return ShellEntry(command=command, output=output, exit_code=exit_code, excluded=excluded)


def interrupted(command: str, printed: str = "", *, excluded: bool) -> ShellEntry:
    """Return the entry of an interrupted command that has printed the text ``printed``."""
    kept = plain_text(printed.encode()).rstrip("\n")
    return ShellEntry(
        command=command, output=f"{kept}\n{INTERRUPTED}".lstrip("\n"), excluded=excluded
    )


def _context(ports: AgentPorts, **more: Any) -> ToolContext:
    return ToolContext(
        cwd=ports.cwd,
        project=ports.project,
        limits=OutputLimits(),
        reads=FileReads(),
        put_blob=ports.put_blob,
        environment=ports.environment,
        **more,
    )


async def _run(
    given: BashInput, context: ToolContext, recorder: Recorder | None
) -> tuple[int | None, str]:
    """Run a command; return its exit code (None if it timed out or could not run) and output."""
    try:
        async with watched(recorder, BashTool(), given, context):
            result = await BashTool().run(given, context)
    except ToolError as error:
        return None, str(error)
    return result.metadata.exit_code, result.output


async def run_check(
    command: str, ports: AgentPorts, view: "View", recorder: Recorder | None = None
) -> CheckEntry:
    """Run a check in the agent's directory and sandbox; return its entry, which is not appended.

    ``view`` is what the check can see, change and reach; ``recorder`` records its changes to files.
    """
    began = time.monotonic()
    context = _context(ports, stands_for=ports.stands_for, sandbox=ports.sandbox, view=view)
    exit_code, output = await _run(
        BashInput(command=command, timeout=CHECK_SECONDS), context, recorder
    )
    seconds = time.monotonic() - began
    end = output[-_OUTPUT_CHARS:]
    return CheckEntry(command=command, output=end, exit_code=exit_code, seconds=seconds)
