"""What a session has cost: added up at once for a short one, in a thread for a long one."""

import asyncio

from tui_agent.session.session import Session

MAX_ENTRIES_AT_ONCE = 2_000
"""Entries whose costs are added up in a moment too short to notice."""


class Costs:
    """The costs of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._are_read = session.info.entry_count <= MAX_ENTRIES_AT_ONCE

    def total(self) -> float | None:
        """Return the US dollars spent on all branches, with the title and subagents' work.

        None when no price is known, and for a long session until ``read`` has added them up.
        """
        if not self._are_read:
            return None
        spent = [*self._session.costs().values(), *filter(None, [self._session.info.side_cost])]
        return sum(spent) if spent else None

    async def read(self) -> bool:
        """Add them up, once; returns whether the total became known by it."""
        if self._are_read:
            return False
        await asyncio.to_thread(self._session.costs)
        self._are_read = True
        return True
