"""Loads what messages name: files, directories, pictures, PDFs, entries (``#12``), sessions.

Also loads the files to send again after a compaction (`files_back`). Returns parts of messages and
stores the bytes of pictures and PDFs; nothing is appended. ``mentions`` finds the names in a text.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from tui_agent.agent.archive import entry_text
from tui_agent.agent.mentions import (
    IMAGE_SUFFIXES,
    FileMention,
    entry_mentions,
    file_mentions,
    has_mention,
    is_pathlike,
    unescaped,
)
from tui_agent.agent.other_sessions import attached_part, names_session
from tui_agent.context.budget import ContextSize
from tui_agent.context.recalling import fits, names_in_use, outline
from tui_agent.context.settings import ContextSettings
from tui_agent.context.tokens import TokenCounter
from tui_agent.context.truncation import OutputLimits
from tui_agent.context.view import ContextView
from tui_agent.files.ignore import IgnoreRules, rows
from tui_agent.files.secret_files import shown_text
from tui_agent.lazy import frozen
from tui_agent.path_checks import at_home, is_directory, is_file, is_inside, is_there, real_path
from tui_agent.pictures import (
    MAX_PDF_BYTES,
    MAX_PDF_PAGES,
    MAX_SOURCE_BYTES,
    Picture,
    picture_type,
    read_picture,
)
from tui_agent.processes.converters import document_text
from tui_agent.safe_text import valid
from tui_agent.session.entries import (
    Entry,
    FilePart,
    TextPart,
    ToolResultEntry,
    ToolStatus,
    UserPart,
)
from tui_agent.session.errors import EntryDamaged, EntryNotFound
from tui_agent.session.session import Session
from tui_agent.text_files.document_kinds import kind_of, pdf_of
from tui_agent.text_files.encodings import SAMPLE_BYTES
from tui_agent.text_files.lines import numbered
from tui_agent.text_files.names import AlikeError, as_on_disk
from tui_agent.text_files.notebook import opened
from tui_agent.text_files.reading import encoding_of, read_start, read_window, without_secrets
from tui_agent.tools.outputs import image_part
from tui_agent.tools.registry import tool_traits

LoadNamed = Callable[[str], Awaitable[tuple[UserPart, ...]]]
"""Returns the message parts for the name of a subagent or MCP resource; empty if unknown."""
FILE_BYTES = 50 * 1024
"""Maximum number of bytes of a file's text that are attached to a message."""
MAX_NAMES = 300
"""Maximum number of names in the listing of a directory that is attached to a message."""

_MOST_FILES = 5
"""Maximum number of files that are sent again after a compaction."""
PDF_SECONDS = 10
"""Maximum number of seconds for extracting the text of an attached PDF.

If it takes longer, only a note is attached, and the model has to read the PDF with a tool.
"""
_PDF_LINES = 20_000
"""Maximum number of lines extracted from an attached PDF."""

_LARGEST = 1_000_000
"""Largest file, in bytes, that is sent again after a compaction."""

LOOKED_AT = 400
"""Number of newest entries that are searched for files to send again after a compaction."""

_DOCUMENT = "a document, which the model can read with a tool"
_NO_FILE = "there is no such file"
_LEADS_OUT = "the command came with the project and names files outside it"
_LEAST_ROOM = 500
"""Number of tokens that must still be free for another file to be sent after a compaction."""


@frozen
class Prepared:
    """A message ready to be submitted.

    ``model`` and ``mode`` are those to switch to before it is sent; None for no change. ``problem``
    is a text for the user about names that could not be attached; the message is sent anyway.
    """

    parts: tuple[UserPart, ...]
    problem: str | None = None
    model: str | None = None
    mode: str | None = None


@frozen
class Naming:
    """A text that is searched for file names, and the files that it may name.

    If ``project`` is set, the text came with that project (a command's template) and may name only
    the project's files and those that the user named in ``typed``. If it is None, the user wrote
    the text, which may name any file.
    """

    text: str
    project: Path | None = None
    typed: str = ""


@frozen
class _Image:
    """An image that was read, but is not stored yet."""

    path: str
    picture: Picture


@frozen
class _Document:
    """A PDF that was read. How it is sent to the model is decided later."""

    path: str
    data: bytes


