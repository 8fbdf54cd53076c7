"""What a reader of an exported session is shown, and in which order; how it looks is up to each format."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime

from tui_agent.lazy import dataclass
from tui_agent.session.entries import (
    AssistantEntry,
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    EffortChangeEntry,
    Entry,
    ModeChangeEntry,
    ModelChangeEntry,
    PruneEntry,
    ToolResultEntry,
)
from tui_agent.session.formats.copies import SessionCopy
from tui_agent.session.previews import preview_of

__all__ = ["Facts", "Section", "facts_of", "marker_of", "results_of", "sections_of", "when"]


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of the tree without branch points: what is read in one go.

    ``after`` is the entry it goes on from, None at the beginning. ``number`` counts the sections of a whole tree from
    1; 0 is the only one of a branch.
    """

    entries: Sequence[Entry]
    after: int | None = None
    number: int = 0
    current: bool = False
    """Whether it is on the way to where the session is."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the heading says. Cost is US dollars, None when unknown."""

    title: str
    cwd: str
    created_at: int
    models: tuple[str, ...]
    entries: int
    cost: float | None
    labels: Mapping[int, str] = field(default_factory=dict)


def facts_of(copy: SessionCopy) -> Facts:
    answers = [entry for entry in copy.entries if isinstance(entry, AssistantEntry)]
    made = (AssistantEntry, CompactionEntry, BranchSummaryEntry)
    costs = [entry.cost for entry in copy.entries if isinstance(entry, made) and entry.cost]
    info = copy.info
    return Facts(
        title=info.title or info.first_message or "Session",
        cwd=info.cwd,
        created_at=info.created_at,
        models=tuple(dict.fromkeys(answer.model for answer in answers if answer.model)),
        entries=len(copy.entries),
        cost=sum(costs) if costs else None,
        labels=copy.labels,
    )


def sections_of(copy: SessionCopy, *, whole: bool) -> list[Section]:
    """Return the path to the leaf as one section, or all of the tree: at a branch point the current way comes first."""
    if not whole:
        return [Section(copy.path(), current=True)]
    children: dict[int | None, list[Entry]] = {}
    for entry in copy.entries:
        children.setdefault(entry.parent_id, []).append(entry)
    here = {entry.id for entry in copy.path()}
    sections: list[Section] = []
    waiting: list[tuple[int | None, Entry]] = [
        (None, first) for first in _current_first(children.get(None, []), here)[::-1]
    ]
    while waiting:
        after, entry = waiting.pop()
        stretch = [entry]
        while len(below := children.get(stretch[-1].id, [])) == 1:
            stretch.append(below[0])
        sections.append(Section(stretch, after, len(sections) + 1, entry.id in here))
        waiting += [(stretch[-1].id, first) for first in _current_first(below, here)[::-1]]
    return sections


def _current_first(entries: Sequence[Entry], here: set[int]) -> list[Entry]:
    return sorted(entries, key=lambda entry: entry.id not in here)


def results_of(entries: Sequence[Entry]) -> dict[str, ToolResultEntry]:
    return {entry.call_id: entry for entry in entries if isinstance(entry, ToolResultEntry)}


def marker_of(entry: Entry) -> str | None:  # noqa: PLR0911 - one arm per kind
    """Return the one line that stands for an entry that changed the model's view; None for what was said."""
    match entry:
        case CompactionEntry():
            size = f": {entry.tokens_before:,} → {entry.tokens_after:,} tokens" if entry.tokens_after else ""
            return f"Compacted ({entry.trigger.replace('_', ' ')}){size}"
        case BranchSummaryEntry():
            return f"Summary of the branch left at #{entry.from_id}"
        case PruneEntry():
            return f"{len(entry.targets)} old tool outputs cleared from the model's view"
        case ContextEditEntry():
            return f"#{entry.target} {_EDITS[entry.action]}"
        case ModelChangeEntry():
            return f"Model: {entry.model}"
        case EffortChangeEntry():
            return f"Effort: {entry.level}"
        case ModeChangeEntry():
            return f"Mode: {entry.mode}"
        case _ if entry.is_marker:
            return f"{entry.kind.replace('_', ' ').capitalize()}: {preview_of(entry)}"
        case _:
            return None


_EDITS = {
    "drop": "dropped from the model's view",
    "mask": "masked in the model's view",
    "pin": "pinned in the model's view",
    "restore": "restored to the model's view",
}


def when(milliseconds: int) -> str:
    """Return a moment as people read it, in UTC; "" when unknown."""
    if not milliseconds:
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):  # a time of an imported session that no calendar has
        return ""


def joined(parts: Iterator[str] | Sequence[str]) -> str:
    """Return the parts that say something, with dots between them."""
    return " · ".join(part for part in parts if part)
