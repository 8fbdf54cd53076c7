"""Reads a project's notes file, and changes it when the user drops a note.

The notes file is a Markdown file in the project, with one list item per note. It was written by
earlier versions of the program. New lines are stored in the memory instead (``files.memory``). A
note is added only when the user undoes its removal.
"""

from pathlib import Path

from tui_agent.errors import ToolError, UserFacingError
from tui_agent.files.atomic import write_atomically
from tui_agent.path_checks import is_file, is_inside, real_path
from tui_agent.text_files.encodings import odd_bytes_shown
from tui_agent.text_files.lines import lines_of, newline_of
from tui_agent.text_files.reading import TextFile, load, new_file

NOTES_FILE = ".tui-agent/notes.md"
"""Path of the notes, relative to the project."""
_TITLE = "# Notes"
_BULLET = "- "
_MAX_BYTES = 4_000_000


class NoteError(UserFacingError):
    """Raised when the notes file can't be read or changed. The message tells the user why."""


def read_notes(project: Path) -> list[str]:
    """Return the notes of a project, in the file's order, or [] if there is no notes file.

    Undecodable bytes become U+FFFD. Raises NoteError if the file's path leads out of the project,
    or if the file isn't text or is larger than 4 MB. Raises OSError if the file can't be read.
    """
    return notes_in(_load(_notes_path(project)).text)


def add_note(project: Path, note: str) -> None:
    """Append a note to the file, in the file's encoding and with its line endings.

    Raises the errors of `read_notes`. Also raises NoteError if the file's encoding lacks a
    character of the note, and OSError if the file can't be written.
    """
    path = _notes_path(project)
    file = _load(path)
    _write(path, file, with_note(file.text, note))


def drop_note(project: Path, note: str) -> None:
    """Remove a note from the file. All other lines keep their bytes.

    ``note`` is a note that `read_notes` returned. Raises the errors of `read_notes`. Also raises
    NoteError if the file no longer contains the note, and OSError if the file can't be written.
    """
    path = _notes_path(project)
    file = _load(path)
    _write(path, file, without_note(file.text, note))


def notes_in(text: str) -> list[str]:
    """Return the notes in the text of a notes file."""
    notes: list[str] = []
    for line in lines_of(text):
        note = _note_of(line)
        if note is not None:
            notes.append(note)
    return notes


def with_note(text: str, note: str) -> str:
    """Return the text of a notes file after adding a note at the end."""
    newline = newline_of(text)
    return f"{text.rstrip() or _TITLE}{newline}{_BULLET}{note}{newline}"


def without_note(text: str, note: str) -> str:
    """Return the text of a notes file without the last note that equals ``note``.

    Raises NoteError if there is no such note.
    """
    lines = lines_of(text)
    for index in reversed(range(len(lines))):
        if _note_of(lines[index]) == note:
            del lines[index]
            return "".join(lines)
    raise NoteError(f"{NOTES_FILE} no longer contains this line.")


def _note_of(line: str) -> str | None:
    """Return the note in a line of the file, or None if the line is not a list item."""
    if not line.startswith(_BULLET):
        return None
    return odd_bytes_shown(line.removeprefix(_BULLET).strip())


def _load(path: Path) -> TextFile:
    if not is_file(path):
        return new_file(path)
    try:
        return load(path, NOTES_FILE, max_bytes=_MAX_BYTES)
    except ToolError as error:
        raise NoteError(str(error)) from error


def _write(path: Path, file: TextFile, text: str) -> None:
    try:
        data = file.encoded(text, NOTES_FILE)
    except ToolError as error:
        raise NoteError(str(error)) from error
    write_atomically(path, data)


def _notes_path(project: Path) -> Path:
    path = project / NOTES_FILE
    if not is_inside(project, path):
        raise NoteError(f"{NOTES_FILE} is a link that leads out of the project.")
    return real_path(path)
