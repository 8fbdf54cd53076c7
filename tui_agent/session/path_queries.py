"""Finds the newest entries of certain kinds on a path, which is a list of entries, oldest first.

Kinds are compared by exact class, because paths are long and an instance check of pydantic takes
twice as long.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

from tui_agent.lazy import frozen
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    EntryBase,
    ToolResultEntry,
    UserEntry,
)

EntryT = TypeVar("EntryT", bound=EntryBase)


@frozen
class PathMark:
    """Remembers a path by its length and the entries at its two ends."""

    length: int = 0
    first: Entry | None = None
    last: Entry | None = None

    @classmethod
    def of(cls, path: Sequence[Entry]) -> "PathMark":
        return cls(len(path), path[0], path[-1]) if path else cls()

    def begins(self, path: Sequence[Entry]) -> bool:
        """Return True if ``path`` begins with the remembered one; False for an empty one."""
        if not 0 < self.length <= len(path):
            return False
        return path[0] is self.first and path[self.length - 1] is self.last


def place_of_newest(
    path: Sequence[Entry], *kinds: type[EntryT], where: Callable[[EntryT], bool] | None = None
) -> int | None:
    """Return the index of the newest entry of the given kinds for which ``where`` is true.

    None if there is none.
    """
    for at in range(len(path) - 1, -1, -1):
        if type(path[at]) in kinds and (where is None or where(cast("EntryT", path[at]))):
            return at
    return None


def newest(
    path: Sequence[Entry], *kinds: type[EntryT], where: Callable[[EntryT], bool] | None = None
) -> EntryT | None:
    """Return the newest entry of the kinds for which ``where`` is true, None if there is none."""
    at = place_of_newest(path, *kinds, where=where)
    if at is None:
        return None
    return cast("EntryT", path[at])


def newest_message(path: Sequence[Entry]) -> UserEntry | AssistantEntry | ToolResultEntry | None:
    """Return the newest message of the conversation: the user's, the model's or a tool's."""
    found = newest(path, UserEntry, AssistantEntry, ToolResultEntry)
    return cast("UserEntry | AssistantEntry | ToolResultEntry | None", found)


def newest_sent(path: Sequence[Entry]) -> Entry | None:
    """Return the newest entry sent to the model, including summaries and the user's commands."""
    return next((entry for entry in reversed(path) if entry.is_sent), None)


def first_sent(entries: Sequence[Entry]) -> int | None:
    return next((entry.id for entry in entries if entry.is_sent), None)


def since(path: Sequence[Entry], kind: type[EntryBase]) -> Iterator[Entry]:
    """Yield the entries after the newest one of a kind, newest first.

    The whole path if there is none.
    """
    for entry in reversed(path):
        if type(entry) is kind:
            return
        yield entry
