"""Going into a subagent's session, and from a session to the one it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.ui.abilities import ParentAgent
from tui_agent.ui.services import OpenHow, OpenRequest

if TYPE_CHECKING:
    from tui_agent.ui.screens.main import MainScreen


async def enter(main: MainScreen, entry_id: int, call_id: str) -> None:
    """Show the subagent of a task: the one that works on the call, or the session its result names."""
    from tui_agent.session.entries import ToolResultEntry
    from tui_agent.ui.screens.subagent import SubagentScreen

    agent: object = main.agent
    if not isinstance(agent, ParentAgent):
        return
    if (worker := agent.subagent(call_id)) is not None:
        main.app.push_screen(SubagentScreen(main, worker))
        return
    entry = agent.session.entry(entry_id) if entry_id else None
    if isinstance(entry, ToolResultEntry) and entry.metadata.session is not None:
        show_session(main, entry.metadata.session)
    else:
        main.say("Its session has not begun yet.")


def show_session(main: MainScreen, session_id: str) -> None:
    """Show the session of a subagent that has ended, over the one that is open."""
    from tui_agent.session.errors import StoreError
    from tui_agent.ui.screens.subagent import Finished, SubagentScreen

    try:
        session = main.services.open_session(OpenRequest(session_id, OpenHow.READ_ONLY))
    except StoreError as error:
        main.say(error.message, "warning")
        return
    main.app.push_screen(SubagentScreen(main, Finished(session), lambda: main.services.close_session(session)))


async def parent(main: MainScreen, _argument: str) -> None:
    """Open the session that this one was forked from, or whose agent gave its subagent the task."""
    info = main.agent.session.info if main.agent is not None else None
    if info is None or info.parent_session is None:
        main.say("This session comes from no other.")
        return
    await main.open(OpenRequest(info.parent_session))
