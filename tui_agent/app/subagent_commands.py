"""Going into a subagent's session, and from a session to the one it came from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.face import RacePage, SubagentPage
from tui_agent.app.services import OpenHow, OpenRequest

if TYPE_CHECKING:
    from tui_agent.app.desk import Desk


async def enter(desk: Desk, entry_id: int, call_id: str) -> None:
    """Show what an entry leads to: a race that is over, or the subagent of a task, at work or finished."""
    from tui_agent.session.entries import RaceEntry, ToolResultEntry

    if desk.agent is None:
        return
    if (worker := desk.agent.subagent(call_id)) is not None:
        desk.show(SubagentPage(worker))
        return
    entry = desk.agent.session.entry(entry_id) if entry_id else None
    if isinstance(entry, RaceEntry):
        desk.show(RacePage(entry))
        return
    if isinstance(entry, ToolResultEntry) and entry.metadata.session is not None:
        show_session(desk, entry.metadata.session)
    else:
        desk.say("Its session has not begun yet.")


def show_session(desk: Desk, session_id: str) -> None:
    """Show the session of a subagent that has ended, over the one that is open.

    Raises:
        StoreError: it can't be opened.
    """
    from tui_agent.agent.subagents import FinishedSubagent

    if desk.agent is None:
        return
    session = desk.services.open_session(OpenRequest(session_id, OpenHow.READ_ONLY))
    counter = desk.agent.ports.directory.counter(session.info.model)
    desk.show(SubagentPage(FinishedSubagent(session, counter), partial(desk.services.close_session, session)))


async def parent(desk: Desk, _argument: str) -> None:
    """Open the session that this one was forked from, or whose agent gave its subagent the task."""
    info = desk.agent.session.info if desk.agent is not None else None
    if info is None or info.parent_session is None:
        desk.say("This session was not started from another one.")
        return
    await desk.open(OpenRequest(info.parent_session))


COMMANDS = (
    Command("parent", "open the session this one came from", parent, "Parent session", needs_screen=True, place=50),
)
