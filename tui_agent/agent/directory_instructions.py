"""Attaches the instructions of a part of the project when the agent first touches a file there.

They are an entry of their own behind the tool results: it keeps its bytes, is not pruned with the output of a ``read``,
and has its own row in the context map. What a compaction took out of view is attached again when it is next needed.
"""

import asyncio
from collections.abc import Iterator, Sequence

from tui_agent.agent.ports import AgentPorts
from tui_agent.context.view import EntryState, resolve
from tui_agent.session.entries import AssistantEntry, Entry, FilePart, TextPart, ToolResultEntry, UserEntry
from tui_agent.session.path_queries import since

REASON = "instructions"
"""Why the entry was made, as ``UserEntry.synthetic`` says it."""


async def nearby_instructions(path: Sequence[Entry], ports: AgentPorts) -> UserEntry | None:
    """Return the entry with what holds for the files of the newest tool results, None when there is nothing new."""
    touched = tuple(dict.fromkeys(_touched(path)))
    if not touched:
        return None
    shown = set(_shown(path)) | set(touched)
    found = await asyncio.to_thread(ports.knowledge.nearby, touched, shown)
    if not found:
        return None
    files = tuple(FilePart(path=item.name, text=item.text) for item in found)
    return UserEntry(parts=(TextPart(text=ports.prompt("nearby_instructions")), *files), synthetic=REASON)


def _touched(path: Sequence[Entry]) -> Iterator[str]:
    for entry in since(path, AssistantEntry):
        if isinstance(entry, ToolResultEntry):
            yield from entry.metadata.read_files
            yield from entry.metadata.modified_files


def _shown(path: Sequence[Entry]) -> Iterator[str]:
    """Yield the names of the instructions the model sees already behind the head."""
    view = resolve(path)
    for entry in view.entries:
        if not isinstance(entry, UserEntry) or entry.synthetic != REASON:
            continue
        if view.state(entry.id) in (EntryState.LIVE, EntryState.PINNED):
            yield from (part.path for part in entry.parts if isinstance(part, FilePart))
