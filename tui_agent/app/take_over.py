"""Notices that another program took the open session over, says so, and asks how to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_agent.app.face import Choice
from tui_agent.app.services import OpenHow, OpenRequest

if TYPE_CHECKING:
    from tui_agent.app.desk import Desk

_REMEDY: Final = ("send", "to choose how to continue", "screen.choose_how")


class TakeOverWatch:
    """One per desk. Looking reads one row, so it is done when somebody comes back to the program."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._writing = False

    def look(self) -> bool:
        """Return whether another program has the session now; if so, a line says it."""
        from tui_agent.session.errors import StoreError
        from tui_agent.session.ids import short_id

        agent = self._desk.agent
        if agent is None:
            return False
        try:
            taken: bool = agent.session.check_for_take_over()
        except StoreError:  # a store in trouble says so itself with the next change
            return False
        if taken:
            sentence = f"Another program took over session {short_id(agent.session.id)}. It is read-only here."
            self._desk.say(sentence, "warning", _REMEDY)
        return taken

    def check_before_typing(self, *, has_draft: bool) -> None:
        """Look at the first letter of a message, not at each."""
        if has_draft and not self._writing:
            self.look()
        self._writing = has_draft

    async def ask(self) -> None:
        """Ask how to continue; what is in the prompt stays there whatever the answer is."""
        desk = self._desk
        if desk.agent is None:
            return
        session_id = desk.agent.session.id
        answers = [
            (OpenHow.FORK, "Fork it: continue here in a copy"),
            (OpenHow.TAKE_OVER, "Take it back: the other program can only read on"),
        ]
        question = "Another program took this session over."
        how = await desk.ask(Choice(question, answers, "What is in the prompt stays there, unsent."))
        if how is not None:
            draft = desk.face.draft
            await desk.open(OpenRequest(session_id, OpenHow(how)))
            # Opening brings back what was kept of a session, which is older than what is in the prompt.
            desk.face.set_draft(draft)
