"""The ``read`` tool: shows text files, directories, images, notebooks, documents and archives."""

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
from tui_agent.files.secret_files import is_secret_file, shown_text
from tui_agent.lazy import LazyPattern
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.pictures import MAX_SOURCE_BYTES, picture_type
from tui_agent.processes.converters import document_text
from tui_agent.session.entries import ImagePart, ToolMetadata, Truncation
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.text_files.document_kinds import TRUNCATED, kind_of, pdf_of
from tui_agent.text_files.encodings import SAMPLE_BYTES, Encoding
from tui_agent.text_files.notebook import opened
from tui_agent.text_files.reading import (
    Window,
    encoding_of,
    load,
    read_window,
    window_of,
    without_secrets,
)
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.changes import MAX_CHANGED_BYTES
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
MAX_DOCUMENT_BYTES = 100_000_000
"""Maximum size, in bytes, of a document that is converted to text."""
DOCUMENT_LINES = 2_000
"""Maximum number of lines that a read of a document returns if the call gives no limit."""
STORED_LINES = 20_000
"""Maximum number of lines that one call reads. Those lines that are not shown to the model are
stored for the ``recall`` tool."""

_NUMBER_CHARS = 12
"""How many of the maximum characters of a line are reserved for the line's number."""
_PLACE = LazyPattern(r"(.+?):(\d{1,9})(?:-(\d{1,9})|:\d+)?:?")


class ReadInput(ToolInput):
    """Arguments of the ``read`` tool."""

    path: str
    offset: int = Field(default=1, ge=0)
    """Number of the first line to return, counted from 1; 0 means 1."""
    limit: int | None = Field(default=None, ge=1)
    """Maximum number of lines to return; None for as many as fit in the output."""

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
    """Return the arguments of a call with a path such as ``path:12`` or ``path:12-20`` split.

    The lines become offset and limit unless the call gives an offset. The path is not split if it
    exists as written, or if the path without the line numbers doesn't exist.
    """
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
    """Shows the model a file's numbered lines, an image, or the names in a directory."""

    name = "read"
    description = (
        "Read a text file (as number, tab, line), image, PDF, notebook, Office file, "
        "archive or directory."
    )
    Input = ReadInput
    traits = ToolTraits(
        basic=True,
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
            return await list_tree(location, context)
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(f"{location.shown} is a device, pipe or socket, not a file.")
        sample = await asyncio.to_thread(_bytes_of, location.real, SAMPLE_BYTES)
        if sample is None:  # A generated file may have no data yet.
            raise ToolError(f"{location.shown} has no data to read at the moment.")
        if picture_type(sample):
            return await _image(location, context)
        document = kind_of(location.real.name, sample)
        if document:
            window, part = await _document(document, arguments, location, context)
            shown = _text_output(self.title(arguments), location, window)
            return replace(await finish(shown, context), attachments=part)
        encoding = await asyncio.to_thread(encoding_of, location.real)
        if encoding is None:
            return _binary(location, status.st_size)
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
    """Return the requested lines of a text file, with secrets redacted.

    If the program runs in an editor, the lines come from the file's unsaved text there, otherwise
    from the file on disk. A notebook's lines come from its cells on disk. The file's state is
    recorded, so that an edit notices later changes.
    """
    # The file's state is recorded before the read, so that a change during the read is noticed at
    # the next edit.
    await asyncio.to_thread(context.reads.note, location.real)
    first = max(arguments.offset, 1)
    wanted = range(first, first + min(arguments.limit or STORED_LINES, STORED_LINES))
    line_chars = context.limits.line_chars - _NUMBER_CHARS
    if context.editor is None:
        unsaved = None
    else:
        unsaved = await context.editor.unsaved(location.real)
    if location.real.suffix.lower() == ".ipynb":
        window = await asyncio.to_thread(_cells, location, wanted, line_chars)
        if window is not None:
            return window
    if unsaved is None:
        window = await asyncio.to_thread(read_window, location.real, encoding, wanted, line_chars)
    else:
        window = window_of(unsaved, wanted, line_chars)
    return await asyncio.to_thread(without_secrets, window, location.real, line_chars)


def _cells(location: Location, wanted: range, line_chars: int) -> Window | None:
    """Return the requested lines of a notebook's cells as text, with secrets redacted.

    Returns None if the file can't be loaded or isn't a valid notebook. The caller then shows the
    file as JSON.
    """
    try:
        file = load(location.real, location.shown, max_bytes=MAX_CHANGED_BYTES)
    except ToolError:
        return None
    notebook = opened(location.real.name, file.text)
    if notebook is None:
        return None
    return _shown_window(notebook.text, location.real, wanted, line_chars)


async def _document(
    kind: str, arguments: ReadInput, location: Location, context: ToolContext
) -> tuple[Window, tuple[ImagePart, ...]]:
    """Return the requested lines of a document's text, and the document itself if it is attached.

    The document is attached if it is a PDF, the model accepts PDFs, the call asks for the whole
    document, and nothing in its text is redacted.

    Raises:
        ToolError: the document is too large or can't be converted to text.
    """
    if location.real.stat().st_size > MAX_DOCUMENT_BYTES:
        most = size_text(MAX_DOCUMENT_BYTES)
        raise ToolError(f"{location.shown} is larger than {most}; look at it with bash.")
    first = max(arguments.offset, 1)
    wanted = range(first, first + min(arguments.limit or DOCUMENT_LINES, STORED_LINES))
    data = await asyncio.to_thread(_bytes_of, location.real)
    text = await document_text(kind, data, wanted.stop, context.environment)
    if text is None:
        raise ToolError(f"{location.shown} could not be converted to text; look at it with bash.")
    text = text or "[The document has no text.]\n"
    line_chars = context.limits.line_chars - _NUMBER_CHARS
    window = await asyncio.to_thread(_shown_window, text, location.real, wanted, line_chars)
    window = replace(window, counted=not text.endswith(f"{TRUNCATED}\n"))
    is_whole = first == 1 and arguments.limit is None and window.counted and not window.hidden
    picture = pdf_of(data, text, context.document_pages) if is_whole else None
    if picture is None:
        return window, ()
    return window, (image_part(picture, context.put_blob, location.pattern),)


def _shown_window(text: str, path: Path, wanted: range, line_chars: int) -> Window:
    """Return the requested lines of the text that a file was converted to, with secrets redacted.

    If the whole file is a secret, nothing is redacted, because the user has allowed reading it.
    """
    before = window_of(text, wanted, line_chars)
    if is_secret_file(path):
        return before
    window = window_of(shown_text(path, text), wanted, line_chars)
    hidden = sum(line not in before.lines for line in window.lines)
    return replace(window, hidden=hidden)


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


# -- other than text -------------------------------------------------------------------------------


async def _image(location: Location, context: ToolContext) -> ToolResult:
    data = await asyncio.to_thread(_bytes_of, location.real, MAX_SOURCE_BYTES + 1)
    about, picture = await asyncio.to_thread(
        shown_picture, data, vision=context.vision, path=location.shown
    )
    shown = () if picture is None else (image_part(picture, context.put_blob, location.pattern),)
    return ToolResult(about, title=location.shown, attachments=shown, metadata=_metadata(location))


def _binary(location: Location, size: int) -> ToolResult:
    mime = mimetypes.guess_type(location.real.name)[0] or "unknown type"
    text = (
        f"[{location.shown}: binary file, {mime}, {size_text(size)}. "
        "Not shown; look at it with bash if needed.]"
    )
    return ToolResult(text, title=location.shown, metadata=_metadata(location))
