"""The ``read`` tool: text by the line, directories, images."""

import asyncio
import mimetypes
import os
import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from tui_agent.errors import ToolError
from tui_agent.files.inside import open_file
from tui_agent.lazy import LazyPattern
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.pictures import MAX_SOURCE_BYTES, picture_type
from tui_agent.session.entries import ToolMetadata, Truncation
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.text_files.encodings import SAMPLE_BYTES, Encoding
from tui_agent.text_files.reading import (
    Window,
    encoding_of,
    read_window,
    window_of,
    without_secrets,
)
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.ls import list_tree
from tui_agent.tools.outputs import (
    READ_END,
    READ_ON,
    Output,
    counted,
    finish,
    image_part,
    shown_picture,
    size_text,
)
from tui_agent.tools.paths import Location, explain, find, missing, path_needs, relocate
from tui_agent.tools.rereads import short_answer

SECRETS_LEFT_OUT = (
    "[Secrets are shown as [redacted] in {lines}. An edit must leave those parts as they are.]\n"
)
STORED_LINES = 20_000
"""Lines of one read of a file: the part not shown to the model is stored, for ``recall``."""

_NUMBER_CHARS = 12
_PLACE = LazyPattern(r"(.+?):(\d{1,9})(?:-(\d{1,9})|:\d+)?:?")
_PDF = b"%PDF-"


