"""Plain mode: the conversation as lines of text, for screen readers and very simple terminals.

Nothing is drawn or overwritten, because output and input are whole lines. The user chooses an
answer to a question by its number. `PlainFrontend` decides whether a line is a message, a command
or an answer; the controller does the rest. Text typed in plain mode is not saved as a draft.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import termios
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, nullcontext
from typing import TYPE_CHECKING, TextIO, TypeVar

from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    CompactionStarted,
    Decision,
    EntryAppended,
    HookAwaited,
    MessageRefused,
    Notice,
    PermissionAnswer,
    PermissionAsked,
    PermissionRequest,
    PermissionSettled,
    RaceEnded,
    RetryScheduled,
    RunEnded,
    ToolStarted,
)
from tui_agent.app.commands import built_in, commands_of
from tui_agent.app.controller import Controller
from tui_agent.app.format import age, lower_case, money, one_line, plural, retry_text, tokens
from tui_agent.app.frontend import (
    Choice,
    Frontend,
    HelpPage,
    JobsPage,
    LongText,
    ModelChoice,
    ModelPick,
    Page,
    Pick,
    PickRow,
    Question,
    Remedy,
    SessionChoice,
    Severity,
    TextLine,
    TreePage,
)
from tui_agent.app.intent import CommandIntent, parse
from tui_agent.app.job_commands import job_lines
from tui_agent.app.moves import files_along, make_move
from tui_agent.app.permission_text import answers, asked_parts, question
from tui_agent.app.services import OpenRequest
from tui_agent.app.strip_markdown import plain_preview
from tui_agent.app.undo_commands import name_of_place
from tui_agent.app.welcome import ask_for_trust
from tui_agent.cli.ending import listening
from tui_agent.cli.markdown_lines import MarkdownLines
from tui_agent.cli.output import ExitCode, say
from tui_agent.errors import CommandError
from tui_agent.session.entries import AssistantEntry, ShellEntry, ToolResultEntry, ToolStatus
from tui_agent.session.records import children
from tui_agent.tools.registry import tool_traits
from tui_agent.whole_numbers import whole_number

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tui_agent.agent.agent import Agent
    from tui_agent.app.services import AppServices, FirstView
    from tui_agent.session.session import Session

T = TypeVar("T")

OUTPUT_LINES = 20
"""Maximum number of lines printed from the end of a command's or a failed tool's output."""
DETAIL_LINES = 200
"""Maximum number of lines printed of a permission question's details, such as a diff."""
ROWS = 20
"""Maximum number of rows of a list that are printed at once; typing words filters the list."""
TREE_ENTRIES = 200
"""Maximum number of lines that ``/tree`` prints, counted from the end of the tree."""
QUIT_SECONDS = 2.0
"""While the program is idle, a second Ctrl+C within so many seconds quits it."""
PROMPT_SECONDS = 0.1
"""Seconds without output after which the program prints `PROMPT` while it is idle."""
PROMPT = "You: "
LETTERS = {"y": "once", "yes": "once", "a": "session", "n": "deny", "no": "deny"}
"""Answers to a permission question, by the words that the user can type instead of a number."""
YES_WITH_NOTE = re.compile(r"(?:y|yes),\s*(?P<note>.+)", re.IGNORECASE)
"""Matches a typed line that allows a tool call once and contains a note for the model."""
NOBODY_TO_ASK = "The user can't be asked: the input has ended."
"""Text for the model about a permission that is refused because the input has ended."""


