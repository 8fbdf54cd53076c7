"""Runs the tool calls of one answer: parse, permission, execute, truncate, append the result.

Every call gets exactly one result, whatever happens: a call that cannot be understood is answered to the model, a
denied one says so, and an interrupt leaves "interrupted" behind. Calls that only read run side by side; everything
else runs in the order the model asked.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from tui_agent.agent.archive import SessionArchive
from tui_agent.agent.channel import Journal, Questions
from tui_agent.agent.checkpoints.recorder import run_watched
from tui_agent.agent.checkpoints.rewind import FileRewind
from tui_agent.agent.context_keeper import ContextKeeper
from tui_agent.agent.diagnostics.diagnostics import Diagnostics
from tui_agent.agent.doom_loop import (
    MAX_REPEATED_ANSWERS,
    DoomLoop,
    LoopRules,
    Repetition,
    call_key,
    detect,
    repeated_answers,
    was_refused,
)
from tui_agent.agent.events import (
    Decision,
    Notice,
    PermissionRequest,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from tui_agent.agent.gate import Gate, needs_of
from tui_agent.agent.hooks.hooks import CheckedCall
from tui_agent.agent.permissions import Action
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.truncation import limits_for
from tui_agent.context.view import resolve
from tui_agent.errors import ToolError
from tui_agent.lazy import dataclass
from tui_agent.permission import Permission, PermissionNeed, with_note
from tui_agent.processes.jobs import Jobs
from tui_agent.sandbox.view import EVERY_HOST, Grants
from tui_agent.session.entries import (
    INTERRUPTED_OUTPUT,
    AssistantEntry,
    Entry,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.base import SubagentHost, Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.paths import explain
from tui_agent.tools.reads import FileReads
from tui_agent.tools.registry import find_tool, tool_traits

log = logging.getLogger(__name__)

MAX_CALLS = 64
"""Calls of one answer that are run."""
TOO_MANY = f"Not run: one answer may make {MAX_CALLS} calls. Make what is left in the next one."
_REFUSED_AT_ONCE = 256
LIVE_OUTPUT_CHARS = 20_000
"""Characters of a running call's output that are kept for its result when it is interrupted."""

ANSWER_PATTERN = "repeated answer"
"""The name of an answer that keeps repeating itself in permission rules."""
_REPEATED_ANSWER = PermissionNeed(Permission.DOOM_LOOP, ANSWER_PATTERN)


class StopRunError(Exception):
    """The run is to end; the message is one sentence for a person."""


@dataclass(slots=True)
class _Call:
    """One call on its way."""

    part: ToolCallPart
    tool: Tool[Any] | None = None
    arguments: ToolInput | None = None
    error: str | None = None
    started_at: int = 0
    live: str = ""
    answered: bool = False


