"""A race: runners that work on the same prompt at the same time, each on a branch of the session and in its own copy.

A runner is an agent like any other: the same loop, recorder and sandbox, on a session object with a
leaf of its own. Its changes to its copy are recorded as checkpoints on its branch, so that taking
it is a move in the tree.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
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
from tui_agent.lazy import frozen
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
"""Requests of one race that are answered at a time."""
LAST_LINES = 10
"""Lines of a check's output that the table keeps."""
FIRST_PAUSE = 2.0
LONGEST_PAUSE = 60.0
"""Seconds that all wait after a rate limit whose provider names no time: doubled each time, up to
the longest."""

T = TypeVar("T")

MAX_DIFF_CHARS = 20_000
"""Characters of each runner's changes that are given; of more files are named."""


class SharedClient:
    """A ``ModelClient`` for all runners: when one meets a rate limit, the others send nothing until it is over."""

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
        """Stream the answer to a request once there is a place for it.

        Raises as the client does.
        """
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
        """The client is closed elsewhere."""


class SharedQuestions:
    """Passes questions of runners on.

    The answer to one holds for every runner that asks the same.
    """

    def __init__(self, ask: Callable[[PermissionRequest], Awaitable[PermissionAnswer]]) -> None:
        self._ask = ask
        self._answers: dict[tuple[object, ...], asyncio.Future[PermissionAnswer]] = {}

    async def ask(self, request: PermissionRequest, runner: str) -> PermissionAnswer:
        """Return the user's answer to a runner's request.

        A runner stuck in a loop is asked about separately.
        """
        needs = frozenset((need.permission, need.pattern) for need in request.needs)
        key: tuple[object, ...] = (request.tool, request.rules, request.reason, needs)
        if request.loop:
            key = (*key, runner)
        if key not in self._answers or self._answers[key].cancelled():
            named = replace(request, title=f"{runner}: {request.title}")
            asking = self._answers[key] = asyncio.ensure_future(self._ask(named))
            if request.loop:
                asking.add_done_callback(lambda _done: self._answers.pop(key, None))
        return await asyncio.shield(self._answers[key])

    def close(self) -> None:
        for asking in self._answers.values():
            asking.cancel()


class RaceError(UserFacingError):
    """A race can't do as asked; the message is one sentence for a person."""


@frozen
class RaceOrder:
    """The race to run.

    ``cost`` is US dollars for each runner; ``start`` is where the branches begin. Without
    ``parts`` the runners go on with the work at hand there, and ``prompt`` only names it.
    """

    prompt: str
    parts: tuple[UserPart, ...]
    specs: tuple[RunnerSpec, ...]
    start: int | None
    check: str = ""
    pick: Pick = "none"
    cost: float | None = None
    steps: int | None = None
    """Steps that each runner looks ahead; None: until its work is done."""
    files: int = 0
    """Files of the project that each copy gets, as they are listed."""


