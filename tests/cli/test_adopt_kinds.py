"""Every kind of file that users of Claude Code, Codex, OpenCode and Pi have is in use here, or named with a reason."""

import json
from pathlib import Path

import pytest

from tests.support.knowledge import write
from tui_agent.app.welcome import trust_lines
from tui_agent.cli.adopt import found_items
from tui_agent.cli.extensions import state_of_project
from tui_agent.trust import TrustStore

AGENT = "---\nname: {}\ndescription: d\n{}\n---\nbody"
USED = "in use"
WAITS = "waits until you trust the project"
WITHOUT = "no effect here"
OFF = "left out by your settings"

SETTINGS = {
    "permissions": {
        "allow": ["Bash(make *)"],
        "ask": ["Bash(git push *)"],
        "deny": ["Read(./secrets/**)"],
        "additionalDirectories": ["/srv/docs"],
        "defaultMode": "plan",
    },
    "env": {"LEVEL": "3"},
    "hooks": {
        "PreToolUse": [{"hooks": [{"type": "command", "command": "guard"}]}],
        "Stop": [{"hooks": [{"type": "prompt", "prompt": "Is it done?"}]}],
        "CwdChanged": [{"hooks": [{"type": "command", "command": "x"}]}],
    },
    "statusLine": {"type": "command", "command": "x"},
    "outputStyle": "Explanatory",
    "model": "opus",
    "enabledPlugins": {"a@b": True},
    "disabledMcpjsonServers": ["off"],
}
SERVERS = json.dumps({"mcpServers": {"s": {"command": "true"}}})

