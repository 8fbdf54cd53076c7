"""The project's notes file: its notes, and what a drop and its undo do to the other lines."""

import codecs
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui_agent.files.notes import (
    NOTES_FILE,
    NoteError,
    add_note,
    drop_note,
    notes_in,
    read_notes,
    with_note,
    without_note,
)

LINES = st.sampled_from(
    [
        b"# Notes",
        b"",
        b"Own words.",
        b"- use pnpm",
        b"-  use pnpm",
        b"- use pnpm \t",
        b"- use pnpm\r",
        b"  - indented",
        b"- a \xff byte",
        b"- \xc3\xa4",
        b"- ",
    ]
)


def write(project: Path, data: bytes) -> Path:
    path = project / NOTES_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_notes_are_lines_that_come_and_go() -> None:
    text = with_note(with_note("", "one"), "two")

    assert notes_in(text) == ["one", "two"]
    assert without_note(text, "one") == "# Notes\n- two\n"
    assert notes_in(with_note("Own words.\n\n- old\n", "new")) == ["old", "new"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, max_size=6), st.booleans())
def test_every_note_that_is_listed_can_be_dropped_and_no_other_line_changes(
    tmp_path: Path, lines: list[bytes], is_ended: bool
) -> None:
    rows = [line + b"\n" for line in lines]
    if rows and not is_ended:
        rows[-1] = rows[-1].removesuffix(b"\n")
    for note in read_notes_of(tmp_path, rows):
        path = write(tmp_path, b"".join(rows))
        drop_note(tmp_path, note)
        left = path.read_bytes()
        removals = [b"".join(rows[:at] + rows[at + 1 :]) for at in range(len(rows))]
        assert left in removals
        before = read_notes_of(tmp_path, rows)
        path.write_bytes(left)
        assert sorted([*read_notes(tmp_path), note]) == sorted(before)


def read_notes_of(project: Path, rows: list[bytes]) -> list[str]:
    write(project, b"".join(rows))
    return read_notes(project)


@pytest.mark.parametrize(
    ("name", "bom"),
    [
        ("utf-8", b""),
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("cp1252", b""),
    ],
)
def test_a_drop_and_its_undo_keep_encoding_and_line_endings(
    tmp_path: Path, name: str, bom: bytes
) -> None:
    text = "# Größen\r\n- für Müller: über später\r\n- Use pnpm.\r\n"
    path = write(tmp_path, bom + text.encode(name))

    assert read_notes(tmp_path) == ["für Müller: über später", "Use pnpm."]
    drop_note(tmp_path, "Use pnpm.")
    assert path.read_bytes() == bom + text.removesuffix("- Use pnpm.\r\n").encode(name)
    add_note(tmp_path, "Use pnpm.")
    assert path.read_bytes() == bom + text.encode(name)


def test_undecodable_bytes_stay_when_another_note_is_dropped(tmp_path: Path) -> None:
    path = write(tmp_path, "- größe ".encode() + b"\xff\n- two\n")

    assert read_notes(tmp_path) == ["größe \ufffd", "two"]
    drop_note(tmp_path, "two")
    assert path.read_bytes() == "- größe ".encode() + b"\xff\n"
    drop_note(tmp_path, "größe \ufffd")
    assert path.read_bytes() == b""


def test_a_note_that_is_gone_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path, b"- one\n")

    with pytest.raises(NoteError, match="no longer contains this line"):
        drop_note(tmp_path, "two")
    assert path.read_bytes() == b"- one\n"


def test_a_character_that_the_encoding_lacks_is_reported(tmp_path: Path) -> None:
    data = "# Größen\n- für Müller: über später\n".encode("cp1252")
    path = write(tmp_path, data)

    with pytest.raises(NoteError, match="cp1252"):
        add_note(tmp_path, "日本")
    assert path.read_bytes() == data


def test_a_file_that_is_not_text_is_reported(tmp_path: Path) -> None:
    write(tmp_path, b"- one\n\0\1\2\n")

    with pytest.raises(NoteError, match="binary"):
        read_notes(tmp_path)
