"""``/undo`` reverses the newest change of the session, ``/redo`` repeats a change that was undone.

A change, such as a turn, a move, a compaction or a context edit, is a `Step` of the session's
history. Both commands move the leaf, and restore the files to match (moves.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line, plural, tokens
from tui_agent.app.moves import move_with_files

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller
    from tui_agent.session.entries import Entry
    from tui_agent.session.history import Step
    from tui_agent.session.session import Session


def _help(verb: str, session: Session, step: Step | None) -> str:
    if step is not None:
        return f"{verb}: {name_of_step(session, step)}"
    return ""


@Command(
    "undo",
    "undo the last turn, move, compaction, edit or race",
    key="f5",
    now=lambda session: _help("undo", session, session.history.newest()),
    changes_files=True,
    place=180,
    words="revert, take back, go back, restore files, discard",
)
async def undo(controller: Controller, _argument: str) -> None:
    agent = controller.idle_agent
    session = agent.session
    step = session.history.newest()
    if step is None:
        controller.say("There is nothing to undo.")
        return
    name = name_of_step(session, step)
    text = _typed(session, step)
    restored = await move_with_files(
        controller, agent, step.start, agent.navigator.undo, pair=_ends_of(step)
    )
    if restored is None:
        return
    controller.say(_sentence(f"Undone: {name}", restored, "/redo brings it back"))
    if text is None:
        controller.frontend.withdraw_message("")
    else:
        controller.frontend.restore_message(text)


@Command(
    "redo",
    "bring back what was undone last",
    key="f6",
    now=lambda session: _help("redo", session, session.history.next()),
    changes_files=True,
    place=190,
    words="bring back, repeat, forward",
)
async def redo(controller: Controller, _argument: str) -> None:
    agent = controller.idle_agent
    session = agent.session
    step = session.history.next()
    if step is None:
        controller.say("There is nothing to redo.")
        return
    name = name_of_step(session, step)
    restored = await move_with_files(
        controller, agent, step.end, agent.navigator.redo, pair=_ends_of(step)
    )
    if restored is None:
        return
    controller.say(_sentence(f"Redone: {name}", restored, "/undo takes it back"))
    # If the next step was undone, too, put its message into the prompt instead.
    controller.frontend.withdraw_message(_typed(session, session.history.next()) or "")


def _sentence(done: str, restored: str, way_back: str) -> str:
    """Return the report of a move: what was done, what happened to files, how to reverse it.

    ``restored`` says what happened to files; it is "" if nothing did.
    """
    if restored:
        done = f"{done}, {restored}"
    return f"{done} · {way_back}"


def _ends_of(step: Step) -> tuple[int | None, int | None]:
    """Return the two entries between which the leaf moves if the step is undone or redone."""
    if step.move is None:
        return step.end, step.start
    return step.move.start, step.move.end


async def undo_entry(controller: Controller, entry_id: int) -> None:
    """Go back to the point before the step that appended an entry, and report that.

    The entry is on the current session path. If the step is the newest one, undo it as ``/undo``
    does.
    """
    agent = controller.idle_agent
    session = agent.session
    newest = session.history.newest()
    if newest is not None and newest.entry == entry_id:
        await undo(controller, "")
        return
    target = session.history.before(entry_id)

    async def go() -> None:
        await agent.navigator.go(target)

    restored = await move_with_files(controller, agent, target, go, pair=(session.leaf, target))
    if restored is not None:
        went = f"Went back to {name_of_place(target)}, before #{entry_id}"
        controller.say(_sentence(went, restored, "/undo returns"))


def _typed(session: Session, step: Step | None) -> str | None:
    """Return the text of the user's message that began the step if it is a turn, otherwise None.

    None is also returned if the message is damaged.
    """
    from tui_agent.session.entries import UserEntry, typed_text

    if step is None or step.move is not None:
        return None
    entry = _entry_of(session, step)
    if isinstance(entry, UserEntry):
        return typed_text(entry.parts)
    return None


def name_of_step(session: Session, step: Step) -> str:
    """Return a noun phrase for a step: ``turn “fix the test”``, ``move from #3 to #9``."""
    from tui_agent.session.entries import RaceEntry

    entry = _entry_of(session, step)
    if step.move is not None and not isinstance(entry, RaceEntry):
        return f"move from {name_of_place(step.move.start)} to {name_of_place(step.move.end)}"
    if entry is None:
        return f"everything from #{step.entry} on"
    return _name_of(session, entry, step)


def _entry_of(session: Session, step: Step) -> Entry | None:
    """Return the entry that a step is about, such as the message of a turn.

    Returns None if there is no such entry, or if it is damaged.
    """
    if step.entry is None:
        return None
    return next(iter(session.entries([step.entry])), None)


def _name_of(session: Session, entry: Entry, step: Step) -> str:
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
            edits = session.reader.parting(step.end, step.start).left.of_kind(entry.kind)
            if len(edits) == 1:
                target = f"#{entry.target}"
            else:
                target = plural(len(edits), "entry")
            name = f"edit of the context: {entry.note or f'{entry.action} {target}'}"
        case entries.RaceEntry():
            name = f"race “{one_line(entry.prompt, 50)}”"
        case entries.BranchSummaryEntry():
            name = f"merge of the branch that ends at #{entry.from_id}"
        case entries.CheckpointEntry(files=()):
            name = f"restoring {plural(len(entry.directories), 'directory')}"
        case entries.CheckpointEntry():
            name = f"restoring {plural(len(entry.files), 'file')}"
        case _:
            name = f"everything from #{entry.id} on"
    return name


def name_of_place(entry_id: int | None) -> str:
    """Return an entry's number as ``#12``; "the start" for None (no entry)."""
    if entry_id is None:
        return "the start"
    return f"#{entry_id}"
