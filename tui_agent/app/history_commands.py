"""Finding what was sent before, in any session of the project."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.face import Pick, PickRow
from tui_agent.app.format import age, one_line

if TYPE_CHECKING:
    from tui_agent.app.desk import Desk

MAX_PROMPTS = 20_000
"""Prompts that are searched; older ones are in their sessions."""


async def history(desk: Desk, _argument: str) -> None:
    """Put a message or command that was sent before into the prompt."""
    project = desk.agent.ports.project if desk.agent is not None else desk.cwd
    typed = await asyncio.to_thread(desk.services.store.typed_in, project, MAX_PROMPTS)
    if not typed:
        desk.say("Nothing was sent in this project yet.")
        return
    now = desk.services.clock()
    rows = [
        PickRow(
            str(number),
            one_line(found.text, 300),
            age(found.created_at, now),
            f"{found.text}\n\nin “{one_line(found.title, 60) or 'a session without a title'}”",
        )
        for number, found in enumerate(typed)
    ]
    picked = await desk.ask(Pick("Sent before in this project", rows, confirm="put it into the prompt"))
    if picked is not None:
        desk.face.set_draft(typed[int(picked)].text)


COMMANDS = (
    Command(
        "history",
        "find what you sent before in this project",
        history,
        "Earlier messages",
        key="ctrl+r",
        needs_screen=True,
        place=210,
    ),
)
