"""Exports a session in the formats of Claude Code and Codex, so that they can continue it.

Only one path is written. If the path was compacted, the last summary replaces the entries before
it. Reasoning is left out, because only its own provider can read it, and so are shell commands that
are hidden from the model. The formats are those of Claude Code 2.1 and Codex 0.169.
"""

import base64
import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from tui_agent.json_text import loads
from tui_agent.session.entries import (
    AssistantEntry,
    BookkeepingEntry,
    CompactionEntry,
    Entry,
    FilePart,
    ImagePart,
    ShellEntry,
    SummaryEntry,
    TextPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
    is_by_user,
)
from tui_agent.session.formats.copies import SessionCopy

_CODEX_VERSION = "0.169.0"
_CLAUDE_VERSION = "2.1.330"

_Record = dict[str, Any]
_Put = Callable[[str], object]


def write_claude_code(copy: SessionCopy, put: _Put) -> None:
    """Write the path to the leaf as a session file of Claude Code; call ``put`` with each line."""
    above = None
    answer = 0
    for entry in _seen(copy):
        message: _Record = {"role": "user", "content": _claude_content(copy, entry)}
        if isinstance(entry, AssistantEntry):
            message = {
                "id": f"msg_{entry.id}",
                "type": "message",
                "role": "assistant",
                "model": entry.model.rpartition("/")[2],
                "content": message["content"],
                "stop_reason": "tool_use" if entry.tool_calls else "end_turn",
                "usage": {"input_tokens": 0, "output_tokens": 0},
            }
        if not message["content"]:
            continue
        number = str(uuid.uuid5(uuid.UUID(copy.info.id), str(answer)))
        record = {
            "parentUuid": above,
            "isSidechain": False,
            "userType": "external",
            "cwd": copy.info.cwd,
            "sessionId": copy.info.id,
            "version": _CLAUDE_VERSION,
            "type": message["role"],
            "message": message,
            "uuid": number,
            "timestamp": _iso_time(entry.created_at),
            **({"isCompactSummary": True} if isinstance(entry, CompactionEntry) else {}),
        }
        put(_json_line(record))
        above = number
        answer = answer + 1


def write_codex(copy: SessionCopy, put: _Put) -> None:
    """Write the path to the leaf as a rollout file of Codex; call ``put`` with each line."""

    def line(kind: str, payload: _Record, at: int) -> None:
        put(_json_line({"timestamp": _iso_time(at), "type": kind, "payload": payload}))

    at = copy.info.created_at
    head = {
        "id": copy.info.id,
        "timestamp": _iso_time(at),
        "cwd": copy.info.cwd,
        "originator": "tui-agent",
    }
    # No provider is named, so that Codex continues with the provider in its settings.
    line("session_meta", {**head, "cli_version": _CODEX_VERSION, "source": "cli"}, at)
    for entry in _seen(copy):
        for item in _codex_items(copy, entry):
            line("response_item", item, entry.created_at)
        # Codex sends items to the model, but shows events on the screen, so messages are written as
        # both.
        if isinstance(entry, AssistantEntry) and entry.text:
            line("event_msg", {"type": "agent_message", "message": entry.text}, entry.created_at)
        elif is_by_user(entry):
            line(
                "event_msg",
                {"type": "user_message", "message": entry.text, "images": []},
                entry.created_at,
            )


def _seen(copy: SessionCopy) -> Iterator[Entry]:
    """Yield those entries of the path to the leaf that no summary has replaced.

    After a compaction, the entries are the last summary, the entries that were kept with it, and
    all later ones. Entries that were cleared, hidden or edited are yielded as they were stored.
    """
    path = copy.path()
    last = next((entry for entry in reversed(path) if isinstance(entry, CompactionEntry)), None)
    if last is not None:
        yield last
        kept = last.first_kept_id
        if kept is None or all(entry.id != kept for entry in path):
            kept = last.id
        path = [entry for entry in path if entry.id >= kept]
    for entry in path:
        if not isinstance(entry, CompactionEntry):
            yield entry


