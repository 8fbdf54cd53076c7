"""A real agent that does what a test tells it: on a real session, without a model."""

from collections.abc import Sequence
from pathlib import Path

from tests.support.agents import FixedDirectory, ports_of
from tests.support.scripted_client import ScriptedClient
from tui_agent.agent.agent import Agent
from tui_agent.agent.compaction_outcome import CompactionOutcome, Postponed
from tui_agent.agent.events import (
    AgentEvent,
    Decision,
    EntryAppended,
    LiveAnswer,
    PermissionAnswer,
    PermissionAsked,
    PermissionSettled,
    RunEnded,
    RunStarted,
)
from tui_agent.agent.message_queue import QueuedMessage
from tui_agent.context.budget import ContextSize
from tui_agent.session.effort import Effort, EffortInForce
from tui_agent.session.entries import Entry, ShellEntry, TextPart, UserEntry, UserPart
from tui_agent.session.session import Session

SIZE = ContextSize(
    fixed=12_000, history=72_200, total=84_200, window=200_000, reserve=20_000, threshold=160_000, exact_until=3,
    estimated=True,
)  # fmt: skip


class FakeAgent(Agent):
    """Records what it is asked to do; a test says what it answers with ``emit`` and ``append``."""

    running: bool = False
    live: LiveAnswer | None = None
    size: ContextSize = SIZE
    cost: float | None = 0.42
    failing: Exception | None = None
    levels: tuple[Effort, ...] = tuple(Effort)

    def __init__(self, session: Session, model: str = "anthropic/claude-sonnet-4-5") -> None:
        directory, clock = FixedDirectory(200_000), session.store.clock
        ports = ports_of(
            session, ScriptedClient([]), Path(session.info.cwd), directory=directory, clock=clock
        )
        super().__init__(session, ports, model=model)
        self.sent: list[tuple[str | tuple[UserPart, ...], bool]] = []
        self.shells: list[tuple[str, bool]] = []
        self.answers: list[tuple[str, PermissionAnswer]] = []
        self.calls: list[str] = []

    # -- what a test does ---------------------------------------------------------------------------------------

    def emit(self, *events: AgentEvent) -> None:
        for event in events:
            if isinstance(event, RunStarted):
                self.running = True
            if isinstance(event, RunEnded):
                self.running = False
            if isinstance(event, PermissionAsked):
                self.questions.open = event.request
            self.channel.emit(event)

    def append(self, *entries: Entry) -> None:
        """Commit entries and tell of them."""
        for entry in entries:
            self.emit(EntryAppended(self.session.append(entry)))

    # -- what the interface sees --------------------------------------------------------------------------------

    def submit(self, message: str | Sequence[UserPart], *, follow_up: bool = False) -> None:
        if self.failing is not None:
            raise self.failing
        parts = (TextPart(text=message),) if isinstance(message, str) else tuple(message)
        self.sent.append((message if isinstance(message, str) else parts, follow_up))
        if self.running:
            self.queue.append(QueuedMessage(parts, follow_up))
            self.emit(self.queue.snapshot())
            return
        self.emit(RunStarted())
        self.append(UserEntry(parts=parts))

    def interrupt(self) -> None:
        self.calls.append("interrupt")
        if self.questions.open is not None:
            self.emit(PermissionSettled(self.questions.open.call_id, Decision.DENY))
            self.questions.open = None
        if self.running:
            self.emit(RunEnded("interrupted"))

    def answer_permission(self, call_id: str, answer: PermissionAnswer) -> None:
        self.answers.append((call_id, answer))
        self.questions.open = None
        self.emit(PermissionSettled(call_id, answer.decision))

    def retry(self) -> None:
        self.calls.append("retry")
        self.emit(RunStarted())

    async def run_shell(self, command: str, *, excluded: bool = False) -> ShellEntry:
        self.shells.append((command, excluded))
        entry = ShellEntry(
            command=command, output=f"output of {command}", exit_code=0, excluded=excluded
        )
        self.append(entry)
        return entry

    @property
    def effort(self) -> EffortInForce:
        return EffortInForce(self.model, self.levels, self.context.chosen_effort)

    def context_size(self, _leaf: int | None = None) -> ContextSize:
        return self.size

    def session_cost(self) -> float | None:
        return self.cost

    async def aclose(self) -> None:
        self.calls.append("aclose")

    async def compact(
        self, focus: str | None = None, *, for_model: str | None = None, boundary: int | None = None
    ) -> CompactionOutcome:
        self.calls.append(f"compact {focus}")
        return Postponed()
