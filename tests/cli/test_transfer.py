"""``sessions export`` and ``import`` as they are typed."""

import json
from pathlib import Path

import pytest

from tui_agent.cli.main import run
from tui_agent.cli.sessions import open_store
from tui_agent.session.entries import TextPart, UserEntry
from tui_agent.session.session import Session

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def recorded() -> str:
    with open_store() as store:
        session = Session(store, store.create_session(Path.cwd(), title="The shop").id, estimate=lambda _entry: 7)
        session.append(UserEntry(parts=(TextPart(text="why is the total wrong?"),)))
        return session.id


def forget(session_id: str) -> None:
    assert run(["sessions", "delete", session_id, "--yes"]) == 0


def test_out_and_in_again(recorded: str, capsys: pytest.CaptureFixture[str], here: Path) -> None:
    assert run(["sessions", "export", recorded[-8:], "-o", "out.jsonl"]) == 0
    forget(recorded)
    capsys.readouterr()
    assert run(["sessions", "import", "out.jsonl"]) == 0
    assert "Imported “The shop” (1 entries, tui-agent)" in capsys.readouterr().out
    assert run(["sessions", "import", "out.jsonl"]) == 0
    assert "already here" in capsys.readouterr().out
    assert run(["sessions", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == recorded


def test_the_name_chooses_the_format_and_a_directory_gets_one(recorded: str, capsys, here: Path) -> None:
    assert run(["sessions", "export", recorded, "-o", "page.html"]) == 0
    assert (here / "page.html").read_text().startswith("<!doctype html>")
    assert run(["sessions", "export", recorded, "-o", "."]) == 0
    assert (here / f"the-shop-{recorded[-8:]}.md").is_file()
    capsys.readouterr()
    assert run(["sessions", "export", recorded]) == 0
    assert capsys.readouterr().out.startswith("# The shop\n")
    assert run(["sessions", "export", recorded, "-o", "talk.xyz", "--format", "markdown"]) == 0
    assert (here / "talk.xyz").read_text().startswith("# The shop\n")


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["export", "ID", "-o", "there.md"], "there.md already exists; --force replaces it", 2),
        (["export", "ID", "-o", ".", "--format", "claude-code"], ".jsonl already exists; --force replaces it", 2),
        (["export", "ID#x"], "not the number of an entry", 2),
        (["export", "ID#99"], "no entry #99", 1),
        (["export", "ID#1", "--all"], "leave out --all", 2),
        (["export", "nobody"], "no session", 1),
        (["export", "ID", "-o", "there.md/x"], "can't be written", 1),
        (["export", "ID", "-o", "no/such/x.md"], "can't be written: the directory does not exist", 1),
        (["export", "ID", "-o", "talk.xyz"], "“.xyz” is not a file type to export to; there are .md", 2),
        (["import", "page.html"], "HTML and Markdown can't be imported", 1),
        (["import", "nothing.jsonl"], "There is no file or directory nothing.jsonl", 1),
        (["import", "bad.jsonl"], "bad.jsonl, line 2: it is not JSON", 1),
    ],
)
def test_mistakes_are_one_sentence(recorded: str, capsys, here: Path, arguments, said, code) -> None:
    (here / "there.md").write_text("mine")
    (here / f"{recorded}.jsonl").write_text("mine")
    (here / "page.html").write_text("<!doctype html>")
    (here / "bad.jsonl").write_text('{"type": "session", "id": "x", "cwd": "/"}\n{oops}\n{}\n')
    assert run(["sessions", *(word.replace("ID", recorded) for word in arguments)]) == code
    assert said in capsys.readouterr().err
    assert (here / "there.md").read_text() == "mine"
    assert not (here / "talk.xyz").exists()
