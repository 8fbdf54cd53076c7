"""Keeps each entry's parent, kind and size in memory, to find paths without the database.

A `Spine` of 100,000 entries takes a megabyte. The headers and bodies of entries are read only when
they are shown or sent. A parent is stored only for entries whose parent isn't the preceding id.
`active_ids` chooses the entries of a path that a request needs.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from tui_agent.session.entries import (
    KINDS,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    ModelChangeEntry,
    PruneEntry,
    SystemEntry,
    kinds,
)
from tui_agent.session.records import Divergence, Outlines

KIND_LETTERS: Final = {
    kind: entry.letter for kind, entry in sorted(KINDS.items(), key=lambda known: known[1].letter)
}
"""The letter that stands for each kind of entry, the most frequent kinds first."""

UNKNOWN_KIND: Final = "a"
"""The letter for entries whose kind this version doesn't know."""

KIND_OF_CODE: Final = {
    ord(UNKNOWN_KIND): "",
    **{ord(letter): kind for kind, letter in KIND_LETTERS.items()},
}
"""The kind of entry that each letter stands for, by the letter's code; "" for `UNKNOWN_KIND`."""

_ROOT: Final = 0

_STATES = kinds(lambda kind: kind.sets_state)

_SELECTING = kinds(lambda kind: kind.sets_state or kind.edits_view)
"""Kinds of entries that may change which of the earlier entries a request needs."""


class SpineRows(NamedTuple):
    """The columns of entries, by ascending id, that are to be added to a spine.

    ``kinds`` contains one letter for each entry. ``parents`` contains the parent of each entry
    whose parent isn't the preceding id; None for a root.
    """

    ids: Sequence[int]
    kinds: str
    sizes: Sequence[int]
    parents: Mapping[int, int | None]

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int | None, str, int]]) -> "SpineRows":
        """Return the columns of the given rows of (id, parent_id, kind, size)."""
        found = list(rows)
        return cls(
            [row[0] for row in found],
            "".join(KIND_LETTERS.get(row[2], UNKNOWN_KIND) for row in found),
            [row[3] for row in found],
            {row[0]: row[1] for row in found if row[1] != row[0] - 1},
        )