class LineReader:
    """Reads lines from a file descriptor on the event loop, without a thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_watched = True
        """Whether the event loop can report when there is something to read."""
        self._is_closed = False
        self._rest = b""
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self.next = self._lines.get
        """Returns the next line, or None at the end of the input."""
        loop = asyncio.get_running_loop()
        try:
            loop.add_reader(descriptor, self._on_readable)
        except PermissionError:
            # The system can't watch a file or /dev/null, but they can be read at any time.
            self._is_watched = False
            loop.call_soon(self._on_readable)

    def close(self) -> None:
        self._is_closed = True
        if self._is_watched:
            asyncio.get_running_loop().remove_reader(self._descriptor)

    def _on_readable(self) -> None:
        if self._is_closed:
            return
        try:
            data = os.read(self._descriptor, 65_536)
        except OSError:
            data = b""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data:
            lines += [self._rest] if self._rest else []
            self.close()
        for line in lines:
            self._lines.put_nowait(line.decode("utf-8", "replace").rstrip("\r"))
        if not data:
            self._lines.put_nowait(None)
        elif not self._is_watched:
            asyncio.get_running_loop().call_soon(self._on_readable)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Turn the terminal's echo off while the block runs, so that a secret can be typed."""
        if not os.isatty(self._descriptor):
            yield
            return
        before = termios.tcgetattr(self._descriptor)
        silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, silent)
        try:
            yield
        finally:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, before)


