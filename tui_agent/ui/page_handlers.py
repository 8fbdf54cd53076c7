"""The commands that show a page: the to-do list, the doctor's report, the keys."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_agent.ui.screens.main import MainScreen


async def todo(main: MainScreen, _argument: str) -> None:
    """Show the model's plan on a page: not every terminal has room for the side panel."""
    from tui_agent.ui import reports
    from tui_agent.ui.outline import facts_of
    from tui_agent.ui.screens.report import ReportScreen

    if main.agent is not None:
        todos = facts_of(main.agent.session.active_path()).todos
        main.app.push_screen(ReportScreen("To-dos", reports.todo_text(todos)))


async def doctor(main: MainScreen, _argument: str) -> None:
    """Show what is set up, where it came from and what is missing."""
    main.say("Looking …")
    main.run_worker(_doctor(main), group="doctor", exclusive=True, exit_on_error=False)


async def _doctor(main: MainScreen) -> None:
    from textual.content import Content

    from tui_agent.ui.format import visible
    from tui_agent.ui.screens.report import ReportScreen

    lines = list(await asyncio.to_thread(main.services.doctor))
    if said := main.warned.lines():
        lines = ["Warned of since the start", *said, "", "Set up now", *lines]
    main.warned.unread = main.status.warnings = 0
    main.notice.clear()
    text = "\n".join(map(visible, lines))
    main.app.push_screen(ReportScreen("Doctor", Content(text or "There is nothing to report.")))


async def keys(main: MainScreen, _argument: str) -> None:
    """Show the keys, and those that can be changed by their names."""
    from tui_agent.ui import reports
    from tui_agent.ui.screens.report import ReportScreen

    main.app.push_screen(ReportScreen("Keys", reports.keys_text(main.commands, main.keymap)))
