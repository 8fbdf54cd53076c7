"""A session on its way in, whatever program wrote it, and how one is put together from another's records."""

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
"""Entries kept as they are: the ones that are still being added to."""

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Images that models take and browsers show."""

_SESSION_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TITLE_CHARS = 500


def _facts_of(call: ToolCallPart) -> dict[str, Any]:
    """Return the facts of a call for its result: its title in a list, and which file it read or changed."""
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
    """Return a compaction that nothing is kept beside, unless ``more`` says so.

    Tokens as its program counted them.
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
    """Return an answer's tokens, None where nothing was counted.

    ``keys`` are the program's names for the fields of `Usage`, several where they add up; with
    ``cached_is_sent`` its input has the cached tokens.
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
    """Entries in their order, all but the newest as JSON: as objects they take up to ten times the room."""

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
    """One session as a file tells it.

    Entries have their ids and parents, ascending; times are milliseconds.
    """

    id: str
    source: str
    """The program it comes from, as people call it."""
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
    """Contents by their SHA-256 digests in hexadecimal."""
    origin: tuple[str | None, int | None, str] = (None, None, "")
    """The session and the entry it comes from, and the kind of the subagent that works in it."""
    side_cost: float = 0
    """US dollars of calls that are no entries of it."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Counts of parts there is no room for here, by kind."""
    damaged: list[int] = field(default_factory=list)
    """Numbers of the file's lines that could not be read."""

    def keep_blob(self, content: bytes) -> str:
        """Keep bytes and return their digest."""
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[digest] = content
        return digest


def is_session_id(text: str) -> bool:
    """Whether a text is the id of a session: a UUID in lower case."""
    return _SESSION_ID.fullmatch(text) is not None


def derived_id(at: int, *names: str) -> str:
    """Return a session id that is always the same for the same names and time (UUID version 8 of RFC 9562)."""
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "replace")).digest()
    return timed_uuid(at, digest[:10], 8)


class SessionReader:
    """Puts a session together from a program's records, which name themselves and their parents by texts.

    A record that becomes no entry is passed over: its children come below its own parent. Each
    program has a subclass, whose ``read()`` returns the session of the file.
    """

    program: ClassVar[str]
    """Its name as people write it."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.session = IncomingSession("", self.program)
        self.last: int | None = None
        """The entry that the last record stands for."""
        self._calls: dict[str, dict[str, Any]] = {}
        """Facts of the calls so far for their results; their arguments can be whole files."""
        self._places: dict[str, int | None] = {}
        self._first_at = self._last_at = 0

    def nodes(self) -> Iterator[Node]:
        return (node for node in self.source.lines() if node is not None)

    # -- the tree ----------------------------------------------------------------------------------

    def place(self, name: str | None) -> int | None:
        """Return the entry a name stands for, None for the beginning.

        Of an unknown one, the entry before.
        """
        if name is None:
            return None
        if name not in self._places:
            self.leave_out(
                "broken link to the entry before (put after the one before it in the file)"
            )
            return self.last
        return self._places[name]

    def add(self, entry: Entry, parent: int | None, *, name: str | None = None) -> int:
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
        """Add an entry below the last one."""
        return self.add(entry, self.last)

    def pass_over(self, name: str | None, place: int | None) -> None:
        """Let a name stand for an entry that was not made from it."""
        if name is not None:
            self._places[name] = place
        self.last = place

    def entry(self, entry_id: int) -> Entry:
        return self.session.entries[entry_id - 1]

    def answer(self, entry_id: int | None) -> AssistantEntry | None:
        """Return the entry with a number where that is an answer."""
        if entry_id is None:
            return None
        entry = self.entry(entry_id)
        return entry if isinstance(entry, AssistantEntry) else None

    def change(self, entry: Entry, **fields: object) -> None:
        self.session.entries[entry.id - 1] = entry.model_copy(update=fields)

    def fail(self, error: str | None, at: int, *, model: str = "") -> int:
        """Add a request that failed."""
        return self.follow(
            AssistantEntry(parts=(), model=model, finish="error", error=error, created_at=at)
        )

    def interrupt(self, entry_id: int | None) -> None:
        """Say of an answer that it was interrupted; other entries stay as they are."""
        if answer := self.answer(entry_id):
            self.change(answer, finish="interrupted", interrupted=True)

    # -- parts -------------------------------------------------------------------------------------

    def leave_out(self, what: str) -> None:
        self.session.left_out[what] += 1

    def call(self, call_id: str, tool: str, arguments: object) -> ToolCallPart:
        """Return a call; ``arguments`` are its JSON text, or a value."""
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
        """Return the result of a call.

        ``more`` are further fields of the entry, or others than the call's.

        ``tool`` is the name of the tool where the call is not in the file.
        """
        status = ToolStatus.ERROR if failed else ToolStatus.COMPLETED
        fields = {"tool": tool, "status": status} | self._calls.get(call_id, {}) | more
        return ToolResultEntry(call_id=call_id, output=output, created_at=at, **fields)

    def image(self, node: Node, data: str, mime: str) -> ImagePart | None:
        """Keep an image given in base64; None, and counted, when it is none that can be shown."""
        if not mime.startswith("image/"):
            self.leave_out("attachment of another type than an image")
            return None
        try:
            content = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise node.refuse("an image is not base64") from None
        # It is decoded when it is sent; one that can't be is still the user's.
        return ImagePart(blob=self.session.keep_blob(content), mime=picture_type(content) or mime)

    # -- the end -----------------------------------------------------------------------------------

    def require_conversation(self) -> None:
        """Refuse a file in which nothing was said.

        Raises:
            NoConversation: there is no entry, or only the choice of a model.
        """
        if all(isinstance(entry, ModelChangeEntry) for entry in self.session.entries):
            raise NoConversation(f"It holds no conversation of {self.program}.")

    def finish(
        self, *, name: str, cwd: str, title: str, created_at: int = 0, leaf: int | None = None
    ) -> IncomingSession:
        """Return the session; ``name`` is its name in its own program, without a leaf the last entry is it."""
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
    """Reads messages whose content is a list of blocks, as the Messages API has them, under names of the program's."""

    call_block: ClassVar[str]
    """Type of the block that calls a tool."""
    arguments_key: ClassVar[str]
    """Its key for the tool's arguments."""
    tool_names: ClassVar[Mapping[str, str]] = {}
    """Its names of tools that are called otherwise here."""
    image_in: "ClassVar[staticmethod[[Node], tuple[str, str]]]"
    """Returns the data of the block of an image, in base64, and its MIME type."""

    def said(self, message: Node, whose: str = "a message") -> tuple[TextPart | ImagePart, ...]:
        """Return texts and images in their order.

        ``whose`` they are is noted with parts left out.
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
                case "tool_result":  # no part of the user's message
                    pass
                case _:
                    self.leave_out(f"“{kind[:40]}” part of {whose}")
        return tuple(parts)

    def answered(self, message: Node, model: str) -> tuple[AssistantPart, ...]:
        parts: list[AssistantPart] = []
        for block in message.nodes("content"):
            match kind := block.text("type"):
                case "text":
                    parts.append(TextPart(text=block.text("text")))
                case "thinking":
                    # Signatures are in the program's own form; a provider would refuse them, so
                    # only the words stay.
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
    """Return the texts, a line each, and the images."""
    text = joined_text(parts)
    return text, tuple(part for part in parts if isinstance(part, ImagePart))
