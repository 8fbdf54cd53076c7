"""The subcommands: what they print, and one sentence and an exit code when something is wrong."""

import json
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.support.list_server import ListServer
from tests.support.model_server import ModelServer
from tui_agent.app.controller import Controller
from tui_agent.cli.headless import HeadlessRun
from tui_agent.cli.main import run
from tui_agent.cli.models import LEARNT
from tui_agent.cli.sessions import open_store, session_row
from tui_agent.model.forms import ServerForm
from tui_agent.model.learnt import LearntFacts
from tui_agent.paths import data_dir
from tui_agent.sandbox import find_sandbox
from tui_agent.session.entries import (
    AssistantEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.errors import StoreError
from tui_agent.session.records import Holder, SessionInfo
from tui_agent.session.session import Session

pytestmark = pytest.mark.usefixtures("here")


def answer(text: str, *calls: ToolCallPart) -> AssistantEntry:
    return AssistantEntry(parts=(TextPart(text=text), *calls), model="demo")


@pytest.fixture
def recorded() -> str:
    """A session with a tool call and two branches."""
    with open_store() as store:
        session = Session(
            store, store.create_session(Path.cwd(), title="shop").id, estimate=lambda _entry: 7
        )
        question = session.append(UserEntry(parts=(TextPart(text="why is the total wrong?"),)))
        session.append(
            answer(
                "Looking.", ToolCallPart(call_id="a", tool="read", arguments='{"path": "cart.py"}')
            )
        )
        read = ToolResultEntry(
            call_id="a", tool="read", status=ToolStatus.COMPLETED, output="price only\n" * 300
        )
        session.append(read)
        session.append(answer("The quantity is ignored."))
        session.move(question.id)
        session.append(answer("Another answer, cardamom."))
        session.label(question.id, "start")
        return session.id


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    # Where commands have no layer, doctor says so and ends with 1.
    allowed = {code} if arguments[0] != "doctor" or find_sandbox().layered else {code, 1}
    assert run([*arguments]) in allowed
    out = capsys.readouterr()
    return out.out if code == 0 else out.err


def test_going_on_says_where_the_sessions_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-c", "-p", "hi"]) == 1
    assert "tui-agent -r" in capsys.readouterr().err
    assert run(["--demo", "-p", "hi"]) == 0
    assert run(["-c", "-p", "hi"]) == 1
    assert "tui-agent --demo -c" in capsys.readouterr().err
    assert run(["--demo", "-c", "-p", "hi again"]) == 0


def test_a_run_that_got_to_no_model_leaves_its_message_to_go_on_with(
    capsys: pytest.CaptureFixture[str], recorded: str
) -> None:
    before = printed(capsys, "sessions", "list", "--json").splitlines()
    assert run(["-p", "hello", "--model", "openai/gpt-5"]) == 1
    capsys.readouterr()
    newest, *others = printed(capsys, "sessions", "list", "--json").splitlines()
    assert others == before
    assert json.loads(newest)["first_message"] == "hello"
    assert run(["-p", "go on", "-r", recorded]) == 1
    capsys.readouterr()
    listed = map(json.loads, printed(capsys, "sessions", "list", "--json").splitlines())
    assert next(row["entry_count"] for row in listed if row["id"] == recorded) > 5, (
        "it was there before"
    )


def test_sessions_are_listed_searched_and_deleted(
    capsys: pytest.CaptureFixture[str], recorded: str
) -> None:
    assert "shop" in printed(capsys, "sessions", "list", "--here")
    row = json.loads(printed(capsys, "sessions", "list", "--json"))
    assert (row["id"], row["entry_count"]) == (recorded, 5)
    shown = printed(capsys, "sessions", "export", recorded[-8:])
    assert "why is the total wrong?" in shown
    assert "cardamom" in shown
    assert "quantity" not in shown, "only the current path is shown"
    found = printed(capsys, "sessions", "search", "quantity ignored")
    assert found.startswith(f"{recorded[-8:]}#4 "), "the same short id as in the list"
    assert "Nothing found" in printed(capsys, "sessions", "search", "xylophone")
    assert "Deleted" in printed(capsys, "sessions", "delete", recorded, "--yes")
    assert "no sessions" in printed(capsys, "sessions", "list")


def test_a_row_of_the_list_fits_the_terminal() -> None:
    where = "/home/somebody/projects/a-company/a-very-long-name-of-a-project"
    title = "漢字 and the login redirect " * 9
    info = SessionInfo(
        "01a2" * 8, where, title, 0, 0, "m", 99_999, 1, None, None, "", 0.0, "", None
    )
    for held in (None, Holder(1, "here", 0)):
        row = replace(info, held_by=held)
        for columns in (60, 80, 120):
            assert cell_len(session_row(row, columns)) <= columns
        assert session_row(row, 120).endswith("  open elsewhere") == bool(held)
    assert "of-a-project  漢字" in session_row(info, 80)
    assert where in session_row(info, None)


def test_the_tree_marks_where_one_is(capsys: pytest.CaptureFixture[str], recorded: str) -> None:
    lines = printed(capsys, "tree", recorded).splitlines()
    assert lines[0].startswith("• #1 user: why is the total wrong? [start]")
    assert lines[1].startswith("├─· #2")
    assert lines[-1].startswith("└─• #5")
    assert lines[-1].endswith("◀ here")
    rows = [json.loads(line) for line in printed(capsys, "tree", recorded, "--json").splitlines()]
    assert [row["leaf"] for row in rows] == [False] * 4 + [True]


def test_the_demo_records_what_it_changes_and_the_tree_names_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["--demo", "-p", "fix the bug", "--allow", "edit"]) == 0
    capsys.readouterr()
    row = json.loads(printed(capsys, "sessions", "list", "--json"))
    lines = printed(capsys, "tree", row["id"]).splitlines()
    edited = next(number for number, line in enumerate(lines) if "edit shop/cart.py" in line)
    assert lines[edited + 1].endswith("files changed: shop/cart.py")
    assert not any("**" in line or "`" in line for line in lines), "words, not Markdown"


