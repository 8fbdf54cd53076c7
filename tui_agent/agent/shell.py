"""Runs the user's own commands with the bash tool, unasked: those typed with ``!``, and the project's check.

A race runs the check in each copy; a run without a race runs it when the model says that it is done.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tui_agent.agent.channel import EventChannel
from tui_agent.agent.checkpoints.recorder import Recorder, run_watched
from tui_agent.agent.events import ToolFinished, ToolOutput, ToolStarted
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.truncation import OutputLimits
from tui_agent.errors import ToolError
from tui_agent.lazy import dataclass
from tui_agent.processes.capture import plain_text
from tui_agent.session.entries import CheckResult, ShellEntry, ToolMetadata
from tui_agent.tools.base import ToolContext
from tui_agent.tools.bash import BashInput, BashTool
from tui_agent.tools.reads import FileReads

if TYPE_CHECKING:
    from tui_agent.sandbox.view import View

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


CHECK_SECONDS = 600
"""Time limit of a check."""
LAST_LINES = 10
"""Lines of the output that a race's table keeps."""
_OUTPUT_CHARS = 8_000
"""Characters of the output that are kept of a check outside a race, the last ones."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """How a check ended: ``exit_code`` None where it could not be run or took too long. ``output`` is its end."""

    exit_code: int | None
    seconds: float
    output: str

    @property
    def passed(self) -> bool:
        return self.exit_code == 0

    def as_result(self) -> CheckResult:
        """Return what a race keeps of it."""
        lines = [line for line in self.output.splitlines() if line.strip()][-LAST_LINES:]
        return CheckResult(exit_code=self.exit_code, seconds=self.seconds, last_lines=tuple(lines))


async def run_check(command: str, ports: AgentPorts, view: "View", recorder: Recorder | None = None) -> CheckOutcome:
    """Run a command where an agent works, as the agent's own commands run. A failure to run it is an outcome too."""
    began = time.monotonic()
    context = ToolContext(
        cwd=ports.cwd,
        project=ports.project,
        stands_for=ports.stands_for,
        limits=OutputLimits(),
        reads=FileReads(),
        put_blob=ports.put_blob,
        environment=ports.environment,
        sandbox=ports.sandbox,
        view=view,
    )
    try:
        result = await run_watched(recorder, BashTool(), BashInput(command=command, timeout=CHECK_SECONDS), context)
        exit_code, output = result.metadata.exit_code, result.output
    except ToolError as error:
        exit_code, output = None, str(error)
    return CheckOutcome(exit_code, time.monotonic() - began, output[-_OUTPUT_CHARS:])
