"""Writes a session as Pi keeps its own: JSON lines of version 3, which ``pi --session FILE`` opens and goes on with.

Entries keep their numbers as Pi's eight hexadecimal digits. What Pi has no record for (heads, prunes, edits of the
view, modes, checkpoints) is left out: what hung below it hangs below the entry above it.
"""

from collections.abc import Callable, Iterator
from typing import Any

from tui_agent.session.effort import Effort
from tui_agent.session.entries import (
    AssistantEntry,
    AssistantPart,
    BranchSummaryEntry,
    CompactionEntry,
    EffortChangeEntry,
    Entry,
    ModelChangeEntry,
    ReasoningPart,
    ShellEntry,
    SummaryDetails,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    Usage,
    UserEntry,
    UserPart,
)
from tui_agent.session.formats.copies import SessionCopy, arguments_object, iso_time, json_line

VERSION = 3
OUR_PREFIX = "tui-agent:"
"""Begins the type of a message that the program wrote on the user's behalf."""

_STOP = {"length": "length", "error": "error", "interrupted": "aborted"}
"""Why an answer ended, in Pi's words; all else is its “stop”."""

_Record = dict[str, Any]


def write(copy: SessionCopy, put: Callable[[str], object]) -> None:
    for record in _Writer(copy).records():
        put(json_line(record))


class _Writer:
    def __init__(self, copy: SessionCopy) -> None:
        self._copy = copy
        self._written: dict[int, int | None] = {}
        """For each entry the one that stands for it: itself, or the nearest one above it that is written."""
        self._parents = {entry.id: entry.parent_id for entry in copy.entries}

    def records(self) -> Iterator[_Record]:
        copy, info = self._copy, self._copy.info
        at = iso_time(info.created_at)
        yield {"type": "session", "version": VERSION, "id": info.id, "timestamp": at, "cwd": info.cwd}
        for entry in copy.entries:
            above = self._stands_for(entry.parent_id)
            record = self._record(entry)
            self._written[entry.id] = above if record is None else entry.id
            if record is not None:
                yield _node(entry.id, above, entry.created_at, record)
        # Pi goes on where its last record is, so what belongs to the session as a whole hangs below the leaf.
        last, number = self._stands_for(copy.leaf), copy.last_id
        for entry_id, label in copy.labels.items():
            if (target := self._stands_for(entry_id)) is not None:
                number += 1
                record = {"type": "label", "targetId": _name(target), "label": label}
                yield _node(number, last, info.updated_at, record)
                last = number
        record = {"type": "session_info", "name": info.title}
        yield _node(number + 1, last, info.updated_at, record)

    def _stands_for(self, entry_id: int | None) -> int | None:
        return None if entry_id is None else self._written.get(entry_id)

    def _record(self, entry: Entry) -> _Record | None:
        """Return what Pi keeps for an entry, without its place in the tree; None when it has nothing for it."""
        record: _Record | None = None
        match entry:
            case UserEntry():
                record = self._said(entry)
            case AssistantEntry():
                record = _message(entry, _answer(entry))
            case ToolResultEntry():
                record = _message(
                    entry,
                    {
                        "role": "toolResult",
                        "toolCallId": entry.call_id,
                        "toolName": entry.tool,
                        "content": [_text(entry.output), *map(self._part, entry.attachments)],
                        "isError": entry.status is not ToolStatus.COMPLETED,
                    },
                )
            case ShellEntry():
                shell = {"role": "bashExecution", "command": entry.command, "output": entry.output}
                code = {} if entry.exit_code is None else {"exitCode": entry.exit_code}
                excluded = {"excludeFromContext": True} if entry.excluded else {}
                record = _message(entry, {**shell, **code, "cancelled": False, "truncated": False, **excluded})
            case CompactionEntry():
                record = self._compaction(entry)
            case BranchSummaryEntry():
                left = self._stands_for(entry.from_id)
                record = {
                    "type": "branch_summary",
                    "fromId": "root" if left is None else _name(left),
                    "summary": entry.summary,
                    "details": _details(entry.details),
                }
            case ModelChangeEntry(model=model):
                provider, name = _model(model)
                record = {"type": "model_change", "provider": provider, "modelId": name}
            case EffortChangeEntry(effort=Effort() as effort):
                level = "xhigh" if effort is Effort.MAX else effort.value
                record = {"type": "thinking_level_change", "thinkingLevel": level}
            case _:
                pass
        return record

    def _said(self, entry: UserEntry) -> _Record:
        content = [self._part(part) for part in entry.parts]
        if entry.synthetic is None:
            return _message(entry, {"role": "user", "content": content})
        name = entry.synthetic.removeprefix("pi:")
        kind = name if name != entry.synthetic else f"{OUR_PREFIX}{name}"
        return {"type": "custom_message", "customType": kind, "content": content, "display": False}

    def _part(self, part: UserPart) -> _Record:
        shown = self._copy.shown(part)
        if isinstance(shown, TextPart):
            return _text(shown.text)
        return {"type": "image", "data": self._copy.base64(shown), "mimeType": shown.mime}

    def _compaction(self, entry: CompactionEntry) -> _Record:
        kept = None if entry.first_kept_id is None else self._first_written(entry)
        return {
            "type": "compaction",
            "summary": entry.summary,
            "firstKeptEntryId": "" if kept is None else _name(kept),
            "tokensBefore": entry.tokens_before,
            "details": _details(entry.details),
        }

    def _first_written(self, entry: CompactionEntry) -> int | None:
        """Return the first entry from the first kept one on, on the way to a compaction, that Pi has a record of."""
        found, at = None, entry.parent_id
        while at is not None:
            found = at if self._written.get(at) == at else found
            at = None if at == entry.first_kept_id else self._parents.get(at)
        return found


