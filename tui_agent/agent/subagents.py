"""Runs subagents: each an agent of its own on a branch of the session, which begins at the conversation or at nothing.

It shares the parent's client, settings and answers to permission questions; it has its own context window, step limit
and tools, and ends with its parent. What comes back is its last answer.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.agent.channel import Questions
from tui_agent.agent.events import (
    AgentEvent,
    CostKnown,
    EntryAppended,
    LiveAnswer,
    PermissionAsked,
    RunEnded,
    ToolStarted,
)
from tui_agent.agent.mcp.hub import McpHub
from tui_agent.agent.permissions import Mode
from tui_agent.agent.ports import Adjustable
from tui_agent.agent.preparing import subagents_of
from tui_agent.context.templates import fill
from tui_agent.context.tokens import TokenCounter
from tui_agent.errors import ToolError
from tui_agent.lazy import dataclass
from tui_agent.session.entries import AssistantEntry, Entry, SubagentEntry
from tui_agent.session.session import Session
from tui_agent.tools.base import SubagentReport
from tui_agent.tools.functions.tool_files import ToolFiles

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent

MAX_STEPS = 60
"""Steps of a subagent whose kind names no limit."""


@dataclass(frozen=True, slots=True)
class FinishedSubagent:
    """The branch of a subagent that has ended: shown like one that works."""

    session: Session
    counter: TokenCounter
    """Counts in the tokens of its model."""
    running: bool = False
    live: LiveAnswer | None = None

    def subscribe(self, callback: Callable[[AgentEvent], None]) -> Callable[[], None]:
        """Nothing happens any more."""
        del callback
        return lambda: None


class Subagents:
    """Starts subagents for one agent. What they change in files is the parent's to take back."""

    def __init__(self, parent: "Agent") -> None:
        self._parent = parent
        self.working: dict[str, Agent] = {}
        """The subagents that work now, by the call they work on."""
        self._kinds: dict[str, AgentSpec] = {}
        self._branches: dict[str, Session] = {}

    def adopt(self, adjusted: Adjustable) -> None:
        """Have the subagents that work now follow changed settings, each as far as its kind lets it."""
        for call_id, worker in self.working.items():
            worker.adopt(_within(self._kinds[call_id], adjusted))

    def branch_of(self, call_id: str) -> int | None:
        """Return the last entry of the subagent that was started for a call, None when none was; asked once."""
        branch = self._branches.pop(call_id, None)
        return None if branch is None else branch.leaf

    def names(self) -> dict[str, str]:
        return {spec.name: spec.description for spec in subagents_of(self._parent.ports).values()}

    async def run(
        self, agent: str, task: str, report: Callable[[str], None], *, call_id: str, in_conversation: bool = False
    ) -> SubagentReport:
        """Have a subagent do a task for a call; cancelling ends it and everything it started.

        Raises:
            ToolError: there is no such kind, or it cannot go on from a conversation.
        """
        specs = subagents_of(self._parent.ports)
        spec = specs.get(agent)
        if spec is None:
            raise ToolError(f"There is no agent {agent!r}. There are: {', '.join(specs)}.")
        session = self._begin(agent, task, call_id, in_conversation=in_conversation)
        if in_conversation:
            worker = self._going_on(spec, session)
            task = fill(self._parent.ports.prompt("task_in_conversation"), task=task, tools=_tools_in_words(spec))
        else:
            worker = self._make(spec, session)
        self.working[call_id], self._kinds[call_id], self._branches[call_id] = worker, spec, session
        watch = _Watch(worker, self._parent.questions, spec.name, report)
        unsubscribe = worker.subscribe(watch.on_event)
        try:
            worker.submit(task)
            await worker.wait_idle()
            await asyncio.sleep(0)
        finally:
            del self.working[call_id], self._kinds[call_id]
            unsubscribe()
            watch.close()
            await worker.aclose()
            self._parent.channel.emit(CostKnown())
            session.release()
        ended = watch.ended
        problem = ended.error or (ended.reason if ended.reason in {"interrupted", "step_limit", "length"} else None)
        return SubagentReport(watch.answer, session.leaf, ended.steps, problem)

    def _begin(self, agent: str, task: str, call_id: str, *, in_conversation: bool) -> Session:
        """Begin a branch: where the request that made the call ended, or at nothing, for a head of its own."""
        parent = self._parent.session
        asked = next((entry for entry in reversed(parent.active_path()) if _asks(entry, call_id)), None)
        session = parent.beside(asked.parent_id if in_conversation and asked is not None else None)
        call = parent.leaf if asked is None else asked.id
        session.append(SubagentEntry(agent=agent, task=task, call_id=call_id, call=call))
        return session

    def _going_on(self, spec: AgentSpec, session: Session) -> "Agent":
        """Return an agent whose requests begin with the bytes of the parent's, so that the provider knows them.

        Prompt, tools, model, effort and mode are therefore the parent's. Of its kind it has the rules, the limit and
        the tools it may use: calls of others are refused.
        """
        from tui_agent.agent.agent import Agent

        parent = self._parent
        own = replace(
            parent.ports,
            kind=spec,
            is_subagent=True,
            titles=False,
            checkpoints=None,
            cache_session=parent.ports.cache_session or parent.session.id,
        )
        own.adopt(_within(spec, parent.ports.adjustable()))
        worker = Agent(session, own, model=parent.model, mode=parent.mode, effort=parent.chosen_effort)
        worker.work_for(parent)
        return worker

    def _make(self, spec: AgentSpec, session: Session) -> "Agent":
        from tui_agent.agent.agent import Agent

        ports = self._parent.ports
        tools = tuple(tool for tool in spec.choose(ports.own_tools) if not tool.traits.starts_agents)

        def prompt(name: str) -> str:
            return spec.prompt if name == "system" and spec.prompt is not None else ports.prompt(name)

        own = replace(
            ports,
            tools=tools,
            tool_files=ToolFiles(),
            prompt=prompt,
            is_subagent=True,
            titles=False,
            checkpoints=None,
            cache_session=f"{session.id}.{session.leaf}",
            # A list of tools names what the agent may use; servers' tools change and are not in it.
            mcp=ports.mcp if spec.tools is None else McpHub(),
        )
        own.adopt(_within(spec, ports.adjustable()))
        mode = self._parent.mode
        if ports.knowledge.primary(mode) is not None:
            mode = Mode.BUILD  # the mode is another agent's name, whose prompt and tools are not this one's
        model, effort = spec.model or self._parent.model, spec.effort or self._parent.chosen_effort
        worker = Agent(session, own, model=model, mode=mode, effort=effort)
        worker.work_for(self._parent)
        return worker


