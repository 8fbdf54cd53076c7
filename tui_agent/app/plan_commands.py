"""What becomes of a plan: it is carried out, changed, or thought about further."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.frontend import Choice, EditedText
from tui_agent.app.waiting_plan import plan_of

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.controller import Controller

EDIT, KEEP = "edit", "keep"


def _answers() -> tuple[tuple[str, str], ...]:
    from tui_agent.agent.permissions import Mode

    return (
        (Mode.BUILD.value, "Go on in build: ask before files change"),
        (Mode.AUTO_EDIT.value, "Go on in auto-edit: change files without asking"),
        (EDIT, "Change the plan in $EDITOR first"),
        (KEEP, "Keep planning: say what to change"),
    )


async def plan(controller: Controller, argument: str) -> None:
    """Decide on the plan; the name of a mode carries it out at once. Without a plan, go into plan mode to make one."""
    from tui_agent.agent.permissions import Mode

    if (agent := controller.idle_agent) is None:
        return
    text = plan_of(agent)
    if not text and agent.mode != Mode.PLAN:
        controller.begin("mode", Mode.PLAN.value)
    elif not text:
        controller.say("There is no plan yet: say what is to be planned.")
    elif argument.strip() in {Mode.BUILD, Mode.AUTO_EDIT}:
        await _carry_out(controller, agent, text, argument.strip())
    else:
        await decide(controller, text)


async def decide(controller: Controller, text: str) -> None:
    """Ask what becomes of a plan, again after each change."""
    question = "Carry out this plan?"
    while True:
        answer = await controller.ask(Choice(question, _answers(), beneath=True))
        if answer is None or answer == KEEP or (agent := controller.idle_agent) is None:
            return
        if answer != EDIT:
            await _carry_out(controller, agent, text, answer)
            return
        changed = await controller.ask(EditedText(text, "plan.md"))
        if changed is not None and changed.strip() and changed.strip() != text:
            text, question = changed.strip(), "Carry out the plan as you changed it?"


async def _carry_out(controller: Controller, agent: Agent, text: str, mode: str) -> None:
    from tui_agent.session.entries import PLAN_PATH, FilePart, TextPart

    agent.change_mode(mode)
    controller.frontend.refresh_facts()
    approval = agent.ports.prompt("plan_approved").strip()
    controller.outbox.submit((TextPart(text=approval, typed=f"/plan {mode}"), FilePart(path=PLAN_PATH, text=text)))


COMMANDS = (
    Command(
        "plan",
        "carry out the plan, change it, or begin one",
        plan,
        "Plan",
        argument="[build|auto-edit]",
        place=155,
        yields=True,
    ),
)
