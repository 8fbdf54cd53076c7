"""The files a stretch of the session read and modified, cumulative over everything that was summarised before.

A file's last touch decides its place: lists run from the longest untouched to the newest, so that what is cut to a
budget is cut from the front.
"""

from collections.abc import Callable, Iterable
from itertools import zip_longest

from tui_agent.context.arguments import parse_object
from tui_agent.lazy import dataclass
from tui_agent.session.entries import (
    AssistantEntry,
    BranchSummaryEntry,
    CheckpointEntry,
    CompactionEntry,
    Entry,
    FilePart,
    SummaryDetails,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.tool_traits import ToolTraits, TraitsByName

_PATH_KEYS = ("path", "file_path", "filePath", "filename")


@dataclass(frozen=True, slots=True)
class FileOperations:
    """Paths read and paths modified, each once, oldest touch first. A modified file is not listed as read."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()

    def newest(self, number: int) -> tuple[str, ...]:
        """Return the newest ``number`` paths of each list."""
        return (*self.read[max(0, len(self.read) - number) :], *self.modified[max(0, len(self.modified) - number) :])


def call_path(arguments: str) -> str | None:
    """Return the file a call's JSON arguments name, if they name one."""
    values = parse_object(arguments)
    if values is None:
        return None
    return next((values[key] for key in _PATH_KEYS if isinstance(values.get(key), str) and values[key]), None)


def file_operations(
    entries: Iterable[Entry], tools: TraitsByName, earlier: SummaryDetails | None = None
) -> FileOperations:
    """Return what was read and modified in ``entries``, on top of what ``earlier`` summaries carried.

    Sources are the results' own metadata, their calls' arguments where a tool reports nothing (imported sessions),
    checkpoints (which see edits made by shell commands), attached files, and the details of summaries on the way.
    """
    touched = _Touched()
    if earlier is not None:
        touched.details(earlier)
    calls: dict[str, str] = {}
    for entry in entries:
        match entry:
            case AssistantEntry():
                calls.update((call.call_id, call.arguments) for call in entry.tool_calls)
            case ToolResultEntry():
                _result(entry, calls.get(entry.call_id, ""), tools[entry.tool], touched)
            case CheckpointEntry():
                touched.modify(change.path for change in entry.files)
            case UserEntry():
                touched.look(part.path for part in entry.parts if isinstance(part, FilePart) and part.is_file)
            case CompactionEntry() | BranchSummaryEntry():
                touched.details(entry.details)
            case _:
                continue
    return touched.operations()


def shown_paths(operations: FileOperations, budget: int, count: Callable[[str], int]) -> int:
    """Return how many of the newest paths of each list fit into ``budget`` tokens together."""
    shown = 0
    for read, modified in zip_longest(reversed(operations.read), reversed(operations.modified)):
        budget -= sum(count(path) + 1 for path in (read, modified) if path is not None)
        if budget < 0:
            break
        shown += 1
    return shown


class _Touched:
    """Paths in the order of their last touch; dictionaries keep that order when a key is removed and set again."""

    def __init__(self) -> None:
        self._read: dict[str, None] = {}
        self._modified: dict[str, None] = {}

    def look(self, paths: Iterable[str]) -> None:
        _touch(self._read, paths)

    def modify(self, paths: Iterable[str]) -> None:
        _touch(self._modified, paths)

    def details(self, details: SummaryDetails) -> None:
        self.look(details.read_files)
        self.modify(details.modified_files)

    def operations(self) -> FileOperations:
        read = tuple(path for path in self._read if path not in self._modified)
        return FileOperations(read=read, modified=tuple(self._modified))


def _touch(seen: dict[str, None], paths: Iterable[str]) -> None:
    for path in paths:
        name = path.removeprefix("./")
        seen.pop(name, None)
        seen[name] = None


def _result(entry: ToolResultEntry, arguments: str, traits: ToolTraits, touched: _Touched) -> None:
    if entry.status is not ToolStatus.COMPLETED:
        touched.modify(entry.metadata.modified_files)
        return
    touched.look(entry.metadata.read_files)
    touched.modify(entry.metadata.modified_files)
    if entry.metadata.read_files or entry.metadata.modified_files:
        return
    path = entry.metadata.path or call_path(arguments)
    if path is None:
        return
    if traits.reads:
        touched.look([path])
    elif traits.writes:
        touched.modify([path])
