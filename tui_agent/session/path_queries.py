"""Queries on the end of a path, oldest entry first. A path may be whole, active or a part of one.

Kinds are distinguished by the exact class: an instance check of pydantic takes twice as long, and
paths are long.
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
    """A path as it was: its length and the very entries at its ends."""

    length: int = 0
    first: Entry | None = None
    last: Entry | None = None

    @classmethod
    def of(cls, path: Sequence[Entry]) -> "PathMark":
        return cls(len(path), path[0], path[-1]) if path else cls()

    def begins(self, path: Sequence[Entry]) -> bool:
        """Whether a path is this one, or goes on from it; False for an empty one."""
        if not 0 < self.length <= len(path):
            return False
        return path[0] is self.first and path[self.length - 1] is self.last


def place_of_newest(
    path: Sequence[Entry], *kinds: type[EntryT], where: Callable[[EntryT], bool] | None = None
) -> int | None:
    """Return where the newest entry of some kinds stands, of those of which something holds.

    None without one.
    """
    for at in range(len(path) - 1, -1, -1):
        if type(path[at]) in kinds and (where is None or where(cast("EntryT", path[at]))):
            return at
    return None


def newest(
    path: Sequence[Entry], *kinds: type[EntryT], where: Callable[[EntryT], bool] | None = None
) -> EntryT | None:
    """Return the newest entry of some kinds, of those of which something holds.

    None when there is none.
    """
    at = place_of_newest(path, *kinds, where=where)
    if at is None:
        return None
    return cast("EntryT", path[at])


def newest_message(path: Sequence[Entry]) -> UserEntry | AssistantEntry | ToolResultEntry | None:
    """Return the newest message of the conversation: the user's, the model's or a tool's."""
    found = newest(path, UserEntry, AssistantEntry, ToolResultEntry)
    return cast("UserEntry | AssistantEntry | ToolResultEntry | None", found)


def newest_sent(path: Sequence[Entry]) -> Entry | None:
    """Return the newest entry that the model is sent, summaries and the user's own commands included."""
    return next((entry for entry in reversed(path) if entry.is_sent), None)


def first_sent(entries: Sequence[Entry]) -> int | None:
    return next((entry.id for entry in entries if entry.is_sent), None)


def since(path: Sequence[Entry], kind: type[EntryBase]) -> Iterator[Entry]:
    """Yield the entries after the newest entry of a kind, newest first.

    The whole path when there is none.
    """
    for entry in reversed(path):
        if type(entry) is kind:
            return
        yield entry
