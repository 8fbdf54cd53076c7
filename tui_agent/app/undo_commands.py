"""What ``/undo`` and ``/redo`` do: a turn, a move, a compaction or a prune is taken back, and brought again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.files_along import move_with_files
from tui_agent.app.undo_words import UndoResult, name_of_change, name_of_move

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.desk import Desk
    from tui_agent.session.entries import Entry, UserEntry
    from tui_agent.session.session import Session


async def undo(desk: Desk, _argument: str) -> None:
    """Take back what came last.

    A compaction, prune or move at the end is undone alone; otherwise the last turn goes, its text back in the prompt.
    """
    from tui_agent.session.entries import CompactionEntry, PruneEntry
    from tui_agent.session.path_queries import newest_typed

    if (agent := desk.idle_agent) is None:
        return
    path = agent.session.active_path()
    if path and isinstance(path[-1], CompactionEntry | PruneEntry):
        await step_back(desk, path[-1])
        return
    if not desk.undone and _moved_here(agent.session):
        await _undo_move(desk, agent)
        return
    if (typed := newest_typed(path)) is not None:
        await _undo_turn(desk, agent, typed)
    else:
        desk.say("There is no turn to undo.")


async def _undo_move(desk: Desk, agent: Agent) -> None:
    """Go back to where the last move left from."""
    leaf, pair = agent.session.leaf, agent.session.move_history.undoable[-1]

    async def go() -> bool:
        await agent.navigator.undo()
        _tell_undone(desk, UndoResult(leaf, name_of_move(*pair), undid_move=True))
        return True

    await move_with_files(desk, agent, pair[0], go, pair=pair)


async def _undo_turn(desk: Desk, agent: Agent, message: UserEntry) -> None:
    """Go to before a message of the user, which goes back into the prompt."""
    parent = message.parent_id

    async def go() -> bool:
        moved = await step_back(desk, message)
        if moved:
            desk.face.restore_message(desk.undone[-1].text)
        return moved

    await move_with_files(desk, agent, parent, go, pair=(agent.session.leaf, parent))


def before(session: Session, entry: Entry) -> int | None:
    """Return where one goes to undo an entry: its parent; for a compaction, what stands before its own prunes too."""
    from tui_agent.context.pruning import Occasion
    from tui_agent.session.entries import CompactionEntry, PruneEntry

    parent = entry.parent_id
    if isinstance(entry, CompactionEntry):
        while parent is not None:
            above = session.entry(parent)
            if not isinstance(above, PruneEntry) or above.reason != Occasion.COMPACTION:
                break
            parent = above.parent_id
    return parent


async def step_back(desk: Desk, entry: Entry) -> bool:
    """Move to before an entry of the path, so that ``/redo`` comes back; False when no session is open.

    Raises:
        NavigationError, StoreError: the move could not be made.
    """
    from tui_agent.session.entries import UserEntry
    from tui_agent.session.typed import typed_text

    agent = desk.agent
    if agent is None:
        return False
    leaf = agent.session.leaf
    text = typed_text(entry.parts) if isinstance(entry, UserEntry) else ""
    await agent.navigator.go(before(agent.session, entry))
    _tell_undone(desk, UndoResult(leaf, name_of_change(entry), text))
    return True


def _tell_undone(desk: Desk, undone: UndoResult) -> None:
    desk.undone.append(undone)
    desk.say(f"Undone: {undone.what}. /redo brings it back.")


def _moved_here(session: Session) -> bool:
    """Whether nothing was said since the last move, except for the summary that came with it."""
    moves = session.moves()
    if not moves or moves[-1].action == "undo":
        return False
    here, target = session.leaf, moves[-1].to_leaf
    if here != target and here is not None:
        entry = session.entry(here)
        return bool(entry.kind == "branch_summary" and entry.parent_id == target)
    return bool(here == target)


def _moved_back(session: Session) -> bool:
    """Whether the last thing done was to go to an entry above, as ``/undo`` does it."""
    if not _moved_here(session):
        return False
    left, here = session.move_history.undoable[-1]
    return left is not None and (here is None or here in {entry.id for entry in session.path(left)})


async def redo(desk: Desk, _argument: str) -> None:
    """Go back to where the last ``/undo`` left from; after a restart, to where a move back on the path left from."""
    if desk.agent is None or not (desk.undone or _moved_back(desk.agent.session)):
        desk.say("There is nothing to redo.")
        return
    if (agent := desk.idle_agent) is None:
        return
    if not desk.undone:
        await _undo_move(desk, agent)
        return
    done, here = desk.undone[-1], agent.session.leaf

    async def go() -> bool:
        await (agent.navigator.go(done.leaf) if done.undid_move else agent.navigator.undo())
        desk.undone.pop()
        desk.say(f"Redone: {done.what}.")
        # The turn that is undone still has its message in the prompt, as after its own undo.
        desk.face.withdraw_message(desk.undone[-1].text if desk.undone else "")
        return True

    await move_with_files(desk, agent, done.leaf, go, pair=(done.leaf, here))


COMMANDS = (
    Command("undo", "undo the last turn, move, compaction or prune", undo, "Undo", key="f5", place=140),
    Command("redo", "undo the last /undo", redo, "Redo", key="f6", place=150),
)
