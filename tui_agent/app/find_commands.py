"""Searching: which entries of the path hold a text, folded or not, and what was sent before in the project."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tui_agent.app.commands import Command
from tui_agent.app.format import age, one_line
from tui_agent.app.frontend import FindPage, Pick, PickRow, Report

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller
    from tui_agent.session.entries import Entry

MAX_SCANNED: Final = 2_000
"""Newest entries that are read for any part of a word; in older ones the index finds the beginnings of words."""
MAX_TOLD: Final = 50
"""Entries named where there is no conversation to go about in."""
MAX_PROMPTS: Final = 20_000
"""Prompts that are searched; older ones are in their sessions."""
_BATCH: Final = 200


@Command("find", "search this conversation", key="ctrl+f", argument="[TEXT]", place=300)
async def find(controller: Controller, argument: str) -> None:
    controller.show(FindPage(argument.strip()))


async def find_entries(controller: Controller, query: str) -> list[int]:
    """Return the entries of the path that hold a text in any case, newest first."""
    if (agent := controller.agent) is None or not query:
        return []
    session, store = agent.session, controller.services.store
    ids, wanted = list(session.path_outline().ids), query.lower()

    def search() -> list[int]:
        recent, older = ids[-MAX_SCANNED:], ids[:-MAX_SCANNED]
        if older:
            indexed = set(store.matching(query, session.id))
            recent = [*(entry_id for entry_id in older if entry_id in indexed), *recent]
        found: list[int] = []
        for end in range(len(recent), 0, -_BATCH):
            entries = reversed(session.reader.load(recent[max(end - _BATCH, 0) : end]))
            found += [entry.id for entry in entries if any(wanted in text.lower() for text in visible_texts(entry))]
        return found

    return await asyncio.to_thread(search)


async def find_report(controller: Controller, query: str) -> Report:
    """Return the entries that hold a text as lines, for where there is no conversation to go about in."""
    from tui_agent.session.search import snippet

    found = await find_entries(controller, query)
    entries = controller.agent.session.entries(found[:MAX_TOLD]) if controller.agent is not None else []
    lines = [f"#{entry.id}  {one_line(snippet(entry, query)[0], 160)}" for entry in entries]
    more = [f"and {len(found) - MAX_TOLD} more"] if len(found) > MAX_TOLD else []
    return Report(f"“{one_line(query, 60)}” in this conversation", [*lines, *more] or ["It is nowhere."])


def visible_texts(entry: Entry) -> Iterator[str]:
    from tui_agent.session.entries import (
        AssistantEntry,
        BranchSummaryEntry,
        CompactionEntry,
        ShellEntry,
        ToolResultEntry,
        UserEntry,
    )
    from tui_agent.session.path_queries import command_line

    match entry:
        case UserEntry():
            yield command_line(entry.parts) or ""
            yield entry.text
        case AssistantEntry():
            yield entry.text
            for call in entry.tool_calls:
                yield call.arguments
            if entry.error:
                yield entry.error
        case ToolResultEntry():
            yield entry.title
            yield entry.output
        case ShellEntry():
            yield entry.command
            yield entry.output
        case CompactionEntry() | BranchSummaryEntry():
            yield entry.summary
        case _:
            pass


@Command("history", "find earlier messages in this project", key="ctrl+r", needs_screen=True, place=210)
async def history(controller: Controller, _argument: str) -> None:
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
