"""The ``/btw`` command: asks the model a side question, even while it works.

The user decides what happens to question and answer; `SideQuestion` stores them.
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
"""Name of an answer. Not a letter, which could be typed by mistake and would lose the model's answer."""
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
    """Ask the model a question, and show the answer.

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
    wanted = DROP
    try:
        wanted = await _converse(controller, side, question)
    finally:
        if wanted == DROP:
            side.drop()
    if wanted == KEEP:
        side.keep_beside()
        controller.say("Kept as a branch · /tree shows it")
    elif wanted == TAKE:
        side.put_into_context()
        controller.say("The model sees the question and the answer from its next request on.")
    controller.frontend.refresh_facts()


async def _converse(controller: Controller, side: SideQuestion, question: str) -> str:
    """Ask ``question``, and then the user's further questions; return what to do with the answers."""
    while True:
        controller.say(f"Asking the side question: {one_line(question, 60)}")
        answered = await side.ask(question)
        controller.frontend.clear_notice()
        if not answered:
            controller.say("The model gave no answer.")
        if not side.exchanges:
            return DROP
        question = ""
        while not question:
            last = side.exchanges[-1]
            shown = Choice(
                one_line(last.question, 200),
                _ANSWERS,
                visible(last.answer),
                at=KEEP,
                numbered=True,
                wide=True,
            )
            wanted = await controller.ask(shown) or DROP
            if wanted != ASK_ON:
                return wanted
            line = TextLine("What else do you want to ask?", confirm="ask")
            question = (await controller.ask(line) or "").strip()
