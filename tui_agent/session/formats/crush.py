"""Crush's database: a table of sessions, and one of messages whose parts are JSON with a type and its data.

Taken from Crush's migrations and its encoding of messages; columns that came later are used where they are.
"""

import json
import sqlite3
from collections.abc import Iterator
from functools import partial
from typing import Any

from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    Entry,
    ReasoningPart,
    ShellEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.formats.incoming import Builder, IncomingSession, derived_id
from tui_agent.session.formats.reading import ImportLimits, Node, parse_object
from tui_agent.session.formats.source import SourceFile, column
from tui_agent.session.formats.tools import CallFacts, facts_of

__all__ = ["TABLES", "project_of", "read"]

TABLES = {
    "sessions": frozenset({"id", "parent_session_id", "title", "message_count", "created_at"}),
    "messages": frozenset({"id", "session_id", "role", "parts", "created_at"}),
}
"""What tells the database from others."""

_PROGRAM = "Crush"
_FINISH = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "canceled": "interrupted",
    "error": "error",
}
_SECONDS = 10**11
"""Times below it are seconds; some versions write milliseconds."""


def read(source: SourceFile) -> Iterator[IncomingSession]:
    """Make sessions of a database, one after the other.

    Raises:
        ImportRefused: it can't be read, or a message is not what it should be.
    """
    with source.database() as connection:
        for row in connection.execute("SELECT * FROM sessions ORDER BY created_at, id").fetchall():
            session = source.attempt(partial(_of_row, connection, row, source))
            if session is None:
                continue
            session.cwd = column(row, "workspace_cwd") or project_of(source)
            if parent := row["parent_session_id"]:
                at = connection.execute("SELECT created_at FROM sessions WHERE id = ?", (parent,)).fetchone()
                if at is not None:
                    session.origin = (derived_id(_milliseconds(at[0]), _PROGRAM, parent), None, "crush")
            if len(session.entries):
                yield session


def _of_row(connection: sqlite3.Connection, row: sqlite3.Row, source: SourceFile) -> IncomingSession:
    reader = _Reader(source.limits, skip_damaged=source.skip_damaged)
    return reader.read(connection, row, f"{source.path.name}, session “{str(row['id'])[:40]}”")


def project_of(source: SourceFile) -> str:
    """Return the directory a database belongs to: it is kept in the project's ``.crush``."""
    folder = source.path.absolute().parent
    return str(folder.parent if folder.name == ".crush" else folder)


