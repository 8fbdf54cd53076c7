"""Notices that another program took the open session over, says so, and asks how to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_agent.ui.services import OpenHow, OpenRequest

if TYPE_CHECKING:
    from tui_agent.ui.screens.main import MainScreen

_REMEDY: Final = ("send", "to choose how to go on", "screen.choose_how")


class TakeOverWatch:
    """One per main screen. Looking reads one row, so it is done when somebody comes back to the program."""

    def __init__(self, main: MainScreen) -> None:
        self._main = main
        self._writing = False

    def look(self) -> bool:
        """Return whether another program has the session now; if so, a line says it."""
        from tui_agent.session.errors import StoreError
        from tui_agent.session.ids import short_id

        agent = self._main.agent
        if agent is None:
            return False
        try:
            taken: bool = agent.session.look_for_take_over()
        except StoreError:  # a store in trouble says so itself with the next change
            return False
        if taken:
            sentence = f"Another program took session {short_id(agent.session.id)} over; here it can be read."
            self._main.say(sentence, "warning", _REMEDY)
        return taken

    def look_as_writing_begins(self, *, has_draft: bool) -> None:
        """Look at the first letter of a message, not at each."""
        if has_draft and not self._writing:
            self.look()
        self._writing = has_draft

    def ask(self) -> None:
        """Ask how to go on; what is in the prompt stays there whatever the answer is."""
        from tui_agent.ui.screens.choice import ChoiceScreen

        main = self._main
        if main.agent is None:
            return
        session_id = main.agent.session.id

        def answered(how: str | None) -> None:
            if how is not None:
                main.run_worker(self._go_on(OpenRequest(session_id, OpenHow(how))), group="open", exclusive=True)

        answers = [
            (OpenHow.FORK, "Fork it: go on here in a copy"),
            (OpenHow.TAKE_OVER, "Take it back: the other program can only read on"),
        ]
        question = "Another program took this session over."
        main.app.push_screen(ChoiceScreen(question, answers, "What is in the prompt stays there, unsent."), answered)

    async def _go_on(self, request: OpenRequest) -> None:
        draft = self._main.prompt.full_text
        await self._main.open(request)
        # Opening brings back what was kept of a session, which is older than what is in the prompt.
        self._main.prompt.set_draft(draft)
