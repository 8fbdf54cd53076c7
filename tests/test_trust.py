"""What a project brings along: listed, asked about once, and asked again as soon as it changes."""

import json
from pathlib import Path

import pytest

from tui_agent.trust import (
    MAX_FILES,
    PinnedFiles,
    ProjectState,
    TrustItem,
    TrustStore,
    project_state,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    for folder in (".git", "src", ".tui-agent/commands", ".tui-agent/hooks", ".claude/agents"):
        (project / folder).mkdir(parents=True)
    return project


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "data" / "trust.json")


def bring(project: Path) -> None:
    (project / ".tui-agent/config.toml").write_text(
        'model = "x/y"\n[permissions]\nbash = {"make *" = "allow"}\n'
    )
    (project / ".tui-agent/commands/ship.md").write_text(
        "---\ndescription: ship it\n---\nrun !`make ship`\n"
    )
    (project / ".tui-agent/hooks/after.sh").write_text("curl evil.example\n")
    (project / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"db": {"command": "npx", "args": ["db-server"]}}})
    )


def test_everything_that_would_act_is_listed_and_nothing_is_trusted_at_first(
    project: Path, store: TrustStore
) -> None:
    bring(project)
    state = project_state(project, store)
    assert state.is_held_back
    assert not state.refused
    assert set(state.items) == {
        TrustItem("setting", "model", "x/y"),
        TrustItem("permission rule", "permissions.bash.make *", "allow"),
        TrustItem("command", ".tui-agent/commands/ship.md", "description: ship it"),
        TrustItem("hook", ".tui-agent/hooks/after.sh", "curl evil.example"),
        TrustItem("MCP server", "db", "runs npx db-server"),
    }


def test_trust_is_remembered_until_anything_changes(
    project: Path, store: TrustStore, tmp_path: Path
) -> None:
    bring(project)
    state = project_state(project, store)
    store.remember(project, state.digest, "trusted")  # type: ignore[union-attr]
    again = TrustStore(tmp_path / "data" / "trust.json")
    assert project_state(project, again).trusted
    (project / "src/app.py").write_text("nothing that acts\n")
    assert project_state(project, again).trusted
    for change in (
        ".tui-agent/hooks/after.sh",
        ".mcp.json",
        ".tui-agent/new.txt",
        ".claude/agents/x.md",
    ):
        before = (project / change).read_bytes() if (project / change).exists() else None
        (project / change).write_text("changed")
        assert not project_state(project, again).trusted, change
        if before is None:
            (project / change).unlink()
        else:
            (project / change).write_bytes(before)
        assert project_state(project, again).trusted, change
    (project / ".tui-agent/hooks/after.sh").rename(project / ".tui-agent/hooks/before.sh")
    assert not project_state(project, again).trusted


def test_never_holds_for_any_contents_until_it_is_forgotten(
    project: Path, store: TrustStore
) -> None:
    bring(project)
    store.remember(project, project_state(project, store).digest, "refused")  # type: ignore[union-attr]
    (project / ".mcp.json").unlink()
    state = project_state(project, store)
    assert state.is_held_back
    assert state.refused
    store.forget(project)
    assert project_state(project, store).refused is False  # type: ignore[union-attr]


def test_one_projects_trust_is_no_others(project: Path, store: TrustStore, tmp_path: Path) -> None:
    bring(project)
    store.remember(project, project_state(project, store).digest, "trusted")  # type: ignore[union-attr]
    copy = tmp_path / "copy"
    (copy / ".tui-agent").mkdir(parents=True)
    (copy / ".tui-agent/config.toml").write_bytes((project / ".tui-agent/config.toml").read_bytes())
    assert not project_state(copy, store).trusted


def test_a_flag_trusts_for_one_run_and_a_broken_file_trusts_nothing(
    project: Path, store: TrustStore, tmp_path: Path
) -> None:
    bring(project)
    assert project_state(project, store, assume_trust=True).trusted
    assert not project_state(project, store).trusted
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "trust.json").write_text("{broken")
    assert not project_state(project, store).trusted


def test_folders_on_the_way_to_the_working_directory_count(
    project: Path, store: TrustStore
) -> None:
    (project / "src/.claude/commands").mkdir(parents=True)
    (project / "src/.claude/commands/x.md").write_text("x")
    assert project_state(project, store) == ProjectState()
    assert project_state(project, store, cwd=project / "src").items == (
        TrustItem("command", "src/.claude/commands/x.md", "x"),
    )


def test_each_hook_and_value_of_the_projects_settings_is_shown_as_in_the_file(
    project: Path, store: TrustStore
) -> None:
    hooks = [("run_end", "make"), ("session_start", "curl evil.example")]
    rows = [f'[[hooks]]\nevent = "{event}"\ncommand = "{command}"\n' for event, command in hooks]
    server = '[mcp.db]\nargs = ["--all"]\nrequired = true\n'
    (project / ".tui-agent/config.toml").write_text("".join(rows) + server)
    shown = [item.text for item in project_state(project, store).items if item.kind != "command"]
    assert shown[:2] == [
        'event = "run_end", command = "make"',
        'event = "session_start", command = "curl evil.example"',
    ]
    assert {'["--all"]', "true"} < set(shown)


def test_what_is_too_much_to_look_at_cannot_be_trusted(project: Path, store: TrustStore) -> None:
    for number in range(MAX_FILES + 1):
        (project / f".tui-agent/hooks/{number}").touch()
    state = project_state(project, store, assume_trust=True)
    assert state.is_held_back
    assert "more than" in state.problem


def test_what_cannot_be_read_is_told(project: Path, store: TrustStore) -> None:
    (project / ".mcp.json").write_text("{")
    (project / ".tui-agent/config.toml").write_text("=")
    items = project_state(project, store).items
    assert {(item.kind, item.text.partition(":")[0]) for item in items} == {
        ("MCP server", "can't be read"), ("setting", "can't be read"),
    }  # fmt: skip
    assert all(item.text.lower().count("read") == 1 for item in items)


@pytest.mark.parametrize(
    ("written", "name", "effect"),
    [
        ("{}", ".mcp.json", "has no table “mcpServers”"),
        ("[]", ".mcp.json", "is not a JSON object"),
        ('{"mcpServers": {"db": 1}}', "db", "can't be used: it is not a table"),
    ],
)
def test_a_servers_mistake_is_told_once(
    project: Path, store: TrustStore, written: str, name: str, effect: str
) -> None:
    (project / ".mcp.json").write_text(written)
    servers = [item for item in project_state(project, store).items if item.kind == "MCP server"]
    assert [(item.name, item.text) for item in servers] == [(name, effect)]


@pytest.mark.parametrize(
    "command",
    [
        "sh guard.sh",
        "./guard.sh --all",
        "cd . && sh guard.sh",
        "sh ../app/guard.sh",
        "sh app/guard.sh",
    ],
)
def test_a_script_that_the_users_command_runs_from_a_directory_below_is_found(
    project: Path, store: TrustStore, command: str
) -> None:
    guard = project / "app/guard.sh"
    guard.parent.mkdir()
    guard.write_text("exit 0\n")
    state = project_state(project, store, cwd=guard.parent, commands=[command])
    assert [item.kind for item in state.items] == ["program"]
    pinned = PinnedFiles()
    assert pinned.problem(guard.parent, command) == ""
    guard.write_text("curl evil.example\n")
    assert "guard.sh has changed since" in pinned.problem(guard.parent, command)
