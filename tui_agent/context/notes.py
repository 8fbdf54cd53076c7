"""What a placeholder says of the output it stands for, beside its gist: the names in it that matter elsewhere.

Written once, when the output is pruned, and stored with the prune, so that a placeholder never changes.
"""

from collections.abc import Callable, Sequence

from tui_agent.context.anchors import find_anchors
from tui_agent.context.carried import shown_text
from tui_agent.context.view import ContextView
from tui_agent.session.entries import AssistantEntry, ToolResultEntry
from tui_agent.session.tool_traits import TraitsByName

_KINDS = frozenset({"path", "name", "hash", "number", "error"})
_NOTE_CHARS = 400
"""Longest note: a placeholder stays a line."""


def write_notes(
    view: ContextView, targets: Sequence[int], budget: int, count: Callable[[str], int], tools: TraitsByName
) -> tuple[str, ...]:
    """Return a note per target, all together of at most ``budget`` tokens; empty where there is nothing to say.

    Each of the most referenced facts goes to the newest target that holds it, unless it stands in what stays in view.
    """
    gone = set(targets)
    stays = shown_text(
        entry
        for entry in view.entries
        if entry.id not in gone and (view.is_open(entry.id) or isinstance(entry, AssistantEntry))
    )
    outputs = [entry for entry in view.entries if entry.id in gone and isinstance(entry, ToolResultEntry)]
    notes: dict[int, list[str]] = {}
    said = "\n".join(view.notes.values())
    for anchor in find_anchors(view.entries, tools):
        cost = count(anchor.text) + 1
        if cost > budget or anchor.kind not in _KINDS or anchor.text in stays or anchor.text in said:
            continue
        holder = next((entry for entry in reversed(outputs) if anchor.text in entry.output), None)
        if holder is None or sum(map(len, notes.get(holder.id, ()))) + len(anchor.text) > _NOTE_CHARS:
            continue
        notes.setdefault(holder.id, []).append(anchor.text)
        said += f"\n{anchor.text}"
        budget -= cost
    return tuple(", ".join(notes.get(target, ())) for target in targets)
