"""``/btw`` asks the model a question during its work; the user decides what happens to the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line, visible
from tui_agent.app.frontend import Choice
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller

KEEP = "k"
TAKE = "t"
DROP = "d"
_ANSWERS = (
    (KEEP, "keep it in the tree, as a branch"),
    (TAKE, "put it into the context"),
    (DROP, "drop it"),
)


@Command(
    "btw",
    "ask a side question: with the whole context, no tools",
    argument="QUESTION",
    needs_screen=True,
    place=216,
    aliases=("side",),
    words="question, while it works",
)
async def btw(controller: Controller, argument: str) -> None:
    """Ask the model a question and show the answer.

    The user keeps it as a branch, adds it to the context or drops it.
    """
    from tui_agent.agent.side_question import SideQuestion

    question = argument.strip()
    if not question:
        raise CommandError("Use /btw QUESTION.")
    agent = controller.open_agent
    controller.require_writable()
    controller.say(f"Asking the side question: {one_line(question, 60)}")
    side = SideQuestion(agent, question)
    await side.ask()
    controller.frontend.clear_notice()
    if not side.answer:
        side.drop()
        controller.say("The model gave no answer.")
        return
    shown = Choice(one_line(question, 200), _ANSWERS, visible(side.answer), at=KEEP, wide=True)
    wanted = DROP
    try:
        wanted = await controller.ask(shown) or DROP
    finally:
        if wanted == DROP:
            side.drop()
    if wanted == KEEP:
        side.keep_beside()
        controller.say("Kept as a branch · /tree shows it")
    elif wanted == TAKE:
        side.put_into_context()
        controller.say("The model sees question and answer from its next request on.")
    controller.frontend.refresh_facts()
