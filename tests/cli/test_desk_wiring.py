"""What the full-screen program does beside opening sessions."""

import asyncio
import threading
import time
from argparse import Namespace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tui_agent.cli import desk_wiring, screen, wiring
from tui_agent.cli.desk_wiring import DeskWiring
from tui_agent.session.session import Session
from tui_agent.ui import app

PAUSE = 0.05


class Parts:
    """Stands in for the wired parts and notes what is asked of them."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.ready = asyncio.Event()
        self.headless = False
        self.client = SimpleNamespace(warm=lambda model: self.asked.append(f"host for {model}"))

    def make_agent(self, _session: Session, _servers: Any) -> Any:
        async def warm() -> None:
            self.asked.append("encoding")
            self.ready.set()

        return SimpleNamespace(model="m", warm=warm)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    monkeypatch.setattr(desk_wiring, "TYPING_PAUSE", PAUSE)
    return Parts()


def opened(parts: Parts) -> DeskWiring:
    wiring = DeskWiring(cast("Any", parts))
    wiring.make_agent(object.__new__(Session))
    return wiring


async def test_the_host_starts_at_once_and_the_rest_waits_for_a_pause(parts: Parts) -> None:
    began = time.time()
    opened(parts).on_ready()
    assert parts.asked == ["host for m"]
    await asyncio.wait_for(parts.ready.wait(), 10)
    assert time.time() - began >= PAUSE
    assert parts.asked == ["host for m", "encoding"]


async def test_nothing_is_loaded_while_somebody_types(parts: Parts) -> None:
    typed_until = time.time() + 4 * PAUSE
    opened(parts).watch_typing(lambda: min(time.time(), typed_until))
    await asyncio.wait_for(parts.ready.wait(), 10)
    assert time.time() - typed_until >= PAUSE


async def test_keys_are_answered_while_the_parts_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    pressed, answered = threading.Event(), []

    class Building:
        def __init__(self, _arguments: Namespace) -> None:
            answered.append(pressed.wait(10))
            raise OSError("no parts today")

    class Painted:
        failure: Exception | None = None

        def __init__(self, load: Any, **_more: object) -> None:
            self._load = load

        async def run_async(self) -> None:
            loading = asyncio.create_task(self._load())
            await asyncio.sleep(0)
            pressed.set()
            (self.failure,) = await asyncio.gather(loading, return_exceptions=True)

    monkeypatch.setattr(wiring, "Wiring", Building)
    monkeypatch.setattr(app, "TuiAgentApp", Painted)

    with pytest.raises(OSError, match="no parts today"):
        await screen._run(Namespace())
    assert answered == [True]
