"""Going back to an earlier message: the conversation, the files, or both. ``/undo`` returns from it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import age, one_line, plural
from tui_agent.app.frontend import Choice, Pick, PickRow
from tui_agent.app.rewind_files import carry_out, files_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.checkpoints.plan import RestorePlan
    from tui_agent.agent.checkpoints.restoring import ChangeAmount
    from tui_agent.app.controller import Controller
    from tui_agent.session.entries import UserEntry

MAX_MESSAGES = 300
"""Messages that can be gone back to; /tree goes further."""

BOTH, CONVERSATION, CODE = "both", "conversation", "code"


async def rewind(controller: Controller, _argument: str) -> None:
    """Ask for one of the user's messages, and go back to before it."""
    if (agent := controller.idle_agent) is None:
        return
    messages = await asyncio.to_thread(_messages, agent)
    if not messages:
        controller.say("There is no message to go back to yet.")
        return
    amounts = await agent.files.amounts([message.parent_id for message in messages])
    rows = _rows(messages, amounts, controller.services.clock())
    picked = await controller.ask(Pick("Go back to before which message?", rows, confirm="go back"))
    if picked is None or controller.idle_agent is not agent:
        return
    message = next(entry for entry in messages if str(entry.id) == picked)
    plan = await agent.files.plan(message.parent_id)
    what = await controller.ask(_question(plan)) if plan else CONVERSATION
    if what == CODE:
        await put_files_back(controller, agent, plan, message)
    elif what is not None:
        await _go_back(controller, agent, message, plan, along=what == BOTH)


async def _go_back(
    controller: Controller, agent: Agent, message: UserEntry, files: RestorePlan, *, along: bool
) -> None:
    from tui_agent.session.path_queries import prompt_text

    move = agent.navigator.plan(message.id)
    await carry_out(agent, move, files if along else None)
    controller.frontend.restore_message(prompt_text(move.prompt))
    controller.say(f"Back to before “{one_line(message.text, 40)}”. /undo returns.")


async def put_files_back(controller: Controller, agent: Agent, plan: RestorePlan, message: UserEntry) -> None:
    done = await agent.files.put_back(plan, message.parent_id)
    if done.done:
        controller.say(
            f"{plural(len(done.done), 'file')} as before “{one_line(message.text, 40)}”. /undo changes them again."
        )


def _messages(agent: Agent) -> list[UserEntry]:
    """Return what the user said on the path, newest first."""
    from tui_agent.session.entries import UserEntry

    session = agent.session
    entries = session.reader.load(session.path_outline().of_kind("user"))
    typed = [entry for entry in entries if isinstance(entry, UserEntry) and entry.synthetic is None]
    return typed[: -MAX_MESSAGES - 1 : -1]


def _rows(messages: Sequence[UserEntry], amounts: Sequence[ChangeAmount], now: float) -> list[PickRow]:
    from tui_agent.session.path_queries import typed_text

    rows = []
    for entry, amount in zip(messages, amounts, strict=True):
        text, changed = typed_text(entry.parts), amount_text(amount)
        facts = " · ".join(filter(None, [changed, age(entry.created_at, now)]))
        since = f"Changed since: {changed}" if changed else "No file was changed since."
        rows.append(PickRow(str(entry.id), one_line(text, 300) or "(no text)", facts, f"{text}\n\n{since}"))
    return rows


def amount_text(amount: ChangeAmount) -> str:
    """Return how much changed: ``2 files +12 −4``; nothing where nothing did."""
    if not amount.files:
        return ""
    lines = f"+{amount.additions} −{amount.deletions}" if amount.additions or amount.deletions else ""
    return f"{plural(amount.files, 'file')} {lines}".rstrip()


def _question(plan: RestorePlan) -> Choice:
    files = plural(len(plan.steps), "file")
    answers = [(CONVERSATION, "The conversation only; files stay as they are")]
    if plan.steps:
        answers = [
            (BOTH, f"The conversation and {files}"),
            *answers,
            (CODE, f"{files} only; the conversation goes on from here"),
        ]
    return Choice("What goes back?", answers, files_text(plan))


COMMANDS = (Command("rewind", "go back to before one of your messages", rewind, "Rewind", place=170, yields=True),)