class PlainFrontend(Frontend):
    """The frontend of plain mode: prints messages, answers and questions, and handles typed lines.

    Each typed line is a message, a command or an answer. ``read`` returns the next line, None at
    the end of the input. A line answers a permission question only if the question was printed at
    least ``ui.permission_grace`` seconds before; otherwise, the line is sent as a message or
    command.
    """

    def __init__(
        self,
        services: AppServices,
        read: Callable[[], Awaitable[str | None]],
        *,
        out: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        hidden: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.controller = Controller(self, self._on_event)
        self.controller.attach(services)
        self._read = read
        self._out = out or sys.stdout
        self._clock = clock
        self._hidden = hidden
        self._grace = services.config().ui.permission_grace
        self._asking = asyncio.Lock()
        self._answer: asyncio.Future[str | None] | None = None
        self._permissions: list[PermissionRequest] = []
        self._permission_shown_at = 0.0
        self._text = MarkdownLines()
        self._left = asyncio.Event()
        self._ended = asyncio.Event()
        self._is_over = False
        """Whether the end of the input has been reached, so that no user can answer."""
        self._interrupted_at = -QUIT_SECONDS
        self._prompting: asyncio.TimerHandle | None = None
        self._is_prompted = False

    # -- input

    async def run(self, start: FirstView) -> int:
        """Handle lines until the user quits, or until both the input and the run have ended.

        Returns the exit code.
        """
        self._print(
            "tui-agent, plain mode. Write a message and press Enter; /help lists commands, /quit quits."
        )
        reading = asyncio.ensure_future(self._take_lines())
        reading.add_done_callback(lambda _: self.leave())
        with (
            listening(self._interrupt, signal.SIGINT),
            listening(lambda _: self.leave(), signal.SIGTERM, signal.SIGHUP),
        ):
            await ask_for_trust(self.controller)
            request = start.request
            if start.screen == "sessions":
                request = await self.ask(SessionChoice(None)) or request
            await self.controller.open(request)
            if start.screen == "welcome":
                self._print(
                    "No model is set up. /login asks for a provider's API key, /model chooses a model."
                )
            if start.prompt and start.screen == "welcome":
                self.put_back(start.prompt)
            elif start.prompt:
                await self.controller.outbox.send(start.prompt)
            await self._left.wait()
        reading.cancel()
        if self._is_prompted:
            say("", file=self._out)
        await self.controller.close()
        if reading.done() and not reading.cancelled():
            reading.result()
        return ExitCode.DONE

    async def _take_lines(self) -> None:
        while (line := await self._read()) is not None:
            self._is_prompted = False
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(line)
            elif self._permissions and self._clock() >= self._permission_shown_at + self._grace:
                self._answer_permission(self._permissions[0], line)
            elif line.strip():
                intent = parse(line)
                command = None
                if isinstance(intent, CommandIntent):
                    command = await built_in(intent.name, self.controller.agent)
                if isinstance(intent, CommandIntent) and command is not None:
                    self.controller.soon(command.handler(self.controller, intent.arguments))
                else:
                    await self.controller.outbox.send(line)
            self._prompt_soon()
        # If the input was piped, the run that its last line started has not ended yet.
        self._is_over = True
        self._show_permission()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)
        await self.controller.tasks_done()
        while self.controller.agent is not None and self.controller.agent.running:
            self._ended.clear()
            await self._ended.wait()

    def _interrupt(self, _number: int) -> None:
        """Handle Ctrl+C: cancel the open question or, if there is none, interrupt the agent.

        If there is neither a question nor a run, a second press within `QUIT_SECONDS` quits.
        """
        agent = self.controller.agent
        now = self._clock()
        self._is_prompted = True  # the terminal shows ^C, so begin the next output on a new line
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)
        elif agent is not None and agent.running:
            agent.interrupt()
            self.controller.outbox.put_back_queued()
        elif now - self._interrupted_at < QUIT_SECONDS:
            self.leave()
        else:
            self._print("Press Ctrl+C again to quit.")
        self._interrupted_at = now

    # -- output

    def _print(self, text: str) -> None:
        if self._is_prompted:
            say("", file=self._out)
            self._is_prompted = False
        say(text, file=self._out)
        self._prompt_soon()

    def _prompt_soon(self) -> None:
        if self._prompting is not None:
            self._prompting.cancel()
        self._prompting = asyncio.get_running_loop().call_later(PROMPT_SECONDS, self._prompt)

    def _prompt(self) -> None:
        agent = self.controller.agent
        is_idle = agent is not None and not agent.running and self._answer is None
        if is_idle and not self._is_prompted and not self._left.is_set():
            self._is_prompted = True
            say(PROMPT, file=self._out, end="")

    def say(
        self, message: str, severity: Severity = "information", remedy: Remedy | None = None
    ) -> None:
        del remedy
        self._print(message if severity == "information" else f"{severity.capitalize()}: {message}")

    def opened(self, agent: Agent, entry: int | None = None) -> None:
        del entry
        # The open questions belong to the previous session, whose events no longer arrive here.
        self._permissions.clear()
        session = agent.session
        if session.leaf is not None:
            self._print(
                f"Session: {session.info.title or one_line(session.info.first_message, 80)}"
            )
            answered = []
            for one in session.active_path():
                if isinstance(one, AssistantEntry) and one.text:
                    answered.append(one)
            for line in answered[-1].text.splitlines() if answered else ():
                self._print_answer(line)
        self._print(f"Model {agent.model or 'not set'}, mode {agent.mode}.")

    def leave(self) -> None:
        self._left.set()

    def go_to(self, request: OpenRequest) -> None:
        self.controller.soon(self.controller.open(request))

    def put_back(self, text: str) -> None:
        if text:
            super().put_back(text)

    def show(self, page: Page) -> None:
        match page:
            case JobsPage():
                lines = job_lines(self.controller.open_agent.jobs)
            case HelpPage():
                lines = [
                    f"/{row.name} {row.argument}: {row.help}".replace(" :", ":")
                    for row in commands_of(self.controller.agent)
                ]
            case TreePage():
                self.controller.soon(self._tree())
                return
            case _ if (words := page.words()) is not None:
                lines = words.splitlines()
            case _:
                super().show(page)
                return
        self._print(f"{page.title}:")
        for line in lines:
            self._print_answer(line)

    # -- questions

    async def ask(self, question: Question[T]) -> T | None:
        """Print the question, with numbered answers if it has any, and return the user's answer.

        Returns None for an empty line, after Ctrl+C, and once the input has ended.

        Raises:
            CommandError: the question needs the full screen.
        """
        async with self._asking:
            match question:
                case Choice():
                    rows = [PickRow(key, text) for key, text in question.answers]
                    self._print_all(question.question, question.details)
                    return await self._ask_row(rows)  # type: ignore[return-value]  # the answer is a key
                case Pick():
                    self._print_all(question.question)
                    return await self._ask_row(question.rows)  # type: ignore[return-value]  # as above
                case SessionChoice():
                    self._print_all("Which session?")
                    services = self.controller.services
                    now = services.clock()
                    rows = []
                    for info in services.store.sessions(cwd=services.cwd):
                        rows.append(
                            PickRow(
                                info.id,
                                one_line(info.title or info.first_message, 100) or "(empty)",
                                age(info.updated_at, now),
                            )
                        )
                    picked = await self._ask_row(rows)
                    return OpenRequest(picked) if picked is not None else None  # type: ignore[return-value]
                case TextLine():
                    self._print_all(
                        question.question,
                        question.details,
                        *([question.text] if question.text else []),
                    )
                    with self._hidden() if question.hidden else nullcontext():
                        return await self._line()  # type: ignore[return-value]  # the answer is a text
                case LongText():
                    self._print_all(question.question, question.text)
                    return await self._line()  # type: ignore[return-value]  # as above
                case ModelChoice():
                    self._print_all(
                        f"Which model? Current: {question.current or 'none'}. Type a name such as openai/gpt-5."
                    )
                    line = await self._line()
                    return ModelPick(line) if line is not None else None  # type: ignore[return-value]
                case _:
                    raise CommandError(
                        "This needs the full screen. Some commands take arguments instead: see /help."
                    )

    def _print_all(self, *texts: str) -> None:
        for text in filter(None, texts):
            self._print(text)

    async def _line(self) -> str | None:
        """Return the next typed line, stripped.

        Returns None if the line is empty, after Ctrl+C, or at the end of the input.
        """
        if self._is_over:
            return None
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return (await self._answer or "").strip() or None
        finally:
            self._answer = None
            self._prompt_soon()

    async def _ask_row(self, rows: Sequence[PickRow]) -> str | None:
        """Print numbered rows, and return the key of the row that the user chooses, or None.

        If the user types words instead of a number, lists only the rows that contain all of them.
        """
        shown = list(rows)
        while True:
            offered = shown[:ROWS]
            for number, row in enumerate(offered, 1):
                self._print(f"{number}: {', '.join(filter(None, [row.text, row.facts]))}")
            more = ""
            if len(shown) > ROWS:
                more = f" {plural(len(shown) - ROWS, 'more row')}: type words to find one."
            self._print(f"Answer with a number. An empty line goes back.{more}")
            line = await self._line()
            if line is None:
                return None
            picked = whole_number(line)
            if picked is not None and 0 < picked <= len(offered):
                return offered[picked - 1].key
            found = [row for row in rows if _has_words(row, line)]
            if not found:
                self._print("No row has that number or those words.")
            shown = found or shown

    def _show_permission(self) -> None:
        """Print the first open permission question; if the input has ended, deny the permission."""
        if not self._permissions:
            return
        request = self._permissions[0]
        if self._is_over:
            asyncio.get_running_loop().call_soon(
                self._settle, request, PermissionAnswer(Decision.DENY, NOBODY_TO_ASK)
            )
            return
        self._permission_shown_at = self._clock()
        shown = dict.fromkeys(need.detail or need.pattern for need in request.needs)
        details = request.loop[-1:] or ([request.command] if request.command else list(shown))
        lines = []
        for detail in details:
            lines.extend(detail.splitlines())
        self._print_all(f"Question: {question(request)}", *lines[:DETAIL_LINES])
        if len(lines) > DETAIL_LINES:
            self._print(f"{plural(len(lines) - DETAIL_LINES, 'more line')} not printed.")
        self._print_all(
            *(f"Asks for: {part}" for part in asked_parts(request)), f"Why: {request.reason}"
        )
        for number, answer in enumerate(answers(request), 1):
            if answer.is_possible:
                self._print(f"{number}: {answer.text}")
        self._print("Answer with a number, or “yes, …” to add a note.")
        self._print("Any other text is sent as “no, but …”.")

    def _answer_permission(self, request: PermissionRequest, line: str) -> None:
        """Answer a permission question with a typed line.

        The line contains a number, a word of `LETTERS`, or a note.
        """
        words = line.strip()
        if not words:
            return
        offered = answers(request)
        names = [answer.name for answer in offered]
        if words.lower() in LETTERS:
            words = str(names.index(LETTERS[words.lower()]) + 1)
        if (noted := YES_WITH_NOTE.fullmatch(words)) is not None:
            self._settle(request, PermissionAnswer(Decision.ONCE, noted["note"]))
            return
        number = whole_number(words)
        if number is None:
            self._settle(request, PermissionAnswer(Decision.DENY, words))
            return
        if not 0 < number <= len(offered) or not offered[number - 1].is_possible:
            self._print(f"There is no answer {words}. Type one of the numbers above.")
            return
        name = offered[number - 1].name
        if name in {"note", "rule"}:
            self.controller.soon(self._answer_in_words(request, name))
        else:
            self._settle(request, PermissionAnswer(Decision(name)))

    async def _answer_in_words(self, request: PermissionRequest, name: str) -> None:
        """Ask for the note or the edited rules of an answer, and answer the question with them."""
        if name == "note":
            if (note := await self.ask(TextLine("What should the agent do instead?"))) is not None:
                self._settle(request, PermissionAnswer(Decision.DENY, note))
            return
        patterns = []
        for rule in request.rules:
            name, _, pattern = rule.partition(": ")
            changed = await self.ask(TextLine(f"Pattern for {name}; * matches anything", pattern))
            if changed is None:
                return
            patterns.append(changed)
        self._settle(request, PermissionAnswer(Decision.SESSION, patterns=tuple(patterns)))

    def _settle(self, request: PermissionRequest, answer: PermissionAnswer) -> None:
        self.controller.open_agent.answer_permission(request.call_id, answer)

    # -- the session

    async def _tree(self) -> None:
        """Print the session tree, ask for the number of an entry, and move to that entry."""
        for line in tree_lines(self.controller.open_agent.session):
            self._print(line)
        typed = await self.ask(TextLine("Number of the entry to move to; leave empty to stay here"))
        if typed is None:
            return
        agent = self.controller.idle_agent
        number = whole_number(typed.removeprefix("#"))
        if number is None:
            raise CommandError(f"“{one_line(typed, 40)}” is not the number of an entry.")
        move = agent.navigator.plan(number)
        files = await files_along(self.controller, agent, move.leaf)
        if files is not None:
            restored = await make_move(agent, move, files)
            place = name_of_place(move.leaf)
            self._print(
                f"Moved to {f'{place}, {restored}' if restored else place}. /undo goes back."
            )

    def _on_event(self, event: AgentEvent) -> None:
        if not isinstance(event, AnswerDelta):
            self._print_all(*self._text.end())
        match event:
            case AnswerDelta(text=text):
                self._print_all(*self._text.feed(text))
            case EntryAppended(entry=ToolResultEntry(tool=tool, status=status, output=output)):
                if status is not ToolStatus.COMPLETED:
                    self._print_output(f"{tool} {status.value}. Output", output)
                elif tool_traits()[tool].output == "log":
                    self._print_output("Output", output)
            case EntryAppended(entry=ShellEntry(output=output)):
                self._print_output("Output", output)
            case PermissionAsked(request=request):
                self._permissions.append(request)
                if len(self._permissions) == 1:
                    self._show_permission()
            case PermissionSettled(call_id=call_id):
                left = [one for one in self._permissions if one.call_id != call_id]
                self._permissions = left
                self._show_permission()
            case RunEnded():
                self._ended.set()
                self._permissions.clear()
                self._print_end(event)
            case _:
                self._print_all(_sentence(event))

    def _print_output(self, name: str, output: str) -> None:
        lines = output.rstrip().splitlines()
        more = ""
        if len(lines) > OUTPUT_LINES:
            more = f", the last {OUTPUT_LINES} of {len(lines)} lines"
        self._print(f"{name}{more}:" if lines else f"{name}: nothing.")
        for line in lines[-OUTPUT_LINES:]:
            self._print(f"  {line}")

    def _print_end(self, ended: RunEnded) -> None:
        state = {
            "done": "Done",
            "length": "Done, the answer was cut off at the model's output limit",
            "unmarked": "Done, the server ended the answer without marking it as complete",
            "interrupted": "Stopped",
        }.get(ended.reason)
        if ended.error:
            self._print(f"Error: {ended.error}" if ended.reason == "error" else ended.error)
        agent = self.controller.open_agent
        size = agent.context_size()
        cost = agent.session_cost()
        about = "about " if size.estimated else ""
        text = f"{about}{tokens(size.total)} of {tokens(size.window)} tokens, {size.percent:.0f}%"
        self._print(f"{state or 'Ended'}, {text}{f', cost {money(cost)}' if cost else ''}.")

    def _print_answer(self, line: str) -> None:
        for text in (*self._text.feed(f"{line}\n"), *self._text.end()):
            self._print(text)


