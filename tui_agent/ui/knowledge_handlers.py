"""What the commands do that come from files or are about them: the user's own, skills, agents, AGENTS.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.ui.abilities import CommandingAgent, ServedAgent
from tui_agent.ui.format import one_line

if TYPE_CHECKING:
    from tui_agent.ui.screens.main import MainScreen


async def own_command(name: str, main: MainScreen, argument: str) -> None:
    """Send the message of a command of the user's own; what it runs holds nothing up."""
    main.run_soon(_send_own(main, name, argument, f"There is no command /{name} any more."))


def unknown(main: MainScreen, name: str, argument: str, complaint: str) -> None:
    """Send a command that nobody knew a moment ago, because its file is new; otherwise say the complaint."""
    agent: object = main.agent
    if isinstance(agent, CommandingAgent):
        main.run_soon(_send_own(main, name, argument, complaint))
    else:
        main.say(complaint, "warning")


async def _send_own(main: MainScreen, name: str, argument: str, complaint: str) -> None:
    from tui_agent.agent.preparing import CommandError

    agent: object = main.agent
    if not isinstance(agent, CommandingAgent):
        return
    try:
        prepared = await agent.prepare_command(name, argument)
    except CommandError as error:
        main.say(str(error), "warning")
        return
    if prepared is None:
        main.say(complaint, "warning")
    else:
        main.outbox.send_prepared(prepared)


async def skills(main: MainScreen, _argument: str) -> None:
    """List the skills."""
    from tui_agent.ui import reports
    from tui_agent.ui.screens.report import ReportScreen

    agent: object = main.agent
    if isinstance(agent, CommandingAgent):
        main.app.push_screen(ReportScreen("Skills", reports.skills_text(agent.commands())))


async def agent(main: MainScreen, argument: str) -> None:
    """Let another kind of agent go on; without a name ask which."""
    from tui_agent.ui.screens.choice import ChoiceScreen

    chooser: object = main.agent
    if not isinstance(chooser, CommandingAgent):
        return
    if argument and chooser.choose_agent(argument):
        main.show_facts()
        return
    kinds = {"build": "the agent that is built in"} | {row.name: row.description for row in chooser.agents()}
    if argument:
        main.say(f"There is no agent “{argument}”. There are: {', '.join(kinds)}.")
        return

    def chosen(name: str | None) -> None:
        if name and chooser.choose_agent(name):
            main.show_facts()

    answers = [(name, f"{name}  {one_line(about, 70)}".rstrip()) for name, about in kinds.items()]
    main.app.push_screen(ChoiceScreen("Which agent goes on?", answers), chosen)


async def mcp(main: MainScreen, argument: str) -> None:
    """Show the servers; ``reload`` reads their settings anew, ``restart NAME`` starts one again."""
    from tui_agent.ui.screens.mcp import McpScreen

    agent: object = main.agent
    if not isinstance(agent, ServedAgent):
        return
    word, _, name = argument.partition(" ")
    match word, name.strip():
        case "", _:
            main.app.push_screen(McpScreen(agent, main.services.save_setting))
        case "reload", "":
            main.run_soon(agent.mcp.reload())
        case "restart", server if server:
            main.run_soon(_restart(main, agent, server))
        case _:
            main.say("Use /mcp, /mcp reload or /mcp restart NAME.", "warning")


async def _restart(main: MainScreen, agent: ServedAgent, server: str) -> None:
    from tui_agent.agent.mcp.records import McpError

    try:
        await agent.mcp.restart(server)
    except McpError as error:
        main.say(str(error), "warning")
    else:
        main.say(f"{server} is started again.")


async def init(main: MainScreen, argument: str) -> None:
    """Have the model look at the project and write AGENTS.md."""
    await own_command("init", main, argument)
