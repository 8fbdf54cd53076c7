"""The ``/rewind`` command: takes the conversation, the files or both back to an earlier point.

The user picks one of their messages; the point is the one before that message. moves.py moves the
leaf and restores the files.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import age, changes_text, dotted, one_line
from tui_agent.app.frontend import Pick, PickRow
from tui_agent.app.moves import NOT_RECORDED, files_along, files_phrase, make_move
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.checkpoints.restoring import ChangeAmount
    from tui_agent.app.controller import Controller
    from tui_agent.session.entries import UserEntry

MAX_MESSAGES = 300
"""Maximum number of messages that ``/rewind`` offers, newest first; /tree has all of them."""

CONVERSATION = "conversation"
"""Argument of ``/rewind`` that leaves the files as they are."""
FILES = "files"
"""Argument of ``/rewind`` that leaves the conversation as it is."""

_QUESTIONS = {
    "": "Go back to before which message?",
    CONVERSATION: "Go back to before which message? Files stay.",
    FILES: "Restore files to their state before which message?",
}


@Command(
    "rewind",
    "go back to before one of your messages",
    argument="[conversation|files]",
    changes_files=True,
    place=170,
    is_replaceable=True,
    words="earlier, restore, revert, checkpoint, take back, start again from",
)
async def rewind(controller: Controller, argument: str) -> None:
    """Go back to the point before a message that the user picks.

    ``argument`` is the part that goes back, "conversation" or "files"; "" means both.
    """
    part = argument.strip()
    if part not in {"", CONVERSATION, FILES}:
        raise CommandError(f"Use /rewind, /rewind {CONVERSATION} or /rewind {FILES}.")
    agent = controller.idle_agent
    if part == FILES and not agent.files.has_snapshots:
        raise CommandError(NOT_RECORDED)
    draft = controller.frontend.draft
    messages = await asyncio.to_thread(_messages, agent)
    if not messages:
        controller.say("There is no message to go back to yet.")
        return
    amounts = await agent.files.amounts([message.parent_id for message in messages])
    unchanged = "No file changes have been recorded since then."
    if not agent.files.has_snapshots:
        unchanged = NOT_RECORDED
    rows = _rows(messages, amounts, controller.services.clock(), unchanged)
    if controller.frontend.draft != draft:
        controller.say("The list was not opened, because you continued typing. /rewind opens it.")
        return
    picked = await controller.ask(Pick(_QUESTIONS[part], rows, confirm="go back"))
    if picked is None or controller.idle_agent is not agent:
        return
    message = next(entry for entry in messages if str(entry.id) == picked)
    if part == FILES:
        await put_files_back(controller, agent, message)
    else:
        await _go_back(controller, agent, message, with_files=part != CONVERSATION)


async def _go_back(
    controller: Controller, agent: Agent, message: UserEntry, *, with_files: bool
) -> None:
    """Go back to the point before a message, put the message into the prompt, and report that.

    With ``with_files``, also restores the files. Does nothing if the user cancels that.
    """
    from tui_agent.session.entries import prompt_text

    move = agent.navigator.plan(message.id)
    files = None
    if with_files:
        files = await files_along(controller, agent, move.leaf)
        if files is None:
            return
    restored = await make_move(agent, move, files)
    controller.frontend.restore_message(prompt_text(move.prompt))
    sentence = f"Back to before “{one_line(message.text, 40)}”"
    controller.say(dotted(", ".join(filter(None, [sentence, restored])), "/undo returns"))


async def put_files_back(controller: Controller, agent: Agent, message: UserEntry) -> None:
    """Restore the project's files as they were before a message, and report that.

    The conversation is not changed. Asks the user about files that others changed. Does nothing if
    the user cancels or no file would change.
    """
    plan = await files_along(controller, agent, message.parent_id)
    if not plan:
        return
    done = await agent.files.restore_in_place(plan, message.parent_id)
    changed = files_phrase(plan, done)
    if changed:
        before = f"Files are as before “{one_line(message.text, 40)}”"
        controller.say(f"{before}: {changed} · /undo reverses this")


def _messages(agent: Agent) -> list[UserEntry]:
    """Return the user's newest messages on the current session path, at most ``MAX_MESSAGES``.

    The newest message comes first.
    """
    from tui_agent.session.entries import is_by_user

    session = agent.session
    entries = session.reader.load(session.path_outline().of_kind("user"))
    typed = []
    for entry in entries:
        if is_by_user(entry):
            typed.append(entry)
    return typed[: -MAX_MESSAGES - 1 : -1]


def _rows(
    messages: Sequence[UserEntry], amounts: Sequence[ChangeAmount], now: float, unchanged: str
) -> list[PickRow]:
    """Return a row for each message; ``unchanged`` is shown if no file changed after a message."""
    from tui_agent.session.entries import typed_text

    rows = []
    for entry, amount in zip(messages, amounts, strict=True):
        text = typed_text(entry.parts)
        files = changes_text(amount.files, amount.additions, amount.deletions)
        facts = dotted(files, age(entry.created_at, now))
        since = unchanged
        if files:
            since = f"Changed since: {files}"
        rows.append(
            PickRow(str(entry.id), one_line(text, 300) or "(no text)", facts, f"{text}\n\n{since}")
        )
    return rows