def tree_lines(session: Session) -> list[str]:
    """Return a session's tree as lines, one for each entry, one branch after the other.

    After a branch point, each branch begins with a line such as “Branch 2 of 3 from #12:”. Returns
    only the last `TREE_ENTRIES` lines.
    """
    headers = session.skeleton()
    labels = session.labels()
    leaf = session.leaf
    below = children(headers)
    active = set(session.path_outline().ids)
    by_id = {header.id: header for header in headers}
    lines: list[str] = []
    waiting = [(entry_id, "") for entry_id in reversed(below.get(None, []))]
    while waiting:
        entry_id, heading = waiting.pop()
        header = by_id[entry_id]
        facts = [
            f"label {labels[entry_id]}" if entry_id in labels else "",
            "you are here" if entry_id == leaf else "",
        ]
        if entry_id not in active:
            facts.append("on another branch")
        about = "".join(f", {fact}" for fact in facts if fact)
        lines += [heading] if heading else []
        lines.append(
            f"#{entry_id} {header.kind.replace('_', ' ')}{about}: {plain_preview(header.kind, header.preview)[:100]}"
        )
        offspring = below.get(entry_id, [])
        for number, child in reversed(list(enumerate(offspring, 1))):
            title = ""
            if len(offspring) > 1:
                title = f"Branch {number} of {len(offspring)} from #{entry_id}:"
            waiting.append((child, title))
    return lines[-TREE_ENTRIES:]


