"""Writes and reads this program's export format: JSON lines that contain whole sessions.

Each session begins with a line of the type ``session``, followed by its lines of the types
``entry``, ``label``, ``move`` and ``blob``, in this order. The last line of the file has the type
``end`` and the number of lines before it, so that an incomplete file is recognised.

The key and outcome of a run without a screen aren't exported: with the same key, a later run on
another machine would continue the imported session. Only the sum of the costs that belong to no
entry is exported.
"""

import base64
import binascii
import json
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, cast

from pydantic import ValidationError

from tui_agent.session.entries import Entry, EntryAdapter
from tui_agent.session.formats.copies import SessionCopy
from tui_agent.session.formats.incoming import IncomingSession, derived_id, is_session_id
from tui_agent.session.formats.reading import END_OF_TIME, MAX_ENTRIES, ImportRefused, Node
from tui_agent.session.ids import now
from tui_agent.session.records import LeafMove
from tui_agent.session.rows import blobs_of
from tui_agent.session.schema import SCHEMA_VERSION

FORMAT = "tui-agent"
_MAX_ID = 2**32 - 1
_MAX_NUMBER = 2**53


def write(copies: Sequence[SessionCopy], put: Callable[[str], object]) -> None:
    """Write sessions as JSON lines, by calling ``put`` with each line including its line end."""
    for line in lines_of(copies):
        try:
            text = json.dumps(line, ensure_ascii=False)
            text.encode()
        except UnicodeEncodeError:  # A lone surrogate has to be written as an escape.
            text = json.dumps(line)
        put(text + "\n")


def lines_of(copies: Sequence[SessionCopy]) -> Iterator[dict[str, Any]]:
    """Yield the lines of exported sessions, as JSON objects.

    A blob that several sessions use occurs only once.
    """
    lines = 0
    blobs = set[str]()
    for copy in copies:
        for line in _lines(copy, blobs):
            yield line
            lines += 1
    yield {"type": "end", "lines": lines}


def _lines(copy: SessionCopy, written: set[str]) -> Iterator[dict[str, Any]]:
    info = copy.info
    yield {
        "type": "session",
        "format": FORMAT,
        "version": SCHEMA_VERSION,
        "id": info.id,
        "cwd": info.cwd,
        "title": info.title,
        "created_at": info.created_at,
        "updated_at": info.updated_at,
        "leaf": copy.leaf,
        "last_id": copy.last_id,
        "parent_session": info.parent_session,
        "parent_entry": info.parent_entry,
        "agent": info.agent,
        "side_cost": info.side_cost,
    }
    for entry in copy.entries:
        yield {"type": "entry", "entry": entry.model_dump(mode="python", exclude={"preview"})}
    for entry_id, text in copy.labels.items():
        yield {"type": "label", "entry": entry_id, "text": text}
    for move in copy.moves:
        yield {
            "type": "move",
            "from": move.from_leaf,
            "to": move.to_leaf,
            "action": move.action,
            "at": move.at,
        }
    for digest, content in copy.blobs():
        if digest not in written:
            written.add(digest)
            yield {
                "type": "blob",
                "digest": digest,
                "data": base64.b64encode(content).decode("ascii"),
            }


def is_line(node: Node) -> bool:
    return node.value.get("type") == "session" and node.value.get("format") == FORMAT


