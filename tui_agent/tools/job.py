"""The ``job`` tool: lists, shows and stops background jobs, types into them or waits for them.

Once the tool has shown that a job has ended, the job is marked as known to the model
(``Job.reported``), so that its end is not reported again. Also creates the results of ``bash``
calls that started a job (`job_result`).
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from tui_agent.errors import ToolError
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.processes.capture import plain_text
from tui_agent.processes.jobs import Job, JobState
from tui_agent.processes.terminal import typed_lines
from tui_agent.safe_text import one_line
from tui_agent.session.entries import ToolMetadata
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.outputs import FILTER_OUTPUT, Output, finish, size_text

MAX_WAIT = 600
"""Maximum number of seconds that one call waits."""

ANSWER_SECONDS = 10
"""Number of seconds to wait for a job's answer to input, or until ``until`` matches, if the call
gives no time."""

SEARCH_SECONDS = 0.5
"""Time limit, in seconds, for one search for the regular expression ``until``."""

TAKEN = "The user is typing in this job's terminal. Use wait or until to wait for them."
"""Error message about input to a job whose terminal the user has taken over."""

_COMMAND_CHARS = 100
"""Maximum number of characters of a job's command that a list shows."""
_NOT_YET = "[The job has not ended after {limit} s.]"


class JobInput(ToolInput):
    """Arguments of the ``job`` tool."""

    id: int | None = None
    stop: bool = False
    wait: int = Field(default=0, ge=0)
    """Maximum number of seconds to wait until the job ends; 0 to return at once. For a job in a
    terminal, with ``input`` or ``until``, maximum number of seconds to wait for the job's answer; 0
    for ``ANSWER_SECONDS``."""
    input: str = Field(default="", description="Text to type; <Enter>, <C-c>, <Up> are keys")
    until: str = Field(default="", description="Wait until its screen matches this regex")


class JobTool(Tool[JobInput]):
    """Shows background jobs to the model, and controls them.

    Only input to a job needs permission, because the command was allowed when the job started.
    """

    name: ClassVar[str] = "job"
    description: ClassVar[str] = "List background jobs; id shows new output."
    Input = JobInput
    traits = ToolTraits(
        kind="execute",
        waits=True,
        imported_names=("write_stdin", "BashOutput", "TaskOutput", "TaskList", "wait"),
    )

    def needs(self, arguments: JobInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        if not arguments.input:
            return ()
        job = _job_of(arguments, context)
        typed = typed_lines(arguments.input)
        needs: list[PermissionNeed] = []
        if typed:
            needs.append(
                PermissionNeed(
                    Permission.BASH,
                    typed,
                    detail=typed,
                    detail_kind="command",
                    sandboxed=job.is_contained,
                )
            )
        if not job.is_contained:
            # The effect of the input is unknown, because the program that reads it may not be a
            # shell.
            shown = repr(arguments.input)
            why = f"it is typed into a running program: {job.command}"
            needs.append(PermissionNeed(Permission.BASH, shown, detail=shown, unclear=why))
        return tuple(needs)

    async def run(self, arguments: JobInput, context: ToolContext) -> ToolResult:
        if context.jobs is None:
            raise ToolError("This session has no background jobs.")
        if arguments.id is None:
            states = list(context.jobs)
            lines = [job_line(state) for state in states]
            for job in context.jobs.unreported():
                job.reported = True
            output = Output(
                "\n".join(lines) or "No jobs.", "jobs", metadata=_facts(states), stored=False
            )
            return await finish(output, context)
        job = context.jobs.find(arguments.id)
        awaited = _screen_matcher(arguments.until)
        if arguments.input and job.is_taken:
            raise ToolError(TAKEN)
        if arguments.input:
            job.type(arguments.input)
        if arguments.stop:
            await job.stop()
        elif job.terminal is not None and (arguments.input or awaited is not None):
            limit = min(arguments.wait or ANSWER_SECONDS, MAX_WAIT)
            with job.listening(context.report):
                came = await job.answered(awaited, limit)
            await job.look()
            note = "" if came else _NOT_YET.format(limit=limit)
            return await job_result(job, context, note=note)
        elif arguments.wait:
            with job.listening(context.report), contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(arguments.wait, MAX_WAIT)):
                    await job.ended.wait()
        await job.look()
        return await job_result(job, context)

    def title(self, arguments: JobInput) -> str:
        if arguments.id is None:
            return "jobs"
        if arguments.stop:
            return f"stop job {arguments.id}"
        if arguments.input:
            return f"job {arguments.id} ← {one_line(arguments.input)}"
        return f"job {arguments.id}"


