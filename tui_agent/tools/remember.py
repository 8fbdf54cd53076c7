"""``remember``: the model keeps a fact about the project for later sessions."""

import asyncio
from pathlib import Path
from typing import ClassVar

from tui_agent.editing.diffs import diff_texts
from tui_agent.errors import ToolError
from tui_agent.files.notes import NOTES_FILE, NoteError, read_notes, with_note, write_notes
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.session.entries import ToolMetadata
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.changes import change_needs
from tui_agent.tools.paths import locate, relocate


class RememberInput(ToolInput):
    """Arguments of ``remember``."""

    note: str
    """One sentence."""


class RememberTool(Tool[RememberInput]):
    """Adds a line to the project's notes, which stand in the head of every session."""

    name: ClassVar[str] = "remember"
    description: ClassVar[str] = (
        "Keep a fact or wish of the user that no file holds for later sessions."
    )
    Input = RememberInput
    traits = ToolTraits(
        kind="edit",
        other_names="savememory memory addmemory",
        quotes=True,
    )

    def needs(self, arguments: RememberInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        before, after = _plan(arguments, context)
        location = locate(str(context.project / NOTES_FILE), context)
        return change_needs(
            location, lambda: diff_texts(location.pattern, before or None, after).text, context
        )

    async def run(self, arguments: RememberInput, context: ToolContext) -> ToolResult:
        location = relocate(str(context.project / NOTES_FILE), Permission.EDIT, context)
        before, after = await asyncio.to_thread(_plan, arguments, context)
        await asyncio.to_thread(write_notes, context.project, after)
        diff = diff_texts(location.pattern, before or None, after)
        metadata = ToolMetadata(
            path=location.pattern, diff=diff.text, additions=1, modified_files=(location.pattern,)
        )
        return ToolResult(
            f"Noted in {location.shown}.",
            title=" ".join(arguments.note.split())[:80],
            metadata=metadata,
        )

    def touches(self, arguments: RememberInput, context: ToolContext) -> tuple[Path, ...]:  # noqa: ARG002 - as inherited
        return (locate(str(context.project / NOTES_FILE), context).real,)

    def title(self, arguments: RememberInput) -> str:  # noqa: ARG002 - as inherited
        return NOTES_FILE


def _plan(arguments: RememberInput, context: ToolContext) -> tuple[str, str]:
    try:
        before = read_notes(context.project)
        return before, with_note(before, arguments.note)
    except (NoteError, OSError) as error:
        raise ToolError(str(error)) from error
