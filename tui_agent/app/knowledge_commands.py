"""What the commands do that come from files or are about them: the user's own, skills, agents, servers, AGENTS.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.face import Choice, McpPage, Report
from tui_agent.app.format import one_line

if TYPE_CHECKING:
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
    if not name:
        return
    if chooser.choose_agent(name):
        desk.face.refresh_facts()
    else:
        desk.say(f"There is no agent “{one_line(name, 40)}”. There are: {', '.join(kinds)}.")


async def mcp(desk: Desk, argument: str) -> None:
    """Show the servers; ``reload`` reads their settings anew, ``restart NAME`` starts one again."""
    if (owner := desk.agent) is None:
        return
    word, _, name = argument.partition(" ")
    match word, name.strip():
        case "", _:
            desk.show(McpPage())
        case "reload", "":
            await owner.mcp.reload()
        case "restart", server if server:
            await owner.mcp.restart(server)
            desk.say(f"{server} was restarted.")
        case _:
            desk.say("Use /mcp, /mcp reload or /mcp restart NAME.", "warning")


async def init(desk: Desk, argument: str) -> None:
    """Have the model look at the project and write AGENTS.md."""
    await own_command("init", desk, argument)


COMMANDS = (
    Command("skills", "list the skills the agent can load", skills, "Skills", place=200),
    Command(
        "mcp",
        "show MCP servers: state, tools, log, login",
        mcp,
        "MCP servers",
        argument="[reload]",
        needs_screen=True,
        place=210,
    ),
    Command("agent", "switch to another agent", agent, "Agent", argument="[NAME]", place=220),
    Command(
        "init", "write AGENTS.md from looking at the project", init, "Write AGENTS.md", argument="[HINT]", place=230
    ),
)
