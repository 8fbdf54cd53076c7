"""A session open in an editor: runs its agent, sends updates in order, and asks its questions.

The `Controller` of `tui_agent.app` runs the agent and the commands, as it does for the screen. Here,
its events become updates of the protocol, and its questions become requests to the editor. The
editor also supplies the text of unsaved files, and saves files before the agent edits them.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from acp import RequestError, helpers
from acp.interfaces import Client
from acp.meta import CLIENT_METHODS
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    ConfigOptionUpdate,
    ElicitationFormSessionMode,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    FileSystemCapabilities,
    PermissionOption,
    PermissionOptionKind,
    StopReason,
    ToolCallUpdate,
)

from tui_agent.acp.forms import answer_of, form_of
from tui_agent.acp.updates import CompactionUpdate, Prompt, Updates, usage_update
from tui_agent.agent.agent import Agent
from tui_agent.agent.events import (
    AgentEvent,
    Decision,
    EntryAppended,
    PermissionAnswer,
    PermissionAsked,
    PermissionRequest,
    PermissionSettled,
    RunEnded,
)
from tui_agent.agent.permissions import in_words
from tui_agent.agent.preparing import prepare, prepare_command
from tui_agent.app.commands import built_in
from tui_agent.app.controller import Controller
from tui_agent.app.frontend import (
    Choice,
    Frontend,
    JobsPage,
    Page,
    Pick,
    Question,
    Remedy,
    Report,
    Severity,
    TextLine,
)
from tui_agent.app.intent import CommandIntent, parse
from tui_agent.app.job_commands import job_lines
from tui_agent.app.services import AppServices, OpenRequest
from tui_agent.errors import CommandError
from tui_agent.files.inside import read_regular
from tui_agent.session.entries import AssistantEntry, EffortChangeEntry, ModelChangeEntry
from tui_agent.text_files.encodings import decode_text
from tui_agent.tools.questions import Answer, ModelQuestions, Value

if TYPE_CHECKING:
    from tui_agent.app.services import OpenRequest

T = TypeVar("T")

MAX_OFFERED_ROWS = 12
"""Maximum number of rows of a `Pick` that are offered as answers; the first rows are offered."""

MAX_FILE_BYTES = 5_000_000
"""Maximum size, in bytes, of a file whose unsaved text is requested from the editor."""

NEEDS_KEY = -32000
"""Error code of the protocol for an agent that needs a login first."""

KEYLESS = "No provider's API key was found. Set one in the environment or in config.toml."
"""Error message that the editor receives if no model can be used."""

_STOPS: dict[str, StopReason] = {
    "done": "end_turn",
    "length": "max_tokens",
    "interrupted": "cancelled",
    "step_limit": "max_turn_requests",
    "budget": "max_turn_requests",
    "stopped": "end_turn",
}

Notify = Callable[[str, dict[str, Any]], Awaitable[None]]


class EditorFrontend(Frontend):
    """Shows messages and questions of one session's controller in an editor.

    Commands can't open another session: the editor ignores updates that don't have the id of the
    session that it opened.
    """

    opens_sessions = False

    def __init__(self, session: EditorSession) -> None:
        self._session = session
        self._asked = 0

    def say(
        self, message: str, severity: Severity = "information", remedy: Remedy | None = None
    ) -> None:
        del severity, remedy
        self._session.queue_update(helpers.update_agent_message_text(f"{message}\n\n"))

    async def ask(self, question: Question[T]) -> T | None:
        """Ask a `Choice` or `Pick` as a permission request, a `TextLine` as a form.

        Return the answer; None if the editor gives none. Only the first `MAX_OFFERED_ROWS` rows of a
        `Pick` are offered.

        Raises:
            CommandError: the editor can't ask such a question.
        """
        match question:
            case Choice():
                return await self._ask(question)  # type: ignore[return-value]  # a choice is answered by a key
            case Pick():
                offered = [(row.key, row.text[:80]) for row in question.rows[:MAX_OFFERED_ROWS]]
                return await self._ask(Choice(question.question, offered))  # type: ignore[return-value]  # answered by a key, too
            case TextLine() if self._has_forms:
                return await self._ask_text(question)  # type: ignore[return-value]  # a line is answered by a text
            case _:
                raise CommandError(
                    "Your editor can't ask this. Some commands take an argument instead: see /help."
                )

    async def _ask(self, question: Choice) -> str | None:
        self._asked += 1
        options = [
            PermissionOption(option_id=key, name=text, kind="allow_once")
            for key, text in question.answers
        ]
        content = None
        if question.details:
            content = [helpers.tool_content(helpers.text_block(question.details))]
        call = ToolCallUpdate(
            tool_call_id=f"question-{self._asked}", title=question.question, content=content
        )
        return await self._session.choice(call, options)

    async def _ask_text(self, question: TextLine) -> str | None:
        field = ElicitationStringPropertySchema(
            type="string", title="Answer", default=question.text or None
        )
        form = ElicitationSchema(properties={"answer": field})
        response = await self._show_form(question.question, form)
        if isinstance(response, AcceptElicitationResponse):
            return str((response.content or {}).get("answer") or "")
        return None

    async def fill_in(self, asked: ModelQuestions, former: Mapping[str, Value]) -> Answer | None:
        """Ask all questions in one form of the editor; "cancel" if the user does not answer.

        Return None if the editor has no forms, or the request fails.
        """
        response = await self._show_form("The model asks you", form_of(asked, former))
        if response is None:
            return None
        if isinstance(response, AcceptElicitationResponse):
            return answer_of(asked, response.content or {})
        return Answer("cancel")

    @property
    def _has_forms(self) -> bool:
        able = self._session.capabilities.elicitation
        return able is not None and able.form is not None

    async def _show_form(self, message: str, form: ElicitationSchema) -> Any:
        """Return the editor's response to a form; None if it has no forms or the request fails."""
        if not self._has_forms:
            return None
        mode = ElicitationFormSessionMode(
            session_id=self._session.agent.session.id, requested_schema=form
        )
        await self._session.wait_sent()
        with contextlib.suppress(RequestError, ConnectionError):
            return await self._session.client.create_elicitation(message=message, mode=mode)
        return None

    def show(self, page: Page) -> None:
        match page:
            case JobsPage():
                self.show(Report(page.title, job_lines(self._session.agent.jobs)))
            case _:
                super().show(page)

    def go_to(self, request: OpenRequest) -> None:
        del request
        self.say("To open another session, use your editor's list of sessions.")


