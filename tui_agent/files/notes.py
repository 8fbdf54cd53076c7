"""Reads and writes a project's notes: a Markdown file in the project, one list item per note."""

from pathlib import Path

from tui_agent.files.atomic import write_atomically
from tui_agent.path_checks import is_file, is_inside
from tui_agent.text_files.encodings import user_text

NOTES_FILE = ".tui-agent/notes.md"
"""Path of the notes, relative to the project."""
_TITLE = "# Notes"
_BULLET = "- "


class NoteError(ValueError):
    """The notes file leads out of the project; the message is for the user or the model."""


def notes_in(text: str) -> list[str]:
    return [
        line.removeprefix(_BULLET).strip() for line in text.split("\n") if line.startswith(_BULLET)
    ]


def read_notes(project: Path) -> str:
    """Return the text of the notes file, "" if there is none.

    Raises NoteError if it leads out of the project, OSError if it can't be read.
    """
    path = _notes_path(project)
    if is_file(path):
        return user_text(path.read_bytes()).replace("\r\n", "\n")
    return ""


def with_note(text: str, note: str) -> str:
    return f"{text.rstrip() or _TITLE}\n{_BULLET}{note}\n"


def without_note(text: str, note: str) -> str:
    lines = text.removesuffix("\n").split("\n")
    lines.reverse()
    row = f"{_BULLET}{note}"
    if row not in lines:
        return text
    lines.remove(row)
    return "\n".join([*reversed(lines), ""])


def write_notes(project: Path, text: str) -> None:
    """Replace the notes file atomically, or create it.

    Raises NoteError if it leads out of the project, OSError if it can't be written.
    """
    path = _notes_path(project)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())


def _notes_path(project: Path) -> Path:
    path = project / NOTES_FILE
    if not is_inside(project, path):
        raise NoteError(f"{NOTES_FILE} is a link that leads out of the project.")
    return path
