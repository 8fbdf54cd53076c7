"""Entries with the ids that a test names: a path is a list that can be read."""

from typing import Any

from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    ContextEditEntry,
    PruneEntry,
    SummaryDetails,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)

MODEL = "openai/gpt-4o"


def user(number: int, text: str = "hello", **fields: Any) -> UserEntry:
    return UserEntry(id=number, parts=(TextPart(text=text),) if text else (), **fields)


def call(call_id: str, arguments: str = "{}", tool: str = "read") -> ToolCallPart:
    return ToolCallPart(call_id=call_id, tool=tool, arguments=arguments)


def answer(
    number: int, text: str = "ok", *calls: ToolCallPart | str, **fields: Any
) -> AssistantEntry:
    """Return an answer; of a call its id is enough."""
    asked = tuple(call(one) if isinstance(one, str) else one for one in calls)
    parts = (*((TextPart(text=text),) if text else ()), *asked)
    return AssistantEntry(**{"id": number, "parts": parts, "model": MODEL} | fields)


def result(number: int, call_id: str, output: str = "data", **fields: Any) -> ToolResultEntry:
    values = {"tool": "read", "status": ToolStatus.COMPLETED} | fields
    return ToolResultEntry(id=number, call_id=call_id, output=output, **values)


def edit(number: int, target: int, action: Any) -> ContextEditEntry:
    return ContextEditEntry(id=number, target=target, action=action)


def prune(number: int, *targets: int, keep_chars: int = 0) -> PruneEntry:
    return PruneEntry(
        id=number, targets=targets, tokens_freed=1, reason="pressure", keep_chars=keep_chars
    )


def compaction(
    number: int, first_kept: int | None, summary: str = "We fixed it.", **details: Any
) -> CompactionEntry:
    size = {
        "tokens_before": 9,
        "tokens_after": 1,
        "trigger": "manual",
        "details": SummaryDetails(**details),
    }
    return CompactionEntry(id=number, summary=summary, first_kept_id=first_kept, **size)
