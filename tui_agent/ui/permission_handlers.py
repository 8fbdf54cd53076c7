"""What the commands about permissions do: modes, and the rules that hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.ui.abilities import PermittingAgent

if TYPE_CHECKING:
    from tui_agent.agent.permissions import Rule
    from tui_agent.ui.screens.main import MainScreen


async def mode(main: MainScreen, argument: str) -> None:
    """Use another mode; without a name the next one of those that a key goes through."""
    from tui_agent.agent.permissions import MODE_HELP, Mode, next_mode

    if main.agent is None:
        return
    if argument and argument not in set(Mode):
        known = ", ".join(Mode)
        main.say(f"There is no mode “{argument[:40]}”; there are {known}.", "warning")
        return
    chosen = Mode(argument) if argument else next_mode(main.agent.mode)
    main.agent.change_mode(chosen.value)
    main.show_facts()
    main.say(f"{chosen.value}: {MODE_HELP[chosen]}.", "warning" if chosen is Mode.YOLO else "information")


async def permissions(main: MainScreen, _argument: str) -> None:
    """Show every rule with its origin; a rule that is picked can be removed."""
    from tui_agent.ui.screens.permissions import PermissionsScreen

    agent: object = main.agent
    if not isinstance(agent, PermittingAgent):
        return
    gate = agent.gate

    def remove(rule: Rule) -> bool:
        if (problem := gate.is_fixed(rule) or main.services.forget_rule(rule)) is not None:
            main.app.notify(problem, severity="warning", markup=False)
            return False
        return gate.remove(rule)

    def restore(rule: Rule) -> None:
        gate.restore(rule)
        if rule.source == "user":
            keep(rule)

    def keep(rule: Rule) -> None:
        problem = main.services.keep_rule(rule)
        if problem is not None:
            main.app.notify(problem, severity="warning", markup=False)

    main.app.push_screen(PermissionsScreen(gate.rules, remove=remove, keep=keep, restore=restore))
