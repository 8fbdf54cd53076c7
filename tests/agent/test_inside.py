"""What a project brings along is read only where it really is in the project."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import make_agent
from tests.support.knowledge import folders, knowledge, skill, write
from tests.support.request_validator import validate
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.attachments import Naming, load_message
from tui_agent.agent.events import Notice
from tui_agent.agent.knowledge.commands import FILE_BYTES
from tui_agent.agent.mcp.settings import find_servers
from tui_agent.agent.preparing import prepare_command
from tui_agent.config import load_config
from tui_agent.files.ignore import walk_files
from tui_agent.files.inside import open_inside, read_inside
from tui_agent.foreign_servers import servers_of_project
from tui_agent.trust import ProjectState, TrustStore, project_state

CANARY = "-----BEGIN OPENSSH PRIVATE" + " KEY----- canary"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return write(tmp_path / "home/.ssh/id_rsa", CANARY)


def link(path: Path, target: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent))
    return path


@pytest.mark.parametrize(
    ("place", "where"),
    [
        ("home/.ssh/id_rsa", "out of the project, to {}."),
        ("project/.env", "to .env, which usually holds secrets."),
    ],
)
def test_instructions_that_lead_to_a_secret_are_left_out_and_the_user_is_told_once(
    tmp_path: Path, place: str, where: str
) -> None:
    link(tmp_path / "project/AGENTS.md", secret := write(tmp_path / place, CANARY))
    loaded = knowledge(tmp_path)
    assert loaded.instructions == ()
    assert loaded.take_problems() == f"AGENTS.md: left out, as it leads {where.format(secret)}"
    loaded.load()
    assert loaded.take_problems() is None


def test_instructions_behind_a_linked_directory_are_left_out(tmp_path: Path, key: Path) -> None:
    write(key.parent / "AGENTS.md", CANARY)
    link(tmp_path / "project/a", key.parent)
    loaded = knowledge(tmp_path, "*/AGENTS.md", cwd="")
    assert loaded.instructions == ()
    assert "a/AGENTS.md: left out" in (loaded.take_problems() or "")


def test_links_within_the_project_and_files_of_the_users_are_read(tmp_path: Path) -> None:
    write(tmp_path / "project/docs/rules.md", "of the project")
    link(tmp_path / "project/AGENTS.md", tmp_path / "project/docs/rules.md")
    shared = write(tmp_path / "dotfiles/AGENTS.md", "of the user")
    folders(tmp_path)
    link(tmp_path / "config/AGENTS.md", shared)
    team = write(tmp_path / "team.md", "of the team")
    loaded = knowledge(tmp_path, str(team), "../team.md")
    assert [item.text for item in loaded.instructions] == [
        "of the user",
        "of the project",
        "of the team",
    ]
    assert loaded.take_problems() is None


async def test_no_key_is_in_the_requests_of_a_session(tmp_path: Path, key: Path) -> None:
    netrc = write(tmp_path / "home/.netrc", "machine example.org password canary")
    link(tmp_path / "project/AGENTS.md", key)
    link(tmp_path / "project/sub/AGENTS.md", netrc)
    write(tmp_path / "project/sub/a.py", "x = 1\n")
    client = ScriptedClient([Reply(calls=(Call("read", '{"path": "sub/a.py"}'),)), Reply("done")])
    harness = make_agent(tmp_path, client, knowledge=knowledge(tmp_path))
    await harness.say("look")
    for request in client.requests:
        validate(request)
        assert "canary" not in str(request)
    told = " ".join(notice.message for notice in harness.of(Notice))
    assert "AGENTS.md: left out" in told
    assert f"sub/AGENTS.md: left out, as it leads out of the project, to {netrc}." in told


@pytest.mark.parametrize("parent", [".tui-agent", ".claude"])
def test_skills_commands_and_agents_that_lead_outside_are_left_out(
    tmp_path: Path, parent: str
) -> None:
    skill(tmp_path / "elsewhere/skills")
    write(tmp_path / "elsewhere/commands/show.md", CANARY)
    write(tmp_path / "elsewhere/agents/spy.md", f"---\ndescription: {CANARY}\n---\nspy")
    for kind in ("skills", "commands", "agents"):
        link(tmp_path / "project" / parent / kind, tmp_path / "elsewhere" / kind)
    loaded = knowledge(tmp_path, trusted=lambda: True)
    assert not loaded.skills
    assert not loaded.commands
    assert "spy" not in [spec.name for spec in loaded.specs]
    assert f"{parent}/skills: left out, as it leads out of the project" in (
        loaded.take_problems() or ""
    )


def test_one_file_of_them_that_leads_outside_is_left_out(tmp_path: Path) -> None:
    elsewhere = skill(tmp_path / "elsewhere")
    link(tmp_path / "project/.claude/skills/release/SKILL.md", elsewhere)
    link(
        tmp_path / "project/.claude/commands/show.md", write(tmp_path / "elsewhere/show.md", CANARY)
    )
    loaded = knowledge(tmp_path)
    assert not loaded.skills
    assert not loaded.commands
    problems = loaded.take_problems() or ""
    assert "Skill .claude/skills/release/SKILL.md: left out" in problems
    assert "Command .claude/commands/show.md: left out" in problems


def test_settings_and_servers_that_lead_outside_do_not_count(tmp_path: Path) -> None:
    project = tmp_path / "project"
    config = link(
        project / ".tui-agent/config.toml",
        write(tmp_path / "o/config.toml", 'model = "evil/model"\n'),
    )
    link(
        project / ".mcp.json",
        write(tmp_path / "o/mcp.json", '{"mcpServers": {"evil": {"command": "sh"}}}'),
    )
    loaded = load_config(tmp_path / "config.toml", environ={}, project=config)
    assert loaded.config.model is None
    assert "left out, as it leads out of the project" in " ".join(loaded.warnings)
    found = find_servers({}, project, of_project=servers_of_project(project, [project]))
    assert found.specs == ()
    assert "left out, as it leads out of the project" in " ".join(found.problems)
    assert project_state(project, TrustStore(tmp_path / "trust.json")) == ProjectState()


def test_a_link_to_everything_is_not_walked_through_for_the_question_of_trust(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    (project / ".claude").mkdir(parents=True)
    (project / ".claude/commands").symlink_to("/")
    (project / ".claude/agents").mkdir()
    (project / ".claude/agents/loop").symlink_to(project / ".claude")
    write(project / ".claude/agents/h.sh", "echo")
    state = project_state(project, TrustStore(tmp_path / "trust.json"))
    assert {Path(item.name).name for item in state.items} == {"h.sh"}


async def test_a_command_of_a_project_attaches_what_is_outside_only_if_the_user_typed_it(
    tmp_path: Path, key: Path
) -> None:
    write(tmp_path / "project/a.py", "x")
    link(tmp_path / "project/b", key)
    harness = make_agent(tmp_path, [])
    project, put_blob = harness.agent.ports.project, harness.agent.ports.put_blob
    text = f"look at @a.py @b @../home/.ssh/id_rsa @{key} @~/.netrc @b:1-2"
    for typed, left in (("", f"{key}, "), (f"@{key}", "")):
        naming = Naming(text, project, typed)
        problem = (
            await load_message(text, project, harness.session, put_blob, naming=naming)
        ).problem or ""
        assert problem.endswith(f"outside it: b, ../home/.ssh/id_rsa, {left}~/.netrc, b:1-2.")


async def test_the_user_is_told_what_a_command_of_a_project_may_not_attach(
    tmp_path: Path, key: Path
) -> None:
    write(tmp_path / "project/.claude/commands/show.md", f"Show @{key}")
    harness = make_agent(tmp_path, [], knowledge=knowledge(tmp_path))
    prepared = await prepare_command("show", "", harness.session, harness.agent.ports)
    assert prepared is not None
    assert "canary" not in str(prepared.parts)
    assert "the command came with the project and names files outside it" in (
        prepared.problem or ""
    )


def test_a_link_put_in_the_way_meanwhile_fails(tmp_path: Path, key: Path, monkeypatch: Any) -> None:
    path = write(tmp_path / "project/docs/a.md", "fine")
    real = os.path.realpath

    def swap(name: Any, **more: Any) -> str:
        found = real(name, **more)
        if Path(name) == path and not path.is_symlink():
            path.unlink()
            path.symlink_to(key)
        return found

    monkeypatch.setattr(os.path, "realpath", swap)
    with pytest.raises(OSError, match="symbolic link"):
        open_inside(tmp_path / "project", path)


def test_pipes_and_directories_are_refused_at_once(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "1")
    os.mkfifo(tmp_path / ".gitignore")
    for name in (".gitignore", "."):
        with pytest.raises(OSError, match="it is"):
            read_inside(tmp_path, tmp_path / name, FILE_BYTES)
    assert tmp_path / "a.txt" in list(walk_files(tmp_path))
