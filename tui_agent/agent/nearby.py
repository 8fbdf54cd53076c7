"""Instructions of the part of the project that the model works in, attached when it first comes there."""

import asyncio
from collections.abc import Iterator, Sequence

from tui_agent.agent.channel import Journal
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.view import EntryState, resolve
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    FilePart,
    TextPart,
    ToolResultEntry,
    UserEntry,
)
from tui_agent.session.path_queries import since

REASON = "instructions"
"""Why the entry was made, as ``UserEntry.synthetic`` says it."""


async def nearby_instructions(journal: Journal, ports: AgentPorts) -> UserEntry | None:
    """Return the entry with instructions for the files of the newest calls.

    None where the model has all of them.
    """
    path = journal.session.active_path()
    touched: dict[str, None] = {}
    for entry in since(path, AssistantEntry):
        if isinstance(entry, ToolResultEntry):
            touched |= dict.fromkeys((*entry.metadata.read_files, *entry.metadata.modified_files))
    knowledge = ports.knowledge
    known = {*_shown(path), *touched}
    found = await asyncio.to_thread(knowledge.nearby, tuple(touched), known) if touched else ()
    if problem := knowledge.take_problems():
        journal.channel.say(problem, "warning")
    if not found:
        return None
    intro = TextPart(text=ports.prompt("nearby_instructions"))
    files = (FilePart(path=item.name, text=item.text) for item in found)
    return UserEntry(parts=(intro, *files), synthetic=REASON)


def _shown(path: Sequence[Entry]) -> Iterator[str]:
    """Yield the names of the instructions the model sees already behind the head."""
    view = resolve(path)
    for entry in view.entries:
        if not isinstance(entry, UserEntry) or entry.synthetic != REASON:
            continue
        if view.state(entry.id) in (EntryState.LIVE, EntryState.PINNED):
            yield from (file.path for file in entry.attached)
