"""Divides the tree of a session into linear segments between branch points.

The code in this module has no side effects, and needs only the headers of the entries. A tree of
100,000 entries with 20 branches has about 40 segments. Layout is fast, because it works on
segments, and only the rows are computed entry by entry.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

from tui_agent.session.skeleton import Headers


class Segment:
    """Successive entries without a branch point between them.

    ``count`` (the number of entries), ``tokens`` and ``cost`` are totals for this segment and all
    segments below it. ``number`` is the segment's index in the list of the tree's segments.
    """

    __slots__ = (
        "active",
        "children",
        "cost",
        "count",
        "headers",
        "is_beside",
        "last",
        "number",
        "parent",
        "pieces",
        "tokens",
    )

    def __init__(self, number: int, headers: Headers, parent: "Segment | None") -> None:
        self.number = number
        self.headers = headers
        self.pieces: list[slice] = []
        """The segment's entries, as ranges of positions in the list of all entry headers."""
        self.parent = parent
        self.children: list[Segment] = []
        self.active = 0
        """Number of entries, counted from the segment's start, that are on the path to the leaf."""
        self.count = 0
        self.tokens = 0
        self.cost = 0.0
        """Cost in US dollars. Entries with an unknown cost count as 0."""
        self.is_beside = False
        """Whether the segment belongs to a subagent's branch."""
        self.last = 0
        """Id of the newest entry in the segment or below it, not counting branches of subagents."""

    @property
    def key(self) -> int:
        """Id of the segment's first entry. It stays the same when entries are appended."""
        return self.headers.ids[0]

    @property
    def is_former_attempt(self) -> bool:
        """Whether the segment is a single answer that a newer answer has replaced.

        Such an answer isn't on the path to the leaf.
        """
        if self.children or self.parent is None or not self.is_lone_answer:
            return False
        newer = [one for one in self.parent.children if one.key > self.key]
        return any(one.headers.kind(0) == "assistant" for one in newer)

    @property
    def is_lone_answer(self) -> bool:
        """Whether the segment is a single answer that isn't on the path to the leaf."""
        return not self.active and len(self.headers) == 1 and self.headers.kind(0) == "assistant"

    @property
    def is_subagent(self) -> bool:
        """Whether the segment is the start of a subagent's branch."""
        return self.headers.kind(0) == "subagent"


class TreeIndex:
    """The segments of a session's tree, with their totals. Parents come before their children."""

    def __init__(
        self,
        headers: Headers,
        leaf: int | None,
        costs: Mapping[int, float] | None = None,
        calibrated: Callable[[int], int] = int,
    ) -> None:
        """Divide a session's tree into segments and compute their totals.

        ``costs`` maps entry ids to US dollars.

        ``calibrated`` corrects a stored number of tokens.

        Headers don't record how much of a text is not ASCII, so the totals assume English text.
        """
        self.headers = headers
        self.leaf = leaf
        self.segments: list[Segment] = []
        self.roots: list[Segment] = []
        self._starts: list[int] = []
        """Positions in the list of all headers at which the segments' ranges of entries start."""
        self._owners: list[Segment] = []
        self._cut()
        self._total(costs or {}, calibrated)
        if (found := self.locate(leaf)) is not None:
            segment, offset = found
            segment.active = offset + 1
            while (above := segment.parent) is not None:
                segment = above
                segment.active = len(segment.headers)

    # -- building

    def _cut(self) -> None:
        headers = self.headers
        if not headers:
            return
        runs, parents = zip(*headers.runs(), strict=True)
        branching = self._branching(runs, parents)
        cuts = sorted(branching)
        ends: dict[int, Segment] = {}
        cut = 0
        for start, stop, above in zip(runs, [*runs[1:], len(headers)], parents, strict=True):
            if above is None:
                segment = None
            elif above not in branching:
                segment = ends.pop(above)
            else:
                segment = ends[above]
            joins = above is not None and above not in branching
            at = start
            while at < stop:
                while cut < len(cuts) and cuts[cut] < at:
                    cut += 1
                end = stop
                if cut < len(cuts) and cuts[cut] < stop:
                    end = cuts[cut] + 1
                if not joins or segment is None:
                    parent = segment
                    segment = Segment(len(self.segments), headers, segment)
                    self.segments.append(segment)
                    (self.roots if parent is None else parent.children).append(segment)
                segment.pieces.append(slice(at, end))
                self._starts.append(at)
                self._owners.append(segment)
                ends[end - 1] = segment
                joins = False
                at = end
        for segment in self.segments:
            segment.headers = headers.joined(segment.pieces)
            segment.is_beside = segment.is_subagent or (
                segment.parent is not None and segment.parent.is_beside
            )

    def _branching(self, runs: Sequence[int], parents: Sequence[int | None]) -> set[int]:
        """Return the positions of entries with several children, or with a subagent's branch."""
        attached: dict[int, int] = {}
        for above in parents:
            if above is not None:
                attached[above] = attached.get(above, 0) + 1
        starts = set(runs)
        branching = set()
        for above, count in attached.items():
            goes_on = above + 1 < len(self.headers) and above + 1 not in starts
            if count + goes_on > 1:
                branching.add(above)
        for start, parent in zip(runs, parents, strict=True):
            if parent is not None and self.headers.kind(start) == "subagent":
                branching.add(parent)
        return branching

    def _total(self, costs: Mapping[int, float], calibrated: Callable[[int], int]) -> None:
        for segment in reversed(self.segments):
            headers = segment.headers
            children = segment.children
            segment.count = len(headers)
            segment.tokens = calibrated(sum(headers.tokens))
            segment.last = headers.ids[-1]
            if costs:
                segment.cost = sum(filter(None, map(costs.get, headers.ids)))
            for child in children:
                segment.count += child.count
                segment.tokens += child.tokens
                segment.cost += child.cost
                if not child.is_subagent:
                    segment.last = max(segment.last, child.last)

    # -- reading

    def locate(self, entry_id: int | None) -> tuple[Segment, int] | None:
        """Return the segment that contains an entry, and the entry's offset in that segment.

        Returns None if there is no such entry.
        """
        position = self.headers.position(entry_id)
        if position is None:
            return None
        segment = self._owners[bisect_right(self._starts, position) - 1]
        offset = segment.headers.position(entry_id)
        if offset is None:
            return None
        return (segment, offset)

    def branches(self, has_failed: Callable[[int], bool]) -> int:
        """Return the number of branches, except those of subagents and single failed answers.

        ``has_failed`` takes the id of an answer, and returns whether the answer failed. It is
        called only for single answers that are not on the path to the leaf.
        """
        ends = 0
        for segment in self.segments:
            if not segment.is_beside and all(child.is_subagent for child in segment.children):
                ends += not (segment.is_lone_answer and has_failed(segment.key))
        return ends
