"""Makes and connects the parts of one session's agent: context, tools, run loop, subagents.

Frontends use only `Agent`: they call its methods and subscribe to its channel for events. `Agent`
starts `Loop.run` as a task for each run and emits `RunEnded` after it. Entries that other parts of
the program make during a run are held back until its next step (`Agent.keep`). The steps of a run
are in `Loop`; the session is opened and claimed by ``cli`` or the library.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from tui_agent.agent.allowance import Allowance
from tui_agent.agent.answer import Answerer
from tui_agent.agent.attachments import Prepared
from tui_agent.agent.channel import EventChannel, Journal, Questions, register
from tui_agent.agent.checkpoints.rewind import FileRewind
from tui_agent.agent.closing_check import ClosingCheck, FormatCheck
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
from tui_agent.agent.job_reports import LostJobs
from tui_agent.agent.knowledge.knowledge import CommandRow
from tui_agent.agent.loop import Loop
from tui_agent.agent.mcp.records import McpServerStatus
from tui_agent.agent.memory.keeper import MemoryKeeper
from tui_agent.agent.message_queue import QueuedMessage
from tui_agent.agent.permissions import Mode
from tui_agent.agent.ports import Adjustable, AgentPorts
from tui_agent.agent.repeated_message import RepeatedMessage
from tui_agent.agent.shell import interrupted, run_shell
from tui_agent.agent.small_questions import ask_small_model
from tui_agent.agent.subagents import Subagents
from tui_agent.agent.titles import Titles
from tui_agent.agent.tool_runner import ToolRunner
from tui_agent.context.budget import ContextSize
from tui_agent.context.pruning import Moment
from tui_agent.context.view import resolve
from tui_agent.lazy import cached_property
from tui_agent.sandbox.view import View
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
from tui_agent.tools.questions import Asker, UserContact

if TYPE_CHECKING:
    from tui_agent.agent.cache_pings import CachePings
    from tui_agent.agent.context_inspector import ContextInspector
    from tui_agent.agent.navigator import Navigator
    from tui_agent.context.tokens import TokenCounter

SHOWN_SECONDS = 0.5
"""Seconds after which a message is shown as waiting if the run that it started has not taken it.

The run may have to wait for MCP servers first.
"""


MAX_ENTRIES_AT_ONCE = 2_000
"""Largest number of entries for which a session's costs are added up when first needed.

For longer sessions, `Agent.warm` adds up the costs in a thread.
"""


class SessionMcp:
    """One session's access to the Model Context Protocol (MCP) servers, which sessions share."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent
        self._hub = hub = agent.ports.mcp
        self._leave = (
            register(hub.listeners, agent.channel.emit),
            register(hub.tool_listeners, agent.context.head.servers_tools_came),
            register(hub.sessions, self),
        )

    @property
    def asker(self) -> Asker | None:
        """The function that asks the user a server's question; None if no user can be asked."""
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

    async def reload_and_resend(self, restarted: str = "") -> None:
        """Reread the MCP configuration and send the servers' current tools with the next request.

        That request misses the prompt cache; a notice says so. ``restarted`` is passed on to
        `McpHub.reload`.
        """
        await self._hub.reload(restarted)
        self._agent.context.head.tools_wanted = True
        self._agent.channel.say(
            "The next request sends the servers' tools again, so it misses the prompt cache."
        )

    def close(self) -> None:
        for leave in self._leave:
            leave()


