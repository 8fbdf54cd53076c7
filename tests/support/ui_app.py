"""Builds the application on a real store with fake agents, everything that moves held still."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from textual import events
from textual.app import App
from textual.keys import _character_to_key
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip

from tests.support import parsed_styles, settled  # noqa: F401 - pilots wait, and start sooner
from tests.support.fake_agent import FakeAgent
from tests.support.services import app_services
from tests.support.stores import open_store
from tui_agent import errors
from tui_agent.agent.events import AgentEvent
from tui_agent.app.services import AppServices, FirstView, Look, ModelRow, OpenHow, OpenRequest
from tui_agent.config import Config, UiSettings
from tui_agent.session.entries import ModeChangeEntry, TextPart, UserEntry
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.ui.app import TuiAgentApp
from tui_agent.ui.screens.main import MainScreen
from tui_agent.ui.widgets.session_view import SessionView

NOW = 1_790_000_000.0
"""The time on every clock here, seconds since the epoch."""
HOME = Path("/home/ada/src/shop")
"""Directory that sessions seem to be in; need not exist."""

STILL = UiSettings(
    theme="textual-dark",
    reduced_motion=True,
    permission_grace=0.0,
    typing_pause=0.0,
    cursor_blink=False,
)

MODELS = (
    ModelRow(
        "anthropic/claude-sonnet-4-5",
        "anthropic",
        200_000,
        3.0,
        15.0,
        ("tools", "vision", "thinking"),
        True,
    ),
    ModelRow(
        "anthropic/claude-haiku-4-5", "anthropic", 200_000, 1.0, 5.0, ("tools", "vision"), True
    ),
    ModelRow("openai/gpt-5-mini", "openai", 400_000, 0.25, 2.0, ("tools", "vision"), False),
    ModelRow("ollama/qwen3:4b", "ollama", 32_768, 0.0, 0.0, ("tools",), True),
    ModelRow("mistral/devstral-medium", "mistral", 128_000, 0.4, 2.0, ("tools",), False),
)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@dataclass
class Stage:
    """The application, what it was given, and every message that passed through it."""

    app: TuiAgentApp
    services: AppServices
    store: Store
    agents: list[FakeAgent]
    saved: dict[str, object] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    requests: list[OpenRequest] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    defects: list[BaseException | str] = field(default_factory=list)
    """What failed within the error boundary; a test that means it to takes it out of the list."""

    @property
    def agent(self) -> FakeAgent:
        """The agent of the session that is open."""
        return self.agents[-1]

    @property
    def main(self) -> MainScreen:
        return self.app.main

    @property
    def view(self) -> SessionView:
        assert self.main.view is not None
        return self.main.view

    @property
    def toasts(self) -> list[str]:
        """What is told in a corner of the screen now."""
        return [str(note.message) for note in self.app._notifications]

    @property
    def leaving(self) -> bool:
        return self.app._exit

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the messages of a kind, each once however far it bubbled."""
        found = {id(message): message for message in self.messages if isinstance(message, kind)}
        return list(found.values())

    @asynccontextmanager
    async def run(
        self, size: tuple[int, int] = (80, 24), **arguments: Any
    ) -> AsyncIterator[Pilot[int]]:
        """Run the application and wait until its session is open."""
        noted = _Defects(self.defects)
        errors.log.addHandler(noted)
        try:
            async with self.app.run_test(
                size=size, message_hook=self.messages.append, **arguments
            ) as pilot:
                await until(
                    lambda: self.of(SessionView.Opened) or self.app.return_code is not None, pilot
                )
                yield pilot
        finally:
            errors.log.removeHandler(noted)
        assert self.defects == []


class _Defects(logging.Handler):
    """Notes what is logged as a defect of the program."""

    def __init__(self, into: list[BaseException | str]) -> None:
        super().__init__(logging.ERROR)
        self._into = into

    def emit(self, record: logging.LogRecord) -> None:
        self._into.append(
            record.exc_info[1] if record.exc_info and record.exc_info[1] else record.getMessage()
        )


def make_app(services: AppServices, start: FirstView | None = None, **named: Any) -> TuiAgentApp:
    async def load() -> tuple[AppServices, FirstView]:
        return services, start or FirstView()

    ui = services.config().ui
    return TuiAgentApp(load, Look(ui.theme, ui.reduced_motion), **named)


