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
from tui_agent.editing.text_files import TextFile, load, newline_of, replace_file, with_newlines
from tui_agent.errors import ToolError
from tui_agent.files.inside import make_directories
from tui_agent.files.secret_files import shown_diff
from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_directory
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.session.entries import ToolMetadata
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.changes import MAX_CHANGED_BYTES, change_needs, refuse_left_out, refuse_unless_file, stale
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
        return values | {"content": json.dumps(values["content"], indent=2, ensure_ascii=False) + "\n"}


@dataclass(frozen=True, slots=True)
class _Plan:
    before: TextFile | None
    data: bytes
    diff: FileDiff
    note: str = ""


class WriteTool(Tool[WriteInput]):
    """Creates or replaces a file."""

    name = "write"
    description = "Create a file or replace all of it; read an existing one first."
    Input = WriteInput
    instead: ClassVar[Mapping[str, str]] = {"append": "to add to a file use edit"}
    traits = ToolTraits(
        kind="edit",
        other_names="writefile writetofile createfile savefile",
        writes=True,
        quotes=True,
        says_arguments=True,
    )

    def needs(self, arguments: WriteInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        location = locate(arguments.path, context)
        return change_needs(location, lambda: _plan(arguments, location, context).diff.text, context)

    async def run(self, arguments: WriteInput, context: ToolContext) -> ToolResult:
        location = relocate(arguments.path, Permission.EDIT, context)
        try:
            plan = await asyncio.to_thread(_write, arguments, location, context)
        except OSError as error:
            raise explain(error, location.shown) from error
        texts = (plan.before.text if plan.before else "", arguments.content)
        diff = await asyncio.to_thread(shown_diff, location.real, texts, plan.diff.text)
        lines = counted(line_count(arguments.content), "line")
        verb = "Created" if plan.before is None else "Wrote"
        counts = "" if plan.before is None else f", +{plan.diff.additions} -{plan.diff.deletions}"
        return ToolResult(
            f"{verb} {location.shown} ({lines}{counts}).{plan.note}",
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
        raise ToolError(f"{arguments.path.strip()} names a directory. Name a file: directories are made with it.")
    if not os.path.lexists(location.real):
        return _Plan(None, arguments.content.encode(), diff_texts(location.pattern, None, arguments.content))
    refuse_unless_file(location)
    changed = context.reads.changed_since(location.real)
    if changed is None and location.real.stat().st_size:
        raise ToolError(f"{location.shown} exists and was not read. Read it first, or change it with edit.")
    if changed:
        raise stale(location)
    before = load(location.real, location.shown, max_bytes=MAX_CHANGED_BYTES)
    content = with_newlines(arguments.content, newline_of(before.text)) if before.text else arguments.content
    refuse_left_out(before.text, content, location)
    try:
        data, note = before.encoding.encode(content), ""
    except UnicodeEncodeError:
        data, note = content.encode("utf-8"), f" It was {before.encoding.name} and is UTF-8 now."
    return _Plan(before, data, diff_texts(location.pattern, before.text, content), note)
