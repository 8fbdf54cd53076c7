"""What ``/copy`` copies: the last answer, its last code, an entry, or the whole conversation."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.lazy import LazyPattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tui_agent.app.controller import Controller
    from tui_agent.session.entries import Entry

_CODE = LazyPattern(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n(.*?)(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
USAGE = "Write /copy, /copy code, /copy all or /copy #12."


async def copy(controller: Controller, argument: str) -> None:
    """Copy what the argument names, as it was written; without one the last answer."""
    wanted = argument.strip().lower()
    if controller.agent is None:
        controller.say("There is nothing to copy yet.")
    elif wanted == "all":
        await _copy_all(controller)
    elif wanted in {"", "code"}:
        answers = [answer for entry in reversed(controller.agent.session.active_path()) if (answer := _answer(entry))]
        text = last_code(answers) if wanted else next(iter(answers), None)
        if text is None:
            controller.say("There is no code to copy yet." if wanted else "There is no answer to copy yet.")
        else:
            controller.frontend.copy(text)
    elif (number := wanted.removeprefix("#")).isdecimal():
        _copy_entry(controller, int(number))
    else:
        controller.say(USAGE, "warning")


def last_code(answers: Iterable[str]) -> str | None:
    """Return the last block of code of the first text that has one, without its fences; None when none has."""
    for answer in answers:
        if found := _CODE.findall(answer):
            return str(found[-1][1]).removesuffix("\n")
    return None


def text_of(entry: Entry, blob: Callable[[str], bytes | None]) -> str:
    """Return an entry's text: a message, an answer, a summary, or all of an output, also what the model did not see."""
    from tui_agent.session.entries import ToolResultEntry

    if isinstance(entry, ToolResultEntry) and entry.full_output and (full := blob(entry.full_output)) is not None:
        return full.decode("utf-8", errors="replace")
    return next((str(text) for name in ("text", "output", "summary") if (text := getattr(entry, name, ""))), "")


def _answer(entry: Entry) -> str:
    from tui_agent.session.entries import AssistantEntry

    return entry.text if isinstance(entry, AssistantEntry) and entry.text.strip() else ""


def _copy_entry(controller: Controller, entry_id: int) -> None:
    assert controller.agent is not None  # noqa: S101 - the caller looked
    text = text_of(controller.agent.session.entry(entry_id), controller.services.store.blob)
    if text.strip():
        controller.frontend.copy(text)
    else:
        controller.say(f"#{entry_id} has no text.")


async def _copy_all(controller: Controller) -> None:
    """Copy the conversation from its beginning to here as Markdown, as ``/export`` would write it."""
    from tui_agent.app.exporting import ExportOrder

    assert controller.agent is not None  # noqa: S101 - the caller looked
    session = controller.agent.session
    if session.leaf is None:
        controller.say("There is nothing to copy yet.")
        return
    order = ExportOrder(session.id, leaf=session.leaf)
    controller.frontend.copy(await asyncio.to_thread(controller.services.transfer.text, order))


COMMANDS = (
    Command(
        "copy",
        "copy the last answer, its code, all, or #12",
        copy,
        "Copy last answer",
        key="f3",
        argument="[WHAT]",
        needs_screen=True,
        place=360,
    ),
)