async def load_message(
    text: str,
    cwd: Path,
    session: Session,
    put_blob: Callable[[bytes], str],
    *,
    naming: Naming | None = None,
    named: LoadNamed | None = None,
) -> Prepared:
    """Return a message's parts: its text, then the files, entries and sessions named in it.

    ``naming`` is the text to search for names, by default the message. Paths are relative to
    ``cwd``. ``named`` returns the parts for other names, such as subagents. These parts take
    precedence over a file of that name, unless the name contains a slash. For a name that can't be
    attached, a note takes the file's place, and ``problem`` reports it. Names in code are left as
    text, and so are words that don't look like paths and name no file. Files are read in a thread.
    """
    naming = naming or Naming(text)
    source = naming.text
    project = naming.project
    if not has_mention(source):
        return Prepared((TextPart(text=text),))
    mentions = file_mentions(source)
    typed = {mention.written for mention in mentions}
    outside: list[str] = []
    if project is not None:
        typed = {mention.written for mention in file_mentions(naming.typed)}
        given = mentions
        mentions = [one for one in given if one.written in typed or _is_of(project, one, cwd)]
        outside = [one.written for one in given if one not in mentions]
    found = await asyncio.to_thread(lambda: [_read(mention, cwd) for mention in mentions])
    missing: dict[str, list[str]] = {}
    files: list[UserPart] = []
    for mention, part in zip(mentions, found, strict=True):
        is_path = part is not None and "/" in mention.written
        known = () if named is None or is_path else await named(mention.written)
        if known:
            files += known
        elif part is not None:
            stored = await _stored(part, put_blob)
            files.append(stored)
            problem = stored.problem if isinstance(stored, FilePart) else ""
            if problem not in {"", _DOCUMENT} and not mention.in_code:
                missing.setdefault(f"it is {problem}", []).append(mention.written)
        elif names_session(mention.written) and mention.written in typed:
            brought_over = await asyncio.to_thread(attached_part, mention.written, session)
            if isinstance(brought_over, FilePart):
                files.append(brought_over)
            else:
                missing.setdefault(brought_over, []).append(mention.written)
                files.append(_not_attached(mention, brought_over))
        elif not mention.in_code:
            reason = await asyncio.to_thread(_why_missing, mention.written, cwd)
            if reason != _NO_FILE or is_pathlike(mention):
                missing.setdefault(reason, []).append(mention.written)
                files.append(_not_attached(mention, reason))
    if outside:
        missing[_LEADS_OUT] = outside
    files += _entries(source, session)
    problems = [f"Not attached, {why}: {', '.join(names)}." for why, names in missing.items()]
    return Prepared((TextPart(text=text), *files), " ".join(problems) or None)


def _not_attached(mention: FileMention, reason: str) -> FilePart:
    problem = reason.rstrip(".")
    return FilePart(path=mention.written, text=f"[not attached: {problem}]", problem=problem)


def _entries(text: str, session: Session) -> Iterator[FilePart]:
    """Yield a note for the model on each session entry that a text names by its number."""
    for number in entry_mentions(text):
        note = _entry(number, session)
        if note is not None:
            yield note


def _is_of(project: Path, mention: FileMention, cwd: Path) -> bool:
    """Return True if a mention is a path in the project, both with and without line numbers."""
    whole = _path(mention.written, cwd)
    return is_inside(project, whole) and is_inside(project, _path(mention.path, cwd))


def _entry(number: int, session: Session) -> FilePart | None:
    """Return a note for the model with the number and the first line of a session entry.

    None if there is no such entry, or if it is damaged or has no text.
    """
    try:
        entry = session.entry(number)
    except (EntryNotFound, EntryDamaged):
        return None
    # The user can't mean an entry without text, so the number stands for something else.
    if entry_text(entry) is None:
        return None
    line = entry.preview or entry.kind
    return FilePart(
        path=f"#{number}",
        text=f'entry #{number}, {entry.kind}: {line} — recall("#{number}") shows all',
    )