def _job_of(arguments: JobInput, context: ToolContext) -> Job:
    if context.jobs is None:
        raise ToolError("This session has no background jobs.")
    if arguments.id is None:
        raise ToolError("id is missing. Give the number of the job to type into.")
    return context.jobs.find(arguments.id)


def _screen_matcher(text: str) -> Callable[[str], bool] | None:
    """Return a function that tells whether the regular expression ``text`` matches a screen.

    Returns None if the text is empty. Raises ToolError if the expression is invalid. The returned
    function raises ToolError if a search takes more than ``SEARCH_SECONDS``.
    """
    if not text:
        return None
    import regex

    try:
        pattern = regex.compile(text, regex.MULTILINE)
    except regex.error as error:
        raise ToolError(f"until is not a regular expression: {error}.") from None

    def matches(shown: str) -> bool:
        try:
            return pattern.search(shown, timeout=SEARCH_SECONDS) is not None
        except TimeoutError:
            raise ToolError(
                "until takes too long to match. Write a simpler regular expression."
            ) from None

    return matches


async def job_result(
    job: Job, context: ToolContext, *, first: bool = False, note: str = ""
) -> ToolResult:
    """Return a job's new output, or the screen of its terminal, with the state of the job.

    New output is the output since the last result. ``first`` is True for the call that started the
    job. ``note`` is a line that is added below the output. If the job has ended, the result's full
    output is everything that the job has written, and the job is marked as reported.
    """
    state = job.state
    job.reported = job.reported or not state.running
    new, lost = job.new_output()
    text = plain_text(new)
    raw: bytes | None = new
    if job.terminal is not None:
        # Only the terminal's screen is shown, without the control sequences that drew it.
        text = job.terminal.text()
        raw = None
    elif lost:
        text = f"[The {size_text(lost)} before this were dropped.]\n{text}"
    result = await finish(
        Output(
            text=text if text.strip() or first else "[No new output.]",
            title=f"job {job.id}",
            keep="ends",
            footer="\n".join(
                filter(None, [note, f"[{_state_text(state)}]", _ports(job, context), job.note])
            ),
            cut_hint=FILTER_OUTPUT,
            metadata=_facts([state]).model_copy(update={"exit_code": state.exit_code}),
            is_error=first and bool(state.exit_code),
            raw=raw,
        ),
        context,
    )
    if job.stored:
        return replace(result, full_output=job.stored)
    return result


def _facts(states: Sequence[JobState]) -> ToolMetadata:
    """Return the metadata of a result that shows which jobs are running and which have ended."""
    return ToolMetadata(
        running_jobs=tuple(state.id for state in states if state.running),
        ended_jobs=tuple(state.id for state in states if not state.running),
    )


def _ports(job: Job, context: ToolContext) -> str:
    """Return a note on the ports on which a job listens in the sandbox; "" if there are none."""
    if context.sandbox is None or not job.is_contained or not job.state.running:
        return ""
    opened = context.sandbox.opened_ports
    notes: list[str] = []
    for port in sorted(context.sandbox.listening(job.state.pid)):
        if port in opened:
            notes.append(f"[The user can reach port {port} at http://127.0.0.1:{opened[port]}.]")
        else:
            notes.append(f"[Only commands can reach port {port}. The user can open it in /ports.]")
    return "\n".join(notes)


def job_line(state: JobState) -> str:
    """Return a line with a job's number and state, then its command, cut if it is long."""
    command = " ".join(state.command.split())
    if len(command) <= _COMMAND_CHARS:
        shown = command
    else:
        shown = f"{command[: _COMMAND_CHARS - 1]}…"
    return f"{_state_text(state)} {shown}"


def _state_text(state: JobState) -> str:
    name = f"Job {state.id}"
    seconds = (state.ended_at if state.ended_at is not None else time.time()) - state.started_at
    if state.running:
        return f"{name} has been running for {seconds:.0f} s, process {state.pid}."
    if state.stopped:
        return f"{name} was stopped after {seconds:.0f} s."
    if state.exit_code is None:
        return f"{name} ended after {seconds:.0f} s."
    return f"{name} ended after {seconds:.0f} s with exit code {state.exit_code}."
