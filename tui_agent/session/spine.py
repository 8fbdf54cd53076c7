"""The shape of a session's tree in a few bytes per entry, and what of a path a request needs.

A spine of 100,000 entries takes under a megabyte, so that paths are walked in memory while headers and bodies are
read only when they are shown or sent.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from tui_agent.session.entries import CompactionEntry, ContextEditEntry, Entry, PruneEntry
from tui_agent.session.records import EntryOutline, Parting

__all__ = ["Spine", "active_ids"]

_ABSENT, _ROOT = -1, 0


class Spine:
    """Parent, kind and size of every entry of a session, by id."""

    def __init__(self) -> None:
        self._parents = array("q", [_ABSENT])
        self._codes = bytearray(1)
        self._sizes = array("q", [0])
        self._kinds: list[str] = [""]
        self.count = 0
        """Entries in the spine."""
        self.reattached: set[int] = set()
        """Entries whose parent is missing; they hang on the entry before them."""

    @property
    def last(self) -> int:
        """The greatest id seen, 0 when there is none."""
        return len(self._parents) - 1

    def extend(self, rows: Iterable[tuple[int, int | None, str, int]]) -> None:
        """Add (id, parent_id, kind, size) rows in ascending order, all above `last`."""
        parents, codes, sizes = self._parents, self._codes, self._sizes
        known = {kind: code for code, kind in enumerate(self._kinds)}
        previous = self.last if self.count else _ROOT
        for entry_id, parent, kind, size in rows:
            while len(parents) < entry_id:
                parents.append(_ABSENT)
                codes.append(0)
                sizes.append(0)
            upper = parent or _ROOT
            if upper and parents[upper] == _ABSENT:
                self.reattached.add(entry_id)
                upper = previous
            parents.append(upper)
            code = known.get(kind)
            if code is None:
                code = known[kind] = len(self._kinds)
                self._kinds.append(kind)
            codes.append(code)
            sizes.append(size)
            self.count += 1
            previous = entry_id

    def __contains__(self, entry_id: int) -> bool:
        return 0 < entry_id < len(self._parents) and self._parents[entry_id] != _ABSENT

    def parent(self, entry_id: int) -> int | None:
        """Return an entry's parent, None for a root."""
        return self._parents[entry_id] or None

    def kind(self, entry_id: int) -> str:
        """Return an entry's kind."""
        return self._kinds[self._codes[entry_id]]

    def outline(self, ids: Sequence[int]) -> list[EntryOutline]:
        """Return what is known here of some entries."""
        kinds, codes, sizes = self._kinds, self._codes, self._sizes
        return [EntryOutline(entry_id, kinds[codes[entry_id]], sizes[entry_id]) for entry_id in ids]

    def path(self, leaf: int | None) -> list[int]:
        """Return the ids from the root to ``leaf``."""
        parents, path, current = self._parents, [], leaf or _ROOT
        while current != _ROOT:
            path.append(current)
            current = parents[current]
        path.reverse()
        return path

    def parting(self, leaf: int | None, target: int | None) -> Parting:
        """Return what the path to ``leaf`` has of its own beside the path to ``target``."""
        parents, left, one, other = self._parents, [], leaf or _ROOT, target or _ROOT
        # Ids grow along a path, so the larger of two can be no ancestor of the smaller.
        while one != other:
            if one > other:
                left.append(one)
                one = parents[one]
            else:
                other = parents[other]
        return Parting(leaf, one or None, tuple(self.outline(left[::-1])))

    def of_kinds(self, ids: Sequence[int], kinds: Iterable[str]) -> list[int]:
        """Return those of ``ids`` that are of one of these kinds, in the same order."""
        wanted = {code for code, kind in enumerate(self._kinds) if kind in set(kinds)}
        codes = self._codes
        return [entry_id for entry_id in ids if codes[entry_id] in wanted]


_STATE_KINDS = ("system", "model_change", "mode_change")


def active_ids(spine: Spine, path: Sequence[int], load: Callable[[Sequence[int]], list[Entry]]) -> list[int]:
    """Return the ids of a path (root first) that its request depends on, in the path's order.

    Without a compaction that is the whole path. With one: everything from its first kept entry on, and of what is
    before only

    - the last system entry, model change and mode change,
    - all context edits, because one after the cut may be the answer to one before it,
    - the targets of pins that hold, each with the calls and results it belongs to, because pinned entries are carried
      verbatim, and prunes that name one of these.

    ``load`` returns the entries with the given ids, damaged ones left out.
    """
    compactions = spine.of_kinds(path, ("compaction",))
    found = load(compactions[-1:])
    if not found or not isinstance(found[0], CompactionEntry):
        return list(path)
    compaction = found[0]
    cut = _position(path, compaction.first_kept_id)
    if cut is None or path[cut] > compaction.id:
        cut = _position(path, compaction.id) or 0
    before = path[:cut]
    edits = spine.of_kinds(path, ("context_edit",))
    needed = {entry_id for entry_id in edits if entry_id < path[cut]}
    for kind in _STATE_KINDS:
        needed.update(spine.of_kinds(before, (kind,))[-1:])
    pinned = _pinned(load(edits))
    carried: set[int] = set()
    for target in pinned:
        if (position := _position(before, target)) is not None:
            carried.update(_step(spine, before, position))
    if carried:
        for entry in load(spine.of_kinds(before, ("prune",))):
            if isinstance(entry, PruneEntry) and carried.intersection(entry.targets):
                needed.add(entry.id)
    return sorted(needed | carried) + list(path[cut:])


def _position(path: Sequence[int], entry_id: int | None) -> int | None:
    """Return where an id stands on a path (ids ascend along it), None when it is not there."""
    if entry_id is None:
        return None
    position = bisect_left(path, entry_id)
    return position if position < len(path) and path[position] == entry_id else None


def _pinned(edits: Iterable[Entry]) -> set[int]:
    """Return the targets whose latest edit is a pin."""
    latest = {edit.target: edit.action for edit in edits if isinstance(edit, ContextEditEntry)}
    return {target for target, action in latest.items() if action == "pin"}


def _step(spine: Spine, path: Sequence[int], position: int) -> list[int]:
    """Return the answer with its tool results that the entry at ``position`` is part of, or the entry alone."""
    if spine.kind(path[position]) not in ("assistant", "tool_result"):
        return [path[position]]
    start = position
    while start > 0 and spine.kind(path[start]) != "assistant":
        start -= 1
    end = start + 1
    while end < len(path) and spine.kind(path[end]) not in ("assistant", "user"):
        end += 1
    return [path[start], *spine.of_kinds(path[start + 1 : end], ("tool_result",))]
