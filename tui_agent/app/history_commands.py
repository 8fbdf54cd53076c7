"""Finding what was sent before, in any session of the project."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import age, one_line
from tui_agent.app.frontend import Pick, PickRow

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller

MAX_PROMPTS = 20_000
"""Prompts that are searched; older ones are in their sessions."""


async def history(controller: Controller, _argument: str) -> None:
    """Put a message or command that was sent before into the prompt."""
    project = controller.agent.ports.project if controller.agent is not None else controller.cwd
    typed = await asyncio.to_thread(controller.services.store.typed_in, project, MAX_PROMPTS)
    if not typed:
        controller.say("Nothing was sent in this project yet.")
        return
    now = controller.services.clock()
    rows = [
        PickRow(
            str(number),
            one_line(found.text, 300),
            age(found.created_at, now),
            f"{found.text}\n\nin “{one_line(found.title, 60) or 'a session without a title'}”",
        )
        for number, found in enumerate(typed)
    ]
    picked = await controller.ask(Pick("Sent before in this project", rows, confirm="put it into the prompt"))
    if picked is not None:
        controller.frontend.set_draft(typed[int(picked)].text)


COMMANDS = (
    Command(
        "history",
        "find earlier messages in this project",
        history,
        "Earlier messages",
        key="ctrl+r",
        needs_screen=True,
        place=210,
    ),
)
