"""The ``/btw`` command: asks the model a side question, even while it works.

The user decides what happens to the question and answer; `SideQuestion` stores them. Whatever the
user decides, the cost of the model calls is added to the session's cost. No error loses an answer,
because the user is asked again or the answer is kept as a branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line, visible
from tui_agent.app.frontend import Choice, TextLine
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from tui_agent.agent.side_question import SideQuestion
    from tui_agent.app.controller import Controller

KEEP = "k"
TAKE = "t"
ASK_ON = "a"
DROP = "drop"
"""Name of the choice that drops the model's answer. Pressing Escape also chooses it.

The name is not a letter, because a letter typed by mistake would lose the model's answer.
"""
_ANSWERS = (
    (KEEP, "keep it in the tree, as a branch"),
    (TAKE, "put it into the context"),
    (ASK_ON, "ask another question"),
    (DROP, "drop it"),
)


@Command(
    "btw",
    "ask a side question: the model has the whole context, but no tools",
    argument="QUESTION",
    needs_screen=True,
    place=216,
    aliases=("side",),
    words="question, while it works",
)
async def btw(controller: Controller, argument: str) -> None:
    """Ask the model a side question, and show the answer.

    The user can ask further questions, and in the end keeps the questions and answers as a branch,
    adds them to the context or drops them.
    """
    from tui_agent.agent.side_question import SideQuestion

    question = argument.strip()
    if not question:
        raise CommandError("Use /btw QUESTION.")
    agent = controller.open_agent
    controller.require_writable()
    side = SideQuestion(agent)
    try:
        await _ask(controller, side, question)
        while side.exchanges:
            wanted = await _choose(controller, side)
            if wanted == ASK_ON:
                await _ask_on(controller, side)
            elif wanted == DROP:
                side.drop()
            else:
                # Ask again if the answers can't be stored.
                await controller.attempt(_carry_out(controller, side, wanted))
    finally:
        side.close()
    controller.frontend.refresh_facts()


async def _ask(controller: Controller, side: SideQuestion, question: str) -> None:
    """Ask the model the side question; show a message if that fails or gives no answer."""
    controller.say(f"Asking the side question: {one_line(question, 60)}")
    is_answered = await controller.attempt(side.ask(question))
    if is_answered:
        controller.frontend.clear_notice()
    elif is_answered is False:
        controller.say("The model gave no answer.")


async def _ask_on(controller: Controller, side: SideQuestion) -> None:
    """Let the user type another side question, and ask the model; does nothing without one."""
    line = TextLine("What else do you want to ask?", confirm="ask")
    question = (await controller.ask(line) or "").strip()
    if question:
        await _ask(controller, side, question)


async def _choose(controller: Controller, side: SideQuestion) -> str:
    """Show the newest answer to the side question, and ask the user what to do with it."""
    last = side.exchanges[-1]
    shown = Choice(
        one_line(last.question, 200),
        _ANSWERS,
        visible(last.answer),
        at=KEEP,
        numbered=True,
        wide=True,
    )
    return await controller.ask(shown) or DROP


async def _carry_out(controller: Controller, side: SideQuestion, wanted: str) -> None:
    """Keep the answers as a branch or put them into the context, and tell the user.

    Raises StoreError if they can't be stored.
    """
    if wanted == KEEP:
        side.keep_beside()
        controller.say("Kept as a branch · /tree shows it")
    else:
        side.put_into_context()
        controller.say("The model sees the question and the answer from its next request on.")