class Runner:
    """One runner.

    ``record`` holds its state; ``agent`` works for it, None before its copy is made.
    """

    def __init__(self, race: "Race", number: int, record: RaceRunner) -> None:
        self._race = race
        self.number = number
        """Counted from 1."""
        self.record = record
        self.agent: Agent | None = None
        self.session: Session | None = None
        self.copy: Copy | None = None
        self.task: asyncio.Task[None] | None = None
        self.is_asking = False
        """Whether it waits for the answer to a question."""
        self._end_relay: Callable[[], None] | None = None
        self._began: float | None = None
        self._ended: RunEnded | None = None
        self._stopped = False

    @property
    def state(self) -> RunnerState:
        return self.record.state

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def figures(self) -> RaceRunner:
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
        self.record = self.record.model_copy(update=changes)
        self._race.tell(self)

    def stop(self) -> None:
        self._stopped = True
        if self.agent is not None:
            self.agent.interrupt()
        if self.task is not None and self.state in {RunnerState.WAITING, RunnerState.CHECKING}:
            # Cancelled before its first step, a task would not even say that it has ended.
            asyncio.get_running_loop().call_soon(self.task.cancel)

    def begin(self, message: Sequence[UserPart] | None) -> None:
        """Let it work in a task of its own: on a message, or on its branch as it stands."""
        self._stopped = False
        if self.state.is_over:
            self.update(state=RunnerState.WAITING)
        self.task = asyncio.get_running_loop().create_task(self._work(message))

    async def _work(self, message: Sequence[UserPart] | None) -> None:
        try:
            if self.agent is None:
                await self._get_ready()
            assert self.agent is not None  # noqa: S101 - made just now
            if self._stopped:
                self.update(state=RunnerState.STOPPED)
                return
            self.update(state=RunnerState.WORKING, problem="", check=None)
            if message is None:
                self.agent.retry()
            else:
                self.agent.submit(message)
            await self.agent.wait_idle()
            await asyncio.sleep(0)
            await self._after_run(self.agent)
        except asyncio.CancelledError:
            self.update(state=RunnerState.STOPPED)
        except Exception as error:  # noqa: BLE001 - one runner's failure is not the others'
            self.update(state=RunnerState.ERROR, problem=report(error).sentence)
        finally:
            self._race.after(self)

    async def _get_ready(self) -> None:
        race = self._race
        is_new = self.record.root is None
        if self.copy is None:
            self.copy = await race.copied(self.number)
        main = race.main
        self.session = main.session.beside(race.order.start if is_new else self.record.leaf)
        changes = self.session.append_many(_changes(self.record, main)) if is_new else ()
        if changes:
            self.update(root=changes[0].id, leaf=changes[-1].id)
        self.agent = race.make_agent(self)
        self.agent.channel.subscribe(self._hear)
        self._end_relay = self.agent.questions.relay(self._ask)
        if is_new:
            await self._change_context(self.agent)

    async def _change_context(self, agent: "Agent") -> None:
        """Prune or compact as the runner's context says.

        Raises RaceError where there is nothing to gain.
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
                raise RaceError("There is too little to summarise: old outputs alone would go.")
        # The meter counts a run from zero: what was spent before it is noted here.
        meter = agent.ports.meter
        seconds = time.monotonic() - began
        self.update(cost=meter.cost, tokens=meter.tokens, seconds=seconds, **self._size(agent))

    def _size(self, agent: "Agent") -> dict[str, int]:
        """Return the size of its next request, where the race compares contexts."""
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
        if ended.reason not in {"done", "length"} and not is_paused:
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

    def _hear(self, event: AgentEvent) -> None:
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
        self._race.tell(self)
        try:
            return await self._race.questions.ask(request, self.name)
        finally:
            self.is_asking = False
            self._race.tell(self)

    async def aclose(self) -> None:
        """End everything it started; its last changes are in a checkpoint then."""
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
    """One race of one session.

    Everything is called on the event loop's thread. ``main`` is the session's agent.
    """

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
        """The number of the runner that ``pick`` chose; None before that."""
        self.saved = 0.0
        self.comparison = ""
        self.client = SharedClient(main.ports.client)
        self.questions = SharedQuestions(main.questions.ask)
        self.home = home
        """Where its copies are."""
        self._listing: asyncio.Task[list[str]] | None = None
        self._copying = asyncio.Lock()
        """Copies are made one after the other, so that the first runner begins early."""
        self._plan = RestorePlan()
        self.over = asyncio.Event()
        """Set while no runner works any more."""
        self._closed = False

    # -- beginning --------------------------------------------------------------------------------------------

    @classmethod
    async def begin(cls, main: "Agent", order: RaceOrder, most: float | None = None) -> "Race":
        """Begin a race; its runners work in tasks of their own.

        ``most`` is its stated maximum cost in US dollars.

        Raises RaceError where there can be none, OSError where there is no room for its copies.
        """
        ports = main.ports
        if ports.copies is None or ports.checkpoints is None or main.session.read_only:
            raise RaceError(
                "There can be no race here: changes of files are not recorded (checkpoints.enabled)."
            )
        start = order.start
        if start == main.session.leaf:
            # Branches from here begin with the bytes of its next request.
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
            runner.begin(order.parts or None)
        return race

    async def copied(self, number: int) -> Copy:
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
            given_up.set()  # the thread goes on where this is cancelled
        if self._plan:
            keeping = main.ports.checkpoints
            assert keeping is not None  # noqa: S101 - a race needs it
            await asyncio.to_thread(
                Restorer(copy.root, _outside(keeping, copy.root)).carry_out, self._plan
            )
        return copy

    def make_agent(self, runner: Runner) -> "Agent":
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
            checkpoints=_outside(main.ports.checkpoints, copy.root),
            copies=None,
            # A race compares the models that were chosen.
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
        return numbered(self.runners, number)

    def stop(self, number: int | None = None) -> None:
        for runner in self.runners if number is None else (self.runner(number),):
            if not runner.state.is_over:
                runner.stop()

    def steer(self, number: int, message: Sequence[UserPart]) -> None:
        """Send a message to a runner: for its next step, or to begin again when it is over.

        Raises as `runner`.
        """
        runner = self.runner(number)
        if runner.agent is not None and runner.agent.running:
            runner.agent.submit(message)
        elif runner.state.is_over:
            self.over.clear()
            runner.begin(tuple(message))
        else:
            raise RaceError(
                f"{runner.name} is {runner.state.value}: wait until it works, or is over."
            )

    def resume(self, number: int) -> None:
        runner = self.runner(number)
        if not runner.state.is_over:
            raise RaceError(f"{runner.name} is {runner.state.value} already.")
        self.over.clear()
        is_new = runner.record.root is None
        runner.begin((self.order.parts or None) if is_new else None)

    async def end_runners(self) -> None:
        """End all runners; their changes are on their branches then."""
        await asyncio.gather(*(runner.aclose() for runner in self.runners))
        self.questions.close()

    async def finish(self, taken: int | None) -> RaceEntry:
        """Record the result below the leaf and remove the copies.

        Raises StoreError and leaves them.
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
        await self._let_go()
        return entry

    async def aclose(self) -> None:
        """End the race with its session: its results are recorded, and any runner can be taken later."""
        if self._closed:
            return
        try:
            if self.main.session.read_only:  # another program has it now
                await self.end_runners()
            else:
                await self.finish(None)
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self.home.remove)

    # -- from runners -----------------------------------------------------------------------------------------

    def tell(self, runner: Runner) -> None:
        self.main.channel.emit(RunnerChanged(self.id, runner.number, runner.figures))

    def after(self, runner: Runner) -> None:
        if (
            self.order.pick == "first-green"
            and runner.state is RunnerState.PASSED
            and self.picked is None
        ):
            self.picked = runner.number
            for other in self.runners:
                if not other.state.is_over:
                    # The rest of its spending, had it spent as much as the winner.
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
    """Return a runner by its number, counted from 1; raises RaceError."""
    if not 1 <= number <= len(runners):
        raise RaceError(f"There is no runner {number}; there are {len(runners)}.")
    return runners[number - 1]


def _outside(keeping: Any, root: Path) -> Any:
    """Return where images go, for a copy that is in a directory of this program's."""
    apart = tuple(place for place in keeping.apart if not root.is_relative_to(place))
    return replace(keeping, apart=apart)


def _changes(row: RaceRunner, main: "Agent") -> Iterable[Entry]:
    if row.model and row.model != main.model:
        yield ModelChangeEntry(model=row.model)
    if row.effort is not None and row.effort != main.context.chosen_effort:
        yield EffortChangeEntry(effort=row.effort)
    if row.mode and row.mode != main.mode:
        yield ModeChangeEntry(mode=row.mode)
    for entry in left_out(row.context):
        yield ContextEditEntry(target=entry, action="drop")


async def compare(race: "Race") -> str:
    """Return in a few lines how the runners' changes differ, "" when fewer than two have any.

    Raises ModelError.
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
    answer = await complete_in_time(main.ports.client, request, journal, None, Purpose.RACES)
    race.comparison = answer.text.strip()
    return race.comparison


async def _diff_of(race: "Race", runner: "Runner") -> str:
    """Return a runner's changes as a diff; files with secrets are only named."""
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
