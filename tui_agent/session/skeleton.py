"""Keeps the headers of a session's entries, whose previews and times are read when first used."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, overload

from tui_agent.session.records import EntryHeader
from tui_agent.session.tree_index import KIND_LETTERS, KIND_OF_CODE, UNKNOWN_KIND

SILENT_CALL: Final = KIND_LETTERS["assistant"].upper()
"""The letter that stands for an answer that only calls tools."""

_KINDS: Final = {**KIND_OF_CODE, ord(SILENT_CALL): "assistant"}

_NEAR: Final = 64
"""Number of neighbouring entry headers that are read together."""
_CACHED_HEADERS: Final = 4_096
"""Maximum number of entry headers that are kept in memory."""


def is_silent_call(preview: str) -> bool:
    """Return True if an answer with this preview only calls tools.

    Such a preview is ``tool {arguments}`` or "".
    """
    return not preview or preview.partition(" ")[2].startswith("{")


class Headers(Sequence[EntryHeader]):
    """A sequence of entry headers, by ascending id, that reads a header when it is first used.

    ``ids``, ``letters`` (from `KIND_LETTERS`, or `SILENT_CALL`) and ``tokens`` contain one item per
    entry. ``parents`` contains the parent of each entry whose parent isn't the preceding id.
    ``read`` returns the headers of given ids. Indexes and positions count from the beginning of
    this sequence.
    """

    def __init__(
        self,
        ids: Sequence[int],
        letters: bytes,
        tokens: Sequence[int],
        parents: Mapping[int, int | None],
        read: Callable[[Sequence[int]], Iterable[EntryHeader]],
    ) -> None:
        self.ids = ids
        self.letters = letters
        self.tokens = tokens
        self._parents = parents
        self._read = read
        self._at_hand: dict[int, EntryHeader] = {}

    @classmethod
    def of(cls, headers: Iterable[EntryHeader]) -> "Headers":
        known = {header.id: header for header in headers}
        letters = ""
        tokens: list[int] = []
        parents: dict[int, int | None] = {}
        for header in known.values():
            letters += _letter_of(header)
            tokens.append(header.tokens)
            if header.parent_id != header.id - 1:
                parents[header.id] = header.parent_id
        return cls(
            list(known),
            letters.encode(),
            tokens,
            parents,
            read=lambda ids: [known[entry_id] for entry_id in ids],
        )

    def _part(self, ids: Sequence[int], letters: bytes, tokens: Sequence[int]) -> "Headers":
        part = Headers(ids, letters, tokens, self._parents, self._read)
        part._at_hand = self._at_hand
        return part

    def hung(self, parents: Mapping[int, int | None]) -> "Headers":
        """Return the same headers with different parents for some entries, to draw the tree.

        Only `runs` uses these parents. The headers themselves are unchanged.
        """
        return Headers(
            self.ids, self.letters, self.tokens, {**self._parents, **parents}, self._read
        )

    def joined(self, stretches: Sequence[slice]) -> "Headers":
        parts = [self[stretch] for stretch in stretches]
        if len(parts) == 1:
            return parts[0]
        ids: list[int] = []
        tokens: list[int] = []
        for part in parts:
            ids += part.ids
            tokens += part.tokens
        return self._part(ids, b"".join(part.letters for part in parts), tokens)

    def runs(self) -> list[tuple[int, int | None]]:
        """Return, for each run, the index of its first entry and the index of that entry's parent.

        A run is a series of entries in which each entry's parent is the entry before it. The second
        index is None for a root, or if the parent isn't in this sequence.
        """
        if not self.ids:
            return []
        starts = {0}
        for entry_id in self._parents:
            if (at := self.position(entry_id)) is not None:
                starts.add(at)
        if self.ids[-1] - self.ids[0] + 1 != len(self.ids):
            starts |= {at for at, (one, two) in enumerate(pairwise(self.ids), 1) if two != one + 1}
        runs: list[tuple[int, int | None]] = []
        for at in sorted(starts):
            entry_id = self.ids[at]
            runs.append((at, self.position(self._parents.get(entry_id, entry_id - 1))))
        return runs

    def position(self, entry_id: int | None) -> int | None:
        if entry_id is None:
            return None
        at = bisect_left(self.ids, entry_id)
        if at < len(self.ids) and self.ids[at] == entry_id:
            return at
        return None

    def kind(self, at: int) -> str:
        return _KINDS[self.letters[at]]

    def of_kinds(self, kinds: Iterable[str]) -> list[int]:
        """Return the ascending indexes of the entries of the given kinds."""
        letters = "".join(KIND_LETTERS[kind] for kind in kinds)
        wanted = letters + (SILENT_CALL if KIND_LETTERS["assistant"] in letters else "")
        return [match.start() for match in re.finditer(f"[{wanted}]".encode(), self.letters)]

    def some(self, positions: Iterable[int]) -> list[EntryHeader]:
        return list(self._read([self.ids[at] for at in positions]))

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, at: int) -> EntryHeader: ...
    @overload
    def __getitem__(self, at: slice) -> "Headers": ...
    def __getitem__(self, at: int | slice) -> "EntryHeader | Headers":
        if isinstance(at, slice):
            return self._part(self.ids[at], self.letters[at], self.tokens[at])
        entry_id = self.ids[at]
        if entry_id not in self._at_hand:
            if len(self._at_hand) > _CACHED_HEADERS:
                self._at_hand.clear()
            start = at % len(self.ids) // _NEAR * _NEAR
            self._at_hand.update(
                (header.id, header) for header in self._read(self.ids[start : start + _NEAR])
            )
        # If a header has become unreadable, only its id and tokens are known.
        return self._at_hand.get(entry_id) or EntryHeader(
            entry_id, None, "", preview="", tokens=self.tokens[at], created_at=0, size=0
        )


def _letter_of(header: EntryHeader) -> str:
    if header.kind == "assistant" and is_silent_call(header.preview):
        return SILENT_CALL
    return KIND_LETTERS.get(header.kind, UNKNOWN_KIND)
