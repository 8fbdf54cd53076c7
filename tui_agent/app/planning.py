"""What becomes of a plan: it is carried out, changed, or thought about further."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tui_agent.app.face import Choice, EditedText

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.desk import Desk

READY = "The plan is ready. /plan carries it out or changes it."
EDIT, KEEP = "edit", "keep"
_HEADING = re.compile(r"^#{1,3} +plan\b", re.IGNORECASE | re.MULTILINE)


def _answers() -> tuple[tuple[str, str], ...]:
    from tui_agent.agent.permissions import Mode

    return (
        (Mode.BUILD.value, "Go on in build: ask before files change"),
        (Mode.AUTO_EDIT.value, "Go on in auto-edit: change files without asking"),
        (EDIT, "Change the plan in $EDITOR first"),
        (KEEP, "Keep planning: say what to change"),
    )


def plan_of(agent: Agent, *, headed: bool = False) -> str:
    """Return the plan that waits for a decision: the last answer in plan mode, from its heading on; "" when none does.

    ``headed`` asks for the heading that plans begin with: without one it may be talk.
    """
    from tui_agent.agent.permissions import Mode
    from tui_agent.session.path_queries import newest_message

    answer = newest_message(agent.session.active_path()) if agent.mode == Mode.PLAN else None
    if answer is None or answer.kind != "assistant" or answer.tool_calls or answer.finish != "stop":
        return ""
    heading = _HEADING.search(answer.text)
    if heading is None:
        return "" if headed else answer.text.strip()
    return answer.text[heading.start() :].strip()


async def plan(desk: Desk, argument: str) -> None:
    """Decide on the plan; the name of a mode carries it out at once. Without a plan, go into plan mode to make one."""
    from tui_agent.agent.permissions import Mode

    if (agent := desk.idle_agent) is None:
        return
    text = plan_of(agent)
    if not text and agent.mode != Mode.PLAN:
        desk.begin("mode", Mode.PLAN.value)
    elif not text:
        desk.say("There is no plan yet: say what is to be planned.")
    elif argument.strip() in {Mode.BUILD, Mode.AUTO_EDIT}:
        await _carry_out(desk, agent, text, argument.strip())
    else:
        await decide(desk, text)


async def decide(desk: Desk, text: str) -> None:
    """Ask what becomes of a plan, again after each change."""
    question = "Carry out this plan?"
    while True:
        answer = await desk.ask(Choice(question, _answers(), beneath=True))
        if answer is None or answer == KEEP or (agent := desk.idle_agent) is None:
            return
        if answer != EDIT:
            await _carry_out(desk, agent, text, answer)
            return
        changed = await desk.ask(EditedText(text, "plan.md"))
        if changed is not None and changed.strip() and changed.strip() != text:
            text, question = changed.strip(), "Carry out the plan as you changed it?"


async def _carry_out(desk: Desk, agent: Agent, text: str, mode: str) -> None:
    from tui_agent.session.entries import PLAN_PATH, FilePart, TextPart

    agent.change_mode(mode)
    desk.face.refresh_facts()
    approval = agent.ports.prompt("plan_approved").strip()
    desk.outbox.submit((TextPart(text=approval, typed=f"/plan {mode}"), FilePart(path=PLAN_PATH, text=text)))


def offer(desk: Desk, agent: Agent) -> str | None:
    """Return the plan to ask about after a run; None when there is none, or when the user is writing."""
    text = plan_of(agent, headed=True)
    if text and (desk.face.draft.strip() or agent.queue.steer or agent.queue.follow_up):
        desk.say(READY)
        return None
    return text or None
