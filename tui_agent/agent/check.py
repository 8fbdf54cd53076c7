"""The project's check: a command of the user's that says whether work is done, run in the sandbox of the mode.

A race runs it in each copy; a run without a race runs it when the model says that it is done.
"""

import time
from typing import TYPE_CHECKING

from tui_agent.agent.checkpoints.recorder import Recorder, run_watched
from tui_agent.context.truncation import OutputLimits
from tui_agent.errors import ToolError
from tui_agent.lazy import dataclass
from tui_agent.session.entries import CheckResult
from tui_agent.tools.base import ToolContext
from tui_agent.tools.bash import BashInput, BashTool
from tui_agent.tools.reads import FileReads

if TYPE_CHECKING:
    from tui_agent.agent.ports import AgentPorts
    from tui_agent.sandbox.view import View

CHECK_SECONDS = 600
"""Time limit of a check."""
DEFAULT_ROUNDS = 3
LAST_LINES = 10
"""Lines of the output that a race's table keeps."""
_OUTPUT_CHARS = 8_000
"""Characters of the output that are kept of a check outside a race, the last ones."""


@dataclass(frozen=True, slots=True)
class RunCheck:
    """The check of a run. ``rounds``: how often a failure goes back to the model."""

    command: str
    rounds: int = DEFAULT_ROUNDS


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


async def run_check(command: str, ports: "AgentPorts", view: "View", recorder: Recorder | None = None) -> CheckOutcome:
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
