"""Runs the project's check when the model says that it is done, and sends it back to work if the check fails."""

from collections.abc import Awaitable, Callable
from typing import Literal

from tui_agent.agent.channel import Journal
from tui_agent.agent.checkpoints.recorder import Recorder
from tui_agent.agent.gate import Gate
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.reminders import reminder
from tui_agent.agent.shell import run_check
from tui_agent.context.templates import fill
from tui_agent.safe_text import one_line

CHECK_FAILED = "check_failed"
"""Why a message follows an answer after which the project's check failed."""


class ClosingCheck:
    """The check of one session's runs."""

    def __init__(
        self, journal: Journal, ports: AgentPorts, gate: Gate, recorder: Recorder | None
    ) -> None:
        self._journal = journal
        self._ports = ports
        self._gate = gate
        self._recorder = recorder
        self._failed = 0
        self.has_called = False
        """Whether a tool was called in this run: else there is nothing to check."""
        self.ended: Literal["passed", "failed"] | None = None
        """How the check ended last in this run."""

    def begin(self) -> None:
        """Begin a run."""
        self._failed = 0
        self.has_called = False
        self.ended = None

    async def demands_more(self, settle_files: Callable[[], Awaitable[None]]) -> bool:
        """Run the check if a tool was called, and return True if the model has to fix its findings."""
        wanted = self._ports.check
        if wanted is None or not self.has_called:
            return False
        self._journal.channel.say(f"Running the check: {one_line(wanted.command, 100)}")
        entry = await run_check(wanted.command, self._ports, self._gate.view(), self._recorder)
        await settle_files()
        self._journal.append(entry)
        self.ended = "passed" if entry.passed else "failed"
        if entry.passed or self._failed >= wanted.rounds:
            return False
        self._failed += 1
        values = {"command": wanted.command, "result": entry.result, "output": entry.output.strip()}
        text = fill(self._ports.prompt(CHECK_FAILED), **values)
        self._journal.append(reminder(self._journal.session.active_path(), CHECK_FAILED, text))
        return True
