"""Files that Codex, Gemini CLI, Qwen Code, Copilot CLI and OpenCode really wrote."""

import json
import os
import shutil
import sqlite3
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from tui_agent.app.importing import Importer, import_all, summary_of
from tui_agent.context.tokens import TokenCounter
from tui_agent.session.entries import ReasoningPart, TextPart, UserEntry
from tui_agent.session.formats import native
from tui_agent.session.formats.copies import copies_of
from tui_agent.session.formats.importing import ImportChange, find_sessions, import_file, read_file
from tui_agent.session.formats.incoming import IncomingSession, PackedEntries
from tui_agent.session.formats.reading import ImportRefused, NoConversation
from tui_agent.session.store import Store

DATA = Path(__file__).parent / "data"


def database(path: Path, *scripts: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        for script in scripts:
            connection.executescript(script)
    connection.close()
    return path


def opencode(tmp_path: Path) -> Path:
    return database(tmp_path / "opencode.db", (DATA / "opencode.sql").read_text())


FILES: dict[str, Callable[[Path], Path]] = {
    "codex": lambda _: DATA / "codex-rollout.jsonl",
    "gemini-cli": lambda _: DATA / "gemini-chat.jsonl",
    "qwen-code": lambda _: DATA / "qwen-chat.jsonl",
    "copilot-cli": lambda _: DATA / "copilot-events.jsonl",
    "opencode": opencode,
}


def said(session: IncomingSession) -> list[str]:
    """What persons and models wrote on the path to the leaf, calls and outputs of tools included."""
    lines: list[str] = []
    at = session.leaf
    while at is not None:
        entry = session.entries[at - 1]
        match entry.kind:
            case "user":
                lines.append(
                    f"user{f' ({entry.synthetic})' if entry.synthetic else ''}: {entry.text.splitlines()[0]}"
                )
            case "assistant":
                thought = "".join(
                    f"<{part.text}> " for part in entry.parts if isinstance(part, ReasoningPart)
                )
                calls = "".join(f" [{call.tool} {call.arguments}]" for call in entry.tool_calls)
                lines.append(f"model: {thought}{entry.text}{calls}")
            case "tool_result":
                lines.append(f"{entry.status.value}: {entry.output.strip().splitlines()[-1]}")
            case "model_change":
                lines.append(f"now: {entry.model}")
            case _:
                lines.append(f"{entry.kind}: {entry.summary.splitlines()[-1]}")
        at = entry.parent_id
    return lines[::-1]


def test_a_rollout_of_codex_is_a_session_with_its_compaction() -> None:
    [session] = read_file(DATA / "codex-rollout.jsonl")
    assert said(session) == [
        "user (codex:context): <environment_context>",
        "now: local/gpt-5.1-codex",
        "user: use a tool please",
        'model: <**Looking** I should look.>  [exec_command {"cmd": "echo hello > made.txt; cat made.txt"}]',
        "completed: hello",
        "model: <**Looking** I should look.> Done, answer 566.",
        "model: SUMMARY: the file was made.",
        "compaction: SUMMARY: the file was made.",
        "user: thanks",
        "model: <**Looking** I should look.> Done, answer 568.",
    ]
    answer, compaction = session.entries[3], session.entries[7]
    assert (answer.model, session.cwd) == ("local/gpt-5.1-codex", "/home/ann/shop")
    assert (answer.usage.input, answer.usage.cache_read, answer.usage.output) == (1365, 200, 615)
    assert compaction.details.user_messages == ("use a tool please",)
    assert session.left_out == {"message of “developer”": 1}


def codex_line(kind: str, **payload: object) -> str:
    return (
        json.dumps({"timestamp": "2026-01-02T03:04:05.000Z", "type": kind, "payload": payload})
        + "\n"
    )


def codex_user(text: str) -> str:
    content = [{"type": "input_text", "text": text}]
    return codex_line("response_item", type="message", role="user", content=content) + codex_line(
        "event_msg", type="user_message", message=text
    )


def test_what_codex_writes_around_an_image_is_no_text_of_the_users(tmp_path: Path) -> None:
    around = ('<image name=[Image #1] path="red.png">', "</image>", "What is <image>?")
    texts = [{"type": "input_text", "text": text} for text in around]
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    path = tmp_path / "rollout-2026-01-02T03-04-05-a.jsonl"
    path.write_text(
        codex_line("session_meta", id="a", cwd="/shop", timestamp="2026-01-02T03:04:05.000Z")
        + codex_line(
            "response_item", type="message", role="user", content=[texts[0], image, *texts[1:]]
        )
        + codex_line("event_msg", type="user_message", message=around[2])
    )
    [session] = read_file(path)
    [user] = session.entries
    assert [part.type for part in user.parts] == ["image", "text"]
    assert user.text == around[2]


def test_a_turn_that_was_taken_back_in_codex_is_a_branch(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    answer = codex_line(
        "response_item",
        type="message",
        role="assistant",
        content=[{"type": "output_text", "text": "no"}],
    )
    path.write_text(
        codex_line("session_meta", id="a", cwd="/shop", timestamp="2026-01-02T03:04:05.000Z")
        + codex_user("first")
        + answer
        + codex_user("wrong")
        + answer
        + codex_line("event_msg", type="thread_rolled_back", num_turns=1)
        + codex_user("right")
    )
    [session] = read_file(path)
    assert said(session) == ["user: first", "model: no", "user: right"]
    assert len(session.entries) == 5


def codex_rollout(
    name: Path, thread: str, minute: int, *turns: str, base: tuple[str, int] | None = None
) -> Path:
    """A rollout of one head and two lines for each turn, numbered on from where it begins."""
    meta: dict[str, object] = {
        "id": thread,
        "cwd": "/shop",
        "timestamp": f"2026-01-02T03:{minute:02}:00.000Z",
    }
    if base is not None:
        meta["history_base"] = {
            "thread_id": base[0],
            "end_ordinal_exclusive": base[1],
            "end_byte_offset": 0,
        }
    lines = codex_line("session_meta", **meta) + "".join(map(codex_user, turns))
    first = 0 if base is None else base[1]
    numbered = [
        json.loads(line) | {"ordinal": first + at} for at, line in enumerate(lines.splitlines())
    ]
    name.parent.mkdir(parents=True, exist_ok=True)
    name.write_text("".join(json.dumps(line) + "\n" for line in numbered))
    return name


THREAD, SECOND, FORK = (f"01a207c4-c71b-79c2-80fb-{number:012}" for number in range(3))


def test_messages_taken_back_in_codex_are_branches_of_one_session(
    store: Store, tmp_path: Path
) -> None:
    days = tmp_path / "sessions" / "2026" / "01"
    head = "rollout-2026-01-02T03-04-05-"
    first = codex_rollout(days / "02" / f"{head}{THREAD}.jsonl", THREAD, 0, "one", "two", "three")
    second = codex_rollout(
        days / "02" / f"{head}{THREAD}_{SECOND}.jsonl",
        THREAD,
        1,
        "instead",
        "four",
        base=(THREAD, 5),
    )
    third = codex_rollout(
        days / "03" / f"{head}{THREAD}_{FORK}.jsonl", THREAD, 2, "again", base=(SECOND, 8)
    )
    outcomes = [
        import_file(store, path, estimate=lambda _entry: 1)[0]
        for path in (first, second, third, first)
    ]
    assert [(one.came.value, one.entries) for one in outcomes] == [
        ("new", 3),
        ("more", 2),
        ("more", 1),
        ("known", 0),
    ]
    assert len({one.session_id for one in outcomes}) == 1
    [session] = read_file(third)
    assert said(session) == ["user: one", "user: two", "user: instead", "user: again"]
    fork = codex_rollout(days / "03" / f"{head}{FORK}.jsonl", FORK, 3, "fork", base=(SECOND, 8))
    [forked] = read_file(fork)
    assert said(forked) == ["user: one", "user: two", "user: instead", "user: fork"]
    assert forked.id != session.id
    first.unlink()
    [alone] = read_file(second)
    assert alone.left_out == {"earlier history, which is in a missing file": 1}


def test_a_chat_of_gemini_that_was_resumed_is_one_path(tmp_path: Path) -> None:
    chats = tmp_path / "tmp" / "shop" / "chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text("/home/ann/shop")
    [session] = read_file(Path(shutil.copy(DATA / "gemini-chat.jsonl", chats / "session-1.jsonl")))
    command = {"command": "echo hello > made.txt; cat made.txt", "description": "Write a file"}
    assert said(session) == [
        "user (gemini-cli:context): <session_context>",
        "user: use a tool please",
        f"model: <**Looking**\n\nI should look.> Looking. [run_shell_command {json.dumps(command)}]",
        "completed: </untrusted_context>",
        "model: <**Looking**\n\nI should look.> Done, answer 6.",
        "user: thanks",
        "model: <**Looking**\n\nI should look.> Done, answer 9.",
    ]
    assert (session.cwd, session.entries[2].model) == ("/home/ann/shop", "gemini/gemini-2.5-pro")
    assert session.entries[2].usage.cache_read == 200


def test_a_chat_of_gemini_goes_back_before_a_message(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    thanks = json.loads((DATA / "gemini-chat.jsonl").read_text().splitlines()[-4])["id"]
    lines = map(json.loads, (DATA / "gemini-chat.jsonl").read_text().splitlines())
    written = {line["id"]: line for line in lines if "id" in line}
    left = [line for name, line in written.items() if name != thanks][:-1]
    # The list that follows has no context any more.
    undone = json.dumps({"$rewindTo": thanks}) + "\n" + json.dumps({"$set": {"messages": left}})
    again = json.dumps(
        {"id": "n", "timestamp": "2026-11-22T12:03:00Z", "type": "user", "content": "instead"}
    )
    path.write_text((DATA / "gemini-chat.jsonl").read_text() + f"{undone}\n{again}\n")
    [session] = read_file(path)
    assert said(session)[-2:] == [
        "model: <**Looking**\n\nI should look.> Done, answer 6.",
        "user: instead",
    ]
    assert [entry.parent_id for entry in session.entries].count(None) == 1
    assert len(session.entries) == 8


def gemini_chat(tmp_path: Path, *lines: dict[str, object]) -> IncomingSession:
    path = tmp_path / "session.jsonl"
    head = {"sessionId": "s", "projectHash": "h", "startTime": "2026-11-22T12:02:18Z"}
    path.write_text("".join(json.dumps(line) + "\n" for line in (head, *lines)))
    [session] = read_file(path)
    return session


def gemini_user(name: str, *content: object) -> dict[str, object]:
    return {"id": name, "type": "user", "content": list(content)}


def gemini_response(call: str, **response: str) -> dict[str, object]:
    return {"functionResponse": {"id": call, "name": "sh", "response": response}}


def gemini_answer(
    name: str, *content: object, calls: dict[str, list[object]], status: str = "success"
) -> dict[str, object]:
    """An answer; ``calls`` has the results by call id."""
    made = []
    for call, result in calls.items():
        made.append({"id": call, "name": "sh", "args": {}, "status": status, "result": result})
    return {"id": name, "type": "gemini", "content": list(content), "toolCalls": made}


def test_parallel_calls_of_gemini_have_their_own_outputs_after_a_compression(
    tmp_path: Path,
) -> None:
    # Gemini CLI then writes the calls into the content too, and all responses as each one's result.
    asked = [{"functionCall": {"id": call, "name": "sh", "args": {}}} for call in ("c1", "c2")]
    both: list[object] = [gemini_response("c1", output="ONE"), gemini_response("c2", output="TWO")]
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    result = [*both, {"text": "a picture"}, image]
    kept = [
        gemini_user("s", {"text": "summary"}),
        gemini_answer("a", *asked, calls={"c1": result, "c2": result}),
        gemini_user("r", *result),
    ]
    session = gemini_chat(tmp_path, {"$set": {"messages": kept}})
    assert said(session) == [
        "user: summary",
        "model:  [sh {}] [sh {}]",
        "completed: ONE",
        "completed: TWO",
        "user: a picture",
    ]
    assert [part.type for part in session.entries[-1].parts] == ["text", "image"]


def test_a_cancelled_call_of_gemini_is_interrupted_and_a_failed_one_an_error(
    tmp_path: Path,
) -> None:
    for status, imported in (
        ("cancelled", "interrupted"),
        ("error", "error"),
        ("success", "error"),
    ):
        result: list[object] = [gemini_response("c", error="no")]
        answer = gemini_answer("a", calls={"c": result}, status=status)
        session = gemini_chat(tmp_path, gemini_user("u", "go"), answer)
        assert said(session)[-1] == f"{imported}: no"


def test_a_message_written_again_by_gemini_replaces_the_first(tmp_path: Path) -> None:
    session = gemini_chat(
        tmp_path,
        gemini_user("u", {"text": "one"}),
        gemini_answer("a", {"text": "so"}, calls={}),
        gemini_user("u", {"text": "one changed"}),
        gemini_answer("a", {"text": "so changed"}, calls={}),
    )
    assert said(session) == ["user: one changed", "model: so changed"]


def test_a_chat_of_gemini_that_goes_back_to_an_unknown_message_begins_again(
    tmp_path: Path,
) -> None:
    back: dict[str, object] = {"$rewindTo": "unknown"}
    session = gemini_chat(tmp_path, gemini_user("u", "one"), back, gemini_user("v", "two"))
    assert said(session) == ["user: two"]


def test_a_dropped_message_of_gemini_that_is_written_again_is_added(tmp_path: Path) -> None:
    session = gemini_chat(
        tmp_path,
        gemini_user("u", "one"),
        gemini_answer("a", "so", calls={}),
        {"$rewindTo": "u"},
        gemini_user("u", "two"),
        gemini_answer("a", "different", calls={}),
    )
    assert said(session) == ["user: two", "model: different"]
    assert len(session.entries) == 4


def test_texts_in_lists_of_gemini_are_read(tmp_path: Path) -> None:
    answer = gemini_answer("a", "so", calls={"c": ["text", gemini_response("c", output="ONE")]})
    session = gemini_chat(tmp_path, gemini_user("u", "one"), answer)
    assert said(session) == ["user: one", "model: so [sh {}]", "completed: ONE"]


def test_a_chat_of_qwen_code_is_no_session_of_claude_code() -> None:
    [session] = read_file(DATA / "qwen-chat.jsonl")
    assert said(session) == [
        "user: use a tool please",
        'model: <I should look.> Let me do that. [run_shell_command {"command": "ls", "is_background": false}]',
        "completed: Process Group PGID: 19264",
        'model: <All is well.> Answer 2: done with "".',
        "user: and two more",
        (
            'model: <I should look.> Let me do that. [read_file {"file_path": "/nowhere/none.txt"}]'
            ' [run_shell_command {"command": "false", "is_background": false}]'
        ),
        "error: File not found: /nowhere/none.txt",
        "completed: Process Group PGID: 20442",
        'model: <All is well.> Answer 4: done with "".',
    ]
    assert (session.source, session.cwd, session.left_out) == ("Qwen Code", "/home/ann/shop", {})
    assert session.entries[1].usage.input == 19676


def test_a_rewound_message_of_qwen_code_is_a_branch_and_a_compression_a_compaction(
    tmp_path: Path,
) -> None:
    path = tmp_path / "chat.jsonl"
    lines = (DATA / "qwen-chat.jsonl").read_text().splitlines()
    first = json.loads(lines[-1])
    history = [{"role": "user", "parts": [{"text": "SUMMARY: the file was made."}]}]
    payload = {"info": {"originalTokenCount": 9, "newTokenCount": 1}, "compressedHistory": history}
    added: list[dict[str, object]] = [
        {
            "uuid": "r",
            "parentUuid": json.loads(lines[7])["uuid"],
            "type": "system",
            "subtype": "rewind",
        },
        {
            "uuid": "c",
            "parentUuid": "r",
            "type": "system",
            "subtype": "chat_compression",
            "systemPayload": payload,
        },
        {
            "uuid": "n",
            "parentUuid": "c",
            "type": "user",
            "message": {"parts": [{"text": "instead"}]},
        },
    ]
    path.write_text(
        "\n".join(
            [*lines, *(json.dumps({"sessionId": first["sessionId"], **line}) for line in added)]
        )
        + "\n"
    )
    [session] = read_file(path)
    assert said(session)[3:] == [
        'model: <All is well.> Answer 2: done with "".',
        "compaction: SUMMARY: the file was made.",
        "user: instead",
    ]


def test_events_of_copilot_cli_are_a_session_with_its_image() -> None:
    [session] = read_file(DATA / "copilot-events.jsonl")
    lines = said(session)
    assert lines[0] == "user: use a tool please"
    assert lines[1].startswith(
        'model: <I should look.> Let me do that. [bash {"command": "ls; echo hello > made.txt"'
    )
    assert lines[2].startswith("error: Permission denied")
    assert lines[3:] == [
        "completed: <shellId: 0 completed with exit code 0>",
        'model: <All is well.> Answer 8: done with "".',
        "user: second one",
        'model: <All is well.> Answer 9: done with "e at path /home/ann/shop/red.png".',
        "compaction: SUMMARY: the file was made.",
    ]
    assert session.blobs[session.entries[5].parts[1].blob].startswith(b"\x89PNG")
    assert (session.entries[1].usage.input, session.cwd) == (12011, "/home/ann/shop")
    assert session.left_out == {"message of “system”": 1}


def test_a_database_of_opencode_and_a_message_taken_back_in_it(tmp_path: Path) -> None:
    [session] = read_file(opencode(tmp_path))
    assert said(session) == [
        'user: "use a tool please"',
        'model: <I should look.> Looking. [bash {"command": "echo hello > made.txt; cat made.txt"}]',
        "completed: hello",
        "model: <All is well.> Done, answer 10.",
        "user: thanks",
        "model: <All is well.> Done, answer 11.",
    ]
    assert (session.title, session.cwd) == ("A short answer 7", "/home/ann/shop")
    assert (session.entries[1].model, session.entries[1].usage.input) == ("local/scripted", 808)
    assert session.leaf == len(session.entries)

    path = tmp_path / "opencode.db"
    with sqlite3.connect(path) as connection:
        rows = connection.execute(
            "SELECT id, data FROM message ORDER BY time_created, id"
        ).fetchall()
        last = [name for name, data in rows if json.loads(data)["role"] == "user"][-1]
        connection.execute("UPDATE session SET revert = ?", (json.dumps({"messageID": last}),))
    [session] = read_file(path)
    assert said(session)[session.leaf - 1] == "model: <All is well.> Done, answer 10."
    assert len(session.entries) == 6


@pytest.mark.parametrize("program", FILES)
def test_a_file_is_known_when_it_comes_again_or_back_from_an_export(
    program: str, store: Store, tmp_path: Path
) -> None:
    path, ours = FILES[program](tmp_path), tmp_path / "ours.jsonl"
    estimate = TokenCounter(
        "gpt-4o"
    ).estimate  # as the program does: scripts other than Latin are counted apart
    first = import_file(store, path, estimate=estimate)
    assert {one.came for one in first} == {ImportChange.NEW}
    assert {one.came for one in import_file(store, path, estimate=estimate)} == {ImportChange.KNOWN}
    assert {info.title for info in store.sessions()} & {"use a tool please", "A short answer 7"}
    for one in first:
        with ours.open("w") as file:
            native.write(copies_of(store, one.session_id), file.write)
        [known] = import_file(store, ours, estimate=estimate)
        assert (known.came, known.session_id) == (ImportChange.KNOWN, one.session_id)


def test_a_file_without_a_conversation_is_no_session(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_text((DATA / "codex-rollout.jsonl").read_text().splitlines(keepends=True)[0])
    with pytest.raises(NoConversation, match="no conversation of Codex"):
        read_file(path)


def test_sessions_of_other_programs_are_found_newest_first(tmp_path: Path) -> None:
    home = tmp_path / "home"
    rollout = home / ".codex" / "sessions" / "2026" / "11" / "22" / "rollout-1.jsonl"
    rollout.parent.mkdir(parents=True)
    shutil.copyfile(DATA / "codex-rollout.jsonl", rollout)
    chats = home / ".gemini" / "tmp" / "shop" / "chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text("/home/ann/other")
    chat = Path(shutil.copyfile(DATA / "gemini-chat.jsonl", chats / "session-1.jsonl"))
    os.utime(rollout, (1, 1))
    found = find_sessions(home, {})
    assert [(one.program, one.project, one.size) for one in found] == [
        ("Gemini CLI", "/home/ann/other", chat.stat().st_size),
        ("Codex", "/home/ann/shop", rollout.stat().st_size),
    ]


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
            (
                "part",
                {
                    "id": "zz_part",
                    "message_id": "zz_message",
                    "session_id": "zz_later",
                    "data": text,
                },
            ),
        ):
            row = dict(connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()) | changed
            if table == "session":
                row["time_created"] += 10_000_000
            marks = ", ".join("?" * len(row))
            connection.execute(
                f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
            )
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
    damage(
        path, "UPDATE message SET data = '{not json' WHERE rowid = (SELECT min(rowid) FROM message)"
    )
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


def test_a_database_of_one_damaged_session_says_so(tmp_path):
    path = opencode(tmp_path)
    damage(path, "UPDATE message SET data = '{not json'")
    with pytest.raises(ImportRefused, match="message 1: it is not JSON"):
        read_file(path)


def stored(tmp_path: Path) -> Path:
    """Write what is in the database the way older versions did: a file for each record."""
    storage = tmp_path / "home/.local/share/opencode/storage"
    connection = sqlite3.connect(opencode(tmp_path))
    connection.row_factory = sqlite3.Row

    def write(path: str, value: dict) -> None:
        (storage / path).parent.mkdir(parents=True, exist_ok=True)
        (storage / path).write_text(json.dumps(value))

    for row in connection.execute("SELECT * FROM session"):
        info = {
            "id": row["id"],
            "directory": row["directory"],
            "title": row["title"],
            "projectID": "p",
        }
        info |= {"time": {"created": row["time_created"]}} | (
            {"parentID": row["parent_id"]} if row["parent_id"] else {}
        )
        write(f"session/p/{row['id']}.json", info)
    for row in connection.execute("SELECT * FROM message"):
        write(
            f"message/{row['session_id']}/{row['id']}.json",
            {**json.loads(row["data"]), "id": row["id"]},
        )
    for row in connection.execute("SELECT * FROM part"):
        write(
            f"part/{row['message_id']}/{row['id']}.json",
            {**json.loads(row["data"]), "id": row["id"]},
        )
    connection.close()
    return storage


def test_older_opencode_is_read_as_its_database_is_and_tells_of_sessions_not_of_their_pieces(
    store: Store, tmp_path
):
    storage = stored(tmp_path)
    of_database = {session.id: session for session in read_file(tmp_path / "opencode.db")}
    for file in storage.glob("session/*/*.json"):
        [session] = read_file(file)
        same = of_database[session.id]
        assert [entry.model_dump() for entry in session.entries] == [
            entry.model_dump() for entry in same.entries
        ]
        assert (session.title, session.cwd, session.origin) == (same.title, same.cwd, same.origin)
    count = len(of_database)
    told, imported, failed = import_all(store, storage)
    assert (len(imported), failed) == (count, 0), told
    again = import_all(store, storage)[1]
    assert [one.came.value for one in again] == ["known"] * count
    found = find_sessions(tmp_path / "home", {})
    assert {row.program for row in found} == {"OpenCode"}


def test_a_directory_of_all_programs_tells_of_sessions_not_of_lists_and_pieces(
    store: Store, tmp_path
):
    for program, write in FILES.items():
        place = tmp_path / "all" / program
        place.mkdir(parents=True)
        path = write(place)
        if place not in path.parents:
            shutil.copy(path, place)
    (tmp_path / "all/gemini-cli/logs.json").write_text(
        '[{"sessionId": "s", "messageId": 0, "type": "user"}]'
    )
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
def test_a_session_of_claude_code_is_called_by_what_was_typed_first(
    store: Store, tmp_path, messages, title
):
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
    assert imported.entries == sum(
        "local" not in text and "/compact" not in text for text in messages
    )


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
    assert [entry.text for entry in entries[998:] if isinstance(entry, UserEntry)] == [
        f"{text}999",
        f"{text}1000",
    ]
