"""What ``/undo`` and ``/redo`` do: a turn, a move, a compaction or a prune is taken back, and brought again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.files_along import move_with_files
from tui_agent.app.undo_words import Move, UndoResult, name_of_change, name_of_move, name_of_place

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.desk import Desk
    from tui_agent.session.entries import Entry, UserEntry
    from tui_agent.session.session import Session


async def undo(desk: Desk, _argument: str) -> None:
    """Take back what came last.

    A compaction, prune or move at the end is undone alone; otherwise the last turn goes, its text back in the prompt.
    """
    from tui_agent.session.entries import CheckpointEntry, CompactionEntry, PruneEntry
    from tui_agent.session.path_queries import newest_typed

    if (agent := desk.idle_agent) is None:
        return
    path = agent.session.active_path()
    last = path[-1] if path else None
    if isinstance(last, CompactionEntry | PruneEntry):
        await step_back(desk, last)
    elif isinstance(last, CheckpointEntry) and last.put_back_to is not None:
        agent.files.remember(last.id, last.parent_id, along=True)
        pair = (last.id, last.parent_id)
        await move_with_files(desk, agent, last.parent_id, lambda: step_back(desk, last), pair=pair)
    elif (move := _move_here(desk, agent.session)) is not None:
        await _undo_move(desk, agent, move)
    elif (typed := newest_typed(path)) is not None:
        await _undo_turn(desk, agent, typed)
    else:
        desk.say("There is no turn to undo.")


async def _undo_move(desk: Desk, agent: Agent, move: Move) -> None:
    """Go back to where a move started; the message it had put into the prompt goes."""

    async def go() -> bool:
        await _go(desk, agent, move[0], UndoResult(name_of_move(*move), (agent.session.leaf, move[0]), of_move=True))
        desk.face.withdraw_message("")
        return True

    await move_with_files(desk, agent, move[0], go, pair=move)


async def _undo_turn(desk: Desk, agent: Agent, message: UserEntry) -> None:
    """Go to before a message of the user, which goes back into the prompt."""
    parent = before(agent.session, message)

    async def go() -> bool:
        moved = await step_back(desk, message)
        if moved:
            desk.face.restore_message(desk.undone[-1].text)
        return moved

    await move_with_files(desk, agent, parent, go, pair=(agent.session.leaf, parent))


def before(session: Session, entry: Entry) -> int | None:
    """Return where one goes to undo an entry: its parent; for a compaction, what stands before its own prunes too.

    The approval of a plan changed the mode before it.
    """
    from tui_agent.context.pruning import Occasion
    from tui_agent.session.entries import PLAN_PATH, CompactionEntry, FilePart, PruneEntry, UserEntry

    parent = entry.parent_id
    if isinstance(entry, CompactionEntry):
        while parent is not None:
            above = session.entry(parent)
            if not isinstance(above, PruneEntry) or above.reason != Occasion.COMPACTION:
                break
            parent = above.parent_id
    if isinstance(entry, UserEntry) and any(
        isinstance(part, FilePart) and part.path == PLAN_PATH for part in entry.parts
    ):
        while parent is not None and (above := session.entry(parent)).sets_state:
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
    text = typed_text(entry.parts) if isinstance(entry, UserEntry) else ""
    target = before(agent.session, entry)
    await _go(desk, agent, target, UndoResult(name_of_change(entry), (agent.session.leaf, target), text))
    return True


async def _go(desk: Desk, agent: Agent, target: int | None, undone: UndoResult) -> None:
    await agent.navigator.go(target)
    desk.undone.append(undone)
    desk.undo_moves.add(undone.way)
    desk.say(f"Undone: {undone.what}. /redo brings it back.")


def _move_here(desk: Desk, session: Session) -> Move | None:
    """Return the last move of the user that led here, None when something was said since.

    Moves that ``/undo`` made are none of the user's; those it took back are done with. Of those made before the program
    was started, the ones up the path count as ``/undo``'s.
    """
    if _move_up_before(session) is not None:
        return None
    moves = [move for move in session.move_history.undoable if move not in desk.undo_moves]
    done_with = sum(undone.of_move for undone in desk.undone)
    if done_with >= len(moves):
        return None
    move = moves[-1 - done_with]
    return move if _leads_here(session, move) else None


def _leads_here(session: Session, move: Move) -> bool:
    """Whether nothing was said since a move."""
    target, here = move[1], session.leaf
    while here is not None and here != target:
        entry = session.entry(here)
        if not (entry.sets_state or entry.ends_move):
            return False
        here = entry.parent_id
    return here == target


def _is_up(session: Session, move: Move) -> bool:
    """Whether a move led to an entry above where it started, as those of ``/undo`` do."""
    left, target = move
    return left is not None and (target is None or target in {entry.id for entry in session.path(left)})


def _move_up_before(session: Session) -> Move | None:
    """Return the last move when it was made before the program was started, led up the path and still leads here."""
    history = session.move_history
    if not history.undoable or len(history.undoable) > history.earlier:
        return None
    move = history.undoable[-1]
    return move if _leads_here(session, move) and _is_up(session, move) else None


async def redo(desk: Desk, _argument: str) -> None:
    """Go back to where the last ``/undo`` left from; after a restart, to where a move up the path left from."""
    if desk.agent is None:
        return
    if (agent := desk.idle_agent) is None:
        return
    if not desk.undone:
        await _redo_without_undo(desk, agent)
        return
    done = desk.undone[-1]
    origin, here = done.way

    async def go() -> bool:
        await agent.navigator.undo()
        desk.undone.pop()
        desk.undo_moves.discard(done.way)
        desk.say(f"Redone: {done.what}.")
        # The turn that is undone still has its message in the prompt, as after its own undo.
        desk.face.withdraw_message(desk.undone[-1].text if desk.undone else "")
        return True

    await move_with_files(desk, agent, origin, go, pair=(origin, here))


async def _redo_without_undo(desk: Desk, agent: Agent) -> None:
    """Go back to where a move up the path left from, if that was the last thing done."""
    if (before := _move_up_before(agent.session)) is not None:

        async def go() -> bool:
            await agent.navigator.undo()
            desk.say(f"Redone: back at {name_of_place(before[0])}.")
            return True

        await move_with_files(desk, agent, before[0], go, pair=before)
    elif (move := _move_here(desk, agent.session)) is not None and _is_up(agent.session, move):
        await _undo_move(desk, agent, move)
    else:
        desk.say("There is nothing to redo.")


COMMANDS = (
    Command("undo", "undo the last turn, move, compaction or prune", undo, "Undo", key="f5", place=180),
    Command("redo", "undo the last /undo", redo, "Redo", key="f6", place=190),
)