def _read(mention: FileMention, cwd: Path) -> FilePart | _Image | _Document | None:
    try:
        whole = _path(mention.written, cwd)
        if is_file(whole):
            return _file(mention.written, whole)
        if is_directory(whole):
            return _directory(mention.written, whole)
        part = _path(mention.path, cwd)
        if mention.first is not None and mention.last is not None and is_file(part):
            return FilePart(path=mention.path, text=_lines(part, mention.first, mention.last))
    except (OSError, RuntimeError, ValueError):
        return None
    return None


def _path(name: str, cwd: Path) -> Path:
    """Return the path that a mention names, spelled as on disk.

    A name that could be several files is returned as written.
    """
    path = cwd / at_home(name)
    with_breaks = cwd / at_home(unescaped(name))
    if with_breaks != path and is_there(with_breaks) and not is_there(path):
        return with_breaks
    try:
        return as_on_disk(path)
    except AlikeError:
        return path


def _why_missing(name: str, cwd: Path) -> str:
    try:
        exists = is_there(as_on_disk(cwd / at_home(name)))
    except AlikeError as error:
        return str(error)
    return "it can't be read" if exists else _NO_FILE


def note_on_file(name: str, path: Path) -> str:
    """Return how a file that is named like a picture, but can't be sent as one, is attached.

    ``name`` is its name in the message. Reads the file, so call it in a thread. Raises OSError.
    """
    match _file(name, path):
        case FilePart(problem=problem) if problem:
            return f"not sent: {problem}"
        case _Document():
            return "no image: sent as a PDF"
        case _:
            return "no image: sent as text"


def _file(name: str, path: Path) -> FilePart | _Image | _Document:
    size = path.stat().st_size
    problem = ""
    with path.open("rb") as file:
        head = file.read(SAMPLE_BYTES)
        is_picture = bool(picture_type(head))
        if is_picture or path.suffix.lower() in IMAGE_SUFFIXES:
            file.seek(0)
            picture = read_picture(file.read(MAX_SOURCE_BYTES + 1))
            if isinstance(picture, Picture):
                return _Image(name, picture)
            problem = picture.reason
    kind = kind_of(path.name, head)
    if kind == "pdf" and size <= MAX_PDF_BYTES:
        return _Document(name, path.read_bytes())
    if kind:
        return _to_be_read(name, size)
    start = read_start(real_path(path), FILE_BYTES)
    # A text may be named like a picture.
    if problem and (is_picture or start is None or not start.text):
        return FilePart(path=name, text=f"[not shown: it is {problem}]", problem=problem)
    if start is None:
        what = f"binary file of {size} bytes"
        return FilePart(path=name, text=f"[{what}]", problem=f"a {what}")
    notebook = opened(path.name, start.text)
    text = shown_text(path, start.text if notebook is None else notebook.text)
    if start.size > start.bytes_read:
        text = f"{text}\n[{start.size - start.bytes_read} more bytes; use read for the rest]"
    return FilePart(path=name, text=text)


def _lines(path: Path, first: int, last: int) -> str:
    real = real_path(path)
    encoding = encoding_of(real)
    if encoding is None:
        return "[binary file]"
    window = without_secrets(
        read_window(real, encoding, range(first, last + 1), FILE_BYTES), real, FILE_BYTES
    )
    shown: list[str] = []
    size = 0
    for number, line in enumerate(window.lines, first):
        size += len(line)
        if size > FILE_BYTES:
            shown.append(f"[cut at line {number}; use read for the rest]")
            break
        shown.append(f"{number}\t{line.rstrip()}")
    return "\n".join(shown) or f"[the file has no line {first}]"


def _directory(name: str, path: Path) -> FilePart:
    real = Path(os.path.realpath(path))
    found = [row for row in rows(real, IgnoreRules.above(real).entering(real)) if not row.ignored]
    names = [f"{row.name}/" if row.directory else row.name for row in found[:MAX_NAMES]]
    if len(found) > MAX_NAMES:
        names.append(f"[{len(found) - MAX_NAMES} more; use ls for the rest]")
    # The slash at the end of the path says that this is a listing, not a file that was read.
    return FilePart(
        path=f"{name.rstrip('/')}/", text=valid("\n".join(names)) or "[empty directory]"
    )


