"""What ``/undo`` and ``/redo`` do: a turn, a move, a compaction or a prune is taken back, and brought again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from tui_agent.session.entries import Entry, UserEntry
    from tui_agent.ui.screens.main import MainScreen
    from tui_agent.ui.services import AgentPort, SessionPort


@dataclass(frozen=True, slots=True)
class Undone:
    """What ``/undo`` did: the leaf it left, what that is called, the message it put into the prompt.

    ``undid_move`` says that it undid a move instead of making one.
    """

    leaf: int | None
    what: str
    text: str = ""
    undid_move: bool = False


async def undo(main: MainScreen, _argument: str) -> None:
    """Take back what came last.

    A compaction, prune or move at the end is undone alone; otherwise the last turn goes, its text back in the prompt.
    """
    from tui_agent.session.entries import CompactionEntry, PruneEntry, UserEntry
    from tui_agent.ui.screens.file_choice import move_with_files
    from tui_agent.ui.undo_words import name_of_move

    agent = main.agent
    if agent is None:
        return
    if agent.running:
        main.say("The agent is working: press Escape first.", "warning")
        return
    leaf, path = agent.session.leaf, agent.session.active_path()
    if path and isinstance(path[-1], CompactionEntry | PruneEntry):
        await step_back(main, path[-1])
        return
    if not main.undone and _moved_here(agent.session):
        pair = agent.session.move_history.undoable[-1]

        async def undo_move() -> bool:
            moved = await _moved(main, agent.navigator.undo())
            if moved:
                _tell_undone(main, Undone(leaf, name_of_move(*pair), undid_move=True))
            return moved

        await move_with_files(main, agent, pair[0], undo_move, pair=pair)
        return
    for entry in reversed(path):
        if isinstance(entry, UserEntry) and entry.synthetic is None:
            await _undo_turn(main, agent, entry)
            return
    main.say("There is no turn to undo.")


async def _undo_turn(main: MainScreen, agent: AgentPort, message: UserEntry) -> None:
    """Go to before a message of the user, which goes back into the prompt."""
    from tui_agent.ui.screens.file_choice import move_with_files

    parent = message.parent_id

    async def go() -> bool:
        moved = await step_back(main, message)
        if moved:
            main.prompt.restore(main.undone[-1].text)
        return moved

    await move_with_files(main, agent, parent, go, pair=(agent.session.leaf, parent))


def before(session: SessionPort, entry: Entry) -> int | None:
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


async def step_back(main: MainScreen, entry: Entry) -> bool:
    """Move to before an entry of the path, so that ``/redo`` comes back; returns whether that went well."""
    from tui_agent.session.entries import UserEntry
    from tui_agent.session.typed import typed_text
    from tui_agent.ui.undo_words import name_of_change

    agent = main.agent
    if agent is None:
        return False
    leaf = agent.session.leaf
    text = typed_text(entry.parts) if isinstance(entry, UserEntry) else ""
    moved = await _moved(main, agent.navigator.go(before(agent.session, entry)))
    if moved:
        _tell_undone(main, Undone(leaf, name_of_change(entry), text))
    return moved


def _tell_undone(main: MainScreen, undone: Undone) -> None:
    main.undone.append(undone)
    main.say(f"Undone: {undone.what}. /redo brings it back.")


async def _moved(main: MainScreen, move: Awaitable[object]) -> bool:
    """Wait for a move; why there was none is said."""
    from tui_agent.agent.navigator import NavigationError
    from tui_agent.session.errors import StoreError

    try:
        await move
    except (NavigationError, StoreError) as error:
        main.say(str(error), "warning")
        return False
    return True


def _moved_here(session: Any) -> bool:
    """Whether nothing was said since the last move, except for the summary that came with it."""
    moves = session.moves()
    if not moves or moves[-1].action == "undo":
        return False
    here, target = session.leaf, moves[-1].to_leaf
    if here != target and here is not None:
        entry = session.entry(here)
        return bool(entry.kind == "branch_summary" and entry.parent_id == target)
    return bool(here == target)


async def redo(main: MainScreen, _argument: str) -> None:
    """Go back to where the last ``/undo`` left from."""
    from tui_agent.ui.screens.file_choice import move_with_files

    agent = main.agent
    if agent is None or not main.undone:
        main.say("There is nothing to redo.")
        return
    if agent.running:
        main.say("The agent is working: press Escape first.", "warning")
        return
    done, here = main.undone[-1], agent.session.leaf

    async def go() -> bool:
        moved = await _moved(main, agent.navigator.go(done.leaf) if done.undid_move else agent.navigator.undo())
        if moved:
            main.undone.pop()
            main.say(f"Redone: {done.what}.")
            # The turn that is undone still has its message in the prompt, as after its own undo.
            main.prompt.withdraw(main.undone[-1].text if main.undone else "")
        return moved

    await move_with_files(main, agent, done.leaf, go, pair=(done.leaf, here))
