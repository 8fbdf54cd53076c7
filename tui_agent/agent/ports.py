"""Defines an agent's ports: everything it needs from outside, such as clients, tools and settings.

Ports are passed in, so that tests and other frontends can replace them. ``assembly`` and
``cli.agent_making`` create the ports; `Agent.adopt` replaces the `Adjustable` ones when the user
changes settings, and `Gate.remove` removes rules from them.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Protocol

from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.agent.answer_format import AnswerFormat
from tui_agent.agent.channel import EventChannel
from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.agent.diagnostics.settings import DiagnosticSettings
from tui_agent.agent.hooks.hooks import Hooks
from tui_agent.agent.knowledge.knowledge import Knowledge
from tui_agent.agent.mcp.hub import McpHub
from tui_agent.agent.permissions import Rule
from tui_agent.agent.run_budget import BudgetMeter, RunBudget
from tui_agent.context.budget import Meter
from tui_agent.context.settings import ContextSettings
from tui_agent.files.memory import Memory
from tui_agent.lazy import dataclass, frozen
from tui_agent.model.directory import CatalogDirectory
from tui_agent.model.protocol import ModelClient
from tui_agent.model.settings import RetrySettings
from tui_agent.processes.jobs import Jobs
from tui_agent.sandbox import Sandbox
from tui_agent.session.effort import Effort
from tui_agent.session.entries import Entry
from tui_agent.session.session import Session
from tui_agent.tools.base import EditorText, Tool
from tui_agent.tools.functions.tool_files import ToolFiles, ToolPlace

DEFAULT_ROUNDS = 3


@frozen
class RunCheck:
    """The command that checks a run's work when the model says that it is done.

    ``rounds`` is the maximum number of times that a failure sends the model back to work.
    """

    command: str
    rounds: int = DEFAULT_ROUNDS


@dataclass(kw_only=True)
class Adjustable:
    """The ports that are replaced while the program runs, when the user changes a setting."""

    settings: ContextSettings = field(default_factory=ContextSettings.model_construct)
    retry: RetrySettings = field(default_factory=RetrySettings.model_construct)
    rules: tuple[Rule, ...] = ()
    """Permission rules from settings and the command line.

    A later rule overrides earlier rules with the same source.
    """
    max_steps: int = 200
    """Maximum number of steps in a run."""
    budget: RunBudget = RunBudget()
    """The limits of a run, and of the money spent per session and per day."""
    diagnostics: DiagnosticSettings = DiagnosticSettings.model_construct(enabled=False)
    """Settings of the checkers of edited files."""
    parallel_calls: int = 8
    """Maximum number of read-only tool calls that run at the same time."""
    small_model: str | None = None
    """A cheap model for titles, goals, hooks and other single questions.

    None if there is none; most questions then go to the conversation's model.
    """
    proposes_memory: bool = False
    """Whether a model or rules search each run for lines to propose for the memory."""
    fallback_models: tuple[str, ...] = ()
    """Models that are used, in this order of preference, while the chosen model is unavailable."""
    sandbox: Sandbox | None = None
    """The sandbox for the model's commands; None to run them without a sandbox."""
    preset_effort: Callable[[str], Effort | None] = lambda _model: None
    """Function that returns the effort that the settings give a model; None for the model's own."""


