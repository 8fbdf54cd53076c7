"""What made room on a path so far: its compactions and prunes, counted."""

from collections.abc import Iterable

from tui_agent.lazy import dataclass
from tui_agent.session.entries import CompactionEntry, Entry, PruneEntry, kinds

ROOM_KINDS = kinds(lambda kind: kind.frees_room)
"""Kinds of entries that make room."""


@dataclass(frozen=True, slots=True)
class RoomMade:
    """How often a path was compacted and pruned, the newest compaction, and the tokens that prunes freed."""

    compactions: int = 0
    prunes: int = 0
    freed: int = 0
    newest: CompactionEntry | None = None

    @property
    def sentence(self) -> str:
        """What a person is told, "" when nothing was done."""
        parts = []
        if self.newest is not None:
            times = "once" if self.compactions == 1 else f"{self.compactions} times"
            sizes = f"{self.newest.tokens_before:,} → {self.newest.tokens_after:,} tokens of history"
            parts.append(f"compacted {times}, last at #{self.newest.id} ({sizes})")
        if self.prunes:
            times = "once" if self.prunes == 1 else f"{self.prunes} times"
            parts.append(f"cleared old outputs {times} ({self.freed:,} tokens)")
        return f"So far {', '.join(parts)}." if parts else ""


def room_made(path: Iterable[Entry]) -> RoomMade:
    """Return what made room on a path; entries of other kinds may be left out of it."""
    entries = list(path)
    compactions = [entry for entry in entries if isinstance(entry, CompactionEntry)]
    prunes = [entry for entry in entries if isinstance(entry, PruneEntry)]
    newest = compactions[-1] if compactions else None
    return RoomMade(len(compactions), len(prunes), sum(prune.tokens_freed for prune in prunes), newest)