def _asks(entry: Entry, call_id: str) -> bool:
    return isinstance(entry, AssistantEntry) and any(call.call_id == call_id for call in entry.tool_calls)


def _tools_in_words(spec: AgentSpec) -> str:
    return "" if spec.tools is None else f" Of the tools only these are for you: {', '.join(spec.tools)}."


def _within(spec: AgentSpec, settings: Adjustable) -> Adjustable:
    steps = min(settings.max_steps, spec.max_steps or MAX_STEPS)
    return replace(settings, rules=(*settings.rules, *spec.rules), max_steps=steps)


class _Watch:
    """Listens to a subagent: passes its progress on, and its questions to whoever answers the parent's."""

    def __init__(self, worker: "Agent", questions: Questions, name: str, report: Callable[[str], None]) -> None:
        self._worker = worker
        self._questions = questions
        self._name = name
        self._report = report
        self._asking: set[asyncio.Task[None]] = set()
        self.answer = ""
        self.ended = RunEnded("interrupted")

    def on_event(self, event: AgentEvent) -> None:
        match event:
            case ToolStarted(tool=tool, title=title):
                self._report(f"● {tool} {title}\n")
            case EntryAppended(entry=AssistantEntry() as entry) if entry.text:
                self.answer = entry.text
            case PermissionAsked():
                task = asyncio.ensure_future(self._ask(event))
                self._asking.add(task)
                task.add_done_callback(self._asking.discard)
            case RunEnded():
                self.ended = event
            case _:
                pass

    def close(self) -> None:
        for task in self._asking:
            task.cancel()

    async def _ask(self, event: PermissionAsked) -> None:
        request = replace(event.request, title=f"{self._name}: {event.request.title}")
        answer = await self._questions.ask(request)
        self._worker.answer_permission(event.request.call_id, answer)
