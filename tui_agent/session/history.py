"""Finds the steps to which undo and redo apply, from a session's log of moves and its entries.

It doesn't matter whether an entry is still sent to the model: a summarised turn can be undone, too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import islice
from typing import Final, Literal

from tui_agent.lazy import dataclass, frozen
from tui_agent.session.entries import (
    KINDS,
    PLAN_PATH,
    BranchSummaryEntry,
    CheckpointEntry,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    PruneEntry,
    RaceEntry,
    SystemEntry,
    UserEntry,
    kinds,
)
from tui_agent.session.errors import NothingToUndo
from tui_agent.session.reading import EntryReader
from tui_agent.session.records import LeafMove

_ALONE: Final = kinds(lambda kind: kind.undone_alone is not False)


@frozen
class Leg:
    """A part of the history of the session's leaf, either one move or a series of appended entries.

    The leaf was ``start`` before this part and ``end`` after it. None means the beginning of the
    session.
    """

    start: int | None
    end: int | None
    is_move: bool = False


@frozen
class Step:
    """All changes that a single undo reverts, such as a turn, a move, a compaction or a race.

    The leaf was ``start`` before the step and ``end`` after it. ``entry`` is the entry that the
    step is about, such as the user's message of a turn; None for a move without a summary. ``move``
    is the step's move, None if it has none.
    """

    start: int | None
    end: int | None
    entry: int | None = None
    move: Leg | None = None


@dataclass
class History:
    """Keeps the changes that led to a session's leaf, and the undone ones, for undo and redo.

    The changes are moves of the leaf and series of appended entries.
    """

    reader: EntryReader
    done: list[Leg] = field(default_factory=list)
    """The parts of the history that led to the current leaf, oldest first."""
    undone: list[tuple[int | None, list[Leg]]] = field(default_factory=list)
    """The steps that can be redone; the next one to redo is the last of them. Each consists of the
    leaf before the step, and the parts of the history that undo removed."""

    @property
    def leaf(self) -> int | None:
        return self.done[-1].end if self.done else None

    def apply(self, move: LeafMove) -> None:
        """Add a logged move, undo or redo.

        If the move doesn't fit the history so far, all earlier steps are dropped.
        """
        self.reach(move.from_leaf)
        if move.action == "move":
            self.done.append(Leg(move.from_leaf, move.to_leaf, is_move=True))
            self.undone.clear()
        elif move.action == "undo" and (taken := self._take_back(move.to_leaf)):
            self.undone.append((move.to_leaf, taken))
        elif move.action == "redo" and self.undone and self.undone[-1][1][-1].end == move.to_leaf:
            start, taken = self.undone.pop()
            self._cut(start)
            self._put(taken)
        if self.leaf != move.to_leaf:
            self._begin_at(move.to_leaf)

    def reach(self, leaf: int | None) -> "History":
        """Add the entries appended since the last change, up to ``leaf``; return this object.

        Afterwards nothing can be redone, unless the added entries only set state, such as the
        model. If ``leaf`` isn't below the last known leaf, all earlier steps are dropped.
        """
        here = self.leaf
        spine = self.reader.spine()
        if leaf == here:
            return self
        if not spine.is_below(leaf, here):
            self._begin_at(leaf)
            return self
        self._append(Leg(here, leaf))
        if self.undone and any(self._said(here, leaf)):
            self.undone.clear()
        return self

    def newest(self) -> Step | None:
        """Return the step that ``undo`` would undo, None if there is none."""
        if self.done:
            top = self.done[-1]
        else:
            top = Leg(None, None)
        stretch = top
        if top.is_move:
            stretch = Leg(top.end, top.end)
        before = next((leg for leg in self.done[-2:][::-1] if leg.is_move), None)
        said = list(islice(self._said(stretch.start, stretch.end), 2))
        if before is not None and self._ends(before, said):
            return Step(before.start, stretch.end, said[0] if said else None, before)
        entry = self._beginning(stretch)
        if entry is None:
            return None
        return Step(self.before(entry, stretch.start), stretch.end, entry)

    def next(self) -> Step | None:
        """Return the step that ``redo`` would redo, None if there is none."""
        if not self.undone:
            return None
        done = list(self.done)
        (start, taken) = self.undone[-1]
        again = History(self.reader, done)
        again._cut(start)
        again._put(taken)
        return again.newest()

    def is_undone(self, entry_id: int) -> bool:
        """Return True if the entry was undone and can be restored by one or more redos."""
        spine = self.reader.spine()
        return any(
            spine.is_below(taken[-1].end, entry_id) and not spine.is_below(start, entry_id)
            for start, taken in self.undone
        )

    def target(self, action: Literal["undo", "redo"]) -> int | None:
        """Return what the session's leaf will be after an undo or redo; raises NothingToUndo.

        This method changes nothing. Call `apply` with the move to change this history.
        """
        if action == "undo":
            step = self.newest()
        else:
            step = self.next()
        if step is None:
            raise NothingToUndo(f"There is nothing to {action}.")
        if action == "undo":
            return step.start
        return self.undone[-1][1][-1].end

    # -- legs --------------------------------------------------------------------------------------

    def _begin_at(self, leaf: int | None) -> None:
        self.done = [Leg(None, leaf)] if leaf is not None else []
        self.undone = []

    def _append(self, leg: Leg) -> None:
        if self.done and not self.done[-1].is_move:
            leg = Leg(self.done.pop().start, leg.end)
        self.done.append(leg)

    def _put(self, legs: Iterable[Leg]) -> None:
        for leg in legs:
            if leg.is_move:
                self.done.append(leg)
            elif leg.start != leg.end:
                self._append(leg)

    def _cut(self, end: int | None) -> Leg | None:
        """End the newest part of the history at ``end``, and return what was cut off.

        Returns None, and changes nothing, if this part is a move or doesn't contain ``end``.
        """
        top = None
        if self.done:
            top = self.done[-1]
        spine = self.reader.spine()
        if (
            top is None
            or top.is_move
            or not (spine.is_below(end, top.start) and spine.is_below(top.end, end))
        ):
            return None
        self.done.pop()
        if end != top.start:
            self.done.append(Leg(top.start, end))
        return Leg(end, top.end)

    def _take_back(self, target: int | None) -> list[Leg]:
        """Remove the parts of the history since the leaf was last at ``target``; return them.

        The oldest part comes first. Only the newest move and the entries after it can be removed.
        If the leaf was at ``target`` only before that, or never, nothing is changed and [] is
        returned.
        """
        if (cut := self._cut(target)) is not None:
            return [cut]
        taken = []
        if self.done and not self.done[-1].is_move:
            taken = [self.done.pop()]
        if self.done and self.done[-1].is_move and self.done[-1].start == target:
            return [self.done.pop(), *taken]
        self.done += taken
        return []

    # -- steps done --------------------------------------------------------------------------------

    def _entry(self, entry_id: int) -> Entry | None:
        return next(iter(self.reader.entries([entry_id])), None)

    def _said(self, start: int | None, end: int | None) -> Iterator[int]:
        """Yield the ids of the entries after ``start`` up to ``end``, newest first.

        Entries that only set the state (system prompt and tools, model, mode or effort) are left
        out.
        """
        spine = self.reader.spine()
        at = end
        while at is not None and at != start:
            kind = KINDS.get(spine.kind(at))
            if kind is None or not kind.sets_state:
                yield at
            at = spine.parent(at)

    def _ends(self, move: Leg, said: Sequence[int]) -> bool:
        """Return True if the entries ``said`` after a move belong to the same step as the move.

        They do if there are no entries, or if there is only the branch summary of the move, or only
        the entry of a race of which a runner was taken.
        """
        if len(said) != 1:
            return not said
        match self._entry(said[0]):
            case BranchSummaryEntry(from_id=left):
                return left == move.start
            case RaceEntry(taken=taken):
                return taken is not None
            case _:
                return False

    def _beginning(self, stretch: Leg) -> int | None:
        """Return the entry that the newest step of a part is about, None if it has no entries.

        If undo would remove only the last entry of the part, that entry is returned; checkpoints
        after it don't count. Otherwise the result is the newest message by the user in the part, or
        the part's first entry if there is no such message.
        """
        spine = self.reader.spine()
        first = None
        is_end = True
        for first in self._said(stretch.start, stretch.end):
            kind = spine.kind(first)
            alone = None
            if is_end and kind in _ALONE:
                alone = self._entry(first)
            if alone is not None and (
                not isinstance(alone, CheckpointEntry) or alone.put_back_to is not None
            ):
                return first
            if (
                kind == "user"
                and isinstance(entry := self._entry(first), UserEntry)
                and not entry.synthetic
            ):
                return first
            is_end = is_end and kind == "checkpoint"
        return first

    def before(self, entry_id: int, start: int | None = None) -> int | None:
        """Return the leaf that the session had before the step to which ``entry_id`` belongs.

        The step includes entries that were created for it before ``entry_id``, such as prunes
        before a compaction, a new head (system prompt and tools) for a turn, the mode change of an
        approved plan, or context edits made together. The result is never above ``start``.
        """
        entry = self._entry(entry_id)
        at = self.reader.spine().parent(entry_id)
        while at is not None and at != start and (above := self._entry(at)) is not None:
            match entry:
                case CompactionEntry():
                    belongs = isinstance(above, PruneEntry) and above.reason == "compaction"
                case ContextEditEntry():
                    made = entry.created_at, entry.action
                    belongs = (
                        isinstance(above, ContextEditEntry)
                        and (above.created_at, above.action) == made
                        and entry.action != "edit"
                    )
                case UserEntry():
                    planned = any(file.path == PLAN_PATH for file in entry.attached)
                    renewed = isinstance(above, SystemEntry) and above.parent_id is not None
                    belongs = renewed or (planned and above.sets_state)
                case _:
                    belongs = False
            if not belongs:
                break
            at = above.parent_id
        return at
