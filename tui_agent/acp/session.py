"""One session that is open in an editor: its agent, what is told of it in order, and its questions."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from acp import RequestError, helpers
from acp.interfaces import Client
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    ConfigOptionUpdate,
    PermissionOption,
    StopReason,
    ToolCallUpdate,
)

from tui_agent.acp.editor_files import UnsavedText
from tui_agent.acp.face import EditorFace
from tui_agent.acp.prompts import Prompt
from tui_agent.acp.updates import Updates, usage_update
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
from tui_agent.agent.preparing import prepare
from tui_agent.app.commands import command_table, find
from tui_agent.app.desk import Desk
from tui_agent.app.intent import CommandIntent, parse
from tui_agent.app.services import AppServices, OpenRequest
from tui_agent.session.entries import AssistantEntry, EffortChangeEntry, ModeChangeEntry, ModelChangeEntry

NEEDS_KEY = -32000
"""The protocol's error for an agent that wants somebody to log in first."""
KEYLESS = "No key of a provider was found: set one in the environment or the settings."

_STOPS: dict[str, StopReason] = {
    "done": "end_turn",
    "interrupted": "cancelled",
    "step_limit": "max_turn_requests",
    "budget": "max_turn_requests",
    "stopped": "end_turn",
}


async def _no_options() -> list[Any]:
    return []


