"""Checks the money budgets of a session and of a day before each request.

When one is used up, the user is asked whether to spend as much again. Unless the user agrees,
`check` raises an error and the loop ends the run. Only the conversation's requests are checked;
summaries and single questions to the small model are not. What the user has allowed is kept in
``ports.meter``, which an agent shares with its subagents.
"""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from tui_agent.agent.channel import Questions
from tui_agent.agent.events import Decision, PermissionRequest
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.run_budget import BudgetUsedUpError
from tui_agent.lazy import frozen
from tui_agent.session.session import Session

Period = Literal["session", "day"]
PERIODS: tuple[Period, ...] = ("session", "day")
_NAMES = {"session": "in this session", "day": "today"}


@frozen
class Allowance:
    """The money budgets, in US dollars, of one session with its subagents, and of the day."""

    session: Session
    ports: AgentPorts
    questions: Questions

    async def check(self) -> None:
        """Ask the user about each budget that is used up.

        If the user agrees, the budget's amount may be spent once more.

        Raises:
            BudgetUsedUpError: the user said no, or no user can be asked.
        """
        if not any(self.limit(period) for period in PERIODS):
            return
        async with self.ports.meter.asking:
            for period in PERIODS:
                await self._check(period)

    async def _check(self, period: Period) -> None:
        limit = self.limit(period)
        if limit is None:
            return
        spent = await asyncio.to_thread(self.spent, period)
        if period == "day":
            self.ports.meter.elsewhere = spent - self.spent("session")
        if spent < limit + self.ports.meter.extensions.get(period, 0.0):
            return
        fact = f"${spent:.2f} spent {_NAMES[period]}; the limit budget.{period} is ${limit:.2f}."
        answer = await self.questions.ask(
            PermissionRequest(
                call_id=f"budget-{period}",
                tool="budget",
                title=fact,
                needs=(),
                reason=fact,
                rules=(),
                question=f"{fact} Spend ${limit:.2f} more?",
            )
        )
        if answer.decision in {Decision.DENY, Decision.STOP}:
            raise BudgetUsedUpError("cost", f"Stopped: {fact}")
        self.ports.meter.extensions[period] = spent

    async def covers(self, dollars: float) -> bool:
        """Return True if this amount can be spent without asking the user."""
        for period in PERIODS:
            limit = self.limit(period)
            if limit is None:
                continue
            spent = await asyncio.to_thread(self.spent, period)
            if spent + dollars > limit + self.ports.meter.extensions.get(period, 0.0):
                return False
        return True

    def limit(self, period: Period) -> float | None:
        """Return the budget set for a period in US dollars; None if there is no limit."""
        budget = self.ports.budget
        return budget.session if period == "session" else budget.day

    def spent(self, period: Period) -> float:
        """Return the US dollars spent in the session, or today in all sessions, from the store."""
        if period == "session":
            return (self.session.reader.own_cost() or 0.0) + self.session.info.side_cost
        return sum(self.session.store.spent_by_day(datetime.now().astimezone(), 1).values())

    def refresh(self) -> None:
        """Read from the session store what other sessions spent today, so that `today` can add it.

        May be called in any thread; does nothing without a budget for the day.
        """
        if self.limit("day") is not None:
            self.ports.meter.elsewhere = self.spent("day") - self.spent("session")

    def today(self) -> float | None:
        """Return the US dollars spent today in all sessions.

        The costs of other sessions are as of the last `refresh` or `check`. None if there is no
        budget for the day, and before the first `refresh` or `check`.
        """
        if self.limit("day") is None or self.ports.meter.elsewhere is None:
            return None
        return self.ports.meter.elsewhere + self.spent("session")

    def lines(self) -> Iterator[str]:
        """Yield a line such as "$1.20 of $5.00 today" for each budget that is set.

        Reads the session store.
        """
        for period in PERIODS:
            limit = self.limit(period)
            if limit is not None:
                yield f"${self.spent(period):.2f} of ${limit:.2f} {_NAMES[period]}"
