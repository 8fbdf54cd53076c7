"""``/goal`` keeps the agent working until a goal is reached; ``/loop`` sends a message repeatedly.

The commands only set and drop the goal and the loop. The agent's `Goals` asks a model to judge each
run, and its `RepeatedMessage` sends the messages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller

OFF = frozenset({"off", "stop", "clear", "none"})
NO_GOAL = "There is no goal. /goal TEXT sets one: say what has to be true, and how to check it."
NO_LOOP = "There is no loop. /loop 10m TEXT sends a message every ten minutes."
HOW_TO_LOOP = "Type an interval (10s to 24h, in s, m or h) and a message: /loop 10m TEXT."

_INTERVAL = re.compile(r"(\d{1,5})([smh])\s+(\S.*)", re.DOTALL)
_SECONDS = {"s": 1, "m": 60, "h": 3_600}
_SHORTEST = 10
"""Minimum interval of a loop, in seconds."""
_LONGEST = 24 * 3_600
"""Maximum interval of a loop, in seconds."""


@Command(
    "goal",
    "work until a small model finds that a goal is reached",
    argument="[TEXT|off]",
    place=235,
    words="keep going, continue, autonomous, until done",
)
async def goal(controller: Controller, argument: str) -> None:
    from tui_agent.model.demo import DEMO_MODEL

    agent = controller.open_agent
    goals = agent.goals
    text = argument.strip()
    if not text:
        shown = goals.ended or NO_GOAL
        if goals.goal:
            state = goals.words.removeprefix("goal, ")
            shown = f"The goal, {state}: {one_line(goals.goal, 200)}"
        controller.say(shown)
        return
    if text.lower() in OFF:
        done = NO_GOAL
        if goals.goal:
            done = "The goal is dropped. The current run continues."
        goals.drop()
        controller.say(done)
        controller.frontend.refresh_facts()
        return
    controller.require_writable()
    if agent.model == DEMO_MODEL:
        raise CommandError("The demo's script can't judge a goal. Choose a model first.")
    goals.begin(text)
    controller.frontend.refresh_facts()
    if not agent.running:
        controller.outbox.submit(text)


@Command(
    "loop",
    "send a message again and again",
    argument="[10m TEXT|off]",
    needs_screen=True,
    place=236,
    words="repeat, schedule, every, cron",
)
async def loop(controller: Controller, argument: str) -> None:
    repeated = controller.open_agent.repeated_message
    text = argument.strip()
    is_off = text.lower() in OFF
    if not repeated.message and (is_off or not text):
        controller.say(NO_LOOP)
    elif not text:
        controller.say(f"The {repeated.words}: {one_line(repeated.message, 200)}")
    elif is_off:
        controller.say("The loop has ended.")
        repeated.drop()
    else:
        controller.require_writable()
        found = _INTERVAL.fullmatch(text)
        seconds = 0
        if found:
            seconds = int(found[1]) * _SECONDS[found[2]]
        if found is None or not _SHORTEST <= seconds <= _LONGEST:
            raise CommandError(HOW_TO_LOOP)
        repeated.begin(found[3], seconds)
    controller.frontend.refresh_facts()
