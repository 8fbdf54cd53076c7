"""Which moves of the leaf can be undone and redone: a pure reading of the log of moves.

Undoing goes back to where a move started and remembers where it was undone, so that redoing returns exactly there,
also when entries were appended in between. A new move forgets what could be redone, as editors do; the log keeps it.
"""

from collections.abc import Iterable
from dataclasses import field

from tui_agent.lazy import dataclass
from tui_agent.session.errors import NothingToUndo
from tui_agent.session.records import LeafMove

__all__ = ["MoveHistory"]


@dataclass(slots=True)
class MoveHistory:
    """The moves that can be undone and redone now, each as (where it started, where it led)."""

    undoable: list[tuple[int | None, int | None]] = field(default_factory=list)
    redoable: list[tuple[int | None, int | None]] = field(default_factory=list)
    earlier: int = 0
    """How many of those that can be undone were made before the session was opened here."""

    @classmethod
    def of(cls, moves: Iterable[LeafMove]) -> "MoveHistory":
        """Return the state a log of moves leads to."""
        history = cls()
        for move in moves:
            history.apply(move)
        return history

    def undo_target(self) -> int | None:
        """Return where undoing the last move leads.

        Raises:
            NothingToUndo: there is no move to undo.
        """
        if not self.undoable:
            raise NothingToUndo("There is no move to undo.")
        return self.undoable[-1][0]

    def redo_target(self) -> int | None:
        """Return where redoing the move undone last leads.

        Raises:
            NothingToUndo: no move was undone since the last one.
        """
        if not self.redoable:
            raise NothingToUndo("There is no move to redo.")
        return self.redoable[-1][1]

    def apply(self, move: LeafMove) -> None:
        """Take one more logged move into account. An undo or redo without anything to undo or redo is ignored."""
        if move.action == "move":
            self.undoable.append((move.from_leaf, move.to_leaf))
            self.redoable.clear()
        elif move.action == "undo" and self.undoable:
            start, _ = self.undoable.pop()
            self.earlier = min(self.earlier, len(self.undoable))
            self.redoable.append((start, move.from_leaf))
        elif move.action == "redo" and self.redoable:
            _, end = self.redoable.pop()
            self.undoable.append((move.from_leaf, end))
