"""Runs the hooks of one session in their order, and combines their answers.

A hook that fails is reported and otherwise ignored. `claude_hooks` translates hooks that are
written in Claude Code's format. ``cli.extensions`` finds the hooks and decides which may run. The
callers act on the answers: they refuse or change the message, call, move or compaction.
"""

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import to_json

from tui_agent.agent.events import AgentEvent, HookAnswered, HookAwaited, Notice
from tui_agent.agent.hooks.payloads import (
    ANSWERS,
    About,
    AfterCompact,
    AfterTool,
    AfterToolAnswer,
    AfterTree,
    BeforeCompact,
    BeforeEnd,
    BeforeEndAnswer,
    BeforeTool,
    BeforeToolAnswer,
    BeforeTree,
    ContextAnswer,
    HookAnswer,
    Notification,
    Payload,
    PermissionQuestion,
    PermissionQuestionAnswer,
    RunEnd,
    SessionEnd,
    SessionStart,
    SubagentStart,
    SummaryAnswer,
    UserPrompt,
    UserPromptAnswer,
)
from tui_agent.agent.hooks.settings import HookSettings
from tui_agent.errors import UserFacingError
from tui_agent.files.own_git import find_project
from tui_agent.json_text import loads
from tui_agent.lazy import frozen
from tui_agent.permission import NO_REASON, refused_by_hook
from tui_agent.processes.process import Command
from tui_agent.processes.user_command import CommandFailedError, run_with_input, shell_command
from tui_agent.safe_text import one_line
from tui_agent.sandbox import Sandbox, SandboxError, View
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.base import RawInput, Tool, ToolInput, ToolResult

AWAITED_SECONDS = 1.0
"""Seconds after which the user is told which hook the agent waits for."""

REFUSED = 2
"""The exit code with which a hook's command refuses the event."""

CLOSING_SECONDS = 5
"""Number of seconds to wait for background hooks before they are cancelled."""

MIN_SUMMARY_CHARS = 20
"""Shortest summary that is accepted from a hook, in characters."""

AskModel = Callable[[str, float], Awaitable[str]]
"""Returns the small model's answer to a question. The second argument is a timeout in seconds.

Raises ModelError and TimeoutError.
"""

AnswerT = TypeVar("AnswerT", bound=HookAnswer)
SummaryT = TypeVar("SummaryT", bound=SummaryAnswer)


class HookError(UserFacingError):
    """Raised if a hook failed; the message says why, for the user."""


@frozen
class Containment:
    """The sandbox of a session's commands, and a function that returns the commands' view.

    A view says what a command may see, change and reach.
    """

    sandbox: Sandbox | None
    view: Callable[[], View]


