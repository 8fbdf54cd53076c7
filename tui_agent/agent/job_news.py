"""Tells of background jobs: each change to the screen, an end that nobody waited for to the user and to the model.

The model is told with the next request, in an entry behind everything else: nothing it was sent before changes.
"""

from collections.abc import Callable

from tui_agent.agent.events import AgentEvent, JobsChanged, Notice
from tui_agent.processes.jobs import Jobs, JobState
from tui_agent.session.entries import TextPart, UserEntry
from tui_agent.tools.job import job_line

REASON = "job"
"""Why the entry was made, as ``UserEntry.synthetic`` says it."""


def make_jobs(emit: Callable[[AgentEvent], None]) -> Jobs:
    """Return an empty list of jobs that tells of its changes as events."""

    def ended(state: JobState) -> None:
        emit(Notice(job_line(state), "warning" if state.exit_code else "information"))

    jobs = Jobs(lambda: emit(JobsChanged(tuple(jobs))), on_end=ended)
    return jobs


def ended_jobs(jobs: Jobs | None) -> UserEntry | None:
    """Return the entry that tells the model which jobs ended by themselves; None when it knows of all."""
    untold = jobs.untold() if jobs is not None else []
    if not untold:
        return None
    for job in untold:
        job.told = True
    lines = "\n".join(job_line(job.state) for job in untold)
    text = f"<system-reminder>\n{lines}\nThe job tool shows what they wrote.\n</system-reminder>"
    return UserEntry(parts=(TextPart(text=text),), synthetic=REASON)