def _has_words(row: PickRow, line: str) -> bool:
    """Return True if a row's text or facts contain every word of a line, ignoring case."""
    text = lower_case(f"{row.text} {row.facts}")
    return all(word in text for word in lower_case(line).split())


def _sentence(event: AgentEvent) -> str:
    """Return the line to print for an event; "" if it is printed in another way or not at all."""
    text = ""
    match event:
        case ToolStarted(tool=tool, title=title):
            text = f"Runs {tool}: {one_line(title, 200)}"
        case RetryScheduled(reason=reason, seconds=seconds):
            text = retry_text(reason, seconds)
        case Notice(message=message, severity=severity):
            if severity == "information":
                text = message
            else:
                text = f"{severity.capitalize()}: {message}"
        case HookAwaited():
            text = event.sentence
        case MessageRefused(text=refused, reason=reason):
            text = f"Not sent: {refused}. {reason}"
        case CompactionStarted(tokens_before=before):
            text = f"Compacting {tokens(before)} tokens …"
        case RaceEnded():
            text = "The race is over. /race shows the results."
    return text


async def run_plain(arguments: Namespace) -> int:
    """Run plain mode until the user quits, or until the input and the run end.

    Returns the exit code.
    """
    from tui_agent.cli.controller_wiring import ControllerWiring
    from tui_agent.cli.wiring import Wiring

    async with aclosing(Wiring(arguments)) as wiring:
        parts = ControllerWiring(wiring)
        reader = LineReader(sys.stdin.fileno())
        frontend = PlainFrontend(parts, reader.next, hidden=reader.hidden)
        for warning in wiring.loaded.warnings:
            frontend.say(warning, "warning")
        try:
            code = await frontend.run(parts.start())
        finally:
            reader.close()
    if parts.resume_command:
        say(f"Continue with: {parts.resume_command}")
    return code
