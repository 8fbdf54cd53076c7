"""``/goal``: work until something is reached, judged by a small model whenever the model stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller

OFF = frozenset({"off", "stop", "clear", "none"})
NO_GOAL = "There is no goal. /goal TEXT sets one: what has to be true at the end, and how it shows."


@Command(
    "goal",
    "work until something is reached, judged by a small model",
    argument="[TEXT|off]",
    place=235,
)
async def goal(controller: Controller, argument: str) -> None:
    from tui_agent.model.demo import DEMO_MODEL

    agent = controller.open_agent
    goals = agent.goals
    text = argument.strip()
    if not text:
        shown = f"The goal, {goals.words.removeprefix('goal, ')}: {one_line(goals.goal, 200)}"
        controller.say(shown if goals.goal else goals.ended or NO_GOAL)
        return
    if text.lower() in OFF:
        had = goals.goal
        goals.drop()
        controller.say("The goal is dropped; what is being done goes on." if had else NO_GOAL)
        controller.frontend.refresh_facts()
        return
    controller.require_writable()
    if agent.model == DEMO_MODEL:
        raise CommandError("The demo's script can't judge a goal: choose a model first.")
    goals.begin(text)
    controller.frontend.refresh_facts()
    if not agent.running:
        controller.outbox.submit(text)