async def _stored(
    part: FilePart | _Image | _Document, put_blob: Callable[[bytes], str]
) -> UserPart:
    if isinstance(part, FilePart):
        return part
    if isinstance(part, _Image):
        return image_part(part.picture, put_blob, part.path)
    picture = await read_pdf(part.data, Path(part.path))
    if picture is None:
        return _to_be_read(part.path, len(part.data))
    return image_part(picture, put_blob, part.path)


async def read_pdf(data: bytes, path: Path) -> Picture | None:
    """Return a PDF as a `Picture`, so that it is sent to the model unchanged.

    None if its text can't be read in time or contains secrets, or if it has too many pages.
    """
    try:
        async with asyncio.timeout(PDF_SECONDS):
            text = await document_text("pdf", data, _PDF_LINES, {})
    except OSError:  # includes TimeoutError
        return None
    if text is None or shown_text(path, text) != text:
        return None
    return pdf_of(data, text, MAX_PDF_PAGES)


def _to_be_read(name: str, size: int) -> FilePart:
    return FilePart(
        path=name,
        text=f"[document of {size} bytes; use read for its text]",
        problem=_DOCUMENT,
    )


def room_for_files(size: ContextSize, settings: ContextSettings) -> int:
    """Return how many tokens of files may be sent again after a compaction; 0 in small windows."""
    compaction = settings.compaction
    if size.budget < compaction.files_budget:
        return 0
    free = round(size.budget * compaction.target_of_budget) - size.history
    return max(0, min(free, round(size.budget * compaction.files_share)))


def files_back(
    recent: Sequence[Entry], view: ContextView, project: Path, room: int, counter: TokenCounter
) -> tuple[FilePart, ...]:
    """Return the files to send again after a compaction: those read or edited last, newest first.

    ``recent`` are the path's last ``LOOKED_AT`` entries, including those before the compaction.
    Together, the files take at most ``room`` tokens; a file that doesn't fit is reduced to the
    lines with names that the conversation uses. Files that were only read, and that the model still
    sees whole, are left out. Reads the disk.
    """
    names = names_in_use(view, tool_traits())
    parts: list[FilePart] = []
    for name in _touched(recent, view):
        if room < _LEAST_ROOM or len(parts) == _MOST_FILES:
            break
        part = _part(name, project, names, room)
        if part is not None and (tokens := counter.text(part.text)) <= room:
            parts.append(part)
            room -= tokens
    return tuple(parts)


def _touched(recent: Sequence[Entry], view: ContextView) -> Iterator[str]:
    """Yield the names of files that were read or edited, newest first, without duplicates.

    Files that were only read are left out if the model still sees them whole.
    """
    in_view = {entry.id for entry in view.entries if view.is_open(entry.id)}
    seen: set[str] = set()
    for entry in reversed(recent):
        if not isinstance(entry, ToolResultEntry) or entry.status is not ToolStatus.COMPLETED:
            continue
        about = entry.metadata
        whole = entry.id in in_view and about.truncation is None and about.known_from is None
        for name in dict.fromkeys((*about.modified_files, *about.read_files)):
            if name not in seen:
                seen.add(name)
                if name in about.modified_files or not whole:
                    yield name


def _part(name: str, project: Path, names: dict[str, float], room: int) -> FilePart | None:
    """Return a project file with numbered lines, shortened to about ``room`` tokens.

    None if the file is outside the project, too large, empty or not text.
    """
    path = project / name
    try:
        if not is_inside(project, path) or not is_file(path) or path.stat().st_size > _LARGEST:
            return None
        start = read_start(real_path(path), _LARGEST)
    except OSError:
        return None
    if start is None or not start.text.strip() or "\0" in start.text:
        return None
    lines = numbered(shown_text(path, start.text))
    limits = OutputLimits(tokens=room * 3 // 4)
    if fits(lines, limits):
        return FilePart(path=name, text="\n".join(lines))
    shown: list[str] = []
    for at, text in outline(lines, names, limits):
        number = f"{at + 1}\t"
        shown.append(text if text.startswith(number) else f"{number}{text}")
    shown.append(f"[{len(shown)} of {len(lines)} lines, some (…) cut to names]")
    return FilePart(path=name, text="\n".join(shown))
