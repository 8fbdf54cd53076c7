"""The ``write`` tool: a whole file, new or replaced."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import model_validator

from tui_agent.context.rendering import line_count
from tui_agent.editing.diffs import FileDiff, diff_texts
from tui_agent.errors import ToolError
from tui_agent.files.inside import make_directories
from tui_agent.files.secret_files import shown_diff
from tui_agent.lazy import frozen
from tui_agent.path_checks import is_directory
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.session.entries import ToolMetadata
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.text_files.encodings import odd_bytes_shown, with_odd_bytes
from tui_agent.text_files.lines import newline_of, with_newlines
from tui_agent.text_files.reading import TextFile, load, new_file
from tui_agent.text_files.replacing import replace_file
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.changes import (
    MAX_CHANGED_BYTES,
    change_needs,
    refuse_left_out,
    refuse_unless_file,
    stale,
    validity_note,
)
from tui_agent.tools.outputs import counted
from tui_agent.tools.paths import Location, explain, locate, relocate


class WriteInput(ToolInput):
    """Arguments of ``write``."""

    path: str
    content: str

    @model_validator(mode="before")
    @classmethod
    def _as_json(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not isinstance(values.get("content"), dict | list):
            return values
        if not str(values.get("path", "")).strip().endswith(".json"):
            return values
        return values | {
            "content": json.dumps(values["content"], indent=2, ensure_ascii=False) + "\n"
        }


@frozen
class _Plan:
    before: str | None
    text: str
    data: bytes
    diff: FileDiff


class WriteTool(Tool[WriteInput]):
    """Creates or replaces a file."""

    name = "write"
    description = "Create or overwrite a file; read an existing one first."
    Input = WriteInput
    instead: ClassVar[Mapping[str, str]] = {"append": "to add to a file use edit"}
    traits = ToolTraits(
        basic=True,
        kind="edit",
        other_names="writefile writetofile createfile savefile",
        writes=True,
        quotes=True,
        says_arguments=True,
    )

    def needs(self, arguments: WriteInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        location = locate(arguments.path, context)
        return change_needs(
            location, lambda: _plan(arguments, location, context).diff.text, context
        )

    async def run(self, arguments: WriteInput, context: ToolContext) -> ToolResult:
        location = relocate(arguments.path, Permission.EDIT, context)
        try:
            plan = await asyncio.to_thread(_write, arguments, location, context)
        except OSError as error:
            raise explain(error, location.shown) from error
        before = plan.before or ""
        diff = await asyncio.to_thread(
            shown_diff, location.real, (before, plan.text), plan.diff.text
        )
        note = await asyncio.to_thread(validity_note, location, before, plan.text)
        lines = counted(line_count(arguments.content), "line")
        verb = "Created" if plan.before is None else "Wrote"
        if plan.before is None:
            counts = ""
        else:
            counts = f", +{plan.diff.additions} -{plan.diff.deletions}"
        return ToolResult(
            f"{verb} {location.shown} ({lines}{counts}).{note}",
            title=location.shown,
            metadata=ToolMetadata(
                path=location.pattern,
                diff=diff or None,
                additions=plan.diff.additions,
                deletions=plan.diff.deletions,
                modified_files=(location.pattern,),
            ),
        )

    def touches(self, arguments: WriteInput, context: ToolContext) -> tuple[Path, ...]:
        return (locate(arguments.path, context).real,)

    def title(self, arguments: WriteInput) -> str:
        return arguments.path


def _write(arguments: WriteInput, location: Location, context: ToolContext) -> _Plan:
    plan = _plan(arguments, location, context)
    make_directories(location.real.parent)
    replace_file(location.real, plan.data)
    context.reads.note(location.real)
    return plan


def _plan(arguments: WriteInput, location: Location, context: ToolContext) -> _Plan:
    if arguments.path.strip().endswith("/") and not is_directory(location.real):
        raise ToolError(
            f"{arguments.path.strip()} names a directory. Name a file: directories are made with it."
        )
    if not os.path.lexists(location.real):
        data = new_file(location.real).encoded(arguments.content, location.shown)
        return _Plan(
            None, arguments.content, data, diff_texts(location.pattern, None, arguments.content)
        )
    refuse_unless_file(location)
    changed = context.reads.changed_since(location.real)
    if changed is None and location.real.stat().st_size:
        raise ToolError(
            f"{location.shown} exists and was not read. Read it first, or change it with edit."
        )
    if changed:
        raise stale(location)
    file = load(location.real, location.shown, max_bytes=MAX_CHANGED_BYTES)
    if file.text:
        content = with_newlines(arguments.content, newline_of(file.text))
    else:
        content = arguments.content
    content = _with_odd_bytes(content, file, location)
    refuse_left_out(file.text, content, location)
    data = file.encoded(content, location.shown)
    return _Plan(file.text, content, data, diff_texts(location.pattern, file.text, content))


def _with_odd_bytes(content: str, file: TextFile, location: Location) -> str:
    """Return the content with the bytes that a model sees as U+FFFD.

    Raises:
        ToolError: it is open which goes where.
    """
    if odd_bytes_shown(file.text) == file.text:
        return content
    found = with_odd_bytes(content, file.text)
    if found is None:
        raise ToolError(
            f"{location.shown} has bytes that are not text, shown as \ufffd; nothing was changed. Change the lines "
            "around them with edit."
        )
    return found