class EditorSession:
    """Drives one agent for an editor. Everything happens on the event loop."""

    def __init__(self, client: Client, services: AppServices, able: ClientCapabilities | None = None) -> None:
        self.client = client
        self.able = able or ClientCapabilities()
        """What the editor can do."""
        self.desk = Desk(EditorFace(self), self._on_event)
        """Everything a person can ask of the session."""
        self.desk.attach(services)
        self._updates = Updates(services.cwd)
        self._waiting: asyncio.Queue[Any] = asyncio.Queue()
        self._telling: asyncio.Task[None] | None = None
        """Tells what waits; begun when the session has its name, by which the editor is told."""
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._ended: list[asyncio.Future[RunEnded]] = []
        self._finish = ""
        self._cancels = 0
        self.options: Callable[[], Awaitable[list[Any]]] = _no_options
        """Returns what can be chosen in the session, as the editor shows it."""

    async def open(self, request: OpenRequest) -> None:
        """Open the session it is about, once.

        Raises:
            StoreError: it can't be opened.
        """
        agent = await self.desk.open_or_raise(request)
        self._updates = Updates(agent.ports.cwd, agent.ports.blob)
        self._telling = asyncio.ensure_future(self._send_all())
        if self.able.fs is not None and self.able.fs.read_text_file:
            agent.ports.editor = UnsavedText(self.client, self.able.fs, agent.session.id)

    @property
    def agent(self) -> Agent:
        """The agent of the session."""
        assert self.desk.agent is not None, "open comes first"  # noqa: S101 - a promise of this class
        return self.desk.agent

    async def aclose(self) -> None:
        """End the run and what was told of it, and let go of the session."""
        self._answer(RunEnded("interrupted"))
        tasks = [*self._asking.values(), *filter(None, [self._telling])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.desk.close()

    # -- what an editor asks for ----------------------------------------------------------------------------

    async def prompt(self, prompt: Prompt) -> StopReason:
        """Send a message and wait until the agent is idle again.

        Raises:
            RequestError: the run failed.
            CommandError: the message is a command that can't be used.
        """
        intent = None if prompt.attached else parse(prompt.text)
        if isinstance(intent, CommandIntent) and (stop := await self._command(intent)) is not None:
            return stop
        agent = self.agent
        cancels = self._cancels
        prepared = await prepare(prompt.text, agent.session, agent.ports)
        if self._cancels != cancels:
            return "cancelled"
        agent.switch_for(prepared)
        ended = self._next_end()
        agent.submit((*prepared.parts, *prompt.attached))
        return await self._outcome(ended)

    def _next_end(self) -> asyncio.Future[RunEnded]:
        ended: asyncio.Future[RunEnded] = asyncio.get_running_loop().create_future()
        self._ended.append(ended)
        return ended

    async def _outcome(self, ended: asyncio.Future[RunEnded]) -> StopReason:
        """Wait for the end of a run and of what goes on in the same turn.

        Raises:
            RequestError: the run failed.
        """
        result = await ended
        while (deciding := self.desk.deciding) is not None:
            # A plan that is approved goes on in the same turn.
            self.desk.deciding = None
            await deciding
            if self.agent.running:
                result = await self._next_end()
        await self.settle()
        if result.reason == "error":
            if result.needs_key:
                raise RequestError(NEEDS_KEY, result.error or KEYLESS)
            raise RequestError(-32603, result.error or "The run failed.")
        if result.reason == "done" and self._finish == "length":
            return "max_tokens"
        return _STOPS.get(result.reason, "end_turn")

    async def _command(self, intent: CommandIntent) -> StopReason | None:
        """Run a command of the program's own; None when it is none, but a message or a command of the user's."""
        command = find(intent.name, command_table())
        if command is None:
            return None
        cancels, was_running = self._cancels, self.agent.running
        try:
            await self.desk.run_through(command, intent.arguments)
        except asyncio.CancelledError:
            if self._cancels == cancels:
                raise
        if self.agent.running and not was_running:  # as /retry does
            return await self._outcome(self._next_end())
        await self.settle()
        return "cancelled" if self._cancels != cancels else "end_turn"

    def cancel(self) -> None:
        """Stop the run; the prompt that waits for it is answered as cancelled."""
        self._cancels += 1
        self.agent.interrupt()

    async def replay(self) -> None:
        """Tell everything on the path, as if it happened now."""
        for entry in await asyncio.to_thread(self.agent.session.path):
            for update in self._updates.replay(entry):
                self.tell(update)
        await self.settle()

    # -- telling --------------------------------------------------------------------------------------------

    def tell(self, update: Any) -> None:
        """Tell something after all that was told before."""
        self._waiting.put_nowait(update)

    async def settle(self) -> None:
        """Wait until everything has been told."""
        await self._waiting.join()

    async def _send_all(self) -> None:
        while True:
            update = await self._waiting.get()
            try:
                await self.client.session_update(self.agent.session.id, update)
            except ConnectionError:
                # The editor is gone: what is left is of no use to anybody.
                pass
            finally:
                self._waiting.task_done()

    def _on_event(self, event: AgentEvent) -> None:
        for update in self._updates.of(event):
            self.tell(update)
        match event:
            case PermissionAsked(request=request):
                self._asking[request.call_id] = asyncio.ensure_future(self._ask(request))
            case PermissionSettled(call_id=call_id):
                if (task := self._asking.pop(call_id, None)) is not None and task is not asyncio.current_task():
                    task.cancel()
            case EntryAppended(entry=AssistantEntry(finish=finish)):
                self._finish = finish
                self.tell(usage_update(self.agent.context_size(), self.agent.session_cost()))
            case EntryAppended(entry=ModeChangeEntry(mode=mode)):
                self.tell(helpers.update_current_mode(mode))
            case EntryAppended(entry=ModelChangeEntry()):
                self.tell(usage_update(self.agent.context_size(), self.agent.session_cost()))
                self._tell_options()
            case EntryAppended(entry=EffortChangeEntry()):
                self._tell_options()
            case RunEnded():
                self._answer(event)
            case _:
                pass

    def _tell_options(self) -> None:
        """Tell the editor what is chosen now: a command may have changed it."""

        async def tell() -> None:
            options = await self.options()
            self.tell(ConfigOptionUpdate(session_update="config_option_update", config_options=options))

        self.desk.soon(tell())

    def _answer(self, ended: RunEnded) -> None:
        """Let every prompt that waits for the end of the run have it."""
        waiting, self._ended = self._ended, []
        for future in waiting:
            if not future.done():
                future.set_result(ended)

    async def _ask(self, request: PermissionRequest) -> None:
        """Ask the editor; without an answer from it the call is refused."""
        update = self._updates.question(request)
        call = ToolCallUpdate(
            tool_call_id=update.tool_call_id,
            title=update.title,
            kind=update.kind,
            status=update.status,
            content=update.content,
        )
        await self.settle()
        decision = Decision.DENY
        with contextlib.suppress(RequestError, ConnectionError):
            options = options_of(request)
            response = await self.client.request_permission(self.agent.session.id, call, options)
            offered = {option.option_id for option in options}
            if isinstance(response.outcome, AllowedOutcome) and response.outcome.option_id in offered:
                decision = Decision(response.outcome.option_id)
        self.agent.answer_permission(request.call_id, PermissionAnswer(decision))


def options_of(request: PermissionRequest) -> list[PermissionOption]:
    """Return the answers an editor offers: as in the full-screen program, with the rule that "always" makes."""
    options = [PermissionOption(option_id=Decision.ONCE.value, name="Allow once", kind="allow_once")]
    if request.rules:
        told = ", ".join(map(in_words, request.rules))
        name = f"Always in this session: {told}"
        options.append(PermissionOption(option_id=Decision.SESSION.value, name=name[:300], kind="allow_always"))
        if not request.loop:
            name = f"Always, in later sessions too: {told}"
            options.append(PermissionOption(option_id=Decision.PROJECT.value, name=name[:300], kind="allow_always"))
    options.append(PermissionOption(option_id=Decision.DENY.value, name="Refuse", kind="reject_once"))
    if request.loop:
        stop = PermissionOption(option_id=Decision.STOP.value, name="Refuse and stop", kind="reject_always")
        options.append(stop)
    return options