@dataclass(kw_only=True)
class AgentPorts(Adjustable):
    """Everything that an agent uses, apart from its session.

    ``clock`` returns milliseconds since the epoch; ``sleep`` takes seconds. ``environment`` is the
    environment of child processes, without secrets. ``prompt`` returns the text of a prompt by its
    name. ``put_blob`` stores bytes and returns their hash; ``blob`` returns the bytes for a hash,
    None if they are missing.
    """

    client: ModelClient
    tools: tuple[Tool[Any], ...]
    directory: CatalogDirectory
    prompt: Callable[[str], str]
    cwd: Path
    project: Path
    put_blob: Callable[[bytes], str]
    blob: Callable[[str], bytes | None]
    environment: Mapping[str, str] = field(default_factory=dict)
    keep_here: Callable[[Rule], str | None] = lambda _rule: None
    """Function that saves a permission rule for this project; returns an error message or None."""
    meter: BudgetMeter = field(default_factory=BudgetMeter)
    """The meter that counts what the current run uses. Subagents share their agent's meter."""
    check: RunCheck | None = None
    """The check that runs when the model says that its work is done; None if there is no check."""
    answer_format: AnswerFormat | None = None
    """The format that the last answer must have; None if it may have any format."""
    agents: tuple[AgentSpec, ...] = ()
    """Built-in kinds of subagents."""
    kind: AgentSpec | None = None
    """The subagent's kind, if the model is offered tools that this kind isn't allowed to use; None
    otherwise."""
    pause_after: int | None = None
    """Number of steps after which a run is paused; None if runs are never paused."""
    is_subagent: bool = False
    """Whether the agent works for another agent; if so, it can't start subagents itself."""
    cache_session: str = ""
    """Session id that tells the provider which prompt cache to use; "" to use this session's id."""
    titles: bool = False
    """Whether a model writes the session's title."""
    memory: Memory | None = None
    """The project's memory; None if the memory is off."""
    knowledge: Knowledge = field(default_factory=Knowledge)
    """Knowledge from files: instructions, skills, commands, kinds of agents."""
    mcp: McpHub = field(default_factory=McpHub)
    """The MCP (Model Context Protocol) servers, whose tools are offered in addition to
    ``tools``."""
    tool_files: ToolFiles = field(default_factory=ToolFiles)
    """Files whose functions are offered as tools in addition to ``tools``."""
    hooks: Hooks = field(default_factory=Hooks)
    """The user's hooks; each agent binds them to its session."""
    editor: EditorText | None = None
    """The editor in which the session is used; None if it is not used in an editor."""
    stands_for: Path | None = None
    """The project of which ``project`` is a copy, made for a race.

    The model sees the original's paths. None if ``project`` isn't a copy.
    """
    copies: Path | None = None
    """Directory for the copies of projects that races make; None if races are off."""
    checkpoints: SnapshotStore | None = None
    """Store of the snapshots of changed files; None if changes are not recorded."""
    clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random

    def model_path(self, path: Path) -> Path:
        """Return a path as the model sees it: a path in a race's copy becomes the original path."""
        if self.stands_for is None or not path.is_relative_to(self.project):
            return path
        return self.stands_for / path.relative_to(self.project)

    def context_meter(self, model: str) -> Meter:
        """Return the meter that measures requests to a model according to the model's settings."""
        limits = self.directory.limits(model)
        return Meter(limits, self.settings.for_model(model), self.directory.counter(model))

    @property
    def own_tools(self) -> tuple[Tool[Any], ...]:
        """The tools that do not come from MCP servers: built-in tools and those of tool files."""
        return (*self.tools, *self.tool_files.tools)

    async def read_tool_files(self) -> None:
        await self.tool_files.load(
            ToolPlace(self.cwd, self.project, self.environment, self.sandbox)
        )

    def of_servers(self, tools: Iterable[Tool[Any]]) -> tuple[Tool[Any], ...]:
        """Return the ``tools`` of MCP servers, except those with the name of one of `own_tools`."""
        taken = {tool.name for tool in self.own_tools}
        return tuple(tool for tool in tools if tool.name not in taken)

    @property
    def is_main(self) -> bool:
        """Whether the user talks to this agent: it is neither a subagent nor a race's runner."""
        return not self.is_subagent and self.stands_for is None

    @property
    def gives_tasks(self) -> bool:
        """Whether the agent can start subagents."""
        return not self.is_subagent and any(tool.traits.starts_agents for tool in self.tools)

    def subagent_kinds(self) -> dict[str, AgentSpec]:
        """Return, by name, the kinds of agents that can be given a task.

        Kinds from files are those that were last read; they replace built-in ones of the same name.
        """
        specs = {spec.name: spec for spec in (*self.agents, *self.knowledge.specs)}
        return {spec.name: spec for spec in specs.values() if spec.subagent}

    def adjustable(self) -> Adjustable:
        return Adjustable(
            **{changed.name: getattr(self, changed.name) for changed in fields(Adjustable)}
        )

    def adopt(self, adjusted: Adjustable) -> None:
        for changed in fields(adjusted):
            setattr(self, changed.name, getattr(adjusted, changed.name))


class Owner(Protocol):
    """The attributes of an `Agent` that its parts use."""

    session: Session
    ports: AgentPorts
    channel: EventChannel
    jobs: Jobs

    @property
    def running(self) -> bool: ...

    def keep(self, *entries: Entry, then: Callable[[], None] = ...) -> None:
        """Append entries now or, during a run, before the run's next step. See `Agent.keep`."""
        ...