@frozen
class CommandHook:
    """A hook that runs a command from the settings, in the directory ``cwd``.

    ``environment`` are the command's environment variables, without secrets.
    """

    settings: HookSettings
    cwd: Path
    environment: Mapping[str, str]
    containment: Containment | None = None
    """The sandbox of a hook whose settings say ``sandboxed``; None to run it without a sandbox."""
    problem_of: Callable[[Path, str], str] = lambda _cwd, _command: ""
    """Returns a clause that says why a command must not run outside the sandbox; "" if it may.

    The arguments are the directory and the command line.
    """
    report: Callable[[str], None] = lambda _text: None
    """Called with a sentence about changes that the sandbox discarded."""
    ask: AskModel | None = None
    """Asks the small model, for hooks of type ``prompt``; None if there is no such model."""
    place: str = ""
    """The file in which the hook is defined, perhaps with the line: ``FILE:LINE``."""

    @property
    def name(self) -> str:
        return one_line(self.settings.command, 60)

    @property
    def title(self) -> str:
        """The hook's command, shortened to one line, and the file that defines the hook."""
        if not self.place:
            return f"“{self.name}”"
        return f"“{self.name}” ({one_line(self.place, 100)})"

    @property
    def runs_in_background(self) -> bool:
        """Whether the hook runs without anyone waiting for its answer; always False here."""
        return False

    def handles(self, event: str, tool: str) -> bool:
        """Return whether the hook is for this event and tool.

        ``tool`` is "" for events without a tool.
        """
        return event == self.settings.event and (
            not tool or fnmatchcase(tool, self.settings.matcher)
        )

    def wants(self, payload: Payload) -> bool:  # noqa: ARG002 - for those in another format
        """Return whether the hook should run for a payload, given that it `handles` its event.

        Always True here; hooks in another format also look at the payload.
        """
        return True

    async def __call__(self, payload: Payload) -> HookAnswer:
        """Run the hook and return its answer; raises HookError if it fails or takes too long."""
        try:
            code, out, errors = await self._run(self.given(payload))
        except (CommandFailedError, SandboxError) as error:
            raise HookError(str(error)) from None
        said = " ".join(errors.decode("utf-8", "replace").split())
        if code == REFUSED:
            refused = self.refusal(payload.event, said or NO_REASON)
            if refused is not None:
                return refused
        if code != 0:
            raise HookError(f"exit code {code}{f': {said[:300]}' if said else ''}")
        text = out.decode("utf-8", "replace").strip()
        return self.answer(payload, text)

    def given(self, payload: Payload) -> bytes:
        """Return the payload as JSON, for the command's standard input."""
        return to_json(payload)

    def refusal(self, event: str, reason: str) -> HookAnswer | None:
        """Return the hook's answer for exit code `REFUSED`; None if the event can't be refused."""
        return ANSWERS[event].refusing(reason)

    def answer(self, payload: Payload, text: str) -> HookAnswer:
        """Return the hook's answer in its command's output; an empty answer if there is no output.

        Raises HookError if the output is malformed.
        """
        if not text:
            return ANSWERS[payload.event]()
        return checked(payload.event, parsed(text))

    async def _run(self, given: bytes) -> tuple[int, bytes, bytes]:
        """Run the command; return its exit code, standard output and standard error."""
        settings = self.settings
        project = find_project(self.cwd)
        command = shell_command(
            settings.command, self.cwd, self.environment, settings.timeout, project
        )
        held = self.containment if settings.sandboxed else None
        if held is not None and held.sandbox is not None:
            refusal = await asyncio.to_thread(held.sandbox.refusal)
            if refusal:
                raise HookError(refusal)
            if held.sandbox.active:
                return await self._run_inside(held.sandbox, held.view(), command, given)
        problem = await asyncio.to_thread(self.problem_of, self.cwd, settings.command)
        if problem:
            raise HookError(f"it was not run: {problem}")
        return await run_with_input(command, given)

    async def _run_inside(
        self, sandbox: Sandbox, view: View, command: Command, given: bytes
    ) -> tuple[int, bytes, bytes]:
        # The sandbox makes the project's own programs safe to run, so PATH may contain them.
        environment = {**command.environment, "PATH": self.environment.get("PATH", os.defpath)}
        project = find_project(self.cwd)
        launch = await sandbox.launch(command.arguments, self.cwd, project, view, environment)
        held_command = replace(
            command,
            arguments=launch.arguments,
            environment=launch.environment,
            descriptors=launch.descriptors,
        )
        said = ""
        code = None
        try:
            code, out, errors = await run_with_input(held_command, given)
            said = errors.decode("utf-8", "replace")
        finally:
            ending = asyncio.ensure_future(sandbox.finish(launch, said, code))
            await asyncio.shield(ending)
        if note := ending.result().note:
            self.report(f"The hook {self.title} runs in the sandbox: {note}")
        return code, out, errors


def parsed(text: str) -> Any:
    """Parse the JSON output of a hook. Raises HookError if it is malformed."""
    try:
        return loads(text)
    except ValueError:
        raise HookError(f"its output is not JSON: {text[:80]!r}") from None


def checked(event: str, answer: object) -> HookAnswer:
    """Convert a hook's parsed JSON to the answer type of the event. None is an empty answer.

    Raises HookError if the JSON does not match the type.
    """
    expected = ANSWERS[event]
    if answer is None:
        return expected()
    try:
        return expected.model_validate(answer)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the answer"
        raise HookError(f"its answer is invalid: {where}: {first['msg']}") from None


@frozen
class LoadedHooks:
    """The usable hooks, in order, and a sentence for the user about each problem with a hook."""

    handlers: tuple[CommandHook, ...] = ()
    problems: tuple[str, ...] = ()


