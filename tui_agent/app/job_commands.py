"""The commands for background jobs and their ports: ``/jobs``, ``/bg`` and ``/ports``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import plural
from tui_agent.app.frontend import Heading, JobsPage, Pick, PickRow
from tui_agent.errors import CommandError
from tui_agent.whole_numbers import whole_number

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tui_agent.app.controller import Controller
    from tui_agent.processes.jobs import Jobs
    from tui_agent.sandbox import Sandbox

TAIL_CHARS = 2_000
"""Number of characters that a frontend without a screen prints from the end of a job's output."""

NOT_HIDDEN = "Your browser can already reach the ports of jobs, because commands use this machine's network here."


@Command(
    "jobs",
    "show background jobs and their output, and stop them",
    argument="[stop N]",
    place=330,
    is_replaceable=True,
    aliases=("ps", "tasks"),
    words="processes, server, kill, terminal, dev server",
)
async def jobs(controller: Controller, argument: str) -> None:
    agent = controller.open_agent
    word, _, number = argument.strip().partition(" ")
    known = {str(job.id): job for job in agent.jobs}
    if word == "stop" and number.strip() in known:
        job = known[number.strip()]
        await agent.jobs.find(job.id).stop()
        if job.running:
            controller.say(f"Job {job.id} was stopped.")
        else:
            controller.say(f"Job {job.id} has already ended.")
    elif word == "stop" and known:
        controller.say(f"There is no job “{number.strip()}”. Jobs: {', '.join(known)}.", "warning")
    elif word and known:
        raise CommandError("Use /jobs, or /jobs stop N.")
    elif not known:
        controller.say("There are no background jobs in this session.")
    else:
        controller.show(JobsPage())


@Command(
    "bg",
    "move a running command to the background, so that the agent can continue",
    place=332,
    is_replaceable=True,
    words="background, move, ctrl+b, slow, wait, job",
)
async def bg(controller: Controller, _argument: str) -> None:
    count = controller.open_agent.jobs.move()
    if not count:
        controller.say("No running command can be moved to the background.")
        return
    controller.say(
        f"{plural(count, 'command')} moved to the background. /jobs shows and stops jobs."
    )


@Command(
    "ports",
    "let your browser reach a server that a job runs in the sandbox",
    argument="[PORT | close PORT]",
    place=334,
    is_replaceable=True,
    aliases=("port",),
    words="dev server, localhost, browser, forward, listen",
)
async def ports(controller: Controller, argument: str) -> None:
    from tui_agent.agent.port_watch import ports_of

    agent = controller.open_agent
    sandbox = agent.ports.sandbox
    if sandbox is None or not sandbox.hides_ports:
        controller.say(NOT_HIDDEN)
        return
    word, _, rest = argument.strip().partition(" ")
    if word == "close":
        await _close_port(controller, sandbox, rest)
        return
    listening = ports_of(agent.jobs, sandbox)
    if word:
        await _open_port(controller, sandbox, _port(word, listening))
        return
    closed = sorted(listening - sandbox.opened_ports.keys())
    if not closed:
        controller.say(_where_open(sandbox.opened_ports))
        return
    port = await _chosen(controller, closed)
    if port is not None:
        await _open_port(controller, sandbox, port)


async def _chosen(controller: Controller, closed: list[int]) -> int | None:
    """Return the number of the port to open; None if the user cancels.

    If there are several in ``closed``, lets the user choose one.
    """
    if len(closed) == 1:
        return closed[0]
    rows = [PickRow(str(port), f"port {port}") for port in closed]
    picked = await controller.ask(Pick("Which port should your browser reach?", rows, "open"))
    if picked is None:
        return None
    return int(picked)


async def _open_port(controller: Controller, sandbox: Sandbox, port: int) -> None:
    from tui_agent.sandbox import SandboxError

    try:
        here = await sandbox.open_port(port)
    except (OSError, SandboxError) as error:
        raise CommandError(f"Port {port} can't be opened: {error}.") from error
    controller.say(
        f"Open http://127.0.0.1:{here} in your browser. Only this machine can reach it; "
        f"/ports close {port} closes the port again."
    )


async def _close_port(controller: Controller, sandbox: Sandbox, text: str) -> None:
    port = _port(text, sandbox.opened_ports)
    await sandbox.close_port(port)
    controller.say(f"Port {port} is closed again.")


def _port(text: str, among: Collection[int]) -> int:
    """Parse the number of a port, which must be one of the numbers in ``among``.

    Raises:
        CommandError: the text is not a number in ``among``.
    """
    port = whole_number(text.strip())
    if port is not None and port in among:
        return port
    known = ", ".join(map(str, sorted(among))) or "none"
    raise CommandError(f"There is no port “{text.strip()}” here. Ports: {known}.")


def _where_open(opened: Mapping[int, int]) -> str:
    """Return a sentence with the URLs at which a browser reaches the opened ports, if any."""
    if not opened:
        return "No job listens on a port in the sandbox."
    places = ", ".join(f"http://127.0.0.1:{here}" for here in opened.values())
    return f"Your browser reaches {places}. No other job listens on a port."


def job_lines(jobs: Jobs) -> list[str]:
    """Return each job's heading and the end of its output, for frontends without a screen."""
    from tui_agent.tools.job import job_line

    lines: list[str] = []
    for state in jobs:
        lines += [Heading(job_line(state)), *jobs.find(state.id).tail(TAIL_CHARS).splitlines(), ""]
    return lines
