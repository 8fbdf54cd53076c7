"""Sessions of Pi, Claude Code and OpenCode become sessions here: branches, summaries, calls and results."""

import base64
import json
from pathlib import Path

import pytest

from tui_agent.session.effort import Effort
from tui_agent.session.entries import ToolStatus
from tui_agent.session.formats.importing import import_file, read_file
from tui_agent.session.formats.reading import ImportRefused
from tui_agent.session.formats.table import files_of
from tui_agent.session.session import session_to_read

PIXEL = base64.b64encode(b"\x89PNG").decode()
T = "2026-01-02T03:04:05.000Z"


def write(tmp_path: Path, *lines: dict, name: str = "session.jsonl") -> Path:
    path = tmp_path / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def kinds(session) -> str:
    """Return the entries in order, each as its parent, its number and its kind."""
    return " ".join(f"{entry.parent_id or 0}>{entry.id}:{entry.kind}" for entry in session.entries)


def pi(kind: str, own: str, parent: str | None, /, **fields) -> dict:
    return {"type": kind, "id": own, "parentId": parent, "timestamp": T, **fields}


def pi_user(name: str, parent: str | None, text: str) -> dict:
    content = [
        {"type": "text", "text": text},
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
    ]
    return pi("message", name, parent, message={"role": "user", "content": content, "timestamp": 1})


def pi_answer(name: str, parent: str, *content: dict, stop: str = "stop") -> dict:
    usage = {"input": 5, "output": 6, "cacheRead": 7, "cacheWrite": 8, "cost": {"total": 0.25}}
    message = {
        "role": "assistant", "content": list(content), "provider": "anthropic", "model": "m", "usage": usage,
        "stopReason": stop,
    }  # fmt: skip
    return pi("message", name, parent, message=message)


PI = (
    {"type": "session", "version": 3, "id": "s1", "timestamp": T, "cwd": "/shop"},
    pi("model_change", "a0", None, provider="anthropic", modelId="m"),
    pi("thinking_level_change", "a1", "a0", thinkingLevel="high"),
    pi_user("a2", "a1", "fix it"),
    pi_answer(
        "a3", "a2", {"type": "thinking", "thinking": "hm", "thinkingSignature": "x"},
        {"type": "toolCall", "id": "c1", "name": "edit", "arguments": {"path": "src/a.py"}}, stop="toolUse",
    ),
    pi("message", "a4", "a3", message={
        "role": "toolResult", "toolCallId": "c1", "toolName": "edit", "isError": True,
        "content": [{"type": "text", "text": "no such text"}],
    }),
    pi("label", "a5", "a4", targetId="a2", label="start"),
    pi("compaction", "a6", "a5", summary="so far", firstKeptEntryId="a3", tokensBefore=900,
       details={"readFiles": ["r"], "modifiedFiles": ["m"]}),
    pi("branch_summary", "b1", "a2", fromId="a6", summary="went wrong"),
    pi("message", "b2", "b1", message={
        "role": "bashExecution", "command": "ls", "output": "x", "exitCode": 0, "excludeFromContext": True,
    }),
    pi("custom_message", "b3", "b2", customType="hook", content="from a hook", display=True),
    pi("custom", "b4", "b3", customType="state", data={}),
    pi("session_info", "b5", "b4", name="The shop"),
)  # fmt: skip


def test_a_tree_of_pi_becomes_a_tree_here(store, tmp_path):
    [session] = read_file(write(tmp_path, *PI))
    assert kinds(session) == (
        "0>1:model_change 1>2:effort_change 2>3:user 3>4:assistant 4>5:tool_result "
        "5>6:compaction 3>7:branch_summary 7>8:shell 8>9:user"
    )
    _, thinking, user, answer, result, compaction, branch, shell, hooked = session.entries
    assert (session.title, session.cwd, session.leaf, session.labels) == (
        "The shop",
        "/shop",
        9,
        {3: "start"},
    )
    assert thinking.effort is Effort.HIGH
    assert session.blobs[user.parts[1].blob] == b"\x89PNG"
    assert (answer.model, answer.cost, answer.finish, answer.usage.cache_read) == (
        "anthropic/m",
        0.25,
        "tool_calls",
        7,
    )
    assert (result.status, result.title, result.metadata.modified_files) == (
        ToolStatus.ERROR,
        "src/a.py",
        ("src/a.py",),
    )
    assert (compaction.first_kept_id, compaction.tokens_before) == (4, 900)
    assert compaction.details.modified_files == ("m",)
    assert (branch.from_id, shell.excluded, hooked.synthetic) == (6, True, "pi:hook")
    assert session.left_out == {"“custom” record": 1}


