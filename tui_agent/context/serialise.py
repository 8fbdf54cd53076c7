"""A summariser's task for a compaction or a branch, and the conversation as plain text for it to describe."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from tui_agent.context.arguments import parse_object
from tui_agent.context.compaction import CompactionPlan
from tui_agent.context.rendering import image_label, masked_text
from tui_agent.context.settings import CompactionSettings
from tui_agent.context.summariser import THINKING, InputMode, SummaryTask
from tui_agent.context.templates import Templates
from tui_agent.context.truncation import cut_middle
from tui_agent.context.view import ContextView, EntryState
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

_PREFIX_SHARE = 0.3
"""Part of a summary's length that the earlier part of a split turn gets, when there is history
before it."""
_INTERRUPTED = f"[Tool result]: {INTERRUPTED_OUTPUT}"
RESULT_CHARS = 2_000
"""Characters of a tool result a summariser reads."""
ARGUMENT_CHARS = 1_000
"""Characters of one call's arguments a summariser reads."""


def compaction_tasks(
    plan: CompactionPlan, mode: InputMode, templates: Templates | None = None
) -> tuple[SummaryTask, ...]:
    """Return the tasks of a compaction: the history, and the turn's earlier part when the cut splits a turn.

    A live conversation is summarised in one go, whether or not the turn is split. With a previous
    summary the task is to update it.
    """
    focus = plan.instructions or ""
    previous = plan.previous_summary
    history = blocks_of(plan.history, plan.view, plan.settings.compaction, templates)
    prefix = blocks_of(plan.turn_prefix, plan.view, plan.settings.compaction, templates)
    prompt: Literal["compaction", "compaction_update"] = (
        "compaction_update" if previous else "compaction"
    )
    if mode == "live":
        return (SummaryTask(prompt, (*history, *prefix), previous, focus, live=True),)
    if not prefix:
        return (SummaryTask(prompt, history, previous, focus),)
    note = SummaryTask(
        "turn_prefix", prefix, focus=focus, share=_PREFIX_SHARE if history or previous else 1.0
    )
    if not history and not previous:
        return (note,)
    return (SummaryTask(prompt, history, previous, focus, share=1 - _PREFIX_SHARE), note)


def blocks_of(
    entries: Sequence[Entry],
    view: ContextView,
    settings: CompactionSettings,
    templates: Templates | None = None,
) -> tuple[str, ...]:
    """Return entries as text for a summariser, without those the user took out of the model's view."""
    replaced = {
        entry.id: None
        if view.state(entry.id) is EntryState.DROPPED
        else masked_text(entry, templates or Templates())
        for entry in entries
        if view.state(entry.id) in {EntryState.DROPPED, EntryState.MASKED}
    }
    hidden_calls = {
        (entry_id, result.call_id)
        for entry_id, row in view.results.items()
        for result in row
        if result is not None and view.state(result.id) is EntryState.DROPPED
    }
    return serialise(
        entries,
        result_chars=settings.result_chars,
        argument_chars=settings.argument_chars,
        replaced=replaced,
        hidden_calls=hidden_calls,
    )


def serialise(
    entries: Iterable[Entry],
    *,
    result_chars: int = RESULT_CHARS,
    argument_chars: int = ARGUMENT_CHARS,
    replaced: Mapping[int, str | None] | None = None,
    hidden_calls: Collection[tuple[int, str]] = (),
) -> tuple[str, ...]:
    """Return one block of text per entry that says something, in order; join them with blank lines.

    ``replaced`` maps the id of an entry the user changed in the model's view to its replacement,
    None for nothing; ``hidden_calls`` are the calls, by entry and call id, that went with a dropped
    result. Calls that never got a result are marked as interrupted where the next message begins.
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
                output = "\n".join(
                    [cut_middle(entry.output, result_chars), *map(image_label, entry.attachments)]
                )
                blocks.append(f"[Tool result]: {output}")
            case AssistantEntry():
                blocks += [_INTERRUPTED] * len(open_calls)
                hidden = entry.id in replaced
                calls = [
                    call
                    for call in entry.tool_calls
                    if (entry.id, call.call_id) not in hidden_calls
                ]
                blocks += (
                    _replacement(entry, replaced[entry.id])
                    if hidden
                    else _assistant(entry, calls, argument_chars)
                )
                if hidden:
                    open_calls = {}
                else:
                    open_calls = {call.call_id: None for call in calls}
            case UserEntry() | ShellEntry() | BranchSummaryEntry() | CompactionEntry():
                blocks += [_INTERRUPTED] * len(open_calls)
                open_calls = {}
                blocks += _message(entry, result_chars)
            case _:
                continue
    return (*blocks, *[_INTERRUPTED] * len(open_calls))


def _replacement(entry: Entry, text: str | None) -> list[str]:
    if text is None:
        return []
    role = {"tool_result": "Tool result", "assistant": "Assistant"}.get(entry.kind, "User")
    return [f"[{role}]: {text}"]


def _message(
    entry: UserEntry | ShellEntry | BranchSummaryEntry | CompactionEntry, result_chars: int
) -> list[str]:
    match entry:
        case UserEntry():
            text = "\n".join(_user_part(part, result_chars) for part in entry.parts)
            if text.strip():
                return [f"[User]: {text}"]
            return []
        case ShellEntry():
            if entry.excluded:
                return []
            if entry.exit_code is None:
                code = ""
            else:
                code = f" (exit code {entry.exit_code})"
            return [
                f"[User]: ran `{entry.command}`{code}\n{cut_middle(entry.output, result_chars)}".rstrip()
            ]
        case BranchSummaryEntry():
            return [f"[Summary of a branch that was left]: {entry.summary}"]
        case CompactionEntry():
            return []


def _user_part(part: TextPart | FilePart | ImagePart, limit: int) -> str:
    match part:
        case TextPart():
            return part.text
        case FilePart():
            return f"@{part.path}\n{cut_middle(part.text, limit)}"
        case ImagePart():
            return image_label(part)


def _assistant(
    entry: AssistantEntry, calls: Sequence[ToolCallPart], argument_chars: int
) -> list[str]:
    reasoning = [part.text for part in entry.parts if isinstance(part, ReasoningPart)]
    thoughts = "\n".join(text for text in reasoning if text.strip())
    blocks = []
    if thoughts:
        blocks = [f"{THINKING}{thoughts}"]
    if entry.text.strip():
        blocks.append(f"[Assistant]: {entry.text.strip()}")
    described: list[str] = []
    for call in calls:
        given = call.arguments
        arguments = parse_object(call.arguments)
        if arguments is not None:
            given = ", ".join(
                f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items()
            )
        described.append(f"{call.tool}({cut_middle(given, argument_chars)})")
    if described:
        blocks.append(f"[Assistant tool calls]: {'; '.join(described)}")
    return blocks