class ReadInput(ToolInput):
    """Arguments of ``read``."""

    path: str
    offset: int = Field(default=1, ge=0, description="First line, from 1")
    limit: int | None = Field(default=None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _other_ways(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        values = dict(values)
        span = values.get("view_range")
        if isinstance(span, list) and len(span) == 2:
            values |= dict(zip(("start_line", "end_line"), span, strict=True))
            del values["view_range"]
        first = _popped(values, "start_line", "line_start", "startLine")
        last = _popped(values, "end_line", "line_end", "endLine")
        if first is not None:
            values.setdefault("offset", first)
        if last is not None and last > 0:
            values.setdefault("limit", last - (first or 1) + 1)
        if (limit := _integer(values.get("limit"))) is not None and limit < 1:
            del values["limit"]
        return values


def _popped(values: dict[str, Any], *names: str) -> int | None:
    for name in names:
        if (number := _integer(values.get(name))) is not None:
            del values[name]
            return number
    return None


def _integer(value: Any) -> int | None:
    text = str(value)
    if re.fullmatch(r"-?\d{1,12}", text):
        return int(text)
    return None


def _without_lines(arguments: ReadInput, context: ToolContext) -> ReadInput:
    """Return the arguments for ``path:12`` or ``path:12-20``, as searches and compilers name a place."""
    found = _PLACE.fullmatch(arguments.path.strip())
    if (
        found is None
        or os.path.lexists(context.cwd / arguments.path)
        or not os.path.lexists(context.cwd / found[1])
    ):
        return arguments
    update: dict[str, Any] = {"path": found[1]}
    if "offset" not in arguments.model_fields_set:
        first = max(int(found[2]), 1)
        update |= {"offset": first} | (
            {"limit": max(int(found[3]) - first + 1, 1)} if found[3] else {}
        )
    return arguments.model_copy(update=update)


class ReadTool(Tool[ReadInput]):
    """Shows a file, a directory or an image."""

    name = "read"
    description = (
        "Read a text file (lines come as number, tab, text), image or directory. "
        "Long files come in part: go on with offset."
    )
    Input = ReadInput
    traits = ToolTraits(
        kind="read",
        other_names="readfile openfile viewfile view cat open filereader",
        explores=True,
        reads=True,
        repeatable=True,
        quotes=True,
        counts="line",
        runs_of="file",
        output="numbered",
        says_arguments=True,
    )
    read_only = True

    def needs(self, arguments: ReadInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        return path_needs(Permission.READ, find(_without_lines(arguments, context).path, context))

    async def run(self, arguments: ReadInput, context: ToolContext) -> ToolResult:
        arguments = _without_lines(arguments, context)
        location = relocate(arguments.path, Permission.READ, context)
        try:
            return await self._read(arguments, location, context)
        except (FileNotFoundError, NotADirectoryError):
            raise await asyncio.to_thread(missing, location, context) from None
        except OSError as error:
            raise explain(error, location.shown) from error

    def title(self, arguments: ReadInput) -> str:
        if arguments.offset <= 1 and arguments.limit is None:
            return arguments.path
        if arguments.limit is None:
            end = ""
        else:
            end = str(arguments.offset + arguments.limit - 1)
        return f"{arguments.path}:{arguments.offset}-{end}"

    async def _read(
        self, arguments: ReadInput, location: Location, context: ToolContext
    ) -> ToolResult:
        status = location.real.stat()
        if stat.S_ISDIR(status.st_mode):
            return await list_tree(location, context, depth=1)
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(f"{location.shown} is a device, pipe or socket, not a file.")
        sample = await asyncio.to_thread(_bytes_of, location.real, SAMPLE_BYTES)
        if (
            sample is None
        ):  # opened without blocking: of a file that the system makes up, whatever the type says
            raise ToolError(f"{location.shown} has nothing to be read now.")
        if picture_type(sample):
            return await _image(location, context)
        encoding = await asyncio.to_thread(encoding_of, location.real)
        if encoding is None or sample.startswith(_PDF):
            return _binary(location, status.st_size, sample)
        window = await _window(arguments, location, encoding, context)
        result = await finish(_text_output(self.title(arguments), location, window), context)
        known = short_answer(
            result.title, location.shown, result.output, context.in_view(location.pattern)
        )
        if known is None:
            return result
        known_parts = {"truncation": None, "known_from": known.source, "is_known": known.all_of_it}
        metadata = result.metadata.model_copy(update=known_parts)
        return replace(result, output=known.text, full_output=None, metadata=metadata)


async def _window(
    arguments: ReadInput, location: Location, encoding: Encoding, context: ToolContext
) -> Window:
    """Return the wanted lines: as the editor has them that the program runs in, else as they are on disk."""
    # Noted first: a change while the file is read then shows at the next edit.
    await asyncio.to_thread(context.reads.note, location.real)
    first = max(arguments.offset, 1)
    wanted = range(first, first + min(arguments.limit or STORED_LINES, STORED_LINES))
    line_chars = context.limits.line_chars - _NUMBER_CHARS
    if context.editor is None:
        unsaved = None
    else:
        unsaved = await context.editor.unsaved(location.real)
    if unsaved is None:
        window = await asyncio.to_thread(read_window, location.real, encoding, wanted, line_chars)
    else:
        window = window_of(unsaved, wanted, line_chars)
    return await asyncio.to_thread(without_secrets, window, location.real, line_chars)


def _bytes_of(path: Path, size: int = -1) -> bytes:
    with open_file(path) as file:
        return file.read(size)


def _text_output(title: str, location: Location, window: Window) -> Output:
    if not window.lines and window.first > 1:
        raise ToolError(
            f"offset {window.first} is past the end: {location.shown} has {window.total} lines."
        )
    if window.counted:
        total = str(window.total)
    else:
        total = f"more than {window.total}"

    def read_on(last: int) -> str:
        return READ_ON.format(first=window.first, last=last, total=total, next=last + 1)

    footer = secrets = (
        SECRETS_LEFT_OUT.format(lines=counted(window.hidden, "line")) if window.hidden else ""
    )
    if window.last < window.total or not window.counted:
        footer += read_on(window.last)
    elif window.first > 1:
        footer += READ_END.format(first=window.first, last=window.last, total=total)
    numbered = "\n".join(
        f"{number}\t{line}" for number, line in enumerate(window.lines, window.first)
    )
    return Output(
        text=numbered or "[The file is empty.]",
        title=title,
        footer=footer.rstrip("\n"),
        cut_hint=lambda cut: secrets + read_on(window.first + cut.kept_lines - 1),
        metadata=_metadata(location, count=len(window.lines)),
        seen=Truncation(
            total_lines=window.total, total_bytes=window.size, kept_lines=0, kept_bytes=0
        ),
    )


def _metadata(location: Location, *, count: int | None = None) -> ToolMetadata:
    return ToolMetadata(path=location.pattern, count=count, read_files=(location.pattern,))


# -- other than text ----------------------------------------------------------------------------------------


async def _image(location: Location, context: ToolContext) -> ToolResult:
    data = await asyncio.to_thread(_bytes_of, location.real, MAX_SOURCE_BYTES + 1)
    about, picture = await asyncio.to_thread(
        shown_picture, data, vision=context.vision, path=location.shown
    )
    shown = () if picture is None else (image_part(picture, context.put_blob, location.pattern),)
    return ToolResult(about, title=location.shown, attachments=shown, metadata=_metadata(location))


def _binary(location: Location, size: int, sample: bytes) -> ToolResult:
    mime = mimetypes.guess_type(location.real.name)[0] or "unknown type"
    how = "look at it with bash if needed"
    if sample.startswith(_PDF):
        how = "for its text try pdftotext FILE - in bash"
    text = f"[{location.shown}: binary file, {mime}, {size_text(size)}. Not shown; {how}.]"
    return ToolResult(text, title=location.shown, metadata=_metadata(location))
