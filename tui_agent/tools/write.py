"""The ``write`` tool: creates or replaces a whole file."""

import json
import os
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import model_validator

from tui_agent.context.rendering import line_count
from tui_agent.editing.diffs import diff_texts
from tui_agent.errors import ToolError
from tui_agent.path_checks import is_directory
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.text_files.encodings import odd_bytes_shown, with_odd_bytes
from tui_agent.text_files.lines import newline_of, with_newlines
from tui_agent.text_files.reading import TextFile, load, new_file
from tui_agent.tools.base import ToolContext
from tui_agent.tools.changes import (
    MAX_CHANGED_BYTES,
    Change,
    ChangeInput,
    ChangeTool,
    refuse_left_out,
    refuse_unless_file,
    stale,
)
from tui_agent.tools.outputs import counted
from tui_agent.tools.paths import Location


class WriteInput(ChangeInput):
    """Arguments of the ``write`` tool."""

    content: str

    @model_validator(mode="before")
    @classmethod
    def _as_json(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not isinstance(values.get("content"), dict | list):
            return values
        if not str(values.get("path", "")).strip().endswith(".json"):
            return values
        text = json.dumps(values["content"], indent=2, ensure_ascii=False)
        return values | {"content": f"{text}\n"}


class WriteTool(ChangeTool[WriteInput]):
    """Creates a file, or replaces all its content.

    Refuses to replace a file that the model has not read, unless the file is empty.
    """

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

    def plan(self, arguments: WriteInput, location: Location, context: ToolContext) -> Change:
        if arguments.path.strip().endswith("/") and not is_directory(location.real):
            raise ToolError(
                f"{arguments.path.strip()} is a directory. Name a file; missing directories are created."
            )
        if not os.path.lexists(location.real):
            data = new_file(location.real).encoded(arguments.content, location.shown)
            return Change(
                None, arguments.content, data, diff_texts(location.pattern, None, arguments.content)
            )
        refuse_unless_file(location)
        changed = context.reads.changed_since(location.real)
        if changed is None and location.real.stat().st_size:
            raise ToolError(
                f"{location.shown} exists and you have not read it. Read it first, or change it with edit."
            )
        if changed:
            raise stale(location)
        file = load(location.real, location.shown, max_bytes=MAX_CHANGED_BYTES)
        content = arguments.content
        if file.text:
            content = with_newlines(content, newline_of(file.text))
        content = _with_odd_bytes(content, file, location)
        refuse_left_out(file.text, content, location)
        data = file.encoded(content, location.shown)
        return Change(file.text, content, data, diff_texts(location.pattern, file.text, content))

    def words(self, arguments: WriteInput, location: Location, change: Change, note: str) -> str:
        lines = counted(line_count(arguments.content), "line")
        if change.before is None:
            return f"Created {location.shown} ({lines}).{note}"
        diff = change.diff
        return f"Wrote {location.shown} ({lines}, +{diff.additions} -{diff.deletions}).{note}"


def _with_odd_bytes(content: str, file: TextFile, location: Location) -> str:
    """Return the content with each U+FFFD replaced with the undecodable byte that it stands for.

    Raises:
        ToolError: the numbers of such bytes in the content and in the file differ, so it is unclear
            for which byte each U+FFFD stands.
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