def make_stage(
    tmp_path: Path,
    *,
    start: FirstView | None = None,
    settings: UiSettings = STILL,
    keys: Mapping[str, str] = MappingProxyType({}),
    cwd: Path = HOME,
    files: Sequence[str] = (
        "src/auth/views.py",
        "src/auth/models.py",
        "tests/test_views.py",
        "README.md",
    ),
    **services: Any,
) -> Stage:
    store = open_store(tmp_path / "sessions.db", clock=lambda: int(NOW * 1000))
    agents: list[FakeAgent] = []
    requests: list[OpenRequest] = []
    closed: list[str] = []
    saved: dict[str, object] = {}

    def open_session(request: OpenRequest) -> Session:
        requests.append(request)
        session_id = request.session_id or store.create_session(cwd).id
        if request.how is OpenHow.FORK:
            session_id = store.fork(
                session_id, Session(store, session_id, estimate=lambda _entry: 10).leaf
            ).id
        session = Session(store, session_id, estimate=lambda _entry: 10)
        if request.how in {OpenHow.OPEN, OpenHow.TAKE_OVER}:
            session.hold(take_over=request.how is OpenHow.TAKE_OVER)
        return session

    def make_agent(session: Any) -> FakeAgent:
        agents.append(FakeAgent(session))
        return agents[-1]

    def close_session(session: Any) -> None:
        closed.append(session.id)
        session.release()

    async def list_files(_root: Path) -> Sequence[str]:
        return files

    async def branch(_root: Path) -> str | None:
        return "main*"

    parts: dict[str, Any] = {
        "store": store,
        "open_session": open_session,
        "make_agent": make_agent,
        "close_session": close_session,
        "cwd": cwd,
        "clock": lambda: NOW,
        "config": lambda: Config(ui=settings, keys=dict(keys)),
        "save_setting": saved.__setitem__,
        "config_path": Path("~/.config/tui-agent/config.toml"),
        "state_dir": tmp_path / "state",
        "models": lambda: MODELS,
        "list_files": list_files,
        "branch": branch,
    }
    given = app_services(**parts | services)
    return Stage(
        make_app(given, start), given, store, agents, saved, requests=requests, closed=closed
    )


def screen_text(stage: Stage) -> str:
    return "\n".join(
        "".join(segment.text for segment in strip) for strip in strips(stage.app.screen)
    )


def strips(screen: Screen[Any]) -> list[Strip]:
    """Return the lines that a screen shows, as pieces of one style."""
    return screen._compositor.render_strips()


def remembered(stage: Stage) -> None:
    """Let the open session have a few entries."""
    for text in ("find the login bug", "write a test for it", "and the README"):
        stage.agent.append(UserEntry(parts=(TextPart(text=text),)))
    stage.agent.append(ModeChangeEntry(mode="plan"))


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys and wait until everything they began is done."""
    await pilot.press(*keys)
    await pilot.pause()


async def write(pilot: Pilot[Any], text: str) -> None:
    """Type a text as fast as a terminal brings it; ``Pilot.press`` waits after every key."""
    press_at_once(pilot.app, *text)
    await pilot.pause()


async def send(pilot: Pilot[Any], text: str) -> None:
    await write(pilot, text)
    await pilot.press("enter")


async def emit(stage: Stage, pilot: Pilot[Any], *events: AgentEvent) -> None:
    """Let the agent say something, and wait until it is shown."""
    stage.agent.emit(*events)
    await pilot.pause()


async def run_command(stage: Any, pilot: Pilot[Any], name: str, argument: str = "") -> None:
    """Run a command and wait until it is done."""
    await stage.main.controller.run(name, argument)
    await pilot.pause()


def press_at_once(app: App[Any], *keys: str) -> None:
    """Send keys, by name or by their character, as a terminal does when they come at once."""
    for key in keys:
        character = key if len(key) == 1 else {"space": " ", "enter": "\r"}.get(key)
        name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
        app.post_message(events.Key(name, character))


async def until(condition: Any, pilot: Any = None) -> None:
    """Let the loop turn until something holds; fails after half a minute, which only a busy machine comes near."""
    async with asyncio.timeout(60):
        while not condition():
            if pilot is not None:
                await pilot.pause()
            await asyncio.sleep(0.001)
