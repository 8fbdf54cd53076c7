"""Runs the tool calls of one answer and appends their results.

Every call receives exactly one result. All calls pass the same stages (`agent/calls`); an error or
an interrupt on the way becomes the call's result. Consecutive calls that only read run in parallel;
others run one by one in the order of the answer.

Creates and owns what the calls of one session share: the gate (permissions), the jobs, the
diagnostics and the watch for repetition. Checkpoints of changed files are appended by `Loop`.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from tui_agent.agent.calls.call import (
    GETS_THROUGH,
    Call,
    Outcome,
    Stage,
    StopRunError,
    linked,
    outcome_of,
)
from tui_agent.agent.calls.contexts import ToolContexts
from tui_agent.agent.calls.repetition import RepetitionWatch
from tui_agent.agent.calls.stages import (
    Allowed,
    Announced,
    Detached,
    Diagnosed,
    Hooked,
    Opened,
    Recorded,
    Run,
    Understood,
)
from tui_agent.agent.channel import Journal, Questions
from tui_agent.agent.checkpoints.rewind import FileRewind
from tui_agent.agent.context_keeper import ContextKeeper
from tui_agent.agent.diagnostics.diagnostics import Diagnostics
from tui_agent.agent.events import ToolFinished
from tui_agent.agent.gate import Gate
from tui_agent.agent.job_reports import make_jobs
from tui_agent.agent.ports import AgentPorts
from tui_agent.errors import ToolError
from tui_agent.session.entries import (
    INTERRUPTED_OUTPUT,
    SystemEntry,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    is_by_user,
)
from tui_agent.session.path_queries import newest
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.base import SubagentHost, Tool, ToolResult
from tui_agent.tools.questions import UserContact
from tui_agent.tools.registry import find_tool

MAX_CALLS = 64
"""Maximum number of calls that are run for one answer."""
TOO_MANY = f"Not run: one answer may contain {MAX_CALLS} calls. Make the others in the next answer."
NO_PROBLEMS: Mapping[str, str] = {}
_REFUSED_AT_ONCE = 256
"""Maximum number of results of refused calls that are stored in one transaction."""
_LEFT_SECONDS = 2
"""Maximum seconds for which `aclose` waits until interrupted tools have ended."""


class ToolRunner:
    """Runs the tool calls of one session."""

    def __init__(  # noqa: PLR0913 - what a call may use
        self,
        journal: Journal,
        ports: AgentPorts,
        questions: Questions,
        *,
        keeper: ContextKeeper,
        files: FileRewind,
        person: UserContact,
        subagents: SubagentHost | None,
        propose: Callable[[str], str] | None = None,
    ) -> None:
        """Create a runner for the tool calls of one session.

        ``subagents`` starts subagents; None in a subagent. ``propose`` proposes a line for the
        memory; None if there is no memory.
        """
        self._journal = journal
        self._ports = ports
        self._keeper = keeper
        self._subagents = subagents
        channel = journal.channel
        self.jobs = make_jobs(channel.emit, ports.sandbox)
        """The jobs: commands that run in the background."""
        self.gate = Gate(ports, channel, questions, lambda: keeper.mode, self._users_texts)
        """Decides which calls may run, and keeps the rules that the user added in this session."""
        self.diagnostics = Diagnostics(ports, channel.emit)
        """Runs the checkers on files that the calls have written."""
        self.repetition = RepetitionWatch(
            journal.session,
            self.gate,
            channel,
            questions,
            prompt=ports.prompt,
            problem_of=self.problem_of,
        )
        """Watches for doom loops (repeated calls) and repetitive answers."""
        contexts = ToolContexts(
            journal,
            ports,
            self.gate,
            jobs=self.jobs,
            keeper=keeper,
            person=person,
            subagents=subagents,
            propose=propose,
        )
        self._detached = Detached(files.keep_changes)
        self.recorded = Recorded(files.recorder)
        """Records the changes that the calls make to files."""
        self._proceed = linked(self._stages(contexts))

    def _stages(self, contexts: ToolContexts) -> tuple[Stage, ...]:
        """Return the stages that every call passes through, the outermost first."""
        ports = self._ports
        return (
            self.repetition,
            Understood(contexts.make, self.jobs),
            Hooked(ports.hooks, ports.clock),
            Allowed(self.gate),
            Opened(self.gate),
            Announced(self._journal.channel, ports.clock),
            self._detached,
            Diagnosed(self.diagnostics),
            self.recorded,
            Run(),
        )

    def share(self, parent: "ToolRunner") -> None:
        """Use the parent agent's list of session rules and its record of changed files.

        Called in a subagent: a rule that the user adds in either agent then applies to both.
        """
        self.gate.session_rules = parent.gate.session_rules
        self.recorded.recorder = parent.recorded.recorder

    async def run(
        self, parts: Sequence[ToolCallPart], problems: Mapping[str, str] = NO_PROBLEMS
    ) -> None:
        """Run the calls of one answer; append exactly one result for each, even if this raises.

        ``problems`` gives, by call id, the output of calls that are not run. Raises StopRunError
        if the user ends the run.
        """
        calls = [self._prepare(part) for part in parts]
        for call in calls:
            call.problem = problems.get(call.call_id, call.problem)
        try:
            for is_read_only, group in groupby(calls[:MAX_CALLS], key=attrgetter("is_read_only")):
                if is_read_only:
                    await self._run_together(list(group))
                    continue
                for call in group:
                    await self._run_one(call)
            await self._refuse_in_parts(calls[MAX_CALLS:])
        except BaseException:
            left = [call for call in calls if not call.answered]
            self._append(*[(call, call.finished or _interrupted(call)) for call in left])
            raise

    def refuse(self, parts: Sequence[ToolCallPart], message: str) -> None:
        """For each call, append a result with the status "denied" and this message."""
        refused = Outcome(ToolStatus.DENIED, ToolResult(message))
        self._append(*((self._prepare(part), refused) for part in parts))

    async def aclose(self) -> None:
        """Wait until interrupted tools have ended, for at most 2 seconds."""
        await self._detached.aclose(_LEFT_SECONDS)

    def problem_of(self, tool: str, arguments: str) -> str:
        """Return why a tool (by name) doesn't accept these arguments (JSON text); "" if it does."""
        try:
            found = find_tool(tool, self._known_tools(), self._offered_names)
            parse_arguments(found, arguments)
        except ToolError as error:
            return str(error)
        return ""

    def _users_texts(self) -> list[str]:
        """Return the texts of the user's messages on the session path."""
        texts: list[str] = []
        for entry in self._journal.session.active_path():
            if is_by_user(entry):
                texts.append(entry.text)
        return texts

    def _prepare(self, part: ToolCallPart) -> Call:
        call = Call(part)
        try:
            tool = find_tool(part.tool, self._known_tools(), self._offered_names)
            self._check_kind(tool)
            call.found, call.given = tool.resolve(parse_arguments(tool, part.arguments))
            call.forwarded = call.found is not tool
        except GETS_THROUGH:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever reading it raises is the call's result
            call.problem = outcome_of(call, error).result.output
        return call

    def _offered_names(self) -> Collection[str]:
        """Return the names of the tools that the model was offered in the last request."""
        head = newest(self._journal.session.active_path(), SystemEntry)
        if head is None:
            return {tool.name for tool in self._known_tools()}
        return {schema.name for schema in head.tools}

    def _check_kind(self, tool: Tool[Any]) -> None:
        """Raise ToolError for a tool that this kind of subagent isn't allowed to use.

        The model is offered these tools anyway, so that the prompt cache stays valid.
        """
        kind = self._ports.kind
        if kind is not None and not kind.allows(tool.name):
            only = ""
            if kind.tools is not None:
                only = f", only: {', '.join(kind.tools)}"
            raise ToolError(f"Not run: {kind.name} can't use {tool.name}{only}.")

    def _known_tools(self) -> tuple[Tool[Any], ...]:
        tools = (*self._ports.own_tools, *self._ports.of_servers(self._ports.mcp.known()))
        chosen = self._ports.knowledge.primary(self._keeper.mode)
        if chosen is None:
            return tools
        return chosen.choose(tools)

    async def _run_together(self, calls: list[Call]) -> None:
        places = asyncio.Semaphore(self._ports.parallel_calls)

        async def run(call: Call) -> None:
            async with places:
                await self._run_one(call)

        tasks = [asyncio.ensure_future(run(call)) for call in calls]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _run_one(self, call: Call) -> None:
        call.started_at = self._ports.clock()
        try:
            outcome = await self._proceed(call)
        except StopRunError as stopped:
            self._append((call, Outcome(ToolStatus.DENIED, ToolResult(stopped.result))))
            raise
        self._append((call, outcome))

    async def _refuse_in_parts(self, calls: Sequence[Call]) -> None:
        refused = Outcome(ToolStatus.DENIED, ToolResult(TOO_MANY))
        for start in range(0, len(calls), _REFUSED_AT_ONCE):
            self._append(*((call, refused) for call in calls[start : start + _REFUSED_AT_ONCE]))
            await asyncio.sleep(0)

    def _append(self, *ended: tuple[Call, Outcome]) -> None:
        if ended:
            self._journal.append_many([self._entry(call, outcome) for call, outcome in ended])

    def _entry(self, call: Call, outcome: Outcome) -> ToolResultEntry:
        call.answered = True
        now = self._ports.clock()
        result = outcome.result
        metadata = result.metadata
        branch = None
        if self._subagents is not None:
            branch = self._subagents.take_branch(call.call_id)
        if branch is not None:
            # The branch of a failed task can be read too.
            metadata = metadata.model_copy(update={"branch": branch})
        title = result.title or call.title
        if call.forwarded:
            title = f"{call.tool.name} {title}".rstrip()
        entry = ToolResultEntry(
            call_id=call.call_id,
            tool=call.part.tool,
            status=outcome.status,
            output=result.output,
            attachments=result.attachments,
            full_output=result.full_output,
            title=title,
            metadata=metadata,
            started_at=call.started_at or now,
            ended_at=now,
        )
        seconds = (now - entry.started_at) / 1000
        self._journal.channel.emit(
            ToolFinished(call.call_id, entry.tool, outcome.status.value, metadata, seconds)
        )
        return entry


def _interrupted(call: Call) -> Outcome:
    text = INTERRUPTED_OUTPUT
    if call.live.strip():
        text = f"{INTERRUPTED_OUTPUT}\n{call.live}"
    return Outcome(ToolStatus.INTERRUPTED, ToolResult(text))
