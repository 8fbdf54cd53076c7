"""What is written for Claude Code and Codex: read here again, and gone on with by the programs themselves."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import neighbours
from tests.support.model_server import ModelServer, Turn
from tui_agent.app.exporting import ExportFormat, ExportOrder, write_export
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    FilePart,
    ImagePart,
    ReasoningPart,
    ShellEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.formats.copies import copy_of
from tui_agent.session.formats.importing import import_file
from tui_agent.session.formats.linear_writers import write_codex
from tui_agent.session.session import Session
from tui_agent.session.store import Store

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
FORMS = (ExportFormat.CLAUDE_CODE, ExportFormat.CODEX)


def user(text: str, *more: Any) -> UserEntry:
    return UserEntry(parts=(TextPart(text=text), *more))


def answer(text: str, *more: Any) -> AssistantEntry:
    return AssistantEntry(parts=(TextPart(text=text), *more), model="anthropic/claude-x")


@pytest.fixture
def session(store: Store, tmp_path: Path) -> Session:
    """Return a session with a branch that was left, a compaction, calls that went well and badly, and an image."""
    (tmp_path / "shop").mkdir()
    session = Session(
        store,
        store.create_session(str(tmp_path / "shop"), title="Shop").id,
        estimate=lambda _entry: 7,
    )
    session.append(user("long ago"))
    session.append(answer("SUMMARISED AWAY"))
    kept = session.append(user("kept question", FilePart(path="a.py", text="print(1)")))
    session.append(answer("kept answer"))
    session.append(
        CompactionEntry(
            summary="THE SUMMARY",
            first_kept_id=kept.id,
            tokens_before=9,
            tokens_after=3,
            trigger="manual",
        )
    )
    left = session.append(user("see", ImagePart(blob=store.put_blob(PNG), mime="image/png")))
    session.append(answer("ANOTHER BRANCH"))
    session.move(left.id)
    calls = [
        ToolCallPart(
            call_id=f"call_{n}", tool="bash", arguments=json.dumps({"command": f"make {n}"})
        )
        for n in (1, 2)
    ]
    session.append(answer("I look – “ünïcödé”", ReasoningPart(text="HIDDEN THOUGHT"), *calls))
    for call, status in zip(calls, (ToolStatus.COMPLETED, ToolStatus.ERROR), strict=True):
        session.append(
            ToolResultEntry(
                call_id=call.call_id, tool="bash", status=status, output=f"out of {call.call_id}"
            )
        )
    session.append(ShellEntry(command="ls", output="listed", exit_code=0))
    session.append(ShellEntry(command="pwd", output="EXCLUDED", exit_code=0, excluded=True))
    session.append(answer("All is well."))
    return session


@pytest.mark.parametrize("form", FORMS)
def test_read_here_again_it_says_what_the_model_was_shown(
    store: Store, session: Session, form: ExportFormat, tmp_path: Path
) -> None:
    order = ExportOrder(session.id, form)
    path = tmp_path / order.file_name("", tmp_path)
    write_export(store, order, path)
    [done] = import_file(store, path, estimate=lambda _entry: 1)
    texts = [
        entry.output
        if isinstance(entry, ToolResultEntry)
        else getattr(entry, "text", "") or getattr(entry, "summary", "")
        for entry in copy_of(store, done.session_id, whole=True).path()
    ]
    assert [text for text in texts if text] == [
        "THE SUMMARY",
        'kept question\n<file path="a.py">\nprint(1)\n</file>',
        "kept answer",
        "see",
        "I look – “ünïcödé”",
        "out of call_1",
        "out of call_2",
        "I ran `ls`:\nlisted",
        "All is well.",
    ]
    written = path.read_text()
    assert not re.search("SUMMARISED AWAY|ANOTHER BRANCH|HIDDEN THOUGHT|EXCLUDED", written)


def test_a_summary_whose_first_kept_entry_is_elsewhere_keeps_nothing(
    store: Store, tmp_path: Path
) -> None:
    session = Session(store, store.create_session(tmp_path).id, estimate=lambda _entry: 7)
    root = session.append(user("root"))
    elsewhere = session.append(user("elsewhere"))
    session.move(root.id)
    session.append(user("gone"))
    sizes = {"tokens_before": 9, "tokens_after": 3}
    session.append(
        CompactionEntry(
            summary="THE SUMMARY", first_kept_id=elsewhere.id, trigger="manual", **sizes
        )
    )
    session.append(user("after"))
    written: list[str] = []
    write_codex(copy_of(store, session.id, whole=False), written.append)
    said = "".join(written)
    assert "THE SUMMARY" in said
    assert "after" in said
    assert "gone" not in said


@pytest.mark.neighbours
@pytest.mark.parametrize("form", FORMS)
def test_the_program_itself_goes_on_with_it(
    store: Store, session: Session, form: ExportFormat, tmp_path: Path
) -> None:
    home, cwd, order = tmp_path / "home", tmp_path / "shop", ExportOrder(session.id, form)
    environ = neighbours.environment(home)
    with ModelServer() as server:
        server.play_function(lambda _request: Turn("Gone on."))
        if form is ExportFormat.CLAUDE_CODE:
            place = home / ".claude/projects" / re.sub(r"[^a-zA-Z0-9]", "-", os.fspath(cwd))
            program = neighbours.package("@anthropic-ai/claude-code-linux-x64") / "claude"
            command = [str(program), "-p", "now go on", "--resume", session.id]
            environ |= {
                "ANTHROPIC_BASE_URL": server.url,
                "ANTHROPIC_API_KEY": "sk-ant-x",
                "DISABLE_TELEMETRY": "1",
            }
            environ |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        else:
            place = home / ".codex/sessions/2026/11/24"
            provider = f'model_providers.here={{name="here", base_url="{server.openai_url}", wire_api="responses"}}'
            options = (
                "--skip-git-repo-check",
                "-c",
                "model_provider=here",
                "-c",
                provider,
                "-m",
                "gpt-5.1-codex",
            )
            command = [
                neighbours.program("codex"),
                "exec",
                *options,
                "resume",
                session.id,
                "now go on",
            ]
        place.mkdir(parents=True)
        write_export(store, order, place / order.file_name("", place))
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environ,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Gone on." in done.stdout
        sent = "\n".join(
            json.dumps(json.loads(call.body), ensure_ascii=False) for call in server.calls
        )
    for text in (
        "THE SUMMARY",
        "kept answer",
        "I look – “ünïcödé”",
        "make 1",
        "out of call_2",
        "All is well.",
        "now go on",
    ):
        assert text in sent, text
    assert "image" in sent