KINDS: list[tuple[str, str, str, list[tuple[str, str]]]] = [
    ("Claude Code", "home/.claude/CLAUDE.md", "mine @team.md", [("~/.claude/CLAUDE.md", USED)]),
    ("Claude Code", "home/.claude/team.md", "team", [("~/.claude/team.md", USED)]),
    ("Claude Code", "CLAUDE.md", "See @docs/a.md", [("CLAUDE.md", USED)]),
    ("Claude Code", "docs/a.md", "a", [("docs/a.md", USED)]),
    ("Claude Code", ".claude/CLAUDE.md", "inner", [(".claude/CLAUDE.md", USED)]),
    ("Claude Code", "CLAUDE.local.md", "local", [("CLAUDE.local.md", USED)]),
    ("Claude Code", ".claude/rules/all.md", "rule", [(".claude/rules/all.md", USED)]),
    ("Claude Code", ".claude/rules/py.md", "---\npaths: '*.py'\n---\nr", [(".claude/rules/py.md", USED)]),
    ("Claude Code", "home/.claude/rules/own.md", "own", [("~/.claude/rules/own.md", USED)]),
    ("Claude Code", ".claude/settings.json", json.dumps(SETTINGS), [
        ("Bash(make *)", WAITS), ("Bash(git push *)", USED), ("Read(./secrets/**)", USED), ("/srv/docs", WAITS),
        ("defaultMode", WITHOUT), ("LEVEL", WAITS), ("PreToolUse guard", WAITS), ("Stop Is it done?", WAITS),
        ("CwdChanged", WITHOUT), ("statusLine", WITHOUT), ("outputStyle", WITHOUT), ("model", WITHOUT),
        ("enabledPlugins", WITHOUT),
    ]),
    ("Claude Code", ".claude/settings.local.json", '{"theme": "dark"}', [("theme", WITHOUT)]),
    ("Claude Code", "home/.claude/settings.json", '{"permissions": {"deny": ["WebFetch"]}}', [("WebFetch", USED)]),
    ("Claude Code", "home/.claude.json", SERVERS.replace('"s"', '"mine"'), [("mine", USED)]),
    ("Claude Code", ".mcp.json", '{"mcpServers": {"s": {"command": "true"}, "off": {"command": "true"}}}', [
        ("s", WAITS), ("off", OFF),
    ]),
    ("Claude Code", ".claude/agents/a.md", AGENT.format("a", "color: red"), [("a", WAITS)]),
    ("Claude Code", "home/.claude/agents/b.md", AGENT.format("b", "memory: user"), [
        ("b", USED), ("memory of b", WITHOUT),
    ]),
    ("Claude Code", "home/.claude/agents/none.md", "---\nname: c\n---\nx", [("~/.claude/agents/none.md", WITHOUT)]),
    ("Claude Code", ".claude/commands/git/c.md", "---\nallowed-tools: Bash\n---\nx", [
        ("/git:c", WAITS), ("allowed-tools of /git:c", WITHOUT),
    ]),
    ("Claude Code", "home/.claude/commands/d.md", "x", [("/d", USED)]),
    ("Claude Code", ".claude/skills/e/SKILL.md", AGENT.format("e", "allowed-tools: Bash"), [
        ("e", WAITS), ("allowed-tools of e", WITHOUT),
    ]),
    ("Claude Code", "home/.claude/skills/f/SKILL.md", AGENT.format("f", ""), [("f", USED)]),
    ("Claude Code", "home/.claude/output-styles/g.md", "g", [("g", USED)]),
    ("Claude Code", "home/.claude/plugins/installed_plugins.json", "{}", [
        ("~/.claude/plugins/installed_plugins.json", WITHOUT),
    ]),
    ("Claude Code", "home/.claude/keybindings.json", "{}", [("~/.claude/keybindings.json", WITHOUT)]),
    ("Claude Code", ".claude/loop.md", "x", [(".claude/loop.md", WITHOUT)]),
    ("Codex", "home/.codex/AGENTS.md", "codex", [("~/.codex/AGENTS.md", USED)]),
    ("Codex", "home/.codex/prompts/p.md", "x", [("/p", USED)]),
    ("Codex", "home/.codex/skills/h/SKILL.md", AGENT.format("h", ""), [("h", USED)]),
    ("Codex", "home/.codex/config.toml", (
        'model = "gpt-5"\napproval_policy = "never"\nsandbox_mode = "read-only"\nnotify = ["x"]\n'
        "[mcp_servers.cx]\ncommand = 'true'\n[profiles.fast]\nmodel = 'x'\n[model_providers.y]\nname = 'y'\n"
    ), [
        ("model", WITHOUT), ("approval_policy", WITHOUT), ("sandbox_mode", WITHOUT), ("notify", WITHOUT),
        ("cx", USED), ("profiles", WITHOUT), ("model_providers", WITHOUT),
    ]),
    ("Codex", "home/.codex/rules/default.rules", (
        'prefix_rule(pattern=["git", "push"], decision="forbidden")\nprefix_rule(pattern=["ls"])\n'
    ), [("deny bash: git push *", USED), ("~/.codex/rules/default.rules:2", WITHOUT)]),
    ("Codex", ".codex/rules/bad.rules", "(", [(".codex/rules/bad.rules", WITHOUT)]),
    ("Codex", ".codex/config.toml", "[mcp_servers.pcx]\ncommand = 'true'\n", [("pcx", WAITS)]),
    ("Codex", ".codex/hooks.json", '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "y"}]}]}}', [
        ("Stop y", WAITS),
    ]),
    ("Codex", ".codex/agents/i.toml", 'name = "i"\ndescription = "d"\ndeveloper_instructions = "x"', [("i", WAITS)]),
    ("OpenCode", ".opencode/agent/j.md", AGENT.format("j", ""), [("j", WAITS)]),
    ("OpenCode", ".opencode/command/k.md", "x", [("/k", WAITS)]),
    ("OpenCode", ".opencode/skills/l/SKILL.md", AGENT.format("l", ""), [("l", WAITS)]),
    ("OpenCode", ".opencode/plugin/x.ts", "x", [(".opencode/plugin", WITHOUT)]),
    ("OpenCode", ".opencode/tool/x.ts", "x", [(".opencode/tool", WITHOUT)]),
    ("OpenCode", ".opencode/mode/x.md", "x", [(".opencode/mode", WITHOUT)]),
    ("OpenCode", "opencode.json", json.dumps({
        "instructions": ["docs/*.md"], "mcp": {"oc": {"command": ["true"]}}, "agent": {"m": {"description": "d"}},
        "command": {"n": {"template": "x"}}, "permission": {"webfetch": "deny"}, "provider": {}, "keybinds": {},
    }), [
        ("docs/*.md", USED), ("oc", WAITS), ("m", WAITS), ("/n", WAITS), ("deny webfetch: *", USED),
        ("provider", WITHOUT), ("keybinds", WITHOUT),
    ]),
    ("OpenCode", "home/.config/opencode/AGENTS.md", "oc", [("~/.config/opencode/AGENTS.md", USED)]),
    ("Pi", "home/.pi/agent/AGENTS.md", "pi", [("~/.pi/agent/AGENTS.md", USED)]),
    ("Pi", "home/.pi/agent/APPEND_SYSTEM.md", "more", [("~/.pi/agent/APPEND_SYSTEM.md", USED)]),
    ("Pi", "home/.pi/agent/SYSTEM.md", "x", [("~/.pi/agent/SYSTEM.md", WITHOUT)]),
    ("Pi", "home/.pi/agent/prompts/q.md", "x", [("/q", USED)]),
    ("Pi", "home/.pi/agent/skills/r/SKILL.md", AGENT.format("r", ""), [("r", USED)]),
    ("Pi", "home/.pi/agent/models.json", json.dumps({"providers": {"corp": {
        "baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "models": [{"id": "bench"}],
    }}}), [("bench", WITHOUT)]),
    ("Pi", "home/.pi/agent/settings.json", '{"theme": "dark"}', [("theme", WITHOUT)]),
    ("Pi", "home/.pi/agent/extensions/x.ts", "x", [("~/.pi/agent/extensions", WITHOUT)]),
    ("Pi", ".pi/mcp.json", SERVERS.replace('"s"', '"pi"'), [("pi", WAITS)]),
    ("Pi", ".pi/prompts/t.md", "x", [("/t", WAITS)]),
    ("Cursor", ".cursorrules", "x", [(".cursorrules", WITHOUT)]),
]  # fmt: skip
"""A program, a file of its users with its text, and what is said of it: the name and the state."""


def test_every_kind_is_in_use_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    write(project / ".git/HEAD", "ref: refs/heads/main\n")
    for _program, place, text, _rows in KINDS:
        root = tmp_path if place.startswith("home/") else project
        write(root / place, text)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    items = found_items(project)
    told = {(item.program, item.name, item.state.value) for item in items}
    wanted = {(program, *row) for program, _place, _text, rows in KINDS for row in rows}
    assert wanted - told == set()
    assert {(name, state) for program, name, state in told - wanted} == set()
    waiting = {item.name.split()[-1] for item in items if item.state.value == WAITS}
    page = " ".join(trust_lines(state_of_project(project, TrustStore(tmp_path / "trust.json"))))
    assert {name for name in waiting if name.removeprefix("/").split(":")[-1] not in page} == set()
    silent = {item.name for item in items if item.state.value == WITHOUT and not item.why}
    assert silent <= {
        "memory of b",
        "allowed-tools of /git:c",
        "allowed-tools of e",
        "model_providers",
    }