def test_a_line_of_pis_first_version_becomes_a_path(tmp_path):
    lines = [{k: v for k, v in line.items() if k not in {"id", "parentId"}} for line in PI[1:5]]
    compaction = {
        "type": "compaction",
        "timestamp": T,
        "summary": "s",
        "firstKeptEntryIndex": 3,
        "tokensBefore": 1,
    }
    [session] = read_file(
        write(tmp_path, {"type": "session", "id": "s1", "cwd": "/shop"}, *lines, compaction)
    )
    assert kinds(session) == (
        "0>1:model_change 1>2:effort_change 2>3:user 3>4:assistant 4>5:compaction"
    )
    assert session.entries[-1].first_kept_id == 3


@pytest.mark.parametrize(
    ("theirs", "ours"), [("off", Effort.OFF), ("xhigh", Effort.XHIGH), ("ultra", None)]
)
def test_pis_thinking_levels_become_ours(tmp_path, theirs, ours):
    change = pi("thinking_level_change", "a1", "a0", thinkingLevel=theirs)
    [session] = read_file(write(tmp_path, *PI[:2], change, *PI[3:]))
    assert [entry.effort for entry in session.entries if entry.kind == "effort_change"] == (
        [ours] if ours else []
    )
    assert session.left_out["unknown thinking level"] == (0 if ours else 1)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (
            pi("message", "z", "a2", message={"role": "user", "content": 7}),
            "line 14: “content” must be a list",
        ),
        (pi("message", "z", "a2", message="text"), "line 14: “message” must be an object"),
        (pi("model_change", "z", "a2", provider=[]), "line 14: “provider” must be text"),
        (pi_user("a2", "a1", "again"), "line 14: there are two entries"),
        (
            {"type": "message", "timestamp": "yesterday", "id": "z"},
            "line 14: “timestamp” must be a time",
        ),
    ],
)
def test_wrong_records_are_named_with_their_line(store, tmp_path, broken, said):
    with pytest.raises(ImportRefused, match=said):
        import_file(store, write(tmp_path, *PI, broken), estimate=lambda _entry: 1)
    assert store.sessions() == []


def test_a_cut_off_last_line_and_a_broken_link_are_told_not_fatal(tmp_path):
    path = write(tmp_path, *PI, pi_user("z", "nowhere", "lost"))
    path.write_text(path.read_text() + '{"type": "mess')
    [session] = read_file(path)
    assert kinds(session).endswith("9>10:user")
    assert session.damaged == [len(PI) + 2]
    assert sum(session.left_out.values()) == 2


def claude(kind: str, uuid: str, parent: str | None, **fields) -> dict:
    return {
        "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "cwd": "/shop", "timestamp": T,
        "isSidechain": False, **fields,
    }  # fmt: skip


def block(uuid: str, parent: str, message_id: str, content: dict, stop: str | None = None) -> dict:
    message = {
        "id": message_id, "role": "assistant", "model": "claude-x", "content": [content], "stop_reason": stop,
        "usage": {"input_tokens": 3, "output_tokens": 4, "cache_creation_input_tokens": 6},
    }  # fmt: skip
    return claude("assistant", uuid, parent, message=message)


def result(uuid: str, parent: str, call: str, content) -> dict:
    part = {"type": "tool_result", "tool_use_id": call, "content": content}
    return claude(
        "user", uuid, parent, message={"role": "user", "content": [part]}, toolUseResult={}
    )


