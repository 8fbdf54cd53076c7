"""Servers in other programs' files are started here as they are there."""

import json
from pathlib import Path

import pytest

from tests.support.knowledge import write
from tui_agent import foreign_file
from tui_agent.agent.mcp.settings import FoundServers, McpServerSettings, find_servers
from tui_agent.foreign_servers import servers_of_project, servers_of_user
from tui_agent.trust import TrustStore, project_state


def found(
    tmp_path: Path, *, trusted: bool = False, own: dict[str, McpServerSettings] | None = None
) -> FoundServers:
    project = tmp_path / "project"
    return find_servers(
        own or {},
        project,
        others=servers_of_user(tmp_path / "home", project),
        of_project=servers_of_project(project, [project]) if trusted else (),
    )


def test_the_users_servers_of_three_programs(tmp_path: Path) -> None:
    project = tmp_path / "project"
    claude = {
        "mcpServers": {
            "files": {"command": "npx", "args": ["-y", "files"], "env": {"A": "1"}},
            "both": {"command": "a"},
        },
        "projects": {str(project): {"mcpServers": {"both": {"command": "b"}, "web": {"url": "https://x.test/mcp"}}}},
    }  # fmt: skip
    write(tmp_path / "home/.claude.json", json.dumps(claude))
    write(
        tmp_path / "home/.codex/config.toml",
        '[mcp_servers.docs]\nurl = "https://docs.test"\nbearer_token_env_var = "DOCS"\ntool_timeout_sec = 5\n'
        '[mcp_servers.off]\ncommand = "x"\nenabled = false\n',
    )
    write(
        tmp_path / "home/.config/opencode/opencode.jsonc",
        '{ // mine\n "mcp": {"local": {"type": "local", "command": ["bun", "x"], "environment": {"B": "2"},},}, }',
    )
    servers = {spec.name: spec.settings for spec in found(tmp_path).specs}
    assert set(servers) == {"files", "both", "web", "docs", "off", "local"}
    assert (servers["files"].command, servers["files"].args, servers["files"].env) == (
        "npx",
        ("-y", "files"),
        {"A": "1"},
    )
    assert servers["both"].command == "b"
    assert servers["docs"].headers == {"Authorization": "Bearer ${DOCS}"}
    assert (servers["docs"].timeout, servers["off"].enabled) == (5, False)
    assert (servers["local"].command, servers["local"].args, servers["local"].env) == (
        "bun",
        ("x",),
        {"B": "2"},
    )
    assert not any(settings.sandboxed for settings in servers.values())


def test_ours_win_a_projects_wait_for_trust_and_run_in_the_sandbox(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(
        project / "opencode.json",
        json.dumps({"mcp": {"db": {"type": "local", "command": ["db"]}, "x": {"command": ["p"]}}}),
    )
    write(tmp_path / "home/.claude.json", json.dumps({"mcpServers": {"x": {"command": "home"}}}))
    assert [spec.name for spec in found(tmp_path).specs] == ["x"]
    specs = {
        spec.name: spec
        for spec in found(tmp_path, trusted=True, own={"x": McpServerSettings(command="own")}).specs
    }
    assert specs["x"].settings.command == "own"
    assert (specs["db"].source, specs["db"].settings.sandboxed) == ("project", True)
    items = project_state(project, TrustStore(tmp_path / "trust.json")).items
    assert [(item.kind, item.name, item.text) for item in items] == [
        ("MCP server", "db", "runs db"), ("MCP server", "x", "runs p")
    ]  # fmt: skip


def test_mistakes_are_said_with_file_and_line(tmp_path: Path) -> None:
    write(
        tmp_path / "home/.claude.json",
        '{"mcpServers": {\n"none": {},\n"odd": {"command": "x", "args": 3}, "word": 1}}',
    )
    read = found(tmp_path)
    assert read.specs == ()
    assert [problem.split(": ")[0] for problem in read.problems] == [
        "~/.claude.json:2", "~/.claude.json:3", "~/.claude.json:3"
    ]  # fmt: skip


def test_a_server_knows_the_file_it_is_from(tmp_path: Path) -> None:
    row = {"command": "npx"}
    write(tmp_path / "home/.claude.json", json.dumps({"mcpServers": {"mine": row}}))
    write(tmp_path / "project/opencode.json", '{\n"mcp": {"theirs": {"command": ["bun"]}}}')
    specs = found(tmp_path, trusted=True, own={"own": McpServerSettings(command="x")}).specs
    assert {spec.name: spec.place.partition(":")[0] for spec in specs} == {
        "own": "config.toml",
        "mine": "~/.claude.json",
        "theirs": "opencode.json",
    }


def test_a_file_that_is_too_large_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_file, "MAX_BYTES", 100)
    row = {"command": "npx", "args": ["x" * 100]}
    write(tmp_path / "home/.claude.json", json.dumps({"mcpServers": {"mine": row}}))
    (problem,) = found(tmp_path).problems
    assert "more than 100 bytes" in problem


