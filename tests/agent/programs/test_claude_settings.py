"""Claude Code's settings hold here: denials at once, what acts once the project is trusted."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.knowledge import folders, write
from tui_agent import claude_settings
from tui_agent.agent.permissions import DEFAULT_RULES, Action, Rule, decide
from tui_agent.agent.programs.claude_code import read_claude_code
from tui_agent.agent.programs.found import ForeignSettings, ItemState
from tui_agent.foreign_servers import mark_disabled, servers_of_project
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.trust import TrustStore, project_state


def settings(path: Path, **table: Any) -> None:
    write(path, json.dumps(table, indent=2))


def found(tmp_path: Path, *, trusted: bool = False, cwd: str = "") -> ForeignSettings:
    return read_claude_code(folders(tmp_path, cwd=cwd), trusted=trusted)


def action(read: ForeignSettings, permission: str, pattern: str, *own: Rule) -> Action:
    return decide(
        PermissionNeed(Permission(permission), pattern), (*DEFAULT_RULES, *read.rules, *own)
    ).action


def test_denials_of_any_layer_hold_at_once_whatever_is_allowed(tmp_path: Path) -> None:
    settings(
        tmp_path / "home/.claude/settings.json",
        permissions={"deny": ["Bash(curl:*)"], "allow": ["Read"]},
    )
    settings(
        tmp_path / "project/.claude/settings.json", permissions={"deny": ["Read(./secrets/**)"]}
    )
    settings(
        tmp_path / "project/.claude/settings.local.json",
        permissions={"deny": ["Read(/config/prod.json)"]},
    )
    read = found(tmp_path)
    allowed = Rule("*", "*", Action.ALLOW, "user")
    for permission, pattern in (
        ("read", "secrets/a.txt"), ("read", "config/prod.json"), ("bash", "curl x.test"),
    ):  # fmt: skip
        assert action(read, permission, pattern, allowed) is Action.DENY
    assert action(read, "read", "src/a.py") is Action.ALLOW
    assert [rule.origin for rule in read.rules if rule.action is Action.DENY] == [
        "~/.claude/settings.json:4", ".claude/settings.json:4", ".claude/settings.local.json:4"
    ]  # fmt: skip


def test_a_project_that_allows_waits_for_trust_and_ask_wins_over_it(tmp_path: Path) -> None:
    settings(tmp_path / "home/.claude/settings.json", permissions={"ask": ["Bash(git push *)"]})
    settings(
        tmp_path / "project/.claude/settings.json",
        permissions={
            "allow": ["Bash(git *)", "WebFetch(domain:docs.test)"],
            "additionalDirectories": ["../lib", "../[a]*"],
        },
        env={"LEVEL": "3"},
    )
    careful, trusting = found(tmp_path), found(tmp_path, trusted=True)
    assert action(careful, "webfetch", "https://docs.test/x") is Action.ASK
    assert action(trusting, "webfetch", "https://docs.test/x") is Action.ALLOW
    assert action(trusting, "bash", "git commit -m x") is Action.ALLOW
    assert action(trusting, "bash", "git push origin") is Action.ASK
    assert action(trusting, "external_directory", str(tmp_path / "lib")) is Action.ALLOW
    assert action(trusting, "external_directory", str(tmp_path / "[a]*/x")) is Action.ALLOW
    assert action(trusting, "external_directory", str(tmp_path / "ab")) is Action.ASK
    assert (careful.environment, trusting.environment) == ({}, {"LEVEL": "3"})
    held = [item.name for item in careful.items if item.state is ItemState.HELD_BACK]
    assert held == ["Bash(git *)", "WebFetch(domain:docs.test)", "../lib", "../[a]*", "LEVEL"]


def test_the_trust_question_lists_what_acts_and_a_project_that_only_denies_is_not_asked_about(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    settings(project / ".claude/settings.json", permissions={"deny": ["Bash"]})
    store = TrustStore(tmp_path / "trust.json")
    assert project_state(project, store).items == ()
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard.sh"}]}
    settings(
        project / ".claude/settings.json",
        permissions={"allow": ["Bash(make *)"]},
        hooks={"PreToolUse": [hook]},
    )
    rows = [(item.kind, item.name, item.text) for item in project_state(project, store).items]
    assert rows == [
        ("permission rule", "Bash(make *)", "allow"),
        ("hook", "PreToolUse", "runs ./guard.sh"),
    ]


def test_what_has_no_effect_is_known_by_file_and_line_and_says_what_to_do_instead(
    tmp_path: Path,
) -> None:
    settings(
        tmp_path / "home/.claude/settings.json",
        permissions={"deny": ["Nonsense(x)"], "defaultMode": "plan"}, statusLine={"type": "command"}, fancy=1,
    )  # fmt: skip
    rows = {item.name: item for item in found(tmp_path).items}
    assert set(rows) == {"Nonsense(x)", "defaultMode", "statusLine", "fancy"}
    assert all(item.state is ItemState.WITHOUT_EFFECT for item in rows.values())
    assert rows["Nonsense(x)"].place == "~/.claude/settings.json:4"
    assert "no tool “Nonsense”" in rows["Nonsense(x)"].why
    assert "config.toml" in rows["statusLine"].why


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"permissions": 3, "env": [], "hooks": "x"}', "\ufeff{}", "\x00", "[" * 9_999],
)
def test_settings_that_are_no_settings_never_end_anything(tmp_path: Path, text: str) -> None:
    write(tmp_path / "home/.claude/settings.json", text)
    write(tmp_path / "project/.claude/settings.json", text)
    assert found(tmp_path, trusted=True).rules == ()
    project_state(tmp_path / "project", TrustStore(tmp_path / "trust.json"))


def test_settings_that_lead_out_of_the_project_are_not_read(tmp_path: Path) -> None:
    settings(tmp_path / "elsewhere.json", permissions={"allow": ["Bash"]})
    place = tmp_path / "project/.claude/settings.json"
    place.parent.mkdir(parents=True)
    place.symlink_to(tmp_path / "elsewhere.json")
    read = found(tmp_path, trusted=True)
    assert read.rules == ()
    assert "leads out of the project" in read.items[0].why


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("Read(../other/**)", "{outside}/other/a"),
        ("Read(src/../secret.txt)", "secret.txt"),
        ("Read(~/x/../y/**)", "{outside}/home/y/a"),
    ],
)
def test_a_rule_may_go_up(tmp_path: Path, rule: str, path: str) -> None:
    settings(tmp_path / "project/.claude/settings.json", permissions={"deny": [rule]})
    assert action(found(tmp_path), "read", path.format(outside=tmp_path)) is Action.DENY


def test_what_is_written_for_all_users_of_a_machine_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    managed = {"permissions": {"deny": ["WebFetch"]}, "disabledMcpjsonServers": ["db"]}
    write(tmp_path / "etc/managed-settings.json", json.dumps(managed))
    monkeypatch.setattr(claude_settings, "MANAGED", str(tmp_path / "etc"))
    places = folders(tmp_path)
    rules = read_claude_code(places, trusted=False).rules
    need = PermissionNeed(Permission.WEBFETCH, "https://x.test/")
    assert decide(need, (*DEFAULT_RULES, *rules)).action is Action.DENY
    write(
        tmp_path / "project/.mcp.json",
        '{"mcpServers": {"db": {"command": "x"}, "on": {"command": "y"}}}',
    )
    found = servers_of_project(places.project, [places.project])
    rows = {
        server.name: server.row or {}
        for server in mark_disabled(found, places.home, places.project)
    }
    assert {name: row.get("enabled", True) for name, row in rows.items()} == {
        "db": False,
        "on": True,
    }