def _said(copy: SessionCopy, entry: Entry) -> Iterator[TextPart | ImagePart]:
    """Yield, as texts and images, the parts of an entry that is sent in the user's role.

    Files, shell commands, summaries and missing images become text. Yields nothing for answers,
    tool results, bookkeeping, and shell commands that are hidden from the model.
    """
    match entry:
        case UserEntry():
            for part in entry.parts:
                match part:
                    case FilePart(path=path, text=text):
                        yield TextPart(text=f'<file path="{path}">\n{text}\n</file>')
                    case ImagePart() if copy.blob(part.blob) is None:
                        yield TextPart(
                            text=f"[{part.kind} {part.path or part.mime}: no longer stored]"
                        )
                    case _:
                        yield part
        case ShellEntry():
            if entry.is_sent:
                yield TextPart(text=f"I ran `{entry.command}`:\n{entry.output}")
        case SummaryEntry():
            yield TextPart(text=entry.summary)
        case AssistantEntry() | ToolResultEntry() | BookkeepingEntry():
            pass


def _claude_content(copy: SessionCopy, entry: Entry) -> list[_Record]:
    if isinstance(entry, AssistantEntry):
        said: list[_Record] = []
        if entry.text.strip():
            said.append({"type": "text", "text": entry.text})
        for call in entry.tool_calls:
            given = _arguments(call.arguments)
            said.append({"type": "tool_use", "id": call.call_id, "name": call.tool, "input": given})
        return said
    if isinstance(entry, ToolResultEntry):
        images = [_claude_part(copy, image) for image in _attached(copy, entry)]
        content = [{"type": "text", "text": entry.output or "(no output)"}, *images]
        failed = entry.status is not ToolStatus.COMPLETED
        return [
            {
                "type": "tool_result",
                "tool_use_id": entry.call_id,
                "content": content,
                "is_error": failed,
            }
        ]
    return [_claude_part(copy, part) for part in _said(copy, entry)]


def _claude_part(copy: SessionCopy, part: TextPart | ImagePart) -> _Record:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return {
        "type": part.kind,
        "source": {"type": "base64", "media_type": part.mime, "data": _base64(copy, part)},
    }


def _codex_items(copy: SessionCopy, entry: Entry) -> Iterator[_Record]:
    match entry:
        case AssistantEntry():
            if entry.text:
                yield _codex_message("assistant", [{"type": "output_text", "text": entry.text}])
            for call in entry.tool_calls:
                arguments = json.dumps(_arguments(call.arguments))
                yield {
                    "type": "function_call",
                    "name": call.tool,
                    "arguments": arguments,
                    "call_id": call.call_id,
                }
        case ToolResultEntry():
            yield {"type": "function_call_output", "call_id": entry.call_id, "output": entry.output}
            if images := [_codex_part(copy, image) for image in _attached(copy, entry)]:
                yield _codex_message("user", images)
        case _:
            if said := [_codex_part(copy, part) for part in _said(copy, entry)]:
                yield _codex_message("user", said)


def _codex_message(role: str, content: list[_Record]) -> _Record:
    return {"type": "message", "role": role, "content": content}


def _codex_part(copy: SessionCopy, part: TextPart | ImagePart) -> _Record:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    url = f"data:{part.mime};base64,{_base64(copy, part)}"
    if part.is_document:
        name = PurePath(part.path or "document.pdf").name
        return {"type": "input_file", "filename": name, "file_data": url}
    return {"type": "input_image", "image_url": url}


def _attached(copy: SessionCopy, entry: ToolResultEntry) -> list[ImagePart]:
    """Return the images of a tool result, except those whose blobs have been deleted."""
    return [image for image in entry.attachments if copy.blob(image.blob) is not None]


def _base64(copy: SessionCopy, part: ImagePart) -> str:
    return base64.b64encode(copy.blob(part.blob) or b"").decode("ascii")


def _json_line(record: _Record) -> str:
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n"


def _iso_time(at: int) -> str:
    return (
        datetime.fromtimestamp(at / 1000, tz=UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def _arguments(text: str) -> _Record:
    """Return a tool call's arguments as a JSON object, because the formats allow only objects.

    Another value, or text that is not JSON, becomes ``{"arguments": value}``.
    """
    try:
        value = loads(text)
    except ValueError:
        value = text
    if isinstance(value, dict):
        return value
    return {"arguments": value}
