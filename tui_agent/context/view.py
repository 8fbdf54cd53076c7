"""Resolves a path of entries into a view, from which a request is made.

A path leads down the session tree to a leaf. A view contains the last compaction of the path, the
entries that it keeps and all later ones. Each entry has the state that edits and prunes gave it. A
path may be whole (from the root) or active (``Session.active_path``); both resolve to the same
view. All functions are pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from itertools import zip_longest
from typing import Final

from tui_agent.context.edited import with_content
from tui_agent.lazy import dataclass, frozen
from tui_agent.session.entries import (
    REASONING,
    AssistantEntry,
    CompactionEntry,
    ContextEditEntry,
    EffortChangeEntry,
    Entry,
    ModeChangeEntry,
    ModelChangeEntry,
    PinnedText,
    PruneEntry,
    SummaryDetails,
    SystemEntry,
    ToolResultEntry,
)
from tui_agent.session.path_queries import newest, place_of_newest

_WORDS: Final = {"pruned": "cleared", "masked": "cleared", "dropped": "hidden"}


class EntryState(StrEnum):
    """The state of an entry of a view, which says how the entry is sent to the model."""

    LIVE = "live"
    """The normal state: the entry is sent unchanged."""
    PRUNED = "pruned"
    """The entry was cleared or cut by a prune. This applies to an output, a message's images, and
    an answer's long arguments."""
    MASKED = "masked"
    """The user replaced the entry with a placeholder. The screens call this state "cleared"."""
    DROPPED = "dropped"
    """The user removed the entry; a call is removed together with its result. The screens call this
    state "hidden"."""
    PINNED = "pinned"
    """The entry is sent unchanged, never pruned, and copied verbatim by compactions."""

    @property
    def word(self) -> str:
        """The name of the state on the screens; JSON output uses the state's value instead."""
        return _WORDS.get(self.value, self.value)


@frozen
class ContextView:
    """The parts of a request: the system entry, the compaction, and entries with their states.

    ``entries`` are the entries that ``compaction`` keeps and those after it, of every kind, in
    order, without ``compaction`` itself. If ``compaction`` is None, they are all entries of the
    path. ``states``, ``kept_chars`` (characters that a prune left of each text) and ``notes``
    (texts added to placeholders) are keyed by entry id, and contain only the entries that an edit
    or prune changed. ``results`` contains, by the id of an answer, one result or None for each of
    its calls. ``pinned`` are the pinned entries that the compaction copied, except those unpinned
    since. ``rewrites`` contains, for each entry that changed earlier entries, the id of the first
    changed entry (0 if all changed) and its own id. The answers between these two ids were made
    from requests that differ from what is sent now.
    """

    system: SystemEntry | None
    model: str | None
    mode: str | None
    effort: EffortChangeEntry | None
    compaction: CompactionEntry | None
    entries: tuple[Entry, ...]
    states: Mapping[int, EntryState] = field(default_factory=dict)
    kept_chars: Mapping[int, int] = field(default_factory=dict)
    notes: Mapping[int, str] = field(default_factory=dict)
    results: Mapping[int, tuple[ToolResultEntry | None, ...]] = field(default_factory=dict)
    pinned: tuple[PinnedText, ...] = ()
    rewrites: tuple[tuple[int, int], ...] = ()
    left_out: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """The parts of entries that were left out because a provider refused them, by entry id; see
    ``ContextEditEntry.parts``."""
    originals: Mapping[int, Entry] = field(default_factory=dict)
    """The entries that the user edited, as they are stored, by id. ``entries`` contains their
    edited form."""

    @property
    def reasoning_from(self) -> int:
        """The lowest entry id from which reasoning may be sent; 0 if no reasoning was refused."""
        refused = [target for target, parts in self.left_out.items() if REASONING in parts]
        return max(refused, default=-1) + 1

    @property
    def carried(self) -> SummaryDetails:
        """The details of the view's compaction; empty details if there is none."""
        if self.compaction is None:
            return SummaryDetails()
        return self.compaction.details

    def state(self, entry_id: int) -> EntryState:
        return self.states.get(entry_id, EntryState.LIVE)

    def is_open(self, entry_id: int) -> bool:
        """Return True if the content of an entry is sent unchanged (live or pinned entries)."""
        return self.states.get(entry_id, EntryState.LIVE) in (EntryState.LIVE, EntryState.PINNED)

    def holds(self, entry_id: int | None) -> bool:
        """Return True if ``entry_id`` is None, or if the view sends this entry unchanged."""
        if entry_id is None:
            return True
        return self.is_open(entry_id) and any(entry.id == entry_id for entry in self.entries)

    def answered(self) -> frozenset[int]:
        """Return the ids of the tool results that belong to a call, because only these are sent."""
        answered: set[int] = set()
        for row in self.results.values():
            answered.update(result.id for result in row if result is not None)
        return frozenset(answered)


