"""Creates the message with the instruction files of a directory in which the model begins to work.

`Loop` asks for it after each answer's calls and appends it. Files that have left the context are
attached again.
"""

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
"""Value of ``UserEntry.synthetic`` in the entries that this module creates."""


async def nearby_instructions(journal: Journal, ports: AgentPorts) -> UserEntry | None:
    """Return an entry with the instructions for the files that the newest answer's calls used.

    The entry is not appended. Returns None if there are no such instruction files, or if the model
    already has them: in the request head, attached here before, or because these calls read or
    changed them. Problems with the files are shown to the user as a notice.
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
    """Yield the names of instruction files that were attached by entries still in the context."""
    view = resolve(path)
    for entry in view.entries:
        if not isinstance(entry, UserEntry) or entry.synthetic != REASON:
            continue
        if view.state(entry.id) in (EntryState.LIVE, EntryState.PINNED):
            yield from (file.path for file in entry.attached)