CLAUDE = (
    {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
    {"type": "summary", "summary": "Fixing the shop", "leafUuid": "a4"},
    claude("user", "u1", None, message={"role": "user", "content": "fix it"}),
    block("a1", "u1", "m1", {"type": "thinking", "thinking": "hm", "signature": "s"}),
    block("a2", "a1", "m1", {"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "a.py"}}),
    block("a3", "a2", "m1", {"type": "tool_use", "id": "c2", "name": "Bash", "input": {"command": "ls"}}, "tool_use"),
    result("r1", "a2", "c1", "text of a"),
    result("r2", "a3", "c2", [{"type": "text", "text": "a.py"}]),
    claude("system", "sys", "r1", subtype="turn_duration"),
    block("a4", "sys", "m2", {"type": "text", "text": "done"}, "end_turn"),
    claude("user", "side", "a4", isSidechain=True, message={"role": "user", "content": "task"}),
    claude("user", "u2", "u1", message={"role": "user", "content": "edited question"}),
    claude("system", "cb", None, subtype="compact_boundary", logicalParentUuid="a4",
           compactMetadata={"trigger": "auto", "preTokens": 155000, "preservedSegment": {"headUuid": "a4"}}),
    claude("user", "u3", "cb", isCompactSummary=True, message={"role": "user", "content": "summary of it all"}),
    claude("user", "u4", "u3", isMeta=True, message={"role": "user", "content": "caveat"}),
    claude("assistant", "a5", "u4", isApiErrorMessage=True, message={
        "id": "e", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error: overloaded"}]}),
)  # fmt: skip


def test_a_session_of_claude_code_becomes_a_tree_without_false_branches(tmp_path):
    [session] = read_file(write(tmp_path, *CLAUDE))
    assert kinds(session) == (
        "0>1:user 1>2:assistant 2>3:tool_result 3>4:tool_result 4>5:assistant "
        "1>6:user 5>7:compaction 7>8:user 8>9:assistant"
    )
    answer, read, bash = session.entries[1:4]
    assert [part.type for part in answer.parts] == ["reasoning", "tool_call", "tool_call"]
    assert (answer.finish, answer.model, answer.usage.cache_write) == (
        "tool_calls",
        "anthropic/claude-x",
        6,
    )
    assert (read.tool, read.title, read.metadata.read_files, read.output) == (
        "read",
        "a.py",
        ("a.py",),
        "text of a",
    )
    assert (bash.tool, bash.title, bash.output) == ("bash", "ls", "a.py")
    compaction, meta, failed = session.entries[6:]
    told = (
        compaction.summary,
        compaction.tokens_before,
        compaction.trigger,
        compaction.first_kept_id,
    )
    assert told == ("summary of it all", 155000, "threshold", 5)
    assert (meta.synthetic, failed.error, failed.finish) == (
        "claude-code:meta",
        "API Error: overloaded",
        "error",
    )
    assert (session.title, session.cwd, session.leaf) == ("Fixing the shop", "/shop", 9)
    assert session.left_out["line of a subagent"] == 1


def of_subagent(number: int, *, kind: str = "Explore", call: str = "") -> tuple[dict, ...]:
    task = {"role": "user", "content": f"task {number}"}
    side = {"isSidechain": True, "agentId": f"x{number}"}
    return (
        claude("user", f"s{number}", None, **side, message=task),
        {**block(f"t{number}", f"s{number}", "n", {"type": "text", "text": "found"}), **side},
        {"agentType": kind, "toolUseId": call},
    )


def write_subagents(tmp_path: Path) -> Path:
    """A session with a subagent whose file names its call, one that its result names, and a broken one."""
    folder = tmp_path / "session/subagents"
    folder.mkdir(parents=True)
    *lines, facts = of_subagent(1, call="c1")
    write(folder, *lines, name="agent-x1.jsonl")
    (folder / "agent-x1.meta.json").write_text(json.dumps(facts))
    *lines, _facts = of_subagent(2)
    write(folder, *lines, name="agent-x2.jsonl")
    (folder / "agent-x3.jsonl").write_text("no JSON\n")
    told = [
        {**line, "toolUseResult": {"agentId": "x2"}} if line.get("uuid") == "r2" else line
        for line in CLAUDE
    ]
    notice = {"role": "user", "content": "<task-notification>x2 is done"}
    return write(tmp_path, *told, claude("user", "u9", "a5", message=notice))


def test_sessions_of_subagents_come_along_below_their_calls(tmp_path, store):
    path = write_subagents(tmp_path)
    [session, first, second] = read_file(path)
    assert [(one.origin, kinds(one)) for one in (first, second)] == [
        ((session.id, 3, "Explore"), "0>1:user 1>2:assistant"),
        ((session.id, 4, "subagent"), "0>1:user 1>2:assistant"),
    ]
    linked = [entry.metadata.session for entry in session.entries if entry.kind == "tool_result"]
    assert linked == [first.id, second.id]
    assert session.left_out["unreadable session of a subagent (in session)"] == 1
    assert session.entries[-1].synthetic == "claude-code:meta"
    imported = import_file(store, path, estimate=lambda _entry: 1)
    assert [(one.came.value, one.of_subagent) for one in imported] == [
        ("new", False), ("new", True), ("new", True),
    ]  # fmt: skip


def test_a_session_that_was_imported_without_its_subagents_is_known_with_them(tmp_path, store):
    path = write_subagents(tmp_path)
    aside = (tmp_path / "session").rename(tmp_path / "aside")
    [alone] = import_file(store, path, estimate=lambda _entry: 1)
    aside.rename(tmp_path / "session")
    again = import_file(store, path, estimate=lambda _entry: 1)
    assert [one.came.value for one in again] == ["known", "new", "new"]
    assert again[0].session_id == alone.session_id


def test_lines_that_claude_code_wrote_twice_are_read_once(tmp_path):
    """Its /branch and a second /compact write the lines again, the copies without a parent."""
    (tmp_path / "once").mkdir()
    (tmp_path / "twice").mkdir()
    [once] = read_file(write(tmp_path / "once", *CLAUDE))
    copies = [{**line, "parentUuid": None} for line in CLAUDE if line.get("uuid")]
    [twice] = read_file(write(tmp_path / "twice", *CLAUDE, *copies))
    assert kinds(twice) == kinds(once)
    assert [entry.preview for entry in twice.entries] == [entry.preview for entry in once.entries]
    assert twice.leaf == once.leaf


def tool(call: str, name: str, state: dict) -> dict:
    return {"type": "tool", "id": f"p{call}", "callID": call, "tool": name, "state": state}


OPENCODE = {
    "info": {"id": "ses_1", "directory": "/shop", "title": "Shop", "time": {"created": 1_000, "updated": 2_000}},
    "messages": [
        {
            "info": {"id": "m1", "role": "user", "time": {"created": 1_000}},
            "parts": [
                {"type": "text", "text": "fix it"},
                {"type": "file", "mime": "image/png", "filename": "a.png", "url": f"data:image/png;base64,{PIXEL}"},
            ],
        },
        {
            "info": {
                "id": "m2", "role": "assistant", "providerID": "openai", "modelID": "gpt", "cost": 0.5,
                "time": {"created": 1_100}, "finish": "tool-calls",
                "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}},
            },
            "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "hm"},
                {"type": "text", "text": "Looking."},
                tool("c1", "edit", {
                    "status": "completed", "input": {"filePath": "a.py"}, "output": "ok", "title": "a.py",
                    "metadata": {"diff": "-a\n+b"}, "time": {"start": 1_200, "end": 1_300},
                }),
                tool("c2", "bash", {"status": "running", "input": {"command": "sleep"}, "time": {"start": 1}}),
            ],
        },
        {
            "info": {"id": "m3", "role": "assistant", "summary": True, "time": {"created": 1_400}},
            "parts": [{"type": "text", "text": "so far"}],
        },
        {
            "info": {
                "id": "m4", "role": "assistant", "modelID": "gpt", "time": {"created": 1_500},
                "error": {"name": "MessageAbortedError", "data": {"message": "stopped"}},
            },
            "parts": [{"type": "text", "text": "half an ans"}, {"type": "hologram"}],
        },
    ],
}  # fmt: skip


@pytest.mark.parametrize("indent", [None, 2])
def test_an_export_of_opencode_becomes_a_path(tmp_path, indent):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(OPENCODE, indent=indent))
    [session] = read_file(path)
    assert kinds(session) == "0>1:user 1>2:assistant 2>3:tool_result 3>4:compaction 4>5:assistant"
    user, answer, done, compaction, aborted = session.entries
    assert session.blobs[user.parts[1].blob] == b"\x89PNG"
    assert (answer.model, answer.cost, answer.usage.output, answer.finish) == (
        "openai/gpt",
        0.5,
        5,
        "tool_calls",
    )
    assert [call.call_id for call in answer.tool_calls] == ["c1", "c2"]
    assert (done.output, done.metadata.diff, done.metadata.modified_files) == (
        "ok",
        "-a\n+b",
        ("a.py",),
    )
    assert (compaction.summary, aborted.interrupted, aborted.error) == ("so far", True, "stopped")
    assert session.left_out == {"“hologram” part of an answer": 1}
    assert (session.created_at, session.updated_at) == (1_000, 1_500)


@pytest.mark.parametrize(("first", "leaf"), [("m1", None), ("m3", 3), ("", 5), ("m9", 5)])
def test_messages_that_were_taken_back_in_opencode_are_beyond_the_leaf(
    tmp_path, store, first, leaf
):
    path = tmp_path / "export.json"
    info = OPENCODE["info"] | ({"revert": {"messageID": first}} if first else {})
    path.write_text(json.dumps(OPENCODE | {"info": info}))
    [session] = read_file(path)
    assert (len(session.entries), session.leaf) == (5, leaf)
    [imported] = import_file(store, path, estimate=lambda _entry: 1)
    assert session_to_read(store, imported.session_id).leaf == leaf


def test_the_format_can_be_said_and_a_directory_is_searched(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "notes.txt").write_text("no")
    files = [write(tmp_path / "deep", *PI), write(tmp_path, *CLAUDE, name="z.jsonl")]
    assert files_of(tmp_path) == files
    assert read_file(files[0], source="pi")[0].source == "Pi"
    with pytest.raises(ImportRefused):
        read_file(files[0], source="tui-agent")
    files[0].rename(tmp_path / "deep" / "notes.txt")
    with pytest.raises(ImportRefused, match="has no file of a known format"):
        files_of(tmp_path / "deep")