def resolve(path: Sequence[Entry]) -> ContextView:
    """Return the view of a path (oldest entry first).

    The view's compaction is the last one that can be sent to the path's model. If its first kept
    entry isn't before it on the path, the compaction keeps nothing. The last system entry applies
    wherever it is. The latest edit or prune of an entry decides its state, except that a prune
    never changes a pinned entry.

    A result belongs to the last answer before it: to that answer's first call with the same call id
    and no result yet. A result that comes after the next answer belongs to no call, because the
    call was already sent as interrupted.
    """
    compaction, entries = _kept(path, _head(path)[1])
    return _resolved(path, compaction, entries)


def resolve_all(entries: Sequence[Entry]) -> ContextView:
    """Return a view with all the entries, including those that a compaction has summarised.

    Use it for texts other than requests, such as a branch's summary. The user's edits then also
    apply to entries that were summarised later.
    """
    return _resolved(entries, None, tuple(entries))


def _resolved(
    path: Sequence[Entry], compaction: CompactionEntry | None, entries: tuple[Entry, ...]
) -> ContextView:
    system, model, mode = _head(path)
    edits = _apply_edits(entries, compaction)
    originals: dict[int, Entry] = {}
    if edits.texts:
        edited = list(entries)
        for at, entry in enumerate(entries):
            if entry.id in edits.texts:
                originals[entry.id] = entry
                edited[at] = with_content(entry, edits.texts[entry.id])
        entries = tuple(edited)
    results = _pair(entries)
    for entry_id, row in results.items():
        if edits.states.get(entry_id) is EntryState.DROPPED:
            for result in row:
                if result is not None:
                    edits.states[result.id] = EntryState.DROPPED
    return ContextView(
        system=system,
        model=model,
        mode=mode,
        effort=newest(path, EffortChangeEntry),
        compaction=compaction,
        entries=entries,
        states=edits.states,
        kept_chars=edits.kept_chars,
        notes=edits.notes,
        results=results,
        pinned=tuple(edits.carried.values()),
        left_out={target: frozenset(parts) for target, parts in edits.left_out.items()},
        originals=originals,
        rewrites=tuple(_rewrites(entries if compaction is None else (*entries, compaction))),
    )


def _kept(
    path: Sequence[Entry], model: str | None
) -> tuple[CompactionEntry | None, tuple[Entry, ...]]:
    """Return the view's compaction, if any, and the entries that it keeps or that follow it."""
    at = place_of_newest(path, CompactionEntry, where=lambda entry: entry.is_read_by(model))
    compaction = None if at is None else path[at]
    if at is None or not isinstance(compaction, CompactionEntry):
        return None, tuple(path)
    start = at
    if (first := compaction.first_kept_id) is not None:
        start = next((place for place in range(at - 1, -1, -1) if path[place].id == first), at)
    return compaction, (*path[start:at], *path[at + 1 :])


def _rewrites(entries: Sequence[Entry]) -> Iterator[tuple[int, int]]:
    """Yield a pair of ids for each entry that changed earlier entries.

    The first is the id of the first changed entry, 0 if all were changed; the second is the id of
    the entry that made the change.
    """
    for entry in entries:
        if not entry.breaks_prefix:
            continue
        match entry:
            case CompactionEntry() | SystemEntry():
                yield 0, entry.id
            case PruneEntry(targets=targets) if targets:
                yield min(targets), entry.id
            case ContextEditEntry(target=target, parts=parts):
                yield (0 if REASONING in parts else target), entry.id
            case _:
                pass


