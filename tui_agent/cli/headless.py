"""A run without a screen: drives the controller, and prints messages and events as text or JSON.

Denies every permission, answers other questions with their default answers, and decides the exit
code. Records in the store how the run ended, and the key that ``--key`` gave it. one_shot.py calls
the steps in order.
"""

import asyncio
import json
import shlex
import sys
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from tui_agent.agent.agent import Agent
from tui_agent.agent.answer_format import AnswerFormatError, SchemaError
from tui_agent.agent.checkpoints.plan import changes_in
from tui_agent.agent.events import (
    AgentEvent,
    Decision,
    EntryAppended,
    HookAwaited,
    Notice,
    PermissionAnswer,
    PermissionAsked,
    RetryScheduled,
    RunEnded,
)
from tui_agent.agent.mcp.records import ServerState
from tui_agent.agent.preparing import prepare, prepare_command, with_piped
from tui_agent.app.commands import built_in
from tui_agent.app.controller import Controller
from tui_agent.app.format import one_line, plural, retry_text
from tui_agent.app.frontend import (
    Choice,
    Frontend,
    Heading,
    Output,
    Page,
    Question,
    Remedy,
    Report,
    Severity,
)
from tui_agent.app.intent import CommandIntent, parse
from tui_agent.app.race_text import entry_lines
from tui_agent.app.services import AppServices, OpenRequest
from tui_agent.cli import events
from tui_agent.cli.arguments import OutputFormat
from tui_agent.cli.ending import ENDING, listening
from tui_agent.cli.output import ExitCode, say, say_json
from tui_agent.cli.shell_words import in_shell
from tui_agent.context.verdict import Verdict, verdict_on
from tui_agent.errors import CommandError, UserFacingError
from tui_agent.lazy import frozen
from tui_agent.permission import hook_reason_in
from tui_agent.session.entries import (
    AssistantEntry,
    RunnerState,
    TextPart,
    ToolResultEntry,
    ToolStatus,
)
from tui_agent.session.errors import SessionHeld
from tui_agent.session.ids import short_id
from tui_agent.session.records import RunOutcome, SessionInfo
from tui_agent.session.session import session_to_read
from tui_agent.session.store import Store
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.registry import find_tool

if TYPE_CHECKING:
    from tui_agent.app.race_commands import RaceWish

TELL_WAITING_AFTER = 2.0
"""Seconds of waiting for MCP servers after which a message names the servers."""
_MAX_OPTIONS = 5
"""Maximum number of ``--allow`` options that are suggested after calls were refused."""
WAIT_SECONDS = 0.5
"""Seconds between two checks whether another program is still working on the same run."""
T = TypeVar("T")

_FINISHED = frozenset({RunnerState.DONE, RunnerState.PASSED, RunnerState.FAILED})
"""Runner states that mean that a race's runner has completed its work."""
NOBODY_TO_ASK = "No user can be asked here. Do without this permission, or say which one you need."
"""Text for the model about a permission that is refused because there is no user."""


@frozen
class KeyedRun:
    """A run named by ``--key``; ``session`` is None if no session has this key yet."""

    key: str
    session: SessionInfo | None = None

    @classmethod
    async def find(cls, store: Store, key: str) -> "KeyedRun":
        """Return the run with this key; its ``session`` is None if the key is new.

        Waits while another program has the session open.
        """
        found = store.session_with_key(key)
        if found is not None and found.held_by is not None:
            say(
                f"Waiting for process {found.held_by.pid} to finish the run with the key “{key}”.",
                file=sys.stderr,
            )
        while found is not None and found.held_by is not None:
            await asyncio.sleep(WAIT_SECONDS)
            found = store.session_with_key(key)
        return cls(key, found)

    @property
    def request(self) -> OpenRequest:
        return OpenRequest(self.session.id if self.session is not None else None)

    @property
    def has_begun(self) -> bool:
        """Whether an earlier start of the program has sent the run's message already."""
        return self.session is not None and bool(self.session.first_message)

    def repeat(self, store: Store, *, form: OutputFormat) -> int | None:
        """Print the last answer of a finished run, and return the run's exit code.

        Returns None if the run is unfinished; a run that ended with an error or an interruption
        counts as unfinished. With the format stream-json, prints only the first event (the session)
        and the last (the run's end).
        """
        outcome = self.session.outcome if self.session is not None else None
        if self.session is None or outcome is None or outcome.reason in {"error", "interrupted"}:
            return None
        session = session_to_read(store, self.session.id)
        answers = []
        for entry in session.path():
            if isinstance(entry, AssistantEntry) and entry.text:
                answers.append(entry)
        if form == "json":
            from tui_agent.cli.summary import earlier_run

            text = answers[-1].text if answers else ""
            say_json(earlier_run(session, text, outcome.exit_code).as_json())
        elif form == "stream-json":
            say_json(
                events.event_json(events.Session(session.id, session.info.cwd, self.session.model))
            )
            ended = RunEnded(outcome.reason, check=outcome.check)  # type: ignore[arg-type]  # a reason that was stored
            say_json(events.event_json(ended))
        elif answers:
            say(answers[-1].text)
        return outcome.exit_code


