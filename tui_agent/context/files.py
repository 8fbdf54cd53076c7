"""Lists the files that entries read and modified, including those listed in earlier summaries.

Files are ordered by their last use, oldest first, so that a list that is too long loses the files
that were used longest ago.
"""

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

from tui_agent.context.arguments import parse_object
from tui_agent.json_text import as_text
from tui_agent.lazy import frozen
from tui_agent.session.entries import (
    AssistantEntry,
    BookkeepingEntry,
    CheckpointEntry,
    Entry,
    ShellEntry,
    SummaryDetails,
    SummaryEntry,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.tool_traits import ToolTraits, TraitsByName

_PATH_KEYS = ("path", "file_path", "filePath", "filename")
_LONG_DIRECTORY = 12
"""Minimum length, in characters, of a common directory that is shown once, above its paths."""


@frozen
class FileOperations:
    """The paths of files that were read and of files that were modified, the most recent last.

    A modified file is not listed as read. ``ids`` contains, by path, the id of the newest result or
    message that used the file, except for files that are known only from checkpoints.
    """

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    ids: Mapping[str, int] = field(default_factory=dict, compare=False)

    def newest(self, number: int | None) -> tuple[str, ...]:
        """Return the newest ``number`` paths of each list; the files that were read come first.

        All paths are returned if ``number`` is None.
        """
        if number is None:
            number = len(self.read) + len(self.modified)
        return (
            *self.read[max(0, len(self.read) - number) :],
            *self.modified[max(0, len(self.modified) - number) :],
        )

    def shown(self, budget: int, count: Callable[[str], int]) -> int | None:
        """Return how many of each list's newest paths fit ``budget`` tokens; None if all do."""

        def fits(number: int | None) -> bool:
            read = path_rows(self.read, number, self.ids)
            modified = path_rows(self.modified, number, self.ids)
            return count("\n".join([*read, *modified])) <= budget

        if fits(None):
            return None
        low = 0
        high = max(len(self.read), len(self.modified))
        while low < high:
            number = (low + high + 1) // 2
            if fits(number):
                low = number
            else:
                high = number - 1
        return low


def path_rows(paths: Sequence[str], number: int | None, ids: Mapping[str, int]) -> list[str]:
    """Return lines such as ``a.py #7`` for the newest ``number`` paths, or for all if it is None.

    ``#7`` is the path's entry in ``ids``. If paths are left out, the first line says how many. If
    several paths are listed and all share a long directory (`_LONG_DIRECTORY`), it is shown once,
    above them, unless ``number`` is None or ``ids`` is empty.
    """
    hidden = 0
    if number is not None:
        hidden = max(0, len(paths) - number)
    rows: list[str] = []
    if hidden:
        rows.append(f"({hidden} earlier files not listed)")
    listed = paths[hidden:]
    directory = ""
    if ids and number is not None and listed[1:]:
        directory = posixpath.dirname(posixpath.commonprefix(listed))
    within = ""
    if len(directory) >= _LONG_DIRECTORY:
        within = f"{directory}/"
        rows.append(within)
    for path in listed:
        name = path.removeprefix(within)
        if path in ids:
            name = f"{name} #{ids[path]}"
        rows.append(name)
    return rows


def call_path(arguments: str) -> str | None:
    """Return the file path in the JSON arguments of a tool call; None if they contain none."""
    values = parse_object(arguments) or {}
    for key in _PATH_KEYS:
        if path := as_text(values.get(key)):
            return path
    return None


def file_operations(
    entries: Iterable[Entry], tools: TraitsByName, earlier: SummaryDetails | None = None
) -> FileOperations:
    """Return the files read and modified in ``entries``, after those of the ``earlier`` summary.

    They come from the results' metadata, the calls' arguments if a tool reported no files (imported
    sessions), checkpoints (which record edits by shell commands), attached files, and the details
    of summaries among the entries.
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
                touched.touch(touched.modified, (change.path for change in entry.files), 0)
            case UserEntry():
                for file in entry.attached:
                    if file.is_file:
                        touched.touch(touched.read, [file.path], entry.id)
            case SummaryEntry():
                touched.details(entry.details)
            case ShellEntry() | BookkeepingEntry():
                pass
    read = tuple(path for path in touched.read if path not in touched.modified)
    return FileOperations(read=read, modified=tuple(touched.modified), ids=touched.ids)


class _Touched:
    """Collects the paths of used files as keys of dictionaries, in the order of their last use."""

    def __init__(self) -> None:
        self.read: dict[str, None] = {}
        self.modified: dict[str, None] = {}
        self.ids: dict[str, int] = {}

    def details(self, details: SummaryDetails) -> None:
        self.touch(self.read, details.read_files, 0)
        self.touch(self.modified, details.modified_files, 0)
        for name, entry_id in details.file_ids.items():
            self.ids[name] = max(entry_id, self.ids.get(name, 0))

    def touch(self, seen: dict[str, None], paths: Iterable[str], entry_id: int) -> None:
        for path in paths:
            name = path.removeprefix("./")
            seen.pop(name, None)
            seen[name] = None
            if entry_id:
                self.ids[name] = entry_id


def _result(entry: ToolResultEntry, arguments: str, traits: ToolTraits, touched: _Touched) -> None:
    facts = entry.metadata
    is_whole = entry.status is ToolStatus.COMPLETED
    if is_whole:
        touched.touch(touched.read, facts.read_files, entry.id)
    touched.touch(touched.modified, facts.modified_files, entry.id)
    if not is_whole or facts.read_files or facts.modified_files:
        return
    path = facts.path or call_path(arguments)
    if path is None:
        return
    if traits.reads:
        touched.touch(touched.read, [path], entry.id)
    elif traits.writes:
        touched.touch(touched.modified, [path], entry.id)
