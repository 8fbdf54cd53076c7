"""``tui-agent adopt`` lists everything of other programs, and loses nothing."""

import json
import shlex
import tomllib
from pathlib import Path

import pytest

from tests.support.knowledge import write
from tui_agent.agent.programs.settings import read_programs
from tui_agent.cli.extensions import folders_of
from tui_agent.cli.main import run
from tui_agent.config import load_config
from tui_agent.permission import NEVER_ASK


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with files of four programs, and a project in which they are listed."""
    home, project = tmp_path / "home", tmp_path / "project"
    write(home / ".claude/CLAUDE.md", "mine @team.md")
    write(home / ".claude/team.md", "team")
    write(
        home / ".claude/settings.json",
        json.dumps({"permissions": {"deny": ["Bash(curl *)"]}, "statusLine": {}}),
    )
    write(home / ".claude/agents/sub/rev.md", "---\ndescription: d\nmemory: user\n---\nbody")
    write(home / ".claude.json", json.dumps({"mcpServers": {"m": {"command": "true"}}}))
    write(home / ".claude/output-styles/x.md", "style")
    write(home / ".codex/config.toml", 'model = "x"\n')
    write(home / ".codex/AGENTS.md", "codex")
    write(home / ".pi/agent/settings.json", '{"theme": "dark"}')
    write(project / ".git/HEAD", "ref: refs/heads/main\n")
    write(
        project / "opencode.json",
        json.dumps({"permission": {"bash": {"*": "ask", "git log": "allow"}}, "fun": 1}),
    )
    write(project / ".claude/settings.json", json.dumps({"env": {"LEVEL": "3"}}))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(project)
    return project


def rows(capsys: pytest.CaptureFixture[str]) -> dict[tuple[str, str], dict[str, str]]:
    capsys.readouterr()
    assert run(["adopt", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {(row["program"], row["name"]): row for row in found}


@pytest.mark.usefixtures("project")
def test_each_thing_has_its_place_and_its_state(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys)
    active = {key for key, row in found.items() if row["state"] == "in use"}
    assert active == {
        ("Claude Code", "~/.claude/CLAUDE.md"), ("Claude Code", "~/.claude/team.md"), ("Claude Code", "Bash(curl *)"),
        ("Claude Code", "rev"), ("Claude Code", "m"), ("Claude Code", "x"), ("Codex", "~/.codex/AGENTS.md"),
        ("OpenCode", "ask bash: * (not git log)"),
    }  # fmt: skip
    assert found["Claude Code", "LEVEL"]["state"] == "waits until you trust the project"
    without = {key for key, row in found.items() if row["state"] == "no effect here"}
    assert without == {
        ("Claude Code", "statusLine"), ("Claude Code", "memory of rev"),
        ("Codex", "model"), ("OpenCode", "fun"), ("Pi", "theme"),
    }  # fmt: skip
    assert found["Claude Code", "Bash(curl *)"]["place"] == "~/.claude/settings.json:1"
    assert found["Claude Code", "~/.claude/team.md"]["place"] == "~/.claude/CLAUDE.md:1"


def test_commands_and_agents_of_a_project_wait_for_trust(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project / ".claude/commands/fix.md", "fix it")
    write(project / ".claude/agents/low.md", "---\ndescription: d\n---\nbody")
    inside = {"agent": {"in": {"description": "d"}}, "command": {"chk": {"template": "x"}}}
    write(project / "opencode.json", json.dumps(inside))
    found = rows(capsys)
    names = (
        ("Claude Code", "/fix"), ("Claude Code", "low"), ("OpenCode", "in"), ("OpenCode", "/chk"),
    )  # fmt: skip
    states = {found[name]["state"] for name in names}
    assert states == {"waits until you trust the project"}
    assert found["Claude Code", "rev"]["state"] == "in use"


def test_people_read_it_by_program_and_doctor_counts_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["adopt"]) == 0
    text = capsys.readouterr().out
    assert (
        text.index("Claude Code\n")
        < text.index("  ✓ in use")
        < text.index("  … waits")
        < text.index("Codex\n")
    )
    hook = {"CwdChanged": [{"hooks": [{"type": "command", "command": "x"}]}]}
    write(project / ".claude/settings.local.json", json.dumps({"hooks": hook}))
    run(["doctor"])
    out = capsys.readouterr().out
    assert (
        "CwdChanged (.claude/settings.local.json:1) does not run: this event is not supported"
        in out
    )
    assert (
        "Found files of Claude Code, Codex, OpenCode, Pi "
        "(in use: 8; waits until you trust the project: 1" in out
    )


@pytest.mark.usefixtures("project")
def test_a_group_can_be_left_out_and_taken_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["adopt", "--without", "Claude Code/permissions", "--without", "Codex"]) == 0
    assert "Left out in new sessions: Claude Code/permissions, Codex." in capsys.readouterr().out
    found = rows(capsys)
    left_out = {key for key, row in found.items() if row["state"] == "left out by your settings"}
    assert left_out == {("Claude Code", "Bash(curl *)"), ("Codex", "~/.codex/AGENTS.md")}
    folders = folders_of(Path.cwd(), load_config().config)
    assert not any(
        rule.origin.startswith("~/.claude") for rule in read_programs(folders, trusted=True).rules
    )
    assert run(["adopt", "--without", "Emacs"]) == 2
    assert "“Emacs” was not found" in capsys.readouterr().err
    assert run(["adopt", "--with", "Codex", "--with", "Claude Code/permissions"]) == 0
    assert not any(row["state"] == "left out by your settings" for row in rows(capsys).values())


def test_nothing_is_said_where_nothing_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run(["adopt"]) == 0
    assert (
        capsys.readouterr().out
        == "No files of other coding agents were found in your home directory or in this project.\n"
    )


def test_a_command_that_a_built_in_one_hides_is_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project.parent / "home/.claude/commands/compact.md", "shorten it")
    write(project.parent / "home/.claude/commands/review.md", "look at it")

    found = rows(capsys)

    assert found["Claude Code", "/compact"]["state"] == "no effect here"
    assert "built-in command is named /compact" in found["Claude Code", "/compact"]["why"]
    assert found["Claude Code", "/review"]["state"] == "in use"
    run(["doctor"])
    assert "compact.md can't be reached, because /compact is built in" in capsys.readouterr().out


@pytest.mark.usefixtures("here")
def test_the_printed_commands_work_in_their_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    write(
        home / ".codex/config.toml",
        'model = "gpt-5.5"\nmodel_provider = "corp"\n[model_providers.corp]\nbase_url = "https://llm.corp/v1"\n'
        'env_key = "CORP"\nhttp_headers = { x-team = "a b" }\n',
    )
    served = {"providers": {"box": {"baseUrl": "http://127.0.0.1:9/v1"}}}
    write(home / ".pi/agent/models.json", json.dumps(served))
    write(
        home / ".pi/agent/settings.json",
        json.dumps({"defaultModel": "m", "defaultProvider": "box"}),
    )
    assert run(["adopt", "--json"]) == 0
    found = [json.loads(line)["why"] for line in capsys.readouterr().out.splitlines()]
    commands = [shlex.split(why) for why in found if why.startswith("tui-agent config set")]

    assert [run(command[1:]) for command in commands] == [0, 0, 0, 0]
    written = tomllib.loads((tmp_path / "config/config.toml").read_text())
    assert written["providers"]["corp"] == {
        "base_url": "https://llm.corp/v1",
        "api_key_env": "CORP",
        "wire": "responses",
        "headers": {"x-team": "a b"},
    }
    assert commands[1][-1] == "corp/gpt-5.5"
    assert written["model"] == "box/m"


@pytest.mark.parametrize(
    ("program", "file", "text", "name"),
    [
        ("Codex", ".codex/config.toml", 'approval_policy = "never"', "approval_policy"),
        (
            "Claude Code",
            ".claude/settings.json",
            '{"permissions": {"defaultMode": "bypassPermissions"}}',
            "defaultMode",
        ),
    ],
)
def test_who_is_never_asked_elsewhere_gets_the_command_for_that(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    program: str,
    file: str,
    text: str,
    name: str,
) -> None:
    write(project.parent / "home" / file, text)
    assert rows(capsys)[program, name]["why"] == NEVER_ASK
