"""Opens the page of a subagent or a finished race from its entry in the conversation or the tree.

The module also contains ``/parent``, which opens the session from which the open session was
forked.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.frontend import RacePage, SubagentPage
from tui_agent.app.services import OpenHow, OpenRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_agent.app.controller import Controller
    from tui_agent.session.entries import ToolResultEntry
    from tui_agent.session.session import Session


async def enter(controller: Controller, entry_id: int, call_id: str) -> None:
    """Show the page of a finished race, or of the subagent that the call ``call_id`` started.

    ``entry_id`` is the number of the call's result or of the race's entry; 0 if there is none yet.
    """
    from tui_agent.session.entries import RaceEntry, ToolResultEntry

    if controller.agent is None:
        return
    if (worker := controller.agent.subagents.get(call_id)) is not None:
        controller.show(SubagentPage(worker))
        return
    if entry_id:
        entry = controller.agent.session.entry(entry_id)
    else:
        entry = None
    if isinstance(entry, RaceEntry):
        controller.show(RacePage(entry))
        return
    if isinstance(entry, ToolResultEntry) and entry.metadata.of_subagent:
        show_subagent(controller, entry)
    else:
        controller.say("The subagent has not started yet.")


def show_subagent(controller: Controller, result: ToolResultEntry) -> None:
    """Show the conversation of the subagent that ended with the tool result ``result``.

    The conversation is a branch of the session or, in older stores, a session of its own.
    """
    if result.metadata.branch is not None:
        show_branch(controller, result.metadata.branch)
    elif result.metadata.session is not None and controller.agent is not None:
        session = controller.services.open_session(
            OpenRequest(result.metadata.session, OpenHow.READ_ONLY)
        )
        _show(controller, session, partial(controller.services.close_session, session))


def show_branch(controller: Controller, last: int) -> None:
    """Show the page of the subagent, working or finished, whose branch ends with entry ``last``."""
    if controller.agent is None:
        return
    session = controller.agent.session.beside(last)
    first = session.reader.spine().subagent_of(last)
    begun = None
    if first is not None:
        begun = session.entry(first)
    if begun is not None and begun.kind == "subagent":
        call_id = begun.call_id
    else:
        call_id = ""
    if (worker := controller.agent.subagents.get(call_id)) is not None:
        controller.show(SubagentPage(worker))
    else:
        _show(controller, session, session.release)


def _show(controller: Controller, session: Session, close: Callable[[], None]) -> None:
    from tui_agent.agent.subagents import FinishedSubagent

    assert controller.agent is not None  # noqa: S101 - the callers have checked it
    counter = controller.agent.ports.directory.counter(session.info.model)
    controller.show(SubagentPage(FinishedSubagent(session, counter), close))


@Command(
    "parent",
    "open the session that this one was forked from",
    needs_screen=True,
    place=50,
    words="go back, subagent",
)
async def parent(controller: Controller, _argument: str) -> None:
    if controller.agent is not None:
        info = controller.agent.session.info
    else:
        info = None
    if info is None or info.parent_session is None:
        controller.say("This session is not a fork of another session.")
        return
    await controller.open(OpenRequest(info.parent_session))
