"""Exports a session as Markdown, and splits it into sections, which the HTML export uses too."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape

from tui_agent.lazy import frozen
from tui_agent.safe_text import one_line, readable
from tui_agent.session.entries import (
    AssistantEntry,
    BookkeepingEntry,
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    EffortChangeEntry,
    Entry,
    FilePart,
    ImagePart,
    ModeChangeEntry,
    ModelChangeEntry,
    PruneEntry,
    ReasoningPart,
    ShellEntry,
    SummaryEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.formats.copies import SessionCopy
from tui_agent.session.previews import preview_of

_EDITS = {
    "drop": "hidden from the model",
    "mask": "cleared in the model's view",
    "pin": "pinned in the model's view",
    "restore": "restored to the model's view",
    "edit": "edited in the model's view",
}

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_SPAN = re.compile(r"(`+)(?:(?!\1)[\s\S])*?\1(?!`)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


@frozen
class Section:
    """Consecutive entries from one branch point to the next, written under one heading.

    ``after`` is the parent of the first entry, None at the session's beginning. ``number`` counts
    the sections of a whole tree from 1; it is 0 if only the current branch is exported.
    """

    entries: Sequence[Entry]
    after: int | None = None
    number: int = 0
    current: bool = False
    """Whether the section's messages are on the current branch."""


def facts_of(copy: SessionCopy) -> tuple[str, list[str], str]:
    """Return a session's title, models in order of use, and cost ("$1.20", "" if there is none)."""
    models: dict[str, None] = {}
    cost = 0.0
    for entry in copy.entries:
        if isinstance(entry, AssistantEntry) and entry.model:
            models[entry.model] = None
        if isinstance(entry, AssistantEntry | SummaryEntry):
            cost += entry.cost or 0
    title = copy.info.title or copy.info.first_message or "Session"
    return title, list(models), f"${cost:.2f}" if cost else ""


def sections_of(copy: SessionCopy, *, whole: bool) -> list[Section]:
    """Return the path to the leaf as one section or, with ``whole``, the sections of the tree.

    In a tree, each section is followed by the sections below it, the current branch first.
    """
    if not whole:
        return [Section(copy.path(), current=True)]
    children: dict[int | None, list[Entry]] = {}
    for entry in copy.entries:
        children.setdefault(entry.parent_id, []).append(entry)
    here = {entry.id for entry in copy.path()}
    sections: list[Section] = []
    waiting: list[tuple[int | None, Entry]] = []
    end = None
    below = children.get(None, [])
    while True:
        # ``waiting`` is a stack, so the branches are pushed in reverse order, and the current
        # branch last.
        ways = sorted(below, key=lambda entry: entry.id not in here)
        waiting += [(end, first) for first in reversed(ways)]
        if not waiting:
            return sections
        after, entry = waiting.pop()
        stretch = [entry]
        while len(below := children.get(stretch[-1].id, [])) == 1:
            stretch.append(below[0])
        sections.append(Section(stretch, after, len(sections) + 1, entry.id in here))
        end = stretch[-1].id


def results_of(entries: Sequence[Entry]) -> dict[str, ToolResultEntry]:
    """Return the tool results among ``entries``, by call id."""
    return {entry.call_id: entry for entry in entries if isinstance(entry, ToolResultEntry)}


def call_facts(arguments: str, result: ToolResultEntry | None) -> tuple[str, str]:
    """Return the title and the status of a tool call.

    The status is "" if the call succeeded, "no result" if ``result`` is None, and otherwise the
    result's status ("error").
    """
    if result is None:
        return arguments, "no result"
    title = result.title or arguments
    if result.status is ToolStatus.COMPLETED:
        return title, ""
    return title, result.status.value


def marker_of(entry: Entry) -> str | None:  # noqa: PLR0911 - one arm per kind
    """Return the line shown for an entry that isn't a message, such as a compaction.

    Returns None for messages, and for entries that are not shown.
    """
    match entry:
        case CompactionEntry():
            size = ""
            if entry.tokens_after:
                size = f": {entry.tokens_before:,} → {entry.tokens_after:,} tokens"
            return f"Compacted ({entry.trigger.replace('_', ' ')}){size}"
        case BranchSummaryEntry():
            return f"Summary of the branch left at #{entry.from_id}"
        case PruneEntry():
            return f"{entry.effect.capitalize()} in the model's view"
        case ContextEditEntry():
            return f"#{entry.target} {_EDITS.get(entry.action, entry.note)}"
        case ModelChangeEntry():
            return f"Model: {entry.label}"
        case EffortChangeEntry():
            return f"Effort: {entry.level}"
        case ModeChangeEntry():
            return f"Mode: {entry.mode}"
        case _ if entry.is_marker:
            return f"{entry.kind.replace('_', ' ').capitalize()}: {preview_of(entry)}"
        case _:
            return None


def when(milliseconds: int) -> str:
    """Return a time as ``2026-01-31 12:00 UTC``; "" if it is 0 or out of range."""
    if not milliseconds:
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (
        ValueError,
        OverflowError,
        OSError,
    ):  # The number is out of range, because the session was imported.
        return ""


def joined(*parts: str) -> str:
    """Return the texts that are not empty, joined by " · "."""
    return " · ".join(part for part in parts if part)


