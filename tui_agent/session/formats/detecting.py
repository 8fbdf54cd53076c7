"""Finds the sessions that other programs keep on this machine."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from tui_agent.lazy import dataclass
from tui_agent.session.formats import aider
from tui_agent.session.formats.reading import ImportRefused, Node
from tui_agent.session.formats.source import SourceFile
from tui_agent.session.formats.table import FORMATS, FileFormat, Format, format_named

__all__ = ["DetectedFile", "find_sessions"]

_HEAD_LINES = 20
"""Lines looked at for the directory a session worked in."""


@dataclass(frozen=True, slots=True)
class DetectedFile:
    """A file of another program that holds sessions."""

    path: Path
    format: FileFormat
    program: str
    project: str
    """The directory its sessions worked in, empty when the file doesn't say."""
    changed_at: int
    """Milliseconds since the epoch."""
    size: int
    """Bytes."""


def find_sessions(home: Path, cwd: Path, environ: Mapping[str, str] = os.environ) -> list[DetectedFile]:
    """Return the files other programs keep in their usual places, newest first.

    Programs that keep their sessions in the project are looked for in ``cwd`` and above it.
    """
    found: dict[Path, DetectedFile] = {}
    for row, path in [*_usual(home, environ), *_beside(home, cwd, environ)]:
        try:
            facts = path.stat()
        except OSError:
            continue  # gone in between
        if path not in found and path.is_file() and facts.st_size:
            at = int(facts.st_mtime * 1000)
            size = _size_below(path.parent) if path.name in row.whole_directory else facts.st_size
            found[path] = DetectedFile(path, row.name, row.program, _project(row, path), at, size)
    return sorted(found.values(), key=lambda one: (-one.changed_at, str(one.path)))


def _size_below(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file() and not file.is_symlink())


def _usual(home: Path, environ: Mapping[str, str]) -> Iterator[tuple[Format, Path]]:
    for row in FORMATS:
        for variable, below_home, pattern in row.places:
            directory = Path(environ.get(variable) or home / below_home) if variable else home / below_home
            yield from ((row, path) for path in directory.glob(pattern))


def _beside(home: Path, cwd: Path, environ: Mapping[str, str]) -> Iterator[tuple[Format, Path]]:
    """Yield what stands in projects: aider's history, and Crush's databases, which a list of its own knows."""
    for directory in (cwd, *cwd.parents):
        yield format_named(FileFormat.AIDER), directory / aider.FILE_NAME
        yield format_named(FileFormat.CRUSH), directory / ".crush" / "crush.db"
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    for name in _crush_directories(data / "crush" / "projects.json"):
        yield format_named(FileFormat.CRUSH), Path(name) / "crush.db"


def _crush_directories(path: Path) -> Iterable[str]:
    try:
        known = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return ()
    projects = known.get("projects") if isinstance(known, dict) else None
    rows = projects if isinstance(projects, list) else []
    return [row["data_dir"] for row in rows if isinstance(row, dict) and isinstance(row.get("data_dir"), str)]


def _project(row: Format, path: Path) -> str:
    source = SourceFile(path, skip_damaged=True)
    try:
        if row.project is not None:
            return row.project(source)
        with closing(source.lines()) as lines:
            for _number, node in zip(range(_HEAD_LINES), lines, strict=False):
                if node is not None and (cwd := _directory(node)):
                    return cwd
    except ImportRefused:
        pass  # the list shows the file; importing it says what is wrong
    return ""


def _directory(node: Node) -> str:
    payload = node.value.get("payload")
    for value in (node.value, payload if isinstance(payload, dict) else {}):
        if isinstance(cwd := value.get("cwd"), str) and cwd:
            return cwd
    return ""