def test_a_project_changes_the_users_server_of_pi(tmp_path: Path) -> None:
    mine = {name: {"command": name} for name in ("off", "hidden", "direct", "part", "own")}
    write(tmp_path / "home/.pi/agent/mcp.json", json.dumps({"mcpServers": mine}))
    changes = {
        "off": {"enabled": False},
        "hidden": {"exposure": "hidden", "toolExposure": {"read": "direct"}},
        "direct": {"exposure": "direct"},
        "part": {"toolExposure": {"drop": "hidden"}},
        "own": {"enabled": False},
        "unknown": {"enabled": False},
    }
    write(tmp_path / "project/.pi/mcp.json", json.dumps({"mcpServers": changes}))
    own = {"own": McpServerSettings(command="mine", deny=("x",))}

    servers = found(tmp_path, trusted=True, own=own)

    settings = {spec.name: spec.settings for spec in servers.specs}
    assert not settings["off"].enabled
    assert settings["hidden"].allow == ("read",)
    assert settings["direct"].schemas == "always"
    assert settings["part"].deny == ("drop",)
    assert (settings["own"].command, settings["own"].enabled) == ("mine", False)
    assert servers.problems == (
        ".pi/mcp.json:1: unknown: there is no server with this name to change",
    )
    assert all(spec.settings.enabled for spec in found(tmp_path).specs)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("opencode.json", '{"mcp": {"mem": {"enabled": false}}}'),
        (".codex/config.toml", "[mcp_servers.mem]\nenabled = false\n"),
    ],
)
def test_other_programs_switch_a_users_server_off_alike(
    tmp_path: Path, file: str, text: str
) -> None:
    write(tmp_path / "home/.pi/agent/mcp.json", '{"mcpServers": {"mem": {"command": "mem"}}}')
    write(tmp_path / "project" / file, text)

    (mem,) = found(tmp_path, trusted=True).specs

    assert not mem.settings.enabled


def test_a_server_of_pi_runs_in_its_directory_and_never_with_a_command_as_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    servers = {
        "here": {"command": "~/bin/s", "args": ["~/x", "y"], "cwd": "sub"},
        "there": {"command": "s", "cwd": "~/srv"},
        "secret": {"command": "s", "env": {"TOKEN": "!echo hi"}},
        "web": {"url": "https://x.test", "headers": {"Authorization": "!echo hi"}},
    }
    write(tmp_path / "home/.pi/agent/mcp.json", json.dumps({"mcpServers": servers}))

    answer = found(tmp_path)

    here, there = answer.specs
    assert here.directory == tmp_path / "project/sub"
    assert here.settings.command == str(tmp_path / "home/bin/s")
    assert here.settings.args == (str(tmp_path / "home/x"), "y")
    assert there.directory == tmp_path / "home/srv"
    assert "env.TOKEN is a command (!echo hi)" in answer.problems[0]
    assert "headers.Authorization is a command" in answer.problems[1]
