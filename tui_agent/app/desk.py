"""The desk: one open session with its agent, and everything a person can ask of it, whatever face they look at.

Handlers of commands get the desk. Whatever fails in one passes the one edge here (`Desk.attempt`): it becomes a
sentence with what can be done, the log has the traceback, and the session goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tui_agent.app.commands import Command, close_names, commands_of, find
from tui_agent.app.face import Choice, Face, FindingsPage, Page, Question, Remedy, Severity
from tui_agent.app.format import one_line
from tui_agent.app.outbox import Outbox
from tui_agent.app.problems import report
from tui_agent.app.services import OpenHow, OpenRequest
from tui_agent.app.take_over import TakeOverWatch
from tui_agent.app.warnings import WarningLog

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.agent.events import AgentEvent
    from tui_agent.agent.mcp.questions import Answer, ServerQuestion
    from tui_agent.app.services import AppServices
    from tui_agent.app.undo import Move, UndoResult
    from tui_agent.session.errors import SessionHeld

T = TypeVar("T")

READ_ONLY = "This session is read-only. /fork continues in a copy."
WORKING = "The agent is working: press Escape first."
COPYING = "Copying the session …"
"""Said while a session is forked, in a thread: of 100,000 entries that takes seconds."""


class Desk:
    """At most one session at a time. ``hear`` is called with every event of its agent."""

    def __init__(self, face: Face, hear: Callable[[AgentEvent], None]) -> None:
        self.face = face
        self._hear = hear
        self._services: AppServices | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._unopened: OpenRequest | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._asks = asyncio.Event()
        self.deciding: asyncio.Task[None] | None = None
        """The question about a plan that the last run ended with."""
        self.agent: Agent | None = None
        """The agent of the open session; None before the first is open."""
        self.undone: list[UndoResult] = []
        """What ``/undo`` did since the last message, newest last."""
        self.undo_moves: set[Move] = set()
        """The moves that ``/undo`` made in the open session."""
        self.review: FindingsPage | None = None
        """What the last ``/review`` found."""
        self.outbox = Outbox(self)
        """Where what the user wrote leaves from."""
        self.take_over = TakeOverWatch(self)
        """Notices that another program has the session now."""
        self.warnings = WarningLog()
        """What the program warned of by itself."""

    # -- what there is ----------------------------------------------------------------------------------------

    def attach(self, services: AppServices) -> None:
        """Take the ports."""
        self._services = services

    @property
    def has_services(self) -> bool:
        """Whether there are ports yet: a key can come before them."""
        return self._services is not None

    @property
    def services(self) -> AppServices:
        """The ports of the application; there after ``attach``."""
        assert self._services is not None, "attach comes first"  # noqa: S101 - a promise of this class
        return self._services

    @property
    def cwd(self) -> Path:
        """The directory of the open session, before there is one the program's."""
        return Path(self.agent.session.info.cwd) if self.agent is not None else Path.cwd()

    @property
    def commands(self) -> list[Command]:
        """The commands there are now."""
        return commands_of(self.agent)

    # -- the three ways to speak, and the edge ----------------------------------------------------------------

    def say(self, message: str, severity: Severity = "information", remedy: Remedy | None = None) -> None:
        """Tell the user one sentence."""
        self.face.say(message, severity, remedy)

    async def ask(self, question: Question[T]) -> T | None:
        """Ask the user; None when they went back."""
        self._asks.set()
        return await self.face.ask(question)

    def show(self, page: Page) -> None:
        """Show a page."""
        self.face.show(page)

    def complain(self, error: BaseException) -> None:
        """Log an error and tell the user what is the matter."""
        problem = report(error)
        self.say(problem.sentence, "warning" if problem.expected else "error")

    async def attempt(self, work: Awaitable[T]) -> T | None:
        """Do some work; what fails is told, and None returned."""
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - the edge: everything becomes a sentence
            self.complain(error)
            return None

    def soon(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T | None]:
        """Do some work in a task of its own, through the edge."""
        task = asyncio.get_running_loop().create_task(self.attempt(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- commands ---------------------------------------------------------------------------------------------

    def begin(self, name: str, arguments: str = "") -> asyncio.Task[None]:
        """Run a command in a task of its own; nothing waits for it."""
        command = find(name, self.commands)
        work = self._run_unknown(name, arguments) if command is None else command.handler(self, arguments)
        return self.soon(work)

    async def run(self, name: str, arguments: str = "") -> None:
        """Run a command; returns when it is done or asks something."""
        self._asks.clear()
        task = self.begin(name, arguments)
        asked = asyncio.ensure_future(self._asks.wait())
        try:
            await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()

    async def run_through(self, command: Command, arguments: str = "") -> None:
        """Run a command to its end, whatever it asks."""
        await self.attempt(command.handler(self, arguments))

    async def _run_unknown(self, name: str, arguments: str) -> None:
        """Send a command that nobody knew a moment ago, because its file is new; otherwise name similar ones."""
        from tui_agent.app.knowledge_commands import send_own

        close = close_names(name, self.commands)
        meant = f"Did you mean {' or '.join('/' + known for known in close)}?" if close else "/help lists them."
        complaint = f"There is no command /{one_line(name, 40)}. {meant}"
        if self.agent is None:
            self.say(complaint, "warning")
        else:
            self.soon(send_own(self, name, arguments, complaint))

    @property
    def idle_agent(self) -> Agent | None:
        """The agent when nothing goes on; otherwise None, and the user is told."""
        if self.agent is not None and self.agent.running:
            self.say(WORKING, "warning")
            return None
        return self.agent

    # -- sessions ---------------------------------------------------------------------------------------------

    async def open(self, request: OpenRequest) -> bool:
        """Open a session in place of the one that is open; when that fails, the open one stays.

        Returns whether it is open now.
        """
        from tui_agent.session.errors import SessionHeld, StoreError

        try:
            await self.open_or_raise(request)
        except SessionHeld as held:
            self.soon(self._ask_how_to_open(request, held))
            return False
        except StoreError as error:
            self.say(error.message, "error")
            self._stay_without(request)
            return False
        return True

    async def open_or_raise(self, request: OpenRequest) -> Agent:
        """Open a session in place of the one that is open.

        Raises:
            SessionHeld: another live program has it.
            StoreError: it can't be opened. In both cases the open one stays.
        """
        self.face.opening()
        opened = self.services.open_session
        if request.how is OpenHow.FORK:
            self.say(COPYING)
            session = await asyncio.to_thread(opened, request)
        else:
            session = opened(request)
        await self.close()
        agent = self.agent = self.services.make_agent(session)
        self._unsubscribe = agent.subscribe(lambda event: self._heard(agent, event))
        agent.mcp.asker = self._answer_server
        self.undone.clear()
        self.undo_moves.clear()
        self.face.opened(agent, request.entry)
        self.outbox.send_early()
        return agent

    def _heard(self, agent: Agent, event: AgentEvent) -> None:
        """Pass an event on; a run in plan mode ends in a question."""
        from tui_agent.agent.events import RunEnded
        from tui_agent.app.planning import decide, offer

        self._hear(event)
        if isinstance(event, RunEnded) and event.reason == "done" and (plan := offer(self, agent)) is not None:
            self.deciding = self.soon(decide(self, plan))

    async def _answer_server(self, question: ServerQuestion) -> Answer:
        """Ask what a server wants to know; what goes wrong is no answer."""
        from tui_agent.agent.mcp.questions import Answer
        from tui_agent.app.server_questions import ask

        return await self.attempt(ask(self, question)) or Answer()

    def open_soon(self, request: OpenRequest) -> None:
        """Open a session in a task of its own."""
        self.soon(self.open(request))

    def open_again(self) -> None:
        """Try once more to open what could not be opened."""
        request, self._unopened = self._unopened, None
        if request is not None:
            self.open_soon(request)

    async def close(self) -> None:
        """End the run and let go of the session."""
        agent, self.agent = self.agent, None
        if agent is None:
            return
        if self._unsubscribe is not None:
            self._unsubscribe()
        await agent.aclose()
        self.services.close_session(agent.session)

    def _stay_without(self, request: OpenRequest) -> None:
        """Go on with nothing open if nothing was: what was sent goes back into the prompt."""
        if self.agent is None:
            self._unopened = request
            self.outbox.take_back()

    async def _ask_how_to_open(self, request: OpenRequest, held: SessionHeld) -> None:
        how = await self.ask(held_question(held.pid, held.host))
        if how is None:
            self._stay_without(request)
        else:
            await self.open(replace(request, session_id=request.session_id or held.session_id, how=OpenHow(how)))


def held_question(pid: int, host: str) -> Choice:
    """Return the question how to open a session that another live program holds."""
    return Choice(
        f"This session is open in process {pid} on {one_line(host, 40)}.",
        [
            (OpenHow.READ_ONLY, "Read it only"),
            (OpenHow.FORK, "Fork it: continue here in a copy"),
            (OpenHow.TAKE_OVER, "Take it over: the other program can only read on"),
        ],
    )
