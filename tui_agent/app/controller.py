"""The controller: owns the open session and its agent, runs commands and sends the user's messages.

The controller is the same for every frontend. Command handlers receive the controller as their
first argument. Their failures are caught in one place (`Controller.attempt`): the user sees a
message, the traceback is logged, and the session continues. When the user opens another session, a
busy session continues in the background (an aside). `AppServices` opens and closes sessions and
makes agents; race_commands.py sets and clears the race.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context, copy_context
from dataclasses import field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tui_agent.agent.mentions import has_mention
from tui_agent.app.commands import Command, commands_of, count_use, find, remedy_of
from tui_agent.app.format import named_jobs, one_line, plural
from tui_agent.app.frontend import (
    UNREQUESTED,
    Choice,
    Frontend,
    Page,
    Question,
    Remedy,
    Severity,
    requested_at,
)
from tui_agent.app.intent import (
    CommandIntent,
    Intent,
    MessageIntent,
    ShellIntent,
    named_skill,
    parse,
)
from tui_agent.app.pasted_images import PastedImages
from tui_agent.app.run_state import RunState
from tui_agent.app.services import OpenHow, OpenRequest
from tui_agent.errors import CommandError, log, report
from tui_agent.lazy import dataclass

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.agent.attachments import Prepared
    from tui_agent.agent.events import AgentEvent
    from tui_agent.agent.race.race import Race
    from tui_agent.app.services import AppServices
    from tui_agent.app.side_by_side import Aside
    from tui_agent.session.entries import UserPart
    from tui_agent.session.errors import SessionHeld
    from tui_agent.session.session import Session
    from tui_agent.tools.questions import Answer, ModelQuestions, ServerQuestion

MAX_WARNINGS = 100
"""Maximum number of warnings in the list; when it is full, the oldest ones are dropped."""

T = TypeVar("T")

READ_ONLY = "This session is read-only. /fork continues in a copy."
PLAN_READY = "The plan is ready. /plan carries it out or changes it."
WORKING = "The agent is working: press Escape first."

SWITCHED = (
    "Another session was opened before the message was sent. The message is back in the prompt."
)

COPYING = "Copying the session …"
"""Message shown while a session is copied, as copying 100,000 entries takes seconds."""

SESSIONLESS_COMMANDS = frozenset({"quit", "help", "doctor"})
"""Names of the commands that can be used while no session is open."""

_WAYS = (
    (OpenHow.FORK, "Fork it: continue here in a copy"),
    (OpenHow.TAKE_OVER, "Take it over: it becomes read-only in the other program"),
)
"""Ways to continue a session that another program has open, and the label of each as an answer."""

_REMEDY: Final = ("", "Send a message to choose how to continue.", "screen.choose_how")


@dataclass
class WarningLog:
    """Records the program's warnings, and how many of them the user may have missed.

    The full screen adds the warnings; without a screen, the log stays empty.
    """

    said: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=MAX_WARNINGS))
    """Time (seconds since the epoch) and sentence of each warning, oldest first."""
    unread: int = 0
    """Number of warnings that a newer message has hidden since the user last saw the list."""

    def lines(self) -> list[str]:
        """Return a line for each warning, oldest first: the time of day and the sentence."""
        lines: list[str] = []
        for when, sentence in self.said:
            clock = time.strftime("%H:%M", time.localtime(when))
            lines.append(f"! {clock:<14} {sentence}")
        return lines


class Controller:
    """Owns the open session and runs every command.

    Other busy sessions continue in the background, as asides. ``hear`` is called with every event
    of the open session's agent.
    """

    def __init__(self, frontend: Frontend, hear: Callable[[AgentEvent], None]) -> None:
        self.frontend = frontend
        self._hear = hear
        self._services: AppServices | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._unopened: OpenRequest | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._asks = asyncio.Event()
        self._begun: asyncio.Task[Any] | None = None
        self._opening = asyncio.Lock()
        """Lock that is held while a session is opened, so that only one is opened at a time."""
        self._shown = asyncio.Event()
        self._shown.set()
        self.deciding: asyncio.Task[bool | None] | None = None
        """The task of the last ``/plan`` that the controller began because a plan was proposed.

        It may have ended. None if there was no such ``/plan`` yet.
        """
        self.choosing: asyncio.Task[None] | None = None
        """Task that asks for a model at the first start; cancelled once a model is chosen."""
        self.is_leaving = False
        """Whether the user is being asked to confirm /quit; a second /quit ends the program."""
        self.clock: Callable[[], float] = time.time
        """Returns the current time in seconds since the epoch.

        The time is needed for keys, which can arrive before ``attach`` is called.
        """
        self.agent: Agent | None = None
        """The agent of the open session; None if no session is open."""
        self.race: Race | None = None
        """The open session's race; None if there is none.

        Set by race_commands.py, and cleared there when the user takes a runner's work or drops the
        race.
        """
        self.deleted_sessions: list[str] = []
        """Ids of the sessions that the user has deleted and can restore, the newest last."""
        self.asides: dict[str, Aside] = {}
        """Sessions that are open but not on the screen, by session id.

        They were busy when the user switched to another session, but may have finished since then.
        """
        self.progress = RunState()
        """What a session's agent was doing when the session was last brought back to the screen.

        `Frontend.progress` has the current state.
        """
        self.outbox = Outbox(self)
        """Sends the messages and commands that the user typed into the prompt."""
        self.attached = asyncio.Event()
        """Set once ``attach`` has been called.

        The user can already press keys before that.
        """
        self._pasted: PastedImages | None = None
        self.warnings = WarningLog()
        """The log of warnings, which ``/doctor`` lists."""

    # -- the parts

    def attach(self, services: AppServices) -> None:
        """Give the controller its services, and run the commands that were waiting for them."""
        self._services = services
        self.clock = services.clock
        self.attached.set()

    @property
    def services(self) -> AppServices:
        """The services passed to ``attach``, which must be called first."""
        assert self._services is not None, "attach comes first"  # noqa: S101 - a promise of this class
        return self._services

    @property
    def pasted(self) -> PastedImages:
        if self._pasted is None:
            self._pasted = PastedImages(self.services.state_dir)
        return self._pasted

    @property
    def cwd(self) -> Path:
        """The directory of the open session; the program's working directory while none is open."""
        if self.agent is not None:
            return Path(self.agent.session.info.cwd)
        return Path.cwd()

    @property
    def project(self) -> Path:
        """The project's directory; the program's working directory while no session is open."""
        if self.agent is not None:
            return self.agent.ports.project
        return Path.cwd()

    @property
    def commands(self) -> list[Command]:
        """The built-in commands that this frontend supports, and the user's commands and skills."""
        commands = []
        for row in commands_of(self.agent):
            if self.frontend.has_screen or not row.needs_screen:
                commands.append(row)
        return commands

    # -- messages, questions and pages; and where failures are caught

    def say(
        self, message: str, severity: Severity = "information", remedy: Remedy | None = None
    ) -> None:
        self.frontend.say(message, severity, remedy)

    async def ask(self, question: Question[T]) -> T | None:
        """Ask the user a question and return the answer; None if they cancel or can't be asked."""
        self._asks.set()
        self._shown.set()
        return await self.frontend.ask(question)

    def show(self, page: Page) -> None:
        self._shown.set()
        self.frontend.show(page)

    async def attempt(self, work: Awaitable[T]) -> T | None:
        """Await ``work`` and return its result; if it raises an error, log and show the error.

        Returns None in that case. The error is shown on the page that covers the conversation, if
        there is one. It is only logged if the program is ending and nothing can be shown any more.
        """
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - the outermost handler: every error becomes a message
            if self.frontend.is_closed:
                log.info("Error after the end of the program: %s: %s", type(error).__name__, error)
                return None
            problem = report(error)
            severity: Severity = "warning" if problem.expected else "error"
            self.frontend.announce(problem.sentence, severity)
            return None

    def soon(
        self,
        work: Coroutine[Any, Any, T],
        context: Context | None = None,
        *,
        changes_files: bool = False,
    ) -> asyncio.Task[T | None]:
        """Start ``work`` as a task and return the task; reports errors as ``attempt`` does.

        ``changes_files`` says whether ``work`` itself can change the project's files, without a run
        of the agent.
        """
        task = asyncio.get_running_loop().create_task(self.attempt(work), context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if changes_files:
            task.add_done_callback(lambda _task: self.frontend.files_changed())
        return task

    # -- commands

    def begin(self, name: str, arguments: str = "") -> asyncio.Task[bool | None]:
        """Start a command as a task and return the task; its result is None if the command failed.

        ``name`` may be an alias, or the name of a command file, skill or server's prompt. For a
        name that is not in `commands`, such as the name of a new command file, the result is always
        None.
        """
        self.frontend.command_begins()
        self._shown.clear()
        self._begun = self._begin(name, arguments, at=self.clock())
        self._begun.add_done_callback(self._ended)
        return self._begun

    def _begin(self, name: str, arguments: str, *, at: float) -> asyncio.Task[bool | None]:
        """Start a command as `begin` does; ``at`` is the time at which the user gave it."""
        context = copy_context()
        context.run(requested_at.set, at)
        command = find(name, self.commands)
        if command is not None and self.attached.is_set() and self.frontend.has_screen:
            count_use(self.services.state_dir, command.name)
        if command is None:
            # The user may have added a command of this name since the start, so read the files
            # again.
            return self.soon(
                self.outbox.send_command(name, arguments, self.unknown(name, arguments)), context
            )
        work = self._run(command, arguments)
        return self.soon(work, context, changes_files=command.changes_files)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if task is self._begun:
            self._shown.set()

    async def shown(self) -> None:
        """Wait until the user's last command has shown something, asked a question, or ended."""
        await self._shown.wait()

    async def _run(self, command: Command, arguments: str) -> bool:
        """Run a command and return True; unless the command ``is_early``, wait for ``attach``."""
        if not command.is_early:
            await self.attached.wait()
        await command.handler(self, arguments)
        return True

    async def run(self, name: str, arguments: str = "") -> None:
        """Start a command; return when it is done, or as soon as it asks the user a question."""
        self._asks.clear()
        task = self.begin(name, arguments)
        asked = asyncio.ensure_future(self._asks.wait())
        try:
            await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()

    async def run_to_completion(self, command: Command, arguments: str = "") -> bool:
        """Run a command, wait until all tasks have ended, and return True if the command succeeded.

        The tasks include all work that the command started.
        """
        done = await self.attempt(self._run(command, arguments))
        await self.tasks_done()
        return done is True

    async def tasks_done(self) -> None:
        """Wait until every task that was started by `soon` has ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def unknown(self, name: str, arguments: str = "") -> str:
        """Return the error message for an unknown command, with advice such as similar names."""
        from tui_agent.app.names_elsewhere import ELSEWHERE

        meant = ELSEWHERE.get(name) or self._nearest(name)
        message = ""
        if arguments:
            message = " For a message that begins with a slash, type a space first."
        return f"There is no command /{one_line(name, 40)}. {meant}{message}"

    def _nearest(self, name: str) -> str:
        """Return a sentence that suggests similar commands, or /help if there are none."""
        names: list[str] = []
        for command in self.commands:
            names.extend((command.name, *command.aliases))
        begins = []
        if len(name) >= 2:
            begins = [
                known for known in names if known.startswith(name[:3]) and len(known) >= len(name)
            ]
        close = list(dict.fromkeys([*get_close_matches(name, names, 3, 0.6), *begins]))[:3]
        if close:
            return f"Did you mean {' or '.join('/' + known for known in close)}?"
        return "/help lists all commands."

    @property
    def open_agent(self) -> Agent:
        """The agent of the open session; raises a `CommandError` if none is open."""
        if self.agent is None:
            raise CommandError("No session is open.")
        return self.agent

    @property
    def idle_agent(self) -> Agent:
        """The agent of the open session.

        Raises a `CommandError` if no session is open or the agent is working.
        """
        if self.open_agent.running:
            raise CommandError(WORKING)
        return self.open_agent

    def require_writable(self) -> None:
        """Raise a `CommandError` if the open session is read-only, or none is open."""
        if self.open_agent.session.read_only:
            raise CommandError(READ_ONLY)

    # -- sessions

    async def open(self, request: OpenRequest) -> bool:
        """Open another session in place of the open one; return True if it was opened.

        If the session can't be opened, the user is told why and the open session stays. If another
        program has the requested session open, returns False and asks the user how to continue. If
        the frontend can't open another session, its `go_to` tells the user what to do.
        """
        from tui_agent.session.errors import SessionHeld, StoreError

        if self.agent is not None and not self.frontend.opens_sessions:
            self.frontend.go_to(request)
            return False
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
        """Open another session in place of the open one, and return the agent of the new session.

        If another session is already being opened, waits for that first.

        Raises:
            SessionHeld: another running program has the requested session open.
            StoreError: the session can't be opened. In both cases, the open session stays open.
        """
        async with self._opening:
            return await self._open_instead(request)

    async def _open_instead(self, request: OpenRequest) -> Agent:
        """Do what `open_or_raise` does, while the caller holds the lock ``_opening``."""
        self.frontend.opening()
        aside = self.asides.get(request.session_id or "")
        if aside is not None and request.how is not OpenHow.FORK:
            await self._leave_open_one()
            agent = self._return_to(aside)
        else:
            session = await self._open_session(request)
            await self._leave_open_one()
            agent = self.services.make_agent(session)
            agent.person.asker = partial(self._ask_for_agent, agent)
            self.progress = RunState()
        self.agent = agent
        self._unsubscribe = agent.channel.subscribe(lambda event: self._heard(agent, event))
        self.frontend.opened(agent, request.entry)
        self.frontend.show_asides(tuple(self.asides.values()))
        self.outbox.send_early()
        return agent

    async def _open_session(self, request: OpenRequest) -> Session:
        opened = self.services.open_session
        if request.how is OpenHow.FORK:
            self.say(COPYING)
            return await asyncio.to_thread(opened, request)
        return opened(request)

    async def _ask_for_agent(
        self, agent: Agent, question: ServerQuestion | ModelQuestions
    ) -> Answer:
        """Ask the user a question from ``agent``'s model or from an MCP server; return the answer.

        Waits until the agent's session is on the screen. If asking fails, returns an answer whose
        action is "cancel".
        """
        from tui_agent.agent.events import QuestionAsked, QuestionsAnswered
        from tui_agent.app.server_questions import ask, text_of
        from tui_agent.tools.questions import Answer

        agent.person.open_questions += 1
        agent.channel.emit(QuestionAsked(text_of(question)))
        aside = self.asides.get(agent.session.id)
        unasked = requested_at.set(UNREQUESTED)
        try:
            if aside is not None:
                await aside.shown.wait()
            # If asking fails, `attempt` returns None, and the question counts as cancelled.
            return await self.attempt(ask(self, question)) or Answer()
        finally:
            requested_at.reset(unasked)
            agent.person.open_questions -= 1
            if not agent.person.open_questions:
                agent.channel.emit(QuestionsAnswered())

    # -- sessions side by side

    async def _leave_open_one(self) -> None:
        """Take the open session off the screen, so that another one can be opened.

        If the session is busy and the frontend supports background sessions, it continues in
        ``asides``. Otherwise, it is closed.
        """
        from tui_agent.app.side_by_side import Aside, is_busy

        agent = self.agent
        if agent is None or not self.frontend.keeps_asides or not is_busy(agent, self.race):
            await self._close_open_one()
            return
        self._stop_hearing()
        session_id = agent.session.id
        self.asides[session_id] = Aside(
            agent,
            self.race,
            progress=self.frontend.progress,
            clock=self.clock,
            report=self._aside_changed,
        )
        self.agent = None
        self.race = None

    def _return_to(self, aside: Aside) -> Agent:
        """Bring a background session back, with its race and progress; return its agent."""
        del self.asides[aside.agent.session.id]
        aside.leave()
        self.race = aside.race
        self.progress = aside.progress
        self.services.show_agent(aside.agent)
        return aside.agent

    def _aside_changed(self, aside: Aside) -> None:
        from tui_agent.app.side_by_side import AsideState, news_of

        self.frontend.show_asides(tuple(self.asides.values()))
        if aside.state is not AsideState.WORKING:
            self.frontend.call_to_aside(aside, news_of(aside))

    def _stop_hearing(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _heard(self, agent: Agent, event: AgentEvent) -> None:
        """Pass an event to ``hear``; if a run that proposed a plan has ended, ask about the plan.

        If there is text in the prompt, or messages are queued, only tells the user that the plan is
        ready.
        """
        from tui_agent.agent.events import RunEnded

        self._hear(event)
        if not (
            isinstance(event, RunEnded) and event.reason == "done" and self.frontend.is_attended
        ):
            return
        from tui_agent.app.proposed_plan import proposed_plan

        if not proposed_plan(agent, headed=True):
            return
        if self.frontend.draft.strip() or agent.queue:
            self.say(PLAN_READY)
        else:
            self.deciding = self._begin("plan", "", at=UNREQUESTED)

    async def between_sessions(self, work: Awaitable[T]) -> T:
        """Close the open session, await ``work``, open the session again, and return the result.

        As the session is closed, ``work`` can change it in the store, and no older state in memory
        overwrites these changes. A session without entries stays open.
        """
        session = self.open_agent.session
        if not session.info.entry_count:
            return await work
        self.frontend.opening()
        await self._close_open_one()
        try:
            return await work
        finally:
            await self.open(OpenRequest(session.id))

    def retry_opening(self) -> None:
        """Retry the last failed attempt to open a session, if no other session was open then."""
        request = self._unopened
        self._unopened = None
        if request is not None:
            self.soon(self.open(request))

    async def close(self) -> None:
        """Close every open session.

        The session on the screen is closed last, so that it counts as the last used one.
        """
        asides = list(self.asides.values())
        self.asides.clear()
        for aside in asides:
            aside.leave()
            await self._end(aside.agent, aside.race)
        await self._close_open_one()

    async def _close_open_one(self) -> None:
        agent = self.agent
        race = self.race
        self.agent = None
        self.race = None
        if agent is not None:
            self._stop_hearing()
            await self._end(agent, race)

    async def _end(self, agent: Agent, race: Race | None) -> None:
        if race is not None:
            await self.attempt(race.aclose())
        commands = agent.jobs.running_commands
        await agent.aclose()
        self.services.close_session(agent.session)
        # On a screen, the user has been asked before.
        if commands and not self.frontend.has_screen:
            self.say(f"Ended {plural(len(commands), 'background job')}: {named_jobs(commands)}.")

    def _stay_without(self, request: OpenRequest) -> None:
        """If no session is open, keep the failed request, so that `retry_opening` can repeat it.

        In that case, also puts the texts that were waiting for the session back into the prompt.
        """
        if self.agent is None:
            self._unopened = request
            self.outbox.put_back_early()

    async def _ask_how_to_open(self, request: OpenRequest, held: SessionHeld) -> None:
        question = f"This session is open in process {held.pid} on {one_line(held.host, 40)}."
        if name := await asyncio.to_thread(self.services.detached_run, held.session_id):
            question = f"This session is running as {name}; tui-agent attach {name} shows it."
        ways = [(OpenHow.READ_ONLY, "Open it read-only"), *_WAYS]
        is_nothing_open = self.agent is None
        how = await self.ask(Choice(question, ways, inline=True, comes_first=is_nothing_open))
        if how is None:
            self._stay_without(request)
            if self.agent is None:
                begin = remedy_of("new", self.frontend.keymap, "start one")
                self.say("No session is open.", remedy=begin)
        else:
            await self.open(
                replace(request, session_id=request.session_id or held.session_id, how=OpenHow(how))
            )

    def warn_if_taken_over(self) -> bool:
        """Warn if another program has taken over the open session; return whether it has.

        Reads one database row.
        """
        from tui_agent.session.errors import StoreError
        from tui_agent.session.ids import short_id

        if self.agent is None:
            return False
        try:
            taken: bool = self.agent.session.check_for_take_over()
        except StoreError:  # reported at the next change of the session
            return False
        if taken:
            sentence = f"Another program took over session {short_id(self.agent.session.id)}. It is read-only here."
            self.say(sentence, "warning", _REMEDY)
        return taken

    async def ask_about_take_over(self) -> None:
        """Ask the user how to continue a session that was taken over, and continue it in that way.

        Another program took the session over. The text stays in the prompt.
        """
        if self.agent is None:
            return
        session_id = self.agent.session.id
        question = "Another program took over this session."
        how = await self.ask(
            Choice(question, _WAYS, why="The text stays in the prompt and is not sent.")
        )
        if how is not None:
            draft = self.frontend.draft
            await self.open(OpenRequest(session_id, OpenHow(how)))
            # Opening the session has restored its saved draft, which is older than the prompt's
            # text.
            self.frontend.set_draft(draft)


class Outbox:
    """Sends what the user types into the prompt: messages, commands and shell commands.

    Messages are sent in the order in which they were typed, even if a message mentions files that
    take long to read.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._early: list[tuple[str, bool]] = []
        self._sending = asyncio.Lock()
        self._unsent = 0
        """Number of messages that are not sent yet, because mentioned files are still being read.

        The files are mentioned in the message itself or in an earlier one.
        """

    async def send(self, text: str, *, follow_up: bool = False) -> None:
        """Send ``text`` as a message, or run it if it is a ``/command`` or ``!command``.

        Without an open session, ``text`` waits until one is open, unless it is a command that needs
        no session. If another program took over the session, a message or ``!command`` goes back
        into the prompt.
        """
        controller = self._controller
        intent = self._intent_of(text)
        if controller.agent is None and not self._needs_no_session(intent):
            self._early.append((text, follow_up))
            controller.retry_opening()
            return
        if not isinstance(intent, CommandIntent) and controller.warn_if_taken_over():
            controller.frontend.put_back(text)
            controller.soon(controller.ask_about_take_over())
            return
        controller.frontend.clear_notice()
        match intent:
            case CommandIntent(name, arguments):
                controller.begin(name, arguments)
            case ShellIntent(command, excluded) if controller.agent is not None:
                controller.soon(controller.agent.run_shell(command, excluded=excluded))
            case MessageIntent(message) if has_mention(message) or self._unsent:
                self._unsent += 1
                controller.soon(
                    self._send_with_files(controller.open_agent, message, follow_up=follow_up)
                )
            case MessageIntent(message):
                self.submit(message, follow_up=follow_up)
            case _:
                pass

    def _intent_of(self, text: str) -> Intent | None:
        """Parse the text that the user typed (see `parse`); return None if there is nothing to do.

        ``$name`` at its start is a command if there is a skill with this name.
        """
        intent = parse(text)
        if not isinstance(intent, MessageIntent):
            return intent
        skill = named_skill(text)
        if skill is not None and find(skill.name, self._controller.commands) is not None:
            return skill
        return intent

    def _needs_no_session(self, intent: Intent | None) -> bool:
        if not isinstance(intent, CommandIntent):
            return False
        command = find(intent.name, self._controller.commands)
        return command is not None and command.name in SESSIONLESS_COMMANDS

    def send_early(self) -> None:
        """Send the messages and commands that were typed before a session was open."""
        early = self._early
        self._early = []
        for text, follow_up in early:
            self._controller.soon(self.send(text, follow_up=follow_up))

    def put_back_early(self) -> None:
        """Put the texts that were typed before a session was open back into the prompt."""
        early = self._early
        self._early = []
        self._controller.frontend.put_back("\n".join(text for text, _ in early))

    def put_back_queued(self) -> None:
        """Move the messages that wait in the agent's queue back into the prompt."""
        controller = self._controller
        waiting = list[str]()
        while controller.agent is not None and (text := controller.agent.take_back()) is not None:
            waiting.insert(0, text)
        if waiting:
            controller.frontend.put_back("\n\n".join(waiting))
            if len(waiting) == 1:
                they = "The waiting message is"
            else:
                they = f"The {len(waiting)} waiting messages are"
            controller.say(f"{they} back in the prompt and not sent.")

    def send_prepared(self, prepared: Prepared) -> None:
        """Switch to the model and mode that a message asks for, and send the message.

        Warns about mentions that could not be attached. Does nothing without an open session.
        """
        agent = self._controller.agent
        if agent is None:
            return
        agent.switch_for(prepared)
        self.submit(prepared.parts, follow_up=False)
        if prepared.problem is not None:
            # A message would be cleared from the line above the prompt when the run begins.
            self._controller.frontend.warn(prepared.problem)

    async def send_command(self, name: str, arguments: str, complaint: str) -> None:
        """Send the model the message that the command ``name`` stands for.

        The command is a command file, a skill, a server's prompt, /init or /review. If another
        session was opened while the message was being prepared, the command goes back into the
        prompt. Raises `CommandError` with the text ``complaint`` if there is no such command or no
        open session.
        """
        from tui_agent.agent.preparing import prepare_command

        agent = self._controller.agent
        prepared = None
        if agent is not None:
            prepared = await prepare_command(name, arguments, agent.session, agent.ports)
        if prepared is None:
            raise CommandError(complaint)
        if self._controller.agent is not agent:
            self._put_back_of_another(f"/{name} {arguments}".rstrip())
            return
        self.send_prepared(prepared)

    async def _send_with_files(self, agent: Agent, text: str, *, follow_up: bool) -> None:
        """Send a message to ``agent`` with the files that it mentions.

        If that fails, or another session was opened while the files were read, the message goes
        back into the prompt.
        """
        controller = self._controller
        try:
            async with self._sending:
                loaded = None
                if controller.agent is agent:
                    loaded = await self.load(text)
                if loaded is None or controller.agent is not agent:
                    self._put_back_of_another(text)
                    return
                self.submit(loaded.parts, follow_up=follow_up)
                if loaded.problem is not None:
                    controller.frontend.warn(loaded.problem)
        except Exception:
            controller.frontend.put_back(text)
            raise
        finally:
            self._unsent -= 1

    def _put_back_of_another(self, text: str) -> None:
        """Put a message back into the prompt, because it was typed for a session that was left."""
        controller = self._controller
        controller.frontend.put_back(text)
        controller.say(SWITCHED, "warning")

    async def load(self, text: str) -> Prepared:
        """Return a message with the files and other things that it mentions, without sending it.

        Raises `CommandError` if no session is open.
        """
        from tui_agent.agent.attachments import load_message

        controller = self._controller
        return await load_message(
            text,
            controller.cwd,
            controller.open_agent.session,
            controller.services.store.put_blob,
            named=self._named,
        )

    async def _named(self, name: str) -> tuple[UserPart, ...]:
        """Return the message parts for an ``@name`` that is not a file; empty if unknown.

        Such a name stands for a pasted image, a subagent, or a resource of an MCP server.
        """
        from tui_agent.agent.preparing import load_named

        controller = self._controller
        image = await asyncio.to_thread(
            controller.pasted.part, name, controller.services.store.put_blob
        )
        if image is not None:
            return (image,)
        if controller.agent is not None:
            return await load_named(controller.agent.ports, name)
        return ()

    def submit(self, message: str | Sequence[UserPart], *, follow_up: bool = False) -> None:
        """Send a message without looking for commands or mentions in it.

        If the session is read-only or the message can't be stored, the message goes back into the
        prompt and the user is told why. Does nothing without an open session.
        """
        from tui_agent.session.entries import typed_text
        from tui_agent.session.errors import StoreError

        controller = self._controller
        if controller.agent is None:
            return
        text = message if isinstance(message, str) else typed_text(message)
        if controller.agent.session.read_only:
            refusal = controller.services.store.read_only
            controller.frontend.put_back(text)
            controller.say(refusal.message if refusal else READ_ONLY, "warning")
            return
        try:
            controller.agent.submit(message, follow_up=follow_up)
        except StoreError as error:
            controller.frontend.put_back(text)
            controller.say(error.message, "error")
