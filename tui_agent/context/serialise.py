"""Turns a stretch of the conversation into plain text that a summariser describes instead of continuing it."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from tui_agent.context.arguments import parse_object
from tui_agent.session.entries import (
    INTERRUPTED_OUTPUT,
    AssistantEntry,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    FilePart,
    ImagePart,
    ReasoningPart,
    ShellEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    UserEntry,
)

RESULT_CHARS = 2_000
"""Characters of a tool result a summariser reads."""
ARGUMENT_CHARS = 1_000
"""Characters of one call's arguments a summariser reads."""


def cut(text: str, limit: int) -> str:
    """Return ``text`` within about ``limit`` characters: its start, what is missing, and its end.

    Both ends stay because a command's error is at its end and a file's purpose at its start.
    """
    if len(text) <= limit:
        return text
    tail = limit // 3
    missing = len(text) - limit
    return f"{text[: limit - tail]}\n[... {missing} characters left out ...]\n{text[len(text) - tail :]}"


def serialise(
    entries: Iterable[Entry],
    *,
    result_chars: int = RESULT_CHARS,
    argument_chars: int = ARGUMENT_CHARS,
    replaced: Mapping[int, str | None] | None = None,
    hidden_calls: Collection[tuple[int, str]] = (),
) -> tuple[str, ...]:
    """Return one block of text per entry that says something, in order; join them with blank lines.

    ``replaced`` maps the id of an entry the user changed in the model's view to what stands in its place, None for
    nothing; ``hidden_calls`` are the calls, by entry and call id, that went with a dropped result. Calls that never
    got a result are marked as interrupted where the next message begins.
    """
    replaced = replaced or {}
    blocks: list[str] = []
    open_calls: dict[str, None] = {}
    for entry in entries:
        if entry.id in replaced and not isinstance(entry, AssistantEntry):
            if isinstance(entry, ToolResultEntry):
                open_calls.pop(entry.call_id, None)
            blocks += _replacement(entry, replaced[entry.id])
            continue
        match entry:
            case ToolResultEntry():
                open_calls.pop(entry.call_id, None)
                blocks.append(f"[Tool result]: {_output(entry, result_chars)}")
            case AssistantEntry():
                blocks += _interrupted(open_calls)
                hidden = entry.id in replaced
                calls = [call for call in entry.tool_calls if (entry.id, call.call_id) not in hidden_calls]
                blocks += (
                    _replacement(entry, replaced[entry.id]) if hidden else _assistant(entry, calls, argument_chars)
                )
                open_calls = {} if hidden else {call.call_id: None for call in calls}
            case UserEntry() | ShellEntry() | BranchSummaryEntry() | CompactionEntry():
                blocks += _interrupted(open_calls)
                open_calls = {}
                blocks += _message(entry, result_chars)
            case _:
                continue
    return (*blocks, *_interrupted(open_calls))


def _replacement(entry: Entry, text: str | None) -> list[str]:
    if text is None:
        return []
    role = {"tool_result": "Tool result", "assistant": "Assistant"}.get(entry.kind, "User")
    return [f"[{role}]: {text}"]


def _message(entry: UserEntry | ShellEntry | BranchSummaryEntry | CompactionEntry, result_chars: int) -> list[str]:
    match entry:
        case UserEntry():
            text = "\n".join(_user_part(part, result_chars) for part in entry.parts)
            return [f"[User]: {text}"] if text.strip() else []
        case ShellEntry():
            if entry.excluded:
                return []
            code = "" if entry.exit_code is None else f" (exit code {entry.exit_code})"
            return [f"[User]: ran `{entry.command}`{code}\n{cut(entry.output, result_chars)}".rstrip()]
        case BranchSummaryEntry():
            return [f"[Summary of a branch that was left]: {entry.summary}"]
        case CompactionEntry():
            return []


def _user_part(part: TextPart | FilePart | ImagePart, limit: int) -> str:
    match part:
        case TextPart():
            return part.text
        case FilePart():
            return f"@{part.path}\n{cut(part.text, limit)}"
        case ImagePart():
            return image_note(part)


def image_note(image: ImagePart) -> str:
    """Return what stands for an image in plain text."""
    size = f", {image.width}x{image.height}" if image.width and image.height else ""
    return f"[image: {image.path or image.blob[:12]}{size}]"


def _assistant(entry: AssistantEntry, calls: Sequence[ToolCallPart], argument_chars: int) -> list[str]:
    reasoning = [part.text for part in entry.parts if isinstance(part, ReasoningPart)]
    thoughts = "\n".join(text for text in reasoning if text.strip())
    blocks = [f"[Assistant thinking]: {thoughts}"] if thoughts else []
    if entry.text.strip():
        blocks.append(f"[Assistant]: {entry.text.strip()}")
    if calls:
        told = "; ".join(_call(call, argument_chars) for call in calls)
        blocks.append(f"[Assistant tool calls]: {told}")
    return blocks


def _call(call: ToolCallPart, limit: int) -> str:
    arguments = parse_object(call.arguments)
    if arguments is None:
        return f"{call.tool}({cut(call.arguments, limit)})"
    pairs = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())
    return f"{call.tool}({cut(pairs, limit)})"


def _output(entry: ToolResultEntry, limit: int) -> str:
    images = [image_note(image) for image in entry.attachments]
    return "\n".join([cut(entry.output, limit), *images]) if images else cut(entry.output, limit)


def _interrupted(open_calls: Iterable[str]) -> list[str]:
    return [f"[Tool result]: {INTERRUPTED_OUTPUT}" for _ in open_calls]
