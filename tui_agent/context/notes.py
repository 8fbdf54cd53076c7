"""What a placeholder says of the output it stands for, beneath its gist: the lines of it that are still in use.

Written once, when the output is pruned, and stored with the prune, so that a placeholder never changes.
"""

from collections.abc import Callable, Sequence

from tui_agent.context.anchors import Anchor
from tui_agent.context.kept_lines import Source, choose_lines
from tui_agent.context.preserved import shown_text
from tui_agent.context.view import ContextView
from tui_agent.session.entries import AssistantEntry

_KINDS = frozenset({"path", "name", "hash", "number", "error"})


def write_notes(
    view: ContextView, targets: Sequence[int], budget: int, count: Callable[[str], int], anchors: Sequence[Anchor]
) -> tuple[str, ...]:
    """Return a note per target, all together of at most ``budget`` tokens; empty where there is nothing to say.

    ``anchors`` are those of the whole view. A line goes to the target that held its name last, unless the name stands
    in what stays in view.
    """
    gone = set(targets)
    stays = shown_text(
        entry
        for entry in view.entries
        if entry.id not in gone and (view.is_open(entry.id) or isinstance(entry, AssistantEntry))
    )
    source = Source.of(entry for entry in view.entries if entry.id in gone)
    known = "\n".join([stays, *(note for target, note in view.notes.items() if target not in gone)])
    of_outputs = [anchor for anchor in anchors if anchor.kind in _KINDS and anchor.entry_id in gone]
    notes = choose_lines(of_outputs, source, budget, count, known)
    return tuple("\n".join(notes.get(target, ())) for target in targets)
