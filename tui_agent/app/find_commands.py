"""``/find`` searches the conversation; ``/history`` lists the messages sent in this project.

``/find`` only opens the find bar, which calls `find_entries`. ``/history`` puts the chosen message
into the prompt.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from tui_agent.app.commands import Command
from tui_agent.app.format import age, lower_case, one_line
from tui_agent.app.frontend import FindPage, Pick, PickRow

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller

MAX_SCANNED: Final = 2_000
"""Number of the newest entries that are searched in full, even for parts of words.

Older entries are looked up in the search index, which finds only the beginnings of words.
"""
MAX_PROMPTS: Final = 20_000
"""Maximum number of sent messages that ``/history`` lists, newest first."""
_BATCH: Final = 200
"""Number of entries that are loaded from the store at a time."""


@Command(
    "find",
    "search this conversation",
    key="ctrl+f",
    argument="[TEXT]",
    needs_screen=True,
    place=300,
    words="look for, old message, text, output",
)
async def find(controller: Controller, argument: str) -> None:
    controller.show(FindPage(argument.strip()))


async def find_entries(controller: Controller, query: str) -> list[int]:
    """Return the ids of the visible entries that contain ``query``, newest first.

    Only searches the current session path.

    The search ignores case. An entry older than the newest `MAX_SCANNED` is only found if one of
    its words begins with ``query``. The list is empty if no session is open, or ``query`` is "".
    """
    if (agent := controller.agent) is None or not query:
        return []
    from tui_agent.session.entries import kinds
    from tui_agent.session.rows import text_of

    session = agent.session
    store = controller.services.store
    wanted = lower_case(query)
    path = session.path_outline()
    shown = kinds(lambda kind: kind.is_shown)
    ids = [entry_id for entry_id, kind in zip(path.ids, path.kinds, strict=True) if kind in shown]

    def search() -> list[int]:
        recent = ids[-MAX_SCANNED:]
        older = ids[:-MAX_SCANNED]
        if older:
            indexed = set(store.matching(query, session.id))
            recent = [entry_id for entry_id in older if entry_id in indexed] + recent
        found: list[int] = []
        for end in range(len(recent), 0, -_BATCH):
            entries = session.reader.load(recent[max(end - _BATCH, 0) : end])
            for entry in reversed(entries):
                if wanted in lower_case(text_of(entry)):
                    found.append(entry.id)
        return found

    return await asyncio.to_thread(search)


@Command(
    "history",
    "find earlier messages in this project",
    key="ctrl+r",
    needs_screen=True,
    place=210,
    words="old, previous, prompts, search, reuse",
)
async def history(controller: Controller, _argument: str) -> None:
    store = controller.services.store
    typed = await asyncio.to_thread(store.typed_in, controller.project, MAX_PROMPTS)
    if not typed:
        controller.say("No messages have been sent in this project yet.")
        return
    now = controller.services.clock()
    rows = []
    for number, found in enumerate(typed):
        rows.append(
            PickRow(
                str(number),
                one_line(found.text, 300),
                age(found.created_at, now),
                f"{found.text}\n\nin “{one_line(found.title, 60) or 'a session without a title'}”",
            )
        )
    picked = await controller.ask(
        Pick("Messages sent in this project", rows, confirm="put it into the prompt")
    )
    if picked is not None:
        controller.frontend.set_draft(typed[int(picked)].text)
