"""Background jobs as a session tells of them: to its screens while they run, to the model when one has ended."""

from collections.abc import Callable

from tui_agent.agent.events import AgentEvent, JobsChanged, Notice
from tui_agent.processes.jobs import Jobs, JobState
from tui_agent.session.entries import TextPart, UserEntry
from tui_agent.tools.job import job_line

JOB_ENDED = "job"
"""Why the entry was made, as ``UserEntry.synthetic`` says it."""


def make_jobs(emit: Callable[[AgentEvent], None]) -> Jobs:
    """Return jobs whose changes and ends are events."""

    def report_end(job: JobState) -> None:
        emit(Notice(job_line(job), "warning" if job.exit_code else "information"))

    jobs = Jobs(lambda: emit(JobsChanged(tuple(jobs))), on_end=report_end)
    return jobs


def ended_jobs(jobs: Jobs) -> UserEntry | None:
    """Return the entry that tells the model which jobs ended by themselves.

    None when it knows of all.
    """
    untold = jobs.untold()
    if not untold:
        return None
    for job in untold:
        job.told = True
    lines = "\n".join(job_line(job.state) for job in untold)
    text = f"<system-reminder>\n{lines}\nThe job tool shows what they wrote.\n</system-reminder>"
    return UserEntry(parts=(TextPart(text=text),), synthetic=JOB_ENDED)
