"""Runs a command the user typed with ``!``: the bash tool without a question, its output in a shell entry."""

from tui_agent.agent.channel import EventChannel
from tui_agent.agent.events import ToolOutput
from tui_agent.agent.ports import AgentPorts
from tui_agent.session.entries import ShellEntry
from tui_agent.tools.base import OutputLimits, ToolContext, ToolError
from tui_agent.tools.bash import BashInput, BashTool
from tui_agent.tools.reads import FileReads

SHELL_CALL_ID = "shell"
"""The call id under which live output of the user's own command is reported."""


async def run_shell(command: str, ports: AgentPorts, channel: EventChannel, *, excluded: bool) -> ShellEntry:
    """Run a command in the working directory and return its entry, not yet appended."""
    context = ToolContext(
        cwd=ports.cwd,
        project=ports.project,
        limits=OutputLimits(),
        reads=FileReads(),
        put_blob=ports.put_blob,
        report=lambda text: channel.emit(ToolOutput(SHELL_CALL_ID, text)),
        environment=dict(ports.environment),
    )
    try:
        result = await BashTool().run(BashInput(command=command), context)
    except ToolError as error:
        return ShellEntry(command=command, output=str(error), excluded=excluded)
    return ShellEntry(command=command, output=result.output, exit_code=result.metadata.exit_code, excluded=excluded)
