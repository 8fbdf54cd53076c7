"""The content and actions of a race's page, for a running race and for a finished one.

A race runs several agents, the runners, on one prompt, each on its own branch.
race_commands.py carries out most actions. The module also finds the runners of the running race for
the session tree.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from tui_agent.agent.events import EntryAppended, RaceEnded, RaceStarted, RunnerChanged
from tui_agent.agent.subagents import FinishedSubagent
from tui_agent.app import race_commands
from tui_agent.app.format import one_line, plural
from tui_agent.app.frontend import DiffPage, RunnerPage
from tui_agent.app.moves import NOT_RECORDED
from tui_agent.app.strip_markdown import plain_preview
from tui_agent.errors import CommandError
from tui_agent.session.entries import AssistantEntry, RaceEntry
from tui_agent.session.path_queries import newest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.race.race import Race, RaceOrder
    from tui_agent.app.controller import Controller
    from tui_agent.session.entries import RaceRunner


NEWEST = 4
"""Maximum number of a working runner's newest answers that are shown."""


def _call_line(tool: str, arguments: str) -> str:
    return f"● {plain_preview('assistant', f'{tool} {one_line(arguments, 200)}')}"


class RaceView:
    """A running or finished race and its actions. Runners are numbered from 1.

    An action that isn't possible raises a `UserFacingError`.
    """

    def __init__(self, controller: Controller, race: Race | RaceEntry) -> None:
        self._controller = controller
        self._entry: RaceEntry | None = None
        self._race: Race | None = None
        if isinstance(race, RaceEntry):
            self._entry = race
            order: RaceOrder | RaceEntry = race
        else:
            self._race = race
            order = race.order
        self.prompt = order.prompt
        self.check = order.check
        self._start = order.start

    @property
    def is_past(self) -> bool:
        """Whether this is a finished race, which is stored as an entry and has no copies."""
        return self._entry is not None

    @property
    def taken(self) -> int | None:
        """Number of the runner whose work was taken; None if no runner's work has been taken."""
        if self._entry is None:
            return None
        return self._entry.taken

    @property
    def runners(self) -> Sequence[RaceRunner]:
        if self._entry is not None:
            return self._entry.runners
        return [runner.figures for runner in self._live.runners]

    @property
    def _live(self) -> Race:
        if self._race is None:
            raise CommandError("The race is over. Go to the runner's branch and continue there.")
        return self._race

    def _leaf(self, number: int) -> int:
        runner = self.runners[number - 1]
        if runner.leaf is None:
            raise CommandError(f"{runner.name} has done nothing yet.")
        return runner.leaf

    def now(self) -> RaceView:
        """Return a view of the stored entry if the race has since finished; otherwise this view."""
        if self.is_past or self._controller.race is self._race:
            return self
        entry = newest(self._controller.open_agent.session.active_path(), RaceEntry)
        same = entry is not None and (entry.prompt, entry.start) == (self.prompt, self._start)
        if same and entry is not None:
            return RaceView(self._controller, entry)
        return self

    def is_asking(self, number: int) -> bool:
        """Return whether a runner is waiting for the user's answer."""
        return self._race is not None and self._race.runner(number).is_asking

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` whenever the race changes; the returned function unsubscribes."""

        def heard(event: object) -> None:
            match event:
                case (
                    RaceStarted() | RunnerChanged() | RaceEnded() | EntryAppended(entry=RaceEntry())
                ):
                    callback()
                case _:
                    pass

        return self._controller.open_agent.channel.subscribe(heard)

    # -- looking

    def watch(self, number: int) -> None:
        """Show the page of a runner, with its agent's session or, without an agent, its branch.

        Raises `CommandError` if the runner has done nothing yet.
        """
        agent = self.agent_of(number)
        if agent is not None:
            self._controller.show(RunnerPage(agent, self, number))
            return
        main = self._controller.open_agent
        session = main.session.beside(self._leaf(number))
        self._controller.show(
            RunnerPage(
                FinishedSubagent(session, main.ports.directory.counter(main.model)), self, number
            )
        )

    def agent_of(self, number: int) -> Agent | None:
        """Return a runner's agent; None if it has none (yet), for example in a finished race."""
        if self._race is None:
            return None
        return self._race.runner(number).agent

    def streamed(self, number: int) -> str:
        """Return the text and tool calls of a runner's unfinished answer; "" if there is none.

        If it has no text yet, returns the reasoning instead.
        """
        agent = self.agent_of(number)
        live = None
        if agent is not None:
            live = agent.live
        if live is None:
            return ""
        calls = [_call_line(call.tool, call.arguments) for call in live.calls]
        return "\n".join(filter(None, (live.text or live.reasoning, *calls)))

    def written(self, number: int) -> str:
        """Return the texts and tool calls of a runner's newest answers, oldest first.

        The last one is the unfinished answer, if there is one. For a runner without an agent, as in
        a finished race, returns the text of its last answer.
        """
        agent = self.agent_of(number)
        if agent is None:
            return race_commands.answer_of(
                self._controller.open_agent.session, self.runners[number - 1]
            )
        start = self._start or 0
        own = takewhile(lambda entry: entry.id > start, reversed(agent.session.active_path()))
        answers = [entry for entry in own if isinstance(entry, AssistantEntry)]
        lines = []
        for answer in reversed(answers[:NEWEST]):
            lines.append(answer.text)
            lines += [_call_line(call.tool, call.arguments) for call in answer.tool_calls]
        lines.append(self.streamed(number))
        return "\n".join(filter(None, lines))

    async def diff(self, number: int, other: int | None) -> None:
        """Show how a runner's files differ from another runner's, or from those at the start.

        ``other`` is the number of the other runner, None for the start of the race. Raises
        `CommandError` if the files don't differ, or if changes to files are not recorded.
        """
        changes = self._controller.open_agent.files
        if not changes.has_snapshots:
            raise CommandError(NOT_RECORDED)
        if other is None:
            old = self._start
        else:
            old = self._leaf(other)
        files = await changes.diff_between(old, self._leaf(number))
        name = self.runners[number - 1].name
        if other is None:
            beside = "the start"
        else:
            beside = self.runners[other - 1].name
        if not files:
            raise CommandError(f"The files of {name} don't differ from {beside}.")
        self._controller.show(
            DiffPage(f"{plural(len(files), 'file')} from {beside} to {name}", files)
        )

    async def compare(self) -> None:
        if self._race is None:
            raise CommandError(
                "The race is over and its copies are deleted. Compare two runners with space and d."
            )
        await race_commands.compare(self._controller)

    # -- acting

    async def take(self, number: int) -> bool:
        """Continue the session with a runner's branch and files.

        Always returns True, so that the page closes.
        """
        await race_commands.take(self._controller, number, self._entry)
        return True

    async def merge(self, number: int) -> None:
        """Add a summary of a runner's findings to the conversation."""
        await self._controller.idle_agent.navigator.merge(self._leaf(number))

    async def steer(self, number: int, text: str) -> None:
        """Send a message to a runner.

        The runner receives it with its next step. A runner that has ended starts working again.
        """
        self._live.runner(number)
        await race_commands.steer(self._controller, number, text)

    def stop(self, number: int | None) -> None:
        """Stop the runner with this number; with None, stop all runners."""
        self._live.stop(number)

    def go_on(self, number: int) -> None:
        self._live.runner(number)
        race_commands.go_on(self._controller, number)

    async def end(self) -> bool:
        """End the race, unless it is over, without taking a runner's work.

        Returns True, like `take`.
        """
        if self.is_past:
            return True
        await race_commands.drop(self._controller)
        return True


def runners_by_leaf(controller: Controller) -> dict[int, RaceRunner]:
    """Return the runners of the running race, each under the last entry of its branch.

    The result is empty if no race is running.
    """
    if controller.race is not None:
        runners = [runner.figures for runner in controller.race.runners]
    else:
        runners = []
    return {runner.leaf: runner for runner in runners if runner.leaf is not None}


def watch_at(controller: Controller, leaf: int) -> bool:
    """Show the page of the runner whose branch ends at ``leaf``; return False if there is none."""
    if controller.race is None:
        return False
    number = None
    for runner in controller.race.runners:
        if runner.record.leaf == leaf:
            number = runner.number
            break
    if number is not None:
        RaceView(controller, controller.race).watch(number)
    return number is not None
