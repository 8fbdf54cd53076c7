"""Runs subagents: agents that each do one task for their parent, on a branch of its session.

The branch begins below the parent's conversation, or as a new root if the subagent should not see
it. A subagent shares the parent's client, settings and permissions; it has a context window, step
limit and tools of its own, and ends with its parent. Its last answer is its report, which the task
tool returns as its result. Whether a subagent may be started is decided by the call's permissions.
"""

import asyncio
from collections.abc import Callable
from dataclasses import field, replace
from typing import Generic, Protocol, Self, TypeVar

from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.agent.channel import EventChannel, Questions
from tui_agent.agent.context_keeper import ContextKeeper
from tui_agent.agent.events import (
    AgentEvent,
    CostKnown,
    EntryAppended,
    LiveAnswer,
    PermissionAnswer,
    PermissionRequest,
    RunEnded,
    ToolStarted,
)
from tui_agent.agent.hooks.payloads import SubagentStart
from tui_agent.agent.mcp.hub import McpHub
from tui_agent.agent.permissions import Mode
from tui_agent.agent.ports import Adjustable, AgentPorts
from tui_agent.agent.prompt_head import with_system_prompt
from tui_agent.context.templates import fill
from tui_agent.context.tokens import TokenCounter
from tui_agent.errors import ToolError
from tui_agent.lazy import frozen
from tui_agent.session.effort import Effort
from tui_agent.session.entries import AssistantEntry, SubagentEntry
from tui_agent.session.path_queries import newest
from tui_agent.session.session import Session
from tui_agent.tools.base import SubagentReport
from tui_agent.tools.functions.tool_files import ToolFiles

A = TypeVar("A", bound="WorkingAgent")

MAX_STEPS = 60
"""Maximum number of steps of a subagent if its kind sets no limit."""


@frozen
class FinishedSubagent:
    """A subagent or a race's runner that has ended. Screens use it like a working agent."""

    session: Session
    counter: TokenCounter
    """Counts tokens for the subagent's model."""
    running: bool = False
    live: LiveAnswer | None = None
    channel: EventChannel = field(default_factory=EventChannel)
    """A channel that never emits an event."""


class WorkingAgent(Protocol):
    """The parts of `Agent` that this module uses; it can't import `Agent`, which imports it."""

    session: Session
    ports: AgentPorts
    channel: EventChannel
    questions: Questions
    context: ContextKeeper

    def make_subagent(
        self, session: Session, ports: AgentPorts, *, model: str, mode: str, effort: Effort | None
    ) -> Self: ...

    def adopt(self, adjusted: Adjustable) -> None: ...

    def submit(self, message: str) -> None: ...

    async def wait_idle(self) -> None: ...

    async def aclose(self) -> None: ...


