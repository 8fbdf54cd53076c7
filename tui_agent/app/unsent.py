"""Keeps the prompt's text and messages that wait for the agent, so that a crash, a quit or a detour loses nothing."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.controller import Controller
    from tui_agent.session.records import Unsent

log = logging.getLogger(__name__)

DELAY = 0.4
"""Seconds after a change in which others may follow; while nothing changes nothing wakes up."""


class UnsentKeeper:
    """One per controller.

    A draft belongs to a session; before its first entry, to its directory.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._timer: asyncio.TimerHandle | None = None
        self._is_open = False
        self._place = ""
        self._kept: Unsent | None = None

    def changed(self) -> None:
        """Save before long."""
        if self._is_open and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELAY, self.save)

    def save(self) -> None:
        """Save now all that is not saved yet.

        A store that can't be written to costs nothing else.
        """
        from tui_agent.session.records import Unsent

        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        agent = self._controller.agent
        if not self._is_open or agent is None or agent.session.read_only:
            return
        place = place_of(agent)
        waiting = agent.queue.snapshot()
        unsent = Unsent(self._controller.frontend.draft, (*waiting.steer, *waiting.follow_up))
        if (place, unsent) == (self._place, self._kept):
            return
        if self._place not in {"", place}:
            self._put(self._place, Unsent())
        self._put(place, unsent)
        self._place = place
        self._kept = unsent

    def opened(self, agent: Agent) -> None:
        """Restore the draft of the session that is open now.

        The prompt's text stays with the session it was written in. A session that has nothing of
        its own gets it: it would seem to be lost otherwise, and it may have been meant for this
        one.
        """
        from tui_agent.session.records import Unsent

        frontend = self._controller.frontend
        before = self._place
        kept = self._kept or Unsent()
        self._is_open = True
        if agent.session.read_only:
            return
        self._place, self._kept = place_of(agent), Unsent()
        found = self._take(self._place, is_new=bool(before) and self._place != agent.session.id)
        text = "\n\n".join(filter(None, [*found.waiting, found.text]))
        if text and before:
            frontend.set_draft(text)
        elif text:
            frontend.put_back(text)
        elif before not in {"", self._place} and kept.text:
            self._put(before, Unsent(waiting=kept.waiting))
        if count := len(found.waiting):
            if count == 1:
                subject = "A message that was"
            else:
                subject = f"{count} messages that were"
            frontend.say(f"{subject} waiting when the program ended: back in the prompt, not sent.")
        self.changed()

    def _take(self, place: str, *, is_new: bool) -> Unsent:
        """Return the draft.

        A session begun in this program does not get one that another window left there.
        """
        from tui_agent.session.errors import StoreError
        from tui_agent.session.records import Unsent

        try:
            store = self._controller.services.store
            return store.take_unsent(place, only_own=is_new)
        except StoreError as error:
            log.warning("What was in the prompt can't be read: %s", error)
            return Unsent()

    def _put(self, place: str, unsent: Unsent) -> None:
        from tui_agent.session.errors import StoreError

        try:
            self._controller.services.store.keep_unsent(place, unsent)
        except StoreError as error:
            log.warning("What is in the prompt can't be kept: %s", error)


def place_of(agent: Agent) -> str:
    """Return the key of a draft: a session without entries is not found again, its directory is."""
    info = agent.session.info
    return str(info.id if info.entry_count else info.cwd)
