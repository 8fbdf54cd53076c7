"""Runs a race: several agents work on one prompt in parallel, each in a copy of the project.

Each of these agents, the runners, is an ordinary agent on its own branch: its session object has
its own leaf. The changes to its copy are recorded as checkpoints on that branch, so its result is
taken by moving to its branch, which ``app.race_commands`` does. The session's controller keeps the
race until `finish` records it in an entry and removes the copies.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import field, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from tui_agent.agent.channel import Journal
from tui_agent.agent.checkpoints.plan import RestorePlan
from tui_agent.agent.checkpoints.restoring import Restorer
from tui_agent.agent.clients import complete_in_time
from tui_agent.agent.compaction_outcome import Cleared
from tui_agent.agent.events import (
    AgentEvent,
    EntryAppended,
    PermissionAnswer,
    PermissionRequest,
    RaceEnded,
    RaceStarted,
    RequestStarted,
    RunEnded,
    RunnerChanged,
    RunStarted,
)
from tui_agent.agent.race.copies import Copy, RaceHome, make_copy
from tui_agent.agent.race.specs import COMPACTED, PRUNED, Pick, RunnerSpec, left_out, names_of
from tui_agent.agent.run_budget import BudgetMeter, Used
from tui_agent.agent.shell import run_check
from tui_agent.context.pruning import Moment
from tui_agent.context.request import ContentText, Message, ModelRequest
from tui_agent.context.templates import fill
from tui_agent.errors import UserFacingError, report
from tui_agent.files.ripgrep import shared_files
from tui_agent.files.secret_files import file_holds_secret, shown_quote
from tui_agent.lazy import dataclass, frozen
from tui_agent.model.protocol import ErrorKind, ModelClient, ModelError, ModelEvent
from tui_agent.session.entries import (
    CheckResult,
    ContextEditEntry,
    EffortChangeEntry,
    Entry,
    ModeChangeEntry,
    ModelChangeEntry,
    RaceEntry,
    RaceRunner,
    RunnerState,
    UserPart,
)
from tui_agent.session.records import Purpose
from tui_agent.session.session import Session

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent

PARALLEL_REQUESTS = 8
"""Maximum number of requests to models that one race makes at the same time."""
LAST_LINES = 10
"""Number of lines that are kept from the end of a check's output."""
FIRST_PAUSE = 2.0
LONGEST_PAUSE = 60.0
"""The first and the longest pause, in seconds, after a rate limit or overload.

The pauses apply if the provider states no waiting time. Each is twice as long as the previous one.
"""

T = TypeVar("T")

MAX_DIFF_CHARS = 20_000
"""Maximum characters of a runner's diff in the comparison. Files beyond that are only named."""


