"""The ``read`` tool: text by the line, directories, images."""

import asyncio
import codecs
import io
import mimetypes
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import Field, model_validator

from tui_agent.editing.diffs import diff_texts
from tui_agent.editing.text_files import SAMPLE_BYTES, Encoding, detect
from tui_agent.errors import ToolError
from tui_agent.files.inside import open_file
from tui_agent.files.secret_files import is_secret_file, shown_line
from tui_agent.lazy import LazyPattern, dataclass
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.session.entries import ImagePart, ToolMetadata, ToolResultEntry, Truncation
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.functions.signature import image_type
from tui_agent.tools.ls import list_tree
from tui_agent.tools.outputs import MAX_IMAGE_BYTES, READ_END, READ_ON, Output, counted, finish, image_size, size_text
from tui_agent.tools.paths import Location, explain, find, missing, path_needs, relocate

MIN_SAVED_CHARS = 600
"""Characters of an output below which saying that it is known saves nothing."""
MAX_DIFF_SHARE = 0.5
"""Share of the whole output a difference may take: a model reads the whole with less effort."""

_SPAN = LazyPattern(r"^\[Lines \d+-\d+ of ((?:more than )?\d+)[.,].*\]\s*\Z", re.MULTILINE)
"""The last line of a read that is not the whole file, with how long that is; as ``READ_ON`` and ``READ_END`` say it."""
_NUMBERED = LazyPattern(r"^(\d+)\t(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Known:
    """The answer in place of lines that the entry ``source`` has, all of them or those that did not change."""

    text: str
    source: int
    all_of_it: bool


def short_answer(title: str, shown: str, output: str, earlier: Iterable[ToolResultEntry]) -> Known | None:
    """Return the answer in place of a file's lines; None to show them.

    Args:
        title: the request, path and lines; the same read has the same one.
        shown: the file's name.
        output: the numbered lines that would be shown.
        earlier: the results of reads of this file that are in the model's view as they were, newest first.
    """
    if len(output) < MIN_SAVED_CHARS:
        return None
    lines = _lines(output)
    for result in earlier:
        same_read = result.title == title
        if result.metadata.known_from is not None:
            if same_read:
                break  # The model had this answer already, and asks again.
            continue
        known = _lines(result.output)
        # A file that grew or shrank has changed, though the lines that are still there have not.
        if lines and lines.items() <= known.items() and _length(output, lines) == _length(result.output, known):
            span = f"lines {min(lines)}-{max(lines)} of {shown}"
            note = f"[Unchanged: {span} are as in the read of #{result.id}, which you still see.]"
            return Known(note, result.id, all_of_it=True)
        whole = _is_whole(output, lines) and _is_whole(result.output, known)
        if same_read and whole and (changed := _difference(shown, known, lines, len(output), result.id)):
            return Known(changed, result.id, all_of_it=False)
        if lines.keys() <= known.keys():
            break  # Its version of these lines is outdated, and so are earlier reads.
    return None


def _lines(output: str) -> dict[int, str]:
    return {int(found[1]): found[2] for found in _NUMBERED.finditer(output)}


def _length(output: str, lines: dict[int, str]) -> str:
    """Return how many lines the file has: a read of a part says so, otherwise it is those that are shown."""
    found = _SPAN.search(output)
    return str(max(lines, default=0)) if found is None else found[1]


def _is_whole(output: str, lines: dict[int, str]) -> bool:
    return bool(lines) and min(lines) == 1 and _length(output, lines) == str(max(lines))


def _difference(shown: str, known: dict[int, str], lines: dict[int, str], whole: int, entry_id: int) -> str | None:
    """Return the changes since a read of the whole file, None where they are too many."""
    before, after = ("".join(f"{text}\n" for text in held.values()) for held in (known, lines))
    diff = diff_texts(shown, before, after).text
    if not diff or len(diff) > whole * MAX_DIFF_SHARE:
        return None
    return (
        f"[Changed since the read of #{entry_id}, which you can still see. This is the difference; make the same call "
        f"again to have all of it.]\n{diff}"
    )


SECRETS_LEFT_OUT = "[Secrets are shown as [redacted] in {lines}. An edit must leave those parts as they are.]\n"
STORED_LINES, STORED_BYTES = 20_000, 1_000_000
"""Limits of one read of a file: the part not shown to the model is stored, for ``recall``."""

MAX_COUNTED_BYTES = 512 * 1024 * 1024
"""Bytes after the shown lines in which lines are still counted."""

_MAX_WIDE_BYTES = 64 * 1024 * 1024
_CHUNK = 1024 * 1024
_CUT_NOTE = 30
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
    return int(text) if re.fullmatch(r"-?\d{1,12}", text) else None


def _without_lines(arguments: ReadInput, context: ToolContext) -> ReadInput:
    """Return the arguments for ``path:12`` or ``path:12-20``, as searches and compilers name a place."""
    found = _PLACE.fullmatch(arguments.path.strip())
    if found is None or os.path.lexists(context.cwd / arguments.path) or not os.path.lexists(context.cwd / found[1]):
        return arguments
    update: dict[str, Any] = {"path": found[1]}
    if "offset" not in arguments.model_fields_set:
        first = max(int(found[2]), 1)
        update |= {"offset": first} | ({"limit": max(int(found[3]) - first + 1, 1)} if found[3] else {})
    return arguments.model_copy(update=update)


@dataclass(frozen=True, slots=True)
class _Window:
    """Some lines of a file. ``total`` counts all of its lines, or those seen if ``counted`` is off."""

    lines: list[str]
    first: int
    total: int
    counted: bool
    size: int
    hidden: int = 0
    """Lines in which secrets are left out."""

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


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
        end = "" if arguments.limit is None else str(arguments.offset + arguments.limit - 1)
        return f"{arguments.path}:{arguments.offset}-{end}"

    async def _read(self, arguments: ReadInput, location: Location, context: ToolContext) -> ToolResult:
        status = location.real.stat()
        if stat.S_ISDIR(status.st_mode):
            return await list_tree(location, context, depth=1)
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(f"{location.shown} is a device, pipe or socket, not a file.")
        sample = await asyncio.to_thread(_bytes_of, location.real, SAMPLE_BYTES)
        if sample is None:  # opened without blocking: of a file that the system makes up, whatever the type says
            raise ToolError(f"{location.shown} has nothing to be read now.")
        mime = image_type(sample)
        if mime:
            return await _image(location, mime, status.st_size, context)
        encoding = detect(sample, whole=status.st_size <= SAMPLE_BYTES)
        if encoding is None or sample.startswith(_PDF):
            return _binary(location, status.st_size, sample)
        # Noted first: a change while the file is read then shows at the next edit.
        await asyncio.to_thread(context.reads.note, location.real)
        first, lines = max(arguments.offset, 1), min(arguments.limit or STORED_LINES, STORED_LINES)
        wanted = range(first, first + lines)
        line_chars = context.limits.line_chars - _NUMBER_CHARS
        unsaved = None if context.editor is None else await context.editor.unsaved(location.real)
        if unsaved is None:
            window = await asyncio.to_thread(_window, location.real, encoding, wanted, line_chars)
        else:
            data = unsaved.encode("utf-8", "replace")
            window = _cut_out(io.BytesIO(data), "utf-8", wanted, line_chars, len(data))
        window = await asyncio.to_thread(_without_secrets, window, location.real, line_chars)
        result = await finish(_text_output(self.title(arguments), location, window), context)
        known = short_answer(result.title, location.shown, result.output, context.in_view(location.pattern))
        if known is None:
            return result
        known_parts = {"truncation": None, "known_from": known.source, "is_known": known.all_of_it}
        metadata = result.metadata.model_copy(update=known_parts)
        return replace(result, output=known.text, full_output=None, metadata=metadata)


def _bytes_of(path: Path, size: int = -1) -> bytes:
    with open_file(path) as file:
        return file.read(size)


def _text_output(title: str, location: Location, window: _Window) -> Output:
    if not window.lines and window.first > 1:
        raise ToolError(f"offset {window.first} is past the end: {location.shown} has {window.total} lines.")
    total = str(window.total) if window.counted else f"more than {window.total}"

    def read_on(last: int) -> str:
        return READ_ON.format(first=window.first, last=last, total=total, next=last + 1)

    footer = secrets = SECRETS_LEFT_OUT.format(lines=counted(window.hidden, "line")) if window.hidden else ""
    if window.last < window.total or not window.counted:
        footer += read_on(window.last)
    elif window.first > 1:
        footer += READ_END.format(first=window.first, last=window.last, total=total)
    numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(window.lines, window.first))
    return Output(
        text=numbered or "[The file is empty.]",
        title=title,
        footer=footer.rstrip("\n"),
        cut_hint=lambda cut: secrets + read_on(window.first + cut.kept_lines - 1),
        metadata=_metadata(location, count=len(window.lines)),
        seen=Truncation(total_lines=window.total, total_bytes=window.size, kept_lines=0, kept_bytes=0),
    )


