"""``/status``, ``/diagnostics`` and ``/diff``: show the session's state and its changes to files.

``/diagnostics`` also switches the checks of edited files on and off. ``/diff`` first waits for
interrupted tool calls to end, and appends a checkpoint of the latest changes. The module also looks
up the session's cost, which ``/status`` and ``/cost`` show.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import money, one_line, plural, seconds, short_path, tokens
from tui_agent.app.frontend import DiffPage, Heading, Report
from tui_agent.app.moves import NOT_RECORDED
from tui_agent.errors import CommandError
from tui_agent.whole_numbers import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.timeline import Step
    from tui_agent.app.controller import Controller
    from tui_agent.app.spending import Spending

COST = "Cost"
"""Heading of the section about the cost on the status page."""


@Command(
    "status",
    "show model, mode, sandbox, context and cost on one page",
    place=310,
    is_replaceable=True,
    words="info, usage, session id, version",
)
async def status(controller: Controller, _argument: str) -> None:
    await show_status(controller, controller.open_agent)


async def show_status(controller: Controller, agent: Agent, at: str = "") -> None:
    """Show the status page, opened at the heading ``at``.

    The page ends with the full cost report.
    """
    from tui_agent.app.spending import spending_sections

    # Both take a moment, because they probe the sandbox and add up a long session.
    sandbox = await asyncio.to_thread(sandbox_words, agent)
    found, names = await look_up_spending(controller, agent)
    lines = list(status_lines(agent, sandbox))
    for heading, rows in spending_sections(found, names):
        lines += ["", Heading(heading), *_indented(rows)]
    controller.show(Report("Status", lines, at))


async def look_up_spending(controller: Controller, agent: Agent) -> tuple[Spending, dict[int, str]]:
    """Return the cost of the agent's session, and previews of the other branches' first entries.

    The previews are by entry number. Reads the store in a thread, as that can take a second.
    """
    from tui_agent.app.spending import DAYS, session_spending

    services = controller.services
    session = agent.session
    records = await asyncio.to_thread(session.reader.requests)
    departures = session.departures(record.id for record in records)
    # Fill the reader's cache in a thread, because the status page reads it on the event loop.
    await asyncio.to_thread(session.reader.costs)
    found, names = await asyncio.to_thread(
        session_spending, session, services.store, records, departures, price=services.price
    )
    now = datetime.fromtimestamp(controller.clock()).astimezone()
    found.all_sessions.update(await asyncio.to_thread(services.store.spent_by_day, now, DAYS))

    def extra(step: Step) -> float | None:
        if step.miss is None:
            return None
        return services.cache_miss_cost(step.model, step.miss.missed)

    for step in await agent.inspector.timeline():
        if step.answer is not None:
            found.add_step(step, extra(step))
    for step in await agent.inspector.left_steps():
        found.add_miss(step, extra(step))
    return found, names


def sandbox_words(agent: Agent) -> str:
    """Return a description of the sandbox: its kind and what it lacks, or why there is none.

    This can take a moment, so call it in a thread.
    """
    if (sandbox := agent.ports.sandbox) is None:
        return "none in this session"
    if lacking := sandbox.shortcoming(agent.ports.project):
        return f"{lacking} (tui-agent doctor)"
    state = sandbox.state
    if state.kind:
        return f"{state.kind}: commands run in it"
    return f"none: {state.reason}"


def status_lines(agent: Agent, sandbox: str) -> Iterator[str]:
    """Yield the lines of the status page above the full cost report.

    The last lines sum up the cost. ``sandbox`` is the text returned by `sandbox_words`.
    """
    info = agent.session.info
    yield Heading(one_line(info.title or info.first_message, 80) or "New session")
    session = f"{info.id} · {plural(info.entry_count, 'entry')}"
    if agent.session.read_only:
        session += " · read-only"
    yield _row("session", session)
    yield _row("directory", short_path(info.cwd))
    yield ""
    yield from _agent_lines(agent, sandbox)
    yield ""
    yield from _context_lines(agent)
    yield ""
    yield from _cost_lines(agent)


def _agent_lines(agent: Agent, sandbox: str) -> Iterator[str]:
    from tui_agent.agent.permissions import MODE_HELP, Mode

    yield Heading("Agent")
    chosen = ""
    if agent.stands_in_for:
        chosen = f" instead of {agent.stands_in_for}, which can't be used for now"
    yield _row("model", one_line(f"{agent.model}{chosen}", 120))
    forget = f"(tui-agent models --forget {agent.model} undoes this)"
    for line in agent.ports.directory.adaptations(agent.model):
        yield _row("", f"{line}, because the provider refused the usual form {forget}")
    yield _row("thinking", agent.effort.level or "default")
    about = "your own agent"
    if agent.mode in set(Mode):
        about = MODE_HELP[Mode(agent.mode)]
    yield _row("mode", f"{agent.mode}: {about}")
    yield _row("sandbox", sandbox)
    yield _row("rules", f"{_own_rules(agent) or 'only the defaults'} (/permissions)")
    yield _row("diagnostics", f"{_diagnostics_state(agent)} (/diagnostics)")
    if agent.jobs.running:
        yield _row("jobs", f"{agent.jobs.running} running (/jobs)")
    else:
        yield _row("jobs", "none running")


def _own_rules(agent: Agent) -> str:
    """Return how many permission rules are not defaults, by action: ``2 allow, 1 deny``, or ""."""
    counts = Counter[str]()
    for rule in agent.tools.gate.rules():
        if rule.source != "default":
            counts[rule.action] += 1
    return ", ".join(f"{count} {action}" for action, count in sorted(counts.items()))


def _diagnostics_state(agent: Agent) -> str:
    from tui_agent.agent.diagnostics.diagnostics import state_lines

    if not agent.tools.diagnostics.enabled:
        return "off"
    return "; ".join(state_lines(agent.tools.diagnostics)) or "on, no checker used yet"


def _cost_lines(agent: Agent) -> Iterator[str]:
    yield Heading(COST)
    reader = agent.session.reader
    costs = reader.costs()
    side = agent.session.info.side_cost
    own = reader.own_cost() or 0.0
    asked = reader.requests()
    # Show a cost of 0 only if the cost of every request is known.
    if costs or side or (asked and all(request.cost is not None for request in asked)):
        copied_until = reader.copied_until()
        on_path = 0.0
        for entry_id in agent.session.path_outline().ids:
            if entry_id > copied_until:
                on_path += costs.get(entry_id, 0.0)
        yield _row("this branch", money(on_path))
        yield _row("all branches", money(own + side))
    elif not asked:
        yield _row("all branches", "nothing yet")
    for line in agent.allowance.lines():
        yield _row("budget", line)
    for line in agent.ports.directory.plan.lines(now=agent.ports.clock() / 1000):
        yield _row("plan", line)
    if copied := sum(costs.values()) - own:
        yield _row("before the fork", f"{money(copied)}, paid by another session")


def _context_lines(agent: Agent) -> Iterator[str]:
    yield Heading("Context")
    size = agent.context_size()
    about = "~" if size.estimated else ""
    share = f"{tokens(size.total)} of {tokens(size.window)}, {size.percent:.0f}%"
    yield _row("next request", f"{about}{share} (/context)")
    if size.threshold:
        yield _row("compaction", f"automatic, at {tokens(size.threshold)}")
    else:
        yield _row("compaction", "only by /compact")
    cache = agent.inspector.known_cache()
    if cache is None:
        yield _row("prompt cache", "the provider has not reported one")
    elif cache.warm:
        yield _row("prompt cache", f"warm for {seconds(cache.seconds_left)}")
    else:
        yield _row("prompt cache", "cold")
    if agent.context.settings().cache.keep_warm:
        yield _row("kept warm", _ping_words(agent))


def _ping_words(agent: Agent) -> str:
    """Return a sentence about the pings that keep the prompt cache warm.

    It says what they cost, and whether the next one is worth its price.
    """
    spent = agent.cache_pings.spent()
    done = ""
    if spent is not None:
        done = f"for {money(spent)} since the last answer; "
    forecast = agent.cache_pings.forecast()
    if forecast is None:
        return (
            f"{done}no ping: the cache or its prices are unknown, or the next request uses no cache"
        )
    odds = f"{forecast.chance:.0%} chance of saving {money(forecast.saving)} for {money(forecast.price)}"
    if forecast.pays:
        return f"{done}a ping is worth it ({odds})"
    return f"{done}a ping is not worth it ({odds})"


@Command(
    "diagnostics",
    "show the checkers of edited files; switch them on or off",
    argument="[on|off]",
    place=325,
    is_replaceable=True,
    words="type errors, lint, linter, lsp",
)
async def diagnostics(controller: Controller, argument: str) -> None:
    agent = controller.open_agent
    match argument.strip():
        case "on":
            agent.tools.diagnostics.switch(on=True)
            always = "For all sessions, set diagnostics.enabled = true in the settings"
            controller.say(f"Edits in this session are checked. {always}.")
        case "off":
            agent.tools.diagnostics.switch(on=False)
            always = "For all sessions, set diagnostics.enabled = false in the settings"
            controller.say(f"Edits in this session are not checked. {always}.")
        case "":
            lines = await asyncio.to_thread(_diagnostics_lines, agent)
            controller.show(Report("Diagnostics", lines))
        case _:
            raise CommandError("Use /diagnostics, /diagnostics on or /diagnostics off.")


def _diagnostics_lines(agent: Agent) -> list[str]:
    from tui_agent.agent.diagnostics.diagnostics import state_lines

    checked = agent.tools.diagnostics
    on = "Edits are not checked. /diagnostics on checks them, and shows the model new problems."
    if checked.enabled:
        on = "Edits are checked. The model sees the problems that an edit adds."
    lines = [
        on,
        "",
        Heading("In this session"),
    ]
    states = [one_line(line, 200) for line in state_lines(checked)]
    lines += _indented(states or ["no checker was used yet"])
    lines += ["", Heading("Checkers"), *_indented(_checker_lines(agent))]
    if servers := _server_lines(agent):
        lines += ["", Heading("Language servers"), *_indented(servers)]
    return lines


def _checker_lines(agent: Agent) -> Iterator[str]:
    """Yield a line about each checker in the settings, then about each built-in checker."""
    from tui_agent.agent.diagnostics.checks import KNOWN_CHECKERS
    from tui_agent.processes.own_programs import find_project_program

    for pattern, commands in agent.ports.diagnostics.commands.items():
        text = commands if isinstance(commands, str) else "; ".join(commands)
        yield f"{pattern}: {one_line(text, 120) or 'none'}"
    project = agent.ports.project
    for checker in KNOWN_CHECKERS:
        line = f"{' '.join(checker.patterns)}: {checker.name}"
        found = find_project_program(checker.name, project, project)
        line += f", {short_path(found)}" if found else ", not found"
        needs = []
        for name, text in checker.markers:
            needs.append(f"{name} with {text}]" if text else name)
        if needs:
            line += f"; needs {' or '.join(needs)}"
        yield line


def _server_lines(agent: Agent) -> list[str]:
    from tui_agent.tools.code import CodeTool

    lines: list[str] = []
    for tool in agent.ports.tools:
        if isinstance(tool, CodeTool):
            lines += [one_line(line, 200) for line in tool.server_lines()]
    return lines


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _row(name: str, text: str) -> str:
    return f"  {name:<13} {text}"


@Command(
    "diff",
    "show what changed in files since the session began",
    argument="[#ENTRY]",
    place=320,
    is_replaceable=True,
    words="changes, patch, git",
)
async def diff(controller: Controller, argument: str) -> None:
    agent = controller.open_agent
    target = None
    since = "the session began"
    if argument.strip():
        target = whole_number(argument.strip().removeprefix("#"))
        if target is None:
            raise CommandError("Use /diff, or /diff #12 for what changed since an entry.")
        since = f"#{target}"
    if not agent.files.has_snapshots:
        raise CommandError(NOT_RECORDED)
    if files := await agent.files.diff(target):
        controller.show(DiffPage(f"{plural(len(files), 'file')} changed since {since}", files))
    else:
        controller.say(f"No file changes have been recorded since {since}.")