class HeadlessRun(Frontend):
    """The frontend without a screen: prints the outcome of one message, command or race."""

    is_attended = False

    def __init__(
        self,
        services: AppServices,
        *,
        as_json: bool,
        out: TextIO | None = None,
        err: TextIO | None = None,
    ) -> None:
        self.controller = Controller(self, self._on_event)
        self.controller.attach(services)
        self._as_json = as_json
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._ended: asyncio.Future[RunEnded] = asyncio.get_running_loop().create_future()
        self._is_first = True
        self._failed = False
        self._answer = ""
        self._last: AssistantEntry | None = None
        self.problem = ""
        """Reason why the run failed or stopped; "" if it succeeded or has not started."""
        self.value: Any = None
        """The answer as a JSON value if it had to match a schema and does; otherwise None."""
        self._format_problem = ""
        self._denied: list[str] = []
        self._hook_reasons: list[str] = []
        """Reasons that hooks gave for refusing tool calls."""
        self._offered: dict[str, None] = {}
        """Rules, as texts, that would have allowed the refused calls; the user can add them."""
        self._unanswered = ""
        self._refused: set[str] = set()
        self._write_error: OSError | None = None
        self._acted = False

    async def open(self, request: OpenRequest) -> None:
        """Open the session in which the run continues or begins.

        Raises:
            StoreError: the session can't be opened.
            CommandError: another running program has the session open.
        """
        try:
            await self.controller.open_or_raise(request)
        except SessionHeld as held:
            copy = f"continue in a copy: --fork {short_id(held.session_id)}"
            raise CommandError(
                f"Process {held.pid} on {held.host} has this session open. "
                f"Add --take-over to open it here, or {copy}"
            ) from None

    @property
    def agent(self) -> Agent:
        return self.controller.open_agent

    async def run(self, message: str, piped: str = "") -> ExitCode:
        """Send the message or run the command, wait for the end and return the exit code.

        ``piped`` is the text of standard input.

        Raises:
            CommandError: the message is a command that can't be used.
            OSError: the output could not be written, so the run was interrupted.
        """
        code = await self._interruptible(self._begin(message, piped))
        if code is None and self._ended.done():
            self._hold_against_format()
            if not self._as_json and self._answer:
                say(self._answer, file=self._out)
            code, why = self._outcome(self._ended.result())
            self.problem = why
            if why:
                say(why, file=self._err)
            return code
        return code or (ExitCode.FAILED if self._failed else ExitCode.DONE)

    async def race(self, wish: "RaceWish") -> ExitCode:
        """Run a race, take the work of the runner that ``wish.pick`` selects, print the results.

        Returns the exit code: FAILED if no runner finished, or if none meets ``wish.pick``. If the
        race is interrupted, the runners' branches stay, and a runner can still be taken.

        Raises:
            UserFacingError: the race is invalid or can't begin.
            OSError: a file can't be read or written, or the output could not be written.
        """
        code = await self._interruptible(self._race(wish))
        if code is None and self._failed:
            code = ExitCode.FAILED
        return code or ExitCode.DONE

    async def prepare_keyed(self, keyed: "KeyedRun") -> None:
        """Prepare a run that has a key.

        Records the key of a new run. For an interrupted run, restores the files that the run had
        changed, and deletes its recorded outcome.
        """
        session = self.agent.session
        if keyed.session is None:
            self.controller.services.store.set_key(session.id, keyed.key)
            return
        self.controller.services.store.set_outcome(session.id, None)
        restored = await self.agent.files.reapply_changes()
        if restored.done:
            self.say(f"Restored {plural(len(restored.done), 'file')} that the session had changed.")

    def keep_outcome(self, code: int) -> None:
        """Record how the run ended, with the exit code ``code``, for session lists and ``--key``.

        Does nothing if no run has ended, or the session is read-only.
        """
        if (
            (agent := self.controller.agent) is None
            or not self._ended.done()
            or agent.session.read_only
        ):
            return
        ended = self._ended.result()
        session = agent.session
        files = {change.path for change in changes_in(session.path())}
        totals = [record.prompt + record.output for record in session.reader.requests()]
        cost = self.controller.services.store.totals(session.id).cost
        outcome = RunOutcome(
            ended.reason, code, ended.check, cost=cost, tokens=sum(totals), files=len(files)
        )
        self.controller.services.store.set_outcome(session.id, outcome)

    async def write_result(self, target: str) -> ExitCode | None:
        """Write the session's changes to a file or, for ``branch:NAME``, to a new Git branch.

        Returns an exit code if that fails; None on success, or if there are no changes.
        """
        from tui_agent.app import transfer_commands

        try:
            found = await transfer_commands.session_result(self.controller)
            if found:
                await transfer_commands.write_result(self.controller, found, target)
            else:
                self.say(f"No result was written: this session changed no files.{found.remarks()}")
        except UserFacingError as error:
            self.say(str(error), "error")
            return ExitCode.FAILED
        return None

    async def _interruptible(self, todo: Coroutine[Any, Any, None]) -> ExitCode | None:
        """Await ``todo`` and the run that it starts; a signal interrupts both.

        Returns an exit code if a signal arrived before ``todo`` was done, otherwise None.

        Raises:
            OSError: the output could not be written.
        """
        work = asyncio.ensure_future(todo)

        def interrupt(_number: int) -> None:
            work.cancel()
            self.agent.interrupt()

        with listening(interrupt, *ENDING):
            try:
                await work
            except asyncio.CancelledError:
                return ExitCode.INTERRUPTED
            if self.agent.running:
                await self._ended
                await self.agent.memory.settle()
        if self._write_error is not None:
            raise self._write_error
        return None

    async def _race(self, wish: "RaceWish") -> None:
        from tui_agent.app import race_commands

        controller = self.controller
        await self._wait_for_servers()
        order = await race_commands.order_of(controller, wish)
        self.say(race_commands.price_of(controller, order).sentence())
        if order.check:
            self.say(f"Check: {one_line(order.check, 200)}")
        await (await race_commands.begin(controller, order)).over.wait()
        await controller.tasks_done()
        if controller.race is not None:
            await race_commands.drop(controller)
        entry = race_commands.last_race(controller)
        if entry is None:
            return
        self.show(Report("The race", entry_lines(entry)))
        if any(row.context for row in entry.runners):
            for row in entry.runners:
                answer = (
                    race_commands.answer_of(self.agent.session, row) or row.problem or "no answer"
                )
                self.show(Report(row.name, ["", Heading(row.name), *answer.splitlines()]))
        if wish.pick != "none" and entry.taken is None:
            self.say("No changes were taken: no runner meets --pick.", "error")
        elif _FINISHED.isdisjoint(row.state for row in entry.runners):
            self.say("No runner finished.", "error")

    async def _wait_for_servers(self) -> None:
        """Wait until the MCP servers have started, at most for the run's time limit.

        With ``--json``, then prints what is available to the run.
        """
        agent = self.agent
        ports = self.agent.ports
        await agent.context.warm()
        telling = asyncio.get_running_loop().call_later(TELL_WAITING_AFTER, self._tell_waiting)
        with suppress(TimeoutError):
            async with asyncio.timeout(ports.budget.seconds):
                await ports.mcp.settle()
        telling.cancel()
        if not self._as_json:
            return
        servers = []
        for row in ports.mcp.status():
            tools = tuple(tool.name for tool in row.tools)
            servers.append(events.ServerInventory(row.name, row.state.value, row.detail, tools))
        knowledge = ports.knowledge
        kind = await asyncio.to_thread(
            lambda: ports.sandbox.state.kind if ports.sandbox is not None else None
        )
        inventory = events.Inventory(
            servers=tuple(servers),
            tools=tuple(tool.name for tool in agent.context.head.tools(agent.model, agent.mode)),
            agents=tuple(spec.name for spec in knowledge.specs),
            skills=tuple(skill.name for skill in knowledge.skills.values() if skill.origin),
            instructions=tuple(item.name for item in knowledge.instructions),
            sandbox=kind or "none",
            problems=knowledge.problems,
        )
        say_json(events.event_json(inventory), file=self._out)

    def _tell_waiting(self) -> None:
        """Print the names of the MCP servers that are still starting."""
        rows = self.agent.ports.mcp.status()
        names = [row.name for row in rows if row.state is ServerState.STARTING]
        if names:
            self.say(f"Waiting for the MCP servers to start: {', '.join(names)}.")

    async def _begin(self, message: str, piped: str) -> None:
        """Send the message or run the command.

        Doesn't wait for the end of a run that this starts.

        Raises:
            CommandError: the message is a command that can't be used.
        """
        intent = parse(message)
        command = None
        if isinstance(intent, CommandIntent):
            command = await built_in(intent.name, self.agent)
        if isinstance(intent, CommandIntent) and command is not None:
            if not await self.controller.run_to_completion(
                command, " ".join(filter(None, [intent.arguments, piped]))
            ):
                self._failed = True
            return
        await self._wait_for_servers()
        session = self.agent.session
        ports = self.agent.ports
        if isinstance(intent, CommandIntent):
            made = await prepare_command(intent.name, intent.arguments, session, ports)
            if made is None:
                raise CommandError(self.controller.unknown(intent.name, intent.arguments))
            prepared = with_piped(made, piped)
        else:
            prepared = await prepare(message, session, ports, piped=piped)
        if ports.answer_format is not None:
            asked = TextPart(text=ports.answer_format.request(ports.prompt))
            prepared = replace(prepared, parts=(*prepared.parts, asked))
        self.controller.outbox.send_prepared(prepared)

    # -- the controller's frontend

    def say(
        self, message: str, severity: Severity = "information", remedy: Remedy | None = None
    ) -> None:
        """Print a message on standard error, because standard output is for answers.

        A message of severity "error" makes the run fail. With ``--json``, prints an event on
        standard output instead.
        """
        del remedy
        message = in_shell(message)
        self._failed = self._failed or severity == "error"
        if severity == "error":
            self.problem = message
        if self._as_json:
            say_json(events.event_json(Notice(message, severity)), file=self._out)
        else:
            say(message, file=self._err)

    async def ask(self, question: Question[T]) -> T | None:
        """Return the question's default answer (`Choice.unasked`).

        Raises:
            CommandError: the question has no default answer, or is not a `Choice`.
        """
        if not isinstance(question, Choice):
            raise CommandError(
                "This run is non-interactive. If the command takes an argument, give the answer there."
            )
        texts = dict(question.answers)
        if question.unasked is None:
            self._unanswered = question.question
            words = ", ".join(filter(None, texts))
            raise CommandError(
                f"{question.question} This run is non-interactive. The answers are: {words}. "
                "If the command takes an argument, give the answer there."
            )
        self.say(f"{question.question} Non-interactive run; assuming: {texts[question.unasked]}.")
        return question.unasked  # type: ignore[return-value]  # the answer to a choice is a text

    def show(self, page: Page) -> None:
        words = page.words()
        if words is None:
            self._failed = True
            super().show(page)
        elif self._as_json:
            say_json(events.event_json(events.Page(page.title, words)), file=self._out)
        elif isinstance(page, Report):
            say("\n".join(page.lines), file=self._out)
        else:
            say(words, file=self._out)

    def put_back(self, text: str) -> None:
        """Make the run fail, because a message was not sent.

        The controller has already reported the reason.
        """
        del text
        self._failed = True

    def copy(self, text: str) -> None:
        self.show(Output("Copy", text))

    def opened(self, agent: Agent, entry: int | None = None) -> None:
        del entry
        session = agent.session
        if self._as_json:
            say_json(
                events.event_json(events.Session(session.id, session.info.cwd, agent.model)),
                file=self._out,
            )
        elif not self._is_first:
            self.say(f"Continue with: tui-agent -r {short_id(session.id)}")
        self._is_first = False

    def go_to(self, request: OpenRequest) -> None:
        """Raise a `CommandError`, as this run can't switch to another session."""
        raise CommandError(
            f"Name the session with -r: tui-agent -r {request.session_id or 'ID'} -p …"
        )

    # -- the agent's events

    def _on_event(self, event: AgentEvent) -> None:
        event = _for_shell(event)
        try:
            self._handle(event)
        except OSError as error:  # the reader is gone, or the disk is full
            self._write_error = self._write_error or error
            self.agent.interrupt()
        if isinstance(event, RunEnded) and not self._ended.done():
            self._ended.set_result(event)

    def _take_answer(self, answer: AssistantEntry) -> None:
        self._last = answer
        if answer.text.strip():
            self._answer = answer.text

    def _handle(self, event: AgentEvent) -> None:
        """Print an event of the agent, and record what it means for the answer and the exit code.

        Denies the permission if the event asks for one.
        """
        if self._as_json:
            say_json(events.event_json(event), file=self._out)
        match event:
            case PermissionAsked(request=request):
                self._offered |= dict.fromkeys(request.rules)
                if request.again:
                    # The command has already run, and failed without this permission.
                    self._denied.append(f"{request.tool} {request.title}")
                    self._refused.add(request.call_id)
                # Answer only after the event has been handled, as a user would do.
                asyncio.get_running_loop().call_soon(
                    self.agent.answer_permission,
                    request.call_id,
                    PermissionAnswer(Decision.DENY, NOBODY_TO_ASK),
                )
            case EntryAppended(entry=AssistantEntry() as answer):
                self._take_answer(answer)
            case EntryAppended(entry=ToolResultEntry(status=ToolStatus.DENIED) as result):
                self._denied.append(f"{result.tool} {result.title}")
                if reason := hook_reason_in(result.output):
                    self._hook_reasons.append(reason)
            case EntryAppended(entry=ToolResultEntry(status=ToolStatus.COMPLETED) as result) if (
                result.call_id not in self._refused
            ):
                changed = bool(result.metadata.modified_files)
                self._acted = self._acted or changed or self._did_more_than_read(result)
            case RetryScheduled(seconds=seconds, reason=reason, loading=waited) if (
                not self._as_json
            ):
                if not waited:
                    say(
                        reason if waited == 0 else retry_text(reason, seconds),
                        file=self._err,
                    )
            case HookAwaited() if not self._as_json:
                say(event.sentence, file=self._err)
            case Notice(message=text) if not self._as_json:
                say(text, file=self._err)
            case _:
                pass

    def _did_more_than_read(self, result: ToolResultEntry) -> bool:
        """Return True if a tool result is of a bash command that may have changed something."""
        from tui_agent.shell.needs import command_needs

        if result.tool != "bash" or self._last is None:
            return False
        ports = self.agent.ports
        bash = find_tool("bash", self.agent.ports.tools)
        for call in self._last.tool_calls:
            # Check all calls with this id, because some models give several calls the same one.
            if call.call_id == result.call_id:
                command = getattr(parse_arguments(bash, call.arguments), "command", "")
                needs = command_needs(str(command), ports.cwd, ports.project)
                if not all(need.harmless for need in needs):
                    return True
        return False

    def _left_undone(self) -> str | None:
        """Return why a run that ended normally did not complete its task; None if it did.

        Reasons are a question without an answer, a goal that was not reached, a refused tool call
        when nothing else was done, and an incomplete answer.
        """
        if self._unanswered:
            return f"A question could not be asked in this run: {self._unanswered}"
        if self.agent.goals.ended:
            return self.agent.goals.ended
        if self._denied and not self._acted:
            refused = ", ".join(dict.fromkeys(self._denied))
            if len(self._hook_reasons) == len(self._denied):
                # Suggest no option, because none allows what a hook refuses.
                advice = f"A hook refused: {one_line(self._hook_reasons[-1], 200)}"
            else:
                advice = _how_to_allow(self._offered)
            return f"Not allowed: {refused}. {advice}"
        return self._incomplete()

    def _outcome(self, ended: RunEnded) -> tuple[ExitCode, str]:
        """Return the exit code of a run that has ended, and a message about its problem, or ""."""
        to_go_on = "To continue: tui-agent -c -p continue"
        match ended.reason:
            case "done" | "length" | "unmarked" if ended.check == "failed":
                check = self.agent.ports.check
                command = check.command if check else ""
                outcome = ExitCode.FAILED, f"The check failed: {one_line(command, 200)}"
            case "done" | "length" | "unmarked" if self._format_problem:
                outcome = ExitCode.FAILED, self._format_problem
            case "done" | "length" | "unmarked":
                why = self._left_undone()
                outcome = (ExitCode.STOPPED, why) if why else (ExitCode.DONE, "")
            case "budget":
                code = ExitCode.TIMEOUT if ended.budget == "time" else ExitCode.BUDGET
                outcome = code, f"{ended.error} {to_go_on}"
            case "step_limit":
                outcome = (
                    ExitCode.STOPPED,
                    f"Stopped after {plural(ended.steps, 'step')}. {to_go_on}",
                )
            case "interrupted":
                outcome = ExitCode.INTERRUPTED, ""
            case "stopped":
                outcome = ExitCode.STOPPED, ended.error or ""
            case _:
                outcome = ExitCode.FAILED, ended.error or ""
        return outcome

    def _hold_against_format(self) -> None:
        """Replace the answer with its JSON, or record why it doesn't match the requested schema."""
        wanted = self.agent.ports.answer_format
        if wanted is None:
            return
        try:
            self.value = wanted.value(self._answer)
        except SchemaError as error:
            self._format_problem = str(error)
        except AnswerFormatError as error:
            self._format_problem = f"The answer doesn't match the schema: {error}"
        else:
            self._answer = json.dumps(self.value, ensure_ascii=False)

    def _incomplete(self) -> str | None:
        """Return why the last answer is incomplete (cut off or filtered); None if it isn't."""
        if self._last is None:
            return None
        match verdict_on(self._last):
            case Verdict.CUT:
                return (
                    "The answer was cut off at the model's output limit. "
                    "To continue: tui-agent -c -p continue"
                )
            case Verdict.UNMARKED:
                return (
                    "The server ended the answer without marking it as complete, so it may be "
                    "incomplete. To continue: tui-agent -c -p continue"
                )
            case Verdict.REFUSED:
                return "The provider's content filter ended the answer."
            case _:
                return None


def _for_shell(event: AgentEvent) -> AgentEvent:
    """Return an event whose advice doesn't name commands that need a screen."""
    match event:
        case RunEnded(error=str(error)):
            return replace(event, error=in_shell(error))
        case Notice(message=message):
            return replace(event, message=in_shell(message))
        case RetryScheduled(reason=reason):
            return replace(event, reason=in_shell(reason))
        case _:
            return event


def _how_to_allow(rules: Iterable[str]) -> str:
    """Return a sentence that names the options that would allow the refused calls.

    ``rules`` are texts such as ``allow bash: make *``. Without rules, the sentence names examples
    of options.
    """
    options: list[str] = []
    for rule in rules:
        permission, _, pattern = rule.partition(" ")[2].partition(": ")
        text = permission
        if pattern != "*":
            text = f"{permission}:{pattern}"
        options.append(f"--allow {shlex.quote(text)}")
    if not options:
        return "To allow this, use --allow, for example --allow edit --allow 'bash:*'."
    return f"To allow this, add {' '.join(options[:_MAX_OPTIONS])}."
