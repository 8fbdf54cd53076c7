"""Files that hold many sessions, and sessions that are many files: what is damaged stops nothing that is not."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.session.formats.test_neighbours import FILES, crush, opencode
from tui_agent.app.importing import Importer, import_all, summary_of
from tui_agent.session.formats.detecting import find_sessions
from tui_agent.session.formats.importing import read_file
from tui_agent.session.formats.reading import ImportRefused
from tui_agent.session.store import Store

PROGRAMS = {"Codex", "Gemini CLI", "Mistral Vibe", "OpenCode", "Crush", "aider"}


def damage(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()


DATABASES = {
    "opencode": (opencode, "message", "data"),
    "crush": (crush, "messages", "parts"),
}


def second_session(path: Path, program: str) -> None:
    """Add a session after the others, whose only message is whole."""
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        sessions = "session" if program == "opencode" else "sessions"
        messages = DATABASES[program][1]
        for table, where in ((sessions, "1"), (messages, "1")):
            row = dict(connection.execute(f"SELECT * FROM {table} WHERE {where} LIMIT 1").fetchone())
            changed = {"id": "zz_later" if table == sessions else "zz_message"}
            if table == messages:
                changed["session_id"] = "zz_later"
            else:
                created = "time_created" if program == "opencode" else "created_at"
                changed[created] = row[created] + 10_000_000
            row |= changed
            columns = ", ".join(row)
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(row.values()))
        if program == "opencode":
            part = dict(connection.execute("SELECT * FROM part LIMIT 1").fetchone())
            text = json.dumps({"type": "text", "text": "later"})
            part |= {"id": "zz_part", "message_id": "zz_message", "session_id": "zz_later", "data": text}
            connection.execute(
                f"INSERT INTO part ({', '.join(part)}) VALUES ({', '.join('?' * len(part))})", tuple(part.values())
            )
    connection.close()


def test_a_database_whose_tables_are_damaged_is_refused_in_a_sentence(tmp_path):
    path = opencode(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"CREATE TABLE `session` (", b"CREATE TABLE `session` \xc1"))
    with pytest.raises(ImportRefused, match=r"opencode\.db can't be read"):
        read_file(path)


@pytest.mark.parametrize("program", DATABASES)
def test_a_damaged_message_stops_its_session_and_no_other(store: Store, tmp_path, program):
    make, table, column = DATABASES[program]
    path = make(tmp_path)
    second_session(path, program)
    whole = len(read_file(path))
    first = read_file(path)[0]
    damage(path, f"UPDATE {table} SET {column} = '{{not json' WHERE rowid = (SELECT min(rowid) FROM {table})")
    taken = Importer(store).take(path)
    assert len(taken) == whole - 1
    told = summary_of(taken[-1])
    assert "message 1: it is not JSON" in told
    assert "That session was left out; --skip-damaged" in told
    skipped = Importer(store, skip_damaged=True).take(path)
    assert len(skipped) == whole
    [partly] = [one for one in skipped if one.left_out]
    assert partly.left_out["damaged message (message 1)"] == 1
    assert partly.entries < len(first.entries)


@pytest.mark.parametrize("program", DATABASES)
def test_a_database_of_one_damaged_session_says_so(store: Store, tmp_path, program):
    make, table, column = DATABASES[program]
    path = make(tmp_path)
    damage(path, f"UPDATE {table} SET {column} = '{{not json'")
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


def test_older_opencode_is_read_as_its_database_is(tmp_path):
    storage = stored(tmp_path)
    of_database = {session.id: session for session in read_file(tmp_path / "opencode.db")}
    files = sorted(storage.glob("session/*/*.json"))
    assert files
    for file in files:
        [session] = read_file(file)
        same = of_database[session.id]
        assert [entry.model_dump() for entry in session.entries] == [entry.model_dump() for entry in same.entries]
        assert (session.title, session.cwd, session.origin) == (same.title, same.cwd, same.origin)


def test_a_directory_of_older_opencode_tells_of_sessions_not_of_their_pieces(store: Store, tmp_path):
    storage = stored(tmp_path)
    count = len(list(storage.glob("session/*/*.json")))
    told, imported, failed = import_all(store, storage)
    assert (len(imported), failed) == (count, 0), told
    again = import_all(store, storage)[1]
    assert [one.came.value for one in again] == ["known"] * count
    found = find_sessions(tmp_path / "home", tmp_path, {})
    assert {row.program for row in found} == {"OpenCode"}


# -- Mistral Vibe before version 3 ----------------------------------------------------------------------------

CALL = {"id": "c1", "index": 0, "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
SAID = [
    {"role": "user", "content": "list the files"},
    {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [CALL]},
    {"role": "tool", "content": "a.py", "name": "bash", "tool_call_id": "c1"},
    {"role": "assistant", "content": "One file."},
    {"role": "tool", "content": "<tool_error>bash failed: no</tool_error>", "tool_call_id": "c1"},
]
META = {
    "session_id": "0b9e2d1c-aaaa", "start_time": "2026-01-02T03:04:05", "end_time": "2026-01-02T03:09:05",
    "environment": {"working_directory": "/home/ann/shop"}, "stats": {"steps": 2, "session_cost": 0.25},
}  # fmt: skip


def first_version(tmp_path: Path) -> Path:
    path = tmp_path / "home/.vibe/logs/session/session_20260102_030405_0b9e2d1c.json"
    path.parent.mkdir(parents=True)
    meta = {**META, "agent_config": {"active_model": "devstral-2"}, "total_messages": 6}
    data = {"metadata": meta, "messages": [{"role": "system", "content": "You are Vibe."}, *SAID]}
    path.write_text(json.dumps(data, indent=2))
    return path


def second_version(tmp_path: Path) -> Path:
    path = tmp_path / "home/.vibe/logs/session/session_20260102_030405_0b9e2d1c/messages.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(message) + "\n" for message in SAID))
    meta = {**META, "title": "list the files", "config": {"active_model": "devstral-2"}}
    (path.parent / "meta.json").write_text(json.dumps(meta, indent=2))
    return path


@pytest.mark.parametrize("write", [first_version, second_version])
def test_older_vibe_logs_are_read_and_found(store: Store, tmp_path, write):
    path = write(tmp_path)
    [session] = read_file(path)
    kinds = [entry.kind for entry in session.entries]
    assert kinds == ["user", "assistant", "tool_result", "assistant", "tool_result"]
    asked, result, failed = session.entries[1], session.entries[2], session.entries[4]
    assert [part.type for part in asked.parts] == ["reasoning", "tool_call"]
    assert (asked.model, result.tool, result.title, result.output) == ("devstral-2", "bash", "ls", "a.py")
    assert (failed.status.value, failed.output) == ("error", "bash failed: no")
    assert (session.cwd, session.side_cost, session.leaf) == ("/home/ann/shop", 0.25, 5)
    [found] = find_sessions(tmp_path / "home", tmp_path, {})
    assert (found.path, found.program, found.project) == (path, "Mistral Vibe", "/home/ann/shop")
    told, imported, failed = import_all(store, path.parent)
    assert (len(imported), failed) == (1, 0), told
    assert imported[0].title == "list the files"


def test_a_directory_of_all_programs_tells_of_sessions_not_of_lists_and_pieces(store: Store, tmp_path):
    for program, write in FILES.items():
        place = tmp_path / "all" / program
        place.mkdir(parents=True)
        path = write(place)
        if place not in path.parents:
            shutil.copytree(path.parent, place / "s") if program == "vibe" else shutil.copy(path, place)
    (tmp_path / "all/gemini-cli/logs.json").write_text('[{"sessionId": "s", "messageId": 0, "type": "user"}]')
    told, imported, failed = import_all(store, tmp_path / "all")
    assert ({one.source for one in imported}, failed) == (PROGRAMS, 0), told
    assert {one.came.value for one in import_all(store, tmp_path / "all")[1]} == {"known"}


def test_a_directory_of_claude_code_passes_over_subagents_files(store: Store, tmp_path):
    line = {"sessionId": "s", "uuid": "u1", "parentUuid": None, "type": "user", "cwd": "/shop",
            "timestamp": "2026-01-02T03:04:05Z", "message": {"role": "user", "content": "fix the total"}}  # fmt: skip
    project = tmp_path / "projects/-shop"
    (project / "s/subagents").mkdir(parents=True)
    (project / "s.jsonl").write_text(json.dumps(line) + "\n")
    for number in range(3):
        side = {**line, "uuid": f"a{number}", "isSidechain": True, "agentId": str(number)}
        (project / f"s/subagents/agent-{number}.jsonl").write_text(json.dumps(side) + "\n")
    told, imported, failed = import_all(store, tmp_path / "projects")
    assert (len(imported), failed) == (1, 0), told
    assert imported[0].title == "fix the total"
    assert told[-1] == "1 imported, 3 files hold no conversation of their own."


@pytest.mark.parametrize(
    ("messages", "title"),
    [
        (["fix the total"], "fix the total"),
        ([("<command-message>review</command-message>\n<command-name>/review</command-name>\n"
          "<command-args>the shop</command-args>")], "/review the shop"),
        (["<command-name>/clear</command-name>", "<local-command-stdout></local-command-stdout>", "fix it"], "fix it"),
        (["<command-name>/init</command-name>\n<command-args></command-args>"], "/init"),
    ],
)  # fmt: skip
def test_a_session_of_claude_code_is_called_by_what_was_typed_first(store: Store, tmp_path, messages, title):
    path, above = tmp_path / "s.jsonl", None
    with path.open("w") as file:
        for number, text in enumerate(messages):
            line = {"sessionId": "s", "uuid": f"u{number}", "parentUuid": above, "type": "user", "cwd": "/shop",
                    "timestamp": "2026-01-02T03:04:05Z", "message": {"role": "user", "content": text}}  # fmt: skip
            above = f"u{number}"
            file.write(json.dumps(line) + "\n")
    [imported] = Importer(store).take(path)
    assert imported.title == title
