"""An agent that does what a test tells it: the same interface as the real one, on a real session, without a model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui_agent.agent.events import (
    AgentEvent,
    Decision,
    EntryAppended,
    LeafMoved,
    LiveAnswer,
    PermissionAnswer,
    PermissionAsked,
    PermissionRequest,
    PermissionSettled,
    QueueChanged,
    RunEnded,
    RunStarted,
)
from tui_agent.context.budget import ContextSize
from tui_agent.context.effort import EffortInForce
from tui_agent.session.effort import Effort
from tui_agent.session.entries import (
    EffortChangeEntry,
    Entry,
    ModeChangeEntry,
    ModelChangeEntry,
    ShellEntry,
    TextPart,
    UserEntry,
    UserPart,
)
from tui_agent.session.session import Session

SIZE = ContextSize(
    fixed=12_000,
    history=72_200,
    total=84_200,
    window=200_000,
    reserve=20_000,
    threshold=160_000,
    exact_until=3,
    estimated=True,
)


@dataclass
class FakeAgent:
    """Records what it is asked to do; a test says what it answers with ``emit`` and ``append``."""

    session: Session
    model: str = "anthropic/claude-sonnet-4-5"
    mode: str = "build"
    levels: tuple[Effort, ...] = tuple(Effort)
    chosen: Effort | None = None
    running: bool = False
    live: LiveAnswer | None = None
    question: PermissionRequest | None = None
    size: ContextSize = SIZE
    cost: float | None = 0.42
    sent: list[tuple[str | tuple[UserPart, ...], bool]] = field(default_factory=list)
    shells: list[tuple[str, bool]] = field(default_factory=list)
    answers: list[tuple[str, PermissionAnswer]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    failing: Exception | None = None
    on_submit: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        self._subscribers: list[Callable[[AgentEvent], None]] = []
        self._waiting: list[tuple[str, bool]] = []

    # -- what a test does ---------------------------------------------------------------------------------------

    def emit(self, *events: AgentEvent) -> None:
        """Tell the subscribers."""
        for event in events:
            if isinstance(event, RunStarted):
                self.running = True
            if isinstance(event, RunEnded):
                self.running = False
            if isinstance(event, PermissionAsked):
                self.question = event.request
            for subscriber in tuple(self._subscribers):
                subscriber(event)

    def append(self, *entries: Entry) -> None:
        """Commit entries and tell of them."""
        for entry in entries:
            self.emit(EntryAppended(self.session.append(entry)))

    # -- what the interface sees --------------------------------------------------------------------------------

    @property
    def queue(self) -> QueueChanged:
        return QueueChanged(
            steer=tuple(text for text, later in self._waiting if not later),
            follow_up=tuple(text for text, later in self._waiting if later),
        )

    def subscribe(self, callback: Callable[[AgentEvent], None]) -> Callable[[], None]:
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def submit(self, message: str | Sequence[UserPart], *, follow_up: bool = False) -> None:
        if self.failing is not None:
            raise self.failing
        parts = (TextPart(text=message),) if isinstance(message, str) else tuple(message)
        text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
        self.sent.append((message if isinstance(message, str) else parts, follow_up))
        if self.running:
            self._waiting.append((text, follow_up))
            self.emit(self.queue)
            return
        self.emit(RunStarted())
        self.append(UserEntry(parts=parts))
        if self.on_submit is not None:
            self.on_submit(text)

    def take_back(self) -> str | None:
        text = self._waiting.pop()[0] if self._waiting else None
        self.emit(self.queue)
        return text

    def interrupt(self) -> None:
        self.calls.append("interrupt")
        if self.question is not None:
            self.emit(PermissionSettled(self.question.call_id, Decision.DENY))
            self.question = None
        if self.running:
            self.emit(RunEnded("interrupted"))

    def answer_permission(self, call_id: str, answer: PermissionAnswer) -> None:
        self.answers.append((call_id, answer))
        self.question = None
        self.emit(PermissionSettled(call_id, answer.decision))

    def retry(self) -> None:
        self.calls.append("retry")
        self.emit(RunStarted())

    async def run_shell(self, command: str, *, excluded: bool = False) -> ShellEntry:
        self.shells.append((command, excluded))
        entry = ShellEntry(command=command, output=f"output of {command}", exit_code=0, excluded=excluded)
        self.append(entry)
        return entry

    def change_model(self, model: str) -> None:
        self.model = model
        self.append(ModelChangeEntry(model=model))

    @property
    def effort(self) -> EffortInForce:
        return EffortInForce(self.model, self.levels, self.chosen)

    def change_effort(self, effort: Effort | None) -> None:
        self.chosen = effort
        self.append(EffortChangeEntry(effort=effort))

    def change_mode(self, mode: str) -> None:
        self.mode = mode
        self.append(ModeChangeEntry(mode=mode))

    @property
    def navigator(self) -> "FakeNavigator":
        return FakeNavigator(self)

    def context_size(self) -> ContextSize:
        return self.size

    def session_cost(self) -> float | None:
        return self.cost

    async def aclose(self) -> None:
        self.calls.append("aclose")


@dataclass
class FakeNavigator:
    """Moves the leaf, without asking anybody."""

    agent: FakeAgent

    async def go(self, leaf: int | None) -> None:
        self.agent.session.move(leaf)
        self.agent.emit(LeafMoved(leaf))

    async def undo(self) -> int | None:
        leaf = self.agent.session.undo_move()
        self.agent.emit(LeafMoved(leaf))
        return leaf


class FakeCompactingAgent(FakeAgent):
    """One that can compact too."""

    def compact(self, focus: str | None = None) -> Any:
        self.calls.append(f"compact {focus}")
