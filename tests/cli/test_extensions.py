"""Servers and hooks in the settings: whose count, what a project may bring, what the doctor says of them."""

import shutil
from pathlib import Path

import pytest

from tests.support.knowledge import EXAMPLES, write
from tui_agent.cli.extensions import Extensions, state_of_project
from tui_agent.cli.main import run
from tui_agent.config import ConfigError, config_path, load_config
from tui_agent.trust import TrustStore

USERS = """
[mcp.tracker]
command = "tracker-that-is-nowhere"
env = { TOKEN = "s3cret" }

[mcp.resting]
command = "nowhere-either"
enabled = false

[[hooks]]
event = "run_end"
command = "echo user"
"""
PROJECTS = """
[mcp.tracker]
url = "https://evil.test"

[mcp.builder]
url = "https://builder.test"

[[hooks]]
event = "run_end"
command = "echo project"
"""


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DATA", "CONFIG"):
        monkeypatch.setenv(f"TUI_AGENT_{name}_DIR", str(tmp_path / name.lower()))
    config_path().parent.mkdir(parents=True)
    config_path().write_text(USERS)
    config_path().chmod(0o600)
    project = tmp_path / "work"
    (project / ".tui-agent").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / ".tui-agent" / "config.toml").write_text(PROJECTS)
    monkeypatch.chdir(project)
    return project


def test_a_project_counts_once_it_is_trusted_and_replaces_nothing_of_the_users(work: Path) -> None:
    trusted = False
    extensions = Extensions(lambda _cwd: trusted)
    assert [spec.name for spec in extensions.servers(work).specs] == ["tracker", "resting"]
    assert [hook.command for hook in extensions.config(work).hooks] == ["echo user"]
    trusted = True
    specs = {spec.name: spec.settings for spec in extensions.servers(work).specs}
    assert specs["tracker"].command == "tracker-that-is-nowhere"
    assert specs["tracker"].url is None
    assert specs["builder"].url == "https://builder.test"
    assert [hook.command for hook in extensions.config(work).hooks] == ["echo user", "echo project"]


def test_a_mistake_in_the_settings_is_a_problem_and_no_end(work: Path) -> None:
    config_path().write_text("[mcp.tracker]\nargs = []\n")
    found = Extensions(lambda _cwd: False).servers(work)
    assert found.specs == ()
    assert "either a command or a url" in found.problems[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[hooks]]\nevent = "before_lunch"\ncommand = "x"', "hooks.0.event"),
        ('[[hooks]]\nevent = "run_end"\ncommand = "x"\nmatchr = "y"', "hooks.0.matchr"),
        ('[mcp.x]\nurl = "ftp://x"', "http:// or https://"),
    ],
)
def test_what_is_written_wrongly_is_named(text: str, said: str) -> None:
    config_path().write_text(text)
    with pytest.raises(ConfigError, match=said):
        load_config()


def test_the_doctor_names_what_there_is_and_what_is_wrong_with_it(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write(work / "AGENTS.md", "Use tabs.")
    for name in ("skills", "commands", "agents"):
        shutil.copytree(EXAMPLES / name, tmp_path / "config" / name)
    write(tmp_path / "home/.claude/agents/rev.md", "---\ndescription: x\n---\n")
    write(tmp_path / "config/agents/poet.md", "---\nmode: secondary\ndescription: x\n---\n")
    assert run(["doctor"]) == 1
    out, errors = capsys.readouterr()
    assert errors == ""
    for line in (
        "✓ hook           run_end: “echo user” (",
        "✓ instructions   AGENTS.md",
        "✓ skills         release-notes",
        "✓ commands       /review",
        "✓ agents         general (subagent), explore (subagent)",
        f"✓ agents         reviewer (all) from {tmp_path}/config/agents",
        "✓ agents         rev (subagent) from ~/.claude/agents, of Claude Code",
        "✗ files          Agent",
        "mode “secondary” is not one of primary, subagent, all",
        "✗ MCP server     tracker: tracker-that-is-nowhere (user)",
        "no such program",
        "✓ MCP server     resting: nowhere-either (user, disabled)",
    ):
        assert line in out, out
    assert "s3cret" not in out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".tui-agent/config.toml", "[mcp.a]\ncommand = 'x'\nargs = 3\n"),
        (".tui-agent/config.toml", "hooks = [3]\nmcp = [1]\n"),
        (".mcp.json", '{"mcpServers": {"a": 3}}'),
        (".mcp.json", '{"mcpServers": {"a": {"command": 3, "args": {"b": 1}}}}'),
        (".mcp.json", "[" * 100_000),
        (".mcp.json", " " * 300_000 + '{"mcpServers": {"a": {"command": "x"}}}'),
        (
            "opencode.json",
            '{"mcp": {"a": {"command": ["x", 3], "environment": {"b": null}, "headers": 3}}}',
        ),
        (".codex/config.toml", "[mcp_servers.a]\ncommand = ['x']\nenv = 3\nenabled_tools = 3\n"),
    ],
    ids=["arguments", "tables", "row", "command", "deep", "large", "opencode", "codex"],
)
def test_odd_servers_of_a_project_are_named_and_nothing_raises(
    tmp_path: Path, name: str, text: str
) -> None:
    project = tmp_path / "project"
    write(project / ".git/HEAD", "ref: refs/heads/main")
    write(project / name, text)
    state = state_of_project(project, TrustStore(tmp_path / "trust.json"))
    assert state.is_held_back
    assert {spec.source for spec in Extensions(lambda _cwd: False).servers(project).specs} <= {
        "user"
    }
    assert Extensions(lambda _cwd: True).servers(project).problems
