"""Reports a session's jobs: by events to the frontends, by an entry to the model when they have ended.

Also finds the jobs that ended with the program that ran them. The jobs themselves are run by
``processes.jobs``; `Loop` appends the entry before its next step.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from tui_agent.agent.channel import Journal
from tui_agent.agent.events import AgentEvent, JobsChanged, Notice
from tui_agent.agent.port_watch import PortWatch
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.arguments import parse_object
from tui_agent.lazy import LazyPattern
from tui_agent.processes.jobs import Jobs, JobState
from tui_agent.safe_text import one_line
from tui_agent.sandbox import Sandbox
from tui_agent.say_once import SayOnce
from tui_agent.session.entries import AssistantEntry, Entry, TextPart, ToolResultEntry, UserEntry
from tui_agent.tools.job import job_line

JOB_ENDED = "job"
"""``UserEntry.synthetic`` of the entries made here."""

_RUNS = LazyPattern(r"^\[?Job (\d+) has been running\b|\bIt is job (\d+)\.", re.MULTILINE)
_ENDED = LazyPattern(r"^\[?Job (\d+) (?:ended|was stopped|no longer runs)\b", re.MULTILINE)
"""Match what results and reports say of jobs; see `job_line`."""
_TOOLS = ("bash", "job")
_COMMAND_CHARS = 100
"""Maximum characters shown of a lost job's command."""


def make_jobs(emit: Callable[[AgentEvent], None], sandbox: Sandbox | None) -> Jobs:
    """Return an empty collection of jobs, which emits an event when a job changes or ends.

    Also when one begins to listen on a port in the ``sandbox``.
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
    """Return an entry that names the jobs ended since the last such entry; None if there are none.

    The entry is for the model and not appended; its jobs count as reported.
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
    """Reports the jobs that the path says are running, although the program that ran them has ended.

    To be used before the first job of this program starts, because its numbers begin at 1 again.
    """

    def __init__(self, journal: Journal, ports: AgentPorts, jobs: Jobs) -> None:
        self._journal = journal
        # Jobs of the session's main agent may still run while a subagent or runner works.
        self._is_main = not ports.is_subagent and ports.stands_for is None
        self._jobs = jobs
        self._said = SayOnce()

    def tell(self) -> None:
        """Show the user a notice for each lost job, once."""
        for line in self._lines():
            if self._said.remember(line):
                self._journal.channel.say(line, "warning")

    def entry(self) -> UserEntry | None:
        """Return an entry that names the lost jobs, and tell the user; None if there are none."""
        self.tell()
        lines = "\n".join(self._lines())
        if not lines:
            return None
        text = (
            f"<system-reminder>\n{lines}\nStart them again if they are needed.\n</system-reminder>"
        )
        return UserEntry(parts=(TextPart(text=text),), synthetic=JOB_ENDED)

    def _lines(self) -> list[str]:
        session = self._journal.session
        if not self._is_main or session.read_only or any(True for _job in self._jobs):
            return []
        return lost_jobs(session.active_path())


def lost_jobs(path: Sequence[Entry]) -> list[str]:
    """Return a line for each job that a path says is running: its number and command."""
    running: dict[str, str] = {}
    commands: dict[str, str] = {}
    for entry in path:
        if isinstance(entry, AssistantEntry):
            for part in entry.tool_calls:
                commands[part.call_id] = part.arguments
        elif isinstance(entry, ToolResultEntry) and entry.tool in _TOOLS:
            for number in _numbers(_RUNS, entry.output):
                running.setdefault(number, commands.get(entry.call_id, ""))
            for number in _numbers(_ENDED, entry.output):
                running.pop(number, None)
        elif isinstance(entry, UserEntry) and entry.synthetic == JOB_ENDED:
            for number in _numbers(_ENDED, entry.text):
                running.pop(number, None)
    return [
        f"Job {number} no longer runs here: {_command(text)}" for number, text in running.items()
    ]


def _numbers(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    for found in pattern.finditer(text):
        yield next(filter(None, found.groups()))


def _command(arguments: str) -> str:
    """Return the command in the arguments of a call, in one line."""
    values = parse_object(arguments or "{}") or {}
    return one_line(str(values.get("command", "")), _COMMAND_CHARS) or "its command is not known"
