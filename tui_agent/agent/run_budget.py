"""Counts the money, tokens and time that a run uses, and refuses requests beyond its budget.

`Loop` calls `BudgetMeter.check` before each request of the conversation, and ends the run if it
raises an error. When the time is up, the meter cancels the run's task. Answers and summaries of the
agent and its subagents are counted by their events; failed attempts, prepared summaries and single
questions outside the conversation (``clients.complete_in_time``) by `spend`.

The meter also keeps the state of the session's and the day's budget for ``allowance``, which checks
these budgets.
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
    """The limits of a run, and of the money spent in its session and on one day.

    None means that there is no limit.
    """

    cost: float | None = None
    """US dollars that one run may cost."""
    tokens: int | None = None
    """Tokens that all requests and answers of a run may use, as counted by the provider, including
    cached tokens."""
    seconds: float | None = None
    session: float | None = None
    """US dollars that a session may cost."""
    day: float | None = None
    """US dollars that all sessions together may cost in one day."""


class BudgetUsedUpError(Exception):
    """Raised to end a run whose budget is used up; the message is a sentence for the user."""

    def __init__(self, kind: BudgetKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@frozen
class Used:
    """The US dollars and tokens that were used."""

    cost: float = 0.0
    tokens: int = 0


class BudgetMeter:
    """Counts the US dollars and tokens of a run, and its time if that is limited.

    An agent shares its meter with its subagents, whose runs are part of its own.
    """

    def __init__(
        self, has_price: Callable[[str], bool] = lambda _model: True, *, before: Used | None = None
    ) -> None:
        """Create a meter. ``has_price`` returns whether a model's price is known.

        With ``before`` (what was used so far), all runs share one budget; with None, each run has
        its own budget.
        """
        self.has_price = has_price
        self._before = before
        self._runs = 0
        self.cost = 0.0
        self.tokens = 0
        self.is_time_up = False
        self.extensions: dict[str, float] = {}
        """US dollars that the user allowed in addition to the "session" or "day" budget."""
        self.elsewhere: float | None = None
        """US dollars spent today, minus this session's cost; None before `Allowance.refresh`.

        Negative if part of the session's cost is older than today.
        """
        self.asking = asyncio.Lock()
        """Lock that is held while the user is asked about a budget, so that parallel subagents ask
        only once."""

    @contextmanager
    def run(self, budget: RunBudget) -> Iterator[None]:
        """Count a run's cost and tokens from zero; cancel the current task when the time is up.

        ``is_time_up`` is then set to True. A run within another run (a subagent's) counts as part
        of the outer run.
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
        """Count the cost and usage of an answer or summary that was appended.

        Ignores other events.
        """
        if isinstance(event, EntryAppended) and isinstance(
            event.entry, AssistantEntry | SummaryEntry
        ):
            self.spend(
                event.entry.cost, event.entry.usage.total if event.entry.usage is not None else 0
            )

    def spend(self, cost: float | None, tokens: int) -> None:
        """Add US dollars and tokens to the counts. Negative amounts are subtracted."""
        self.cost += cost or 0.0
        self.tokens += tokens

    def check(self, budget: RunBudget, model: str, next_request: int) -> None:
        """Raise BudgetUsedUpError if a request of about ``next_request`` tokens is not allowed.

        The request is not allowed if the cost budget is spent or can't be checked because the price
        is unknown, or if the request would exceed the token budget.
        """
        before = self._before or Used()
        if budget.cost is not None and not self.has_price(model):
            raise BudgetUsedUpError(
                "cost",
                f"Stopped: the price of {model} is unknown, so a cost budget can't be enforced. Set a token budget.",
            )
        if budget.cost is not None and (spent := before.cost + self.cost) >= budget.cost:
            raise BudgetUsedUpError(
                "cost", f"Stopped: ${spent:.4f} of the budget of ${budget.cost:.4f} is spent."
            )
        tokens = before.tokens + self.tokens
        if budget.tokens is not None and tokens + next_request > budget.tokens:
            used = f"{tokens:,} of {budget.tokens:,} tokens are used"
            raise BudgetUsedUpError(
                "tokens", f"Stopped: {used}, and the next request takes about {next_request:,}."
            )
