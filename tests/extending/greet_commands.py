"""What ``/greet`` does: says hello, and with a name to whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.frontend import Report
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller


@Command("greet", "say hello", argument="[NAME]")
async def greet(controller: Controller, argument: str) -> None:
    """Greet somebody."""
    if argument == "nobody":
        raise CommandError("There is nobody to greet.")
    controller.show(Report("Greeting", [f"Hello, {argument or 'world'}."]))
