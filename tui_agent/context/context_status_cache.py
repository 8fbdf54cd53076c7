"""Computes, for the screens, how much of each entry of a path is sent to the model.

A path leads from the root of the session tree to an entry. If it has only grown, only its new
entries are examined.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from tui_agent.context.budget import Weights
from tui_agent.context.context_status import Standing
from tui_agent.context.view import ContextView, EntryState, resolve
from tui_agent.lazy import frozen
from tui_agent.session.entries import KINDS, AssistantEntry, Entry, ToolResultEntry
from tui_agent.session.path_queries import PathMark, place_of_newest

_OF_STATE = {
    EntryState.LIVE: Standing.SENT,
    EntryState.PRUNED: Standing.CLEARED,
    EntryState.MASKED: Standing.CLEARED,
    EntryState.DROPPED: Standing.HIDDEN,
    EntryState.PINNED: Standing.PINNED,
}


@frozen
class Standings:
    """The context status of each entry of one path.

    ``compaction`` is the id of the current summary and ``boundary`` the id of the first entry that
    it keeps (its own id if it keeps none); both are 0 without a summary. ``known`` contains the
    status of the entries whose status doesn't follow from these two and their kind.
    """

    compaction: int = 0
    boundary: int = 0
    head: int = 0
    """Id of the system entry that applies at the end of the path; 0 if there is none."""
    known: Mapping[int, Standing] = field(default_factory=dict)
    edited: frozenset[int] = frozenset()
    """Ids of the entries whose status was set by an edit or a prune."""
    newest_edit: int = 0
    """Id of the newest edit, prune or compaction; 0 if there is none."""
    path: PathMark = PathMark()
    """Identifies the path of entries that the statuses belong to."""

    def of(self, entry_id: int, kind: str) -> Standing:
        """Return the context status of an entry on the path, given its kind."""
        found = self.known.get(entry_id)
        if found is not None:
            return found
        known_kind = KINDS.get(kind)
        if entry_id == self.head:
            return Standing.SENT
        if known_kind is None or known_kind.is_message is False:
            return Standing.UNSENT
        if entry_id < self.boundary or kind == "compaction":
            return Standing.SUMMARISED
        return Standing.SENT

    def differs_from(self, other: "Standings") -> bool:
        """Return True if a compaction, edit or prune gave an entry a new status in ``other``."""
        if self.compaction != other.compaction or self.boundary != other.boundary:
            return True
        if self.edited != other.edited:
            return True
        mine = [self.known.get(entry_id) for entry_id in self.edited]
        return mine != [other.known.get(entry_id) for entry_id in self.edited]

    def grown(self, path: Sequence[Entry]) -> "Standings":
        """Return the context statuses of ``path``, reusing most of them if it has only grown."""
        before = self.path
        if not before.begins(path):
            return standings(path)
        if before.length == len(path):
            return self
        start = place_of_newest(path[: before.length], AssistantEntry)
        tail = path[before.length if start is None else start :]
        if any(entry.edits_view or entry.sets_state for entry in tail):
            return standings(path)
        known = dict(self.known)
        for entry in tail:
            known.pop(entry.id, None)
        known.update(_exceptions(resolve(tail)))
        return replace(self, known=known, path=PathMark.of(path))


def standings(path: Sequence[Entry], view: ContextView | None = None) -> Standings:
    """Return the context statuses of the entries of a path.

    The path may be whole or active (``Session.active_path``). ``view`` is its resolved view, if it
    is known.
    """
    if not path:
        return Standings()
    view = view or resolve(path)
    compaction = view.compaction
    boundary = 0
    if compaction is not None:
        kept = view.entries[0].id if view.entries else compaction.id
        boundary = min(kept, compaction.id)
    edits = (entry.id for entry in reversed(path) if entry.edits_view)
    return Standings(
        compaction=compaction.id if compaction is not None else 0,
        boundary=boundary,
        head=view.system.id if view.system is not None else 0,
        known=dict(_exceptions(view)),
        edited=frozenset(view.states),
        newest_edit=next(edits, 0),
        path=PathMark.of(path),
    )


def _exceptions(view: ContextView) -> Iterator[tuple[int, Standing]]:
    """Yield (entry id, status) for each entry whose status can't be told from its kind alone."""
    for pinned in view.pinned:
        yield pinned.id, Standing.PINNED
    compaction = view.compaction
    states = view.states
    if compaction is not None and compaction.id in states:
        yield compaction.id, _OF_STATE[states[compaction.id]]
    answered = view.answered()
    for entry in view.entries:
        if entry.is_message is not False and not _is_sent(entry, view, answered):
            yield entry.id, Standing.UNSENT
        elif entry.id in states:
            yield entry.id, _OF_STATE[states[entry.id]]


def _is_sent(entry: Entry, view: ContextView, answered: frozenset[int]) -> bool:
    match entry:
        case ToolResultEntry():
            return entry.id in answered
        case AssistantEntry():
            for result in view.results.get(entry.id, ()):
                if result is None or view.states.get(result.id) is not EntryState.DROPPED:
                    return True
            return bool(entry.text.strip())
        case _:
            return entry.is_sent


def shares(view: ContextView, found: Standings, weights: Weights) -> dict[Standing, int]:
    """Return how many uncorrected tokens the entries of a view take, by context status.

    Entries in context (`Standing.SENT`) are left out because they are the rest of the history.
    """
    taken: dict[Standing, int] = {}
    if view.compaction is not None:
        taken[found.of(view.compaction.id, view.compaction.kind)] = weights.of(view.compaction)
    for entry in view.entries:
        standing = found.known.get(entry.id)
        if standing is not None and standing is not Standing.SENT and (tokens := weights.of(entry)):
            taken[standing] = taken.get(standing, 0) + tokens
    return taken
