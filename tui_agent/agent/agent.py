"""The agent of one session: what every way in (screen, headless, editor protocol) drives and listens to."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from tui_agent.agent.answer import Answerer
from tui_agent.agent.channel import EventChannel, Questions
from tui_agent.agent.checkpoints.recorder import Recorder
from tui_agent.agent.checkpoints.rewind import FileRewind, Surroundings
from tui_agent.agent.compactor import Outcome
from tui_agent.agent.context_inspector import ContextInspector
from tui_agent.agent.context_keeper import ContextKeeper
from tui_agent.agent.drafting import Drafting
from tui_agent.agent.events import (
    AgentEvent,
    CostKnown,
    EntryAppended,
    LiveAnswer,
    Notice,
    PermissionAnswer,
    PermissionRequest,
    QueueChanged,
    RunEnded,
)
from tui_agent.agent.gate import Gate
from tui_agent.agent.hooks.payloads import About
from tui_agent.agent.job_news import make_jobs
from tui_agent.agent.knowledge.knowledge import CommandRow
from tui_agent.agent.loop import Loop
from tui_agent.agent.mcp.session import SessionMcp
from tui_agent.agent.message_queue import MessageQueue
from tui_agent.agent.named import Named, all_named, load_named
from tui_agent.agent.navigator import NavigationError, Navigator
from tui_agent.agent.permissions import Rule, resumed_mode
from tui_agent.agent.ports import Adjustable, AgentPorts
from tui_agent.agent.preparing import Prepared, prepare_command
from tui_agent.agent.shell import INTERRUPTED, run_shell
from tui_agent.agent.subagents import Parent, Subagents
from tui_agent.agent.titles import Titles
from tui_agent.agent.tool_runner import ToolRunner
from tui_agent.context.branch_summary import MovePlan
from tui_agent.context.budget import ContextSize
from tui_agent.context.pruning import Moment, PrunePlan
from tui_agent.context.view import DEFAULT_MODE, resolve
from tui_agent.session.entries import (
    BranchSummaryEntry,
    ContextEditEntry,
    Entry,
    ModeChangeEntry,
    ModelChangeEntry,
    ShellEntry,
    TextPart,
    UserPart,
)
from tui_agent.session.session import Session
from tui_agent.tools.base import OutputLimits

FEW_ENTRIES = 2_000
"""Entries whose costs are added up in a moment too short to notice."""


class Agent:
    """Works in one session. Everything is called on the event loop's thread."""

    def __init__(self, session: Session, ports: AgentPorts, *, model: str, mode: str = "build") -> None:
        self._channel = EventChannel()
        ports = replace(ports, hooks=ports.hooks.bound(self._about, self._channel.emit))
        self.session = session
        self.ports = ports
        self._questions = Questions(self._channel)
        self._queue = MessageQueue()
        self._task: asyncio.Task[RunEnded] | None = None
        self._compacting: asyncio.Future[Outcome] | None = None
        self._shells: set[asyncio.Task[ShellEntry]] = set()
        self._costs_are_read = session.info.entry_count <= FEW_ENTRIES
        view = resolve(session.active_path())
        mode = resumed_mode(view.mode, mode)
        self._context = ContextKeeper(session, ports, self._channel, model=view.model or model, mode=mode)
        self.inspector = ContextInspector(session, ports, self._context)
        """What a person may ask about the next request."""
        self.drafting = Drafting(self._context)
        """Compactions that are looked at before they are committed."""
        self._titles = Titles(session, ports, self._channel, lambda: self.model)
        self._navigator = Navigator(
            session, ports, self._channel, model=lambda: self.model, refuse=self._refuse_while_running
        )
        self._answerer = Answerer(session, ports, self._channel)
        self._tools = ToolRunner(session, ports, self._channel, self._questions, lambda: self.mode)
        around = Surroundings(self._append, self._tools.aclose, lambda: self.jobs.running, self._channel.emit)
        self.files = FileRewind(session, ports, around)
        """The files of the project: what the session changed in them, and how they go along when one moves."""
        self._subagents: Subagents | None = None
        if ports.open_child is not None:
            parent = Parent(
                session=session,
                ports=ports,
                channel=self._channel,
                questions=self._questions,
                model=lambda: self.model,
                mode=lambda: self.mode,
                session_rules=self._tools.session_rules,
                recorder=self.files.recorder,
            )
            self._subagents = self._tools.subagents = Subagents(parent, ports.open_child)
        self.jobs = self._tools.jobs = make_jobs(self._channel.emit)
        """The commands that go on in the background; they end with the agent."""
        self.mcp = SessionMcp(
            ports.mcp,
            ports.put_blob,
            emit=self._channel.emit,
            tell_anew=self._context.tell_of_tools,
            count=lambda schema: ports.directory.counter(self.model).schema(schema),
        )
        """The servers of the Model Context Protocol."""
        self._loop = Loop(session, ports, self._channel, self._queue, self._context, self._answerer, self._tools)
        self._loop.recorder = self._tools.recorder = self.files.recorder
        self._tools.on_late_end = self.files.keep_changes

    def share_rules(self, rules: list[Rule]) -> None:
        """Use another agent's list of rules made by "always in this session": what is allowed there is allowed here."""
        self._tools.session_rules = rules

    def share_recorder(self, recorder: Recorder | None) -> None:
        """Have another agent's recorder watch the calls made here; the other agent keeps what it sees."""
        self._tools.recorder = recorder

    # -- what a screen shows ----------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether a run is going on."""
        return self._task is not None and not self._task.done()

    @property
    def live(self) -> LiveAnswer | None:
        """The answer being streamed, None between answers."""
        return self._answerer.live

    def subagent(self, call_id: str) -> "Agent | None":
        """Return the subagent that works on a call now, None when none does."""
        return None if self._subagents is None else self._subagents.working.get(call_id)

    @property
    def question(self) -> PermissionRequest | None:
        """The permission question that waits for an answer."""
        return self._questions.open

    @property
    def queue(self) -> QueueChanged:
        """The messages that wait for their turn."""
        return self._queue.snapshot()

    @property
    def model(self) -> str:
        """The model of the next request."""
        return self._context.model

    @property
    def mode(self) -> str:
        """The mode of the next request."""
        return self._context.mode

    def subscribe(self, callback: Callable[[AgentEvent], None]) -> Callable[[], None]:
        """Call ``callback`` with every event from now on; the returned function ends that."""
        return self._channel.subscribe(callback)

    def context_size(self) -> ContextSize:
        """Measure the next request."""
        return self._context.size()

    def session_cost(self) -> float | None:
        """Return the US dollars spent in the session on all branches, with its title and its subagents' work.

        None when no price is known, and for a long session until ``warm`` has added them up.
        """
        costs = self.session.costs() if self._costs_are_read else {}
        spent = [*costs.values(), *filter(None, [self.session.info.side_cost])]
        return sum(spent) if spent and self._costs_are_read else None

    # -- what a user does -------------------------------------------------------------------------------------

    def submit(self, message: str | Sequence[UserPart], *, follow_up: bool = False) -> None:
        """Send a message: it starts a run, or waits for the next step, with ``follow_up`` for the end of the run."""
        parts = (TextPart(text=message),) if isinstance(message, str) else tuple(message)
        self._titles.begin(parts)
        self._queue.put(parts, follow_up=follow_up and self.running)
        if self.running:
            self._channel.emit(self._queue.snapshot())
        else:
            self._start()

    def commands(self) -> tuple[CommandRow, ...]:
        """Return the user's own commands and skills and the servers' prompts, as they can be typed."""
        prompts = (CommandRow(row.command, row.description, row.usage) for row in self.mcp.prompts())
        return (*self.ports.knowledge.rows, *prompts)

    async def prepare_command(self, name: str, arguments: str) -> Prepared | None:
        """Return the message of one of ``commands``; see ``preparing``."""
        return await prepare_command(name, arguments, self.session, self.ports)

    def mentions(self) -> tuple[Named, ...]:
        """Return what a message can name beside files and entries: agents for tasks, resources of servers."""
        return all_named(self.ports)

    async def load_named(self, name: str) -> tuple[UserPart, ...]:
        """Return the parts for one of ``mentions``, none when there is no such thing."""
        return await load_named(self.ports)(name)

    def agents(self) -> tuple[CommandRow, ...]:
        """Return the kinds of agents that can take this one's place."""
        return tuple(CommandRow(spec.name, spec.description) for spec in self.ports.knowledge.specs if spec.primary)

    def choose_agent(self, name: str) -> bool:
        """Let another kind of agent go on from the next request on; False when there is none of that name."""
        spec = self.ports.knowledge.primary(name)
        if spec is None and name != DEFAULT_MODE:
            return False
        self.change_mode(name)
        if spec is not None and spec.model is not None:
            self.change_model(spec.model)
        return True

    def take_back(self) -> str | None:
        """Remove the newest waiting message and return its text."""
        message = self._queue.take_back()
        self._channel.emit(self._queue.snapshot())
        return message.text if message else None

    def interrupt(self) -> None:
        """Stop the run where it is; the session can go on from there."""
        if self._task is not None:
            self._task.cancel()
        if self._compacting is not None:
            self._compacting.cancel()
        for task in self._shells:
            task.cancel()

    def answer_permission(self, call_id: str, answer: PermissionAnswer) -> None:
        """Settle the open question; an answer to a question that is no longer open does nothing."""
        self._questions.answer(call_id, answer)

    def retry(self) -> None:
        """Send the path again after a failure."""
        if not self.running:
            self._start()

    def change_model(self, model: str) -> None:
        """Use another model from the next request on."""
        if model != self.model:
            self._context.model = model
            self._append(ModelChangeEntry(model=model))

    def change_mode(self, mode: str) -> None:
        """Use another mode from the next request on."""
        if mode != self.mode:
            self._context.mode = mode
            self._append(ModeChangeEntry(mode=mode))

    def adopt(self, adjusted: Adjustable) -> None:
        """Follow changed settings from the next request on; what is going on ends as it began."""
        self.ports.adopt(adjusted)
        self.gate.remove_again()

    @property
    def gate(self) -> Gate:
        """The permission rules that hold: to be looked at, removed and put back."""
        return self._tools.gate

    async def compact(self, focus: str | None = None, *, for_model: str | None = None) -> Outcome:
        """Summarise the history now, or before the next step when a run is going on; see ``ContextKeeper.compact``.

        The outcome's ``problem`` says why nothing was compacted. Cancelling it, or ``interrupt``, changes nothing.
        """
        if self.running:
            self._context.pending = focus or ""
            self._channel.emit(Notice("The history is compacted before the next step."))
            return Outcome()
        self._compacting = asyncio.ensure_future(self._context.compact("manual", focus, for_model=for_model))
        try:
            return await self._compacting
        finally:
            self._compacting = None

    async def prune(self) -> int:
        """Turn old tool outputs into placeholders now; returns the tokens freed, 0 when there was nothing to gain."""
        if self.running:
            self._channel.emit(Notice("The agent is working; interrupt it first.", "warning"))
            return 0
        return await self._context.prune(Moment(asked=True))

    async def plan_prune(self) -> PrunePlan | None:
        """Return what ``prune`` would do, None when there is nothing to gain."""
        return await self._context.plan_prune(Moment(asked=True))

    async def run_shell(self, command: str, *, excluded: bool = False) -> ShellEntry:
        """Run a command for the user; unless ``excluded`` the model sees it with the next request."""
        task = asyncio.ensure_future(
            run_shell(command, self.ports, self._channel, self.files.recorder, excluded=excluded)
        )
        self._shells.add(task)
        try:
            await asyncio.wait([task])
        finally:
            self._shells.discard(task)
            task.cancel()
        stopped = ShellEntry(command=command, output=INTERRUPTED, excluded=excluded)
        entry = stopped if task.cancelled() else task.result()
        self._append(entry)
        self.files.keep_changes()
        return entry

    # -- the tree ---------------------------------------------------------------------------------------------

    def plan_move(self, target: int | None, *, continue_from_here: bool = False) -> MovePlan:
        """Return what a move to an entry would do; see ``Navigator.plan``."""
        return self._navigator.plan(target, continue_from_here=continue_from_here)

    async def carry_out(
        self, plan: MovePlan, *, focus: str | None = None, progress: Callable[[str], None] | None = None
    ) -> None:
        """Move as planned; ``focus`` None without a summary, "" with one, a text says what it should keep.

        Files stay as they are; ``files`` takes them along.

        Raises:
            NavigationError: a run is going on, or the summary failed; nothing changed.
        """
        await self._navigator.move(plan, focus=focus, progress=progress)
        self._follow_path()

    async def merge_branch(
        self, leaf: int, *, focus: str = "", progress: Callable[[str], None] | None = None
    ) -> BranchSummaryEntry:
        """Append a summary of another branch here, without moving.

        Raises:
            NavigationError: as ``carry_out``, or there is nothing to tell.
        """
        return await self._navigator.merge(leaf, focus=focus, progress=progress)

    async def move(self, target: int | None) -> None:
        """Make an entry the leaf, without a summary.

        Raises:
            NavigationError: a run is going on, or a hook cancelled it.
        """
        await self._navigator.go(target)
        self._follow_path()

    async def undo_move(self) -> int | None:
        """Undo the last move; returns the leaf.

        Raises:
            NavigationError: a run is going on, or a hook cancelled it.
            NothingToUndo: there is no move to undo.
        """
        leaf = await self._navigator.undo()
        self._follow_path()
        return leaf

    async def redo_move(self) -> int | None:
        """Redo the move undone last; as ``undo_move``."""
        leaf = await self._navigator.redo()
        self._follow_path()
        return leaf

    def edit_context(self, target: int, action: Literal["drop", "mask", "pin", "restore"]) -> None:
        """Change the model's view of one entry from the next request on; undone by another edit or by moving back."""
        self._append(ContextEditEntry(target=target, action=action))

    def _refuse_while_running(self) -> None:
        if self.running:
            raise NavigationError("The agent is working; interrupt it first (Escape).")

    def _follow_path(self) -> None:
        """Take model and mode from the path one is on now."""
        view = resolve(self.session.active_path())
        self._context.model = view.model or self._context.model
        if view.mode != self._context.mode:
            self._context.mode = resumed_mode(view.mode, self._context.mode)

    async def warm(self) -> None:
        """Get ready for the first message what takes time: best when the user is not typing."""
        await self._context.warm()
        if not self._costs_are_read:
            await asyncio.to_thread(self.session.costs)
            self._costs_are_read = True
            self._channel.emit(CostKnown())
        self.mcp.start()
        await self.ports.hooks.warm()

    async def wait_idle(self) -> None:
        """Wait until the run that is going on has ended."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def aclose(self) -> None:
        """Interrupt the run and end what it started. The session stays open; it is the caller's."""
        self.interrupt()
        await self.wait_idle()
        await self._titles.aclose()
        await self._tools.aclose()
        await self.jobs.aclose()
        await self.files.aclose()
        self.mcp.close()
        await self.ports.hooks.aclose()

    # -- runs ---------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        limits = self.ports.directory.limits(self.model)
        self._tools.vision = limits.vision
        truncation = self.ports.settings.truncation
        self._tools.limits = OutputLimits(
            truncation.lines, truncation.bytes, truncation.line_chars, truncation.tokens(limits.window)
        )
        self.files.get_ready()
        self._task = asyncio.get_running_loop().create_task(self._loop.run())
        self._task.add_done_callback(self._announce_end)

    def _announce_end(self, task: "asyncio.Task[RunEnded]") -> None:
        """Tell that the run ended; whoever hears it finds the agent idle."""
        ended = RunEnded("interrupted") if task.cancelled() else task.result()
        self._channel.emit(ended)

    def _about(self) -> About:
        """Tell hooks where it happens."""
        info, places = self.session.info, {"cwd": str(self.ports.cwd), "project": str(self.ports.project)}
        return About(session=info.id, parent=info.parent_session, model=self.model, **places)

    def _append(self, entry: Entry) -> None:
        """Append now, or before the next step, when an entry in between could part a call from its result."""
        if self.running:
            self._loop.held_back.append(entry)
        else:
            self._channel.emit(EntryAppended(self.session.append(entry)))
