"""The agent's needs from outside, injected so that tests and other front ends can replace each piece."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Protocol

from tui_agent.agent.agent_specs import AgentSpec
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
    """The command that checks a run. ``rounds``: how often a failure goes back to the model."""

    command: str
    rounds: int = DEFAULT_ROUNDS


@dataclass(kw_only=True)
class Adjustable:
    """The ports that follow the user's settings while the program runs."""

    settings: ContextSettings = field(default_factory=ContextSettings.model_construct)
    retry: RetrySettings = field(default_factory=RetrySettings.model_construct)
    rules: tuple[Rule, ...] = ()
    """Permission rules in order of rising precedence."""
    max_steps: int = 200
    budget: RunBudget = RunBudget()
    """The limits of a run."""
    diagnostics: DiagnosticSettings = DiagnosticSettings.model_construct(enabled=False)
    """The checks of edited files."""
    parallel_calls: int = 8
    """Calls of one answer that run side by side, where they may."""
    small_model: str | None = None
    """A cheap model for titles; None is the conversation's."""
    proposes_memory: bool = False
    """Whether lines for the memory are looked for at the end of a run."""
    fallback_models: tuple[str, ...] = ()
    """Models that stand in, in order, when the chosen one can't be used."""
    sandbox: Sandbox | None = None
    """The sandbox of the model's commands."""
    preset_effort: Callable[[str], Effort | None] = lambda _model: None
    """How much a model is to think by the settings, None to leave it to the model."""


@dataclass(kw_only=True)
class AgentPorts(Adjustable):
    """Everything an agent works with besides its session.

    ``clock`` returns milliseconds since the epoch, ``sleep`` waits seconds. ``environment`` is for
    child processes, secrets already taken out.
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
    """Keeps a rule of the user's for this project; returns why that can't be done."""
    meter: BudgetMeter = field(default_factory=BudgetMeter)
    """Counts the use of the current run; subagents have their agent's."""
    check: RunCheck | None = None
    """Runs when the model says that it is done."""
    agents: tuple[AgentSpec, ...] = ()
    """Kinds of subagents that can be given tasks."""
    kind: AgentSpec | None = None
    """The kind whose tools alone may be used, where the model is offered more; None: all it is
    offered."""
    pause_after: int | None = None
    """Steps after which a run stops as it stands, for a look ahead; None: it goes on to its end."""
    is_subagent: bool = False
    """Whether the agent works for another one, and starts none itself."""
    cache_session: str = ""
    """The name under which the provider caches requests; empty: the session's."""
    titles: bool = False
    """Whether a model is asked for a title."""
    memory: Memory | None = None
    """What is kept about the project from session to session; None where nothing is."""
    knowledge: Knowledge = field(default_factory=Knowledge)
    """Knowledge from files: instructions, skills, commands, kinds of agents."""
    mcp: McpHub = field(default_factory=McpHub)
    """Servers whose tools join ``tools`` where a head is rendered."""
    tool_files: ToolFiles = field(default_factory=ToolFiles)
    """Files whose functions are tools, beside ``tools``."""
    hooks: Hooks = field(default_factory=Hooks)
    """The user's hooks at fixed points; an agent binds them to its session."""
    editor: EditorText | None = None
    """The editor in which the session goes on; None where there is none."""
    stands_for: Path | None = None
    """The project that ``project`` is a copy of: the model sees that one's paths. None where it is
    no copy."""
    copies: Path | None = None
    """Where copies of projects for races are kept; None where there are no races."""
    checkpoints: SnapshotStore | None = None
    """Where images of changed files are kept; None where changes are not recorded."""
    clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random

    def model_path(self, path: Path) -> Path:
        """Return the path the model sees: for one in a copy, the path in the project that was copied."""
        if self.stands_for is None or not path.is_relative_to(self.project):
            return path
        return self.stands_for / path.relative_to(self.project)

    def context_meter(self, model: str) -> Meter:
        """Return the meter of requests to a model, under the settings for that model."""
        limits = self.directory.limits(model)
        return Meter(limits, self.settings.for_model(model), self.directory.counter(model))

    @property
    def own_tools(self) -> tuple[Tool[Any], ...]:
        return (*self.tools, *self.tool_files.tools)

    async def read_tool_files(self) -> None:
        await self.tool_files.load(
            ToolPlace(self.cwd, self.project, self.environment, self.sandbox)
        )

    def of_servers(self, tools: Iterable[Tool[Any]]) -> tuple[Tool[Any], ...]:
        taken = {tool.name for tool in self.own_tools}
        return tuple(tool for tool in tools if tool.name not in taken)

    def adjustable(self) -> Adjustable:
        return Adjustable(
            **{changed.name: getattr(self, changed.name) for changed in fields(Adjustable)}
        )

    def adopt(self, adjusted: Adjustable) -> None:
        for changed in fields(adjusted):
            setattr(self, changed.name, getattr(adjusted, changed.name))


class Owner(Protocol):
    """The agent that a part belongs to, as the part sees it."""

    session: Session
    ports: AgentPorts
    channel: EventChannel
    jobs: Jobs

    @property
    def running(self) -> bool: ...

    def keep(self, *entries: Entry) -> None:
        """Append entries now, or before the next step of a run."""
        ...
