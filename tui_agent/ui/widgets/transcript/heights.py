"""The heights of a long row of items, in lines: sums and searches that stay fast at a hundred thousand items."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

_CHUNK = 512


class HeightIndex:
    """A list of heights with running totals.

    Changing a height costs nothing, finding an offset or the item at one costs a few microseconds, because
    totals are kept per chunk and summed at C speed.
    """

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights: list[int] = list(heights)
        self._sums: list[int] = [
            sum(self._heights[start : start + _CHUNK]) for start in range(0, len(self._heights), _CHUNK)
        ]
        self.total: int = sum(self._sums)
        """Lines of everything."""

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    def __setitem__(self, index: int, height: int) -> None:
        change = height - self._heights[index]
        if change:
            self._heights[index] = height
            self._sums[index // _CHUNK] += change
            self.total += change

    def append(self, height: int) -> None:
        if len(self._heights) % _CHUNK == 0:
            self._sums.append(0)
        self._heights.append(height)
        self._sums[-1] += height
        self.total += height

    def pop(self) -> None:
        height = self._heights.pop()
        self._sums[-1] -= height
        self.total -= height
        if len(self._heights) % _CHUNK == 0:
            self._sums.pop()

    def offset(self, index: int) -> int:
        """Return the line at which an item starts; one past the last item is the total."""
        chunk = index // _CHUNK
        return sum(self._sums[:chunk]) + sum(self._heights[chunk * _CHUNK : index])

    def find(self, line: int) -> tuple[int, int]:
        """Return the item a line belongs to and the line within it; lines outside are the nearest inside."""
        if not self.total:
            return 0, 0
        line = min(max(line, 0), self.total - 1)
        sums = list(accumulate(self._sums))
        chunk = bisect_right(sums, line)
        line -= sums[chunk - 1] if chunk else 0
        start = chunk * _CHUNK
        totals = list(accumulate(self._heights[start : start + _CHUNK]))
        place = bisect_right(totals, line)
        return start + place, line - (totals[place - 1] if place else 0)
