"""Going back to an earlier message, and whether files go along with this and every other move. ``/undo`` returns."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import age, changes_text, one_line, plural
from tui_agent.app.frontend import Choice, Pick, PickRow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.checkpoints.plan import RestorePlan
    from tui_agent.agent.checkpoints.restoring import ChangeAmount
    from tui_agent.app.controller import Controller
    from tui_agent.context.branch_summary import MovePlan
    from tui_agent.session.entries import UserEntry

    Go = Callable[[], Awaitable[str]]
    """Moves; returns the sentence that says so."""

MAX_MESSAGES = 300
"""Messages that can be gone back to; /tree goes further."""

BOTH, CONVERSATION, CODE = "both", "conversation", "code"


MAX_FILES_LISTED = 6
"""Files listed; the rest is counted."""
_WIDTH = 56
_PATH = 34

KEEP, RESTORE = "keep", "restore"


def files_text(plan: RestorePlan) -> str:
    rows = [f"{step.what:<7} {_path(step.path)}" for step in plan.steps]
    rows += [f"stays   {_path(conflict.path)}: {conflict.reason}" for conflict in plan.conflicts]
    shown = [row if len(row) <= _WIDTH else f"{row[: _WIDTH - 1]}…" for row in rows[:MAX_FILES_LISTED]]
    if len(rows) > MAX_FILES_LISTED:
        shown.append(f"… and {len(rows) - MAX_FILES_LISTED} more")
    if plan.omitted:
        shown.append(f"{plan.omitted:,} more files changed; there were too many to keep")
    return "\n".join(shown)


def files_question(plan: RestorePlan) -> Choice:
    """Return the question whether files go along. Answered with ``keep`` or ``restore``."""
    answers = [(KEEP, "Keep files as they are"), (RESTORE, f"Restore {plural(len(plan.steps), 'file')}")]
    question = f"{plural(len(plan.steps) + len(plan.conflicts), 'file')} changed in between."
    return Choice(question, answers, files_text(plan), unasked=KEEP)


async def carry_out(
    agent: Agent,
    move: MovePlan,
    files: RestorePlan | None,
    *,
    focus: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[str]:
    """Move (see ``Navigator.move``) and restore files, None to keep them; undoing the move does likewise.

    Returns the paths that stay as they are though they should have changed; the user was shown why.
    """
    await agent.navigator.move(move, focus=focus, progress=progress)
    agent.files.along[frozenset((move.from_id, move.leaf))] = files is not None
    if files is None:
        return []
    done = await agent.files.restore(files)
    return [conflict.path for conflict in (*done.failed, *files.conflicts)]


async def move_with_files(
    controller: Controller, agent: Agent, target: int | None, go: Go, *, pair: tuple[int | None, int | None]
) -> None:
    """Move, and take files along as they went along the last time between the entries of ``pair``.

    Where nobody knows, the user is asked; escape is no move at all. Nothing is asked where no file would change.
    """
    files, here = agent.files, agent.session.leaf
    plan = await files.plan(target)
    along = files.along.get(frozenset(pair))
    if plan.steps and along is None:
        answer = await controller.ask(files_question(plan))
        if answer is None:
            return
        along = answer == RESTORE
    said = await go()
    if plan.steps:
        files.along[frozenset((here, target))] = bool(along)
        if along:
            await files.restore(plan, said)


def _path(path: str) -> str:
    text = one_line(path, 10_000)
    return text if len(text) <= _PATH else f"…{text[1 - _PATH :]}"


@Command("rewind", "go back to before one of your messages", place=170, yields=True)
async def rewind(controller: Controller, _argument: str) -> None:
    from tui_agent.session.path_queries import prompt_text

    agent = controller.idle_agent
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
    chosen = await controller.ask(_question(plan)) if plan else CONVERSATION
    if chosen == CODE:
        await put_files_back(controller, agent, plan, message)
    elif chosen is not None:
        move = agent.navigator.plan(message.id)
        await carry_out(agent, move, plan if chosen == BOTH else None)
        controller.frontend.restore_message(prompt_text(move.prompt))
        controller.say(f"Back to before “{one_line(message.text, 40)}”. /undo returns.")


async def put_files_back(controller: Controller, agent: Agent, plan: RestorePlan, message: UserEntry) -> None:
    done = await agent.files.put_back(plan, message.parent_id)
    if done.done:
        controller.say(
            f"{plural(len(done.done), 'file')} as before “{one_line(message.text, 40)}”. /undo changes them again."
        )


def _messages(agent: Agent) -> list[UserEntry]:
    """Return the user's messages on the path, newest first."""
    from tui_agent.session.entries import UserEntry

    session = agent.session
    entries = session.reader.load(session.path_outline().of_kind("user"))
    typed = [entry for entry in entries if isinstance(entry, UserEntry) and entry.synthetic is None]
    return typed[: -MAX_MESSAGES - 1 : -1]


def _rows(messages: Sequence[UserEntry], amounts: Sequence[ChangeAmount], now: float) -> list[PickRow]:
    from tui_agent.session.path_queries import typed_text

    rows = []
    for entry, amount in zip(messages, amounts, strict=True):
        text, files = typed_text(entry.parts), changes_text(amount.files, amount.additions, amount.deletions)
        facts = " · ".join(filter(None, [files, age(entry.created_at, now)]))
        since = f"Changed since: {files}" if files else "No file was changed since."
        rows.append(PickRow(str(entry.id), one_line(text, 300) or "(no text)", facts, f"{text}\n\n{since}"))
    return rows


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
