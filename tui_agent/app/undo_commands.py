"""What ``/undo`` and ``/redo`` do: a turn, a move, a compaction or a prune is taken back, and brought again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.files_along import move_with_files

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.desk import Desk
    from tui_agent.session.entries import Entry, UserEntry
    from tui_agent.session.session import Session


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What ``/undo`` did: the leaf it left, what that is called, the message it put into the prompt.

    ``undid_move`` says that it undid a move instead of making one.
    """

    leaf: int | None
    what: str
    text: str = ""
    undid_move: bool = False


async def undo(desk: Desk, _argument: str) -> None:
    """Take back what came last.

    A compaction, prune or move at the end is undone alone; otherwise the last turn goes, its text back in the prompt.
    """
    from tui_agent.app.undo_words import name_of_move
    from tui_agent.session.entries import CompactionEntry, PruneEntry
    from tui_agent.session.path_queries import newest_typed

    if (agent := desk.idle_agent) is None:
        return
    leaf, path = agent.session.leaf, agent.session.active_path()
    if path and isinstance(path[-1], CompactionEntry | PruneEntry):
        await step_back(desk, path[-1])
        return
    if not desk.undone and _moved_here(agent.session):
        pair = agent.session.move_history.undoable[-1]

        async def undo_move() -> bool:
            await agent.navigator.undo()
            _tell_undone(desk, UndoResult(leaf, name_of_move(*pair), undid_move=True))
            return True

        await move_with_files(desk, agent, pair[0], undo_move, pair=pair)
        return
    if (typed := newest_typed(path)) is not None:
        await _undo_turn(desk, agent, typed)
    else:
        desk.say("There is no turn to undo.")


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
    from tui_agent.app.undo_words import name_of_change
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


async def redo(desk: Desk, _argument: str) -> None:
    """Go back to where the last ``/undo`` left from."""
    if desk.agent is None or not desk.undone:
        desk.say("There is nothing to redo.")
        return
    if (agent := desk.idle_agent) is None:
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
