"""The part of a path that counts: the last compaction, the entries it keeps, as edits and prunes left them.

Pure and linear. A path may be whole (from the root) or active (the last head, model and mode, then
everything from the last compaction's first kept entry on); both resolve to the same view.
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
    """An entry's state in the model's view."""

    LIVE = "live"
    PRUNED = "pruned"
    """A prune took its output (of a user message: its images; of an assistant entry: long
    arguments)."""
    MASKED = "masked"
    """The user replaced it with a placeholder."""
    DROPPED = "dropped"
    """The user took it out; a call goes with its result."""
    PINNED = "pinned"
    """Live, safe from pruning, and carried verbatim through compaction."""

    @property
    def word(self) -> str:
        """The state as users read it; the value is stored and printed as JSON."""
        return _WORDS.get(self.value, self.value)


@frozen
class ContextView:
    """The entries that count, in order, and the state of each.

    ``entries`` are the kept entries and those after the compaction, of every kind; ``compaction``
    itself is not among them. ``states`` and ``kept_chars`` (characters a prune left of an entry,
    instead of a placeholder) hold only deviations from the default. ``results`` maps the id of an
    assistant entry that made calls to one result, or None, per call. ``pinned`` is the text of
    pinned entries before the compaction that it carries verbatim, less those unpinned since.
    ``rewrites`` are the changes to sent entries: the first entry each concerned and the entry that
    brought it; entries appended between them answered another request than is sent now.
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
    """Parts of entries that a provider refused; see ``ContextEditEntry.parts``."""
    originals: Mapping[int, Entry] = field(default_factory=dict)
    """Entries whose content the user edited, as they are stored; ``entries`` has the edited ones."""

    @property
    def reasoning_from(self) -> int:
        """The entry behind those whose reasoning a provider refused; 0 where it refused none."""
        refused = [target for target, parts in self.left_out.items() if REASONING in parts]
        return max(refused, default=-1) + 1

    @property
    def carried(self) -> SummaryDetails:
        """What the summary in force carries beside its text, nothing without one."""
        if self.compaction is None:
            return SummaryDetails()
        return self.compaction.details

    def state(self, entry_id: int) -> EntryState:
        return self.states.get(entry_id, EntryState.LIVE)

    def is_open(self, entry_id: int) -> bool:
        """Whether the entry's content is shown as it is: live or pinned."""
        return self.states.get(entry_id, EntryState.LIVE) in (EntryState.LIVE, EntryState.PINNED)

    def holds(self, entry_id: int | None) -> bool:
        """Whether an entry that another one points to is among those shown as they are.

        None is no entry to miss.
        """
        if entry_id is None:
            return True
        return self.is_open(entry_id) and any(entry.id == entry_id for entry in self.entries)

    def answered(self) -> frozenset[int]:
        """Return the ids of all tool results that answer a call; the others are not sent."""
        answered: set[int] = set()
        for row in self.results.values():
            answered.update(result.id for result in row if result is not None)
        return frozenset(answered)


def resolve(path: Sequence[Entry]) -> ContextView:
    """Return the view of a path, oldest entry first.

    The last compaction that the path's model can read counts; when its first kept entry is not on
    the path before it, it keeps nothing. The last system entry counts wherever it stands. Of edits
    and prunes the latest per target counts, except that a prune leaves a pinned entry alone.

    A result answers the first open call of its id in the assistant entry before it, up to the next
    assistant entry: a request was sent in between, and calls it showed as interrupted stay so.
    """
    system, model, mode = _head(path)
    compaction, entries = _kept(path, model)
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
    """Return the compaction in force, and the entries that it keeps and that followed it."""
    at = place_of_newest(path, CompactionEntry, where=lambda entry: entry.is_read_by(model))
    compaction = None if at is None else path[at]
    if at is None or not isinstance(compaction, CompactionEntry):
        return None, tuple(path)
    start = at
    if (first := compaction.first_kept_id) is not None:
        start = next((place for place in range(at - 1, -1, -1) if path[place].id == first), at)
    return compaction, (*path[start:at], *path[at + 1 :])


def _rewrites(entries: Sequence[Entry]) -> Iterator[tuple[int, int]]:
    """Yield the first entry each change concerns and the one that brought it.

    A summary or a head concerns all.
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
    """Return the last system entry, and the model and mode that hold at the end of the path.

    None: it names none.
    """
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
    """The sum of prunes and context edits."""

    states: dict[int, EntryState] = field(default_factory=dict)
    kept_chars: dict[int, int] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)
    carried: dict[int, PinnedText] = field(default_factory=dict)
    left_out: dict[int, set[str]] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    """What the user put in the place of an entry's content."""

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
        """Show an entry again as it was edited last; one that is shown, as it is stored."""
        self.left_out.pop(target, None)
        if self.states.pop(target, None) is None:
            self.texts.pop(target, None)

    def _forget(self, target: int) -> None:
        self.kept_chars.pop(target, None)
        self.notes.pop(target, None)


_STATE_OF_ACTION = {"drop": EntryState.DROPPED, "mask": EntryState.MASKED, "pin": EntryState.PINNED}


def _apply_edits(entries: Sequence[Entry], compaction: CompactionEntry | None) -> _Edits:
    """Fold prunes and edits.

    One that stands before its target, or outside the view, changes nothing.
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
    """Return, per assistant entry with calls, the results that answer them."""
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
