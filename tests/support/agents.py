"""Builds real agents on real stores with a scripted model, for tests."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.support.scripted_client import Script, ScriptedClient
from tests.support.services import app_services
from tests.support.stores import open_store
from tui_agent.agent.agent import Agent
from tui_agent.agent.calls.repetition import ANSWER_PATTERN
from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.agent.events import (
    AgentEvent,
    Decision,
    Notice,
    PermissionAnswer,
    PermissionAsked,
    RunEnded,
)
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.ports import AgentPorts
from tui_agent.app.services import AppServices
from tui_agent.context.budget import ModelLimits
from tui_agent.context.projection import ModelTraits
from tui_agent.context.tokens import TokenCounter
from tui_agent.model.catalog import ModelInfo, Prices
from tui_agent.model.plan_limits import PlanUse
from tui_agent.model.protocol import ModelClient
from tui_agent.resources import prompt
from tui_agent.session.effort import Effort
from tui_agent.session.entries import Entry, ToolResultEntry
from tui_agent.session.ids import Clock
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.tools.registry import builtin_tools

MODEL = "test/model"
T = TypeVar("T")
YES = PermissionAnswer(Decision.ONCE)


@dataclass
class FixedDirectory:
    """Every model has the same window; what is learnt is recorded."""

    window: int = 100_000
    learnt: list[tuple[str, int, int]] = field(default_factory=list)
    windows: dict[str, int] = field(default_factory=dict)
    efforts: dict[str, tuple[Effort, ...]] = field(default_factory=dict)
    without_tools: set[str] = field(default_factory=set)
    searching: set[str] = field(default_factory=set)
    """Models whose provider searches the web."""
    with_documents: set[str] = field(default_factory=set)
    """Models that take PDFs as they are."""
    plan: PlanUse = field(default_factory=PlanUse)
    prices: tuple[Prices, ...] = ()

    def info(self, model: str) -> ModelInfo:
        return ModelInfo(model, "test", self.window, prices=self.prices, cache_marks=True)

    async def refresh(self, model: str) -> None:
        """Ask nobody."""

    def limits(self, model: str) -> ModelLimits:
        window = self.windows.get(model, self.window)
        documents = model in self.with_documents
        return ModelLimits(model, window, max_output=4_000, documents=documents)

    def traits(self, model: str) -> ModelTraits:
        levels = self.efforts.get(model, tuple(Effort))
        return ModelTraits(
            model,
            efforts=levels,
            tools=model not in self.without_tools,
            searches=model in self.searching,
            documents=model in self.with_documents,
        )

    def adaptations(self, model: str) -> list[str]:
        return []

    def counter(self, model: str) -> TokenCounter:
        return TokenCounter(model)

    def learn(self, model: str, counted: int, reported: int) -> None:
        self.learnt.append((model, counted, reported))

    def learn_window(self, model: str, window: int, *, named: bool = True) -> None:
        self.windows[model] = window


@dataclass
class Harness:
    """An agent, its store and everything it said."""

    agent: Agent
    store: Store
    session: Session
    events: list[AgentEvent]
    directory: FixedDirectory

    @property
    def client(self) -> Any:
        return self.agent.ports.client

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def path(self) -> list[Entry]:
        return self.session.path()

    def entries(self, kind: type[T]) -> list[T]:
        return [entry for entry in self.path() if isinstance(entry, kind)]

    def results(self) -> list[ToolResultEntry]:
        return self.entries(ToolResultEntry)

    def notices(self) -> list[str]:
        return [notice.message for notice in self.of(Notice)]

    def services(self, **more: Any) -> AppServices:
        """Return what a controller with this agent is given."""
        given: dict[str, Any] = {
            "store": self.store,
            "open_session": lambda _request: self.session,
            "make_agent": lambda _session: self.agent,
            "cwd": Path(self.session.info.cwd),
            "state_dir": Path(self.session.info.cwd) / ".state",
            "clock": time.time,
        }
        return app_services(**given | more)

    def kinds(self) -> list[str]:
        return [entry.kind for entry in self.path()]

    async def say(self, text: str) -> RunEnded:
        self.agent.submit(text)
        return await self.ended()

    async def ended(self) -> RunEnded:
        await asyncio.wait_for(self.agent.wait_idle(), 500)
        # What begins a run in a task of its own may not have done so.
        await self.until(lambda: bool(self.of(RunEnded)))
        last: RunEnded = self.of(RunEnded)[-1]
        return last

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.001)


def ports_of(session: Session, client: ModelClient, project: Path, **ports: Any) -> AgentPorts:
    """Return what an agent of a session is given."""
    ports.setdefault("directory", FixedDirectory())
    return AgentPorts(
        client=client,
        tools=ports.pop("tools", None) or builtin_tools(),
        prompt=prompt,
        cwd=project,
        project=project,
        put_blob=session.store.put_blob,
        blob=session.store.blob,
        environment={"PATH": "/usr/bin:/bin"},
        **ports,
    )


def make_agent(
    tmp_path: Path,
    client: ModelClient | Script,
    *,
    answer: PermissionAnswer | None = YES,
    window: int = 100_000,
    model: str = MODEL,
    keeps_files: bool = False,
    session_clock: Clock | None = None,
    store: Store | None = None,
    **ports: Any,
) -> Harness:
    """Return an agent in ``tmp_path/project``; ``answer`` is given to every question, None leaves them open.

    A script is played by a ``ScriptedClient``. With ``keeps_files`` it records what changes in files, in its own store.
    """
    if isinstance(client, Sequence) or not hasattr(client, "stream"):
        client = ScriptedClient(client)
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    store = store or open_store(tmp_path / "sessions.db")
    if keeps_files:
        ports.setdefault("checkpoints", SnapshotStore(store.put_blob, store.blob))
    # What scripts have models say is often one word many times.
    ports.setdefault("rules", (Rule("doom_loop", ANSWER_PATTERN, Action.ALLOW, "default"),))
    directory = ports.pop("directory", None) or FixedDirectory(window)
    info = store.create_session(project)
    session = Session(
        store, info.id, estimate=directory.counter(model).estimate, clock=session_clock
    )
    agent = Agent(
        session, ports_of(session, client, project, directory=directory, **ports), model=model
    )
    events: list[AgentEvent] = []

    def on_event(event: AgentEvent) -> None:
        events.append(event)
        if answer is not None and isinstance(event, PermissionAsked):
            asyncio.get_running_loop().call_soon(
                agent.answer_permission, event.request.call_id, answer
            )

    agent.channel.subscribe(on_event)
    return Harness(agent, store, session, events, directory)