class UnsavedText:
    """Reads unsaved text of files from the editor, and makes the editor save a file before an edit."""

    def __init__(self, client: Client, able: FileSystemCapabilities, session: str) -> None:
        self._client = client
        self._able = able
        self._session = session
        self._read: dict[Path, bytes] = {}
        """Digests of the unsaved texts that the model has read, by path."""

    async def unsaved(self, path: Path) -> str | None:
        """Return a file's text in the editor if it differs from the file on disk.

        Return None if both are the same, or if either can't be read, for example because the file
        is not text or is larger than `MAX_FILE_BYTES`.
        """
        text = await self._differing(path)
        if text is not None:
            self._read[path] = _digest(text)
        return text

    async def save(self, path: Path) -> bool:
        """Make the editor save a file for which it has unsaved text.

        Return True if the file was saved and the model had read the unsaved text through
        ``unsaved``.
        """
        text = None
        if self._able.write_text_file:
            text = await self._differing(path)
        if text is None:
            return False
        with contextlib.suppress(RequestError, ConnectionError):
            await self._client.write_text_file(
                session_id=self._session, path=str(path), content=text
            )
            return self._read.get(path) == _digest(text)
        return False

    async def _differing(self, path: Path) -> str | None:
        on_disk = None
        if self._able.read_text_file:
            on_disk = await asyncio.to_thread(_read, path)
        if on_disk is None:
            return None
        try:
            answer = await self._client.read_text_file(session_id=self._session, path=str(path))
        except (RequestError, ConnectionError):
            return None
        if _plain(answer.content) == _plain(on_disk):
            return None
        return answer.content


def _read(path: Path) -> str | None:
    """Return a file's text; None if it is not text, too large or unreadable."""
    data = read_regular(path, MAX_FILE_BYTES + 1)
    if data is not None and len(data) <= MAX_FILE_BYTES:
        return decode_text(data)
    return None