def test_a_subcommand_that_is_told_nothing_does_what_it_usually_does(
    capsys: pytest.CaptureFixture[str], recorded: str
) -> None:
    assert printed(capsys, "sessions") == printed(capsys, "sessions", "list")
    assert json.loads(printed(capsys, "sessions", "--json"))["id"] == recorded
    assert printed(capsys, "config") == printed(capsys, "config", "get")
    assert printed(capsys, "tree") == printed(capsys, "tree", recorded)
    assert printed(capsys, "context") == printed(capsys, "context", recorded)
    for line in ("tree --json", "cost --json", "context --json --at 4"):
        assert printed(capsys, *line.split()) == printed(capsys, "-c", "-p", f"/{line}"), (
            "one implementation"
        )
    assert run(["compact", "--preview"]) == 1, "three words can't get shorter"
    assert "Compacting would free too little" in capsys.readouterr().err


def test_the_request_is_the_same_every_time(
    capfdbinary: pytest.CaptureFixture[bytes], recorded: str
) -> None:
    assert run(["context", recorded, "--at", "4", "--request"]) == 0
    first = capfdbinary.readouterr().out
    assert run(["context", recorded, "--at", "4", "--request"]) == 0
    assert capfdbinary.readouterr().out == first
    messages = [json.loads(line) for line in first.splitlines()]
    assert [message["role"] for message in messages if "role" in message] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert run(["context", recorded, "--at", "4", "--window", "8000", "--model", "demo"]) == 0
    shown = capfdbinary.readouterr().out
    assert b"of 8,000 tokens" in shown
    assert b"tool result read" in shown


def test_settings_are_written_read_listed_and_removed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert printed(capsys, "config", "path").strip() == str(tmp_path / "config" / "config.toml")
    assert "80%" in printed(capsys, "config", "set", "compaction.threshold", "80%")
    assert printed(capsys, "config", "get", "compaction.threshold").strip() == "80%"
    printed(capsys, "config", "set", "providers.openai.api_key", "sk-very-secret")
    monkeypatch.setenv("TUI_AGENT_MAX_STEPS", "9")
    listed = printed(capsys, "config", "get")
    assert "sk-very-secret" not in listed
    lines = [" ".join(line.split()) for line in listed.splitlines()]
    assert {"model = (not set) # default", "max_steps = 9 # environment"} <= {*lines}
    assert any(
        line.startswith('providers = {"openai":') and line.endswith("# file") for line in lines
    )
    printed(capsys, "config", "unset", "compaction.threshold")
    assert "null" in printed(capsys, "config", "get", "compaction.threshold")


