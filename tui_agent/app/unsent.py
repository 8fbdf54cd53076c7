"""Saves the prompt's text and the queued messages until their session is opened again.

These texts survive a crash, and a switch to another session. The screen reports changes and opened
sessions; the store keeps the drafts. A busy session in the background keeps sending its queued
messages, so that only the prompt's text comes back when the session is shown again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.controller import Controller
    from tui_agent.app.frontend import Frontend
    from tui_agent.session.records import Unsent

log = logging.getLogger(__name__)

DELAY = 0.4
"""Seconds between a change and the save, which includes all changes made in between."""


class UnsentKeeper:
    """Saves and restores drafts.

    A draft consists of the text in the prompt and the messages that wait to be sent. Text that the
    user took out of the prompt for later (the frontend's stash) is saved, too. A draft is stored by
    session id, or by directory before the session's first entry. There is one keeper per
    controller.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._timer: asyncio.TimerHandle | None = None
        self._is_open = False
        self._place = ""
        self._kept: Unsent | None = None
        """The draft stored under the key ``_place``; None before the first save."""
        self._agents: WeakValueDictionary[str, Agent] = WeakValueDictionary()
        """The agents of the sessions that were shown, by session id."""

    def note_change(self) -> None:
        """Schedule a save in `DELAY` seconds.

        Does nothing if a save is scheduled already, or if no session was opened yet.
        """
        if self._is_open and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELAY, self.save)

    def save(self) -> None:
        """Save the draft now, without the usual delay, if it has changed.

        If the key of the draft has changed, deletes the copy under the old key.

        A failure to write is only logged; the next change or save tries again. Does nothing in a
        read-only session.
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
        frontend = self._controller.frontend
        unsent = Unsent(_text_of(frontend), (*waiting.checked, *waiting.steer, *waiting.follow_up))
        if (place, unsent) == (self._place, self._kept):
            return
        if self._place not in {"", place}:
            self._put(self._place, Unsent())
        if self._put(place, unsent):
            self._place = place
            self._kept = unsent

    def restore(self, agent: Agent) -> None:
        """Put the saved draft of the session that was just opened into the prompt.

        The draft replaces the text in the prompt, which stays saved for the previous session. The
        draft is put in front of the text instead if this is the first session that is opened, or if
        the text is not saved, as in a session that another program took over. If there is no draft,
        the text stays in the prompt and becomes part of this session's draft. Does nothing for a
        read-only session.
        """
        from tui_agent.session.records import Unsent

        frontend = self._controller.frontend
        before = self._place
        kept = self._kept or Unsent()
        self._is_open = True
        if agent.session.read_only:
            return
        was_busy = self._agents.get(agent.session.id) is agent
        self._agents[agent.session.id] = agent
        self._place = place_of(agent)
        self._kept = Unsent()
        found = self._take(self._place, is_new=bool(before) and self._place != agent.session.id)
        if was_busy:
            # Restore only the text, because the session has sent or queued its messages in the
            # background.
            found = Unsent(found.text)
        text = "\n\n".join(filter(None, [*found.waiting, found.text]))
        is_saved = _text_of(frontend) == kept.text
        if text and before and is_saved:
            frontend.forget_stash()
            frontend.set_draft(text)
        elif text:
            frontend.put_back(text)
        elif before not in {"", self._place} and kept.text:
            self._put(before, Unsent(waiting=kept.waiting))
        if count := len(found.waiting):
            if count == 1:
                subject = "A waiting message is"
            else:
                subject = f"{count} waiting messages are"
            frontend.say(f"{subject} back in the prompt and not sent.")
        self.note_change()

    def _take(self, place: str, *, is_new: bool) -> Unsent:
        """Remove the saved draft of a session or directory from the store, and return it.

        Returns an empty draft if the stored one can't be read. With ``is_new``, a draft that
        another window saved for the directory stays in the store.
        """
        from tui_agent.session.errors import StoreError
        from tui_agent.session.records import Unsent

        try:
            store = self._controller.services.store
            return store.take_unsent(place, only_own=is_new)
        except StoreError as error:
            log.warning("The saved text of the prompt can't be read: %s", error)
            return Unsent()

    def _put(self, place: str, unsent: Unsent) -> bool:
        """Store a draft under the key ``place``; return False if it can't be written."""
        from tui_agent.session.errors import StoreError

        try:
            self._controller.services.store.keep_unsent(place, unsent)
        except StoreError as error:
            log.warning("The text of the prompt can't be saved: %s", error)
            return False
        return True


def _text_of(frontend: Frontend) -> str:
    """Return the text that the user stashed earlier, followed by the text in the prompt."""
    return "\n\n".join(filter(None, [frontend.stashed, frontend.draft]))


def place_of(agent: Agent) -> str:
    """Return the key of a session's draft: its id or, before the first entry, its directory."""
    info = agent.session.info
    return str(info.id if info.entry_count else info.cwd)
