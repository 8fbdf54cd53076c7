"""What the things are called that ``/undo`` takes back and ``/redo`` brings again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.format import one_line, plural, tokens

if TYPE_CHECKING:
    from tui_agent.session.entries import Entry
    from tui_agent.session.history import Step
    from tui_agent.session.session import Session


def name_of_step(session: Session, step: Step) -> str:
    """Return what a thing that was done is called, to follow ``Undone:``."""
    from tui_agent.session.entries import RaceEntry
    from tui_agent.session.errors import EntryDamaged

    try:
        entry = None if step.entry is None else session.entry(step.entry)
    except EntryDamaged:
        entry = None
    if step.move is not None and not isinstance(entry, RaceEntry):
        return f"move from {name_of_place(step.move.start)} to {name_of_place(step.move.end)}"
    return f"everything from #{step.entry} on" if entry is None else _name_of(entry, step)


def _name_of(entry: Entry, step: Step) -> str:
    from tui_agent.session import entries

    match entry:
        case entries.UserEntry(synthetic=None):
            name = f"turn “{one_line(entry.text, 50)}”"
        case entries.ShellEntry():
            name = f"command “!{one_line(entry.command, 50)}”"
        case entries.CompactionEntry():
            name = f"compaction of {tokens(entry.tokens_before)} tokens to {tokens(entry.tokens_after)}"
        case entries.PruneEntry():
            name = f"pruning of {plural(len(entry.targets), 'output')}"
        case entries.ContextEditEntry():
            edits = (step.end or entry.id) - (step.start or 0)
            target = f"#{entry.target}" if edits == 1 else plural(edits, "entry")
            name = f"edit of the context: {entry.action} {target}"
        case entries.RaceEntry():
            name = f"race “{one_line(entry.prompt, 50)}”"
        case entries.BranchSummaryEntry():
            name = f"merge of the branch that ends at #{entry.from_id}"
        case entries.CheckpointEntry():
            name = f"putting {plural(len(entry.files), 'file')} back"
        case _:
            name = f"everything from #{entry.id} on"
    return name


def name_of_place(entry_id: int | None) -> str:
    """Return what a place in the tree is called."""
    return "the start" if entry_id is None else f"#{entry_id}"
