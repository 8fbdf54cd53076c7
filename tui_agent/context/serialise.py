"""Writes entries as plain text for a summariser, and builds a compaction's tasks from it.

`BranchSummaryPlan.task` builds the task of a branch summary.
"""

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
    BookkeepingEntry,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    FilePart,
    ImagePart,
    ShellEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    UserEntry,
)

_PREFIX_SHARE = 0.3
"""Share of a summary's length that is used for the beginning of a split turn, if history before the
turn is summarised, too."""
_MESSAGES = (AssistantEntry, UserEntry, ShellEntry, BranchSummaryEntry, CompactionEntry)
_INTERRUPTED = f"[Tool result]: {INTERRUPTED_OUTPUT}"
RESULT_CHARS = 2_000
"""Default maximum number of characters of a tool result in the serialised text."""
ARGUMENT_CHARS = 1_000
"""Default maximum number of characters of the arguments of one call in the serialised text."""


def compaction_tasks(
    plan: CompactionPlan, mode: InputMode, templates: Templates | None = None
) -> tuple[SummaryTask, ...]:
    """Return the tasks of a compaction, for the history and for the prefix of a split turn.

    A single task covers everything if ``mode`` is "live", if there is no prefix, or if there is
    neither history nor a previous summary. If there is a previous summary, the first task is to
    update it.
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
    """Return entries as blocks of text for a summariser.

    ``entries`` are those of ``view``, with the user's edits already applied. Entries that the user
    hid are left out, along with their calls; those that the user cleared become placeholders.
    Outputs that a prune cleared appear with their text.
    """
    replaced: dict[int, str | None] = {}
    for entry in entries:
        state = view.state(entry.id)
        if state is EntryState.DROPPED:
            replaced[entry.id] = None
        elif state is EntryState.MASKED:
            replaced[entry.id] = masked_text(entry, templates or Templates())
    hidden_calls: set[tuple[int, str]] = set()
    for entry_id, row in view.results.items():
        for result in row:
            if result is not None and view.state(result.id) is EntryState.DROPPED:
                hidden_calls.add((entry_id, result.call_id))
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
    """Return entries as blocks of text, in order, to be joined with blank lines.

    ``result_chars`` and ``argument_chars`` are the maximum characters of a result and of a call's
    arguments. ``replaced`` maps ids of entries to the texts that replace them, or to None to leave
    the entry out; ``hidden_calls`` contains (entry id, call id) of calls to leave out. If a call
    has no result, a block that says so precedes the next message.
    """
    replaced = replaced or {}
    blocks: list[str] = []
    open_calls: dict[str, None] = {}
    for entry in entries:
        if isinstance(entry, ToolResultEntry):
            open_calls.pop(entry.call_id, None)
        if isinstance(entry, _MESSAGES):
            blocks += [_INTERRUPTED] * len(open_calls)
            open_calls = {}
        if entry.id in replaced:
            blocks += _replacement(entry, replaced[entry.id])
            continue
        match entry:
            case ToolResultEntry():
                labels = [image_label(image) for image in entry.attachments]
                output = "\n".join([cut_middle(entry.output, result_chars), *labels])
                blocks.append(f"[Tool result]: {output}")
            case AssistantEntry():
                calls: list[ToolCallPart] = []
                for call in entry.tool_calls:
                    if (entry.id, call.call_id) not in hidden_calls:
                        calls.append(call)
                        open_calls[call.call_id] = None
                blocks += _assistant(entry, calls, argument_chars)
            case UserEntry() | ShellEntry() | BranchSummaryEntry() | CompactionEntry():
                blocks += _message(entry, result_chars)
            case BookkeepingEntry():
                pass
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
            code = ""
            if entry.exit_code is not None:
                code = f" (exit code {entry.exit_code})"
            output = cut_middle(entry.output, result_chars)
            return [f"[User]: ran `{entry.command}`{code}\n{output}".rstrip()]
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
    thoughts = "\n".join(part.text for part in entry.reasoning if part.text.strip())
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
            named = [f"{key}={json.dumps(arguments[key], ensure_ascii=False)}" for key in arguments]
            given = ", ".join(named)
        described.append(f"{call.tool}({cut_middle(given, argument_chars)})")
    if described:
        blocks.append(f"[Assistant tool calls]: {'; '.join(described)}")
    return blocks