class _Reader:
    def __init__(self, limits: ImportLimits, *, skip_damaged: bool = False) -> None:
        self._make = Builder(_PROGRAM, limits)
        self._skip = skip_damaged
        self._calls: dict[str, CallFacts] = {}

    def read(self, connection: sqlite3.Connection, row: sqlite3.Row, where: str) -> IncomingSession:
        messages = connection.execute(
            "SELECT rowid, * FROM messages WHERE session_id = ? ORDER BY created_at, rowid", (row["id"],)
        )
        for number, message in enumerate(messages, 1):
            place = f"{where}, message {number}"
            self._make.tolerate(partial(self._message, message, place), place, skip=self._skip)
        session = self._make.finish(
            name=str(row["id"]),
            cwd="",
            title=str(row["title"] or ""),
            created_at=_milliseconds(row["created_at"]),
            leaf=self._make.last,
        )
        session.side_cost = max(0.0, float(column(row, "cost") or 0))
        return session

    def _message(self, row: sqlite3.Row, where: str) -> None:
        content = row["parts"]
        data = content if isinstance(content, bytes) else str(content).encode()
        parts = [
            (part.text("type", ""), part.node("data"))
            for part in parse_object(b'{"parts":' + data + b"}", where).nodes("parts")
        ]
        at = _milliseconds(row["created_at"])
        role = row["role"]
        if role == "assistant":
            self._assistant(row, parts, at)
        elif role in {"user", "tool"}:
            self._said(parts, at)
        else:
            self._make.leave_out(f"message of “{str(role)[:40]}”")

    def _assistant(self, row: sqlite3.Row, parts: list[tuple[str, Node]], at: int) -> None:
        model = "/".join(filter(None, (column(row, "provider"), row["model"])))
        found: list[Any] = []
        finish, error = "stop", None
        for kind, data in parts:
            match kind:
                case "text":
                    if text := data.text("text", ""):
                        found.append(TextPart(text=text))
                case "reasoning":
                    if text := data.text("thinking", ""):
                        found.append(ReasoningPart(text=text, model=model))
                case "tool_call":
                    call = ToolCallPart(
                        call_id=data.text("id", ""), tool=data.text("name", ""), arguments=data.text("input", "")
                    )
                    self._calls[call.call_id] = CallFacts(call.tool, *facts_of(call))
                    found.append(call)
                case "finish":
                    finish = _FINISH.get(data.text("reason", ""), "stop")
                    error = ": ".join(filter(None, (data.text("message", ""), data.text("details", "")))) or None
                case _:
                    self._make.leave_out(f"“{kind[:40]}” part of an answer")
        if column(row, "is_summary_message"):
            summary = "\n".join(part.text for part in found if isinstance(part, TextPart))
            entry: Entry = CompactionEntry(
                summary=summary, first_kept_id=None, tokens_before=0, tokens_after=0, trigger="manual", created_at=at
            )
            self._make.add(entry, self._make.last)
        elif found or error:
            entry = AssistantEntry(
                parts=tuple(found),
                model=model,
                finish=finish,
                error=error if finish == "error" else None,
                interrupted=finish == "interrupted",
                created_at=at,
            )
            self._make.add(entry, self._make.last)

    def _said(self, parts: list[tuple[str, Node]], at: int) -> None:
        texts: list[Any] = []
        hidden = True
        for kind, data in parts:
            match kind:
                case "text":
                    texts.append(TextPart(text=data.text("text", "")))
                    hidden = hidden and data.flag("hidden")
                case "binary":
                    self._binary(data, texts)
                    hidden = False
                case "tool_result":
                    self._result(data, at)
                case "shell_command":
                    entry = ShellEntry(
                        command=data.text("command", ""),
                        output=data.text("output", ""),
                        exit_code=int(data.number("exit_code")),
                        created_at=at,
                    )
                    self._make.add(entry, self._make.last)
                case "finish":
                    pass
                case _:
                    self._make.leave_out(f"“{kind[:40]}” part of a message")
        if any(not isinstance(part, TextPart) or part.text for part in texts):
            synthetic = "crush:continuation" if hidden else None
            self._make.add(UserEntry(parts=tuple(texts), synthetic=synthetic, created_at=at), self._make.last)

    def _binary(self, data: Node, texts: list[Any]) -> None:
        if image := self._make.image(data, data.text("Data", ""), data.text("MIMEType", "")):
            texts.append(image)

    def _result(self, data: Node, at: int) -> None:
        call_id = data.text("tool_call_id", "")
        call = self._calls.pop(call_id, CallFacts())
        metadata = call.metadata
        try:
            told = json.loads(data.text("metadata", "") or "{}")
        except ValueError:
            told = {}
        if isinstance(told, dict) and isinstance(diff := told.get("diff"), str) and diff:
            metadata = metadata.model_copy(update={"diff": diff})
        entry = ToolResultEntry(
            call_id=call_id,
            tool=call.tool or data.text("name", ""),
            status=ToolStatus.ERROR if data.flag("is_error") else ToolStatus.COMPLETED,
            output=data.text("content", ""),
            title=call.title,
            metadata=metadata,
            created_at=at,
        )
        self._make.add(entry, self._make.last)


def _milliseconds(value: object) -> int:
    number = int(value) if isinstance(value, int | float) and value > 0 else 0
    return number * 1000 if number < _SECONDS else number