@frozen
class CheckedCall:
    """A tool call's arguments after its ``before_tool`` hooks, and what these decided.

    ``allowed`` is True if a hook allowed the call. ``refusal`` is the text for the model if a hook
    denied the call, otherwise None. ``changed`` is the JSON of the arguments if a hook changed
    them, otherwise None. ``asks`` says why a hook wants the user to be asked; "" if none does.
    """

    arguments: ToolInput
    allowed: bool = False
    refusal: str | None = None
    changed: str | None = None
    asks: str = ""


class Hooks:
    """Runs the hooks of one session and combines their answers.

    ``load`` reads the hooks from the settings; without it there are none. ``about`` returns the
    part of payloads that describes the session. ``report`` shows the user notices, and the hook
    that the agent waits for. Hooks with ``sandboxed`` run in ``containment``. ``ask`` asks the
    small model the questions of hooks of type ``prompt``.
    """

    def __init__(
        self,
        load: Callable[[], LoadedHooks] | None = None,
        about: Callable[[], About] = About,
        report: Callable[[AgentEvent], None] = lambda _event: None,
        containment: Containment | None = None,
        ask: AskModel | None = None,
    ) -> None:
        self._load = load
        self._about = about
        self._report = report
        self._containment = containment
        self._ask = ask
        self._handlers: tuple[CommandHook, ...] | None = () if load is None else None
        self._telling: set[asyncio.Task[None]] = set()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """A lock for each event: a later event waits until the hooks of the earlier one are done."""
        self._began = False

    def bound(
        self,
        about: Callable[[], About],
        report: Callable[[AgentEvent], None],
        containment: Containment,
        ask: AskModel,
    ) -> "Hooks":
        """Return a new object for another session that loads the same hooks."""
        return Hooks(self._load, about, report, containment, ask)

    @property
    def about(self) -> About:
        return self._about()

    async def warm(self) -> None:
        """Load the hooks in a thread, if they are not loaded yet, and report problems with them."""
        if self._handlers is not None or self._load is None:
            return
        loaded = await asyncio.to_thread(self._load)
        if self._handlers is None:  # no other call loaded them meanwhile
            self._handlers = tuple(self._of_session(handler) for handler in loaded.handlers)
            for problem in loaded.problems:
                self._warn(problem)

    def _of_session(self, handler: CommandHook) -> CommandHook:
        return replace(handler, containment=self._containment, report=self._warn, ask=self._ask)

    def _warn(self, text: str) -> None:
        self._report(Notice(text, "warning"))

    async def wanted(self, event: str, tool: str = "") -> bool:
        """Return whether any hook runs at an event, so that needless payloads aren't built.

        Loads the hooks if they are not loaded yet.
        """
        await self.warm()
        return any(handler.handles(event, tool) for handler in self._handlers or ())

    async def check_messages(self) -> bool:
        """Return whether hooks run before the user's next message is appended."""
        if await self.wanted("user_prompt"):
            return True
        return not self._began and await self.wanted("session_start")

    async def listed(self) -> tuple[CommandHook, ...]:
        """Return the session's hooks in the order in which they run. Loads them if necessary."""
        await self.warm()
        return self._handlers or ()

    # -- asked ----------------------------------------------------------------------------------------------

    async def session_start(self, *, resumed: bool) -> str:
        """Run the ``session_start`` hooks, and return their texts for the model as one text.

        Returns "" if there is none, and in every call after the first. If a call is cancelled, the
        next one runs the hooks again.
        """
        if self._began or not await self.wanted("session_start"):
            return ""
        context: list[str] = []
        payload = SessionStart(about=self.about, resumed=resumed)
        async for _handler, answer in self._answers(payload, ContextAnswer):
            if answer.context.strip():
                context.append(answer.context)
        # This is set only now, so that the next message runs the hooks again if they are
        # interrupted.
        self._began = True
        return "\n\n".join(context)

    async def user_prompt(self, prompt: str, *, mid_run: bool) -> UserPromptAnswer:
        """Run the hooks before a user's message is added.

        Returns the first answer that refuses the message. If none does, returns an answer with the
        texts of all hooks, joined.
        """
        if not await self.wanted("user_prompt"):
            return UserPromptAnswer.model_construct()
        context: list[str] = []
        payload = UserPrompt(about=self.about, prompt=prompt, mid_run=mid_run)
        async for _handler, answer in self._answers(payload, UserPromptAnswer):
            if answer.block:
                return answer
            if answer.context.strip():
                context.append(answer.context)
        return UserPromptAnswer(context="\n\n".join(context))

    async def check_call(self, call_id: str, tool: Tool[Any], arguments: ToolInput) -> CheckedCall:
        """Run the hooks before a tool call; each may change the arguments for the next one.

        No hook runs after one that denies the call. Raises ToolError if the changed arguments do
        not match the tool's schema.
        """
        if not await self.wanted("before_tool", tool.name):
            return CheckedCall(arguments)
        given = payload = BeforeTool(
            about=self.about, call_id=call_id, tool=tool.name, arguments=_plain(arguments)
        )
        allowed = False
        asks = ""
        for handler in self._handlers or ():
            if not (handler.handles(payload.event, tool.name) and handler.wants(payload)):
                continue
            answer = await self._ask_one(handler, payload, BeforeToolAnswer)
            if answer is None:
                continue
            if answer.decision == "deny":
                return CheckedCall(
                    arguments, refusal=refused_by_hook(answer.message, handler.title)
                )
            allowed = allowed or answer.decision == "allow"
            if answer.decision == "ask":
                asks = " – ".join(filter(None, [answer.message, f"hook {handler.title}"]))
            if answer.arguments is not None:
                payload = replace(payload, arguments=answer.arguments)
        if payload.arguments == given.arguments:
            return CheckedCall(arguments, allowed, asks=asks)
        changed = json.dumps(payload.arguments, ensure_ascii=False)
        return CheckedCall(parse_arguments(tool, changed), allowed, changed=changed, asks=asks)

    async def add_to_result(
        self,
        call_id: str,
        tool: Tool[Any],
        checked: CheckedCall,
        result: ToolResult,
        seconds: float,
    ) -> ToolResult:
        """Run the hooks after a call, and return the result with their texts.

        If a hook changed the call's arguments, the result also has a note about that.
        """
        added: list[str] = []
        if checked.changed is not None:
            added.append(f"[A hook changed the arguments to {checked.changed}]")
        if await self.wanted("after_tool", tool.name):
            payload = AfterTool(
                about=self.about,
                call_id=call_id,
                tool=tool.name,
                arguments=_plain(checked.arguments),
                output=result.output,
                is_error=result.is_error,
                seconds=seconds,
            )
            async for _handler, answer in self._answers(payload, AfterToolAnswer, tool=tool.name):
                if answer.append.strip():
                    added.append(answer.append)
        text = "\n\n".join(added)
        if text:
            return replace(result, output=f"{result.output}\n\n{text}")
        return result

    async def ask_for_summary(
        self, payload: BeforeCompact | BeforeTree, kind: type[SummaryT]
    ) -> SummaryT:
        """Run the hooks before a compaction, or before a move to another entry.

        Returns the first answer that cancels or has a summary. If there is none, returns an answer
        with the texts of all hooks, joined. In both cases, the answer also has the last cut and the
        last details that the hooks run so far have given. A summary that is too short is reported
        and ignored.
        """
        context: list[str] = []
        more: dict[str, Any] = {}
        async for handler, answer in self._answers(payload, kind):
            more |= answer.model_dump(exclude_defaults=True, include={"first_kept", "details"})
            if answer.context.strip():
                context.append(answer.context.strip())
            if not (answer.cancel or answer.summary):
                continue
            if not answer.cancel and len(answer.summary.strip()) < MIN_SUMMARY_CHARS:
                self._failed(
                    handler,
                    payload.event,
                    f"its summary is too short (fewer than {MIN_SUMMARY_CHARS} characters)",
                )
                continue
            return answer.model_copy(update=more)
        return kind(context="\n\n".join(context), **more)

    async def before_end(self, answer: str, sent_back: int) -> str:
        """Run the hooks before a run ends, and return the task that the first blocking hook sets.

        "" if no hook blocks the end. ``answer`` is the model's last text, ``sent_back`` the number
        of times that hooks have made the model continue in this run.
        """
        if not await self.wanted("before_end"):
            return ""
        payload = BeforeEnd(about=self.about, answer=answer, sent_back=sent_back)
        async for _handler, said in self._answers(payload, BeforeEndAnswer):
            if said.block:
                return said.message.strip() or "A hook says that you are not done."
        return ""

    async def permission(
        self, call_id: str, tool: Tool[Any], arguments: ToolInput, reason: str
    ) -> PermissionQuestionAnswer:
        """Ask the hooks, before asking the user, whether a call may run; return the first decision.

        If no hook decides, ``decision`` is None in the returned answer.
        """
        if not await self.wanted("permission", tool.name):
            return PermissionQuestionAnswer.model_construct()
        payload = PermissionQuestion(
            about=self.about,
            call_id=call_id,
            tool=tool.name,
            arguments=_plain(arguments),
            reason=reason,
        )
        asked = self._answers(payload, PermissionQuestionAnswer, tool=tool.name)
        async for _handler, said in asked:
            if said.decision is not None:
                return said
        return PermissionQuestionAnswer()

    # -- notified -------------------------------------------------------------------------------------------

    def tell(
        self, payload: AfterCompact | AfterTree | RunEnd | Notification | SubagentStart | SessionEnd
    ) -> None:
        """Run the hooks of an event in the background and ignore their answers.

        They start when the hooks of earlier events of the same name are done.
        """
        if self._load is not None:
            self._start_telling(self._tell(payload))

    def _start_telling(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def aclose(self) -> None:
        """Wait up to `CLOSING_SECONDS` for hooks that run in the background, then cancel them."""
        if self._telling:
            _done, late = await asyncio.wait(self._telling, timeout=CLOSING_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    async def _tell(self, payload: Payload) -> None:
        async with self._turns[payload.event]:
            await self.warm()
            for handler in self._wanting(payload):
                if handler.runs_in_background:
                    self._start_telling(self._run_alone(handler, payload))
                else:
                    await self._answer_of(handler, payload, HookAnswer)

    # -- asking ---------------------------------------------------------------------------------------------

    async def _answers(
        self, payload: Payload, expected: type[AnswerT], *, tool: str = ""
    ) -> AsyncIterator[tuple[CommandHook, AnswerT]]:
        await self.warm()
        for handler in self._wanting(payload, tool):
            answer = await self._ask_one(handler, payload, expected)
            if answer is not None:
                yield handler, answer

    def _wanting(self, payload: Payload, tool: str = "") -> Iterator[CommandHook]:
        """Yield the loaded hooks that run for a payload, in their order."""
        for handler in self._handlers or ():
            if handler.handles(payload.event, tool) and handler.wants(payload):
                yield handler

    async def _ask_one(
        self, handler: CommandHook, payload: Payload, expected: type[AnswerT]
    ) -> AnswerT | None:
        """Return a hook's answer; None if the hook failed or runs in the background.

        If the answer takes long, the user is told that the agent waits for the hook.
        """
        if handler.runs_in_background:
            self._start_telling(self._run_alone(handler, payload))
            return None
        with self._reporting_wait(handler, payload.event):
            return await self._answer_of(handler, payload, expected)

    @contextmanager
    def _reporting_wait(self, handler: CommandHook, event: str) -> Iterator[None]:
        reported: list[HookAwaited] = []

        def report() -> None:
            reported.append(HookAwaited(event, handler.name, AWAITED_SECONDS))
            self._report(reported[0])

        timer = asyncio.get_running_loop().call_later(AWAITED_SECONDS, report)
        try:
            yield
        finally:
            timer.cancel()
            if reported:
                self._report(HookAnswered(event, handler.name))

    async def _answer_of(
        self, handler: CommandHook, payload: Payload, expected: type[AnswerT]
    ) -> AnswerT | None:
        """Return a hook's answer; None if the hook failed, which is reported to the user.

        Also None if the answer is not of the type ``expected``.
        """
        try:
            answer = await handler(payload)
        except HookError as error:
            self._failed(handler, payload.event, str(error))
            return None
        if answer.notice.strip():
            self._report(Notice(answer.notice.strip()))
        return answer.given_by(handler.title) if isinstance(answer, expected) else None

    async def _run_alone(self, handler: CommandHook, payload: Payload) -> None:
        try:
            await handler(payload)
        except HookError as error:
            self._failed(handler, payload.event, str(error))

    def _failed(self, handler: CommandHook, event: str, why: str) -> None:
        self._warn(f"The {event} hook {handler.title} failed: {why}. Continuing without it.")


def _plain(arguments: ToolInput) -> dict[str, Any]:
    if isinstance(arguments, RawInput):
        return dict(arguments.values)
    return arguments.model_dump(mode="json", exclude_unset=True)