class Subagents(Generic[A]):
    """Starts and continues subagents for one agent, their parent.

    The parent records the files that they change as its own changes.
    """

    def __init__(self, parent: A) -> None:
        self._parent = parent
        self.working: dict[str, A] = {}
        """The working subagents, each by the id of the tool call that started or continued it."""
        self._kinds: dict[str, AgentSpec] = {}
        self._branches: dict[str, Session] = {}

    def adopt(self, adjusted: Adjustable) -> None:
        """Apply changed settings to the working subagents."""
        for call_id, worker in self.working.items():
            worker.adopt(_within(self._kinds[call_id], adjusted))

    def take_branch(self, call_id: str) -> int | None:
        """Return the id of the last entry on the branch of the subagent that worked for a call.

        Returns None if no subagent worked for it. The id is then forgotten: a second call returns
        None.
        """
        branch = self._branches.pop(call_id, None)
        return None if branch is None else branch.leaf

    def names(self) -> dict[str, str]:
        """Return the descriptions of the kinds of subagents, by the kind's name."""
        return {
            spec.name: spec.description for spec in self._parent.ports.subagent_kinds().values()
        }

    async def run(
        self,
        agent: str,
        task: str,
        progress: Callable[[str], None],
        *,
        call_id: str,
        in_conversation: bool = False,
    ) -> SubagentReport:
        """Have a new subagent of the kind ``agent`` do a task for a call; return its report.

        ``progress`` is called with a line for each call that the subagent makes. With
        ``in_conversation`` the subagent sees the conversation, otherwise only the task. Cancelling
        this ends the subagent. Raises ToolError if there is no such kind.
        """
        spec = self._spec(agent)
        session = self._begin(agent, task, call_id, in_conversation=in_conversation)
        worker = self._make(spec, session, in_conversation=in_conversation)
        if in_conversation:
            tools = ""
            if spec.tools is not None:
                tools = f" You may use only these tools: {', '.join(spec.tools)}."
            task = fill(self._parent.ports.prompt("task_in_conversation"), task=task, tools=tools)
        return await self._work(worker, spec, task, progress, call_id=call_id)

    async def resume(
        self, branch: int, task: str, progress: Callable[[str], None], *, call_id: str
    ) -> SubagentReport:
        """Have an earlier subagent do another task below the entry ``branch`` of its branch.

        Returns its report; otherwise like `run`. Raises ToolError if the entry is on no subagent's
        branch.
        """
        begun = self._begun(branch)
        spec = self._spec(begun.agent)
        worker = self._make(
            spec, self._parent.session.beside(branch), in_conversation=begun.parent_id is not None
        )
        return await self._work(worker, spec, task, progress, call_id=call_id)

    def agent_of(self, branch: int) -> str:
        """Return the name of a subagent's kind; ``branch`` is an entry on the subagent's branch.

        Raises ToolError if the entry is on no subagent's branch.
        """
        return self._begun(branch).agent

    def _begun(self, branch: int) -> SubagentEntry:
        parent = self._parent.session
        spine = parent.reader.spine()
        first = None
        if branch in spine:
            first = spine.subagent_of(branch)
        for entry in parent.entries([first or 0]):
            if isinstance(entry, SubagentEntry):
                return entry
        raise ToolError(
            f"#{branch} is not an entry of a subagent. Use the number at the end of the subagent's report."
        )

    def _spec(self, agent: str) -> AgentSpec:
        specs = self._parent.ports.subagent_kinds()
        spec = specs.get(agent)
        if spec is None:
            raise ToolError(f"There is no agent {agent!r}. Use one of: {', '.join(specs)}.")
        return spec

    async def _work(
        self,
        worker: A,
        spec: AgentSpec,
        task: str,
        progress: Callable[[str], None],
        *,
        call_id: str,
    ) -> SubagentReport:
        """Have a subagent do a task, close it and return its report.

        The report's ``error`` says why it stopped early, None if it did not.
        """
        session = worker.session
        self.working[call_id] = worker
        self._kinds[call_id] = spec
        self._branches[call_id] = session
        answer = ""
        ended = RunEnded("interrupted")

        def hear(event: AgentEvent) -> None:
            nonlocal answer, ended
            match event:
                case ToolStarted(tool=tool, title=title):
                    progress(f"● {tool} {title}\n")
                case EntryAppended(entry=AssistantEntry() as entry) if entry.text:
                    answer = entry.text
                case RunEnded():
                    ended = event
                case _:
                    pass

        async def ask(question: PermissionRequest) -> PermissionAnswer:
            title = f"{spec.name}: {question.title}"
            return await self._parent.questions.forward(replace(question, title=title))

        unsubscribe = worker.channel.subscribe(hear)
        end_relay = worker.questions.relay(ask)
        hooks = self._parent.ports.hooks
        hooks.tell(SubagentStart(about=hooks.about, agent=spec.name, task=task))
        try:
            worker.submit(task)
            await worker.wait_idle()
            await asyncio.sleep(0)
        finally:
            del self.working[call_id], self._kinds[call_id]
            unsubscribe()
            end_relay()
            await worker.aclose()
            self._parent.channel.emit(CostKnown())
            session.release()
        problem = ended.error
        if not problem and ended.reason in {"interrupted", "step_limit", "length", "unmarked"}:
            problem = ended.reason
        return SubagentReport(answer, session.leaf, ended.steps, problem)

    def _begin(self, agent: str, task: str, call_id: str, *, in_conversation: bool) -> Session:
        """Append the first entry of the subagent's branch; return a session at that entry.

        With ``in_conversation``, the branch begins at the parent of the answer that contains the
        call; otherwise it begins at a new root.
        """
        parent = self._parent.session
        asked = newest(
            parent.active_path(),
            AssistantEntry,
            where=lambda answer: call_id in [call.call_id for call in answer.tool_calls],
        )
        session = parent.beside(asked.parent_id if in_conversation and asked is not None else None)
        call = parent.leaf if asked is None else asked.id
        session.append(SubagentEntry(agent=agent, task=task, call_id=call_id, call=call))
        return session

    def _make(self, spec: AgentSpec, session: Session, *, in_conversation: bool) -> A:
        """Return the agent for a subagent of this kind.

        With ``in_conversation``, prompt, tools, model, effort and mode are the parent's, so that
        the subagent's requests begin with the same bytes and are cached. In that case, the kind
        only decides the rules, the step limit, which calls are refused, and whether it works in
        plan mode.
        """
        parent = self._parent
        ports = parent.ports
        model = parent.context.model
        mode = parent.context.mode
        effort = parent.context.chosen_effort
        own = replace(
            ports,
            is_subagent=True,
            titles=False,
            checkpoints=None,
            pause_after=None,
            # Check and format apply only to the answer that ends the parent's run.
            check=None,
            answer_format=None,
        )
        if in_conversation:
            own.kind = spec
            own.cache_session = ports.cache_session or parent.session.id
        else:
            chosen = spec.choose(ports.own_tools)
            own.tools = tuple(tool for tool in chosen if not tool.traits.starts_agents)
            own.tool_files = ToolFiles()
            own.prompt = with_system_prompt(spec, ports.prompt)
            own.cache_session = f"{session.id}.{session.leaf}"
            # A kind with a list of tools may use only those; MCP servers' tools are never in it.
            own.mcp = ports.mcp if spec.tools is None else McpHub()
            model = spec.model or model
            effort = spec.effort or effort
            if ports.knowledge.primary(mode) is not None:
                # The mode names one of the user's own agents, which doesn't apply to a subagent.
                mode = Mode.BUILD
        if spec.plans_only:
            mode = Mode.PLAN
        own.adopt(_within(spec, ports.adjustable()))
        return parent.make_subagent(session, own, model=model, mode=mode, effort=effort)


def _within(spec: AgentSpec, settings: Adjustable) -> Adjustable:
    """Return ``settings`` with an agent kind's rules added, and the lower of both step limits."""
    steps = min(settings.max_steps, spec.max_steps or MAX_STEPS)
    return replace(settings, rules=(*settings.rules, *spec.rules), max_steps=steps)
