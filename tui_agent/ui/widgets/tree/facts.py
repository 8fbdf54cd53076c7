"""What is said of an entry beside its text: number, model, time, tokens, dollars, files. Pure."""

from collections.abc import Iterable

from tui_agent.app import format as wording
from tui_agent.session.entries import (
    AssistantEntry,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    SystemEntry,
    UserEntry,
)
from tui_agent.ui.outline import changed_files
from tui_agent.ui.widgets.transcript import sanitize

_FILES = 6
"""Files named; the rest is counted."""


def facts_of(entry: Entry, *, size: int, cost: float | None, when: str) -> str:
    """Return the facts of one entry of ``size`` tokens in one line."""
    facts = [f"#{entry.id}", _who(entry), when.strip(), f"{wording.tokens(size)} tokens"]
    if cost:
        facts.append(wording.money(cost))
    if isinstance(entry, AssistantEntry):
        if entry.usage is not None:
            facts.append(f"sent {wording.tokens(entry.usage.prompt)}")
        if entry.interrupted:
            facts.append("interrupted")
        elif entry.error:
            facts.append("failed")
    return " · ".join(fact for fact in facts if fact)


def _who(entry: Entry) -> str:
    match entry:
        case UserEntry():
            return "you" if entry.synthetic is None else sanitize.line(entry.synthetic)
        case AssistantEntry() | CompactionEntry() | BranchSummaryEntry() if entry.model:
            return wording.short_model(entry.model)
        case SystemEntry():
            return f"system prompt, {wording.plural(len(entry.tools), 'tool')}"
        case _:
            return entry.kind.replace("_", " ")


def files_of(entries: Iterable[Entry]) -> str:
    """Return the files that entries changed, with lines added and removed; "" when there are none."""
    changed = list(changed_files(entries).values())
    shown = [
        f"{sanitize.line(file.path)} +{file.additions} −{file.deletions}"
        if file.additions or file.deletions
        else sanitize.line(file.path)
        for file in changed[:_FILES]
    ]
    if len(changed) > _FILES:
        shown.append(f"{len(changed) - _FILES} more")
    return " · ".join(shown)
