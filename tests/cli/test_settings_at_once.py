"""Settings that change while the program runs: what follows at once, and what says that it does not."""

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tui_agent.app.services import OpenRequest
from tui_agent.cli.arguments import parse
from tui_agent.cli.controller_wiring import ControllerWiring
from tui_agent.cli.wiring import Wiring
from tui_agent.config import Config, ConfigError, config_path, set_value


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TUI_AGENT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TUI_AGENT_CONFIG_DIR", str(tmp_path / "config"))
    project = tmp_path / "project"
    project.mkdir()
    return project


def arguments(place: Path, *more: str) -> Namespace:
    return parse(["--demo", "--cwd", str(place), *more])


@pytest.fixture
def program(place: Path) -> Iterator[tuple[Wiring, ControllerWiring, Any]]:
    wiring = Wiring(arguments(place, "--deny", "bash:rm *"))
    wiring.headless = True
    session = wiring.create(demo=True)
    screen = ControllerWiring(wiring)
    agent = screen.make_agent(session)
    yield wiring, screen, agent
    wiring.close(session)
    wiring.store.close()


def test_the_agent_of_the_open_session_follows(program: Any) -> None:
    _wiring, screen, agent = program
    before = agent.context_size()
    set_value("compaction.threshold", 5_000)
    set_value("max_steps", 3)
    set_value("retry.attempts", 1)
    set_value("permissions", {"edit": "deny"})
    set_value("ui.cursor_blink", value=True)
    read = {"compaction.threshold", "max_steps", "retry.attempts", "permissions", "ui.cursor_blink"}
    assert set(screen.reread_settings()) == read
    assert screen.config().ui.cursor_blink
    assert agent.context_size().threshold == 5_000 != before.threshold
    assert agent.inspector.map().size.threshold == 5_000
    assert (agent.ports.max_steps, agent.ports.retry.attempts) == (3, 1)
    assert "edit" in {rule.permission for rule in agent.tools.gate.rules() if rule.source == "user"}
    assert any(rule.pattern == "rm *" for rule in agent.tools.gate.rules())
    assert not screen.reread_settings()


def test_a_rule_removed_for_now_stays_removed(program: Any) -> None:
    _wiring, screen, agent = program
    rule = next(rule for rule in agent.tools.gate.rules() if rule.pattern == "rm *")
    agent.tools.gate.remove(rule)
    set_value("max_steps", 5)
    screen.reread_settings()
    assert rule not in agent.tools.gate.rules()
    agent.tools.gate.restore(rule)
    assert rule in agent.tools.gate.rules()


def test_a_mistake_in_the_file_changes_nothing(program: Any) -> None:
    _wiring, screen, agent = program
    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text("max_steps = 0\n")
    with pytest.raises(ConfigError, match="max_steps"):
        screen.reread_settings()
    assert agent.ports.max_steps == Config().max_steps


def test_a_project_that_changed_since_it_was_trusted_gives_no_new_settings(place: Path) -> None:
    folder = place / ".tui-agent"
    folder.mkdir()
    (folder / "config.toml").write_text("max_steps = 4\n")
    wiring = Wiring(arguments(place))
    wiring.answer_trust("trusted")
    assert wiring.loaded.config.max_steps == 4
    wiring.reload()
    (folder / "config.toml").write_text('max_steps = 9\n[permissions]\nbash = "allow"\n')
    with pytest.raises(ConfigError, match="since you trusted it"):
        wiring.reload()
    assert wiring.loaded.config.max_steps == 4
    wiring.store.close()


async def test_the_program_s_own_reading_is_what_the_screen_opens_with(place: Path) -> None:
    wiring = Wiring(arguments(place, "--max-steps", "8"))
    rows = {row.key: row for row in ControllerWiring(wiring).settings_rows()}
    assert (rows["max_steps"].value, rows["max_steps"].origin) == ("8", "flag")
    session = ControllerWiring(wiring).open_session(OpenRequest(demo=True))
    wiring.close(session)  # type: ignore[arg-type]
    wiring.store.close()
