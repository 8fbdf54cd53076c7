"""Reports a session's background jobs to the frontends by events, and to the model by entries.

The model receives an entry when a job ends. Also finds the jobs that ended with the program that
ran them. The jobs themselves are run by ``processes.jobs``; `Loop` appends the entry before its
next step.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile

from tui_agent.agent.channel import Journal
from tui_agent.agent.events import AgentEvent, JobsChanged, Notice
from tui_agent.agent.port_watch import PortWatch
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.arguments import text_argument
from tui_agent.lazy import LazyPattern
from tui_agent.processes.jobs import Jobs, JobState
from tui_agent.safe_text import one_line
from tui_agent.sandbox import Sandbox
from tui_agent.say_once import SayOnce
from tui_agent.session.entries import AssistantEntry, Entry, TextPart, ToolResultEntry, UserEntry
from tui_agent.tools.job import job_line

JOB_ENDED = "job"
"""Value of ``UserEntry.synthetic`` in the entries that this module creates."""

_ENDED = LazyPattern(r"^Job (\d+) (?:ended|no longer runs)\b", re.MULTILINE)
"""Matches a line about a job in the entries that this module creates; see `job_line`."""
_UNKNOWN = "its command is not known"
_COMMAND_CHARS = 100
"""Maximum number of characters shown of a lost job's command."""


def make_jobs(emit: Callable[[AgentEvent], None], sandbox: Sandbox | None) -> Jobs:
    """Return an empty collection of background jobs that emits an event when a job changes.

    It also emits an event when a job ends, and when a job begins to listen on a port in the
    ``sandbox``.
    """

    def report_change() -> None:
        emit(JobsChanged(tuple(jobs)))
        ports.changed()

    def report_end(job: JobState) -> None:
        emit(Notice(job_line(job), "warning" if job.exit_code else "information"))

    jobs = Jobs(report_change, on_end=report_end)
    ports = PortWatch(jobs, sandbox, emit)
    return jobs


def ended_jobs(jobs: Jobs) -> UserEntry | None:
    """Return an entry that names the jobs that ended since the last such entry; None if none did.

    The entry is for the model; the caller appends it. Its jobs count as reported.
    """
    unreported = jobs.unreported()
    if not unreported:
        return None
    for job in unreported:
        job.reported = True
    lines = "\n".join(job_line(job.state) for job in unreported)
    text = f"<system-reminder>\n{lines}\nThe job tool shows what they wrote.\n</system-reminder>"
    return UserEntry(parts=(TextPart(text=text),), synthetic=JOB_ENDED)


class LostJobs:
    """Reports background jobs that were lost because the program that ran them has ended.

    The entries on the session path still list these jobs as running. Call this before the program
    starts its first job: job numbers restart at 1, so new jobs would be confused with lost ones.
    """

    def __init__(self, journal: Journal, ports: AgentPorts, jobs: Jobs) -> None:
        self._journal = journal
        # A subagent or a race's runner must not report jobs as lost, because those of the session's
        # main agent may still be running.
        self._is_main = ports.is_main
        self._jobs = jobs
        self._said = SayOnce()
        self._ledger = _JobLedger()
        self._read_up_to = 0
        """Id of the last entry that was read; 0 before the first."""

    def tell(self) -> None:
        """Show the user one notice for each lost job."""
        self._tell(self._lines())

    def entry(self) -> UserEntry | None:
        """Return an entry that names the lost jobs, and notify the user; None if no job is lost."""
        lines = self._lines()
        if not lines:
            return None
        self._tell(lines)
        listed = "\n".join(lines)
        text = (
            f"<system-reminder>\n{listed}\nStart them again if they are needed.\n</system-reminder>"
        )
        return UserEntry(parts=(TextPart(text=text),), synthetic=JOB_ENDED)

    def _tell(self, lines: Sequence[str]) -> None:
        for line in self._said.remember_all(lines):
            self._journal.channel.say(line, "warning")

    def _lines(self) -> list[str]:
        """Return a line for each lost job. Reads only the entries that are new since the last call.

        The list is empty in a subagent, a race runner or a read-only session, and once this program
        has started a job.
        """
        session = self._journal.session
        if not self._is_main or session.read_only or any(True for _job in self._jobs):
            return []
        if not session.on_path(self._read_up_to):
            self._ledger = _JobLedger()
            self._read_up_to = 0
        path = session.active_path()
        new = takewhile(lambda entry: entry.id > self._read_up_to, reversed(path))
        for entry in reversed(list(new)):
            self._ledger.take(entry)
            self._read_up_to = entry.id
        return self._ledger.lines()


class _JobLedger:
    """The background jobs that are still running according to the entries of a session path.

    Pass the entries to `take`, in order.
    """

    def __init__(self) -> None:
        self._running: dict[int, str] = {}
        """The arguments of the call that started each running job, by the number of the job."""
        self._arguments: dict[str, str] = {}
        """The arguments of each tool call, by the id of the call."""

    def take(self, entry: Entry) -> None:
        if isinstance(entry, AssistantEntry):
            for part in entry.tool_calls:
                self._arguments[part.call_id] = part.arguments
        elif isinstance(entry, ToolResultEntry):
            for number in entry.metadata.running_jobs:
                self._running.setdefault(number, self._arguments.get(entry.call_id, ""))
            self._end(entry.metadata.ended_jobs)
        elif isinstance(entry, UserEntry) and entry.synthetic == JOB_ENDED:
            self._end(map(int, _ENDED.findall(entry.text)))

    def _end(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._running.pop(number, None)

    def lines(self) -> list[str]:
        found: list[str] = []
        for number, arguments in self._running.items():
            command = one_line(text_argument(arguments, "command"), _COMMAND_CHARS)
            found.append(f"Job {number} no longer runs here: {command or _UNKNOWN}")
        return found
