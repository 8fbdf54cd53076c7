"""Tells the user about servers that jobs start in the sandbox, where browsers can't reach them.

`/ports` opens their ports to this machine.
"""

import asyncio
from collections.abc import Callable

from tui_agent.agent.events import AgentEvent, Notice
from tui_agent.processes.jobs import Jobs
from tui_agent.sandbox import Sandbox
from tui_agent.say_once import SayOnce

SILENT_SECONDS = 3.0
"""Seconds after a job's change until ports are checked again, because some servers print nothing
when they begin to listen."""


class PortWatch:
    """Tells the user when the jobs of a session begin to listen on ports.

    Call `changed` whenever a job changes.
    """

    def __init__(
        self, jobs: Jobs, sandbox: Sandbox | None, emit: Callable[[AgentEvent], None]
    ) -> None:
        self._jobs = jobs
        self._sandbox = sandbox
        self._emit = emit
        self._said = SayOnce()
        self._timer: asyncio.TimerHandle | None = None

    def changed(self) -> None:
        """Check the ports now, and once more after `SILENT_SECONDS`."""
        self._look()
        if self._timer is None and self._jobs.running:
            self._timer = asyncio.get_running_loop().call_later(SILENT_SECONDS, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self._look()

    def _look(self) -> None:
        for port in self._said.remember_all(sorted(ports_of(self._jobs, self._sandbox))):
            self._emit(
                Notice(
                    f"A job listens on port {port}, which only commands in the sandbox can reach.",
                    action="ports",
                    label="lets your browser reach it",
                )
            )


def ports_of(jobs: Jobs, sandbox: Sandbox | None) -> frozenset[int]:
    """Return the ports on which the running jobs listen in the sandbox."""
    found = frozenset[int]()
    if sandbox is None:
        return found
    for state in jobs:
        if state.running and jobs.find(state.id).is_contained:
            found |= sandbox.listening(state.pid)
    return found
