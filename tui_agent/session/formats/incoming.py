"""Defines a session that is being imported, and base classes that build it from records."""

import base64
import binascii
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, overload

from tui_agent.json_text import as_text, loads
from tui_agent.lazy import dataclass
from tui_agent.pictures import picture_type
from tui_agent.session.entries import (
    AssistantEntry,
    AssistantPart,
    CompactionEntry,
    Entry,
    EntryAdapter,
    ImagePart,
    ModelChangeEntry,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    Usage,
    joined_text,
)
from tui_agent.session.formats.reading import (
    MAX_ENTRIES,
    ImportRefused,
    NoConversation,
    Node,
    SourceFile,
)
from tui_agent.session.ids import timed_uuid
from tui_agent.session.records import LeafMove
from tui_agent.session.rows import sound

_READING = frozenset({"read"})
_CHANGING = frozenset({"write", "edit", "multiedit", "patch", "notebookedit"})
_PATH_KEYS = ("path", "file_path", "filePath", "notebook_path")
_TITLE_KEYS = (*_PATH_KEYS, "command", "cmd", "pattern", "query", "url", "description")
_CALL_TITLE_CHARS = 200
_NEWEST = 64
"""How many of the newest entries are kept as objects, because readers may still change them."""

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""MIME types of images that models accept and browsers show."""

_SESSION_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TITLE_CHARS = 500


def _facts_of(call: ToolCallPart) -> dict[str, Any]:
    """Return the tool, the title and the files of a call as fields of the entry for its result."""
    try:
        arguments = loads(call.arguments)
    except ValueError:
        arguments = {}
    if not isinstance(arguments, dict):
        return {"tool": call.tool}
    path = _first_text(arguments, _PATH_KEYS) or None
    tool = call.tool.lower()
    touched = (path,) if path else ()
    metadata = ToolMetadata(
        path=path,
        read_files=touched if tool in _READING else (),
        modified_files=touched if tool in _CHANGING else (),
    )
    title = " ".join(_first_text(arguments, _TITLE_KEYS).split())[:_CALL_TITLE_CHARS]
    return {"tool": call.tool, "title": title, "metadata": metadata}


def _first_text(arguments: dict[str, Any], keys: Sequence[str]) -> str:
    for key in keys:
        text = as_text(arguments.get(key))
        if text.strip():
            return text
    return ""


def summary_of(
    text: str,
    at: int = 0,
    *,
    before: float = 0,
    after: float = 0,
    by_itself: bool = False,
    **more: Any,
) -> CompactionEntry:
    """Return a compaction entry with a summary; ``more`` are further fields of the entry.

    No entries are kept alongside the summary unless ``more`` has a ``first_kept_id``. ``before``
    and ``after`` are the numbers of tokens in the context before and after the compaction, as the
    other program counted them. ``at`` is the time in milliseconds since the epoch. ``by_itself`` is
    True if the program compacted without being asked by the user.
    """
    return CompactionEntry(
        summary=text,
        tokens_before=int(before),
        tokens_after=int(after),
        trigger="threshold" if by_itself else "manual",
        created_at=at,
        **{"first_kept_id": None} | more,
    )


def usage_of(
    counts: Node, keys: Mapping[str, str], *, cached_is_sent: bool = False
) -> Usage | None:
    """Return an answer's usage from a program's counts; None if there are no counts.

    ``keys`` contains the program's key for each field of `Usage`. If there are several keys,
    separated by spaces, their values are added up. With ``cached_is_sent``, the program's input
    includes cached tokens, which are subtracted.
    """
    if not counts.value:
        return None
    tokens: dict[str, int] = {}
    for name, key in keys.items():
        tokens[name] = sum(int(counts.number(part)) for part in key.split())
    if cached_is_sent:
        cached = tokens["cache_read"] + tokens.get("cache_write", 0)
        tokens["input"] = max(0, tokens["input"] - cached)
    return Usage(**tokens)


class PackedEntries(Sequence[Entry]):
    """A list of entries that stores all but the newest entries as JSON.

    Entries that are kept as objects take up to ten times as much memory.
    """

    def __init__(self) -> None:
        self._kept: list[Entry | bytes] = []

    def append(self, entry: Entry) -> None:
        self._kept.append(entry)
        if (old := len(self._kept) - _NEWEST - 1) >= 0:
            self._kept[old] = sound(self[old]).model_dump_json().encode()

    def __setitem__(self, index: int, entry: Entry) -> None:
        self._kept[index] = entry

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        kept = self._kept[index]
        if isinstance(kept, bytes):
            return EntryAdapter.validate_json(kept)
        return kept


@dataclass
class IncomingSession:
    """One session that was read from a file and is not stored yet.

    The entries' ids ascend, and each entry except a root names its parent. Times are milliseconds
    since the epoch, or 0 if unknown.
    """

    id: str
    source: str
    """Name, as shown to the user, of the program that wrote the session."""
    cwd: str = ""
    title: str = ""
    created_at: int = 0
    updated_at: int = 0
    entries: PackedEntries = field(default_factory=PackedEntries)
    leaf: int | None = None
    last_id: int = 0
    labels: dict[int, str] = field(default_factory=dict)
    moves: list[LeafMove] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    """Contents of blobs, by their SHA-256 digests in hexadecimal."""
    origin: tuple[str | None, int | None, str] = (None, None, "")
    """The parent session's id, the id of the entry there at which the session begins, and the kind
    of the subagent. The ids are None if there is no parent session, and the kind is "" if there is
    no subagent."""
    side_cost: float = 0
    """US dollars spent on model calls that have no entry in the session."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How many parts of the file were left out because a session can't store them, by kind of part.
    """
    damaged: list[int] = field(default_factory=list)
    """Numbers, counted from 1, of the lines in the file that could not be read."""

    def keep_blob(self, content: bytes) -> str:
        """Add bytes to ``blobs`` and return their SHA-256 digest."""
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[digest] = content
        return digest


def is_session_id(text: str) -> bool:
    """Return True if a text has the form of a session id, which is a UUID in lower case."""
    return _SESSION_ID.fullmatch(text) is not None


def derived_id(at: int, *names: str) -> str:
    """Return a session id that depends only on a time and names (UUID version 8 of RFC 9562).

    ``at`` is in milliseconds since the epoch. The session of a file thus has the same id when the
    file is imported again.
    """
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "replace")).digest()
    return timed_uuid(at, digest[:10], 8)


class SessionReader:
    """Builds a session from another program's records, whose names and parents are strings.

    If a record doesn't become an entry, its children are attached to its parent. Each program has a
    subclass, whose ``read()`` returns the session of the file.
    """

    program: ClassVar[str]
    """Name, as shown to the user, of the program that wrote the records."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.session = IncomingSession("", self.program)
        self.last: int | None = None
        """Id of the entry that the last record became or was attached to; None before the first
        record."""
        self._calls: dict[str, dict[str, Any]] = {}
        """Facts needed to store the results of the tool calls read so far, by call id. The calls
        themselves are not kept, because their arguments can be whole files."""
        self._places: dict[str, int | None] = {}
        """Id of the entry that each record became or was attached to, by the record's name."""
        self._first_at = self._last_at = 0

    def nodes(self) -> Iterator[Node]:
        """Yield the JSON objects in the file's lines, skipping damaged lines if allowed."""
        return (node for node in self.source.lines() if node is not None)

    # -- the tree ----------------------------------------------------------------------------------

    def place(self, name: str | None) -> int | None:
        """Return the id of the entry that the record ``name`` became or was attached to.

        None stands for the beginning of the session, both as a name and as a result. If the name is
        unknown, a broken link is counted and the last entry is returned.
        """
        if name is None:
            return None
        if name not in self._places:
            self.leave_out("record with an unknown parent (added after the record before it)")
            return self.last
        return self._places[name]

    def add(self, entry: Entry, parent: int | None, *, name: str | None = None) -> int:
        """Add an entry as a child of ``parent`` and return its id; ``name`` is the record's name.

        Raises ImportRefused if the session has too many entries.
        """
        entries = self.session.entries
        if len(entries) >= MAX_ENTRIES:
            raise ImportRefused(f"The session has more than {MAX_ENTRIES:,} entries.")
        entry_id = len(entries) + 1
        if at := entry.created_at:
            self._first_at = min(self._first_at or at, at)
            self._last_at = max(self._last_at, at)
        entries.append(entry.model_copy(update={"id": entry_id, "parent_id": parent}))
        self.pass_over(name, entry_id)
        return entry_id

    def follow(self, entry: Entry) -> int:
        """Add an entry as a child of the last entry, and return its id."""
        return self.add(entry, self.last)

    def pass_over(self, name: str | None, place: int | None) -> None:
        """Skip a record that doesn't become an entry; attach its children to the entry ``place``.

        ``name`` is the record's name, or None. ``place`` is an entry's id, or None for the
        beginning of the session. The entry ``place`` becomes the last entry.
        """
        if name is not None:
            self._places[name] = place
        self.last = place

    def entry(self, entry_id: int) -> Entry:
        return self.session.entries[entry_id - 1]

    def answer(self, entry_id: int | None) -> AssistantEntry | None:
        """Return the entry with the id ``entry_id`` if it is an answer, else None."""
        if entry_id is None:
            return None
        entry = self.entry(entry_id)
        return entry if isinstance(entry, AssistantEntry) else None

    def change(self, entry: Entry, **fields: object) -> None:
        """Set ``fields`` of an entry that was already added, by replacing the entry with a copy."""
        self.session.entries[entry.id - 1] = entry.model_copy(update=fields)

    def fail(self, error: str | None, at: int, *, model: str = "") -> int:
        """Add an answer entry for a request that failed, below the last entry; return its id."""
        return self.follow(
            AssistantEntry(parts=(), model=model, finish="error", error=error, created_at=at)
        )

    def interrupt(self, entry_id: int | None) -> None:
        """Mark an answer as interrupted; does nothing if the entry is not an answer."""
        if answer := self.answer(entry_id):
            self.change(answer, finish="interrupted", interrupted=True)

    # -- parts -------------------------------------------------------------------------------------

    def leave_out(self, what: str) -> None:
        """Count a part of the file that is left out; ``what`` describes its kind for the user."""
        self.session.left_out[what] += 1

    def call(self, call_id: str, tool: str, arguments: object) -> ToolCallPart:
        """Return a tool call; ``arguments`` are JSON text, or a value that is converted to JSON."""
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        call = ToolCallPart(call_id=call_id, tool=tool, arguments=arguments)
        self._calls[call_id] = _facts_of(call)
        return call

    def result(
        self,
        call_id: str,
        output: str,
        at: int = 0,
        *,
        failed: bool = False,
        tool: str = "",
        **more: Any,
    ) -> ToolResultEntry:
        """Return the entry for the result of a call, with the title and files taken from the call.

        ``tool`` is the name of the tool, which is used if the call is not in the file. ``more`` are
        further fields of the entry, which replace the call's.
        """
        status = ToolStatus.ERROR if failed else ToolStatus.COMPLETED
        fields = {"tool": tool, "status": status} | self._calls.get(call_id, {}) | more
        return ToolResultEntry(call_id=call_id, output=output, created_at=at, **fields)

    def image(self, node: Node, data: str, mime: str) -> ImagePart | None:
        """Store an image that is given in base64 as a blob, and return it as a part of a message.

        Returns None, and counts the image as left out, if ``mime`` isn't an image type. Raises
        ImportRefused if the data is not base64; ``node`` is the object that contains it.
        """
        if not mime.startswith("image/"):
            self.leave_out("attachment that is not an image")
            return None
        try:
            content = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise node.refuse("an image is not base64") from None
        # An image is decoded only when it is sent, so an image that can't be decoded is kept as
        # well.
        return ImagePart(blob=self.session.keep_blob(content), mime=picture_type(content) or mime)

    # -- the end -----------------------------------------------------------------------------------

    def require_conversation(self) -> None:
        """Refuse a file without messages.

        Raises:
            NoConversation: there are no entries, or only changes of the model.
        """
        if all(isinstance(entry, ModelChangeEntry) for entry in self.session.entries):
            raise NoConversation(f"The file contains no conversation of {self.program}.")

    def finish(
        self, *, name: str, cwd: str, title: str, created_at: int = 0, leaf: int | None = None
    ) -> IncomingSession:
        """Fill in the remaining fields of the session, and return the session.

        ``name`` is the session's id in the other program. Without ``created_at`` (milliseconds),
        the earliest time of an entry is used; without ``leaf``, the entry ``last`` is the leaf.
        """
        session = self.session
        session.created_at = created_at or self._first_at
        session.updated_at = self._last_at or session.created_at
        session.id = derived_id(session.created_at, session.source, name)
        session.cwd = cwd
        session.title = " ".join(title.split())[:_TITLE_CHARS]
        session.leaf = self.last if leaf is None else leaf
        session.last_id = len(session.entries)
        return session


