"""What was being worked on comes back after a compaction: the files read or edited last, as they are on disk now."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tui_agent.context.budget import ContextSize
from tui_agent.context.recalling import fits, lines_to_show, names_in_use
from tui_agent.context.settings import ContextSettings
from tui_agent.context.tokens import TokenCounter
from tui_agent.context.truncation import OutputLimits
from tui_agent.context.view import ContextView, resolve
from tui_agent.files.inside import is_inside
from tui_agent.files.secret_files import shown_text
from tui_agent.path_checks import is_file
from tui_agent.session.entries import Entry, FilePart, ToolResultEntry, ToolStatus
from tui_agent.tools.registry import tool_traits

_MOST_FILES = 5
_LARGEST = 1_000_000
"""Bytes of a file beyond which it stays away."""
_LOOKED_AT = 400
"""Newest entries among which the files are looked for."""
_LEAST_ROOM = 500
"""Tokens below which no file is worth a place."""


def room_for_files(size: ContextSize, settings: ContextSettings) -> int:
    """Return the tokens that files may take after a compaction, within what it had to reach; 0 in small windows."""
    compaction = settings.compaction
    if size.budget < compaction.files_budget:
        return 0
    free = round(size.budget * compaction.target_of_budget) - size.history
    return max(0, min(free, round(size.budget * compaction.files_share)))


def files_back(path: Sequence[Entry], project: Path, room: int, counter: TokenCounter) -> tuple[FilePart, ...]:
    """Return the files read or edited last, newest first, within ``room`` tokens.

    ``path`` is the whole path, before the compaction too. A file comes whole or with the lines in use; one that the
    model still sees as it was read is left out. Reads the disk.
    """
    view = resolve(path)
    names = names_in_use(view, tool_traits())
    parts: list[FilePart] = []
    for name in _touched(path, view):
        if room < _LEAST_ROOM or len(parts) == _MOST_FILES:
            break
        part = _part(name, project, names, room)
        if part is not None and (tokens := counter.text(part.text)) <= room:
            parts.append(part)
            room -= tokens
    return tuple(parts)


def _touched(path: Sequence[Entry], view: ContextView) -> Iterator[str]:
    """Yield the files read or edited last, newest first, without those that are in view as they are."""
    in_view = {entry.id for entry in view.entries if view.is_open(entry.id)}
    seen: set[str] = set()
    for entry in reversed(path[-_LOOKED_AT:]):
        if not isinstance(entry, ToolResultEntry) or entry.status is not ToolStatus.COMPLETED:
            continue
        told = entry.metadata
        whole = entry.id in in_view and told.truncation is None and told.known_from is None
        for name in dict.fromkeys((*told.modified_files, *told.read_files)):
            if name not in seen:
                seen.add(name)
                if name in told.modified_files or not whole:
                    yield name


def _part(name: str, project: Path, names: dict[str, float], room: int) -> FilePart | None:
    """Return a file of the project with its lines numbered, None where it is gone or no text."""
    path = project / name
    try:
        if not is_inside(project, path) or not is_file(path) or path.stat().st_size > _LARGEST:
            return None
        text = path.read_text("utf-8")
    except (OSError, ValueError):
        return None
    if not text.strip() or "\0" in text:
        return None
    lines = [f"{number}\t{line}" for number, line in enumerate(shown_text(path, text).splitlines(), 1)]
    limits = OutputLimits(tokens=room * 3 // 4)
    if fits(lines, limits):
        return FilePart(path=name, text="\n".join(lines))
    shown = lines_to_show(lines, names, limits)
    return FilePart(path=name, text="\n".join([*(lines[at] for at in shown), f"[{len(shown)} of {len(lines)} lines]"]))