class Agent:
    """The agent of one session. Must be used on the event loop's thread.

    ``model``, ``mode`` and ``effort`` apply until an entry on the session's path changes them.
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
        self.session = session
        self.channel = EventChannel()
        self.ports = self._with_hooks(ports)
        self._journal = Journal(session, self.channel)
        self.questions = Questions(self.channel, self.submit)
        self.person = UserContact()
        """Holds the function that asks the user questions, for all parts of the agent."""
        self._are_costs_read = session.info.entry_count <= MAX_ENTRIES_AT_ONCE
        self.context = ContextKeeper(
            self._journal, self.ports, model=model, mode=mode, effort=effort
        )
        self._titles = Titles(self._journal, self.ports, lambda: self.model)
        self.memory = MemoryKeeper(self._journal, self.ports)
        self._answerer = Answerer(self._journal, self.ports)
        self.files = FileRewind(self, self._end_calls)
        """Records the session's changes to the project's files, and restores files.

        Files are restored after the user has moved to another entry of the session tree.
        """
        self.subagents: dict[str, Agent] = {}
        """The running subagents, each by the id of the tool call that started it."""
        self._subagents: Subagents[Agent] | None = None
        if not self.ports.is_subagent:
            self._subagents = Subagents(self)
            self.subagents = self._subagents.working
        self.tools: ToolRunner = self._make_tools()
        self.jobs = self.tools.jobs
        """The session's background commands; `aclose` ends them."""
        self.lost_jobs = LostJobs(self._journal, self.ports, self.jobs)
        self.mcp = SessionMcp(self)
        self.allowance = Allowance(session, self.ports, self.questions)
        """The money budgets of the session and of the day."""
        self.goals = Goals(self._journal, self.ports, lambda: self.model)
        """The goal that the session works towards, if the user set one."""
        self.repeated_message = RepeatedMessage(
            submit=self.submit,
            is_running=lambda: self.running,
            say=self.channel.say,
        )
        """The message that is sent at regular intervals, if the user set one."""
        intake = Intake(self._journal, self.ports)
        self.queue = intake.queue
        """The user's messages that have not been sent yet."""
        self._loop = self._make_loop(intake)
        self._run: asyncio.Task[RunEnded] | None = None
        self._compacting: asyncio.Future[CompactionOutcome] | None = None
        self.shell_tasks: set[asyncio.Future[Any]] = set()
        """The tasks of the user's shell commands that are still running."""
        self._is_project_ready = True
        self.channel.subscribe(ports.meter.hear)
        self.channel.subscribe(self._prepare_project)

    def _with_hooks(self, ports: AgentPorts) -> AgentPorts:
        """Return a copy of the agent's ports in which the hooks are bound to this session."""
        containment = Containment(ports.sandbox, self._view)
        hooks = ports.hooks.bound(self._about, self.channel.emit, containment, self._ask_for_hook)
        return replace(ports, hooks=hooks)

    def _make_tools(self) -> ToolRunner:
        propose = None
        if self.ports.memory is not None:
            propose = self.memory.propose
        return ToolRunner(
            self._journal,
            self.ports,
            self.questions,
            keeper=self.context,
            files=self.files,
            person=self.person,
            subagents=self._subagents,
            propose=propose,
        )

    def _make_loop(self, intake: Intake) -> Loop:
        recorder = self.files.recorder
        return Loop(
            self._journal,
            self.ports,
            intake,
            context=self.context,
            answerer=self._answerer,
            tools=self.tools,
            closing_check=ClosingCheck(self._journal, self.ports, self.tools.gate, recorder),
            format_check=FormatCheck(self._journal, self.ports),
            goals=self.goals,
            allowance=self.allowance,
            recorder=recorder,
            lost_jobs=self.lost_jobs,
        )

    def _view(self) -> View:
        """Return the sandbox view for the session's commands in the current mode.

        A view says what commands can see, change and reach.
        """
        return self.tools.gate.view()

    async def _end_calls(self) -> None:
        """Wait until interrupted tool calls have ended, but for at most a few seconds."""
        await self.tools.aclose()

    async def _ask_for_hook(self, text: str, seconds: float) -> str:
        answer = await ask_small_model(
            text, "hook_judge", self._journal, self.ports, model=self.model, seconds=seconds
        )
        return answer.text

    # These are created on first use, because a run without a screen needs none of them.

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
        """Return an agent for a subagent's session.

        It shares the permissions that were granted to this agent for the session, and its changes
        to files are recorded as changes of this agent.
        """
        worker = Agent(session, ports, model=model, mode=mode, effort=effort)
        worker.tools.share(self.tools)
        return worker

    def keep(self, *entries: Entry, then: Callable[[], None] = lambda: None) -> None:
        """Append entries now or, if a run is in progress, before its next step.

        During a step, they could come between a tool call and its result. ``then`` updates state
        that depends on the entries. It is called once they are stored, before their events are
        emitted; during a run it is called immediately. Raises StoreError, and changes nothing, if
        no run is in progress and the entries can't be stored.
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
        """The model that the user chose, if a fallback model answers instead; None otherwise."""
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
        """Return the US dollars spent on all branches of the session.

        None if nothing was spent or no prices are known; for a long session, also None until `warm`
        has added up the costs.
        """
        if not self._are_costs_read:
            return None
        own = self.session.reader.own_cost()
        beside = self.session.info.side_cost
        if own or beside:
            return (own or 0.0) + beside
        return None

    def session_tokens(self) -> int | None:
        """Return the sum of the input and output tokens of all branches of the session.

        None for a long session before `warm` has added them up.
        """
        if not self._are_costs_read:
            return None
        return self.session.reader.tokens_used()

    # -- the user's actions -----------------------------------------------------------------------------------

    def submit(self, message: str | Sequence[UserPart], *, follow_up: bool = False) -> None:
        """Start a run with a message from the user, or queue the message if a run is in progress.

        A queued message is sent with the run's next step or, with ``follow_up``, when the run's
        work is done.
        """
        parts = (TextPart(text=message),) if isinstance(message, str) else tuple(message)
        self._titles.begin(parts)
        self.queue.append(QueuedMessage(parts, follow_up and self.running))
        if self.running:
            self.channel.emit(self.queue.snapshot())
        else:
            self.retry()
            asyncio.get_running_loop().call_later(SHOWN_SECONDS, self._show_waiting)

    def _show_waiting(self) -> None:
        if self.queue:
            self.channel.emit(self.queue.snapshot())

    def commands(self) -> tuple[CommandRow, ...]:
        """Return a row for each command that comes from a file, a skill or an MCP prompt."""
        rows = list(self.ports.knowledge.rows)
        for offer in self.ports.mcp.offers():
            for row in offer.prompts:
                rows.append(CommandRow(row.command, row.description, row.usage))
        return tuple(rows)

    def switch_for(self, prepared: Prepared) -> None:
        """Change to the model and the mode that a prepared message asks for, if it names any."""
        if prepared.model is not None:
            self.change_model(prepared.model)
        if prepared.mode is not None:
            self.change_mode(prepared.mode)

    def choose_agent(self, name: str) -> bool:
        """Continue as the primary agent ``name``, from the next request on.

        If that agent names a model or an effort, it is used. "build" returns to the main agent.
        Returns False, and changes nothing, if there is no such agent.
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
        """Remove the newest queued message and return its text as typed.

        None if the queue is empty.
        """
        message = self.queue.pop() if self.queue else None
        self.channel.emit(self.queue.snapshot())
        return message.typed if message else None

    def send_now(self) -> bool:
        """End the current step early, so that the messages for the next step are sent now.

        The step's output so far is kept. Messages for the end of the run stay queued. Returns
        False, and does nothing, if no message is queued for the next step or no run is in progress.
        """
        if not self.queue.snapshot().steer or not self.running:
            return False
        self._loop.stop_step()
        return True

    def interrupt(self) -> None:
        """Cancel the run, compactions and the user's shell commands, and stop repeated messages.

        Also cancels a summary that is being prepared.
        """
        self.repeated_message.drop()
        self.context.pending = None
        writing = None
        if self.context.prepared is not None:
            writing = self.context.prepared.task
        for task in (self._run, self._compacting, *self.shell_tasks, writing):
            if task is not None:
                task.cancel()

    def answer_permission(self, call_id: str, answer: PermissionAnswer) -> None:
        """Answer the permission question about a call; does nothing if no such question is open."""
        self.questions.answer(call_id, answer)

    def retry(self) -> None:
        """Start a run that continues from the leaf and sends any queued messages.

        Does nothing while a run is in progress.
        """
        if self.running:
            return
        self._is_project_ready = False
        self._run = asyncio.get_running_loop().create_task(self._loop.run())
        self._run.add_done_callback(self._emit_end)

    def _emit_end(self, run: "asyncio.Task[RunEnded]") -> None:
        self.channel.emit(RunEnded("interrupted") if run.cancelled() else run.result())

    def _prepare_project(self, event: AgentEvent) -> None:
        """Start scanning the project when the model begins to write the run's first tool call.

        Runs without tool calls don't need the scan.
        """
        if isinstance(event, ToolCallProgress) and not self._is_project_ready:
            self._is_project_ready = True
            self.files.get_ready()
            if self.ports.sandbox is not None:
                self.ports.sandbox.get_ready(self.ports.project, self.ports.environment)

    def change_model(self, model: str) -> None:
        """Use another model from the next request on. Does nothing if it is already in use."""
        if model == self.model:
            return

        def switch() -> None:
            self.context.model = model

        self.keep(ModelChangeEntry(model=model), then=switch)
        self.context.announce_effort()

    def change_effort(self, effort: Effort | None) -> None:
        """Use a reasoning effort from the next request on; None stands for the settings' effort."""
        if effort == self.context.chosen_effort:
            return

        def switch() -> None:
            self.context.chosen_effort = effort

        self.keep(EffortChangeEntry(effort=effort), then=switch)
        self.context.announce_effort()

    def change_mode(self, mode: str) -> None:
        if mode == self.mode:
            return

        def switch() -> None:
            self.context.mode = mode

        self.keep(ModeChangeEntry(mode=mode), then=switch)

    def adopt(self, adjusted: Adjustable) -> None:
        """Apply changed settings to this agent and its subagents, from the next request on."""
        self.ports.adopt(adjusted)
        self.tools.gate.remove_again()
        if self._subagents is not None:
            # ``adjusted`` may have rules that the user removed, so pass on the rules of ``ports``,
            # from which the gate has just removed them.
            self._subagents.adopt(self.ports.adjustable())

    async def compact(
        self,
        focus: str | None = None,
        *,
        for_model: str | None = None,
        boundary: int | None = None,
    ) -> CompactionOutcome:
        """Summarise the history now.

        During a run return `Postponed`; the history is then summarised before the next step.
        ``focus`` says what the summary should pay attention to. ``boundary`` is the id of the first
        entry that is not summarised, and ``for_model`` the model whose window the result has to
        fit; both are ignored during a run. The outcome's ``problem`` says why nothing was
        compacted. Cancelling this, or calling ``interrupt``, leaves the history as it is.
        """
        if self.running:
            self.context.pending = focus or ""
            self.channel.say(
                "The history will be compacted before the next step or at the end of the run."
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
        """Clear old tool outputs now, and return how many tokens that freed (possibly 0).

        During a run, this only warns the user and returns 0.
        """
        if self.running:
            self.channel.say("The agent is working; interrupt it first.", "warning")
            return 0
        return await self.context.prune(Moment(asked=True))

    async def run_shell(
        self, command: str, *, excluded: bool = False, restorable: bool = False
    ) -> ShellEntry:
        """Run a shell command that the user typed, append its entry and return it.

        The entry is sent to the model unless it is ``excluded``. The command's changes to files
        belong to the user, so a rewind doesn't undo them unless ``restorable`` is set.
        ``interrupt`` ends the command; its entry then has the output so far.
        """
        if not self.running and resolve(self.session.active_path()).mode is None:
            # Until the path has a head entry, only this entry records the mode, and the mode in the
            # settings may change.
            self._journal.append(ModeChangeEntry(mode=self.mode))
        recorder = self.files.recorder if restorable else None
        work = run_shell(command, self.ports, self.channel, recorder, excluded=excluded)
        task = asyncio.ensure_future(work)
        self.shell_tasks.add(task)
        try:
            await asyncio.wait([task])
        finally:
            self.shell_tasks.discard(task)
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
        """Change how the model sees the entries ``target`` and ``others``.

        The change applies from the next request on. ``text`` is the entries' new content for the
        action "edit".
        """
        targets = (target, *others)
        self.keep(*(ContextEditEntry(target=one, action=action, text=text) for one in targets))

    async def warm(self) -> None:
        """Load in advance what the first request needs, such as instructions, tools and hooks.

        Starts the MCP servers without waiting for them. For a long session, also adds up its costs.
        """
        await self.context.warm()
        await asyncio.to_thread(self.allowance.refresh)
        if self.context.preview() is not None:
            self.channel.emit(HeadKnown())
        if not self._are_costs_read:
            await asyncio.to_thread(self.session.reader.costs)
            await asyncio.to_thread(self.session.reader.tokens_used)
            self._are_costs_read = True
            self.channel.emit(CostKnown())
        self.lost_jobs.tell()
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
        """Interrupt the run and end everything that the agent started.

        Its session stays open. MCP servers that other agents of the project may use keep running.
        """
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
        if self.ports.is_main and self.ports.mcp.is_of_one_session:
            await self.ports.mcp.aclose()
        if not self.ports.is_subagent:
            self.ports.hooks.tell(SessionEnd(about=self.ports.hooks.about))
        await self.ports.hooks.aclose()

    def _about(self) -> About:
        info = self.session.info
        places = {"cwd": str(self.ports.cwd), "project": str(self.ports.project)}
        parent = info.id if self.ports.is_subagent else None
        return About(session=info.id, parent=parent, model=self.model, **places)
