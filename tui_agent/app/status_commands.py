"""The status of a session: one page of facts, the changes to files, the background jobs."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import money, one_line, plural, seconds, short_path, tokens
from tui_agent.app.frontend import DiffPage, Heading, JobsPage, Report
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.timeline import Step
    from tui_agent.app.controller import Controller
    from tui_agent.app.spending import Spending
    from tui_agent.processes.jobs import Jobs

TAIL_CHARS = 2_000
"""Characters of a job's output that are printed where there is no page for it."""


COST = "Cost"
"""The heading of the cost."""


@Command(
    "status",
    "show model, mode, sandbox, context and cost on one page",
    place=310,
    yields=True,
    words="info, usage, session id, version",
)
async def status(controller: Controller, _argument: str) -> None:
    await show_status(controller, controller.open_agent)


async def show_status(controller: Controller, agent: Agent, at: str = "") -> None:
    from tui_agent.app.spending import spending_sections

    # The first look at the sandbox and the sum of a long session take a moment.
    sandbox = await asyncio.to_thread(sandbox_words, agent)
    found, names = await look_up_spending(controller, agent)
    lines = list(status_lines(agent, sandbox))
    for heading, rows in spending_sections(found, names):
        lines += ["", Heading(heading), *(f"  {row}" for row in rows)]
    controller.show(Report("Status", lines, at))


async def look_up_spending(controller: Controller, agent: Agent) -> tuple[Spending, dict[int, str]]:
    """Return a session's cost, and how its left branches begin.

    Read in a thread: that can take a second.
    """
    from tui_agent.app.spending import DAYS, look_up

    services = controller.services
    session = agent.session
    records = await asyncio.to_thread(session.reader.requests)
    departures = session.departures(record.id for record in records)
    await asyncio.to_thread(session.reader.costs)
    found, names = await asyncio.to_thread(
        look_up, session, services.store, records, departures, price=services.price
    )
    now = datetime.fromtimestamp(controller.clock()).astimezone()
    found.all_sessions.update(await asyncio.to_thread(services.store.spent_by_day, now, DAYS))

    def extra(step: Step) -> float | None:
        if step.miss is None:
            return None
        return services.reread_cost(step.model, step.miss.missed)

    for step in await agent.inspector.timeline():
        if step.answer is not None:
            found.add_step(step, extra(step))
    for step in await agent.inspector.left_steps():
        found.add_miss(step, extra(step))
    return found, names


def sandbox_words(agent: Agent) -> str:
    if (sandbox := agent.ports.sandbox) is None:
        return "none in this session"
    if lacking := sandbox.shortcoming(agent.ports.project):
        return f"{lacking} (tui-agent doctor)"
    state = sandbox.state
    if state.kind:
        return f"{state.kind}: commands run in it"
    return f"none: {state.reason}"


def status_lines(agent: Agent, sandbox: str) -> Iterator[str]:
    from tui_agent.agent.diagnostics.diagnostics import state_lines
    from tui_agent.agent.permissions import MODE_HELP, Mode

    info = agent.session.info
    yield Heading(one_line(info.title or info.first_message, 80) or "New session")
    yield _row(
        "session",
        f"{info.id} · {plural(info.entry_count, 'entry')}{' · read-only' * agent.session.read_only}",
    )
    yield _row("directory", short_path(info.cwd))
    yield ""
    yield Heading("Agent")
    chosen = ""
    if agent.stands_in_for:
        chosen = f" for {agent.stands_in_for}, which can't be used for now"
    yield _row("model", one_line(f"{agent.model}{chosen}", 120))
    for line in agent.ports.directory.adaptations(agent.model):
        yield _row(
            "", f"{line}: the provider refused otherwise (tui-agent models --forget {agent.model})"
        )
    yield _row("thinking", agent.effort.level or "default")
    about = "an agent of your own"
    if agent.mode in set(Mode):
        about = MODE_HELP[Mode(agent.mode)]
    yield _row("mode", f"{agent.mode}: {about}")
    yield _row("sandbox", sandbox)
    rules = Counter(
        str(rule.action) for rule in agent.tools.gate.rules() if rule.source != "default"
    )
    made = ", ".join(f"{count} {action}" for action, count in sorted(rules.items()))
    yield _row("rules", f"{made or 'none of your own'} (/permissions)")
    checked = "; ".join(state_lines(agent.tools.diagnostics)) or "on, nothing edited yet"
    yield _row(
        "diagnostics", f"{checked if agent.tools.diagnostics.enabled else 'off'} (/diagnostics)"
    )
    yield _row(
        "jobs", f"{agent.jobs.running} running (/jobs)" if agent.jobs.running else "none running"
    )
    yield ""
    yield from _context_lines(agent)
    yield ""
    yield Heading(COST)
    costs = agent.session.reader.costs()
    side = info.side_cost
    on_path = sum(costs.get(entry_id, 0.0) for entry_id in agent.session.path_outline().ids)
    asked = agent.session.reader.requests()
    # Free requests cost nothing; those without a price may.
    known = bool(costs or side) or (asked and all(request.cost is not None for request in asked))
    if known:
        yield _row("this branch", money(on_path))
        yield _row("all branches", money((agent.session.reader.own_cost() or 0.0) + side))
    elif not asked:
        yield _row("all branches", "nothing yet")
    for line in agent.allowance.lines():
        yield _row("budget", line)
    for line in agent.ports.directory.plan.lines(now=agent.ports.clock() / 1000):
        yield _row("plan", line)
    if copied := sum(costs.values()) - (agent.session.reader.own_cost() or 0.0):
        yield _row("before the fork", f"{money(copied)}, paid by another session")


