"""What the full-screen program does beside opening sessions."""

import asyncio
import gc
import threading
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tui_agent.agent.permissions import Action, Rule
from tui_agent.app.services import OpenRequest
from tui_agent.cli import controller_wiring, screen, wiring
from tui_agent.cli.arguments import parse
from tui_agent.cli.controller_wiring import ControllerWiring
from tui_agent.cli.wiring import Wiring
from tui_agent.config import Config, ConfigError, config_path, set_value
from tui_agent.session.session import Session
from tui_agent.ui import app

PAUSE = 0.02


class Parts:
    """Stands in for the wired parts and notes what is asked of them."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.ready = asyncio.Event()
        self.headless = False
        self.arguments = SimpleNamespace(on_question="wait")
        self.client = SimpleNamespace(warm=lambda model: self.asked.append(f"host for {model}"))
        self.store = self.logins = None
        self.cwd = Path("/work")
        self.loaded = SimpleNamespace(
            path=Path("config.toml"), warnings=(), config=SimpleNamespace(models={})
        )
        self.default_model = str

    def make_agent(self, _wiring: Any, _session: Session, _servers: Any) -> Any:
        async def warm() -> None:
            self.asked.append("encoding")
            self.ready.set()

        return SimpleNamespace(model="m", warm=warm, ports=SimpleNamespace(own_tools=()))


@dataclass
class Clock:
    """Stands still until it is moved on."""

    now: float = 1_000.0
    looks: int = 0

    def time(self) -> float:
        self.looks += 1
        return self.now

    async def looked_at(self) -> None:
        """Wait until whoever waits for a time has looked again whether it has come."""
        looks = self.looks
        async with asyncio.timeout(60):
            while self.looks < looks + 2:
                await asyncio.sleep(0.001)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(controller_wiring, "time", clock)
    return clock


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    monkeypatch.setattr(controller_wiring, "TYPING_PAUSE", PAUSE)
    parts = Parts()
    monkeypatch.setattr(controller_wiring, "make_agent", parts.make_agent)
    return parts


def opened(parts: Parts) -> ControllerWiring:
    wiring = ControllerWiring(cast("Any", parts))
    wiring.make_agent(object.__new__(Session))
    return wiring


async def test_the_host_starts_at_once_and_the_rest_waits_for_a_pause(
    parts: Parts, clock: Clock
) -> None:
    opened(parts).on_ready()
    await clock.looked_at()
    assert parts.asked == ["host for m"]
    clock.now += PAUSE * 1.01
    await asyncio.wait_for(parts.ready.wait(), 60)
    assert parts.asked == ["host for m", "encoding"]


async def test_nothing_is_loaded_while_somebody_types(parts: Parts, clock: Clock) -> None:
    typed = clock.now
    opened(parts).last_typed = lambda: typed
    for _ in range(4):
        clock.now += PAUSE
        typed = clock.now
        await clock.looked_at()
        assert not parts.ready.is_set()
    clock.now += PAUSE * 1.01
    await asyncio.wait_for(parts.ready.wait(), 60)


def test_keys_are_answered_while_the_parts_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    pressed, answered = threading.Event(), []

    class Building:
        def __init__(self, _arguments: Namespace) -> None:
            answered.append(pressed.wait(10))
            raise OSError("no parts today")

    class Painted:
        failure: Exception | None = None

        def __init__(self, load: Any, *_look: object) -> None:
            self._load = load

        async def run_async(self) -> None:
            loading = asyncio.create_task(self._load())
            await asyncio.sleep(0)
            pressed.set()
            (self.failure,) = await asyncio.gather(loading, return_exceptions=True)

    monkeypatch.setattr(wiring, "Wiring", Building)
    monkeypatch.setattr(app, "TuiAgentApp", Painted)

    monkeypatch.setattr(gc, "disable", lambda: None)
    with pytest.raises(OSError, match="no parts today"):
        asyncio.run(screen.run_screen(Namespace()))
    assert answered == [True]


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


@pytest.mark.parametrize("table", ["permissions", 'projects."/shop".permissions'])
def test_a_permission_that_is_written_wrongly_changes_nothing_and_names_its_file(
    program: Any, table: str
) -> None:
    _wiring, screen, agent = program
    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text(f'max_steps = 7\n[{table}]\nbasg = "allow"\n')
    with pytest.raises(ConfigError, match="is not a permission") as told:
        screen.reread_settings()
    assert str(told.value).startswith(f"{config_path()}: ")
    assert agent.ports.max_steps == Config().max_steps
    assert _wiring.loaded.config.max_steps != 7


def test_a_project_that_changed_since_it_was_trusted_gives_no_new_settings(place: Path) -> None:
    folder = place / ".tui-agent"
    folder.mkdir()
    (folder / "config.toml").write_text("max_steps = 4\n")
    wiring = Wiring(arguments(place))
    ControllerWiring(wiring).answer_trust("trusted")
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


def test_rules_belong_to_the_project_of_the_session(program: Any, tmp_path: Path) -> None:
    wiring, screen, _agent = program
    other = tmp_path / "other"
    other.mkdir()
    session = wiring.hold(wiring.open(wiring.store.create_session(other).id))
    shown = screen.make_agent(session)
    rule = Rule("bash", "make test", Action.ALLOW, "here")
    assert shown.ports.keep_here(rule) is None
    assert str(other) in wiring.read_config().config.projects
    assert screen.forget_rule(rule) is None
    assert ControllerWiring(wiring, other).keep_rule(rule) is None
    assert list(wiring.read_config().config.projects) == [str(other)]
    screen.close_session(session)
