"""One session that is open in an editor: its agent, what is told of it in order, and its questions."""

import asyncio
import contextlib
from typing import Any

from acp import RequestError
from acp.interfaces import Client
from acp.schema import AllowedOutcome, PermissionOption, StopReason, ToolCallUpdate

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
from tui_agent.agent.preparing import prepare
from tui_agent.session.entries import AssistantEntry, ModelChangeEntry

_STOPS: dict[str, StopReason] = {
    "done": "end_turn",
    "interrupted": "cancelled",
    "step_limit": "max_turn_requests",
    "stopped": "end_turn",
}


class EditorSession:
    """Drives one agent for an editor. Everything happens on the event loop."""

    def __init__(self, agent: Agent, client: Client) -> None:
        self.agent = agent
        self._client = client
        self._updates = Updates(agent.ports.cwd)
        self._waiting: asyncio.Queue[Any] = asyncio.Queue()
        self._telling = asyncio.ensure_future(self._tell_all())
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._ended: list[asyncio.Future[RunEnded]] = []
        self._finish = ""
        self._cancels = 0
        self._unsubscribe = agent.subscribe(self._on_event)
        self._warming = asyncio.ensure_future(agent.warm())

    async def aclose(self) -> None:
        """End the run and what was told of it; the session itself stays open."""
        self._unsubscribe()
        self._answer(RunEnded("interrupted"))
        for task in self._asking.values():
            task.cancel()
        for task in (self._telling, self._warming):
            task.cancel()
        await asyncio.gather(self._telling, self._warming, return_exceptions=True)
        await self.agent.aclose()

    # -- what an editor asks for ----------------------------------------------------------------------------

    async def prompt(self, prompt: Prompt) -> StopReason:
        """Send a message and wait until the agent is idle again.

        Raises:
            RequestError: the run failed.
            CommandError: the message is a command that can't be used.
        """
        name, _, rest = prompt.text.strip().partition(" ")
        if name == "/compact" and not prompt.attached:
            return await self._compact(rest.strip())
        agent = self.agent
        cancels = self._cancels
        prepared = await prepare(prompt.text, agent.session, agent.ports)
        if self._cancels != cancels:
            return "cancelled"
        if prepared.model is not None:
            agent.change_model(prepared.model)
        if prepared.mode is not None:
            agent.change_mode(prepared.mode)
        ended: asyncio.Future[RunEnded] = asyncio.get_running_loop().create_future()
        self._ended.append(ended)
        agent.submit((*prepared.parts, *prompt.attached))
        result = await ended
        await self.settle()
        if result.reason == "error":
            raise RequestError(-32603, result.error or "The run failed.")
        if result.reason == "done" and self._finish == "length":
            return "max_tokens"
        return _STOPS.get(result.reason, "end_turn")

    async def _compact(self, focus: str) -> StopReason:
        cancels = self._cancels
        try:
            outcome = await self.agent.compact(focus or None)
        except asyncio.CancelledError:
            if self._cancels == cancels:
                raise
            return "cancelled"
        if outcome.problem:
            raise RequestError(-32603, str(outcome.problem))
        await self.settle()
        return "end_turn"

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

    async def _tell_all(self) -> None:
        while True:
            update = await self._waiting.get()
            try:
                await self._client.session_update(self.agent.session.id, update)
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
            case EntryAppended(entry=ModelChangeEntry()):
                self.tell(usage_update(self.agent.context_size(), self.agent.session_cost()))
            case RunEnded():
                self._answer(event)
            case _:
                pass

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
            response = await self._client.request_permission(self.agent.session.id, call, options)
            offered = {option.option_id for option in options}
            if isinstance(response.outcome, AllowedOutcome) and response.outcome.option_id in offered:
                decision = Decision(response.outcome.option_id)
        self.agent.answer_permission(request.call_id, PermissionAnswer(decision))


def options_of(request: PermissionRequest) -> list[PermissionOption]:
    """Return the answers an editor offers: as in the full-screen program, with the rule that "always" makes."""
    options = [PermissionOption(option_id=Decision.ONCE.value, name="Allow once", kind="allow_once")]
    if request.rules:
        name = f"Allow always in this session: {', '.join(request.rules)}"
        options.append(PermissionOption(option_id=Decision.SESSION.value, name=name[:300], kind="allow_always"))
        if not request.loop:
            name = f"Allow always in this project: {', '.join(request.rules)}"
            options.append(PermissionOption(option_id=Decision.PROJECT.value, name=name[:300], kind="allow_always"))
    options.append(PermissionOption(option_id=Decision.DENY.value, name="Refuse", kind="reject_once"))
    if request.loop:
        stop = PermissionOption(option_id=Decision.STOP.value, name="Refuse and stop", kind="reject_always")
        options.append(stop)
    return options