def _node(number: int, parent: int | None, at: int, record: _Record) -> _Record:
    place = {"id": _name(number), "parentId": None if parent is None else _name(parent), "timestamp": iso_time(at)}
    return {"type": record["type"], **place, **record}


def _name(number: int) -> str:
    return f"{number:08x}"


def _text(text: str) -> _Record:
    return {"type": "text", "text": text}


def _message(entry: Entry, message: _Record) -> _Record:
    return {"type": "message", "message": {**message, "timestamp": entry.created_at}}


def _model(name: str) -> tuple[str, str]:
    provider, slash, rest = name.partition("/")
    return (provider, rest) if slash else ("", name)


def _answer(entry: AssistantEntry) -> _Record:
    provider, model = _model(entry.model)
    usage = entry.usage or Usage()
    # Pi passes over answers that failed, and would be left with the results of their calls.
    stop = "toolUse" if entry.tool_calls else _STOP.get(entry.finish, "stop")
    return {
        "role": "assistant",
        "content": [_assistant_part(part) for part in entry.parts],
        # Of no wire of Pi's: it then sends reasoning as text, which needs no signature.
        "api": "tui-agent",
        "provider": provider,
        "model": model,
        "usage": {
            "input": usage.input,
            "output": usage.output,
            "cacheRead": usage.cache_read,
            "cacheWrite": usage.cache_write,
            "totalTokens": usage.total,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": entry.cost or 0},
        },
        "stopReason": stop,
        **({"errorMessage": entry.error} if entry.error else {}),
    }


def _assistant_part(part: AssistantPart) -> _Record:
    match part:
        case ReasoningPart(text=text):
            return {"type": "thinking", "thinking": text}
        case ToolCallPart():
            return {
                "type": "toolCall",
                "id": part.call_id,
                "name": part.tool,
                "arguments": arguments_object(part.arguments),
            }
        case _:
            return _text(part.text)


def _details(details: SummaryDetails) -> dict[str, list[str]]:
    return {"readFiles": list(details.read_files), "modifiedFiles": list(details.modified_files)}
