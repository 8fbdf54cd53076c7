"""The check of a race: a command of the user's that runs in each copy, held by the same sandbox as the runner's own."""

import time
from typing import TYPE_CHECKING

from tui_agent.context.truncation import OutputLimits
from tui_agent.errors import ToolError
from tui_agent.session.entries import CheckResult
from tui_agent.tools.base import ToolContext
from tui_agent.tools.bash import BashInput, BashTool
from tui_agent.tools.reads import FileReads

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent

CHECK_SECONDS = 600
"""How long a check may take."""
LAST_LINES = 10
"""Lines of its output that are kept."""


async def run_check(command: str, agent: "Agent") -> CheckResult:
    """Run a command where an agent works, as that agent's commands run; what goes wrong is a result too."""
    ports, began = agent.ports, time.monotonic()
    context = ToolContext(
        cwd=ports.cwd,
        project=ports.project,
        stands_for=ports.stands_for,
        limits=OutputLimits(),
        reads=FileReads(),
        put_blob=ports.put_blob,
        environment=ports.environment,
        sandbox=ports.sandbox,
        view=agent.gate.view(),
    )
    try:
        result = await BashTool().run(BashInput(command=command, timeout=CHECK_SECONDS), context)
    except ToolError as error:
        return CheckResult(exit_code=None, seconds=time.monotonic() - began, last_lines=(str(error),))
    lines = [line for line in result.output.splitlines() if line.strip()][-LAST_LINES:]
    return CheckResult(exit_code=result.metadata.exit_code, seconds=time.monotonic() - began, last_lines=tuple(lines))