class LineReader:
    """Builds sessions from the lines of one file; use a new reader for each file.

    With ``skip_damaged``, lines that are invalid or belong to a lost session are left out, and a
    file is accepted even if its ``end`` line is missing or states another number of lines.
    """

    def __init__(self, *, skip_damaged: bool = False) -> None:
        self._skip_damaged = skip_damaged
        self._sessions: list[IncomingSession] = []
        self._ids: list[int] = []
        """Ids of the entries read so far in the current session, ascending."""
        self._type_before: object = None
        """Type of the last line of the file that was not damaged."""
        self._after_damage = False
        """Whether the line before the current line is damaged."""
        self._is_lost = False
        """Whether the line that begins the current session was damaged."""

    def read(self, nodes: Iterable[Node | None]) -> list[IncomingSession]:
        """Return the sessions in the lines of a file, in which None stands for a damaged line.

        Raises:
            ImportRefused: a line is invalid, or the file is not complete.
        """
        ended = False
        for lines, node in enumerate(nodes):
            if node is None:
                self._after_damage = True
                continue
            if ended and not self._skip_damaged:
                raise node.refuse("the line comes after the line of the type “end”")
            kind = node.value.get("type")
            if kind == "session":
                self._begin(node)
            elif kind == "end":
                ended = node.number("lines") == lines
            elif not self._sessions:
                raise node.refuse("the first line must be of the type “session”")
            else:
                self._line_or_skip(node)
            self._type_before = kind
            self._after_damage = False
        if not self._sessions:
            raise ImportRefused("The file contains no session.")
        if not (ended or self._skip_damaged):
            raise ImportRefused("The file is not complete: lines are missing. Export it again.")
        for session in self._sessions:
            self._close(session)
        return self._sessions

    def _begin(self, node: Node) -> None:
        if not is_line(node) or node.number("version") < 1:
            raise node.refuse("the line does not begin a session of tui-agent")
        if node.number("version") > SCHEMA_VERSION:
            raise node.refuse("the file was written by a newer tui-agent; update this one")
        created = node.time("created_at")
        name = node.text("id")
        parent = node.text("parent_session", "")
        origin: tuple[str | None, int | None, str] = (None, None, "")
        if is_session_id(parent):
            origin = (parent, _optional(node, "parent_entry"), node.text("agent", "")[:200])
        self._ids = []
        self._is_lost = False
        self._sessions.append(
            IncomingSession(
                id=name if is_session_id(name) else derived_id(created, FORMAT, name),
                source=FORMAT,
                cwd=node.text("cwd"),
                title=node.text("title", "")[:500],
                created_at=created,
                updated_at=node.time("updated_at"),
                leaf=_optional(node, "leaf"),
                last_id=int(node.number("last_id")),
                origin=origin,
                side_cost=node.number("side_cost"),
            )
        )

    def _line_or_skip(self, node: Node) -> None:
        """Read a line of the current session; with ``skip_damaged``, leave it out if invalid."""
        if self._after_damage and self._starts_over(node):
            self._is_lost = True
        left_out = self._sessions[-1].left_out
        if self._is_lost:
            left_out["line of a session whose first line is damaged"] += 1
            return
        try:
            self._line(node)
        except ImportRefused:
            if not self._skip_damaged:
                raise
            left_out["invalid line"] += 1

    def _starts_over(self, node: Node) -> bool:
        """Return True if a line contains an entry that can only belong to the next session."""
        entry = node.value.get("entry")
        if node.value.get("type") != "entry" or not isinstance(entry, dict):
            return False
        if self._type_before not in {"session", "entry"}:
            return True
        entry_id = entry.get("id")
        return bool(self._ids) and isinstance(entry_id, int) and entry_id <= self._ids[-1]

    def _line(self, node: Node) -> None:
        session = self._sessions[-1]
        match kind := node.text("type"):
            case "entry":
                self._entry(session, node)
            case "label":
                entry_id = self._known(node, "entry")
                if entry_id is not None:
                    session.labels[entry_id] = node.text("text")[:500]
            case "move":
                action = node.text("action")
                if action not in {"move", "undo", "redo"}:
                    raise node.refuse(f"“{action[:40]}” is not a kind of move")
                known = cast("Literal['move', 'undo', 'redo']", action)
                move = LeafMove(
                    self._known(node, "from"), self._known(node, "to"), known, node.time("at")
                )
                session.moves.append(move)
            case "blob":
                digest = node.text("digest")
                try:
                    content = base64.b64decode(node.text("data"), validate=True)
                except (binascii.Error, ValueError):
                    raise node.refuse("the content is not base64") from None
                if session.keep_blob(content) != digest:
                    raise node.refuse("the content does not match the digest")
            case _:
                session.left_out[f"“{kind[:40]}” line"] += 1

    def _known(self, node: Node, key: str) -> int | None:
        """Return the id of an earlier entry that a line names; None if the line names none.

        Raises ImportRefused if there is no earlier entry with the id.
        """
        entry_id = _optional(node, key)
        if entry_id is not None and self._nearest(entry_id) != entry_id:
            raise node.refuse(f"there is no entry #{entry_id} before this line")
        return entry_id

    def _nearest(self, entry_id: int) -> int | None:
        """Return ``entry_id`` or, if no entry has it, the next lower id of an entry, or None."""
        at = bisect(self._ids, entry_id)
        return self._ids[at - 1] if at else None

    def _entry(self, session: IncomingSession, node: Node) -> None:
        try:
            entry: Entry = EntryAdapter.validate_python(node.node("entry").value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(step) for step in first["loc"])
            raise node.refuse(f"the entry is not valid ({where}: {first['msg'].lower()})") from None
        except RecursionError:
            raise node.refuse("the entry is nested too deeply") from None
        if not 0 < entry.id <= _MAX_ID or self._nearest(entry.id) == entry.id:
            raise node.refuse(f"the entry number #{entry.id} is used twice or out of range")
        if not (0 <= entry.tokens < _MAX_NUMBER and 0 <= entry.created_at < END_OF_TIME):
            raise node.refuse("the entry's tokens or time are out of range")
        # A wrong clock can cause a time in the future, which is replaced with the current time.
        # Otherwise the prompt cache would seem to be still kept by the provider, and the system
        # prompt written by the file's program would be used for a long time.
        entry = entry.model_copy(update={"created_at": min(entry.created_at, now())})
        if self._ids and entry.id <= self._ids[-1]:
            raise node.refuse(f"entry #{entry.id} must come before entry #{self._ids[-1]}")
        if entry.parent_id is not None and self._nearest(entry.parent_id) != entry.parent_id:
            entry = self._attached(session, node, entry)
        if len(session.entries) >= MAX_ENTRIES:
            raise node.refuse(f"the session has more than {MAX_ENTRIES:,} entries")
        self._ids.append(entry.id)
        session.entries.append(entry)

    def _attached(self, session: IncomingSession, node: Node, entry: Entry) -> Entry:
        """Attach an entry whose parent is missing to the entry before that parent, and return it.

        Raises ImportRefused unless ``skip_damaged``.
        """
        if not self._skip_damaged or entry.parent_id is None:
            raise node.refuse(f"entry #{entry.id} must come after its parent, #{entry.parent_id}")
        session.left_out["link to a damaged entry (replaced by a link to the entry before it)"] += 1
        return entry.model_copy(update={"parent_id": self._nearest(entry.parent_id)})

    def _close(self, session: IncomingSession) -> None:
        """Finish the current session: correct its leaf and last id, count missing blobs."""
        ids = {entry.id for entry in session.entries}
        if session.leaf is not None and session.leaf not in ids:
            session.leaf = session.entries[-1].id if session.entries else None
        session.last_id = min(max(session.last_id, max(ids, default=0)), _MAX_ID)
        missing: set[str] = set()
        for entry in session.entries:
            missing |= blobs_of(entry)
        for one in self._sessions:
            missing -= one.blobs.keys()
        if missing:
            session.left_out["full output or image that is not in the file"] += len(missing)


def _optional(node: Node, key: str) -> int | None:
    if node.has(key):
        return int(node.number(key))
    return None
