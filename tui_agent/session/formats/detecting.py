"""Finds the sessions that other programs keep on this machine."""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_file
from tui_agent.session.formats.reading import ImportRefused, Node
from tui_agent.session.formats.source import SourceFile
from tui_agent.session.formats.table import FORMATS, Format

__all__ = ["DetectedFile", "find_sessions"]

_HEAD_LINES = 20
"""Lines looked at for the directory a session worked in."""


@dataclass(frozen=True, slots=True)
class DetectedFile:
    """A file of another program that holds sessions."""

    path: Path
    format: str
    program: str
    project: str
    """The directory its sessions worked in, empty when the file doesn't say."""
    changed_at: int
    """Milliseconds since the epoch."""
    size: int
    """Bytes."""


def find_sessions(home: Path, environ: Mapping[str, str] = os.environ) -> list[DetectedFile]:
    """Return the files other programs keep in their usual places, newest first."""
    found: dict[Path, DetectedFile] = {}
    for row, path in _usual(home, environ):
        try:
            facts = path.stat()
        except OSError:
            continue  # gone in between
        if path not in found and is_file(path) and facts.st_size:
            at = int(facts.st_mtime * 1000)
            size = _size_below(path.parent) if path.name in row.whole_directory else facts.st_size
            found[path] = DetectedFile(path, row.name, row.program, _project(row, path), at, size)
    return sorted(found.values(), key=lambda one: (-one.changed_at, str(one.path)))


def _size_below(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("*") if is_file(file) and not file.is_symlink())


def _usual(home: Path, environ: Mapping[str, str]) -> Iterator[tuple[Format, Path]]:
    for row in FORMATS:
        for variable, below_home, pattern in row.places:
            directory = Path(environ.get(variable) or home / below_home) if variable else home / below_home
            yield from ((row, path) for path in directory.glob(pattern))


def _project(row: Format, path: Path) -> str:
    source = SourceFile(path, skip_damaged=True)
    try:
        if (project := row.project_of(source)) is not None:
            return project
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