def _metadata(location: Location, *, count: int | None = None) -> ToolMetadata:
    return ToolMetadata(path=location.pattern, count=count, read_files=(location.pattern,))


# -- text ---------------------------------------------------------------------------------------------------


def _window(path: Path, encoding: Encoding, wanted: range, line_chars: int) -> _Window:
    """Read the wanted lines without holding more of the file than them; count the others."""
    size = path.stat().st_size
    if encoding.name in {"utf-8", "latin-1"}:
        with open_file(path) as file:
            file.seek(len(encoding.bom))
            return _cut_out(file, encoding.name, wanted, line_chars, size)
    if size > _MAX_WIDE_BYTES:
        raise ToolError(f"This {encoding.name} file is too large; convert it with bash (iconv) first.")
    text = _bytes_of(path)[len(encoding.bom) :].decode(encoding.name, "replace")
    return _cut_out(io.BytesIO(text.encode("utf-8", "replace")), "utf-8", wanted, line_chars, size)


def _cut_out(file: BinaryIO, encoding: str, wanted: range, line_chars: int, size: int) -> _Window:
    skipped = _skip(file, wanted.start - 1)
    lines: list[str] = []
    room = STORED_BYTES
    if skipped == wanted.start - 1:
        while len(lines) < len(wanted) and room >= 0:
            line = _line(file, encoding, line_chars)
            if line is None:
                break
            lines.append(line)
            room -= len(line)
    rest, counted = _count(file)
    return _Window(lines, wanted.start, skipped + len(lines) + rest, counted, size)


