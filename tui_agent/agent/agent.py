"""The agent of one session, driven and listened to by every way in (screen, headless, editor protocol)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from tui_agent.agent.allowance import Allowance
from tui_agent.agent.answer import Answerer
from tui_agent.agent.attachments import Prepared
from tui_agent.agent.channel import EventChannel, Journal, Questions, joined
from tui_agent.agent.checkpoints.rewind import FileRewind
from tui_agent.agent.closing_check import ClosingCheck
from tui_agent.agent.compaction_outcome import CompactionOutcome, Postponed
from tui_agent.agent.context_keeper import ContextKeeper
from tui_agent.agent.events import (
    AgentEvent,
    CostKnown,
    HeadKnown,
    LiveAnswer,
    PermissionAnswer,
    RunEnded,
    ToolCallProgress,
)
from tui_agent.agent.goals import Goals
from tui_agent.agent.hooks.hooks import Containment
from tui_agent.agent.hooks.payloads import About, SessionEnd
from tui_agent.agent.intake import Intake
from tui_agent.agent.knowledge.knowledge import CommandRow
from tui_agent.agent.loop import Loop
from tui_agent.agent.mcp.records import McpServerStatus
from tui_agent.agent.memory.keeper import MemoryKeeper
from tui_agent.agent.message_queue import QueuedMessage
from tui_agent.agent.permissions import Mode
from tui_agent.agent.ports import Adjustable, AgentPorts
from tui_agent.agent.repeats import Repeats
from tui_agent.agent.shell import interrupted, run_shell
from tui_agent.agent.small_questions import ask_small_model
from tui_agent.agent.subagents import Subagents
from tui_agent.agent.titles import Titles
from tui_agent.agent.tool_runner import ToolRunner
from tui_agent.context.budget import ContextSize
from tui_agent.context.pruning import Moment
from tui_agent.context.view import resolve
from tui_agent.lazy import cached_property
from tui_agent.session.effort import Effort, EffortInForce
from tui_agent.session.entries import (
    OF_A_TURN,
    ContextEditEntry,
    EffortChangeEntry,
    Entry,
    ModeChangeEntry,
    ModelChangeEntry,
    ShellEntry,
    TextPart,
    UserPart,
)
from tui_agent.session.session import Session
from tui_agent.tools.questions import Asker, Person

if TYPE_CHECKING:
    from tui_agent.agent.cache_pings import CachePings
    from tui_agent.agent.context_inspector import ContextInspector
    from tui_agent.agent.navigator import Navigator
    from tui_agent.context.tokens import TokenCounter


MAX_ENTRIES_AT_ONCE = 2_000
"""Entries whose costs are added up in a moment too short to notice."""


class SessionMcp:
    """The servers of the Model Context Protocol in one session, which may ask its person."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent
        self._hub = hub = agent.ports.mcp
        self._leave = (joined(hub.listeners, agent.channel.emit), joined(hub.sessions, self))

    @property
    def asker(self) -> Asker | None:
        return self._agent.person.asker

    @property
    def is_busy(self) -> bool:
        return self._agent.running

    def status(self) -> tuple[McpServerStatus, ...]:
        directory = self._agent.ports.directory
        model = self._agent.model
        counter = directory.counter(model)
        return self._hub.status(
            counter.schema, window=directory.limits(model).window, count_text=counter.text
        )

    async def reload(self) -> None:
        """Reread the configuration and tell the model which tools there are: the next request misses the cache."""
        await self._hub.reload()
        self._agent.context.head.tools_wanted = True
        text = "The model is told of the servers' tools anew with the next request"
        self._agent.channel.say(f"{text}; what the provider had cached is lost.")

    def close(self) -> None:
        for leave in self._leave:
            leave()


