"""Reports a session's jobs: by events to the frontends, by an entry to the model when they have ended.

The jobs themselves are run by ``processes.jobs``; `Loop` appends the entry before its next step.
"""

from collections.abc import Callable

from tui_agent.agent.events import AgentEvent, JobsChanged, Notice
from tui_agent.agent.port_watch import PortWatch
from tui_agent.processes.jobs import Jobs, JobState
from tui_agent.sandbox import Sandbox
from tui_agent.session.entries import TextPart, UserEntry
from tui_agent.tools.job import job_line

JOB_ENDED = "job"
"""``UserEntry.synthetic`` of the entries made here."""


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
