"""The same files given to other programs and to this one: a request here holds all that theirs hold."""

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support import neighbours
from tests.support.agents import make_agent
from tests.support.homes_of_others import (
    CASES,
    FIXTURES,
    PLAIN,
    PROGRAMS,
    Fixture,
    Places,
    body_text,
    make_places,
    marks_in,
)
from tests.support.model_script import Turn
from tests.support.model_server import ModelServer
from tests.support.scripted_client import ScriptedClient
from tui_agent.agent.knowledge.knowledge import Knowledge, Sources
from tui_agent.agent.preparing import prepare_command
from tui_agent.agent.programs.settings import read_programs
from tui_agent.cli.extensions import Extensions, folders_of
from tui_agent.config import load_config
from tui_agent.resources import prompt
from tui_agent.session.entries import TextPart

NOT_SENT = {
    "comment", "code", "python-rule", "hop-5", "zig-rule", "text-rule", "bare-agent", "own", "pi-note",
}  # fmt: skip
"""Marks that no request here may hold."""
INSTEAD = {("plain", "override"): {"agents"}}
"""Marks of a file for which another one counts here: Codex reads one there, Claude Code the other."""
Command = tuple[list[str], dict[str, str]]


def ours(places: Places, project: str, *, trusted: bool = True) -> set[str]:
    """Return the marks that a request of this program holds."""
    folder = places.projects / project
    folders = folders_of(folder, load_config().config)
    more = read_programs(folders, trusted=trusted).instructions
    loaded = Knowledge(Sources(folders, more), prompt=prompt, trusted=lambda: trusted)
    loaded.load()
    servers = Extensions(lambda _cwd: trusted).servers(folder).specs
    lines = (*loaded.sections(100_000, len, subagents=True), *(row.command_line for row in servers))
    return marks_in("\n".join(lines))


@pytest.mark.parametrize(("name", "project"), CASES)
def test_a_request_holds_what_those_of_other_programs_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, project: str
) -> None:
    fixture = FIXTURES[name]
    places = make_places(tmp_path, fixture)
    monkeypatch.setenv("HOME", str(places.home))
    found = ours(places, project)
    theirs = set().union(*(fixture.expected(program, project) for program in PROGRAMS))
    assert theirs - found - NOT_SENT <= INSTEAD.get((name, project), set())
    assert not NOT_SENT & found


def test_imports_from_outside_and_servers_of_a_project_come_with_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = make_places(tmp_path, PLAIN)
    monkeypatch.setenv("HOME", str(places.home))
    assert "shared" in ours(places, "imports")
    assert "shared" not in ours(places, "imports", trusted=False)
    acting = {"server", "agent", "command", "project-opencode-server", "project-codex-agent"}
    assert acting <= ours(places, "equipped")
    assert not acting & ours(places, "equipped", trusted=False)


def test_places_that_a_variable_moves_are_found_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = make_places(tmp_path, PLAIN)
    monkeypatch.setenv("HOME", str(places.home))
    before = ours(places, "imports")
    (places.home / ".claude.json").rename(places.home / ".claude/.claude.json")
    for variable, old, new in (
        ("CLAUDE_CONFIG_DIR", ".claude", "moved/claude"),
        ("CODEX_HOME", ".codex", "moved/codex"),
        ("XDG_CONFIG_HOME", ".config/opencode", "moved/opencode"),
        ("PI_CODING_AGENT_DIR", ".pi/agent", "moved/pi"),
    ):
        (tmp_path / new).parent.mkdir(exist_ok=True)
        (places.home / old).rename(tmp_path / new)
        moved = tmp_path / new
        monkeypatch.setenv(variable, str(moved.parent if "XDG" in variable else moved))
    assert ours(places, "imports") == before


# -- the programs themselves ---------------------------------------------------------------------------------