def _head(path: Sequence[Entry]) -> tuple[SystemEntry | None, str | None, str | None]:
    """Return the path's last system entry, and the model and mode at its end; None if unset."""
    model: str | None = None
    mode: str | None = None
    for entry in reversed(path):
        if not entry.sets_state:
            continue
        match entry:
            case SystemEntry():
                return entry, model or entry.model, mode or entry.mode
            case ModelChangeEntry():
                model = model or entry.model
            case ModeChangeEntry():
                mode = mode or entry.mode
            case _:
                pass
    return None, model, mode


@dataclass
class _Edits:
    """Collects how prunes and context edits change each entry, by entry id."""

    states: dict[int, EntryState] = field(default_factory=dict)
    kept_chars: dict[int, int] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)
    carried: dict[int, PinnedText] = field(default_factory=dict)
    left_out: dict[int, set[str]] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    """The contents with which the user replaced those of entries, by entry id."""

    def prune(self, entry: PruneEntry, seen: set[int]) -> None:
        for target, note in zip_longest(
            entry.targets, entry.notes[: len(entry.targets)], fillvalue=""
        ):
            if target not in seen or self.states.get(target) is EntryState.PINNED:
                continue
            self.states[target] = EntryState.PRUNED
            self._forget(target)
            if entry.keep_chars:
                self.kept_chars[target] = entry.keep_chars
            if note:
                self.notes[target] = note

    def edit(self, entry: ContextEditEntry, seen: set[int]) -> None:
        if entry.action == "leave_out":
            if entry.target in seen:
                self.left_out.setdefault(entry.target, set()).update(entry.parts)
            return
        if entry.action != "pin":
            self.carried.pop(entry.target, None)
        if entry.target not in seen:
            return
        self._forget(entry.target)
        if entry.action == "restore":
            self._restore(entry.target)
        elif entry.action == "edit":
            self.texts[entry.target] = entry.text
            if self.states.get(entry.target) is not EntryState.PINNED:
                self.states.pop(entry.target, None)
        else:
            self.states[entry.target] = _STATE_OF_ACTION[entry.action]

    def _restore(self, target: int) -> None:
        """Undo edits of an entry, including the removal of parts that a provider refused.

        A cleared, hidden or pinned entry becomes live, with the content that the user last gave it.
        If the entry is already live, its stored content is restored.
        """
        self.left_out.pop(target, None)
        if self.states.pop(target, None) is None:
            self.texts.pop(target, None)

    def _forget(self, target: int) -> None:
        self.kept_chars.pop(target, None)
        self.notes.pop(target, None)


_STATE_OF_ACTION = {"drop": EntryState.DROPPED, "mask": EntryState.MASKED, "pin": EntryState.PINNED}


def _apply_edits(entries: Sequence[Entry], compaction: CompactionEntry | None) -> _Edits:
    """Return the effects of all prunes and edits of a view, applied in order.

    A prune or edit has no effect if its target comes later or is not in the view, except that an
    edit unpins an entry that the compaction copied.
    """
    edits = _Edits()
    seen: set[int] = set()
    if compaction is not None:
        seen.add(compaction.id)
        for pin in compaction.details.pinned:
            edits.carried[pin.id] = pin
    elif not any(entry.edits_view for entry in entries):
        return edits
    for entry in entries:
        seen.add(entry.id)
        if compaction is not None and entry.id < compaction.id:
            edits.carried.pop(entry.id, None)
        if isinstance(entry, PruneEntry):
            edits.prune(entry, seen)
        elif isinstance(entry, ContextEditEntry):
            edits.edit(entry, seen)
    return edits


def _pair(entries: Sequence[Entry]) -> dict[int, tuple[ToolResultEntry | None, ...]]:
    """Return the results of each answer's calls, by the answer's id. A missing one is None."""
    rows: dict[int, tuple[ToolResultEntry | None, ...]] = {}
    waiting: AssistantEntry | None = None
    places: dict[str, list[int]] = {}
    row: list[ToolResultEntry | None] = []
    for entry in entries:
        if type(entry) is AssistantEntry:
            if waiting is not None:
                rows[waiting.id] = tuple(row)
            calls = entry.tool_calls
            row = [None] * len(calls)
            waiting = entry if calls else None
            places = {}
            for at, call in enumerate(calls):
                places.setdefault(call.call_id, []).append(at)
        elif (
            waiting is not None
            and type(entry) is ToolResultEntry
            and (free := places.get(entry.call_id))
        ):
            row[free.pop(0)] = entry
    if waiting is not None:
        rows[waiting.id] = tuple(row)
    return rows