def write(copy: SessionCopy, put: Callable[[str], object], *, whole: bool) -> None:
    """Write a session as Markdown, by calling ``put`` with the text, piece by piece.

    Only the path to the session's leaf is written, unless ``whole`` is True.
    """
    title, models, cost = facts_of(copy)
    info = copy.info
    names = ", ".join(_inline(model) for model in models)
    put(f"# {_inline(title)}\n\n")
    put(f"{joined(f'`{_code(info.cwd)}`', when(info.created_at), names, cost)}\n")
    for section in sections_of(copy, whole=whole):
        if section.number > 1:
            where = "from the beginning"
            if section.after is not None:
                where = f"after #{section.after}"
            put(f"\n---\n\n## Branch {where}{' (current)' if section.current else ''}\n")
        for block in _blocks(section, copy.labels):
            put(f"\n{block}\n")


def _blocks(section: Section, labels: Mapping[int, str]) -> Iterator[str]:
    results = results_of(section.entries)
    called: set[str] = set()
    speaker: str | None = None
    for entry in section.entries:
        if isinstance(entry, AssistantEntry) and entry.model != speaker:
            yield f"### {_inline(entry.model) or 'Agent'} · #{entry.id}"
        if not isinstance(entry, ToolResultEntry):
            speaker = entry.model if isinstance(entry, AssistantEntry) else None
        label = f" [{_inline(labels[entry.id])}]" if entry.id in labels else ""
        match entry:
            case UserEntry():
                who = f"Note ({_inline(entry.occasion)})" if entry.synthetic else "You"
                yield f"### {who} · #{entry.id}{label}"
                yield from _user(entry)
            case AssistantEntry():
                if label:
                    yield f"_#{entry.id}{label}_"
                called.update(call.call_id for call in entry.tool_calls)
                yield from _answer(entry, results)
            case ToolResultEntry():
                if entry.call_id not in called:
                    yield _tool(entry.tool, "", entry)
            case ShellEntry():
                yield _folded(f"! {entry.command}", [_fenced(entry.output)])
            case SummaryEntry():
                yield _folded(f"{marker_of(entry)} · #{entry.id}{label}", [harmless(entry.summary)])
            case BookkeepingEntry():
                yield from _marker(entry, label)


def _marker(entry: Entry, label: str) -> Iterator[str]:
    if (marker := marker_of(entry)) is not None:
        yield f"_{_inline(marker)}_{label}"


def _user(entry: UserEntry) -> Iterator[str]:
    for part in entry.parts:
        match part:
            case TextPart(typed=str(line)):
                yield harmless(line)
                yield _folded("Sent to the model", [harmless(part.text)])
            case TextPart():
                yield harmless(part.text)
            case FilePart():
                if part.text:
                    yield _folded(f"@{part.path}", [_fenced(part.text)])
                else:
                    yield f"`@{_code(part.path)}`"
            case ImagePart():
                yield f"_{part.kind.capitalize()} {_inline(part.path or part.mime)}_"


def _answer(entry: AssistantEntry, results: Mapping[str, ToolResultEntry]) -> Iterator[str]:
    for part in entry.parts:
        match part:
            case TextPart() if part.text.strip():
                yield harmless(part.text)
            case ReasoningPart() if part.text.strip():
                yield _folded("Thinking", [harmless(part.text)])
            case ToolCallPart():
                yield _tool(part.tool, part.arguments, results.get(part.call_id))
            case _:
                pass
    if entry.error:
        yield f"**Error:** {_inline(entry.error, 2_000)}"
    elif entry.ending:
        yield f"_{entry.ending.capitalize()}._"


def _tool(tool: str, arguments: str, result: ToolResultEntry | None) -> str:
    title, status = call_facts(arguments, result)
    pieces: list[str] = []
    if arguments:
        pieces = [_fenced(arguments, "json")]
    if result is not None and result.metadata.diff:
        pieces.append(_fenced(result.metadata.diff, "diff"))
    if result is not None and result.output:
        pieces.append(_fenced(result.output))
    return _folded(joined(f"{tool} {one_line(title, 120)}", status), pieces)


def _folded(summary: str, pieces: list[str]) -> str:
    body = "\n\n".join(pieces)
    return f"<details><summary>{escape(one_line(summary, 160), quote=False)}</summary>\n\n{body}\n\n</details>"


def _fenced(text: str, language: str = "") -> str:
    """Return text as a code block, with a fence longer than any run of backticks in the text."""
    text = readable(text)
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _inline(text: str, limit: int = 200) -> str:
    return re.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", one_line(text, limit))


def _code(text: str) -> str:
    return one_line(text, 300).replace("`", "'")


def harmless(text: str) -> str:
    """Return Markdown with HTML tags escaped, and with an open code block closed at the end.

    Code is not changed.
    """
    lines: list[str] = []
    prose: list[str] = []
    fence = ""
    for line in readable(text).strip("\n").split("\n"):
        match = _FENCE.match(line)
        if fence:
            lines.append(line)
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
        elif match and not ("`" in match[2] and match[1].startswith("`")):
            fence = match[1]
            lines += [*_without_tags(prose), line]
            prose.clear()
        else:
            prose.append(line)
    lines += _without_tags(prose)
    if fence:
        lines.append(fence)
    return "\n".join(lines)


def _without_tags(prose: Sequence[str]) -> list[str]:
    """Join Markdown lines that are outside code blocks into one text, and escape its HTML tags.

    Code spans are not changed. Returns the text as the only item of a list, or an empty list if
    there are no lines.
    """
    if not prose:
        return []
    text = "\n".join(prose)
    pieces = list[str]()
    at = 0
    for span in _SPAN.finditer(text):
        pieces += [_TAG.sub("\\\\<", text[at : span.start()]), span[0]]
        at = span.end()
    return ["".join([*pieces, _TAG.sub("\\\\<", text[at:])])]
