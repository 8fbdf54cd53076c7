"""The budget of a run: money, tokens, time.

Everything that is done in the run counts, subagents' work too.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from tui_agent.agent.events import AgentEvent, EntryAppended
from tui_agent.lazy import frozen
from tui_agent.session.entries import (
    AssistantEntry,
    SummaryEntry,
)

BudgetKind = Literal["cost", "tokens", "time"]


@frozen
class RunBudget:
    """The limits of a run, and of all the money spent in its session and on its day.

    None is no limit.

    Money is in US dollars, time in seconds. Tokens are those of all requests and answers together,
    as the provider counts them, those from its cache included.
    """

    cost: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    session: float | None = None
    day: float | None = None


class BudgetUsedUpError(Exception):
    """The run is to end because of its budget; the message is one sentence for a person."""

    def __init__(self, kind: BudgetKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@frozen
class Used:
    """The use so far: US dollars, and tokens."""

    cost: float = 0.0
    tokens: int = 0


class BudgetMeter:
    """Counts the use of a run.

    An agent shares it with its subagents, whose runs are part of its own.
    """

    def __init__(
        self, has_price: Callable[[str], bool] = lambda _model: True, *, before: Used | None = None
    ) -> None:
        """Make a meter; ``has_price`` says whether a model's price is known.

        With ``before``, the use so far, one budget is for all runs together; without it each has a
        whole one.
        """
        self.has_price = has_price
        self._before = before
        self._runs = 0
        self.cost = 0.0
        self.tokens = 0
        self.is_time_up = False
        self.extensions: dict[str, float] = {}
        """US dollars that the user let go over the budgets of the session and the day, by their
        names."""
        self.elsewhere: float | None = None
        """US dollars spent today beside the session, negative if part of the session is older; None
        until it was looked up."""
        self.asking = asyncio.Lock()
        """Held while the user is asked about a budget: subagents that run side by side ask once."""

    @contextmanager
    def run(self, budget: RunBudget) -> Iterator[None]:
        """Count from zero for a run, and cancel the task that it is in when its time is up.

        A run inside a run is part of it.
        """
        timer: asyncio.TimerHandle | None = None
        if self._runs == 0:
            if self._before is not None:
                self._before = Used(
                    self._before.cost + self.cost, self._before.tokens + self.tokens
                )
            self.cost = 0.0
            self.tokens = 0
            self.is_time_up = False
            if budget.seconds is not None:
                timer = asyncio.get_running_loop().call_later(
                    budget.seconds, self._end, asyncio.current_task()
                )
        self._runs += 1
        try:
            yield
        finally:
            self._runs -= 1
            if timer is not None:
                timer.cancel()

    def _end(self, task: "asyncio.Task[Any] | None") -> None:
        self.is_time_up = True
        if task is not None:
            task.cancel()

    def hear(self, event: AgentEvent) -> None:
        if isinstance(event, EntryAppended) and isinstance(
            event.entry, AssistantEntry | SummaryEntry
        ):
            self.spend(
                event.entry.cost, event.entry.usage.total if event.entry.usage is not None else 0
            )

    def spend(self, cost: float | None, tokens: int) -> None:
        """Count so many US dollars and tokens.

        Negative when they are counted elsewhere from now on.
        """
        self.cost += cost or 0.0
        self.tokens += tokens

    def check(self, budget: RunBudget, model: str, next_request: int) -> None:
        """Raise BudgetUsedUpError if a request may not go out that takes about so many tokens."""
        before = self._before or Used()
        if budget.cost is not None and not self.has_price(model):
            raise BudgetUsedUpError(
                "cost",
                f"Stopped: what {model} costs is not known, so no budget of money can be kept; limit tokens.",
            )
        if budget.cost is not None and (spent := before.cost + self.cost) >= budget.cost:
            raise BudgetUsedUpError(
                "cost", f"Stopped: ${spent:.4f} of ${budget.cost:.4f} are spent."
            )
        tokens = before.tokens + self.tokens
        if budget.tokens is not None and tokens + next_request > budget.tokens:
            used = f"{tokens:,} of {budget.tokens:,} tokens are used"
            raise BudgetUsedUpError(
                "tokens", f"Stopped: {used}, and the next request takes about {next_request:,}."
            )
