"""Files that hold many sessions, and sessions that are many files: what is damaged stops nothing that is not."""

import json
import shutil
import sqlite3
import tracemalloc
from pathlib import Path

import pytest

from tests.session.formats.test_neighbours import FILES, opencode
from tui_agent.app.importing import Importer, import_all, summary_of
from tui_agent.session.entries import TextPart, UserEntry
from tui_agent.session.formats.importing import find_sessions, read_file
from tui_agent.session.formats.incoming import PackedEntries
from tui_agent.session.formats.reading import ImportRefused
from tui_agent.session.store import Store

PROGRAMS = {"Codex", "Gemini CLI", "OpenCode", "Qwen Code", "Copilot CLI"}


def damage(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()


def second_session(path: Path) -> None:
    """Add a session after the others, whose only message is whole."""
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        text = json.dumps({"type": "text", "text": "later"})
        for table, changed in (
            ("session", {"id": "zz_later"}),
            ("message", {"id": "zz_message", "session_id": "zz_later"}),
            ("part", {"id": "zz_part", "message_id": "zz_message", "session_id": "zz_later", "data": text}),
        ):
            row = dict(connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()) | changed
            if table == "session":
                row["time_created"] += 10_000_000
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
    connection.close()


def test_a_database_whose_tables_are_damaged_is_refused_in_a_sentence(tmp_path):
    path = opencode(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"CREATE TABLE `session` (", b"CREATE TABLE `session` \xc1"))
    with pytest.raises(ImportRefused, match=r"opencode\.db can't be read"):
        read_file(path)


def test_a_damaged_message_stops_its_session_and_no_other(store: Store, tmp_path):
    path = opencode(tmp_path)
    second_session(path)
    whole = len(read_file(path))
    first = read_file(path)[0]
    damage(path, "UPDATE message SET data = '{not json' WHERE rowid = (SELECT min(rowid) FROM message)")
    [(_path, taken, _told)] = Importer(store).run([path])
    assert len(taken) == whole - 1
    told = summary_of(taken[-1])
    assert "message 1: it is not JSON" in told
    assert "That session was left out; --skip-damaged" in told
    [(_path, skipped, _told)] = Importer(store, skip_damaged=True).run([path])
    assert len(skipped) == whole
    [partly] = [one for one in skipped if one.left_out]
    assert partly.left_out["damaged message (message 1)"] == 1
    assert partly.entries < len(first.entries)


def test_a_database_of_one_damaged_session_says_so(store: Store, tmp_path):
    path = opencode(tmp_path)
    damage(path, "UPDATE message SET data = '{not json'")
    with pytest.raises(ImportRefused, match="message 1: it is not JSON"):
        read_file(path)


# -- OpenCode before its database -----------------------------------------------------------------------------


def stored(tmp_path: Path) -> Path:
    """Write what is in the database the way older versions did: a file for each record."""
    storage = tmp_path / "home/.local/share/opencode/storage"
    connection = sqlite3.connect(opencode(tmp_path))
    connection.row_factory = sqlite3.Row

    def write(path: str, value: dict) -> None:
        (storage / path).parent.mkdir(parents=True, exist_ok=True)
        (storage / path).write_text(json.dumps(value))

    for row in connection.execute("SELECT * FROM session"):
        info = {"id": row["id"], "directory": row["directory"], "title": row["title"], "projectID": "p"}
        info |= {"time": {"created": row["time_created"]}} | (
            {"parentID": row["parent_id"]} if row["parent_id"] else {}
        )
        write(f"session/p/{row['id']}.json", info)
    for row in connection.execute("SELECT * FROM message"):
        write(f"message/{row['session_id']}/{row['id']}.json", {**json.loads(row["data"]), "id": row["id"]})
    for row in connection.execute("SELECT * FROM part"):
        write(f"part/{row['message_id']}/{row['id']}.json", {**json.loads(row["data"]), "id": row["id"]})
    connection.close()
    return storage


def test_older_opencode_is_read_as_its_database_is_and_tells_of_sessions_not_of_their_pieces(store: Store, tmp_path):
    storage = stored(tmp_path)
    of_database = {session.id: session for session in read_file(tmp_path / "opencode.db")}
    for file in storage.glob("session/*/*.json"):
        [session] = read_file(file)
        same = of_database[session.id]
        assert [entry.model_dump() for entry in session.entries] == [entry.model_dump() for entry in same.entries]
        assert (session.title, session.cwd, session.origin) == (same.title, same.cwd, same.origin)
    count = len(of_database)
    told, imported, failed = import_all(store, storage)
    assert (len(imported), failed) == (count, 0), told
    again = import_all(store, storage)[1]
    assert [one.came.value for one in again] == ["known"] * count
    found = find_sessions(tmp_path / "home", {})
    assert {row.program for row in found} == {"OpenCode"}


def test_a_directory_of_all_programs_tells_of_sessions_not_of_lists_and_pieces(store: Store, tmp_path):
    for program, write in FILES.items():
        place = tmp_path / "all" / program
        place.mkdir(parents=True)
        path = write(place)
        if place not in path.parents:
            shutil.copy(path, place)
    (tmp_path / "all/gemini-cli/logs.json").write_text('[{"sessionId": "s", "messageId": 0, "type": "user"}]')
    told, imported, failed = import_all(store, tmp_path / "all")
    assert ({one.source for one in imported}, failed) == (PROGRAMS, 0), told
    assert {one.came.value for one in import_all(store, tmp_path / "all")[1]} == {"known"}


@pytest.mark.parametrize(
    ("messages", "title"),
    [
        (["fix the total"], "fix the total"),
        ([("<command-message>review</command-message>\n<command-name>/review</command-name>\n"
          "<command-args>the shop</command-args>")], "/review the shop"),
        (["<command-name>/clear</command-name>", "<local-command-stdout></local-command-stdout>", "fix it"], "fix it"),
        (["<local-command-caveat>Caveat: run locally",
          "<command-name>/compact</command-name><command-args>keep x</command-args>",
          "<local-command-stdout>Compacted</local-command-stdout>", "go on"], "go on"),
        (["<command-name>/init</command-name>\n<command-args></command-args>"], "/init"),
    ],
)  # fmt: skip
def test_a_session_of_claude_code_is_called_by_what_was_typed_first(store: Store, tmp_path, messages, title):
    path, above = tmp_path / "s.jsonl", None
    with path.open("w") as file:
        for number, text in enumerate(messages):
            note = "caveat" in text
            line = {"sessionId": "s", "uuid": f"u{number}", "parentUuid": above, "type": "user", "cwd": "/shop",
                    "timestamp": "2026-01-02T03:04:05Z", "isMeta": note,
                    "message": {"role": "user", "content": text}}  # fmt: skip
            above = f"u{number}"
            file.write(json.dumps(line) + "\n")
    [(_path, [imported], _told)] = Importer(store).run([path])
    assert imported.title == title
    assert imported.entries == sum("local" not in text and "/compact" not in text for text in messages)


def test_entries_on_their_way_in_take_little_more_than_their_text() -> None:
    entries, text = PackedEntries(), "✅" + "x" * 2_000
    tracemalloc.start()
    try:
        for number in range(1, 1_001):
            entries.append(UserEntry(id=number, parts=(TextPart(text=f"{text}{number}"),)))
        entries[0] = entries[0].model_copy(update={"parts": (TextPart(text="another \ud83d"),)})
        held, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1.5 * 1_000 * len(text.encode())
    assert [entry.id for entry in entries] == list(range(1, 1_001))
    assert [entry.text for entry in entries[998:] if isinstance(entry, UserEntry)] == [f"{text}999", f"{text}1000"]
