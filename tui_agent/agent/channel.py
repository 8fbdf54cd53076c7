"""Connects an agent to its frontends by events and questions, and stores a session's entries.

Entries are appended through `Journal`, which stores them in the session and then emits their
events. Entries of other branches (failed attempts, side questions, subagents) are appended to the
session directly, without an event here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar, cast

from tui_agent.agent.events import (
    AgentEvent,
    CostKnown,
    Decision,
    EntryAppended,
    Notice,
    PermissionAnswer,
    PermissionAsked,
    PermissionRequest,
    PermissionSettled,
    Severity,
)
from tui_agent.lazy import frozen
from tui_agent.session.entries import Entry, EntryBase
from tui_agent.session.records import Purpose
from tui_agent.session.session import Session

Subscriber = Callable[[AgentEvent], None]
T = TypeVar("T")

EntryT = TypeVar("EntryT", bound=EntryBase)


def register(members: list[T], member: T) -> Callable[[], None]:
    """Add a member to a list, and return a function that removes it if it is still there."""
    members.append(member)

    def leave() -> None:
        if member in members:
            members.remove(member)

    return leave


class EventChannel:
    """Calls subscribers with every event, in order, on the event loop's thread."""

    def __init__(self) -> None:
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call ``subscriber`` with every event from now on; return a function that unsubscribes."""
        return register(self._subscribers, subscriber)

    def emit(self, event: AgentEvent) -> None:
        for subscriber in tuple(self._subscribers):
            subscriber(event)

    def say(
        self,
        message: str,
        severity: Severity = "information",
        action: str | None = None,
        label: str = "",
    ) -> None:
        """Show the user a notice; see `Notice` for the parameters."""
        self.emit(Notice(message, severity, action, label=label))


class Questions:
    """Asks the user permission questions, one at a time; parallel calls wait their turn.

    A subscriber of the channel has to show each question and call `answer`; until then `ask` waits.
    """

    def __init__(self, channel: EventChannel, submit: Callable[[str], None]) -> None:
        """``submit`` sends a message from the user to the agent that asks the questions."""
        self._channel = channel
        self._submit = submit
        self._lock = asyncio.Lock()
        self._answer: asyncio.Future[PermissionAnswer] | None = None
        self.open: PermissionRequest | None = None
        """The permission question that the user is asked now; None if no question is open."""

    async def ask(self, request: PermissionRequest) -> PermissionAnswer:
        """Ask the user a permission question of this agent, and return the answer.

        If the user approves with a note, the note is submitted as a message. Cancelling this call
        withdraws the question.
        """
        answer = await self.forward(request)
        is_approval = answer.decision not in {Decision.DENY, Decision.STOP}
        if is_approval and answer.note:
            self._submit(answer.note)
        return answer

    async def forward(self, request: PermissionRequest) -> PermissionAnswer:
        """Emit a question of this agent, a subagent or a race's runner; return the user's answer.

        The caller has to pass on the answer's note.
        """
        async with self._lock:
            self._answer = asyncio.get_running_loop().create_future()
            self.open = request
            self._channel.emit(PermissionAsked(request))
            decision = Decision.DENY
            try:
                answer = await self._answer
                decision = answer.decision
                return answer
            finally:
                self.open = None
                self._answer = None
                self._channel.emit(PermissionSettled(request.call_id, decision))

    def answer(self, call_id: str, answer: PermissionAnswer) -> None:
        """Answer the permission question about a call; does nothing if the question isn't open."""
        is_open = self.open is not None and self.open.call_id == call_id
        if is_open and self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def relay(
        self, ask: Callable[[PermissionRequest], Awaitable[PermissionAnswer]]
    ) -> Callable[[], None]:
        """Have ``ask`` answer every question from now on; return a function that ends this.

        A running ``ask`` is cancelled if its question is withdrawn or answered in another way, or
        if the returned function is called.
        """
        tasks: dict[str, asyncio.Task[None]] = {}

        async def answer(request: PermissionRequest) -> None:
            self.answer(request.call_id, await ask(request))

        def on_event(event: AgentEvent) -> None:
            match event:
                case PermissionAsked(request=request):
                    tasks[request.call_id] = asyncio.ensure_future(answer(request))
                case PermissionSettled(call_id=call_id) if call_id in tasks:
                    tasks.pop(call_id).cancel()
                case _:
                    pass

        leave = self._channel.subscribe(on_event)

        def end() -> None:
            leave()
            for task in tasks.values():
                task.cancel()

        return end


@frozen
class Journal:
    """Stores a session's entries and the costs of calls without entries, and emits events."""

    session: Session
    channel: EventChannel

    def append(self, entry: EntryT, then: Callable[[], None] = lambda: None) -> EntryT:
        """Append an entry below the leaf, emit its event and return the stored entry.

        See `append_many`.
        """
        return cast("EntryT", self.append_many([cast("Entry", entry)], then)[0])

    def append_many(
        self, entries: Iterable[Entry], then: Callable[[], None] = lambda: None
    ) -> list[Entry]:
        """Append entries in one transaction, each below the previous one; return them as stored.

        After that ``then`` is called, and then an event is emitted for each entry, in order. Raises
        StoreError if the entries can't be stored; none of them is stored then.
        """
        saved = self.session.append_many(entries)
        then()
        for entry in saved:
            self.channel.emit(EntryAppended(entry))
        return saved

    def add_cost(self, dollars: float, purpose: Purpose) -> None:
        """Add the cost of model calls without an entry, in US dollars, to the session's cost.

        A negative amount removes the cost of calls that have an entry now. Raises StoreError.
        """
        self.session.add_cost(dollars, purpose)
        self.channel.emit(CostKnown())
