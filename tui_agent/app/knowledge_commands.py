"""What the commands do that come from files or are about them: the user's own, skills, agents, servers, AGENTS.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from tui_agent.app.face import Choice, McpPage, Report
from tui_agent.app.format import one_line
from tui_agent.app.switch_price import may_reread

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.desk import Desk


async def own_command(name: str, desk: Desk, argument: str) -> None:
    """Send the message of a command of the user's own; what it runs holds nothing up."""
    desk.soon(send_own(desk, name, argument, f"There is no command /{name} any more."))


async def send_own(desk: Desk, name: str, argument: str, complaint: str) -> None:
    """Send the message of a command of the user's own; where there is none any more, say the complaint."""
    if desk.agent is None:
        return
    prepared = await desk.agent.prepare_command(name, argument)
    if prepared is None:
        desk.say(complaint, "warning")
    else:
        desk.outbox.send_prepared(prepared)


async def skills(desk: Desk, _argument: str) -> None:
    """List the skills."""
    from tui_agent.app import reports

    if desk.agent is not None:
        desk.show(Report("Skills", reports.skills_lines(desk.agent.commands())))


async def agent(desk: Desk, argument: str) -> None:
    """Switch to another agent; without a name ask which."""
    if (chooser := desk.agent) is None:
        return
    kinds = {"build": "the agent that is built in"} | {row.name: row.description for row in chooser.agents()}
    answers = [(name, f"{name}  {one_line(about, 70)}".rstrip()) for name, about in kinds.items()]
    name = argument or await desk.ask(Choice("Switch to which agent?", answers))
    if not name or (
        name in kinds and not await may_reread(desk, chooser, f"Switch to the agent {name}?", chooser.model)
    ):
        return
    if chooser.choose_agent(name):
        desk.face.refresh_facts()
    else:
        desk.say(f"There is no agent “{one_line(name, 40)}”. There are: {', '.join(kinds)}.")


async def mcp(desk: Desk, argument: str) -> None:
    """Show the servers; ``reload`` reads settings anew, ``restart NAME`` and ``log NAME LEVEL`` act on one."""
    if (owner := desk.agent) is None:
        return
    word, _, name = argument.partition(" ")
    match word, name.strip():
        case "", _:
            desk.show(McpPage())
        case "reload", "":
            if await may_reread(desk, owner, "Reload, and tell the model of other tools?", owner.model):
                await owner.mcp.reload()
        case "restart", server if server:
            await owner.mcp.restart(server)
            desk.say(f"{server} was restarted.")
        case "log", rest if len(words := rest.rsplit(maxsplit=1)) == 2:
            await _set_log_level(desk, owner, *words)
        case _:
            desk.say("Use /mcp, /mcp reload, /mcp restart NAME or /mcp log NAME LEVEL.", "warning")


async def _set_log_level(desk: Desk, owner: Agent, server: str, level: str) -> None:
    """Ask a server for messages from a level on, and keep that for a server of the user's file."""
    from tui_agent.agent.mcp.records import LogLevel

    levels = get_args(LogLevel)
    known = next((one for one in levels if one == level), None)
    if known is None:
        desk.say(f"There is no level “{one_line(level, 40)}”; there are {', '.join(levels)}.", "warning")
        return
    await owner.mcp.set_log_level(server, known)
    of_user = any(row.name == server and row.source == "user" for row in owner.mcp.status())
    if of_user:
        desk.services.save_setting(f'mcp."{server}".log_level', level)
    desk.say(f"{server} is asked for messages from {level} on; /mcp shows them.")


async def init(desk: Desk, argument: str) -> None:
    """Have the model look at the project and write AGENTS.md."""
    await own_command("init", desk, argument)