def _context_lines(agent: Agent) -> Iterator[str]:
    yield Heading("Context")
    size = agent.context_size()
    about_size = f"{'~' if size.estimated else ''}{tokens(size.total)} of {tokens(size.window)}, {size.percent:.0f}%"
    yield _row("next request", f"{about_size} (/context)")
    yield _row(
        "compaction",
        f"automatic, at {tokens(size.threshold)}" if size.threshold else "only when asked for",
    )
    cache = agent.inspector.known_cache()
    warm = cache and (f"warm for {seconds(cache.seconds_left)}" if cache.warm else "cold")
    yield _row("prompt cache", warm or "the provider has not reported one")
    if agent.context.settings().cache.keep_warm:
        yield _row("kept warm", _ping_words(agent))


def _ping_words(agent: Agent) -> str:
    spent = agent.cache_pings.spent()
    done = ""
    if spent is not None:
        done = f"for {money(spent)} since the last answer; "
    forecast = agent.cache_pings.forecast()
    if forecast is None:
        return f"{done}no ping: the cache or its prices are unknown, or nothing of it will be read"
    odds = f"{forecast.chance:.0%} to save {money(forecast.saving)} for {money(forecast.price)}"
    if forecast.pays:
        return f"{done}a ping is worth it ({odds})"
    return f"{done}a ping is not worth it ({odds})"


@Command(
    "diagnostics",
    "show checkers of edited files, switch them on or off",
    argument="[on|off]",
    place=325,
    yields=True,
    words="type errors, lint, linter, lsp",
)
async def diagnostics(controller: Controller, argument: str) -> None:
    agent = controller.open_agent
    word = argument.strip()
    if word in {"on", "off"}:
        agent.tools.diagnostics.switch(on=word == "on")
        always = f"; diagnostics.enabled = {'true' if word == 'on' else 'false'} in the settings does so for all"
        controller.say(
            f"Edits of this session are {'' if word == 'on' else 'not '}checked{always}."
        )
    elif word:
        raise CommandError("Use /diagnostics, /diagnostics on or /diagnostics off.")
    else:
        controller.show(Report("Diagnostics", await asyncio.to_thread(_diagnostics_lines, agent)))


def _diagnostics_lines(agent: Agent) -> list[str]:
    from tui_agent.agent.diagnostics.checks import KNOWN_CHECKERS
    from tui_agent.agent.diagnostics.diagnostics import state_lines
    from tui_agent.processes.own_programs import find_project_program
    from tui_agent.tools.code import CodeTool

    checked = agent.tools.diagnostics
    project = agent.ports.project
    on = "Edits are not checked; /diagnostics on changes that"
    if checked.enabled:
        on = "Edits are checked"
    lines = [
        f"{on}. What is new since an edit is told to the model.",
        "",
        Heading("In this session"),
    ]
    lines += [f"  {one_line(line, 200)}" for line in state_lines(checked)] or [
        "  nothing was edited yet"
    ]
    lines += ["", Heading("Checkers")]
    lines += [
        f"  {pattern}: {one_line(commands if isinstance(commands, str) else '; '.join(commands), 120) or 'none'}"
        for pattern, commands in agent.ports.diagnostics.commands.items()
    ]
    for checker in KNOWN_CHECKERS:
        found = find_project_program(checker.name, project, project)
        needs = " or ".join(
            f"{name}{f' with {text}]' if text else ''}" for name, text in checker.markers
        )
        where = "not found"
        if found:
            where = short_path(found)
        lines.append(
            f"  {' '.join(checker.patterns)}: {checker.name}, {where}{f'; needs {needs}' if needs else ''}"
        )
    tools = (tool for tool in agent.ports.tools if isinstance(tool, CodeTool))
    servers = []
    for tool in tools:
        for line in tool.server_lines():
            servers.append(f"  {one_line(line, 200)}")
    if servers:
        lines += ["", Heading("Language servers"), *servers]
    return lines


def _row(name: str, text: str) -> str:
    return f"  {name:<13} {text}"


@Command(
    "diff",
    "show what changed in files since the session began",
    argument="[#ENTRY]",
    place=320,
    yields=True,
    words="changes, patch, git",
)
async def diff(controller: Controller, argument: str) -> None:
    agent = controller.open_agent
    number = argument.strip().removeprefix("#")
    if argument.strip() and not number.isdigit():
        raise CommandError("Use /diff, or /diff #12 for what changed since an entry.")
    since = "the session began"
    if number:
        since = f"#{number}"
    if files := await agent.files.diff(int(number) if number else None):
        controller.show(DiffPage(f"{plural(len(files), 'file')} changed since {since}", files))
    else:
        controller.say(f"No file was changed since {since}.")


@Command(
    "jobs",
    "show background jobs, their output, and stop them",
    argument="[stop N]",
    place=330,
    yields=True,
    aliases=("ps", "tasks"),
    words="processes, server, kill, terminal, dev server",
)
async def jobs(controller: Controller, argument: str) -> None:
    agent = controller.open_agent
    word, _, number = argument.strip().partition(" ")
    known = {str(job.id): job.id for job in agent.jobs}
    if word == "stop" and number.strip() in known:
        await agent.jobs.find(known[number.strip()]).stop()
        controller.say(f"Job {number.strip()} was stopped.")
    elif word == "stop" and known:
        controller.say(f"There is no job “{number.strip()}”. Jobs: {', '.join(known)}.", "warning")
    elif word and known:
        raise CommandError("Use /jobs, or /jobs stop N.")
    elif not known:
        controller.say("There are no background jobs in this session.")
    else:
        controller.show(JobsPage())


def job_lines(jobs: Jobs) -> list[str]:
    from tui_agent.tools.job import job_line

    lines: list[str] = []
    for state in jobs:
        lines += [Heading(job_line(state)), *jobs.find(state.id).tail(TAIL_CHARS).splitlines(), ""]
    return lines