def _plain(text: str) -> str:
    """Return a text with CRLF replaced by LF, to ignore line ends that editors change."""
    return text.replace("\r\n", "\n")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class EditorSession:
    """Drives one agent for an editor. All methods run on the event loop."""

    def __init__(
        self, client: Client, services: AppServices, able: ClientCapabilities | None = None
    ) -> None:
        self.client = client
        self.capabilities = able or ClientCapabilities()
        """The editor's capabilities."""
        self.controller = Controller(EditorFrontend(self), self._on_event)
        """The controller that owns the session and runs its commands."""
        self.controller.attach(services)
        self._updates = Updates(services.cwd)
        self._waiting: asyncio.Queue[Any] = asyncio.Queue()
        self.queue_update = self._waiting.put_nowait
        self._sender: asyncio.Task[None] | None = None
        """Sends queued updates. Started once the session is open, because updates contain the
        session's id."""
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._run_ends: list[asyncio.Future[RunEnded]] = []
        self._finish = ""
        self._cancels = 0
        self.options: Callable[[], Awaitable[list[Any]]] | None = None
        """Returns the session's options for the editor; None until the session is open."""
        self.notify: Notify | None = None
        """Sends a notification for which the SDK has no class; None if that is not possible."""

    async def open(self, request: OpenRequest) -> None:
        """Open the session and start sending updates; call this once. Raises `StoreError`."""
        agent = await self.controller.open_or_raise(request)
        asked = (
            self.notify is not None
            and getattr(self.capabilities.session, "compaction", None) is not None
        )
        self._updates = Updates(agent.ports.cwd, agent.ports.blob, compactions=asked)
        self._sender = asyncio.ensure_future(self._send_all())
        if self.capabilities.fs is not None and self.capabilities.fs.read_text_file:
            agent.ports.editor = UnsavedText(self.client, self.capabilities.fs, agent.session.id)

    @property
    def agent(self) -> Agent:
        return self.controller.open_agent

    async def aclose(self) -> None:
        """Close the session. If a prompt is being answered, it ends as cancelled."""
        self._cancels += 1
        self._end_runs(RunEnded("interrupted"))
        tasks = [*self._asking.values(), *filter(None, [self._sender])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.controller.close()

    # -- an editor's requests

    async def prompt(self, prompt: Prompt) -> StopReason:
        """Send a message, or run it if it is a command; return the stop reason of the run.

        Waits until the agent is idle again. Returns "end_turn" for a command that starts no run.

        Raises:
            RequestError: the run failed.
            CommandError: the message is a command that can't be used.
        """
        if prompt.attached:
            intent = None
        else:
            intent = parse(prompt.text)
        if isinstance(intent, CommandIntent) and (stop := await self._command(intent)) is not None:
            return stop
        agent = self.agent
        cancels = self._cancels
        if isinstance(intent, CommandIntent):
            made = await prepare_command(intent.name, intent.arguments, agent.session, agent.ports)
            if made is None:
                raise CommandError(self.controller.unknown(intent.name, intent.arguments))
            prepared = made
        else:
            prepared = await prepare(prompt.text, agent.session, agent.ports)
        if self._cancels != cancels:
            return "cancelled"
        agent.switch_for(prepared)
        if prepared.problem is not None:
            self.controller.frontend.warn(prepared.problem)
        ended = self._next_end()
        agent.submit((*prepared.parts, *prompt.attached))
        return await self._outcome(ended)

    def _next_end(self) -> asyncio.Future[RunEnded]:
        ended: asyncio.Future[RunEnded] = asyncio.get_running_loop().create_future()
        self._run_ends.append(ended)
        return ended

    async def _outcome(self, ended: asyncio.Future[RunEnded]) -> StopReason:
        """Wait for the end of a run, and of the run that carries out a plan approved after it.

        Return the stop reason. Raises `RequestError` if the last run failed.
        """
        result = await ended
        while (deciding := self.controller.deciding) is not None:
            # An approved plan is carried out during the same prompt.
            self.controller.deciding = None
            await deciding
            if self.agent.running:
                result = await self._next_end()
        await self.wait_sent()
        if result.reason == "error":
            if result.needs_key:
                raise RequestError(NEEDS_KEY, result.error or KEYLESS)
            raise RequestError(-32603, result.error or "The run failed.")
        if result.reason == "done" and self._finish == "length":
            return "max_tokens"
        return _STOPS.get(result.reason, "end_turn")

    async def _command(self, intent: CommandIntent) -> StopReason | None:
        """Run a built-in command, wait for any run that it starts, and return the stop reason.

        Return None if there is no built-in command of that name.
        """
        agent = self.agent
        command = await built_in(intent.name, agent)
        if command is None:
            return None
        cancels = self._cancels
        was_running = agent.running
        try:
            await self.controller.run_to_completion(command, intent.arguments)
        except asyncio.CancelledError:
            if self._cancels == cancels:
                raise
        if agent.running and not was_running:  # as /retry does
            return await self._outcome(self._next_end())
        await self.wait_sent()
        return "cancelled" if self._cancels != cancels else "end_turn"

    def cancel(self) -> None:
        self._cancels += 1
        self.agent.interrupt()

    async def replay(self) -> None:
        """Queue updates that show the editor the session path, and wait until all are sent."""
        for entry in await asyncio.to_thread(self.agent.session.path):
            for update in self._updates.replay(entry):
                self.queue_update(update)
        await self.wait_sent()

    # -- updates

    async def wait_sent(self) -> None:
        """Wait until all queued updates are sent, or the session is closed."""
        sent = asyncio.ensure_future(self._waiting.join())
        try:
            await asyncio.wait(
                {sent, *filter(None, [self._sender])}, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            sent.cancel()

    async def _send_all(self) -> None:
        while True:
            update = await self._waiting.get()
            try:
                if isinstance(update, CompactionUpdate) and self.notify is not None:
                    await self.notify(
                        CLIENT_METHODS["session_update"], update.params(self.agent.session.id)
                    )
                else:
                    await self.client.session_update(self.agent.session.id, update)
            except ConnectionError:
                # The editor has disconnected.
                pass
            finally:
                self._waiting.task_done()

    def _on_event(self, event: AgentEvent) -> None:
        for update in self._updates.updates_for(event):
            self.queue_update(update)
        match event:
            case PermissionAsked(request=request):
                self._asking[request.call_id] = asyncio.ensure_future(self._ask(request))
            case PermissionSettled(call_id=call_id):
                if (
                    task := self._asking.pop(call_id, None)
                ) is not None and task is not asyncio.current_task():
                    task.cancel()
            case EntryAppended(entry=AssistantEntry(finish=finish)):
                self._finish = finish
                self.queue_update(
                    usage_update(self.agent.context_size(), self.agent.session_cost())
                )
            case EntryAppended(entry=ModelChangeEntry() | EffortChangeEntry() as entry):
                if isinstance(entry, ModelChangeEntry):
                    self.queue_update(
                        usage_update(self.agent.context_size(), self.agent.session_cost())
                    )
                self.controller.soon(self._send_options())
            case RunEnded():
                self._end_runs(event)
            case _:
                pass

    async def _send_options(self) -> None:
        """Send the editor the current options, which a command may have changed."""
        if self.options is not None:
            options = await self.options()
        else:
            options = []
        self.queue_update(
            ConfigOptionUpdate(session_update="config_option_update", config_options=options)
        )

    def _end_runs(self, ended: RunEnded) -> None:
        waiting = self._run_ends
        self._run_ends = []
        for future in waiting:
            if not future.done():
                future.set_result(ended)

    async def _ask(self, request: PermissionRequest) -> None:
        """Ask the editor for permission. If the editor gives no answer, the call is denied."""
        chosen = await self.choice(self._updates.question(request), options_of(request))
        self.agent.answer_permission(
            request.call_id, PermissionAnswer(Decision(chosen or Decision.DENY))
        )

    async def choice(self, call: ToolCallUpdate, options: list[PermissionOption]) -> str | None:
        """Send the editor a permission request and return the id of the chosen option.

        None if the editor gives no answer, or none of the options.
        """
        await self.wait_sent()
        with contextlib.suppress(RequestError, ConnectionError):
            response = await self.client.request_permission(self.agent.session.id, call, options)
            offered = {option.option_id for option in options}
            if (
                isinstance(response.outcome, AllowedOutcome)
                and response.outcome.option_id in offered
            ):
                return response.outcome.option_id
        return None


def options_of(request: PermissionRequest) -> list[PermissionOption]:
    """Return the answers that a permission question offers. “Always” answers name the new rules."""
    rules = ", ".join(map(in_words, request.rules))
    rows: list[tuple[Decision, str, PermissionOptionKind, bool]] = [
        (Decision.ONCE, "Allow once", "allow_once", True),
        (Decision.SESSION, f"Always in this session: {rules}", "allow_always", bool(rules)),
        (
            Decision.PROJECT,
            f"Always, in later sessions too: {rules}",
            "allow_always",
            bool(rules) and not request.loop,
        ),
        (Decision.DENY, "Refuse", "reject_once", True),
        (Decision.STOP, "Refuse and stop", "reject_always", bool(request.loop)),
    ]
    found = []
    for decision, name, kind, is_offered in rows:
        if is_offered:
            found.append(PermissionOption(option_id=decision.value, name=name[:300], kind=kind))
    return found
