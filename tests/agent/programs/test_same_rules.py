"""The same files given to other programs and to this one: a request here holds every rule that theirs hold."""

import subprocess
from pathlib import Path

import pytest

from tests.support import neighbours
from tests.support.homes_of_others import PROJECTS, SENT, Places, body_text, make_places, marks_in
from tests.support.model_script import Turn
from tests.support.model_server import ModelServer
from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.knowledge.knowledge import Knowledge, Sources
from tui_agent.resources import prompt


def ours(places: Places, project: str, *, trusted: bool = False) -> set[str]:
    """Return the marks that a request of this program holds."""
    folder = places.projects / project
    folders = Folders(folder, folder, places.home / ".config/tui-agent", places.home)
    loaded = Knowledge(Sources(folders), prompt=prompt, trusted=lambda: trusted)
    loaded.load()
    return marks_in("\n".join(loaded.sections(100_000, len)))


@pytest.mark.parametrize("project", PROJECTS)
def test_a_request_holds_the_rules_of_both_programs(tmp_path: Path, project: str) -> None:
    found = ours(make_places(tmp_path), project)
    theirs = set().union(*(sent[project] for sent in SENT.values()))
    instead = (
        {"agents"} if project == "override" else set()
    )  # Codex reads one file there, Claude Code the other
    assert theirs - instead <= found
    assert not {"comment", "code", "python-rule", "shared"} & found


def test_imports_from_outside_come_with_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert "shared" in ours(make_places(tmp_path), "imports", trusted=True)


@pytest.mark.neighbours
@pytest.mark.parametrize("project", PROJECTS)
def test_claude_code_sends_what_we_say_it_sends(tmp_path: Path, project: str) -> None:
    places = make_places(tmp_path)
    program = neighbours.package("@anthropic-ai/claude-code-linux-x64") / "claude"
    with ModelServer() as server:
        more = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "sk-ant-x",
            "DISABLE_TELEMETRY": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        assert (
            sent_by([str(program), "-p", "hello"], server, places, project, more)
            == SENT["claude"][project]
        )


@pytest.mark.neighbours
@pytest.mark.parametrize("project", PROJECTS)
def test_codex_sends_what_we_say_it_sends(tmp_path: Path, project: str) -> None:
    places = make_places(tmp_path)
    with ModelServer() as server:
        provider = f'model_providers.here={{name="here", base_url="{server.openai_url}", wire_api="responses"}}'
        options = (
            "--skip-git-repo-check",
            "-c",
            "model_provider=here",
            "-c",
            provider,
            "-m",
            "gpt-5.1-codex",
        )
        command = [neighbours.program("codex"), "exec", *options, "hello"]
        assert sent_by(command, server, places, project, {}) == SENT["codex"][project]


def sent_by(
    command: list[str], server: ModelServer, places: Places, project: str, more: dict[str, str]
) -> set[str]:
    """Run another program for one message and return the marks in what it sent."""
    server.play_function(lambda _request: Turn("Hello."))
    done = subprocess.run(
        command,
        cwd=places.projects / project,
        env=neighbours.environment(places.home) | more,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return marks_in(" ".join(body_text(call.body) for call in server.calls))
