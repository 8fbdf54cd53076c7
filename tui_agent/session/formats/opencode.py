"""Reads OpenCode's sessions in all three forms in which OpenCode stores or exports them.

The forms are its database (from version 1.2), the output of ``opencode export``, and the storage of
older versions with a JSON file for each record. All have the same records: sessions, their
messages, and the parts of each message.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tui_agent import path_checks
from tui_agent.session.entries import (
    AssistantEntry,
    FilePart,
    ImagePart,
    ReasoningPart,
    TextPart,
    Usage,
    UserEntry,
    joined_text,
)
from tui_agent.session.formats.incoming import (
    IncomingSession,
    SessionReader,
    derived_id,
    summary_of,
    usage_of,
)
from tui_agent.session.formats.reading import (
    NOTHING,
    ImportRefused,
    NoConversation,
    Node,
    SourceFile,
    parse_object,
    read_document,
)

_TABLES = {
    "session": frozenset({"id", "parent_id", "directory", "title", "time_created"}),
    "message": frozenset({"id", "session_id", "time_created", "data"}),
    "part": frozenset({"id", "message_id", "data"}),
}
"""The tables and columns by which OpenCode's database is recognised."""

_DEPTH = 3
"""Depth of a file in OpenCode's storage, in folders, including the folder "storage"."""
_RECORDS = frozenset({"session", "message", "part"})
"""Folders of OpenCode's storage that contain sessions, messages and their parts."""
_Message = Callable[[str], Node]
"""Function that reads one message. Its argument says where in the file the message is, for use in
error messages. If the function fails, the next message can still be read."""

_FINISH = {
    "tool-calls": "tool_calls",
    "length": "length",
    "content-filter": "content_filter",
    "error": "error",
}
_USAGE = {
    "input": "input",
    "output": "output reasoning",
    "reasoning": "reasoning",
    "cache_read": "read",
    "cache_write": "write",
}
_PASSED = frozenset(
    {"step-start", "step-finish", "snapshot", "patch", "agent", "retry", "compaction"}
)
"""Types of message parts that are left out without being counted, because they have no content."""
_NOT_RUN = frozenset({"pending", "running"})
"""States in which a tool call has no result."""


def is_file(source: SourceFile) -> bool:
    """Return True if a file is OpenCode's database, an export, or a file of its storage."""
    if source.is_database:
        with source.database() as connection:
            for table, columns in _TABLES.items():
                rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
                if not columns.issubset(row["name"] for row in rows):
                    return False
        return True
    if _is_stored(source):
        return True
    one_line = source.head.lstrip().startswith((b'{"info":', b'{ "info":'))
    if not (one_line or source.is_document):
        return False
    document = source.document().value
    return isinstance(document.get("info"), dict) and isinstance(document.get("messages"), list)


def project_of(source: SourceFile) -> str:
    """Return the directory of a file's sessions, or the number of directories ("3 projects")."""
    if not source.is_database:
        return source.document().text("directory", "")
    with source.database() as connection:
        found = [row[0] for row in connection.execute("SELECT DISTINCT directory FROM session")]
    if len(found) == 1:
        return str(found[0])
    return f"{len(found)} projects"


def read(source: SourceFile) -> Iterator[Sequence[IncomingSession]]:
    """Yield the sessions of a file, each in a list of its own.

    In a database, sessions without messages and unreadable sessions are left out.

    Raises:
        ImportRefused: the file can't be read, or something in it is invalid.
        NoConversation: the file is not a database and has no messages.
    """
    if source.is_database:
        with source.database() as connection:
            for row in connection.execute(
                "SELECT id, parent_id, directory, title, time_created, revert FROM session ORDER BY time_created, id"
            ).fetchall():
                found = source.attempt(partial(_of_row, connection, row, source))
                if found is not None and len(found.entries):
                    yield [found]
        return
    if _is_stored(source):
        session = _stored(source)
    else:
        document = source.document()
        messages = (partial(Node, row.value) for row in document.nodes("messages"))
        session = _Reader(source).read(document.node("info"), messages)
    if not len(session.entries):
        raise NoConversation(f"{source.path.name} contains no messages.")
    yield [session]