def test_listed_settings_contain_no_secret(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "config" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        '[mcp.gh]\ncommand = "npx"\nargs = ["--api-key=SECRET"]\nenv = {GH_TOKEN = "SECRET"}\n'
        '[mcp.web]\nurl = "https://example.com/mcp?key=SECRET"\n'
        '[models."a/b"]\nheaders = {Authorization = "Bearer SECRET"}\n'
        '[permissions]\nread = {"*.key" = "deny"}\n'
        '[sandbox]\nmask = {GITHUB_TOKEN = ["api.github.com"]}\n'
    )
    for arguments in ([], ["mcp"], ["mcp.gh"], ["models"], ["mcp.gh.args"]):
        listed = printed(capsys, "config", "get", *arguments)
        assert "SECRET" not in listed
    listed = printed(capsys, "config", "get")
    assert '{"*.key": "deny"}' in listed, "a rule about secrets is none"
    assert '{"GITHUB_TOKEN": ["api.github.com"]}' in listed
    assert printed(capsys, "config", "get", "mcp.gh.command") == "npx\n"
    assert "SECRET" not in printed(capsys, "config", "set", "mcp.gh.env.OTHER", "SECRET")
    run(["doctor"])
    assert "SECRET" not in capsys.readouterr().out


def test_no_name_is_saved_that_can_be_no_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "set", "model", "antropic/claude-sonnet-5"]) == 2
    assert "Did you mean anthropic/claude-sonnet-5" in capsys.readouterr().err
    assert run(["config", "get", "model"]) == 0
    assert capsys.readouterr() == ("null\n", "model is not set.\n")
    assert run(["config", "set", "model", "openai/gpt-of-tomorrow"]) == 0
    told = capsys.readouterr()
    assert "no model" in told.err
    assert "openai/gpt-of-tomorrow in" in told.out
    assert run(["-p", "hi", "--model", "nosuch"]) == 2
    assert "provider/name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("ui.theme", "foo", "no theme “foo”"),
        ('models."opnai/gpt-4o".context_window', "9000", "Did you mean openai/gpt-4o"),
        ("providers.openia.api_key", "sk-1", "Did you mean openai"),
        ("keys.compact", "f99", "“f99” is not a key"),
        ("keys.kompact", "f8", "Did you mean compact"),
    ],
)
def test_what_names_nothing_is_saved_with_a_warning(
    capsys: pytest.CaptureFixture[str], key: str, value: str, told: str
) -> None:
    assert run(["config", "set", key, value]) == 0
    assert told in capsys.readouterr().err
    assert run(["config", "get", key]) == 0


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("permissions.bash", "sometimes", "allow, ask or deny"),
        ("permissions.basg", "allow", "is not a permission"),
        ("mode", "nonsense", "'build', 'auto-edit' or 'plan'"),
        ("compaction.threshold", "5", "at least 1,024"),
        ("instructions", "notes.md", 'it takes a list, such as ["one", "two"]'),
        (
            "compaction.auto",
            "maybe",
            "compaction.auto = 'maybe' is not accepted: it takes true or false or 'ask'",
        ),
        ('models."a/b".wire', "smoke", "'gemini' or 'ollama' or 'litellm'"),
        ("max_steps", "many", "a whole number"),
    ],
)
def test_what_says_nothing_is_not_saved(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, key: str, value: str, told: str
) -> None:
    assert run(["config", "set", key, value]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "config" / "config.toml").exists()


