"""Nothing that a project brings is used before the user trusts it, of any kind that needs trust."""

import json
from pathlib import Path
from typing import get_args

import pytest

from tests.support.knowledge import write
from tui_agent.agent.assembly import find_tool_files
from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.knowledge.knowledge import Knowledge, Sources
from tui_agent.agent.permissions import Action
from tui_agent.agent.programs.settings import read_programs
from tui_agent.claude_settings import PROJECT_FILES
from tui_agent.cli.arguments import parse
from tui_agent.cli.extensions import Extensions, state_of_project
from tui_agent.cli.wiring import Wiring
from tui_agent.files.notes import NOTES_FILE
from tui_agent.foreign_servers import SERVER_FILES
from tui_agent.places import ACTING, OPENCODE_FILES, PLACES, Kind, Place
from tui_agent.resources import prompt
from tui_agent.trust import CODEX_HOOKS, TrustStore, project_config

MARK = "marked-by-the-project"
"""A text in each file; if the program uses the file, it has the text."""
READ_ALWAYS = {"instructions", "rules"}
"""Kinds that are texts of the project like its README: the model reads them without trust."""

FRONT = f"---\nname: x\ndescription: {MARK}\nmode: all\n---\n{MARK}"
HOOKS = {"Stop": [{"hooks": [{"type": "command", "command": f"echo {MARK}"}]}]}
CONFIG = project_config(Path()).as_posix()
TABLES = {
    "model": f'model = "openai/{MARK}"',
    "instructions": f'instructions = ["{MARK}.md"]',
    "hook": f'[[hooks]]\nevent = "run_end"\ncommand = "echo {MARK}"',
    "server": f'[mcp.x]\ncommand = "{MARK}"',
}
"""Examples of a project's settings of this program."""
CLAUDE = {
    "allow": {"permissions": {"allow": [f"Bash({MARK})"]}},
    "directory": {"permissions": {"additionalDirectories": [f"/{MARK}"]}},
    "variable": {"env": {"X": MARK}},
    "hook": {"hooks": HOOKS},
}
"""Examples of a project's settings of Claude Code."""


def text_of(place: Place) -> tuple[str, str]:
    """Return the name and text of a file in a place that has an effect once it is used."""
    match place.kind:
        case "skills":
            return f"{place.project}/x/SKILL.md", FRONT
        case "tools":
            return f"{place.project}/{MARK}.py", "def add(x: int) -> int:\n    return x\n"
        case "agents" if place.whose == "Codex":
            text = f'name = "x"\ndescription = "{MARK}"\ndeveloper_instructions = "{MARK}"\n'
            return f"{place.project}/x.toml", text
        case "instructions":
            return place.project, MARK
        case "rules" if place.whose == "Cursor":
            return f"{place.project}/x.mdc", MARK
        case "rules":
            return f"{place.project}/x.md", MARK
        case _:
            return f"{place.project}/x.md", FRONT


def server_text(name: str) -> str:
    if name.endswith(".toml"):
        return f'[mcp_servers.x]\ncommand = "{MARK}"\n'
    if name in OPENCODE_FILES:
        return json.dumps({"mcp": {"x": {"type": "local", "command": [MARK]}}})
    return json.dumps({"mcpServers": {"x": {"command": MARK}}})


def cases() -> dict[str, tuple[str, str, bool]]:
    """Return each kind of thing that a project can bring: its file, the text, whether it needs trust."""
    found = {}
    for place in PLACES:
        # A hook's script runs only if settings name it; these are below.
        if place.project and place.kind != "hooks":
            name, text = text_of(place)
            found[f"{place.kind} {name}"] = (name, text, place.kind not in READ_ALWAYS)
    found["notes"] = (NOTES_FILE, f"- {MARK}\n", True)
    for key, text in TABLES.items():
        found[f"{key} {CONFIG}"] = (CONFIG, text, True)
    for name in PROJECT_FILES:
        for key, table in CLAUDE.items():
            found[f"{key} {name}"] = (name, json.dumps(table), True)
    found["hook codex"] = (CODEX_HOOKS, json.dumps({"hooks": HOOKS}), True)
    for name in SERVER_FILES:
        found[f"server {name}"] = (name, server_text(name), True)
    for name in OPENCODE_FILES:
        agent = {"agent": {"x": {"description": MARK, "prompt": MARK}}}
        command = {"command": {"x": {"template": MARK}}}
        found[f"agent {name}"] = (name, json.dumps(agent), True)
        found[f"command {name}"] = (name, json.dumps(command), True)
    return found


CASES = cases()


def used(project: Path, root: Path, *, trusted: bool) -> str:
    """Return everything of a project that reaches the model, the user's lists or a process, as a text."""
    folders = Folders(project, project, root / "config", root / "home")
    programs = read_programs(folders, trusted=trusted)
    extensions = Extensions(lambda _cwd: trusted)
    config = extensions.config(project)
    sources = Sources(folders, (*config.instructions, *programs.instructions))
    knowledge = Knowledge(sources, prompt=prompt, trusted=lambda: trusted)
    knowledge.load()
    rules = [rule for rule in programs.rules if rule.action is Action.ALLOW]
    parts: list[object] = [
        *knowledge.sections(200_000, len, subagents=True),
        *(knowledge.rows, knowledge.commands, knowledge.skills, knowledge.specs),
        *(rules, programs.environment, config),
        *extensions.servers(project).specs,
        # A hook has no text: each loaded one counts.
        MARK * len(extensions.load_hooks(project).handlers),
        find_tool_files(folders, trusted=trusted)[0],
    ]
    return "\n".join(map(repr, parts))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("DATA", "CONFIG"):
        monkeypatch.setenv(f"TUI_AGENT_{name}_DIR", str(tmp_path / name.lower()))
    project = tmp_path / "project"
    write(project / ".git/HEAD", "ref: refs/heads/main\n")
    return project


@pytest.mark.parametrize("case", CASES)
def test_what_needs_trust_is_asked_about_and_used_only_once_trusted(
    project: Path, tmp_path: Path, case: str
) -> None:
    name, text, needs_trust = CASES[case]
    write(project / name, text)
    write(project / f"{MARK}.md", "named by settings")
    state = state_of_project(project, TrustStore(tmp_path / "trust.json"))
    assert MARK in used(project, tmp_path, trusted=True)
    assert (MARK in used(project, tmp_path, trusted=False)) is not needs_trust
    assert state.is_held_back is needs_trust
    assert all(item.place == name for item in state.items)


def test_a_projects_permission_rules_wait_for_trust(project: Path) -> None:
    write(project / CONFIG, f'[permissions]\nbash = {{"{MARK}" = "allow"}}')
    for flags, count in ((), 0), (("--trust",), 1):
        wiring = Wiring(parse(["--cwd", str(project), *flags]))
        wiring.store.close()
        assert [rule.pattern for rule in wiring.user_rules].count(MARK) == count


def test_every_kind_is_decided_on() -> None:
    assert READ_ALWAYS | set(ACTING) == set(get_args(Kind))
    assert READ_ALWAYS.isdisjoint(ACTING)
