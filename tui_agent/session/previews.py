"""Builds an entry's preview, which is the single line of text that lists show for the entry."""

from pathlib import PurePath

from tui_agent.session.entries import (
    AssistantEntry,
    CheckEntry,
    CheckpointEntry,
    CompactionEntry,
    ContextEditEntry,
    EffortChangeEntry,
    Entry,
    FilePart,
    ImagePart,
    ModeChangeEntry,
    ModelChangeEntry,
    PruneEntry,
    RaceEntry,
    ShellEntry,
    SubagentEntry,
    SummaryEntry,
    SystemEntry,
    TextPart,
    ToolResultEntry,
    UserEntry,
    command_line,
    typed_text,
)

ERROR = "Error: "
"""Prefix of the preview of an answer that has no text and no calls, only an error."""
PREVIEW_LENGTH = 200
"""Maximum number of characters of an entry's preview."""


def preview_of(entry: Entry) -> str:
    """Return an entry's preview, which is one line of at most ``PREVIEW_LENGTH`` characters."""
    return " ".join(_preview_source(entry)[: PREVIEW_LENGTH * 4].split())[:PREVIEW_LENGTH]


def _attachment(part: FilePart | ImagePart) -> str:
    """Return the text that stands for an attachment in a preview.

    This is ``@path`` for a file, ``[image name]`` for an image, and ``[document name]`` for a PDF.
    """
    if isinstance(part, ImagePart):
        if part.path:
            return f"[{part.kind} {PurePath(part.path).name}]"
        return f"[{part.kind}]"
    return f"@{part.path}"


def _preview_source(entry: Entry) -> str:  # noqa: C901, PLR0911, PLR0912 - one arm per kind of a closed union
    match entry:
        case UserEntry():
            if command_line(entry.parts) is not None:
                return typed_text(entry.parts)
            names = [_attachment(part) for part in entry.parts if not isinstance(part, TextPart)]
            return " ".join([entry.text, *names])
        case AssistantEntry():
            calls = " · ".join(f"{call.tool} {call.arguments}" for call in entry.tool_calls)
            return entry.text or calls or (f"{ERROR}{entry.error}" if entry.error else "")
        case ToolResultEntry():
            if entry.title:
                return f"{entry.tool} {entry.title}".strip()
            return f"{entry.tool} {entry.output}"
        case ShellEntry():
            return f"!{entry.command}"
        case CompactionEntry(item=str()):
            return f"by the provider: {entry.summary}"
        case SummaryEntry():
            return entry.summary
        case SystemEntry():
            return f"{entry.model} · {entry.mode}"
        case RaceEntry(winner=winner):
            if winner is None:
                taken = "none taken"
            else:
                taken = f"{winner.name} taken"
            return f"{taken} of {len(entry.runners)} · {entry.prompt}"
        case CheckEntry():
            return f"{'passed' if entry.passed else 'failed'}: {entry.command}"
        case SubagentEntry():
            return f"{entry.agent}: {entry.task}"
        case PruneEntry():
            return f"{entry.effect} · {entry.reason}"
        case ContextEditEntry():
            return entry.note or f"{entry.action} #{entry.target} {entry.text}".rstrip()
        case ModelChangeEntry():
            return entry.label
        case EffortChangeEntry():
            return entry.level
        case ModeChangeEntry():
            return entry.mode
        case CheckpointEntry():
            directories = [f"{change.path}/" for change in entry.directories]
            return " ".join([*[change.path for change in entry.files], *directories])