def test_a_setting_that_makes_sense_is_saved_without_a_word(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for key, value in (
        ("ui.theme", "nord"),
        ("permissions.bash", '{"git *" = "allow"}'),
        ("keys.compact", "f12"),
        ('models."openai/mine".base_url', "http://localhost:1/v1"),
        ('models."openai/*".threshold', "70%"),
        ("prune", "false"),
    ):
        assert run(["config", "set", key, value]) == 0
        assert capsys.readouterr().err == ""
    assert printed(capsys, "config", "get", "prune.when").strip() == "off"


def test_what_the_welcome_screen_shows_is_enough_to_work_with(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The snippet with the address of a server that runs, and nothing else."""
    with ModelServer() as server:
        (tmp_path / "config").mkdir()
        (tmp_path / "config" / "config.toml").write_text(
            '  [models."openai/my-model"]\n'
            f'  base_url = "http://127.0.0.1:{server.port}/v1"\n  context_window = 32768\n'
        )
        assert run(["-p", "cinnamon"]) == 0
    assert "cinnamon" in capsys.readouterr().out
    assert "openai/my-model, window 32,768" in printed(capsys, "doctor")


def test_doctor_tells_what_is_missing_and_where_settings_come_from(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["doctor"]) == 1
    assert "no model and no API key" in capsys.readouterr().out
    monkeypatch.setenv("EXA_API_KEY", "exa-secret-value")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret-value")
    monkeypatch.setenv("TUI_AGENT_MAX_STEPS", "9")
    shown = printed(capsys, "doctor")
    assert "max_steps = 9  (environment)" in shown
    assert "ANTHROPIC_API_KEY" in shown
    assert "Exa, from EXA_API_KEY" in shown
    assert "secret-value" not in shown
    found = map(json.loads, printed(capsys, "doctor", "--json").splitlines())
    assert all(row["ok"] for row in found if row["subject"] != "sandbox")
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-deep")
    for model, is_gone in (("deepseek/deepseek-chat", True), ("deepseek/deepseek-flash", False)):
        printed(capsys, "config", "set", "model", model)
        run(["doctor"])
        assert ("out of service since 2026-07-24" in capsys.readouterr().out) is is_gone


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[ListServer]:
    """A gateway the environment names, which has four models."""
    others = ("claude-sonnet-4-5", "text-embedding-3-large", "whisper-1")
    rows = [{"id": "team-model", "max_model_len": 65_536}, *({"id": name} for name in others)]
    with ListServer({"/v1/models": {"data": rows}}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-gateway-secret")
        yield server


def test_models_of_a_gateway_are_asked_for_and_kept(
    capsys: pytest.CaptureFixture[str], gateway: ListServer
) -> None:
    assert run(["models", "openai/", "--json"]) == 0
    shown = capsys.readouterr()
    rows = {row["id"]: row for row in map(json.loads, shown.out.splitlines())}
    windows = {name: row["context_window"] for name, row in rows.items()}
    assert windows == {"openai/claude-sonnet-4-5": 200_000, "openai/team-model": 65_536}
    assert rows["openai/team-model"]["window_origin"] == "server"
    assert f"127.0.0.1:{gateway.port} (OPENAI_BASE_URL): 4 models, listed just now" in shown.err
    assert gateway.asked[0][1]["authorization"] == "Bearer sk-gateway-secret"

    gateway.answers["/v1/models"] = 500
    run(["config", "set", "model", "openai/unlisted"])
    assert run(["models", "openai/"]) == 0
    shown = capsys.readouterr()
    assert "openai/unlisted" in shown.out
    assert "openai/team-model" in shown.out
    assert "answers with status 500; showing its list from just now" in shown.err
    assert not [
        path
        for path in data_dir().rglob("*")
        if path.is_file() and b"sk-gateway" in path.read_bytes()
    ]


@pytest.mark.skipif(not find_sandbox().layered, reason="needs bubblewrap")
def test_doctor_starts_the_process_that_checks_changes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (sys.executable, "-c", "raise SystemExit('Permission denied: /opt')")
    monkeypatch.setattr("tui_agent.sandbox.sandbox.judge_words", lambda _root: words)
    assert run(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "✗ sandbox        changes made by commands can't be checked" in shown
    assert "the judge process ended: Permission denied: /opt" in shown


def test_doctor_shows_where_requests_go_and_asks_nobody(
    capsys: pytest.CaptureFixture[str], gateway: ListServer
) -> None:
    printed(capsys, "config", "set", "model", "openai/team-model")

    shown = printed(capsys, "doctor")

    assert f"OpenAI at http://127.0.0.1:{gateway.port}/v1, from OPENAI_BASE_URL" in shown
    assert "openai/team-model, window 32,768 tokens (assumed)" in shown
    assert "sk-gateway" not in shown
    assert gateway.asked == []
    run(["models"])
    capsys.readouterr()
    shown = printed(capsys, "doctor")
    assert "from OPENAI_BASE_URL, models listed just now" in shown
    assert "openai/team-model, window 65,536 tokens (from its server)" in shown


def test_doctor_finds_a_damaged_database_and_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret-value")
    assert "0 in " in printed(capsys, "doctor")
    path = next(tmp_path.rglob("*.db"))
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE filler (x)")
        connection.executemany("INSERT INTO filler VALUES (?)", [("y" * 500,) for _ in range(200)])
    connection.close()
    data = bytearray(path.read_bytes())
    data[-5 * 4096 : -2 * 4096] = b"\xa5" * (3 * 4096)
    path.write_bytes(data)
    assert run(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "is damaged" in shown
    assert ".recover" in shown
    assert path.read_bytes() == bytes(data), "looking changes nothing"


def test_what_a_server_refused_is_listed_and_can_be_forgotten(
    capsys: pytest.CaptureFixture[str], gateway: ListServer
) -> None:
    name = "openai/team-model"
    served = f"{name} at http://127.0.0.1:{gateway.port}/v1"
    LearntFacts(data_dir() / LEARNT).keep_form(served, ServerForm(system=False, fields=("store",)))

    assert (
        "sent in another form: the system text is part of the first message; without the fields store"
        in printed(capsys, "models", "team")
    )
    (row,) = [json.loads(line) for line in printed(capsys, "models", "team", "--json").splitlines()]
    assert row["sent_otherwise"] == [
        "the system text is part of the first message",
        "without the fields store",
    ]
    assert "is sent with all its parts again" in printed(capsys, "models", "--forget", name)
    assert "sent in another form" not in printed(capsys, "models", "team")
    assert run(["models", "--forget", name]) == 1


def test_models_are_those_with_a_key_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "No API key" in printed(capsys, "models")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret-value")
    rows = [json.loads(line) for line in printed(capsys, "models", "claude", "--json").splitlines()]
    assert rows
    assert {row["provider"] for row in rows} == {"anthropic"}
    assert "○" in printed(capsys, "models", "gpt-5", "--all")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--nonsense"], 2, "--help"),
        (["--cwd", "nowhere"], 2, "not a directory"),
        (["sessions", "export", "nope"], 1, "no session"),
        (["config", "get", "nope"], 2, "no setting"),
        (["config", "set", "max_steps", "many"], 2, "max_steps"),
        (["-p", "hi", "--allow", "everything"], 2, "not a permission"),
        (["-p", "hi"], 1, "No model is chosen"),
        (["hello"], 2, "needs a terminal"),
        (["sesions"], 2, "Did you mean sessions?"),
        (["--demo", "doctor"], 2, "The command doctor has to be the first"),
        (["--", "sesions"], 2, "needs a terminal"),
        (["tree"], 1, "no session in this directory"),
    ],
)
def test_every_mistake_is_one_sentence(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    words: str,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    message = printed(capsys, *arguments, code=code)
    assert words in message
    assert "Traceback" not in message
    assert len(message.strip().splitlines()) == 1


def test_a_run_whose_outcome_can_t_be_recorded_is_closed_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed: list[Controller] = []
    close = Controller.close

    def refuse(_run: HeadlessRun, _code: int) -> None:
        raise StoreError("The disk is full.")

    async def noted(controller: Controller) -> None:
        closed.append(controller)
        await close(controller)

    monkeypatch.setattr(HeadlessRun, "keep_outcome", refuse)
    monkeypatch.setattr(Controller, "close", noted)
    assert run(["--demo", "-p", "hello"]) == 1
    assert "The disk is full." in capsys.readouterr().err
    assert len(closed) == 1
