"""Asks what a race is to be like, and begins it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tui_agent.app.frontend import RaceForm
from tui_agent.app.race_commands import begin, load_parts, modes_of, price_of, show
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller

RUNNERS = 3
"""How many runners the form begins with."""


async def ask(controller: Controller, prompt: str = "", start: int | None = None) -> bool:
    """Ask for a race from an entry, from the leaf by default; returns whether one was begun.

    Raises as ``race_commands.begin``.
    """
    from tui_agent.agent.race.race import RaceOrder
    from tui_agent.agent.race.specs import RunnerSpec

    if (agent := controller.agent) is None or not controller.may_change():
        return False
    if agent.running:
        raise CommandError("The agent is working: press Escape first.")
    session = agent.session
    at = session.leaf if start is None else start
    order = RaceOrder(prompt, (), (RunnerSpec(),) * RUNNERS, at, controller.services.check_command(agent.ports.project))
    here = RunnerSpec(agent.model, agent.effort.level, agent.mode)
    where = "Race" if start is None else f"Race from #{start}"
    form = RaceForm(order, here, modes_of(agent), lambda wanted: price_of(controller, wanted).sentence(), where)
    chosen = await controller.ask(form)
    if chosen is None or controller.agent is not agent:
        return False
    await begin(controller, replace(chosen, parts=await load_parts(controller, chosen.prompt)))
    if prompt and controller.frontend.draft.strip() == prompt:
        controller.frontend.set_draft("")
    show(controller)
    return True
