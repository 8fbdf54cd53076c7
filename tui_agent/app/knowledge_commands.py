"""What the commands do that come from files or are about them: the user's own, skills, agents, servers, AGENTS.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.face import Choice, McpPage, Report
from tui_agent.app.format import one_line
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from tui_agent.app.desk import Desk


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
    if not chooser.choose_agent(name):
        raise CommandError(f"There is no agent “{one_line(name, 40)}”. There are: {', '.join(kinds)}.")
    desk.face.refresh_facts()


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
            raise CommandError("Use /mcp, /mcp reload or /mcp restart NAME.")


async def init(desk: Desk, argument: str) -> None:
    """Have the model look at the project and write AGENTS.md."""
    await desk.outbox.send_command("init", argument, "There is no prompt for /init.")


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