class Spine:
    """Parent, kind and size of every entry of a session, by id.

    Entries are stored in runs. A run is a series of entries in which the parent of each entry is
    the entry with the preceding id.
    """

    def __init__(self) -> None:
        self._kinds = bytearray(1)
        self._sizes = array("q", [0])
        self._starts: list[int] = []
        """The first id of each run of entries, ascending."""
        self._parents: dict[int, int] = {}
        """The parent of the first entry of each run of entries; `_ROOT` if that entry is a root."""
        self._subagents: dict[int, int] = {}
        """The first entry of the subagent's branch to which a run of entries belongs, by the first
        entry of the run."""
        self.count = 0
        """Number of entries that are in the spine."""
        self.reattached: set[int] = set()
        """Ids of the entries whose parent is missing. The entry with the next lower id is used as
        their parent."""

    @property
    def last(self) -> int:
        """The greatest id in the spine; 0 if the spine is empty."""
        return len(self._kinds) - 1

    def extend(self, rows: SpineRows) -> None:
        """Add entries, whose ids must all be greater than `last`."""
        ids = rows.ids
        if not ids:
            return
        gapless = ids[-1] - ids[0] + 1 == len(ids)
        starts = {
            ids[0],
            *rows.parents,
            *(() if gapless else [two for one, two in pairwise(ids) if two != one + 1]),
        }
        before = self.last
        self._grow(ids[0] - 1)
        if gapless:
            self._kinds += rows.kinds.encode()
            self._sizes.extend(rows.sizes)
        else:
            self._grow(ids[-1])
            for entry_id, kind, size in zip(ids, rows.kinds, rows.sizes, strict=True):
                self._kinds[entry_id] = ord(kind)
                self._sizes[entry_id] = size
        self.count += len(ids)
        for start in sorted(starts):
            at = bisect_left(ids, start)
            self._attach(
                start, rows.parents.get(start, start - 1) or _ROOT, ids[at - 1] if at else before
            )

    def _grow(self, last: int) -> None:
        missing = last - self.last
        self._kinds.extend(bytes(missing))
        self._sizes.extend([0] * missing)

    def _attach(self, entry_id: int, parent: int, previous: int) -> None:
        if parent and (parent >= entry_id or parent not in self):
            self.reattached.add(entry_id)
            parent = previous
        if parent != entry_id - 1 or not parent:
            self._starts.append(entry_id)
            self._parents[entry_id] = parent
            if self.kind(entry_id) == "subagent":
                self._subagents[entry_id] = entry_id
            elif parent and (above := self.subagent_of(parent)) is not None:
                self._subagents[entry_id] = above

    def __iter__(self) -> Iterator[int]:
        return (entry_id for entry_id in range(1, len(self._kinds)) if self._kinds[entry_id])

    def __contains__(self, entry_id: int) -> bool:
        return 0 < entry_id < len(self._kinds) and self._kinds[entry_id] != 0

    def parent(self, entry_id: int) -> int | None:
        """Return the id of an entry's parent, None for a root."""
        return self._parents.get(entry_id, entry_id - 1) or None

    @property
    def parents(self) -> dict[int, int | None]:
        """The parent of each entry whose parent isn't the preceding id; None for roots."""
        return {entry_id: parent or None for entry_id, parent in self._parents.items()}

    def kind(self, entry_id: int) -> str:
        return KIND_OF_CODE[self._kinds[entry_id]]

    def outline(self, ids: Sequence[int]) -> Outlines:
        sizes = array("q")
        for stretch in _stretches(ids):
            sizes += self._sizes[stretch]
        return Outlines(ids, [KIND_OF_CODE[code] for code in self.letters(ids)], sizes)

    def letters(self, ids: Sequence[int]) -> bytes:
        return b"".join(self._kinds[stretch] for stretch in _stretches(ids))

    def path(self, leaf: int | None) -> Sequence[int]:
        return self._ids_above(leaf or _ROOT, _ROOT)[0]

    def _ids_above(self, low: int, other: int) -> "tuple[array[int], int]":
        """Return the ids of the path to ``low`` that aren't on the path to ``other``, ascending.

        The second returned value is the deepest entry on both paths, or `_ROOT` if there is none.
        """
        stretches: list[range] = []
        # Ids ascend along a path, so the greater of two ids can't be an ancestor of the smaller.
        while low != other:
            if low > other:
                start = self._start_of(low)
                top = max(start, other + 1)
                stretches.append(range(top, low + 1))
                if top > start:
                    low = other
                else:
                    low = self._parents[start]
            else:
                start = self._start_of(other)
                if start <= low:
                    other = low
                else:
                    other = self._parents[start]
        ids = array("q")
        for stretch in reversed(stretches):
            ids.extend(stretch)
        return ids, low

    def _start_of(self, entry_id: int) -> int:
        return self._starts[bisect_right(self._starts, entry_id) - 1]

    def subagent_of(self, entry_id: int) -> int | None:
        """Return the first entry of the subagent's branch that contains the entry, or None."""
        # A subagent's branch always begins a run, because the call's own entries precede it.
        if self._subagents:
            return self._subagents.get(self._start_of(entry_id))
        return None

    @property
    def subagents(self) -> set[int]:
        return set(self._subagents.values())

    def is_below(self, entry_id: int | None, other: int | None) -> bool:
        """Return True if ``other`` is the entry or one of its ancestors.

        None stands for the beginning of the session, which is above every entry.
        """
        at = entry_id or _ROOT
        other = other or _ROOT
        while at > other:
            start = self._start_of(at)
            if start <= other:
                return True
            at = self._parents[start]
        return at == other

    def parting(self, leaf: int | None, target: int | None) -> Divergence:
        """Return the entries of the path to ``leaf`` that are not on the path to ``target``."""
        left, ancestor = self._ids_above(leaf or _ROOT, target or _ROOT)
        return Divergence(leaf, ancestor or None, self.outline(left))

    def returns(self, path: Sequence[int]) -> list[int]:
        """Return the ids on a path at which a new branch began after another branch was abandoned.

        The ids ascend. The abandoned branch must contain more than answers: a failed answer that
        was retried doesn't count. Subagents' branches don't count either.
        """
        found: list[int] = []
        for start in self._starts:
            if _position(path, start) is None:
                continue
            begin = self._parents[start] + 1
            cuts = [
                begin,
                *self._starts[bisect_right(self._starts, begin) : bisect_left(self._starts, start)],
                start,
            ]
            own = (
                self._kinds[one:two] for one, two in pairwise(cuts) if self.subagent_of(one) is None
            )
            left = b"".join(own)
            if left.translate(None, b"\0" + KIND_LETTERS["assistant"].encode()):
                found.append(start)
        return found

    def departures(self, path: Sequence[int], ids: Iterable[int]) -> dict[int, int]:
        """Return, for each of ``ids`` that isn't on the path, the first entry of its branch.

        The first entry of a branch is the one whose parent is on the path. If no ancestor of an id
        is on the path, it is the root.
        """
        known: dict[int, int] = {}
        """The result for each run that was looked up so far, by the first entry of the run."""
        return {
            entry_id: self._departure(path, entry_id, known)
            for entry_id in ids
            if _position(path, entry_id) is None
        }

    def _departure(self, path: Sequence[int], entry_id: int, known: dict[int, int]) -> int:
        passed: list[int] = []
        departure = 0
        at = entry_id
        while not departure:
            start = self._start_of(at)
            below = bisect_right(path, at)
            if below and path[below - 1] >= start:
                departure = path[below - 1] + 1
            elif start in known:
                departure = known[start]
            else:
                passed.append(start)
                at = self._parents[start]
                if at == _ROOT or _position(path, at) is not None:
                    departure = start
        known.update(dict.fromkeys(passed, departure))
        return departure


