"""What ``/undo`` and ``/redo`` call that which they take back or bring again."""

from tui_agent.app.format import one_line, plural, tokens
from tui_agent.session.entries import CheckpointEntry, CompactionEntry, Entry, PruneEntry, UserEntry


def name_of_change(entry: Entry) -> str:
    """Return what undoing an entry takes back, to follow ``Undone:``."""
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
    return f"move from {_place(origin)} to {_place(target)}"


def _place(entry_id: int | None) -> str:
    return "the start" if entry_id is None else f"#{entry_id}"
