"""Holds what is read of a session until it is stored: on disk, so that a file of any size is read in little memory."""

from array import array
from collections.abc import Iterator, MutableMapping, Sequence
from tempfile import SpooledTemporaryFile
from typing import Any, overload

from tui_agent.session.entries import Entry, EntryAdapter

__all__ = ["StagedBlobs", "StagedEntries"]

_IN_MEMORY = 1_000_000
"""Bytes of a session that stay in memory before they go to a temporary file."""
_NEWEST = 64
"""Entries kept as they are: the ones that are still being added to."""


class _Spool:
    """Byte strings put one after the other into a temporary file that is gone when nobody needs it."""

    def __init__(self) -> None:
        self._file: Any = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - lives as long as this
        self._end = 0

    def put(self, data: bytes) -> int:
        """Keep bytes and return where they are."""
        at = self._end
        self._file.seek(at)
        self._file.write(data)
        self._end += len(data)
        return at

    def get(self, at: int, size: int) -> bytes:
        """Return bytes that were kept."""
        self._file.seek(at)
        content: bytes = self._file.read(size)
        return content


class StagedEntries(Sequence[Entry]):
    """Entries in their order; the newest in memory, all others on disk."""

    def __init__(self) -> None:
        self._spool = _Spool()
        self._places = array("Q")
        self._sizes = array("Q")
        self._newest: dict[int, Entry] = {}

    def append(self, entry: Entry) -> None:
        """Add an entry at the end."""
        self._newest[len(self._places)] = entry
        self._places.append(0)
        self._sizes.append(0)
        while len(self._newest) > _NEWEST:
            index = next(iter(self._newest))
            self._keep(index, self._newest.pop(index))

    def replace(self, index: int, entry: Entry) -> None:
        """Put another entry in the place of one."""
        if index in self._newest:
            self._newest[index] = entry
        else:
            self._keep(index, entry)

    def _keep(self, index: int, entry: Entry) -> None:
        data = entry.model_dump_json().encode("utf-8", "surrogatepass")
        self._places[index] = self._spool.put(data)
        self._sizes[index] = len(data)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = index if index >= 0 else len(self) + index
        if not 0 <= at < len(self):
            raise IndexError(index)
        if at in self._newest:
            return self._newest[at]
        return EntryAdapter.validate_json(self._spool.get(self._places[at], self._sizes[at]))


class StagedBlobs(MutableMapping[str, bytes]):
    """Contents by their digest, on disk."""

    def __init__(self) -> None:
        self._spool = _Spool()
        self._places: dict[str, tuple[int, int]] = {}

    def __setitem__(self, digest: str, content: bytes) -> None:
        if digest not in self._places:
            self._places[digest] = (self._spool.put(content), len(content))

    def __getitem__(self, digest: str) -> bytes:
        return self._spool.get(*self._places[digest])

    def __delitem__(self, digest: str) -> None:
        del self._places[digest]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
