"""What the commands about permissions do: modes, and the rules that hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.frontend import PermissionsPage
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller


async def mode(controller: Controller, argument: str) -> None:
    """Use another mode; without a name the next one of those that a key goes through."""
    from tui_agent.agent.permissions import MODE_HELP, Mode, next_mode

    if controller.agent is None:
        return
    if argument and argument not in set(Mode):
        known = ", ".join(Mode)
        raise CommandError(f"There is no mode “{argument[:40]}”; there are {known}.")
    chosen = Mode(argument) if argument else next_mode(controller.agent.mode)
    controller.agent.change_mode(chosen.value)
    controller.frontend.refresh_facts()
    controller.say(f"{chosen.value}: {MODE_HELP[chosen]}.", "warning" if chosen is Mode.YOLO else "information")


async def permissions(controller: Controller, _argument: str) -> None:
    """Show every rule with its origin; a rule that is picked can be removed."""
    if controller.agent is not None:
        controller.show(PermissionsPage())


COMMANDS = (
    Command("mode", "choose what runs without asking", mode, "Mode", key="shift+tab", argument="[NAME]", place=150),
    Command(
        "permissions",
        "show what is allowed, asked and denied, and why",
        permissions,
        "Permissions",
        needs_screen=True,
        place=160,
    ),
)
