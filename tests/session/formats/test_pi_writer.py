"""A session written for Pi: Pi opens it and goes on, and read back it has the same texts, calls, results and tree."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support import neighbours
from tests.support.model_server import ModelServer, Turn
from tui_agent.app.exporting import ExportFormat, ExportOrder, write_export
from tui_agent.session.effort import Effort
from tui_agent.session.entries import (
    AssistantEntry,
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    EffortChangeEntry,
    FilePart,
    ImagePart,
    ModeChangeEntry,
    ModelChangeEntry,
    PruneEntry,
    ReasoningPart,
    ShellEntry,
    SummaryDetails,
    SystemEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    Usage,
    UserEntry,
)
from tui_agent.session.formats.importing import import_file, read_file
from tui_agent.session.session import Session

PNG = b"\x89PNG"


def user(text: str, *more, **fields) -> UserEntry:
    return UserEntry(parts=(TextPart(text=text), *more), **fields)


def answer(*parts, finish="stop", **fields) -> AssistantEntry:
    return AssistantEntry(parts=parts, model="anthropic/m", finish=finish, **fields)


def result(call_id: str, output: str, **fields) -> ToolResultEntry:
    return ToolResultEntry(call_id=call_id, tool="read", output=output, **{"status": ToolStatus.COMPLETED, **fields})


@pytest.fixture
def session(store, tmp_path) -> Session:
    """A session with everything that Pi has a record for, and things it has none for in between."""
    project = tmp_path / "project"
    project.mkdir()
    made = Session(store, store.create_session(str(project), title="The shop").id, estimate=lambda _entry: 7)
    made.append(SystemEntry(blocks=("prompt",), model="anthropic/m"))
    picture = ImagePart(blob=store.put_blob(PNG), mime="image/png")
    asked = made.append(user("read a.py", FilePart(path="a.py", text="x = 1"), picture))
    made.append(ModeChangeEntry(mode="plan"))
    made.append(ModelChangeEntry(model="openrouter/anthropic/m"))
    made.append(EffortChangeEntry(effort=Effort.MAX))
    call = ToolCallPart(call_id="c1", tool="read", arguments='{"path": "a.py"}')
    other = ToolCallPart(call_id="c2", tool="read", arguments="not json")
    usage = Usage(input=5, output=6, cache_read=7, cache_write=8)
    made.append(answer(ReasoningPart(text="hm"), TextPart(text="I look"), call, other, usage=usage, cost=0.25))
    first = made.append(result("c1", "x = 1 é\udcff", attachments=(picture,)))
    made.append(result("c2", "bad arguments", status=ToolStatus.ERROR))
    kept = made.append(PruneEntry(targets=(first.id,), tokens_freed=3, reason="old"))
    made.append(answer(TextPart(text="It is one.")))
    details = SummaryDetails(read_files=("a.py",), modified_files=("b.py",))
    compaction = CompactionEntry(
        summary="so far", first_kept_id=kept.id, tokens_before=900, tokens_after=9, trigger="manual", details=details
    )
    made.append(compaction)
    made.append(ShellEntry(command="ls", output="a.py", exit_code=0, excluded=True))
    made.append(user("mind the time", synthetic="reminder"))
    left = made.append(answer(TextPart(text="half"), finish="interrupted", interrupted=True))
    made.move(asked.id)
    made.append(ContextEditEntry(target=asked.id, action="pin"))
    made.append(BranchSummaryEntry(summary="went wrong", from_id=left.id))
    leaf = made.append(answer(TextPart(text="another way")))
    made.append(user("later"))
    made.move(leaf.id)
    made.label(asked.id, "start")
    return made


def exported(session: Session, tmp_path: Path, name: str = "out.pi.jsonl") -> Path:
    path = tmp_path / name
    write_export(session.store, ExportOrder(session.id, ExportFormat.PI), path)
    return path


def words(entry) -> str:
    """What an entry tells a person or a model, in a line."""
    match entry:
        case UserEntry():
            said = " + ".join(part.text if isinstance(part, TextPart) else part.type for part in entry.parts)
            return f"{entry.synthetic or 'user'}: {said}"
        case AssistantEntry():
            parts = [part.arguments if isinstance(part, ToolCallPart) else part.text for part in entry.parts]
            return f"{entry.model}: {' + '.join(parts)} ({entry.finish}, {entry.usage.prompt}, {entry.cost})"
        case ToolResultEntry():
            return f"{entry.call_id} {entry.tool}: {entry.output} ({entry.status}, {len(entry.attachments)})"
        case CompactionEntry():
            return f"compaction: {entry.summary} ({entry.tokens_before}, {', '.join(entry.details.modified_files)})"
        case ShellEntry():
            return f"$ {entry.command}: {entry.output} ({entry.exit_code}, {entry.excluded})"
        case BranchSummaryEntry():
            return f"branch summary: {entry.summary}"
        case _:
            return entry.kind


def test_read_back_it_has_the_same_texts_calls_results_and_tree(session, tmp_path):
    [back] = read_file(exported(session, tmp_path))
    assert [(entry.id, entry.parent_id, words(entry)) for entry in back.entries] == [
        (1, None, 'user: read a.py + <file path="a.py">\nx = 1\n</file> + image'),
        (2, 1, "model_change"),
        (3, 2, "effort_change"),
        (4, 3, 'anthropic/m: hm + I look + {"path": "a.py"} + {"arguments": "not json"} (tool_calls, 20, 0.25)'),
        (5, 4, "c1 read: x = 1 é� (completed, 1)"),
        (6, 5, "c2 read: bad arguments (error, 0)"),
        (7, 6, "anthropic/m: It is one. (stop, 0, None)"),
        (8, 7, "compaction: so far (900, b.py)"),
        (9, 8, "$ ls: a.py (0, True)"),
        (10, 9, "reminder: mind the time"),
        (11, 10, "anthropic/m: half (interrupted, 0, None)"),
        (12, 1, "branch summary: went wrong"),
        (13, 12, "anthropic/m: another way (stop, 0, None)"),
        (14, 13, "user: later"),
    ]
    compaction, summary = back.entries[7], back.entries[11]
    assert (compaction.first_kept_id, summary.from_id) == (7, 11)
    assert (back.title, back.cwd, back.labels, back.leaf) == ("The shop", session.info.cwd, {1: "start"}, 13)
    assert back.entries[2].effort is Effort.MAX
    assert not back.left_out


def test_a_session_gone_on_in_pi_comes_back(store, session, tmp_path):
    """Pi appends to the file; its own session id stays, so the file imported again brings what is new."""
    path = exported(session, tmp_path)
    came = import_file(store, path, estimate=lambda _entry: 1)[0]
    *_, last = path.read_text().splitlines()
    more = {"type": "message", "id": "abc", "parentId": json.loads(last)["id"], "timestamp": "2026-01-02T03:04:05Z",
            "message": {"role": "user", "content": "on in Pi"}}  # fmt: skip
    path.write_text(path.read_text() + json.dumps(more) + "\n")
    again = import_file(store, path, estimate=lambda _entry: 1)[0]
    assert (again.session_id, again.entries) == (came.session_id, 1)


@pytest.mark.neighbours
@pytest.mark.parametrize(
    ("leaf", "known", "unknown"),
    [
        (17, ["went wrong", "another way", "data:image/png"], "so far"),
        (14, ["so far", "It is one.", "mind the time"], "I look"),
    ],
)
def test_real_pi_opens_it_and_goes_on(session, tmp_path, leaf, known, unknown):
    """What it sends then is the branch one was on: from its compaction on, with calls and their results."""
    pi = neighbours.program("pi")
    session.move(leaf)
    path = exported(session, tmp_path)
    home = tmp_path / "pi"
    home.mkdir()
    with ModelServer((Turn(text="Gone on."),)) as server:
        models = [{"id": "scripted", "contextWindow": 100_000, "maxTokens": 1000, "input": ["text", "image"]}]
        provider = {"baseUrl": server.openai_url, "api": "openai-completions", "apiKey": "none", "models": models}
        (home / "models.json").write_text(json.dumps({"providers": {"local": provider}}))
        ran = subprocess.run(
            [pi, "--session", path, "--provider", "local", "--model", "scripted", "-p", "and now?"],
            cwd=session.info.cwd,
            env={**neighbours.environment(tmp_path), "PI_CODING_AGENT_DIR": str(home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert ran.stdout.strip() == "Gone on.", ran.stderr
        sent = json.dumps(server.calls[0].json["messages"])
    assert [text for text in known if json.dumps(text)[1:-1] not in sent] == []
    assert unknown not in sent
    [back] = read_file(path)
    assert [entry.text for entry in back.entries[-2:]] == ["and now?", "Gone on."]
    assert back.title == "The shop"
