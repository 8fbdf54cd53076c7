"""Notes of a project: written by the model or the user, in the head of every later session."""

import json
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.events import PermissionAsked
from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.knowledge.knowledge import Knowledge, Sources
from tui_agent.files.notes import NOTES_FILE, NoteError, notes_in, read_notes, with_note, without_note
from tui_agent.session.entries import ToolResultEntry


def knowledge(tmp_path: Path, tokens: int = 2_000) -> Knowledge:
    project = tmp_path / "project"
    folders = Folders(project, project, tmp_path / "config", tmp_path / "home")
    return Knowledge(Sources(folders, (), tokens))


def write(tmp_path: Path, *notes: str) -> Path:
    path = tmp_path / "project" / NOTES_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# Notes\n" + "".join(f"- {note}\n" for note in notes))
    return path


async def test_the_model_writes_a_note_after_the_user_allowed_it(tmp_path: Path) -> None:
    call = Call("remember", json.dumps({"note": "Tests need  make services."}))
    harness = make_agent(tmp_path, ScriptedClient([Reply(calls=(call,)), Reply("Noted.")]), rules=())

    await harness.say("remember that")

    (asked,) = (event.request for event in harness.events if isinstance(event, PermissionAsked))
    assert "+- Tests need make services." in asked.needs[0].detail
    assert (tmp_path / "project" / NOTES_FILE).read_text() == "# Notes\n- Tests need make services.\n"
    (result,) = (entry for entry in harness.path() if isinstance(entry, ToolResultEntry))
    assert result.metadata.modified_files == (NOTES_FILE,)


async def test_the_head_has_the_notes_and_the_map_their_tokens(tmp_path: Path) -> None:
    write(tmp_path, "Tests need make services.", "The user prefers tabs.")
    client = ScriptedClient([Reply("Hello.")])
    harness = make_agent(tmp_path, client, knowledge=knowledge(tmp_path))

    await harness.say("hello")

    assert "- The user prefers tabs." in client.requests[0].messages[1].text
    block = next(block for block in harness.agent.inspector.map().blocks if block.label == NOTES_FILE)
    assert block.tokens > 10


def test_of_many_notes_the_newest_are_shown_within_the_budget(tmp_path: Path) -> None:
    write(tmp_path, *(f"note number {number}" for number in range(100)))
    known = knowledge(tmp_path, 50)
    known.load()

    (section,) = known.sections(100_000, lambda text: len(text.split()))

    assert "note number 99" in section
    assert "[90 older notes are in the file only.]" in section
    assert section.index("note number 98") < section.index("note number 99")
    assert knowledge(tmp_path, 0).sections(100_000, len) == ()


def test_notes_that_lead_out_of_the_project_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("- a secret\n")
    path = write(tmp_path)
    path.unlink()
    path.symlink_to(tmp_path / "secret.md")
    known = knowledge(tmp_path)
    known.load()

    assert known.sections(100_000, len) == ()
    assert "leads out of the project" in known.problems[0]
    with pytest.raises(NoteError):
        read_notes(tmp_path / "project")


def test_notes_are_lines_that_come_and_go() -> None:
    text = with_note(with_note("", "one"), "two\nlines")

    assert notes_in(text) == ["one", "two lines"]
    assert without_note(text, "one") == "# Notes\n- two lines\n"
    for wrong in ("one", " ", "x" * 501):
        with pytest.raises(NoteError):
            with_note(text, wrong)
    assert notes_in(with_note("Own words.\n\n- old\n", "new")) == ["old", "new"]
