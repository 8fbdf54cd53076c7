"""What the full-screen program does beside opening sessions."""

import asyncio
import gc
import threading
import tomllib
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tui_agent.cli import controller_wiring, screen, wiring
from tui_agent.cli.controller_wiring import ControllerWiring
from tui_agent.model.served import LocalServer
from tui_agent.model.settings import ModelSettings
from tui_agent.session.session import Session
from tui_agent.ui import app

PAUSE = 0.02


class Parts:
    """Stands in for the wired parts and notes what is asked of them."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.ready = asyncio.Event()
        self.headless = False
        self.client = SimpleNamespace(warm=lambda model: self.asked.append(f"host for {model}"))
        self.store = self.logins = None
        self.cwd = Path("/work")
        self.loaded = SimpleNamespace(path=Path("config.toml"), warnings=(), config=SimpleNamespace(models={}))
        self.default_model = str
        self.added: list[tuple[str, ModelSettings]] = []
        self.router = SimpleNamespace(add=lambda *given: self.added.append(given))

    def make_agent(self, _session: Session, _servers: Any) -> Any:
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
    return Parts()


def opened(parts: Parts) -> ControllerWiring:
    wiring = ControllerWiring(cast("Any", parts))
    wiring.make_agent(object.__new__(Session))
    return wiring


async def test_the_host_starts_at_once_and_the_rest_waits_for_a_pause(parts: Parts, clock: Clock) -> None:
    opened(parts).on_ready()
    await clock.looked_at()
    assert parts.asked == ["host for m"]
    clock.now += PAUSE * 1.01
    await asyncio.wait_for(parts.ready.wait(), 60)
    assert parts.asked == ["host for m", "encoding"]


def test_of_a_chosen_server_only_the_address_becomes_a_setting(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUI_AGENT_CONFIG_DIR", str(tmp_path))
    url = "http://127.0.0.1:8080/v1"

    chosen = ControllerWiring(cast("Any", parts)).use_server(
        LocalServer("llama.cpp", url, ("openai/smol",)), "openai/smol"
    )

    assert chosen == "openai/smol"
    assert parts.added == [("openai/smol", ModelSettings(base_url=url))]
    table = tomllib.loads((tmp_path / "config.toml").read_text())
    assert table == {"model": "openai/smol", "models": {"openai/smol": {"base_url": url}}}


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
