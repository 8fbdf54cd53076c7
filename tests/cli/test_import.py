"""``sessions import``: whole directories, damaged files, the sessions of other programs on this machine, going on."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer
from tui_agent.cli.main import run
from tui_agent.cli.sessions import open_store
from tui_agent.session.entries import ModelChangeEntry, TextPart, UserEntry
from tui_agent.session.session import Session

ROLLOUT = Path(__file__).parents[1] / "session" / "formats" / "data" / "codex-rollout.jsonl"


@pytest.fixture(autouse=True)
def _no_other_homes(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)


def claude_line(text: str, *, side: bool) -> str:
    message = {"role": "user", "content": text}
    line = {
        "type": "user",
        "uuid": "u1",
        "sessionId": "s",
        "cwd": "/shop",
        "isSidechain": side,
        "message": message,
    }
    return json.dumps(line | {"timestamp": "2026-01-02T03:04:05.000Z"}) + "\n"


def test_files_of_subagents_are_no_failure_and_each_line_names_its_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "projects" / "s"
    folder.mkdir(parents=True)
    (folder.parent / "s.jsonl").write_text(claude_line("why?", side=False))
    for name in ("agent-1.jsonl", "agent-2.jsonl"):
        (folder / name).write_text(claude_line("look", side=True))
    assert run(["sessions", "import", str(folder.parent)]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert told.out.startswith("s.jsonl: Imported “why?” (1 entries, Claude Code)")
    assert told.out.splitlines()[1:] == ["1 imported, 2 files contain no conversation."]


def test_sessions_of_subagents_come_along_and_lost_ones_are_named_first(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    internal = json.dumps({"type": "attachment", "sessionId": "s"}) + "\n"
    (tmp_path / "s.jsonl").write_text(claude_line("why?", side=False) + internal * 3)
    (tmp_path / "s/subagents").mkdir(parents=True)
    for name in ("agent-1.jsonl", "agent-2.jsonl"):
        (tmp_path / "s/subagents" / name).write_text(claude_line("look", side=True))
    (tmp_path / "s/subagents/agent-3.jsonl").write_text("no JSON\n")
    assert run(["sessions", "import", str(tmp_path / "s.jsonl")]) == 0
    told = capsys.readouterr().out
    assert "Not imported: 1× unreadable session of a subagent (in s), 3× “attachment” line." in told
    assert "Also imported: 2 sessions of subagents." in told


def test_damaged_lines_are_named_by_their_numbers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = ROLLOUT.read_text().splitlines(keepends=True)
    damaged = tmp_path / "rollout.jsonl"
    damaged.write_text(
        "".join([*lines[:4], "{oops}\n", *lines[4:9], "\xff nonsense\n", *lines[9:]])
    )
    assert run(["sessions", "import", str(damaged)]) == 1
    assert "rollout.jsonl, line 5: it is not JSON" in capsys.readouterr().err
    assert run(["sessions", "import", str(damaged), "--skip-damaged"]) == 0
    told = capsys.readouterr().out
    assert "Imported “use a tool please” (10 entries, Codex)" in told
    assert told.rstrip().endswith("2 lines could not be read and were left out: 5, 11.")


def test_an_option_that_was_given_is_not_advised(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    newer = tmp_path / "newer.jsonl"
    newer.write_text('{"type": "session", "format": "tui-agent", "version": 99}\n')
    assert run(["sessions", "import", str(newer), "--skip-damaged"]) == 1
    told = capsys.readouterr().err
    assert "written by a newer tui-agent" in told
    assert "--skip-damaged" not in told


def test_json_lines_name_what_was_left_out_and_why_a_file_was_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for pod in ("pod-1", "pod-2"):
        (tmp_path / "in" / pod).mkdir(parents=True)
        text = ROLLOUT.read_text().replace("01a0", f"01a{pod[-1]}")
        (tmp_path / "in" / pod / "rollout.jsonl").write_text(text)
    (tmp_path / "in" / "bogus.jsonl").write_text("nonsense\n")
    assert run(["sessions", "import", str(tmp_path / "in"), "--json"]) == 1
    told = capsys.readouterr()
    rows = {Path(row["file"]).parent.name: row for row in map(json.loads, told.out.splitlines())}
    assert told.err == ""
    assert rows["in"]["session_id"] is None
    assert rows["in"]["came"] == "refused"
    assert "bogus.jsonl, line 1: it is not JSON" in rows["in"]["refused"][0]
    assert rows["pod-1"]["left_out"] == {"message of “developer”": 1}
    assert run(["sessions", "import", str(tmp_path / "in")]) == 1
    told = capsys.readouterr()
    assert [line.partition("/")[0] for line in told.out.splitlines()[:2]] == ["pod-1", "pod-2"]
    assert told.err.startswith("bogus.jsonl, line 1: ")


def test_two_files_of_one_thread_never_get_ids_that_end_alike(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = ROLLOUT.read_text().splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_text("".join(lines))
    head = json.loads(lines[0])
    head["payload"]["timestamp"] = head["timestamp"] = "2026-11-20T00:00:00.000Z"
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "b.jsonl").write_text("".join([json.dumps(head) + "\n", *lines[1:]]))
    for _twice in range(2):
        assert run(["sessions", "import", str(tmp_path / "a.jsonl")]) == 0
        assert run(["sessions", "import", str(tmp_path / "b" / "b.jsonl")]) == 0
    with open_store() as store:
        assert len({info.id[-8:] for info in store.sessions()}) == 2


def test_what_is_on_the_machine_is_listed_and_taken_by_its_number(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["sessions", "import", "--detect"]) == 0
    assert "No sessions of other programs" in capsys.readouterr().out
    there = tmp_path / "home" / ".codex" / "sessions" / "2026" / "rollout-1.jsonl"
    there.parent.mkdir(parents=True)
    shutil.copyfile(ROLLOUT, there)
    assert run(["sessions", "import", "--detect"]) == 0
    [row] = capsys.readouterr().out.splitlines()
    assert row.split()[:2] == ["1", "Codex"]
    assert row.endswith("kB  /home/ann/shop")
    assert run(["sessions", "import", "--detect", "1"]) == 0
    assert "Imported “use a tool please”" in capsys.readouterr().out
    assert run(["sessions", "import", "--detect", "2"]) == 2
    assert (
        "There is no session 2. Number of sessions that --detect lists: 1."
        in capsys.readouterr().err
    )


def test_without_a_file_it_is_said_what_to_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "import"]) == 2
    assert "Name a file or directory, or use --detect" in capsys.readouterr().err


def test_an_imported_session_goes_on_with_the_configured_model_and_says_so_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with ModelServer() as server:
        (tmp_path / "config").mkdir()
        (tmp_path / "config" / "config.toml").write_text(
            'model = "openai/mine"\n[models."openai/mine"]\n'
            f'base_url = "http://127.0.0.1:{server.port}/v1"\ncontext_window = 32768\n'
        )
        assert run(["sessions", "import", str(ROLLOUT)]) == 0
        with open_store() as store:
            [info] = store.sessions()
        assert run(["-r", info.id, "-p", "and now?"]) == 0
        told = capsys.readouterr().err
        assert (
            "local/gpt-5.1-codex can't be used here; the session continues with openai/mine."
            in told
        )
        assert run(["-r", info.id, "-p", "and then?"]) == 0
        assert "can't be used here" not in capsys.readouterr().err
    with open_store() as store:
        session = Session(store, info.id, estimate=lambda _entry: 0, read_only=True)
        changes = [entry.model for entry in session.path() if isinstance(entry, ModelChangeEntry)]
        assert (changes, store.session(info.id).title) == (
            ["local/gpt-5.1-codex", "openai/mine"],
            "use a tool please",
        )


pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def recorded() -> str:
    with open_store() as store:
        session = Session(
            store, store.create_session(Path.cwd(), title="The shop").id, estimate=lambda _entry: 7
        )
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


def test_the_name_chooses_the_format_and_a_directory_gets_one(
    recorded: str, capsys, here: Path
) -> None:
    assert run(["sessions", "export", recorded, "-o", "page.html"]) == 0
    assert (here / "page.html").read_text().startswith("<!doctype html>")
    assert run(["sessions", "export", recorded, "-o", "."]) == 0
    assert (here / f"the-shop-{recorded[-8:]}.md").is_file()
    capsys.readouterr()
    assert run(["sessions", "export", recorded]) == 0
    assert capsys.readouterr().out.startswith("# The shop\n")
    assert run(["sessions", "export", recorded, "-o", "talk.xyz", "--format", "markdown"]) == 0
    assert (here / "talk.xyz").read_text().startswith("# The shop\n")


@pytest.mark.parametrize("format_", ["claude-code", "codex"])
def test_an_empty_session_is_not_exported_for_another_program(
    capsys, here: Path, format_: str
) -> None:
    with open_store() as store:
        created = store.create_session(Path.cwd(), title="Nothing yet").id
        session = Session(store, created, estimate=lambda _entry: 7)
        session.append(ModelChangeEntry(model="a/b"))
    export = ["sessions", "export", created, "-o", "out", "--format", format_]
    assert run(export) == 1
    assert "no messages" in capsys.readouterr().err
    assert not list(here.rglob("*.jsonl"))


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["export", "ID", "-o", "there.md"], "there.md already exists; --force replaces it", 2),
        (
            ["export", "ID", "-o", ".", "--format", "claude-code"],
            ".jsonl already exists; --force replaces it",
            2,
        ),
        (["export", "ID#x"], "not the number of an entry", 2),
        (["export", "ID#99"], "no entry #99", 1),
        (["export", "ID#1", "--all"], "leave out --all", 2),
        (["export", "nobody"], "no session", 1),
        (
            ["export", "ID", "-o", "no/such/x.md"],
            "can't be written: the directory does not exist",
            1,
        ),
        (
            ["export", "ID", "-o", "talk.xyz"],
            "“.xyz” is not an export format. Use one of .md",
            2,
        ),
        (["import", "page.html"], "HTML and Markdown can't be imported", 1),
        (["import", "nothing.jsonl"], "There is no file or directory nothing.jsonl", 1),
        (["import", "bad.jsonl"], "bad.jsonl, line 2: it is not JSON", 1),
    ],
)
def test_mistakes_are_one_sentence(
    recorded: str, capsys, here: Path, arguments, said, code
) -> None:
    (here / "there.md").write_text("mine")
    (here / f"{recorded}.jsonl").write_text("mine")
    (here / "page.html").write_text("<!doctype html>")
    (here / "bad.jsonl").write_text('{"type": "session", "id": "x", "cwd": "/"}\n{oops}\n{}\n')
    assert run(["sessions", *(word.replace("ID", recorded) for word in arguments)]) == code
    assert said in capsys.readouterr().err
    assert (here / "there.md").read_text() == "mine"
    assert not (here / "talk.xyz").exists()


@pytest.mark.parametrize(
    "named",
    [
        "/",
        "..",
        "PROJECT/link",
        "link",
        "link/tmp",
        "~",
        "~root",
        "missing",
        "file",
        "file/x",
        "x\0y",
        "x" * 5_000,
    ],
)
def test_a_file_from_elsewhere_does_not_say_where_its_session_works(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "link").symlink_to("/")
    (project / "file").write_text("")
    monkeypatch.chdir(project)
    file = tmp_path / "x.jsonl"
    cwd = named.replace("PROJECT", str(project))
    file.write_text(claude_line("why?", side=False).replace('"/shop"', json.dumps(cwd)))
    assert run(["sessions", "import", str(file)]) == 0
    assert "It works in this directory, not in " in capsys.readouterr().out
    with open_store() as store:
        (info,) = store.sessions()
        session = Session(store, info.id, estimate=lambda _entry: 0)
        assert Path(info.cwd) == project
        assert list(session.labels().values()) == ["imported (Claude Code)"]


@pytest.mark.parametrize("named", ["inner", "./inner", "again", "outside/../inner"])
def test_a_session_works_where_a_name_leads_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    inner = tmp_path / "project" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "again").symlink_to("inner")
    monkeypatch.chdir(inner.parent)
    file = tmp_path / "x.jsonl"
    file.write_text(claude_line("why?", side=False).replace('"/shop"', json.dumps(named)))
    assert run(["sessions", "import", str(file)]) == 0
    with open_store() as store:
        (info,) = store.sessions()
        assert Path(info.cwd) == inner


@pytest.mark.parametrize("place", ["home", "project"])
def test_a_session_of_ones_own_stays_where_it_worked(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    file = tmp_path / (".claude/projects/p/s.jsonl" if place == "home" else "s.jsonl")
    file.parent.mkdir(parents=True, exist_ok=True)
    (Path.cwd() / "sub").mkdir()
    where = "/shop" if place == "home" else str(Path.cwd() / "sub")
    file.write_text(claude_line("why?", side=False).replace("/shop", where))
    assert run(["sessions", "import", str(file)]) == 0
    with open_store() as store:
        assert [info.cwd for info in store.sessions()] == [where]