def _of_row(
    connection: sqlite3.Connection, row: sqlite3.Row, source: SourceFile
) -> IncomingSession:
    """Return the session that a row of the database describes."""
    where = f"{source.path.name}, session “{str(row['id'])[:40]}”"
    info: dict[str, Any] = {name: str(row[name] or "") for name in ("id", "directory", "title")}
    info["time"] = {"created": int(row["time_created"] or 0)}
    info["revert"] = parse_object(_bytes(row["revert"] or "{}"), where).value
    messages = connection.execute(
        "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", (row["id"],)
    )

    def read(message: sqlite3.Row, place: str) -> Node:
        said = parse_object(_bytes(message["data"]), place)
        parts = connection.execute(
            "SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (message["id"],)
        )
        found = [
            {**parse_object(_bytes(part["data"]), place).value, "id": part["id"]} for part in parts
        ]
        return Node({"info": {**said.value, "id": message["id"]}, "parts": found}, place)

    session = _Reader(source).read(
        Node(info, where), (partial(read, message) for message in messages)
    )
    if row["parent_id"]:
        at = connection.execute(
            "SELECT time_created FROM session WHERE id = ?", (row["parent_id"],)
        ).fetchone()
        if at is not None:
            session.origin = _origin(row["parent_id"], at[0])
    return session


def _origin(parent: str, created_at: int) -> tuple[str, None, str]:
    """Return the ``IncomingSession.origin`` of a session that has a parent session.

    ``parent`` is the parent's id in OpenCode, ``created_at`` its time in milliseconds.
    """
    return derived_id(created_at, _Reader.program, parent), None, "opencode"


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "replace")


def _is_stored(source: SourceFile) -> bool:
    """Return True if a file's suffix and folders match the storage of OpenCode before 1.2."""
    folders = source.path.absolute().parts[-4:-1]
    return (
        source.path.suffix == ".json"
        and len(folders) == _DEPTH
        and folders[0] == "storage"
        and folders[1] in _RECORDS
    )


def _stored(source: SourceFile) -> IncomingSession:
    """Return the session described by a file in OpenCode's storage.

    The messages and their parts are read from other files.

    Raises:
        NoConversation: the file has only a message or a part; they are read with the session's
        file.
        ImportRefused: one of the files can't be read, or something in it is invalid.
    """
    path = source.path.absolute()
    storage = path.parents[2]
    if path.parts[-3] != "session":
        raise NoConversation(f"{path.name} is only a part of an OpenCode session.")
    info = source.document()
    name = info.text("id")

    def read(file: Path, place: str) -> Node:
        message = read_document(file)
        parts = sorted((storage / "part" / message.text("id", file.stem)).glob("*.json"))
        return Node(
            {"info": message.value, "parts": [read_document(part).value for part in parts]}, place
        )

    files = []
    if name.replace("_", "").isalnum():
        files = sorted((storage / "message" / name).glob("*.json"))
    session = _Reader(source).read(info, (partial(read, file) for file in files))
    if parent := info.text("parentID", ""):
        above = path.with_name(f"{parent}.json")
        if parent.replace("_", "").isalnum() and path_checks.is_file(above):
            session.origin = _origin(parent, read_document(above).node("time").time("created"))
    return session


