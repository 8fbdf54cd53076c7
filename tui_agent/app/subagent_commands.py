"""Going into what a subagent does or did, and from a session to the one it came from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.face import RacePage, SubagentPage
from tui_agent.app.services import OpenHow, OpenRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_agent.app.desk import Desk
    from tui_agent.session.entries import ToolResultEntry
    from tui_agent.session.session import Session


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
    if isinstance(entry, ToolResultEntry) and entry.metadata.of_subagent:
        show_subagent(desk, entry)
    else:
        desk.say("It has not begun yet.")


def show_subagent(desk: Desk, result: ToolResultEntry) -> None:
    """Show what the subagent did that a result is from: on a branch of this session, or in a session of its own.

    Raises:
        StoreError: it can't be opened.
    """
    if result.metadata.branch is not None:
        show_branch(desk, result.metadata.branch)
    elif result.metadata.session is not None and desk.agent is not None:
        session = desk.services.open_session(OpenRequest(result.metadata.session, OpenHow.READ_ONLY))
        _show(desk, session, partial(desk.services.close_session, session))


def show_branch(desk: Desk, last: int) -> None:
    """Show the branch of a subagent that ends with an entry, at work or finished.

    Raises:
        EntryNotFound: it is not in this session.
    """
    if desk.agent is None:
        return
    session = desk.agent.session.beside(last)
    first = session.subagent_of(last)
    begun = session.entry(first) if first is not None else None
    call_id = begun.call_id if begun is not None and begun.kind == "subagent" else ""
    if (worker := desk.agent.subagent(call_id)) is not None:
        desk.show(SubagentPage(worker))
    else:
        _show(desk, session, session.release)


def _show(desk: Desk, session: Session, close: Callable[[], None]) -> None:
    from tui_agent.agent.subagents import FinishedSubagent

    assert desk.agent is not None  # noqa: S101 - callers looked
    counter = desk.agent.ports.directory.counter(session.info.model)
    desk.show(SubagentPage(FinishedSubagent(session, counter), close))


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
