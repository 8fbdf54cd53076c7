"""Finds entries on a session path, for example the newest entry of a kind.

A path is a list of entries, oldest first. Kinds are compared by exact class, because paths are long
and ``isinstance`` takes twice as long for pydantic models.
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
    """Remembers a path by its length and its first and last entries, to recognise it later."""

    length: int = 0
    first: Entry | None = None
    last: Entry | None = None

    @classmethod
    def of(cls, path: Sequence[Entry]) -> "PathMark":
        return cls(len(path), path[0], path[-1]) if path else cls()

    def begins(self, path: Sequence[Entry]) -> bool:
        """Return True if the list ``path`` begins with all entries of the remembered path.

        Returns False if the remembered path is empty.
        """
        if not 0 < self.length <= len(path):
            return False
        return path[0] is self.first and path[self.length - 1] is self.last


def place_of_newest(
    path: Sequence[Entry], *kinds: type[EntryT], where: Callable[[EntryT], bool] | None = None
) -> int | None:
    """Return the index on the path of the newest entry of some kinds for which ``where`` is True.

    Returns None if there is no such entry.
    """
    for at in range(len(path) - 1, -1, -1):
        if type(path[at]) in kinds and (where is None or where(cast("EntryT", path[at]))):
            return at
    return None


def newest(
    path: Sequence[Entry], *kinds: type[EntryT], where: Callable[[EntryT], bool] | None = None
) -> EntryT | None:
    """Return the newest entry of the given kinds on the path; None if there is none.

    If ``where`` is given, only entries for which it returns True count.
    """
    at = place_of_newest(path, *kinds, where=where)
    if at is None:
        return None
    return cast("EntryT", path[at])


def newest_message(path: Sequence[Entry]) -> UserEntry | AssistantEntry | ToolResultEntry | None:
    """Return the newest user message, answer or tool result on the session path, or None."""
    found = newest(path, UserEntry, AssistantEntry, ToolResultEntry)
    return cast("UserEntry | AssistantEntry | ToolResultEntry | None", found)


def newest_sent(path: Sequence[Entry]) -> Entry | None:
    """Return the newest entry on the path that is sent to the model as a message, or None.

    Unlike the result of `newest_message`, this may also be a summary or a shell command.
    """
    return next((entry for entry in reversed(path) if entry.is_sent), None)


def first_sent(entries: Sequence[Entry]) -> int | None:
    return next((entry.id for entry in entries if entry.is_sent), None)


def since(path: Sequence[Entry], kind: type[EntryBase]) -> Iterator[Entry]:
    """Yield the entries on the path after the newest entry of ``kind``, newest first.

    The whole path is yielded if it contains no entry of this kind.
    """
    for entry in reversed(path):
        if type(entry) is kind:
            return
        yield entry
