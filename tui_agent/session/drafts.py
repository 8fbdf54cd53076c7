"""Saves the answer that is being streamed as a draft, so that a crash loses only its newest text.

The functions run in the caller's transaction. `Session` saves a draft, deletes it when the answer
is appended, and appends drafts left by programs that have ended (`Session.recover`).
"""

import json
import sqlite3
from contextlib import suppress

from tui_agent.json_text import loads
from tui_agent.session.entries import (
    AssistantEntry,
    AssistantPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
)
from tui_agent.session.records import DraftText


def save(
    connection: sqlite3.Connection,
    session: int,
    origin: tuple[str, int | None],
    text: DraftText,
    at: int,
) -> None:
    """Store the draft of an answer, replacing the previous draft of the same writer.

    ``origin`` consists of the writer's name and the id of the entry that the answer will follow.
    The id is None at the beginning of the session.
    """
    body = {
        name: getattr(text, name)
        for name in ("text", "reasoning", "model", "started_at", "estimate")
    }
    body["calls"] = [[call.call_id, call.tool, call.arguments] for call in text.calls]
    connection.execute(
        "INSERT OR REPLACE INTO drafts (session, writer, leaf, updated_at, body) VALUES (?, ?, ?, ?, ?)",
        (session, *origin, at, json.dumps(body)),
    )


def clear(connection: sqlite3.Connection, session: int, writer: str) -> bool:
    """Delete a writer's draft; return True if there was one.

    A draft is the saved part of an unfinished answer.
    """
    deleted = connection.execute(
        "DELETE FROM drafts WHERE session = ? AND writer = ?", (session, writer)
    )
    return deleted.rowcount > 0


def load(connection: sqlite3.Connection, session: int) -> list[tuple[str, int | None, DraftText]]:
    """Return each draft of a session, with its writer and the id of the entry before the answer.

    Each item is (writer, id, draft). The oldest draft comes first. The id is None if the answer is
    the session's first entry. A damaged draft is returned as an empty one.
    """
    rows = connection.execute(
        "SELECT writer, leaf, body FROM drafts WHERE session = ? ORDER BY updated_at, writer",
        (session,),
    ).fetchall()
    found: list[tuple[str, int | None, DraftText]] = []
    for writer, leaf, body in rows:
        try:
            fields = json.loads(body)
            calls = tuple(
                ToolCallPart(call_id=i, tool=t, arguments=a) for i, t, a in fields.pop("calls")
            )
            draft = DraftText(**fields, calls=calls)
        except (ValueError, TypeError, KeyError, AttributeError):
            draft = DraftText()
        found.append((writer, leaf, draft))
    return found


def entry_of(draft: DraftText) -> AssistantEntry | None:
    """Return a draft as an interrupted answer; None if it has no text, reasoning or call.

    Calls whose arguments are not yet a complete JSON object are left out.
    """
    parts: list[AssistantPart] = []
    if draft.reasoning:
        parts.append(ReasoningPart(text=draft.reasoning, model=draft.model))
    if draft.text:
        parts.append(TextPart(text=draft.text))
    for call in draft.calls:
        with suppress(ValueError):
            parts += [call] if isinstance(loads(call.arguments), dict) else []
    if not parts:
        return None
    return AssistantEntry(
        parts=tuple(parts),
        model=draft.model,
        finish="interrupted",
        interrupted=True,
        estimate=draft.estimate,
        started_at=draft.started_at,
    )
