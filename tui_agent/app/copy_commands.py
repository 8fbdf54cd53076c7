"""The ``/copy`` command: copies the last answer, the last code, an entry or the whole conversation.

This module also finds the text of an entry, and the last code block in answers.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.errors import CommandError
from tui_agent.lazy import LazyPattern
from tui_agent.whole_numbers import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tui_agent.app.controller import Controller
    from tui_agent.session.entries import Entry
    from tui_agent.session.session import Session

_CODE = LazyPattern(
    r"^ {0,3}(`{3,}|~{3,})[^\n]*\n(.*?)(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)


@Command(
    "copy",
    "copy the last answer, its code, all, or #12",
    key="f3",
    argument="[WHAT]",
    needs_screen=True,
    place=360,
    words="clipboard, code block, yank, output",
)
async def copy(controller: Controller, argument: str) -> None:
    session = controller.open_agent.session
    wanted = argument.strip().lower()
    number = whole_number(wanted.removeprefix("#"))
    match wanted:
        case "":
            text = next(iter(_answers(session)), "")
            nothing = "There is no answer to copy yet."
        case "code":
            text = last_code(_answers(session)) or ""
            nothing = "There is no code to copy yet."
        case "all":
            text = await _whole_branch(controller, session)
            nothing = "There is nothing to copy yet."
        case _ if number is not None:
            text = own_text(session.entry(number), controller.services.store.blob)
            nothing = f"#{number} has no text."
        case _:
            raise CommandError("Use /copy, /copy code, /copy all or /copy #12.")
    if text.strip():
        controller.frontend.copy(text)
    else:
        controller.say(nothing)


async def _whole_branch(controller: Controller, session: Session) -> str:
    from tui_agent.app.exporting import ExportOrder, export_text

    if session.leaf is None:
        return ""
    order = ExportOrder(session.id, leaf=session.leaf)
    return await asyncio.to_thread(export_text, controller.services.store, order)


def _answers(session: Session) -> list[str]:
    """Return the texts of the model's answers on the current session path, newest first."""
    from tui_agent.session.entries import AssistantEntry

    answers = []
    for entry in reversed(session.active_path()):
        if isinstance(entry, AssistantEntry) and entry.text.strip():
            answers.append(entry.text)
    return answers


def last_code(answers: Iterable[str]) -> str | None:
    """Return the last code block of the first answer that has one, without fences.

    Return None if no answer has one.
    """
    for answer in answers:
        if found := _CODE.findall(answer):
            return str(found[-1][1]).removesuffix("\n")
    return None


def own_text(entry: Entry, blob: Callable[[str], bytes | None] = lambda _digest: None) -> str:  # noqa: PLR0911 - one arm per kind
    """Return an entry's text: a message as typed, an answer, a summary or an output.

    For an answer without text, returns its tool calls; for a shell command without output, the
    command. The result may be "". ``blob`` returns content by SHA-256; without it, a long output
    stays truncated.
    """
    from tui_agent.session import entries
    from tui_agent.session.entries import typed_text

    match entry:
        case entries.UserEntry():
            return typed_text(entry.parts)
        case entries.AssistantEntry():
            calls = [f"{call.tool} {call.arguments}" for call in entry.tool_calls]
            return entry.text or "\n".join(calls)
        case entries.ShellEntry():
            return entry.output or entry.command
        case entries.ToolResultEntry():
            return entry.whole_output(blob)
        case entries.SummaryEntry():
            return entry.summary
        case entries.SystemEntry():
            return "\n\n".join(entry.blocks)
        case entries.BookkeepingEntry():
            return entry.preview