def _without_secrets(window: _Window, path: Path, line_chars: int) -> _Window:
    """Return a window as it may be shown. A file that is a secret as a whole was asked about before."""
    if is_secret_file(path):
        return window
    lines = [shown_line(path, number, line)[:line_chars] for number, line in enumerate(window.lines, window.first)]
    hidden = sum(line != before for line, before in zip(lines, window.lines, strict=True))
    return replace(window, lines=lines, hidden=hidden)


def _skip(file: BinaryIO, lines: int) -> int:
    """Move to the start of a line; return the lines passed, fewer when the file ends before."""
    passed = 0
    while passed < lines:
        start = file.tell()
        chunk = file.read(_CHUNK)
        if not chunk:
            break
        found = chunk.count(b"\n")
        if passed + found < lines:
            passed += found
            if not chunk.endswith(b"\n") and len(chunk) < _CHUNK:
                passed += 1
            continue
        position = -1
        for _ in range(lines - passed):
            position = chunk.index(b"\n", position + 1)
        file.seek(start + position + 1)
        passed = lines
    return passed


def _line(file: BinaryIO, encoding: str, chars: int) -> str | None:
    """Return the next line, cut to so many characters; None at the end."""
    piece = file.readline(chars * 4)
    if not piece:
        return None
    size, more = len(piece), piece
    while more and not more.endswith(b"\n"):
        more = file.readline(_CHUNK)
        size += len(more)
    try:
        # Not final: a piece of a long line may end in the middle of a character.
        text = codecs.getincrementaldecoder(encoding)().decode(piece, final=piece.endswith(b"\n"))
    except UnicodeDecodeError:
        text = piece.decode("latin-1")
    text = text.rstrip("\r\n").replace("\0", "␀")
    if len(text) <= chars and size == len(piece):
        return text
    shown = text[: chars - _CUT_NOTE]
    left = size - more.endswith(b"\n") - len(shown.encode(encoding, "replace"))
    return f"{shown} [+{left:,} bytes]"


def _count(file: BinaryIO) -> tuple[int, bool]:
    """Return the number of lines to the end, and whether the end was reached."""
    lines = seen = 0
    last = b"\n"
    while chunk := file.read(_CHUNK):
        lines += chunk.count(b"\n")
        last = chunk[-1:]
        seen += len(chunk)
        if seen > MAX_COUNTED_BYTES:
            return lines, False
    return lines + (last != b"\n"), True


# -- other than text ----------------------------------------------------------------------------------------


async def _image(location: Location, mime: str, size: int, context: ToolContext) -> ToolResult:
    width, height = await asyncio.to_thread(image_size, location.real)
    about = f"{location.shown}: {mime}, {width}x{height} pixels, {size_text(size)}"
    note = "" if context.vision else "This model takes no images."
    if not note and size > MAX_IMAGE_BYTES:
        note = f"Too large to be shown (limit {size_text(MAX_IMAGE_BYTES)}); make a smaller copy with bash."
    if note:
        return ToolResult(f"[{about}. {note}]", title=location.shown, metadata=_metadata(location))
    blob = context.put_blob(await asyncio.to_thread(_bytes_of, location.real))
    part = ImagePart(blob=blob, mime=mime, width=width, height=height, path=location.pattern)
    return ToolResult(f"[{about}]", title=location.shown, attachments=(part,), metadata=_metadata(location))


def _binary(location: Location, size: int, sample: bytes) -> ToolResult:
    mime = mimetypes.guess_type(location.real.name)[0] or "unknown type"
    how = "for its text try pdftotext FILE - in bash" if sample.startswith(_PDF) else "look at it with bash if needed"
    text = f"[{location.shown}: binary file, {mime}, {size_text(size)}. Not shown; {how}.]"
    return ToolResult(text, title=location.shown, metadata=_metadata(location))