class SharedClient:
    """The ``ModelClient`` that all runners share. After a rate limit or overload, all of them wait.

    At most ``places`` requests are in progress at a time.
    """

    def __init__(
        self,
        client: ModelClient,
        places: int = PARALLEL_REQUESTS,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._places = asyncio.Semaphore(places)
        self._clock = clock
        self._sleep = sleep
        self._free_at = 0.0
        self._pause = FIRST_PAUSE

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Wait until the request may be sent, then stream its answer. Raises ModelError."""
        async with self._places:
            while (wait := self._free_at - self._clock()) > 0:
                await self._sleep(wait)
            try:
                async with aclosing(self._client.stream(request)) as events:
                    async for event in events:
                        yield event
            except ModelError as error:
                if error.kind in {ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED}:
                    self._free_at = max(
                        self._free_at, self._clock() + (error.retry_after or self._pause)
                    )
                    self._pause = min(LONGEST_PAUSE, self._pause * 2)
                raise
            self._pause = FIRST_PAUSE

    async def aclose(self) -> None:
        """Do nothing, because the wrapped client belongs to the session."""


@dataclass
class _SharedQuestion:
    """A question asked for all runners, and the runners that have received its answer."""

    answer: asyncio.Future[PermissionAnswer]
    answered: set[str] = field(default_factory=set)
    waiting: int = 0
    """Number of runners that wait for the answer."""


class SharedQuestions:
    """Asks the user the permission questions of all runners.

    Equal questions are asked only once for all runners, unless they are about doom loops (repeated
    calls).
    """

    def __init__(self, ask: Callable[[PermissionRequest], Awaitable[PermissionAnswer]]) -> None:
        self._ask = ask
        self._questions: dict[tuple[object, ...], _SharedQuestion] = {}
        self._open: set[asyncio.Future[PermissionAnswer]] = set()

    async def ask(self, request: PermissionRequest, runner: str) -> PermissionAnswer:
        """Return the user's answer to a runner's question, perhaps given earlier to another runner.

        Each runner receives an answer only once: if a runner asks the same question again, the user
        is asked again. Questions about doom loops are always asked separately for each runner.
        Cancelling this withdraws the question, unless another runner waits for its answer.
        """
        needs = frozenset((need.permission, need.pattern) for need in request.needs)
        key = (request.tool, request.command, request.rules, request.reason, request.again, needs)
        shared = self._questions.get(key)
        if shared is None or request.loop or runner in shared.answered or shared.answer.cancelled():
            named = replace(request, title=f"{runner}: {request.title}")
            asking = asyncio.ensure_future(self._ask(named))
            self._open.add(asking)
            asking.add_done_callback(self._open.discard)
            shared = _SharedQuestion(asking)
            if not request.loop:
                self._questions[key] = shared
        shared.waiting += 1
        try:
            answer = await asyncio.shield(shared.answer)
        finally:
            shared.waiting -= 1
            if not shared.waiting and not shared.answer.done():
                shared.answer.cancel()
                if self._questions.get(key) is shared:
                    del self._questions[key]
        shared.answered.add(runner)
        return answer

    def close(self) -> None:
        """Withdraw the questions that have not been answered yet."""
        for asking in tuple(self._open):
            asking.cancel()


class RaceError(UserFacingError):
    """Raised if a race can't begin, or if a runner can't do what the user asked for."""


@frozen
class RaceOrder:
    """Describes a race that is to be run.

    ``parts`` is the message to the runners; if empty, they continue the work at ``start``.
    ``prompt`` is the message as text, for display. ``start`` is the id of the entry below which the
    branches begin. ``check`` is the command that tests a runner's result, "" for none. ``cost`` is
    each runner's limit in US dollars, None to use the setting.
    """

    prompt: str
    parts: tuple[UserPart, ...]
    specs: tuple[RunnerSpec, ...]
    start: int | None
    check: str = ""
    pick: Pick = "none"
    cost: float | None = None
    steps: int | None = None
    """Number of steps after which each runner is paused; None to run until its work is done."""
    files: int = 0
    """Number of the project's files, which is shown in the question before the race."""


class Runner:
    """One runner of a race.

    ``record`` contains the runner's state and figures. ``agent``, ``session`` and ``copy`` are None
    until the runner has begun; ``agent`` is None again after `aclose`.
    """

    def __init__(self, race: "Race", number: int, record: RaceRunner) -> None:
        self._race = race
        self.number = number
        """The runner's number, counted from 1."""
        self.record = record
        self.agent: Agent | None = None
        self.session: Session | None = None
        self.copy: Copy | None = None
        self.task: asyncio.Task[None] | None = None
        self.is_asking = False
        """Whether the runner is waiting for the user to answer a question."""
        self._end_relay: Callable[[], None] | None = None
        self._began: float | None = None
        self._ended: RunEnded | None = None
        self._stopped = False
        self._is_context_changed = False
        """Whether `_change_context` has run. The runner's work can begin only afterwards."""
        self._is_tasked = False
        """Whether the race's prompt has been sent to the agent."""

    @property
    def state(self) -> RunnerState:
        return self.record.state

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def figures(self) -> RaceRunner:
        """The runner's record, with the time, cost and tokens of the current run added."""
        record = self.record
        if self._began is None or self.agent is None:
            return record
        meter = self.agent.ports.meter
        return record.model_copy(
            update={
                "seconds": record.seconds + time.monotonic() - self._began,
                "cost": record.cost + meter.cost,
                "tokens": record.tokens + meter.tokens,
            }
        )

    def update(self, **changes: Any) -> None:
        """Change fields of the record, and emit an event that the runner has changed."""
        self.record = self.record.model_copy(update=changes)
        self._race.emit_change(self)

    def stop(self) -> None:
        """Interrupt the runner's work. `begin` can continue it later."""
        self._stopped = True
        if self.agent is not None:
            self.agent.interrupt()
        if self.task is not None and self.state in {RunnerState.WAITING, RunnerState.CHECKING}:
            # Deferred, because a task that is cancelled before it first runs can't report its end.
            asyncio.get_running_loop().call_soon(self.task.cancel)

    def begin(self, message: Sequence[UserPart] = ()) -> None:
        """Start the runner's work in the background, or continue it.

        Sends the runner the race's prompt, unless it was sent before, and then ``message``. If
        there is nothing to send, the runner continues its branch.
        """
        self._stopped = False
        if self.state.is_over:
            self.update(state=RunnerState.WAITING)
        self.task = asyncio.get_running_loop().create_task(self._work(message))

    async def _work(self, message: Sequence[UserPart]) -> None:
        try:
            if self.agent is None:
                await self._prepare()
            assert self.agent is not None  # noqa: S101 - made just now
            if not self._is_context_changed:
                await self._change_context(self.agent)
                self._is_context_changed = True
            if self._stopped:
                self.update(state=RunnerState.STOPPED)
                return
            self.update(state=RunnerState.WORKING, problem="", check=None)
            self._start_run(self.agent, message)
            await self.agent.wait_idle()
            await asyncio.sleep(0)
            await self._after_run(self.agent)
        except asyncio.CancelledError:
            self.update(state=RunnerState.STOPPED)
        except Exception as error:  # noqa: BLE001 - one runner's failure is not the others'
            self.update(state=RunnerState.ERROR, problem=report(error).sentence)
        finally:
            self._race.runner_ended(self)

    async def _prepare(self) -> None:
        race = self._race
        is_new = self.record.root is None
        if self.copy is None:
            self.copy = await race.make_runner_copy(self.number)
        main = race.main
        self.session = main.session.beside(race.order.start if is_new else self.record.leaf)
        changes = self.session.append_many(_setting_entries(self.record, main)) if is_new else ()
        if changes:
            self.update(root=changes[0].id, leaf=changes[-1].id)
        self.agent = race.make_agent(self)
        self.agent.channel.subscribe(self._on_event)
        self._end_relay = self.agent.questions.relay(self._ask)

    def _start_run(self, agent: "Agent", message: Sequence[UserPart]) -> None:
        prompt = self._race.order.parts
        if prompt and not self._is_tasked:
            agent.submit(prompt)
        self._is_tasked = True
        if message:
            agent.submit(message)
        agent.retry()

    async def _change_context(self, agent: "Agent") -> None:
        """Prune or compact the runner's context if its record says so, and record the cost.

        Raises RaceError if nothing was pruned or summarised.
        """
        if self.record.context:
            self.update(state=RunnerState.WORKING)
        began = time.monotonic()
        if self.record.context == PRUNED:
            freed = await agent.context.prune(Moment(asked=True, in_work=True))
            if not freed:
                raise RaceError("There are no old outputs to clear.")
        if self.record.context == COMPACTED:
            outcome = await agent.compact()
            if outcome.problem:
                raise RaceError(outcome.problem)
            if isinstance(outcome, Cleared):
                raise RaceError(
                    "There was too little to summarise, so only old outputs were cleared."
                )
        # The run that follows resets the meter, so the cost up to now is recorded here.
        meter = agent.ports.meter
        seconds = time.monotonic() - began
        self.update(cost=meter.cost, tokens=meter.tokens, seconds=seconds, **self._size(agent))

    def _size(self, agent: "Agent") -> dict[str, int]:
        """Return the size of the runner's next request, in tokens, as a field of its record.

        Returns {} unless the race compares contexts.
        """
        if not any(spec.context for spec in self._race.order.specs):
            return {}
        return {"next_request": agent.context_size().total}

    async def _after_run(self, agent: "Agent") -> None:
        ended = self._ended or RunEnded("interrupted")
        await agent.files.settle()
        amount = (await agent.files.amounts([self._race.order.start]))[0]
        found = {
            "files": amount.files,
            "additions": amount.additions,
            "deletions": amount.deletions,
            **self._size(agent),
        }
        is_paused = ended.reason == "step_limit" and ended.steps == agent.ports.pause_after
        if not ended.has_answer and not is_paused:
            is_stopped = ended.reason == "interrupted"
            state = RunnerState.STOPPED if is_stopped else RunnerState.ERROR
            problem = ended.error or ""
            if ended.reason == "step_limit":
                problem = f"It reached max_steps ({ended.steps})."
            self.update(state=state, problem=problem, **found)
            return
        if not self._race.order.check:
            self.update(state=RunnerState.PAUSED if is_paused else RunnerState.DONE, **found)
            return
        if self._stopped:
            self.update(state=RunnerState.STOPPED, **found)
            return
        self.update(state=RunnerState.CHECKING, **found)
        await self._check(agent)

    async def _check(self, agent: "Agent") -> None:
        entry = await run_check(self._race.order.check, agent.ports, agent.tools.gate.view())
        lines = [line for line in entry.output.splitlines() if line.strip()]
        check = CheckResult(
            exit_code=entry.exit_code, seconds=entry.seconds, last_lines=tuple(lines[-LAST_LINES:])
        )
        state = RunnerState.PASSED if check.exit_code == 0 else RunnerState.FAILED
        self.update(state=state, check=check)

    def _on_event(self, event: AgentEvent) -> None:
        match event:
            case RunStarted():
                self._began = time.monotonic()
            case EntryAppended(entry=entry):
                self.update(leaf=entry.id, root=self.record.root or entry.id)
            case RequestStarted():
                self.update(steps=self.record.steps + 1)
            case RunEnded():
                self._ended = event
                figures = self.figures
                self._began = None
                self.update(seconds=figures.seconds, cost=figures.cost, tokens=figures.tokens)
            case _:
                pass

    async def _ask(self, request: PermissionRequest) -> PermissionAnswer:
        self.is_asking = True
        self._race.emit_change(self)
        try:
            return await self._race.questions.ask(request, self.name)
        finally:
            self.is_asking = False
            self._race.emit_change(self)

    async def aclose(self) -> None:
        """Stop the runner and close its agent, which records its last changes in a checkpoint."""
        self.stop()
        if self.task is not None:
            await asyncio.wait([self.task])
        if self._end_relay is not None:
            self._end_relay()
        if self.agent is not None and self.session is not None:
            await self.agent.aclose()
            self.record = self.record.model_copy(update={"leaf": self.session.leaf})
            self.session.release()
            self.agent = None


class Race:
    """One race in the session of the agent ``main``. Use it only on the event loop's thread."""

    def __init__(self, main: "Agent", home: RaceHome, order: RaceOrder) -> None:
        self.main = main
        self.order = order
        self.id = home.path.name
        names = names_of(order.specs, main.model)
        runners: list[Runner] = []
        for name, spec in zip(names, order.specs, strict=True):
            row = RaceRunner(
                name=name,
                model=spec.model,
                effort=spec.effort,
                mode=spec.mode,
                context=spec.context,
            )
            runners.append(Runner(self, len(runners) + 1, row))
        self.runners = tuple(runners)
        self.picked: int | None = None
        """Number of the runner that was picked automatically; None if no runner was picked."""
        self.saved = 0.0
        """Estimated US dollars saved by stopping the other runners early."""
        self.comparison = ""
        """A model's comparison of the runners' results; "" if none was made."""
        self.client = SharedClient(main.ports.client)
        self.questions = SharedQuestions(main.questions.forward)
        self.home = home
        """The directory of the race's copies."""
        self._listing: asyncio.Task[list[str]] | None = None
        self._copying = asyncio.Lock()
        """Lock that is held while a copy is created. Copies are created one by one, so that the
        first runner begins early."""
        self._plan = RestorePlan()
        self.over = asyncio.Event()
        """Set when all runners have ended, until one is started again."""
        self._closed = False

    # -- beginning --------------------------------------------------------------------------------------------

    @classmethod
    async def begin(cls, main: "Agent", order: RaceOrder, most: float | None = None) -> "Race":
        """Begin a race and return it; its runners work in the background.

        ``most`` is the maximum cost in US dollars, for display; None if unknown. Raises RaceError
        if changed files aren't recorded or the session is read-only, OSError if the directory for
        the copies can't be created.
        """
        ports = main.ports
        if main.session.read_only:
            raise RaceError("This session is read-only. Use /fork to continue in a copy.")
        if ports.copies is None or ports.checkpoints is None:
            raise RaceError(
                "A race needs checkpoints of changed files. Set checkpoints.enabled to true."
            )
        start = order.start
        if start == main.session.leaf:
            # The runners' requests then begin like the session's next request, which is cached.
            await main.context.warm()
            await main.context.head.gather_tools(main.model, main.mode)
            main.context.ensure_head()
            start = main.session.leaf
        race = cls(
            main, await asyncio.to_thread(RaceHome.make, ports.copies), replace(order, start=start)
        )
        race._plan = await main.files.plan(start)
        rows = tuple(runner.record for runner in race.runners)
        main.channel.emit(
            RaceStarted(race.id, start, order.prompt, check=order.check, runners=rows, most=most)
        )
        for runner in race.runners:
            runner.begin()
        return race

    async def make_runner_copy(self, number: int) -> Copy:
        """Create and return a runner's copy of the project as it was when the race began."""
        home = self.home.path
        main = self.main
        if self._listing is None:
            self._listing = asyncio.ensure_future(shared_files(main.ports.project))
        names = await asyncio.shield(self._listing)
        sandbox = main.ports.sandbox
        contained = sandbox is not None and await asyncio.to_thread(lambda: sandbox.active)
        given_up = Event()
        try:
            async with self._copying:
                copy = await asyncio.to_thread(
                    make_copy,
                    main.ports.project,
                    names,
                    home,
                    str(number),
                    may_link=contained,
                    given_up=given_up,
                )
        finally:
            given_up.set()  # Ends the copying thread if this task was cancelled.
        if self._plan:
            keeping = main.ports.checkpoints
            assert keeping is not None  # noqa: S101 - a race needs it
            await asyncio.to_thread(
                Restorer(copy.root, _store_for_copy(keeping, copy.root)).carry_out, self._plan
            )
        return copy

    def make_agent(self, runner: Runner) -> "Agent":
        """Create a runner's agent, which works in the runner's copy and on its branch."""
        from tui_agent.agent.agent import Agent

        main = self.main
        copy = runner.copy
        session = runner.session
        assert copy is not None and session is not None and main.ports.checkpoints is not None  # noqa: S101, PT018
        sandbox = main.ports.sandbox
        if sandbox is not None:
            sandbox = sandbox.for_copy(copy.root, copy.project, copy.shared)
        ports = replace(
            main.ports,
            client=self.client,
            sandbox=sandbox,
            cwd=copy.place(main.ports.cwd),
            project=copy.root,
            stands_for=main.ports.project,
            checkpoints=_store_for_copy(main.ports.checkpoints, copy.root),
            copies=None,
            # A fallback model would answer instead of the model that the race compares.
            fallback_models=(),
            editor=None,
            titles=False,
            check=None,
            meter=BudgetMeter(
                main.ports.meter.has_price, before=Used(runner.record.cost, runner.record.tokens)
            ),
            pause_after=self.order.steps,
            budget=replace(main.ports.budget, cost=self.order.cost or main.ports.budget.cost),
        )
        agent = Agent(
            session, ports, model=main.model, mode=main.mode, effort=main.context.chosen_effort
        )
        agent.tools.gate.session_rules = main.tools.gate.session_rules
        return agent

    # -- for the user -----------------------------------------------------------------------------------------

    def runner(self, number: int) -> Runner:
        """Return a runner by its number, counted from 1. Raises RaceError if there is none."""
        return numbered(self.runners, number)

    def stop(self, number: int | None = None) -> None:
        """Stop the runner ``number``, or all runners if ``number`` is None.

        Raises RaceError if there is no such runner.
        """
        for runner in self.runners if number is None else (self.runner(number),):
            if not runner.state.is_over:
                runner.stop()

    def steer(self, number: int, message: Sequence[UserPart]) -> None:
        """Send a message to a runner for its next step. If the runner has ended, it starts again.

        Raises RaceError if the runner is neither working nor ended, or doesn't exist.
        """
        runner = self.runner(number)
        if runner.agent is not None and runner.agent.running:
            runner.agent.submit(message)
        elif runner.state.is_over:
            self.over.clear()
            runner.begin(tuple(message))
        else:
            raise RaceError(
                f"{runner.name} is {runner.state.value}. Wait until it is working or has ended."
            )

    def resume(self, number: int) -> None:
        """Restart a runner that has ended.

        Raises RaceError if the runner hasn't ended or doesn't exist.
        """
        runner = self.runner(number)
        if not runner.state.is_over:
            raise RaceError(f"{runner.name} is {runner.state.value} already.")
        self.over.clear()
        runner.begin()

    async def end_runners(self) -> None:
        """End all runners, so that the checkpoints on their branches contain their last changes."""
        await asyncio.gather(*(runner.aclose() for runner in self.runners))
        self.questions.close()

    async def finish(self, taken: int | None) -> RaceEntry:
        """End all runners, append the race's entry, remove the copies, and return the entry.

        ``taken`` is the number of the runner whose result is taken, None for none. Raises
        StoreError if the entry can't be appended; in that case, the copies are kept.
        """
        await self.end_runners()
        entry = RaceEntry(
            prompt=self.order.prompt,
            start=self.order.start,
            check=self.order.check,
            runners=tuple(runner.record for runner in self.runners),
            taken=taken,
            saved=self.saved,
            comparison=self.comparison,
        )
        self.main.keep(entry)
        await self._remove_copies()
        return entry

    async def aclose(self) -> None:
        """End the race because its session closes. Does nothing if the race has ended.

        Records the results, so that any runner's result can be taken later, unless another program
        has taken over the session.
        """
        if self._closed:
            return
        try:
            if self.main.session.read_only:  # Another program has taken over the session.
                await self.end_runners()
            else:
                await self.finish(None)
        finally:
            await self._remove_copies()

    async def _remove_copies(self) -> None:
        """Remove the copies. Idempotent."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self.home.remove)

    # -- from runners -----------------------------------------------------------------------------------------

    def emit_change(self, runner: Runner) -> None:
        """Emit an event that contains a runner's current figures."""
        self.main.channel.emit(RunnerChanged(self.id, runner.number, runner.figures))

    def runner_ended(self, runner: Runner) -> None:
        """Handle a runner's end: pick a runner if due; if all have ended, report the race's end.

        With "first-green", the other runners are stopped when one is picked.
        """
        if (
            self.order.pick == "first-green"
            and runner.state is RunnerState.PASSED
            and self.picked is None
        ):
            self.picked = runner.number
            for other in self.runners:
                if not other.state.is_over:
                    # Assumes that this runner would have cost as much as the winner.
                    self.saved += max(0.0, runner.figures.cost - other.figures.cost)
                    other.stop()
        if all(other.state.is_over for other in self.runners):
            if self.order.pick == "best" and self.picked is None:
                best = min(self.runners, key=lambda other: other.figures.rank)
                if best.state in {RunnerState.PASSED, RunnerState.DONE, RunnerState.PAUSED}:
                    self.picked = best.number
            self.over.set()
            self.main.channel.emit(RaceEnded(self.id, self.picked, self.saved))


def numbered(runners: Sequence[T], number: int) -> T:
    """Return a runner by its number, counted from 1. Raises RaceError if there is none."""
    if not 1 <= number <= len(runners):
        raise RaceError(f"There is no runner {number}. Use 1 to {len(runners)}.")
    return runners[number - 1]


def _store_for_copy(keeping: Any, root: Path) -> Any:
    """Return the store for snapshots of the copy at ``root``.

    The returned store is like ``keeping``, but doesn't exclude the directories around the copy.
    """
    apart = tuple(place for place in keeping.apart if not root.is_relative_to(place))
    return replace(keeping, apart=apart)


def _setting_entries(row: RaceRunner, main: "Agent") -> Iterable[Entry]:
    if row.model and row.model != main.model:
        yield ModelChangeEntry(model=row.model)
    if row.effort is not None and row.effort != main.context.chosen_effort:
        yield EffortChangeEntry(effort=row.effort)
    if row.mode and row.mode != main.mode:
        yield ModeChangeEntry(mode=row.mode)
    for entry in left_out(row.context):
        yield ContextEditEntry(target=entry, action="drop")


async def compare(race: "Race") -> str:
    """Have a model compare the runners' changes, store the comparison in the race, and return it.

    Does nothing and returns "" if fewer than two runners made changes. Raises ModelError.
    """
    attempts: list[str] = []
    for runner in race.runners:
        diff = await _diff_of(race, runner)
        if diff:
            attempts.append(f"<attempt name={runner.name!r}>\n{diff}\n</attempt>")
    if len(attempts) < 2:
        return ""
    main = race.main
    task = fill(main.ports.prompt("race_compare"), task=race.order.prompt)
    text = "\n\n".join([task, *attempts])
    model = main.ports.small_model or main.model
    request = ModelRequest(model, (Message("user", (ContentText(text),)),))
    journal = Journal(main.session, main.channel)
    answer = await complete_in_time(main.ports, request, journal, None, Purpose.RACES)
    race.comparison = answer.text.strip()
    return race.comparison


async def _diff_of(race: "Race", runner: "Runner") -> str:
    """Return a diff of the changes that a runner has made since the race began; "" for none.

    Also returns "" if the runner's agent has been closed. Files with secrets, and files whose diff
    would make the text longer than `MAX_DIFF_CHARS`, are only named.
    """
    if runner.agent is None or runner.copy is None:
        return ""
    text = ""
    for file in await runner.agent.files.diff(race.order.start):
        path = runner.copy.root / file.path
        row = f"{file.mark} {file.path} {file.facts}\n"
        if file.diff and not file_holds_secret(path):
            diff = shown_quote(path, file.diff)
            if len(text) + len(diff) <= MAX_DIFF_CHARS:
                row = diff
        text += row
    return text
