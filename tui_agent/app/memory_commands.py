"""Commands for the project's memory and proposals for it: ``/remember``, ``/forget``, ``/memory``.

`MemoryView` makes the changes.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line
from tui_agent.app.frontend import Choice, MemoryPage
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.app.controller import Controller
    from tui_agent.app.memory_view import MemoryView
    from tui_agent.files.memory import MemoryLine

HOW = "Use /memory take TOPIC, /memory drop TOPIC, /memory undo, or /memory alone."


@Command(
    "remember",
    "add a line to the project's memory, or show the memory",
    argument="[TEXT]",
    place=282,
    words="memory, save a fact",
)
async def remember(controller: Controller, argument: str) -> None:
    """Add a line to the memory; without an argument, show the memory.

    If the open session already has a system prompt, that prompt doesn't contain the new line. A
    message about the line is then appended to the session, unless the agent is working or the
    session is read-only.
    """
    from tui_agent.session.entries import SystemEntry, TextPart, UserEntry
    from tui_agent.session.path_queries import newest

    if not argument.strip():
        await memory(controller, "")
        return
    agent = controller.open_agent
    view = await _view(controller)
    line = await asyncio.to_thread(view.memory.add, argument, view.clock())
    has_head = newest(agent.session.active_path(), SystemEntry) is not None
    if has_head and not agent.running and not agent.session.read_only:
        # The session's system prompt doesn't contain the line, so tell the model about it.
        text = f"The user wrote into the project's memory: {line.text}"
        agent.keep(UserEntry(parts=(TextPart(text=text),), synthetic="remember"))
    controller.say(
        f"Noted in the memory, as “{line.topic}”. Every session in this project begins with this "
        "line. /forget removes it."
    )


@Command(
    "forget",
    "remove a line from the project's memory",
    argument="[TEXT]",
    place=284,
    words="memory, delete a note",
)
async def forget(controller: Controller, argument: str) -> None:
    view = await _view(controller)
    if not view.kept:
        controller.say("The memory is empty.")
        return
    wanted = " ".join(argument.split())
    if not wanted:
        answers = [(row.key, one_line(row.diff[0][1], 100)) for row in reversed(view.kept)]
        wanted = await controller.ask(Choice("Remove which line?", answers)) or ""
    if not wanted:
        return
    for row in view.kept:
        if wanted in {row.key, row.line.text, row.line.shown}:
            said = await asyncio.to_thread(view.drop, row)
            controller.say(f"{said} /memory undo brings it back.")
            return
    raise CommandError(f"There is no line “{one_line(wanted, 60)}”. /memory shows all lines.")


@Command(
    "memory",
    "accept or decline proposals for the project's memory, and edit it",
    argument="[take TOPIC|drop TOPIC|undo]",
    place=283,
    aliases=("memories",),
    words="notes, facts, proposals",
)
async def memory(controller: Controller, argument: str) -> None:
    view = await _view(controller)
    verb, _space, topic = argument.strip().partition(" ")
    if not verb:
        controller.show(MemoryPage(view, view.lines()))
    elif verb == "undo":
        controller.say(await asyncio.to_thread(view.undo))
    elif verb in {"take", "drop"} and topic.strip():
        if verb == "take":
            act = view.take
        else:
            act = view.drop
        controller.say(await asyncio.to_thread(act, view.find(topic)))
    else:
        raise CommandError(HOW)


async def _view(controller: Controller) -> MemoryView:
    """Read the project's memory, and return a `MemoryView` that shows and changes it.

    Raises `CommandError` if no memory is available here.
    """
    from tui_agent.agent.archive import entry_named
    from tui_agent.app.memory_view import MemoryView
    from tui_agent.session.ids import short_id

    agent = controller.open_agent
    kept = agent.ports.memory
    if kept is None:
        raise CommandError("No memory is available here.")
    name = short_id(agent.session.id)

    def cost(lines: Sequence[MemoryLine]) -> int:
        count = agent.counter.text
        return count(agent.ports.knowledge.memory_section(lines, count).text)

    view = MemoryView(
        memory=kept,
        session=name,
        text_of=partial(entry_named, session=agent.session, blob=agent.ports.blob),
        count=agent.counter.text,
        cost=cost,
        clock=agent.ports.clock,
    )
    await asyncio.to_thread(view.read)
    return view