class _Reader(SessionReader):
    program = "OpenCode"
    _undone = False
    _leaf_before: int | None = None
    """Id of the last entry before the messages that the user reverted; None if there is none."""

    def read(self, info: Node, messages: Iterable[_Message]) -> IncomingSession:
        """Return the session with the given record and messages.

        If the user reverted messages (``revert``), the session's leaf is the last entry before
        them, or the beginning of the session if nothing precedes them.
        """
        undone = info.node("revert").text("messageID", "")
        for number, message in enumerate(messages, 1):
            try:
                self._message(message(f"{info.where}, message {number}"), undone)
            except ImportRefused:
                if not self.source.skip_damaged:
                    raise
                self.leave_out(f"damaged message (message {number})")
        session = self.finish(
            name=info.text("id", ""),
            cwd=info.text("directory", ""),
            title=info.text("title", ""),
            created_at=info.node("time").time("created"),
        )
        if self._undone:
            session.leaf = self._leaf_before
        return session

    def _message(self, message: Node, undone: str) -> None:
        info = message.node("info")
        if undone and info.text("id", "") == undone:
            self._undone = True
            self._leaf_before = self.last
        match role := info.text("role"):
            case "user":
                self._user(info, message)
            case "assistant":
                self._assistant(info, message)
            case _:
                self.leave_out(f"message of “{role[:40]}”")

    def _user(self, info: Node, message: Node) -> None:
        parts: list[Any] = []
        synthetic = True
        for part in message.nodes("parts"):
            match kind := part.text("type"):
                case "text" if not part.flag("ignored"):
                    parts.append(TextPart(text=part.text("text")))
                    synthetic = synthetic and part.flag("synthetic")
                case "file":
                    parts.append(self._file(part))
                    synthetic = False
                case "subtask":
                    parts.append(TextPart(text=part.text("prompt", "")))
                case _:
                    if kind not in _PASSED:
                        self.leave_out(f"“{kind[:40]}” part of a message")
        if parts := [part for part in parts if part is not None]:
            name = "opencode:synthetic" if synthetic else None
            self.follow(
                UserEntry(
                    parts=tuple(parts), synthetic=name, created_at=info.node("time").time("created")
                )
            )

    def _file(self, part: Node) -> ImagePart | FilePart | None:
        """Return a message's file part as an image or a mention; None if the part is left out."""
        url = part.text("url", "")
        mime = part.text("mime", "")
        name = part.text("filename", "")
        if url.startswith("data:image/") and ";base64," in url:
            return self.image(part, url.partition(";base64,")[2], mime)
        if url.startswith("data:"):
            self.leave_out("attachment that is not an image")
            return None
        # The text is empty, because the file's content, as the model saw it, is in a separate text
        # part.
        return FilePart(path=name or url[:200], text="")

    def _assistant(self, info: Node, message: Node) -> None:
        model = f"{info.text('providerID', '')}/{info.text('modelID', '')}".strip("/")
        time = info.node("time")
        parts: list[Any] = []
        tools: list[Node] = []
        for part in message.nodes("parts"):
            match kind := part.text("type"):
                case "text" if part.text("text"):
                    parts.append(TextPart(text=part.text("text")))
                case "reasoning":
                    parts.append(ReasoningPart(text=part.text("text", ""), model=model))
                case "tool":
                    if tools and parts and isinstance(parts[-1], TextPart | ReasoningPart):
                        # Older versions stored all steps of a turn in one message. Each of the
                        # steps becomes an answer.
                        self._answer(info, model, parts[:-1], tools, time)
                        parts = parts[-1:]
                        tools = []
                    call_id = part.text("callID", "") or part.text("id")
                    parts.append(
                        self.call(
                            call_id, part.text("tool"), part.node("state").node("input").value
                        )
                    )
                    tools.append(part)
                case _ if kind not in _PASSED and kind != "text":
                    self.leave_out(f"“{kind[:40]}” part of an answer")
        if info.flag("summary"):
            summary = joined_text(parts)
            self.follow(summary_of(summary, time.time("created")))
        else:
            self._answer(info, model, parts, tools, time, last=True)

    def _answer(
        self,
        info: Node,
        model: str,
        parts: list[Any],
        tools: list[Node],
        time: Node,
        *,
        last: bool = False,
    ) -> None:
        """Add an answer and the results of its calls.

        Does nothing if there are neither parts nor an error. ``last`` is True for the last step of
        a message, whose answer receives the message's usage, cost and error.
        """
        failure = info.node("error") if last else NOTHING
        aborted = failure.text("name", "") == "MessageAbortedError"
        error = None
        if last and info.has("error"):
            error = (
                failure.node("data").text("message", "")
                or failure.text("name", "")
                or "The request failed."
            )
        if not parts and error is None:
            return
        if aborted:
            finish = "interrupted"
        elif error:
            finish = "error"
        elif tools:
            finish = "tool_calls"
        else:
            finish = _FINISH.get(info.text("finish", ""), "stop")
        entry = AssistantEntry(
            parts=tuple(parts),
            model=model,
            usage=_usage(info.node("tokens")) if last else None,
            cost=(info.number("cost") or None) if last else None,
            finish=finish,
            error=error,
            interrupted=aborted,
            created_at=time.time("created"),
        )
        self.follow(entry)
        for tool in tools:
            self._result(tool)

    def _result(self, part: Node) -> None:
        state = part.node("state")
        status = state.text("status", "")
        if status in _NOT_RUN:
            return  # Requests and screens show a call without a result as interrupted.
        images = [self._file(item) for item in state.nodes("attachments")]
        output = state.text("error" if status == "error" else "output", "")
        began = state.node("time").time("start")
        ended = state.node("time").time("end")
        entry = self.result(
            part.text("callID", "") or part.text("id"),
            output,
            ended,
            failed=status == "error",
            attachments=tuple(image for image in images if isinstance(image, ImagePart)),
            started_at=began,
            ended_at=ended,
        )
        diff = state.node("metadata").value.get("diff")
        if isinstance(diff, str) and diff:
            entry = entry.model_copy(
                update={"metadata": entry.metadata.model_copy(update={"diff": diff})}
            )
        self.follow(entry.model_copy(update={"title": state.text("title", "") or entry.title}))


def _usage(tokens: Node) -> Usage | None:
    flat = Node({**tokens.node("cache").value, **tokens.value}, tokens.where)
    return usage_of(flat, _USAGE)
