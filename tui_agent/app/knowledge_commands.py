"""What the commands do that come from files or are about them: the user's own, skills, agents, servers, AGENTS.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line
from tui_agent.app.frontend import Choice, EquipmentLine, EquipmentPage, Heading, Report
from tui_agent.app.model_commands import may_reread
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.controller import Controller


AGENTS, SKILLS, TOOLS, SERVERS = "Agents", "Skills", "Tools", "MCP servers"
"""What the agent works with, as the headings of its page."""


async def _show_equipment(controller: Controller, owner: Agent, at: str) -> None:
    """Show what the agent works with on one page, or one part where there is no screen; files as they are now."""
    from tui_agent.app import reports

    ports, count = owner.ports, owner.ports.directory.counter(owner.model).schema
    await ports.read_tool_files()
    told = {
        SKILLS: reports.skills_lines(owner.commands()),
        TOOLS: reports.tools_lines(ports.tools, ports.tool_files, count),
    }
    if not controller.frontend.has_screen:
        controller.show(Report(at, told[at]) if at in told else EquipmentPage())
        return
    lines = [EquipmentLine(Heading(AGENTS))]
    for name, about in kinds_of(owner).items():
        mark = "●" if name == owner.mode else "○"
        lines.append(EquipmentLine(f"  {mark} {name:<14} {one_line(about, 200)}", name))
    for heading, rows in told.items():
        lines += [EquipmentLine(""), EquipmentLine(Heading(heading))]
        lines += [EquipmentLine(type(row)(f"  {row}")) for row in rows if row]
    lines += [EquipmentLine(""), EquipmentLine(Heading(SERVERS))]
    controller.show(EquipmentPage(lines, at))


def kinds_of(owner: Agent) -> dict[str, str]:
    own = {spec.name: spec.description for spec in owner.ports.knowledge.specs if spec.primary}
    return {"build": "the agent that is built in"} | own


@Command("skills", "list the skills the agent can load", place=250)
async def skills(controller: Controller, _argument: str) -> None:
    await _show_equipment(controller, controller.open_agent, SKILLS)


@Command("tools", "list the tools, and problems of tool files", place=245)
async def tools(controller: Controller, _argument: str) -> None:
    await _show_equipment(controller, controller.open_agent, TOOLS)


@Command("agent", "switch to another agent", argument="[NAME]", place=270)
async def agent(controller: Controller, argument: str) -> None:
    chooser = controller.open_agent
    if not argument and controller.frontend.has_screen:
        await _show_equipment(controller, chooser, AGENTS)
        return
    kinds = kinds_of(chooser)
    answers = [(name, f"{name}  {one_line(about, 70)}".rstrip()) for name, about in kinds.items()]
    name = argument or await controller.ask(Choice("Switch to which agent?", answers))
    if not name or (
        name in kinds and not await may_reread(controller, chooser, f"Switch to the agent {name}?", chooser.model)
    ):
        return
    if not chooser.choose_agent(name):
        raise CommandError(f"There is no agent “{one_line(name, 40)}”. There are: {', '.join(kinds)}.")
    controller.frontend.refresh_facts()


@Command("mcp", "show MCP servers: state, tools, log, login", argument="[reload]", needs_screen=True, place=260)
async def mcp(controller: Controller, argument: str) -> None:
    """Show the servers; ``reload`` reads settings anew, ``restart NAME`` and ``log NAME LEVEL`` act on one."""
    owner = controller.open_agent
    word, _, name = argument.partition(" ")
    match word, name.strip():
        case "", _:
            await _show_equipment(controller, owner, SERVERS)
        case "reload", "":
            if await may_reread(controller, owner, "Reload, and tell the model of other tools?", owner.model):
                await owner.mcp.reload()
        case "restart", server if server:
            await owner.ports.mcp.restart(server)
            controller.say(f"{server} was restarted.")
        case "log", rest if len(words := rest.rsplit(maxsplit=1)) == 2:
            await _set_log_level(controller, owner, *words)
        case _:
            raise CommandError("Use /mcp, /mcp reload, /mcp restart NAME or /mcp log NAME LEVEL.")


async def _set_log_level(controller: Controller, owner: Agent, server: str, level: str) -> None:
    """Ask a server for messages from a level on, and keep that for a server of the user's file."""
    from tui_agent.agent.mcp.records import LogLevel

    levels = get_args(LogLevel)
    known = next((one for one in levels if one == level), None)
    if known is None:
        raise CommandError(f"There is no level “{one_line(level, 40)}”; there are {', '.join(levels)}.")
    await owner.ports.mcp.set_log_level(server, known)
    of_user = any(row.name == server and row.source == "user" for row in owner.mcp.status())
    if of_user:
        controller.services.save_setting(f'mcp."{server}".log_level', level)
    controller.say(f"{server} is asked for messages from {level} on; /mcp shows them.")


@Command("init", "have the model write AGENTS.md", argument="[HINT]", place=280)
async def init(controller: Controller, argument: str) -> None:
    await controller.outbox.send_command("init", argument, "There is no prompt for /init.")


@Command(
    "review",
    "have changes reviewed: uncommitted, a branch, a commit",
    argument="[BRANCH|COMMIT]",
    place=296,
    yields=True,
)
async def review(controller: Controller, argument: str) -> None:
    await controller.outbox.send_command("review", argument, "There is no prompt for /review.")