class ToolRunner:
    """Runs calls for one session and remembers the user's permissions in it."""

    def __init__(
        self,
        journal: Journal,
        ports: AgentPorts,
        questions: Questions,
        jobs: Jobs,
        keeper: ContextKeeper,
        files: FileRewind,
    ) -> None:
        self._journal = journal
        self._session = journal.session
        self._ports = ports
        self._channel = journal.channel
        self._questions = questions
        self._reads = FileReads()
        self._archive = SessionArchive(self._session, ports.blob)
        self._leftovers: set[asyncio.Task[ToolResult]] = set()
        self._allowed_loops: set[str] = set()
        self._keeper = keeper
        self._files = files
        self.gate = Gate(ports, self._channel, questions, lambda: keeper.mode, self._said)
        self.subagents: SubagentHost | None = None
        """Starts subagents, which share the rules that are kept here; None in a subagent."""
        self.jobs = jobs
        self.diagnostics = Diagnostics(ports, self._channel.emit)
        """Checks written files."""
        self.recorder = files.recorder
        """Watches calls' changes to files; None where nobody does."""

    async def run(self, parts: Sequence[ToolCallPart]) -> None:
        """Run the calls of one answer and append one result for each, whatever happens: cancelled, StopRunError."""
        calls = [self._prepare(part) for part in parts[:MAX_CALLS]]
        calls += [_Call(part, error=TOO_MANY) for part in parts[MAX_CALLS:]]
        try:
            for parallel, group in groupby(
                calls[:MAX_CALLS], key=lambda call: call.tool is not None and call.tool.read_only
            ):
                if parallel:
                    await self._run_together(list(group))
                else:
                    for call in group:
                        await self._run_one(call)
            for start in range(MAX_CALLS, len(calls), _REFUSED_AT_ONCE):
                rest = calls[start : start + _REFUSED_AT_ONCE]
                self._append(*((call, ToolStatus.DENIED, ToolResult(TOO_MANY)) for call in rest))
                await asyncio.sleep(0)
        except (asyncio.CancelledError, StopRunError):
            left = [call for call in calls if not call.answered]
            texts = [f"{INTERRUPTED_OUTPUT}\n{call.live}" if call.live.strip() else INTERRUPTED_OUTPUT for call in left]
            ended = zip(left, texts, strict=True)
            self._append(*((call, ToolStatus.INTERRUPTED, ToolResult(text)) for call, text in ended))
            raise

    def refuse(self, parts: Sequence[ToolCallPart], message: str) -> None:
        self._append(*((self._prepare(part), ToolStatus.DENIED, ToolResult(message)) for part in parts))

    async def aclose(self) -> None:
        if self._leftovers:
            await asyncio.wait(self._leftovers, timeout=2)

    def _said(self) -> list[str]:
        path = self._session.active_path()
        return [entry.text for entry in path if isinstance(entry, UserEntry) and entry.synthetic is None]

    # -- one call -------------------------------------------------------------------------------------------

    def _prepare(self, part: ToolCallPart) -> _Call:
        call = _Call(part)
        try:
            tool, kind = find_tool(part.tool, self._known_tools()), self._ports.kind
            # The model is offered more tools than its kind has, so that the provider's cache holds.
            if kind is not None and not kind.allows(tool.name):
                has = ", ".join(kind.tools or ())
                return _Call(part, error=f"Not run: {tool.name} is not for {kind.name}, which has: {has}.")
            call.tool, call.arguments = tool.resolve(parse_arguments(tool, part.arguments))
        except ToolError as error:
            call.error = str(error)
        return call

    def _known_tools(self) -> tuple[Tool[Any], ...]:
        tools = (*self._ports.own_tools, *self._ports.of_servers(self._ports.mcp.known()))
        chosen = self._ports.knowledge.primary(self._keeper.mode)
        return tools if chosen is None else chosen.choose(tools)

    async def _run_together(self, calls: list[_Call]) -> None:
        places = asyncio.Semaphore(self._ports.parallel_calls)

        async def run(call: _Call) -> None:
            async with places:
                await self._run_one(call)

        tasks = [asyncio.ensure_future(run(call)) for call in calls]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _run_one(self, call: _Call) -> None:
        call.started_at = self._ports.clock()
        if (refusal := await self._loop_refusal(call)) is not None:
            self._append((call, ToolStatus.DENIED, ToolResult(refusal)))
            return
        if call.tool is None or call.arguments is None:
            self._append((call, ToolStatus.ERROR, ToolResult(call.error or "The call could not be read.")))
            return
        context = self._context(call)
        # Its needs depend on files that jobs have made, and it sees those.
        await self.jobs.look()
        try:
            checked = await self._ports.hooks.check_call(call.part.call_id, call.tool, call.arguments)
            refusal = checked.refusal or await self._refusal(call, call.tool, checked, context)
            if refusal is not None:
                self._append((call, ToolStatus.DENIED, ToolResult(refusal)))
                return
            # How long the user thought about it is not how long it took.
            call.started_at = self._ports.clock()
            result = await self._execute(call, call.tool, checked, context)
        except (ToolError, OSError) as error:
            self._append((call, ToolStatus.ERROR, _failed(call.tool, error)))
        else:
            self._append((call, ToolStatus.ERROR if result.is_error else ToolStatus.COMPLETED, result))

    async def _refusal(self, call: _Call, tool: Tool[Any], checked: CheckedCall, context: ToolContext) -> str | None:
        call.arguments = checked.arguments
        if context.editor is not None and tool.traits.writes:
            # The editor saves files a call is about to change, so that it changes the text the person sees.
            for path in await asyncio.to_thread(tool.touches, checked.arguments, context) or ():
                if path.is_relative_to(context.project) and await context.editor.save(path):
                    await asyncio.to_thread(context.reads.note, path)
        needs = await asyncio.to_thread(needs_of, tool, checked.arguments, context)
        # Its needs by the time it runs may be no more than these.
        context.allowed = frozenset((need.permission, need.pattern) for need in needs)
        context.harmless = bool(needs) and all(need.harmless for need in needs)
        refusal = await self.gate.refusal(
            call.part.call_id, tool, checked.arguments, needs, allowed_by_hook=checked.allowed
        )
        if refusal is None:
            self._open(call, tool, checked.arguments, needs, context)
        return refusal

    def _open(
        self, call: _Call, tool: Tool[Any], arguments: ToolInput, needs: Sequence[PermissionNeed], context: ToolContext
    ) -> None:
        command = tool.command(arguments)
        grants = self.gate.opened_by(needs, context.project, tool.name)
        every_host = PermissionNeed(Permission.NETWORK, EVERY_HOST, aliases=(command,))
        if getattr(arguments, "network", False) and self.gate.decide(every_host, "bash").action is Action.ALLOW:
            grants |= Grants(hosts=frozenset({EVERY_HOST}))
        context.view = self.gate.view().opened(grants)

        refused: dict[str, str] = {}

        async def request_grants(wanted: Grants, _command: str) -> Grants | str:
            # Nobody is asked twice about a host: the command waited for the answer.
            unasked = replace(wanted, hosts=wanted.hosts - refused.keys())
            if refused and not unasked:
                return next(iter(refused.values()))
            return await self.gate.request_grants(call.part.call_id, tool, arguments, unasked, context)

        async def allow_host(host: str, _port: int) -> bool:
            answer = await request_grants(Grants(hosts=frozenset({host})), command)
            if isinstance(answer, str):
                refused[host] = answer
            return isinstance(answer, Grants)

        context.request_grants, context.allow_host = request_grants, allow_host

    async def _execute(self, call: _Call, tool: Tool[Any], checked: CheckedCall, context: ToolContext) -> ToolResult:
        """Run a call that may; a failure comes back as a result, so that hooks see that too."""
        title = tool.title(checked.arguments)
        written = call.part.arguments if checked.changed is None else checked.changed
        self._channel.emit(ToolStarted(call.part.call_id, tool.name, title, written))
        began = self._ports.clock()
        try:
            result = await self._run_tool(tool, checked.arguments, context)
        except (ToolError, OSError) as error:
            result = _failed(tool, error)
        seconds = (self._ports.clock() - began) / 1_000
        return await self._ports.hooks.add_to_result(call.part.call_id, tool, checked, result, seconds)

    async def _run_tool(self, tool: Tool[Any], arguments: ToolInput, context: ToolContext) -> ToolResult:
        async def run() -> ToolResult:
            written = await asyncio.to_thread(tool.touches, arguments, context) if tool.traits.writes else ()
            async with self.diagnostics.watching(written):
                return await run_watched(self.recorder, tool, arguments, context)

        task = asyncio.ensure_future(run())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # The tool takes its time to end its processes; the user must not wait for that.
            task.cancel()
            self._leftovers.add(task)
            task.add_done_callback(self._forget)
            raise

    def _forget(self, task: "asyncio.Task[ToolResult]") -> None:
        self._leftovers.discard(task)
        if not task.cancelled():
            task.exception()
        self._files.keep_changes()

    def _context(self, call: _Call) -> ToolContext:
        def report(text: str) -> None:
            call.live = (call.live + text)[-LIVE_OUTPUT_CHARS:]
            self._channel.emit(ToolOutput(call.part.call_id, text))

        limits, kept = self._ports.directory.limits(self._keeper.model), self._ports.settings.truncation
        return ToolContext(
            cwd=self._ports.cwd,
            project=self._ports.project,
            stands_for=self._ports.stands_for,
            limits=limits_for(limits.window, self._keeper.room_left(), kept),
            reads=self._reads,
            put_blob=self._ports.put_blob,
            report=report,
            environment=self._ports.environment,
            sandbox=self._ports.sandbox,
            view=self.gate.view(),
            notify=lambda text: self._channel.emit(Notice(text, "warning")),
            vision=limits.vision,
            archive=self._archive,
            in_view=self._reads_in_view if self._ports.settings.truncation.short_rereads else lambda _file: (),
            jobs=self.jobs,
            call_id=call.part.call_id,
            subagents=self.subagents,
            editor=self._ports.editor,
            verdict=lambda need: self.gate.decide(need).action.value,
        )

    def _reads_in_view(self, file: str) -> list[ToolResultEntry]:
        """Return the reads of a file that the model still sees as they were, newest first."""
        view, traits = resolve(self._session.active_path()), tool_traits()
        answered = view.answered()
        return [
            entry
            for entry in reversed(view.entries)
            if isinstance(entry, ToolResultEntry)
            and entry.metadata.path == file
            and traits[entry.tool].reads
            and entry.status is ToolStatus.COMPLETED
            and entry.id in answered
            and view.is_open(entry.id)
        ]

    # -- doom loops -----------------------------------------------------------------------------------------

    async def _loop_refusal(self, call: _Call) -> str | None:
        """Return the refusal of a call that goes round in a circle, None if it may; raises StopRunError."""
        path = self._session.active_path()
        rules = LoopRules(frozenset(self._allowed_loops), lambda tool: tool_traits()[tool].writes, self.problem_of)
        loop = detect(path, call.part.call_id, rules)
        if loop is None:
            return None
        need = PermissionNeed(Permission.DOOM_LOOP, loop.pattern)
        action = self.gate.decide(need).action
        if action is Action.ALLOW:
            return None
        note = f"Not run: {loop.reason}. Don't repeat it; do something different, or tell the user what is in the way."
        if action is Action.DENY:
            if was_refused(path, call.part.call_id, rules):
                self._append((call, ToolStatus.DENIED, ToolResult(note)))
                raise StopRunError(f"Stopped: {loop.reason}.")
            return note
        answer = await self._questions.ask(
            PermissionRequest(
                call_id=call.part.call_id,
                tool=call.part.tool,
                title=call.tool.title(call.arguments) if call.tool and call.arguments else call.part.arguments[:80],
                needs=(need,),
                reason=loop.reason,
                rules=(f"allow doom_loop: {loop.pattern}",),
                loop=self._outputs_of(loop, path),
            )
        )
        if answer.decision is Decision.STOP:
            self._append((call, ToolStatus.DENIED, ToolResult(note)))
            raise StopRunError(f"Stopped: {loop.reason}.")
        if answer.decision is Decision.SESSION:
            self._allowed_loops.update(loop.keys)
        if answer.decision is Decision.DENY:
            return with_note(note, answer.note)
        return None

    @property
    def stops_repetition(self) -> bool:
        allowed = ANSWER_PATTERN in self._allowed_loops
        return not allowed and self.gate.decide(_REPEATED_ANSWER).action is not Action.ALLOW

    async def after_repetition(self, answer: AssistantEntry, found: Repetition) -> str:
        """Ask about an answer stopped for repeating itself; returns the note for the model, raises StopRunError."""
        before = repeated_answers(self._session.active_path())
        nobody = self.gate.decide(_REPEATED_ANSWER).action is Action.DENY
        if before >= (1 if nobody else MAX_REPEATED_ANSWERS - 1):
            raise StopRunError(f"Stopped: {found.reason}.")
        if nobody:
            self._channel.emit(Notice(f"Stopped the answer: {found.reason}.", "warning"))
            return self._ports.prompt("repeating")
        asked = PermissionRequest(
            call_id=f"answer-{answer.id}",
            tool="answer",
            title=f"#{answer.id}, stopped",
            question="The model is repeating itself. Let it continue?",
            needs=(_REPEATED_ANSWER,),
            reason=found.amount,
            rules=(f"allow doom_loop: {ANSWER_PATTERN}",),
            loop=(found.unit, found.unit),
            once="yes, continue from there",
        )
        reply = await self._questions.ask(asked)
        if reply.decision is Decision.STOP:
            raise StopRunError(f"Stopped: {found.reason}.")
        if reply.decision is Decision.DENY:
            return with_note(self._ports.prompt("repeating").strip(), reply.note)
        if reply.decision is Decision.SESSION:
            self._allowed_loops.add(ANSWER_PATTERN)
        return self._ports.prompt("continue")

    def problem_of(self, tool: str, arguments: str) -> str:
        try:
            parse_arguments(find_tool(tool, self._known_tools()), arguments)
        except ToolError as error:
            return str(error)
        return ""

    @staticmethod
    def _outputs_of(loop: DoomLoop, path: Sequence[Entry]) -> tuple[str, ...]:
        asked = {
            call.call_id
            for entry in path
            if isinstance(entry, AssistantEntry)
            for call in entry.tool_calls
            if call_key(call.tool, call.arguments) in loop.keys
        }
        results = [entry.output for entry in path if isinstance(entry, ToolResultEntry) and entry.call_id in asked]
        return tuple(results[-len(loop.keys) * (loop.count - 1) :])

    # -- result ---------------------------------------------------------------------------------------------

    def _append(self, *results: tuple[_Call, ToolStatus, ToolResult]) -> None:
        if results:
            self._journal.append_many([self._ended(*each) for each in results])

    def _ended(self, call: _Call, status: ToolStatus, result: ToolResult) -> ToolResultEntry:
        call.answered = True
        now = self._ports.clock()
        title = result.title
        if not title and call.tool is not None and call.arguments is not None:
            title = call.tool.title(call.arguments)
        metadata = result.metadata
        branch = self.subagents.branch_of(call.part.call_id) if self.subagents is not None else None
        if branch is not None:
            # A task that came to nothing is read on its branch all the same.
            metadata = metadata.model_copy(update={"branch": branch})
        entry = ToolResultEntry(
            call_id=call.part.call_id,
            tool=call.part.tool,
            status=status,
            output=result.output,
            attachments=result.attachments,
            full_output=result.full_output,
            title=title,
            metadata=metadata,
            started_at=call.started_at or now,
            ended_at=now,
        )
        seconds = (now - entry.started_at) / 1000
        self._channel.emit(ToolFinished(call.part.call_id, call.part.tool, status.value, metadata, seconds))
        return entry


def _failed(tool: Tool[Any], error: ToolError | OSError) -> ToolResult:
    """Return the result of a call that failed. A refusal of the system is an answer to the call and ends no run."""
    if isinstance(error, OSError):
        log.warning("%s failed", tool.name, exc_info=error)
        error = explain(error, str(error.filename or tool.name))
    return ToolResult(str(error), is_error=True)