class BlockReader(SessionReader):
    """Reads messages whose content is a text or a list of blocks, as in Anthropic's Messages API.

    The class attributes name the blocks and keys that differ between programs.
    """

    call_block: ClassVar[str]
    """Type of the block that calls a tool."""
    arguments_key: ClassVar[str]
    """Key of the tool's arguments in the block that calls a tool."""
    tool_names: ClassVar[Mapping[str, str]] = {}
    """This program's names for tools that the other program calls by other names. The keys are
    the other program's names."""
    image_in: "ClassVar[staticmethod[[Node], tuple[str, str]]]"
    """Function that returns the data of an image block, in base64, and its MIME type."""

    def said(self, message: Node, whose: str = "a message") -> tuple[TextPart | ImagePart, ...]:
        """Return the texts and images of a message, in order.

        Other parts, except tool results, are counted as left out; ``whose`` says to what these
        parts belong.
        """
        if isinstance(text := message.value.get("content"), str):
            return (TextPart(text=text),)
        parts: list[TextPart | ImagePart] = []
        for block in message.nodes("content"):
            match kind := block.text("type"):
                case "text":
                    parts.append(TextPart(text=block.text("text")))
                case "image":
                    if image := self.image(block, *self.image_in(block)):
                        parts.append(image)
                case "tool_result":  # The part becomes an entry of its own.
                    pass
                case _:
                    self.leave_out(f"“{kind[:40]}” part of {whose}")
        return tuple(parts)

    def answered(self, message: Node, model: str) -> tuple[AssistantPart, ...]:
        """Return an answer's texts, reasoning and tool calls in order; count omitted parts."""
        parts: list[AssistantPart] = []
        for block in message.nodes("content"):
            match kind := block.text("type"):
                case "text":
                    parts.append(TextPart(text=block.text("text")))
                case "thinking":
                    # Only the text is kept, because the program stores signatures in a form that a
                    # provider would refuse.
                    parts.append(ReasoningPart(text=block.text("thinking", ""), model=model))
                case self.call_block:
                    tool = block.text("name")
                    arguments = block.node(self.arguments_key).value
                    parts.append(
                        self.call(block.text("id"), self.tool_names.get(tool, tool), arguments)
                    )
                case _:
                    self.leave_out(f"“{kind[:40]}” part of an answer")
        return tuple(parts)


def split(parts: Sequence[TextPart | ImagePart]) -> tuple[str, tuple[ImagePart, ...]]:
    """Split the parts of a message into their texts, joined by line feeds, and their images."""
    text = joined_text(parts)
    return text, tuple(part for part in parts if isinstance(part, ImagePart))
