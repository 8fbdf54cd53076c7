"""``/remember`` and ``/forget``: the project's notes, which stand in the head of every session."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line
from tui_agent.app.frontend import Choice, Report
from tui_agent.errors import CommandError
from tui_agent.files.notes import (
    NOTES_FILE,
    NoteError,
    notes_in,
    read_notes,
    with_note,
    without_note,
    write_notes,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tui_agent.app.controller import Controller


@Command(
    "remember",
    "add a note for this project, or show them",
    argument="[TEXT]",
    place=282,
    words="memory, save a fact",
)
async def remember(controller: Controller, argument: str) -> None:
    from tui_agent.session.entries import SystemEntry, TextPart, UserEntry

    agent = controller.open_agent
    project = agent.ports.project
    note = " ".join(argument.split())
    if not note:
        text = await asyncio.to_thread(read_notes, project)
        lines = text.splitlines() or [
            f"There are no notes. /remember TEXT writes one into {NOTES_FILE}."
        ]
        controller.show(Report("Notes", lines))
        return
    try:
        await asyncio.to_thread(_change, project, lambda text: with_note(text, note))
    except NoteError as error:
        raise CommandError(str(error)) from None
    if not agent.running and any(
        isinstance(entry, SystemEntry) for entry in agent.session.active_path()
    ):
        # The session's head is older than the note.
        text = f"The user wrote into the project's notes: {note}"
        agent.keep(UserEntry(parts=(TextPart(text=text),), synthetic="remember"))
    controller.say(
        f"Noted in {NOTES_FILE}: it is in the head of every session. /forget takes it out again."
    )


@Command(
    "forget",
    "remove a note from the project's notes",
    argument="[TEXT]",
    place=284,
    words="memory, delete a note",
)
async def forget(controller: Controller, argument: str) -> None:
    agent = controller.open_agent
    project = agent.ports.project
    notes = notes_in(await asyncio.to_thread(read_notes, project))
    if not notes:
        controller.say("There are no notes.")
        return
    wanted = " ".join(argument.split())
    if not wanted:
        answers = [(note, one_line(note, 100)) for note in reversed(notes)]
        wanted = await controller.ask(Choice("Take out which note?", answers)) or ""
    if wanted in notes:
        await asyncio.to_thread(_change, project, lambda text: without_note(text, wanted))
        controller.say(
            f"Taken out: “{one_line(wanted, 60)}”. /remember with the same words brings it back."
        )
    elif wanted:
        raise CommandError(f"There is no note “{one_line(wanted, 60)}”. /remember shows them.")


def _change(project: Path, change: Callable[[str], str]) -> None:
    write_notes(project, change(read_notes(project)))
