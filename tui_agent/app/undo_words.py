"""What ``/undo`` took back, so that ``/redo`` brings it again, and what both call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.format import one_line, plural, tokens
from tui_agent.lazy import dataclass

if TYPE_CHECKING:
    from tui_agent.session.entries import Entry


Move = tuple[int | None, int | None]
"""Where a move of the leaf started, and where it led."""


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What ``/undo`` did: what that is called, the way it went, the message it put into the prompt."""

    what: str
    way: Move
    text: str = ""
    of_move: bool = False
    """It took back a move, and not a turn or an edit of the context."""


def name_of_change(entry: Entry) -> str:
    """Return what undoing an entry takes back, to follow ``Undone:``."""
    from tui_agent.session.entries import CheckpointEntry, CompactionEntry, PruneEntry, UserEntry

    match entry:
        case CompactionEntry():
            return f"compaction of {tokens(entry.tokens_before)} tokens to {tokens(entry.tokens_after)}"
        case PruneEntry():
            return f"pruning of {plural(len(entry.targets), 'output')}"
        case CheckpointEntry():
            return f"putting {plural(len(entry.files), 'file')} back"
        case UserEntry():
            return f"turn “{one_line(entry.text, 50)}”"
        case _:
            return f"everything from #{entry.id} on"


def name_of_move(origin: int | None, target: int | None) -> str:
    """Return what undoing a move takes back."""
    return f"move from {name_of_place(origin)} to {name_of_place(target)}"


def name_of_place(entry_id: int | None) -> str:
    """Return what a place in the tree is called."""
    return "the start" if entry_id is None else f"#{entry_id}"