def _stretches(ids: Sequence[int]) -> Iterator[slice]:
    """Yield ascending ids as slices of consecutive ids.

    Copying slices is ten times as fast as copying single ids.
    """
    at = 0
    while at < len(ids):
        # Because ids ascend, the difference of an id and its index never decreases, so bisect can
        # find a gap.
        end = bisect_right(
            range(len(ids)), ids[at] - at, lo=at, key=lambda place: ids[place] - place
        )
        yield slice(ids[at], ids[end - 1] + 1)
        at = end


def active_ids(
    spine: Spine, path: Sequence[int], load: Callable[[Sequence[int]], list[Entry]]
) -> list[int]:
    """Return those ids of a path (root first) on which its request depends, in the path's order.

    Without a compaction that can be sent to the path's model, this is the whole path. Otherwise it
    is all entries from the first one that the newest such compaction kept, and these earlier
    entries:

    - the last system entry, model change, mode change and effort change,
    - all context edits, because a later one may undo an earlier one,
    - the entries that are still pinned, with the calls and results of their step, because pinned
      entries are carried verbatim,
    - the prunes that name one of the entries of these steps.

    ``load`` returns the entries with the given ids, without damaged ones.
    """
    letters = spine.letters(path)
    special: dict[str, list[int]] = {}
    for kind in _SELECTING:
        places = re.finditer(KIND_LETTERS[kind].encode(), letters)
        special[kind] = [path[place.start()] for place in places]
    compaction = _in_force(special, load)
    if compaction is None:
        return list(path)
    cut = _position(path, compaction.first_kept_id)
    if cut is None or path[cut] > compaction.id:
        cut = _position(path, compaction.id) or 0
    before = {kind: ids[: bisect_left(ids, path[cut])] for kind, ids in special.items()}
    needed = set(before["context_edit"])
    for kind in _STATES:
        needed.update(before[kind][-1:])
    carried: set[int] = set()
    last_edits: dict[int, str] = {}
    for edit in load(special["context_edit"]):
        if isinstance(edit, ContextEditEntry) and not edit.parts:
            last_edits[edit.target] = edit.action
    for target, action in last_edits.items():
        position = _position(path, target)
        if action == "pin" and position is not None and position < cut:
            carried.update(_step(spine, path[:cut], position))
    if carried:
        for entry in load(before["prune"]):
            if isinstance(entry, PruneEntry) and carried.intersection(entry.targets):
                needed.add(entry.id)
    return sorted(needed | carried) + list(path[cut:])


def _in_force(
    special: dict[str, list[int]], load: Callable[[Sequence[int]], list[Entry]]
) -> CompactionEntry | None:
    """Return the newest compaction that can be sent to the path's model.

    Returns None if there is no such compaction, or if a newer compaction is damaged.
    """
    for entry_id in reversed(special["compaction"]):
        found = load([entry_id])
        if not found or not isinstance(found[0], CompactionEntry):
            return None
        if found[0].item is None:
            return found[0]
        states = load(sorted([*special["system"][-1:], *special["model_change"][-1:]]))
        named = [
            entry.model for entry in states if isinstance(entry, SystemEntry | ModelChangeEntry)
        ]
        if found[0].is_read_by(named[-1] if named else None):
            return found[0]
    return None


def _position(path: Sequence[int], entry_id: int | None) -> int | None:
    """Return the index of an id in the ascending ids of a path; None if it isn't on the path."""
    if entry_id is None:
        return None
    position = bisect_left(path, entry_id)
    if position < len(path) and path[position] == entry_id:
        return position
    return None


def _step(spine: Spine, path: Sequence[int], position: int) -> list[int]:
    """Return the ids of the step (answer and tool results) of the entry at the index ``position``.

    An entry that is neither an answer nor a tool result is returned alone.
    """
    if spine.kind(path[position]) not in ("assistant", "tool_result"):
        return [path[position]]
    start = position
    while start > 0 and spine.kind(path[start]) != "assistant":
        start -= 1
    end = start + 1
    while end < len(path) and spine.kind(path[end]) not in ("assistant", "user"):
        end += 1
    return [
        path[start],
        *(one for one in path[start + 1 : end] if spine.kind(one) == "tool_result"),
    ]
