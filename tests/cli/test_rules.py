"""Rules kept in the user's configuration, and the project's own settings."""

import tomllib
from pathlib import Path

import pytest

from tui_agent.agent.permissions import Action, Rule
from tui_agent.cli.wiring import write_rule
from tui_agent.config import load_config


def permissions(path: Path) -> object:
    return tomllib.loads(path.read_text()).get("permissions")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's configuration file."""
    monkeypatch.setenv("TUI_AGENT_CONFIG_DIR", str(tmp_path))
    return tmp_path / "config.toml"


def test_a_rule_of_a_session_is_kept_beside_those_there_are(path: Path) -> None:
    path.write_text('model = "a/b"\n[permissions]\nbash = "ask"\n')
    assert write_rule(Rule("bash", "git commit *", Action.ALLOW, "session"), path.parent) is None
    assert write_rule(Rule("bash", "rm *.tmp", Action.ALLOW, "session", literal=True), path.parent) is None
    assert permissions(path) == {"bash": {"*": "ask", "git commit *": "allow", "rm [*].tmp": "allow"}}
    assert load_config(path, {}).config.model == "a/b"


def test_a_rule_is_removed_from_where_it_is_kept_or_said_why_not(path: Path) -> None:
    path.write_text('[permissions]\nedit = "allow"\nbash = {"rm *" = "deny", "*" = "ask"}\n')
    assert write_rule(Rule("bash", "rm *", Action.DENY, "user"), path.parent, is_kept=False) is None
    assert write_rule(Rule("edit", "*", Action.ALLOW, "user"), path.parent, is_kept=False) is None
    assert permissions(path) == {"bash": {"*": "ask"}}
    assert "environment" in (write_rule(Rule("read", "*", Action.DENY, "user"), path.parent, is_kept=False) or "")
    assert ".tui-agent/config.toml" in (
        write_rule(Rule("bash", "*", Action.ALLOW, "project"), path.parent, is_kept=False) or ""
    )
    assert write_rule(Rule("bash", "x", Action.ALLOW, "session"), path.parent, is_kept=False) is None


def test_a_trusted_projects_settings_stand_between_the_users_and_the_environment(tmp_path: Path) -> None:
    path, project = tmp_path / "config.toml", tmp_path / "project.toml"
    path.write_text('model = "user/model"\nmax_steps = 7\n[permissions]\nbash = {"rm *" = "deny"}\n')
    project.write_text('model = "project/model"\nmax_steps = 9\n[permissions]\nbash = {"rm *" = "allow"}\n')
    loaded = load_config(path, {"TUI_AGENT_MAX_STEPS": "11"}, project=project)
    assert (loaded.config.model, loaded.origin("model")) == ("project/model", "project")
    assert loaded.config.max_steps == 11
    assert loaded.config.permissions == {"bash": {"rm *": "deny"}}
    assert loaded.project_permissions == {"bash": {"rm *": "allow"}}
    assert load_config(path, {}).config.model == "user/model"


def test_a_rule_for_one_project_is_kept_apart_and_taken_out_again(path: Path) -> None:
    project = path.parent / "my app"
    rule = Rule("bash", "make *", Action.ALLOW, "here")
    assert write_rule(rule, project) is None
    assert write_rule(Rule("bash", "ls", Action.ALLOW, "user"), project) is None
    loaded = load_config(path, environ={})
    assert loaded.config.permissions == {"bash": {"ls": "allow"}}
    assert loaded.config.projects[str(project)].permissions == {"bash": {"make *": "allow"}}
    assert write_rule(rule, project, is_kept=False) is None
    assert load_config(path, environ={}).config.projects[str(project)].permissions == {}


def test_a_project_does_not_make_rules_in_its_users_name(tmp_path: Path) -> None:
    brought = tmp_path / "project.toml"
    brought.write_text(f'[projects."{tmp_path}".permissions]\nedit = "allow"\n')
    assert load_config(tmp_path / "config.toml", environ={}, project=brought).config.projects == {}