class Agent:
    """Works in one session. Everything is called on the event loop's thread.

    ``model``, ``mode`` and ``effort`` are those of a session that names none yet.
    """

    def __init__(
        self,
        session: Session,
        ports: AgentPorts,
        *,
        model: str,
        mode: str = Mode.BUILD,
        effort: Effort | None = None,
    ) -> None:
        self.channel = channel = EventChannel()
        held = Containment(ports.sandbox, lambda: self.tools.gate.view())  # noqa: PLW0108 - the gate is made later
        ports = replace(
            ports, hooks=ports.hooks.bound(self._about, channel.emit, held, self._ask_for_hook)
        )
        channel.subscribe(ports.meter.hear)
        self.session = session
        self.ports = ports
        self._journal = Journal(session, channel)
        self.questions = Questions(channel)
        self.person = Person()
        """Whom the model and servers ask."""
        self._are_costs_read = session.info.entry_count <= MAX_ENTRIES_AT_ONCE
        self.context = ContextKeeper(self._journal, ports, model=model, mode=mode, effort=effort)
        self._titles = Titles(self._journal, ports, lambda: self.model)
        self.memory = MemoryKeeper(self._journal, ports)
        self._answerer = Answerer(self._journal, ports)
        self.files = FileRewind(self, lambda: self.tools.aclose())  # noqa: PLW0108 - made later
        """The files of the project: the session's changes to them, and how they go along when one
        moves."""
        self._subagents: Subagents[Agent] | None = None
        if not ports.is_subagent:
            self._subagents = Subagents(self)
        self.tools: ToolRunner = ToolRunner(
            self._journal,
            ports,
            self.questions,
            keeper=self.context,
            files=self.files,
            person=self.person,
            subagents=self._subagents,
            propose=self.memory.propose if ports.memory is not None else None,
        )
        self.jobs = self.tools.jobs
        """The commands that go on in the background; they end with the agent."""
        self.mcp = SessionMcp(self)
        self.subagents: dict[str, Agent] = (
            {} if self._subagents is None else self._subagents.working
        )
        """The subagents that work now, by the call they work on."""
        intake = Intake(self._journal, ports)
        self.queue = intake.queue
        """The messages that wait."""
        self.allowance = Allowance(session, ports, self.questions)
        """The budgets of the session and the day."""
        self.goals = Goals(self._journal, ports, lambda: self.model)
        """What the session works towards, if its user set it a goal."""
        self.repeats = Repeats(
            submit=self.submit,
            is_running=lambda: self.running,
            say=channel.say,
        )
        """The message that is sent again and again, if its user asked for that."""
        recorder = self.files.recorder
        self._loop = Loop(
            self._journal,
            ports,
            intake,
            context=self.context,
            answerer=self._answerer,
            tools=self.tools,
            closing_check=ClosingCheck(self._journal, ports, self.tools.gate, recorder),
            goals=self.goals,
            allowance=self.allowance,
            recorder=recorder,
        )
        self._run: asyncio.Task[RunEnded] | None = None
        self._compacting: asyncio.Future[CompactionOutcome] | None = None
        self.beside: set[asyncio.Future[Any]] = set()
        """The user's own commands that run now."""
        self._is_project_ready = True
        channel.subscribe(self._prepare_project)

    async def _ask_for_hook(self, text: str, seconds: float) -> str:
        answer = await ask_small_model(
            text, "hook_judge", self._journal, self.ports, model=self.model, seconds=seconds
        )
        return answer.text

    # Made on first use, because only a person asks for these: a run of one message needs none of
    # them.

    @property
    def counter(self) -> "TokenCounter":
        return self.ports.directory.counter(self.model)

    @cached_property
    def inspector(self) -> "ContextInspector":
        from tui_agent.agent.context_inspector import ContextInspector

        return ContextInspector(self.session, self.ports, self.context)

    @cached_property
    def cache_pings(self) -> "CachePings":
        from tui_agent.agent.cache_pings import CachePings

        return CachePings(
            self._journal,
            self.ports,
            self.context,
            inspector=self.inspector,
            allowance=self.allowance,
        )

    @cached_property
    def navigator(self) -> "Navigator":
        from tui_agent.agent.navigator import Navigator

        return Navigator(self._journal, self.ports, self.context, running=lambda: self.running)

    def make_subagent(
        self, session: Session, ports: AgentPorts, *, model: str, mode: str, effort: Effort | None
    ) -> "Agent":
        """Return an agent beside this one that shares its permissions and record of changed files."""
        worker = Agent(session, ports, model=model, mode=mode, effort=effort)
        worker.tools.share(self.tools)
        return worker

    def keep(self, *entries: Entry, then: Callable[[], None] = lambda: None) -> None:
        """Append entries now, or before the next step of a run, so that none of them parts a call from its result.

        ``then`` updates their dependents, before their events are sent. Raises StoreError: nothing
        was changed.
        """
        if not self.running:
            self._journal.append_many(entries, then)
            return
        self._loop.held_back.extend(entries)
        then()

    # -- for screens ------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return self._run is not None and not self._run.done()

    @property
    def live(self) -> LiveAnswer | None:
        return self._answerer.live

    @property
    def model(self) -> str:
        return self.context.model

    @property
    def stands_in_for(self) -> str | None:
        """The model that the user chose, where another stands in for it."""
        return self.context.stands_in_for

    @property
    def effort(self) -> EffortInForce:
        return self.context.effort

    @property
    def mode(self) -> str:
        return self.context.mode

    def context_size(self, at: int | None = None) -> ContextSize:
        return self.context.size(at)

    def session_cost(self) -> float | None:
        """Return the US dollars spent on all branches.

        None without prices, and for a long session until it is warm.
        """
        if not self._are_costs_read:
            return None
        own = self.session.reader.own_cost()
        beside = self.session.info.side_cost
        if own or beside:
            return (own or 0.0) + beside
        return None

    def session_tokens(self) -> int | None:
        """Return the tokens sent and answered on all branches.

        None for a long session until it is warm.
        """
        if not self._are_costs_read:
            return None
        return self.session.reader.tokens_used()

    # -- the user's actions -----------------------------------------------------------------------------------

    def submit(self, message: str | Sequence[UserPart], *, follow_up: bool = False) -> None:
        """Send a message: it starts a run, or waits for the next step, with ``follow_up`` for the end of the run."""
        parts = (TextPart(text=message),) if isinstance(message, str) else tuple(message)
        self._titles.begin(parts)
        self.queue.append(QueuedMessage(parts, follow_up and self.running))
        if self.running:
            self.channel.emit(self.queue.snapshot())
        else:
            self.retry()

    def commands(self) -> tuple[CommandRow, ...]:
        """Return the user's own commands and skills and the servers' prompts, as they can be typed."""
        rows = list(self.ports.knowledge.rows)
        for offer in self.ports.mcp.offers():
            for row in offer.prompts:
                rows.append(CommandRow(row.command, row.description, row.usage))
        return tuple(rows)

    def switch_for(self, prepared: Prepared) -> None:
        if prepared.model is not None:
            self.change_model(prepared.model)
        if prepared.mode is not None:
            self.change_mode(prepared.mode)

    def choose_agent(self, name: str) -> bool:
        """Let another kind of agent go on from the next request on.

        False when there is none of that name.
        """
        spec = self.ports.knowledge.primary(name)
        if spec is None and name != Mode.BUILD:
            return False
        self.change_mode(name)
        if spec is not None and spec.model is not None:
            self.change_model(spec.model)
        if spec is not None and spec.effort is not None:
            self.change_effort(spec.effort)
        return True

    def take_back(self) -> str | None:
        message = self.queue.pop() if self.queue else None
        self.channel.emit(self.queue.snapshot())
        return message.typed if message else None

    def interrupt(self) -> None:
        self.repeats.drop()
        writing = None
        if self.context.prepared is not None:
            writing = self.context.prepared.task
        for task in (self._run, self._compacting, *self.beside, writing):
            if task is not None:
                task.cancel()

    def answer_permission(self, call_id: str, answer: PermissionAnswer) -> None:
        """Settle the open question; an answer to a question that is no longer open does nothing."""
        self.questions.answer(call_id, answer)

    def retry(self) -> None:
        if self.running:
            return
        self._is_project_ready = False
        self._run = asyncio.get_running_loop().create_task(self._loop.run())
        self._run.add_done_callback(self._tell_of_end)

    def _tell_of_end(self, run: "asyncio.Task[RunEnded]") -> None:
        self.channel.emit(RunEnded("interrupted") if run.cancelled() else run.result())

    def _prepare_project(self, event: AgentEvent) -> None:
        """Look through the project while the model writes its first call.

        An answer without one has no use for it.
        """
        if isinstance(event, ToolCallProgress) and not self._is_project_ready:
            self._is_project_ready = True
            self.files.get_ready()
            if self.ports.sandbox is not None:
                self.ports.sandbox.get_ready(self.ports.project, self.ports.environment)

    def change_model(self, model: str) -> None:
        if model != self.model:
            self.keep(
                ModelChangeEntry(model=model), then=lambda: setattr(self.context, "model", model)
            )
            self.context.announce_effort()

    def change_effort(self, effort: Effort | None) -> None:
        """Have models think so much from the next request on; None: as the settings say."""
        if effort != self.context.chosen_effort:
            self.keep(
                EffortChangeEntry(effort=effort),
                then=lambda: setattr(self.context, "chosen_effort", effort),
            )
            self.context.announce_effort()

    def change_mode(self, mode: str) -> None:
        if mode != self.mode:
            self.keep(ModeChangeEntry(mode=mode), then=lambda: setattr(self.context, "mode", mode))

    def adopt(self, adjusted: Adjustable) -> None:
        """Follow changed settings from the next request on; work in progress keeps the old ones."""
        self.ports.adopt(adjusted)
        self.tools.gate.remove_again()
        if self._subagents is not None:
            self._subagents.adopt(adjusted)

    async def compact(
        self,
        focus: str | None = None,
        *,
        for_model: str | None = None,
        boundary: int | None = None,
    ) -> CompactionOutcome:
        """Summarise the history now; during a run before its next step or at its end.

        See ``ContextKeeper.compact``.

        With ``boundary`` it summarises the entries before that one; ignored during a run. The
        outcome's ``problem`` says why nothing was compacted. Cancelling it, or ``interrupt``,
        changes nothing.
        """
        if self.running:
            self.context.pending = focus or ""
            self.channel.say(
                "The history is compacted before the next step, or at the end of the run."
            )
            return Postponed()
        self._compacting = asyncio.ensure_future(
            self.context.compact("manual", focus, for_model=for_model, boundary=boundary)
        )
        try:
            return await self._compacting
        finally:
            self._compacting = None

    async def prune(self) -> int:
        """Turn old tool outputs into placeholders now.

        Returns the tokens freed, 0 when there was nothing to gain.
        """
        if self.running:
            self.channel.say("The agent is working; interrupt it first.", "warning")
            return 0
        return await self.context.prune(Moment(asked=True))

    async def run_shell(self, command: str, *, excluded: bool = False) -> ShellEntry:
        """Run a command for the user.

        Unless ``excluded`` the model sees it with the next request.
        """
        if not self.running and resolve(self.session.active_path()).mode is None:
            # A head names the mode; before the first message nothing does, and settings may be
            # others later.
            self._journal.append(ModeChangeEntry(mode=self.mode))
        work = run_shell(command, self.ports, self.channel, self.files.recorder, excluded=excluded)
        task = asyncio.ensure_future(work)
        self.beside.add(task)
        try:
            await asyncio.wait([task])
        finally:
            self.beside.discard(task)
            task.cancel()
        if task.cancelled():
            entry = interrupted(command, excluded=excluded)
        else:
            entry = task.result()
        self.keep(entry)
        self.files.keep_changes()
        return entry

    def edit_context(
        self,
        target: int,
        action: Literal["drop", "mask", "pin", "restore", "edit"],
        *others: int,
        text: str = "",
    ) -> None:
        """Change the model's view of entries from the next request on.

        Edits made together are undone together.

        ``text`` is what the model is sent of an entry that is edited.
        """
        targets = (target, *others)
        self.keep(*(ContextEditEntry(target=one, action=action, text=text) for one in targets))

    async def warm(self) -> None:
        await self.context.warm()
        await asyncio.to_thread(self.allowance.look)
        if self.context.preview() is not None:
            self.channel.emit(HeadKnown())
        if not self._are_costs_read:
            await asyncio.to_thread(self.session.reader.costs)
            await asyncio.to_thread(self.session.reader.tokens_used)
            self._are_costs_read = True
            self.channel.emit(CostKnown())
        self.ports.mcp.start()
        await self.ports.hooks.warm()

        def load() -> None:
            import_module("tui_agent.agent.compactor")
            for kind in OF_A_TURN:
                kind.model_rebuild()
            for tool in self.ports.own_tools:
                tool.warm(self.ports.environment)

        await asyncio.to_thread(load)

    async def wait_idle(self) -> None:
        if self._run is not None:
            await asyncio.wait([self._run])

    async def aclose(self) -> None:
        """Interrupt the run and end all it started. The session stays open; it is the caller's."""
        self.interrupt()
        await self.wait_idle()
        if (
            self.context.prepared is not None
            and (writing := self.context.prepared.task) is not None
        ):
            writing.cancel()
            await asyncio.wait([writing])
        await self._titles.aclose()
        await self.memory.aclose()
        await self.tools.aclose()
        await self.tools.diagnostics.aclose()
        await self.jobs.aclose()
        await self.files.aclose()
        if not self.ports.is_subagent:
            for tool in self.ports.tools:
                await tool.aclose(self.ports.project)
        if self.ports.sandbox is not None and not self.ports.is_subagent:
            await self.ports.sandbox.aclose()
        self.mcp.close()
        if not self.ports.is_subagent:
            self.ports.hooks.tell(SessionEnd(about=self.ports.hooks.about))
        await self.ports.hooks.aclose()

    def _about(self) -> About:
        info = self.session.info
        places = {"cwd": str(self.ports.cwd), "project": str(self.ports.project)}
        parent = info.id if self.ports.is_subagent else None
        return About(session=info.id, parent=parent, model=self.model, **places)
