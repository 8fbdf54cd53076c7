"""Defines the stages around each tool call: hooks, permissions, sandbox, checks, file recording.

The outermost stage comes first; each runs the stages after it. `ToolRunner` puts them in order.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from tui_agent.agent.calls.call import Call, Outcome, Proceed, RefusedError
from tui_agent.agent.channel import EventChannel
from tui_agent.agent.checkpoints.recorder import Recorder, watched
from tui_agent.agent.diagnostics.diagnostics import Diagnostics
from tui_agent.agent.events import ToolStarted
from tui_agent.agent.gate import Gate, HookVerdict, needs_of, network_need
from tui_agent.agent.hooks.hooks import Hooks
from tui_agent.agent.permissions import Action
from tui_agent.agent.threads import in_thread
from tui_agent.errors import ToolError
from tui_agent.lazy import dataclass, frozen
from tui_agent.permission import note_of
from tui_agent.processes.jobs import Jobs
from tui_agent.sandbox.view import EVERY_HOST, Grants
from tui_agent.session.entries import ToolStatus
from tui_agent.tools.base import ToolContext


@frozen
class Understood:
    """Gives a call its tool context, which ``context`` makes.

    Raises ToolError if the call can't be read.
    """

    context: Callable[[Call], ToolContext]
    jobs: Jobs

    async def around(self, call: Call, proceed: Proceed) -> Outcome:
        if call.problem:
            raise ToolError(call.problem)
        call.held = self.context(call)
        # First have the jobs' build output copied to the project, because the permissions that the
        # call needs may depend on it.
        await self.jobs.look()
        return await proceed(call)


@frozen
class Hooked:
    """Runs the user's hooks before a call, which they may change or refuse, and after it.

    Hooks after a call may add to its result; they don't run for a call that was denied or never
    started. ``clock`` returns milliseconds since the epoch.
    """

    hooks: Hooks
    clock: Callable[[], int]

    async def around(self, call: Call, proceed: Proceed) -> Outcome:
        checked = await self.hooks.check_call(call.call_id, call.tool, call.arguments)
        if checked.refusal is not None:
            raise RefusedError(checked.refusal)
        call.given = checked.arguments
        call.by_hook = HookVerdict(allows=checked.allowed, asks=checked.asks)
        call.changed_by_hook = checked.changed
        outcome = await proceed(call)
        if outcome.status is ToolStatus.DENIED or not call.was_started:
            return outcome
        seconds = (self.clock() - call.started_at) / 1_000
        result = await self.hooks.add_to_result(
            call.call_id, call.tool, checked, outcome.result, seconds
        )
        return replace(outcome, result=result)


@frozen
class Allowed:
    """Refuses a call that the permission rules, a hook or the user don't allow.

    Before that, the editor saves the files that the call would change.
    """

    gate: Gate

    async def around(self, call: Call, proceed: Proceed) -> Outcome:
        await self._save_in_editor(call)
        tool = call.tool
        context = call.context
        call.needs = await in_thread(needs_of, tool, call.arguments, context)
        # Restrict the tool to these permissions while it runs.
        context.allowed = frozenset((need.permission, need.pattern) for need in call.needs)
        context.harmless = bool(call.needs) and all(need.harmless for need in call.needs)
        refusal = await self.gate.refusal(
            call.call_id,
            tool,
            call.arguments,
            call.needs,
            by_hook=call.by_hook,
        )
        if refusal is not None:
            raise RefusedError(refusal)
        return await proceed(call)

    async def _save_in_editor(self, call: Call) -> None:
        """Have the editor save the files that the call changes; otherwise unsaved text is lost."""
        context = call.context
        if context.editor is None or not call.tool.traits.writes:
            return
        for path in await in_thread(call.tool.touches, call.arguments, context) or ():
            if path.is_relative_to(context.project) and await context.editor.save(path):
                await asyncio.to_thread(context.reads.note, path)


@frozen
class Opened:
    """Gives a call the view of the sandbox that its permissions allow.

    Also gives it two functions with which it can ask, while it runs, for more grants and for access
    to a host.
    """

    gate: Gate

    async def around(self, call: Call, proceed: Proceed) -> Outcome:
        context = call.context
        command = call.tool.command(call.arguments)
        grants = self.gate.opened_by(call.needs, context.project, call.tool.name)
        every_host = network_need(EVERY_HOST, command, call.needs)
        wants_network = getattr(call.arguments, "network", False)
        if wants_network and self.gate.decide(every_host, "bash").action is Action.ALLOW:
            grants |= Grants(hosts=frozenset({EVERY_HOST}))
        context.view = self.gate.view().opened(grants)
        refused: dict[str, str] = {}

        async def request_grants(wanted: Grants, changed: Sequence[str]) -> Grants | str:
            # Don't ask again about a host that was refused while this command ran.
            unasked = replace(wanted, hosts=wanted.hosts - refused.keys())
            if refused and not unasked:
                return "\n".join(dict.fromkeys(refused[host] for host in sorted(wanted.hosts)))
            return await self.gate.request_grants(
                call.call_id,
                call.tool,
                call.arguments,
                wanted=unasked,
                context=context,
                changed=changed,
            )

        async def allow_host(host: str, _port: int) -> str | None:
            answer = await request_grants(Grants(hosts=frozenset({host})), ())
            if isinstance(answer, Grants):
                return None
            refused[host] = answer
            return answer if note_of(answer) else ""

        context.request_grants = request_grants
        context.allow_host = allow_host
        return await proceed(call)


@frozen
class Announced:
    """Emits `ToolStarted` and resets the call's start time, to exclude the wait for permission.

    ``clock`` returns milliseconds since the epoch.
    """

    channel: EventChannel
    clock: Callable[[], int]

    async def around(self, call: Call, proceed: Proceed) -> Outcome:
        call.started_at = self.clock()
        call.was_started = True
        written = call.changed_by_hook
        if written is None:
            written = call.part.arguments
        self.channel.emit(ToolStarted(call.call_id, call.tool.name, call.title, written))
        return await proceed(call)


class Detached:
    """Runs a call in a task of its own, so that interrupts don't wait for the call's processes.

    ``when_left`` is called each time an interrupted call has finally ended.
    """

    def __init__(self, when_left: Callable[[], None]) -> None:
        self._when_left = when_left
        self._left: set[asyncio.Task[Outcome]] = set()

    async def around(self, call: Call, proceed: Proceed) -> Outcome:
        task = asyncio.get_running_loop().create_task(proceed(call))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            self._left.add(task)
            task.add_done_callback(self._forget)
            raise

    async def aclose(self, seconds: float) -> None:
        """Wait until interrupted calls have ended, but for at most ``seconds``."""
        if self._left:
            await asyncio.wait(self._left, timeout=seconds)

    def _forget(self, task: "asyncio.Task[Outcome]") -> None:
        self._left.discard(task)
        if not task.cancelled():
            task.exception()
        self._when_left()


@frozen
class Diagnosed:
    """Records which files a call changes, so that they are checked before the next request."""

    diagnostics: Diagnostics

    async def around(self, call: Call, proceed: Proceed) -> Outcome:
        writes = call.tool.traits.writes
        written = await in_thread(call.tool.touches, call.arguments, call.context) if writes else ()
        async with self.diagnostics.watching(written):
            return await proceed(call)


@dataclass
class Recorded:
    """Records a call's file changes for checkpoints. Does nothing if ``recorder`` is None."""

    recorder: Recorder | None

    async def around(self, call: Call, proceed: Proceed) -> Outcome:
        async with watched(self.recorder, call.tool, call.arguments, call.context):
            return await proceed(call)


class Run:
    """The last stage of a tool call, which runs the tool."""

    async def around(self, call: Call, proceed: Proceed) -> Outcome:
        del proceed
        call.finished = Outcome.of(await call.tool.run(call.arguments, call.context))
        return call.finished
