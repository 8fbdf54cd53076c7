"""Servers in other programs' settings, written as their documentation has them, become servers of ours."""

import json
from pathlib import Path

import pytest

from tui_agent.agent.mcp.foreign import find_foreign

FILES = {
    "home/.claude.json": json.dumps({
        "mcpServers": {"a": {"type": "stdio", "command": "npx", "args": ["-y", "a-mcp"], "env": {"KEY": "${A_KEY}"}}},
        "projects": {"PROJECT": {"mcpServers": {"b": {"type": "sse", "url": "https://b.example/sse"}}}, "/other": {
            "mcpServers": {"never": {"command": "x"}}}},
    }),
    "home/.codex/config.toml": """
[mcp_servers.c]
command = "c-mcp"
args = ["--fast"]
env = { LEVEL = "1" }
env_vars = ["C_TOKEN"]
tool_timeout_sec = 90
disabled_tools = ["drop"]
[mcp_servers.d]
url = "https://d.example/mcp"
bearer_token_env_var = "D_TOKEN"
http_headers = { "X-Region" = "eu" }
enabled = false
""",
    "home/.config/opencode/opencode.json": """{
  // servers
  "mcp": {
    "e": {"type": "local", "command": ["bun", "x", "e-mcp"], "environment": {"URL": "http://x/y"}, "enabled": true},
    "f": {"type": "remote", "url": "https://f.example/mcp", "headers": {"Authorization": "Bearer {env:F_KEY}"},},
  },
}""",
    "home/.gemini/settings.json": json.dumps({"mcpServers": {
        "g": {"httpUrl": "https://g.example/mcp", "timeout": 30000, "includeTools": ["find"], "trust": True},
        "h": {"command": "h-mcp", "env": {"TOKEN": "$H_TOKEN"}},
    }}),
    "project/.vscode/mcp.json": json.dumps({
        "inputs": [{"id": "api-key", "type": "promptString"}],
        "servers": {"i": {"command": "i-mcp", "args": ["${workspaceFolder}/x"], "env": {"K": "${input:api-key}"}}},
    }),
    "home/.cursor/mcp.json": json.dumps({"mcpServers": {
        "j": {"command": "j-mcp", "env": {"K": "${env:J_KEY}"}}, "odd": 7, "neither": {"type": "http"},
    }}),
    "project/.gemini/settings.json": "{ not json",
}  # fmt: skip


@pytest.fixture
def found(tmp_path: Path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("PROJECT", str(tmp_path / "project")))
    rows = find_foreign(tmp_path / "home", tmp_path / "project")
    assert len(rows) == len({row.name for row in rows})
    return {row.name: row for row in rows}


def test_servers_are_found_by_program(found):
    assert {name: row.program for name, row in found.items()} == {
        "a": "Claude Code", "b": "Claude Code", "c": "Codex", "d": "Codex", "e": "OpenCode", "f": "OpenCode",
        "g": "Gemini CLI", "h": "Gemini CLI", "i": "VS Code", "j": "Cursor", "odd": "Cursor", "neither": "Cursor",
    }  # fmt: skip


def test_their_settings_become_ours(found, tmp_path):
    told = {name: row.settings.model_dump(exclude_defaults=True) for name, row in found.items() if row.settings}
    assert told == {
        "a": {"command": "npx", "args": ("-y", "a-mcp"), "env": {"KEY": "${A_KEY}"}},
        "b": {"url": "https://b.example/sse", "type": "sse"},
        "c": {"command": "c-mcp", "args": ("--fast",), "env": {"C_TOKEN": "${C_TOKEN}", "LEVEL": "1"}, "timeout": 90,
              "deny": ("drop",)},
        "d": {"url": "https://d.example/mcp", "enabled": False,
              "headers": {"X-Region": "eu", "Authorization": "Bearer ${D_TOKEN}"}},
        "e": {"command": "bun", "args": ("x", "e-mcp"), "env": {"URL": "http://x/y"}},
        "f": {"url": "https://f.example/mcp", "headers": {"Authorization": "Bearer ${F_KEY}"}},
        "g": {"url": "https://g.example/mcp", "timeout": 30, "allow": ("find",)},
        "h": {"command": "h-mcp", "env": {"TOKEN": "${H_TOKEN}"}},
        "i": {"command": "i-mcp", "args": (f"{tmp_path}/project/x",), "env": {"K": "${API_KEY}"}},
        "j": {"command": "j-mcp", "env": {"K": "${J_KEY}"}},
    }  # fmt: skip


def test_what_can_not_be_used_or_is_to_be_done_yet_is_told(found):
    assert "either a command or a url" in found["neither"].problem
    assert found["odd"].problem == "it is not a table of settings"
    assert found["i"].problem == "set API_KEY in the environment: VS Code asks for it"
