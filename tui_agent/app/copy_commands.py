"""The texts that ``/copy`` copies: the last answer, its last code, an entry, or the whole conversation."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.errors import CommandError
from tui_agent.lazy import LazyPattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tui_agent.app.controller import Controller
    from tui_agent.session.entries import Entry

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
    from tui_agent.session.entries import AssistantEntry

    wanted = argument.strip().lower()
    session = controller.open_agent.session
    if wanted == "all":
        from tui_agent.app.exporting import ExportOrder, export_text

        if session.leaf is None:
            raise CommandError("There is nothing to copy yet.")
        order = ExportOrder(session.id, leaf=session.leaf)
        controller.frontend.copy(
            await asyncio.to_thread(export_text, controller.services.store, order)
        )
    elif wanted in {"", "code"}:
        said = (
            entry.text
            for entry in reversed(session.active_path())
            if isinstance(entry, AssistantEntry)
        )
        answers = [text for text in said if text.strip()]
        if wanted:
            text = last_code(answers)
        else:
            text = next(iter(answers), None)
        if text is None:
            controller.say(
                "There is no code to copy yet." if wanted else "There is no answer to copy yet."
            )
        else:
            controller.frontend.copy(text)
    elif (number := wanted.removeprefix("#")).isdecimal():
        text = text_of(session.entry(int(number)), controller.services.store.blob)
        if text.strip():
            controller.frontend.copy(text)
        else:
            controller.say(f"#{number} has no text.")
    else:
        raise CommandError("Write /copy, /copy code, /copy all or /copy #12.")


def last_code(answers: Iterable[str]) -> str | None:
    """Return the last block of code of the first text that has one, without its fences; None when none has."""
    for answer in answers:
        if found := _CODE.findall(answer):
            return str(found[-1][1]).removesuffix("\n")
    return None


def text_of(entry: Entry, blob: Callable[[str], bytes | None] = lambda _digest: None) -> str:  # noqa: PLR0911 - one arm per kind
    """Return an entry's text: a message, an answer or its calls, all of an output, seen by the model or not."""
    from tui_agent.session import entries
    from tui_agent.session.entries import typed_text

    match entry:
        case entries.UserEntry():
            return typed_text(entry.parts)
        case entries.AssistantEntry():
            return entry.text or "\n".join(
                f"{call.tool} {call.arguments}" for call in entry.tool_calls
            )
        case entries.ToolResultEntry(full_output=str(digest)) if (full := blob(digest)) is not None:
            return full.decode("utf-8", errors="replace")
        case entries.ShellEntry():
            return entry.output or entry.command
        case entries.ToolResultEntry():
            return entry.output
        case entries.CompactionEntry() | entries.BranchSummaryEntry():
            return entry.summary
        case entries.SystemEntry():
            return "\n\n".join(entry.blocks)
        case _:
            return entry.preview
