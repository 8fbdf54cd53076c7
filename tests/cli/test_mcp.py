"""``tui-agent mcp``: servers are listed, added, tried, removed and taken over without a screen."""

import json
import sys
from pathlib import Path

import pytest

from tests.support.contained import needs_layer
from tui_agent.cli.main import run
from tui_agent.config import config_path, load_config

ROOT = Path(__file__).parents[2]


pytestmark = pytest.mark.usefixtures("here")


def test_a_server_is_added_listed_and_removed(capsys):
    assert run(["mcp"]) == 0
    assert "There are no MCP servers. Add one" in capsys.readouterr().out
    assert (
        run(["mcp", "add", "--env", "KEY=a=b", "tracker", "npx", "-y", "tracker-mcp", "--fast"])
        == 0
    )
    assert (
        run(["mcp", "add", "--header", "X-Key: k", "--sse", "docs", "https://docs.example/sse"])
        == 0
    )
    servers = load_config().config.mcp
    assert servers["tracker"].model_dump(exclude_defaults=True) == {
        "command": "npx", "args": ("-y", "tracker-mcp", "--fast"), "env": {"KEY": "a=b"},
    }  # fmt: skip
    assert (servers["docs"].type, servers["docs"].headers) == ("sse", {"X-Key": "k"})
    assert config_path().stat().st_mode & 0o777 == 0o600
    capsys.readouterr()
    assert run(["mcp", "list", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["address"] for row in rows] == [
        "npx -y tracker-mcp --fast",
        "https://docs.example/sse",
    ]
    assert run(["mcp", "remove", "tracker"]) == 0
    assert list(load_config().config.mcp) == ["docs"]


def test_a_server_of_another_file_is_listed_with_that_file(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    theirs = tmp_path / "home" / ".claude.json"
    theirs.parent.mkdir(exist_ok=True)
    theirs.write_text('{"mcpServers": {"notes": {"command": "npx"}}}')
    assert run(["mcp", "list"]) == 0
    assert ".claude.json" in capsys.readouterr().out
    assert run(["mcp", "remove", "notes"]) == 2
    told = capsys.readouterr().err
    assert ".claude.json" in told
    assert "project" not in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["add", "x"], "Add the server's command or its URL"),
        (["add", "x", "--env", "A=b", "npx"], "Put --env before the name"),
        (["add", "a/b", "npx"], "A server's name may contain only"),
        (["add", "--env", "A", "x", "npx"], "Write the option as --env NAME=VALUE"),
        (["add", "x", "https://x.example", "more"], "A URL takes no arguments"),
        (["add", "--header", "A: b", "x", "npx"], "--header and --sse need a URL"),
        (["add", "--env", "A=b", "x", "https://x.example"], "--env needs a command"),
        (["add", "x", "https://"], "A URL has to start with http:// or https:// and a host"),
        (["add", "x", "https://[x"], "A URL has to start with http:// or https:// and a host"),
        (
            ["add", "x", "https://a:99999/"],
            "A URL has to start with http:// or https:// and a host",
        ),
        (["add", "x", ""], "The server's command or URL is empty"),
        (
            ["add", "--header", "A: b\r\nC: d", "x", "https://x.example"],
            "Write the option as --header",
        ),
        (["remove", "x"], "x is not in your settings"),
        (["test", "x"], "There is no server x. Servers: none"),
    ],
)
def test_mistakes_are_told_in_a_sentence(capsys, arguments, told):
    assert run(["mcp", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_server_that_is_held_back_is_told_as_such(capsys, tmp_path, monkeypatch):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "server.sh").write_text("exit 0\n")
    monkeypatch.chdir(project)
    assert run(["mcp", "add", "x", "sh", "server.sh"]) == 0
    assert run(["mcp", "test", "x"]) == 2
    assert "The server x is not started: it runs server.sh" in capsys.readouterr().err


def test_an_address_may_have_variables(capsys):
    assert run(["mcp", "add", "x", "https://${HOST:-a.example}:${PORT}/mcp"]) == 0
    assert load_config().config.mcp["x"].url == "https://${HOST:-a.example}:${PORT}/mcp"


def test_a_server_is_not_replaced_unasked(capsys):
    assert run(["mcp", "add", "x", "one"]) == 0
    assert run(["mcp", "add", "x", "two"]) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert run(["mcp", "add", "--force", "x", "two"]) == 0
    assert load_config().config.mcp["x"].command == "two"


def test_a_server_is_tried_and_told_what_it_offers_and_costs(capsys, tmp_path):
    environment = ["--env", f"PYTHONPATH={ROOT}", "--env", "PYTHONDONTWRITEBYTECODE=1"]
    run(
        [
            "mcp",
            "add",
            *environment,
            "tracker",
            sys.executable,
            "-m",
            "tests.support.mcp_server",
            str(tmp_path),
        ]
    )
    run(["mcp", "add", "gone", "/nowhere/at/all"])
    capsys.readouterr()
    assert run(["mcp", "test", "tracker"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("tracker: ready")
    for part in (
        "Add two numbers.",
        "all tools",
        "/tracker:review SUBJECT",
        "@tracker:memo://today",
    ):
        assert part in told
    assert run(["mcp", "test", "gone"]) == 1
    out, err = capsys.readouterr()
    assert "there is no program “/nowhere/at/all”" in out
    assert err == ""


HOSTILE = """
import json, sys
EVIL = "\\x1b]0;own\\x07\\x1b[2J[bold]\\u202e\\n" + "x" * 1_000_000
LISTS = {"tools": {"name": EVIL, "description": EVIL, "inputSchema": {"type": "object"}},
         "prompts": {"name": EVIL, "description": EVIL}, "resources": {"uri": "file:///" + EVIL, "name": EVIL}}
for line in sys.stdin:
    asked = json.loads(line)
    kind = asked["method"].partition("/")[0]
    result = {kind: [LISTS[kind]]} if kind in LISTS and asked["method"].endswith("/list") else {}
    if kind == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "instructions": EVIL,
                  "capabilities": {name: {} for name in LISTS}, "serverInfo": {"name": EVIL, "version": "1"}}
    if sys.argv[1:] == ["wrong"]:
        result = {"no": EVIL}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def test_what_a_hostile_server_calls_its_things_stays_on_one_harmless_line(capsys, tmp_path):
    (tmp_path / "hostile.py").write_text(HOSTILE)
    run(["mcp", "add", "evil", sys.executable, str(tmp_path / "hostile.py")])
    run(["mcp", "add", "wrong", sys.executable, str(tmp_path / "hostile.py"), "wrong"])
    capsys.readouterr()
    assert run(["mcp", "test", "evil"]) == 0
    told = capsys.readouterr().out
    assert not set("\x1b\x07\u202e") & set(told)
    assert (len(told.splitlines()), max(map(len, told.splitlines())) < 250) == (6, True), told[
        :2000
    ]
    assert run(["mcp", "test", "wrong"]) == 1
    assert "\nits answer does not follow the protocol.\n" in capsys.readouterr().out


@needs_layer
def test_a_server_is_tried_in_the_sandbox_of_a_session(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hidden = Path.home() / "elsewhere"
    hidden.mkdir(parents=True)
    program = hidden / "server.py"
    program.write_text((ROOT / "tests/support/plain_mcp_server.py").read_text())
    run(["mcp", "add", "tracker", "/usr/bin/python3", str(program), str(tmp_path)])
    assert run(["mcp", "test", "tracker"]) == 0
    run(["config", "set", "mcp.tracker.sandboxed", "true"])
    capsys.readouterr()
    assert run(["mcp", "test", "tracker"]) == 1
    told = capsys.readouterr().out
    assert told.startswith("tracker: failed")
    assert f"it can't see {program} in the sandbox" in told