def claude(server: ModelServer, _places: Places, _project: str) -> Command:
    program = neighbours.package("@anthropic-ai/claude-code-linux-x64") / "claude"
    return [str(program), "-p"], {
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "sk-ant-x",
        "DISABLE_TELEMETRY": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def codex(server: ModelServer, places: Places, project: str) -> Command:
    trusted = (
        f'\n[projects."{places.projects / project.partition("/")[0]}"]\ntrust_level = "trusted"\n'
    )
    with (places.home / ".codex/config.toml").open("a") as file:
        file.write(trusted)
    provider = f'model_providers.here={{name="here", base_url="{server.openai_url}", wire_api="responses"}}'
    chosen = ("-c", "model_provider=here", "-c", provider, "-m", "gpt-5.1-codex")
    return [neighbours.program("codex"), "exec", "--skip-git-repo-check", *chosen], {}


def opencode(server: ModelServer, _places: Places, _project: str) -> Command:
    program = neighbours.package("opencode-linux-x64") / "bin/opencode"
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": server.openai_url, "apiKey": "x"},
        "models": {"m": {}},
    }
    settings = {"provider": {"here": provider}, "model": "here/m", "small_model": "here/m"}
    return [str(program), "run"], {
        "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }


def pi(server: ModelServer, places: Places, _project: str) -> Command:
    provider = {
        "baseUrl": server.openai_url,
        "api": "openai-completions",
        "apiKey": "x",
        "models": [{"id": "m"}],
    }
    models = json.dumps({"providers": {"here": provider}})
    (places.home / ".pi/agent/models.json").write_text(models)
    return [neighbours.program("pi"), "-p", "-a", "--provider", "here", "--model", "m"], {}


COMMANDS: Mapping[str, Callable[[ModelServer, Places, str], Command]] = {
    "claude": claude,
    "codex": codex,
    "opencode": opencode,
    "pi": pi,
}


@pytest.mark.neighbours
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("name", "project"), CASES)
def test_another_program_sends_what_we_say_it_sends(
    tmp_path: Path, name: str, project: str, program: str
) -> None:
    places = make_places(tmp_path, FIXTURES[name])
    sent = marks_in(sent_by(program, places, project, "hello"))
    assert sent == FIXTURES[name].expected(program, project)


def sent_by(program: str, places: Places, project: str, *message: str) -> str:
    """Run another program for one message, given as its last arguments, and return what it sent."""
    with ModelServer() as server:
        command, more = COMMANDS[program](server, places, project)
        server.play_function(lambda _request: Turn("Hello."))
        done = subprocess.run(
            [*command, *message],
            cwd=places.projects / project,
            env=neighbours.environment(places.home) | more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return " ".join(body_text(call.body) for call in server.calls)


WORDS = '12 "two words" it\'s'
FILLED = {
    "claude": (
        ".claude/commands/fix.md",
        "---\narguments: issue branch\n---\n<$0|$1|$2|$9|$ARGUMENTS[0]|$ARGUMENTS[4]|$issue|$branch|\\$1|${1}|$@>",
        "<12|two words|it's|$9|12|$ARGUMENTS[4]|12|two words|$1|${1}|$@>",
        ["/fix {}"],
    ),
    "opencode": (
        ".opencode/command/fix.md",
        "<$1|$2|$@>",
        "<12|two three|$@>",
        ["--command", "fix", "12", "two", "three"],
    ),
    "pi": (
        ".pi/prompts/fix.md",
        "<$1|$2|$ARGUMENTS|$@|${@:2}|${@:1:1}|${7:-seven}|${1:-x}|${@:-none}>",
        "<12|two words|12 two words it's|12 two words it's|two words it's|12|seven|12|12 two words it's>",
        ["/fix {}"],
    ),
}
"""A command of a program, what it sends for some words, and how it is told to."""


def with_command(tmp_path: Path, program: str) -> Places:
    place, template, _filled, _told = FILLED[program]
    home = {".pi/agent/settings.json": "{}"}
    return make_places(tmp_path, Fixture(home, {"p": {place: template}}, {}, {}))


@pytest.mark.parametrize("program", FILLED)
async def test_a_command_is_filled_in_as_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    places = with_command(tmp_path, program)
    monkeypatch.setenv("HOME", str(places.home))
    folders = folders_of(places.projects / "p", load_config().config)
    loaded = Knowledge(Sources(folders), prompt=prompt, trusted=lambda: True)
    made = make_agent(tmp_path, ScriptedClient([]), knowledge=loaded).agent
    words = "12 two three" if program == "opencode" else WORDS
    filled = await prepare_command("fix", words, made.session, made.ports)
    assert filled is not None
    assert isinstance(filled.parts[0], TextPart)
    assert filled.parts[0].text == FILLED[program][2]


@pytest.mark.neighbours
@pytest.mark.parametrize("program", FILLED)
def test_another_program_fills_a_command_in_as_we_say(tmp_path: Path, program: str) -> None:
    places = with_command(tmp_path, program)
    _place, _template, filled, told = FILLED[program]
    sent = sent_by(program, places, "p", *(word.format(WORDS) for word in told))
    assert filled in sent
