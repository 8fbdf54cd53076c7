"""Lays out the segments of a session tree as lines: their order, indentation and folds.

A segment is a series of entries without a branch point. Only branch points add indentation. The
path consists of the entries from the root to the leaf. A long branch that isn't on the path is
folded at first, so that only its first row is shown, followed by a line with the number of hidden
entries. The code in this module has no side effects.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import field, replace
from enum import Enum
from operator import is_
from typing import NamedTuple

from tui_agent.lazy import dataclass
from tui_agent.ui.widgets.tree.rows import Filter, Rows, RowSpan, rows_of
from tui_agent.ui.widgets.tree.segments import Segment, TreeIndex

MAX_DEPTH = 12
"""Maximum number of indentation levels drawn. Deeper lines show only the innermost levels."""

_MIN_FOLDED_ROWS = 3
"""Minimum number of rows of a branch that is folded at first.

Only branches that aren't on the path to the leaf are folded at first.
"""


@dataclass(frozen=True)
class TreeOptions:
    """The user's choices for the session tree (filter, folds, unfolded groups), and entry labels.

    ``labels`` maps entry ids to labels. ``folds`` maps the id of a branch's first entry to whether
    the user folded the branch. A branch that isn't in ``folds`` is folded by default if it isn't on
    the path to the leaf and has at least `_MIN_FOLDED_ROWS` rows.
    """

    filter: Filter = Filter.DEFAULT
    labels: Mapping[int, str] = field(default_factory=dict)
    folds: Mapping[int, bool] = field(default_factory=dict)
    opened: frozenset[int] = frozenset()
    """Ids of the first entries of the groups that are unfolded.

    An unfolded group shows a row for each of its tool calls.
    """

    def folded(self, key: int, *, folded: bool) -> "TreeOptions":
        """Return a copy of these options in which one branch is folded or unfolded.

        ``key`` is the id of the branch's first entry.
        """
        return replace(self, folds={**self.folds, key: folded})


class LineKind(Enum):
    """What a line of the tree shows: an entry, tool calls, or the rest of a folded branch.

    In the last case, the line shows the number of hidden entries.
    """

    ENTRY = "entry"
    GROUP = "group"
    FOLD = "fold"


class TreeLine(NamedTuple):
    """A line of the tree.

    ``guide`` is the text to the left of the content, with the lines that connect entries. ``entry``
    is the id of the entry that keys act on. It is the row's last entry or, if the line stands for
    the hidden entries of a folded branch, the branch's newest entry.
    """

    what: LineKind
    segment: Segment
    row: RowSpan
    guide: str
    entry: int
    is_head: bool
    """Whether the line is the first row of a branch."""
    can_fold: bool
    is_folded: bool

    @property
    def active(self) -> bool:
        """Whether the line's first entry is on the path from the root of the tree to the leaf.

        It is always False for the line of a folded branch's hidden entries.
        """
        return self.what is not LineKind.FOLD and self.row.first < self.segment.active


class _Placed(NamedTuple):
    """A segment of the tree that has been laid out. ``start`` is the number of its first line.

    ``lead`` is the guide of the segment's first line, that is, the connecting lines to the left of
    the content. ``rest`` is the guide of its other lines. ``head`` is the index, in the list of
    laid-out segments, of the first segment of the same branch.
    """

    segment: Segment
    rows: Rows
    lead: str
    rest: str
    start: int
    head: int
    is_head: bool
    can_fold: bool
    is_folded: bool

    @property
    def height(self) -> int:
        if self.is_folded:
            return 2
        return len(self.rows)


class Outline:
    """The lines of a session's tree, laid out according to the user's options.

    Creating an outline visits every entry once. Finding a line in it takes only a binary search.
    """

    def __init__(self, index: TreeIndex, view: TreeOptions, base: "Outline | None" = None) -> None:
        """``base`` is an earlier outline of the session, if any.

        Its rows are reused where they still apply.
        """
        self.index = index
        self.view = view
        self.by_segment: list[Rows] = self._rows_from(base)
        """The rows of each segment, no matter whether the segment is folded."""
        self._numbers: dict[int, list[int]] = {}
        if base is not None and self.has_rows_of(base):
            self._numbers = base._numbers  # noqa: SLF001 - another of the same class
        self._below: list[int] = [len(rows) for rows in self.by_segment]
        self._shown: list[list[Segment]] = [[] for _ in self.by_segment]
        self._placed: list[_Placed] = []
        self._starts: list[int] = []
        self._place_of: dict[int, int] = {}
        self.total = 0
        # For each segment, count its rows and all rows below it. Leave out segments without rows.
        for segment in reversed(index.segments):
            for child in segment.children:
                self._below[segment.number] += self._below[child.number]
                self._shown[segment.number] += self._stand_ins(child)
        self._place()
        self.here = -1
        """Number of the line that shows the leaf, or of the nearest line above it. -1 if none."""
        if index.leaf is not None and self.total:
            self.here = self.find(index.leaf)

    # -- building

    def _rows_from(self, base: "Outline | None") -> list[Rows]:
        index = self.index
        view = self.view
        same = base is not None and base.index is index and base.view.filter == view.filter
        if (
            base is None
            or not same
            or (view.filter is Filter.LABELLED and base.view.labels != view.labels)
        ):
            return [self._rows_of(segment) for segment in index.segments]
        changed = set()
        for run in base.view.opened ^ view.opened:
            if (found := index.locate(run)) is not None:
                changed.add(found[0].number)
        rows = list(base.by_segment)
        for number in changed:
            rows[number] = self._rows_of(index.segments[number])
        return rows

    def _rows_of(self, segment: Segment) -> Rows:
        view = self.view
        if view.filter is Filter.USER_ONLY and segment.is_beside:
            return Rows([])
        if (
            segment.is_former_attempt
            and view.filter is not Filter.EVERYTHING
            and segment.key not in view.labels
        ):
            return Rows([])
        return rows_of(segment.headers, view.filter, view.labels, view.opened)

    def _stand_ins(self, segment: Segment) -> list[Segment]:
        if self.by_segment[segment.number]:
            return [segment]
        return self._shown[segment.number]

    def _place(self) -> None:
        roots = []
        for root in self.index.roots:
            roots.extend(self._stand_ins(root))
        stack = self._branches(roots, "", -1)
        line = 0
        while stack:
            segment, lead, rest, head = stack.pop()
            rows = self.by_segment[segment.number]
            place = len(self._placed)
            is_head = head < 0
            can_fold = is_head and bool(lead) and self._below[segment.number] > 1
            many = self._below[segment.number] >= _MIN_FOLDED_ROWS and len(self.index.segments) > 1
            is_folded = can_fold and self.view.folds.get(segment.key, many and not segment.active)
            if is_head:
                head = place
            placed = _Placed(
                segment,
                rows,
                lead,
                rest,
                start=line,
                head=head,
                is_head=is_head and bool(lead),
                can_fold=can_fold,
                is_folded=is_folded,
            )
            self._placed.append(placed)
            self._starts.append(line)
            self._place_of[segment.number] = place
            line += placed.height
            if not is_folded:
                stack += self._branches(self._shown[segment.number], rest, head)
        self.total = line

    def _branches(
        self, segments: list[Segment], rest: str, head: int
    ) -> list[tuple[Segment, str, str, int]]:
        """Return the segments to lay out, last first: (segment, first guide, other guides, head).

        A guide is the text to the left of a line's content, with lines that connect entries. The
        first guide belongs to the segment's first line, the other guide to all its other lines.
        ``rest`` is the guide of the line above the segments. The head is -1 if a branch starts with
        the segment.
        """
        # Branches of subagents are indented. The segment that continues the path is not.
        beside = [segment for segment in segments if segment.is_subagent]
        ways = [segment for segment in segments if not segment.is_subagent]
        if len(ways) == 1 and (head >= 0 or not rest):
            found = [(ways[0], rest, rest, head)]
            branches = beside
        else:
            found = []
            branches = [*beside, *ways]
        hung = [(segment, _cropped(f"{rest}├─"), _cropped(f"{rest}│ "), -1) for segment in branches]
        if hung and not found:
            hung[-1] = (branches[-1], _cropped(f"{rest}└─"), _cropped(f"{rest}  "), -1)
        return [*hung, *found][::-1]

    # -- reading

    def line(self, y: int) -> TreeLine | None:
        """Return the line with the number ``y``, counted from 0.

        Returns None if there is no such line.
        """
        if not 0 <= y < self.total:
            return None
        placed = self._placed[bisect_right(self._starts, y) - 1]
        at = y - placed.start
        is_fold = placed.is_folded and at == 1
        is_first = at == 0
        guide = placed.lead if is_first else placed.rest
        if is_fold:
            row = placed.rows[0]
            what = LineKind.FOLD
            last = placed.segment.last
        else:
            row = placed.rows[at]
            what = LineKind.GROUP if row.is_group else LineKind.ENTRY
            last = placed.segment.headers.ids[row.last]
        return TreeLine(
            what,
            placed.segment,
            row,
            guide=guide,
            entry=last,
            is_head=placed.is_head and is_first,
            can_fold=is_fold or (placed.can_fold and is_first),
            is_folded=placed.is_folded,
        )

    def find(self, entry_id: int | None) -> int:
        """Return the number, from 0, of the line that shows an entry.

        If the entry is hidden in a folded branch, this is the line for the branch's hidden entries.
        If the filter hides the entry, it is the nearest line above the entry. Returns 0 if there is
        no such entry.
        """
        found = self.index.locate(entry_id)
        if found is None:
            return 0
        segment, offset = found
        place = self._place_of.get(segment.number)
        if place is not None:
            placed = self._placed[place]
            row = bisect_right(placed.rows.firsts, offset) - 1
            if placed.is_folded:
                # The second line of a folded branch stands for all entries below the first row.
                return placed.start + (0 if row == 0 and offset <= placed.rows[0].last else 1)
            if row >= 0:
                return placed.start + row
        return self._above(segment.parent)

    def _above(self, segment: Segment | None) -> int:
        while segment is not None:
            place = self._place_of.get(segment.number)
            if place is not None:
                placed = self._placed[place]
                return placed.start + placed.height - 1
            segment = segment.parent
        return 0

    def branch_point_above(self, y: int) -> int:
        """Return the number of the first line of the branch that contains the line ``y``.

        If ``y`` is already that line, returns the number of the line of the branch point above it.
        """
        placed = self._placed[bisect_right(self._starts, y) - 1]
        head = self._placed[placed.head]
        if head.start != y:
            return head.start
        return self._above(head.segment.parent)

    def branch_point_below(self, y: int) -> int:
        """Return the number of the last line before the next branch below the line ``y``.

        If ``y`` is already that line, returns the number of the first line of the next branch. If
        no branch follows, returns the number of the tree's last line.
        """
        place = bisect_right(self._starts, y) - 1
        while place + 1 < len(self._placed) and not self._placed[place + 1].is_head:
            place += 1
        placed = self._placed[place]
        last = placed.start + placed.height - 1
        if y < last:
            return last
        return min(last + 1, self.total - 1)

    def revealing(self, entry_id: int) -> TreeOptions:
        """Return options in which the branches that hide an entry are unfolded.

        If no branch hides the entry, the current options object is returned. This outline doesn't
        change.
        """
        view = self.view
        found = self.index.locate(entry_id)
        segment = None
        if found is not None:
            segment = found[0]
        first = True
        while segment is not None:
            place = self._place_of.get(segment.number)
            hides = place is None or self._placed[place].is_folded
            rows = self.by_segment[segment.number]
            if (
                first
                and place is not None
                and found is not None
                and rows
                and found[1] <= rows[0].last
            ):
                hides = False
            if hides and rows:
                view = view.folded(segment.key, folded=False)
            segment = segment.parent
            first = False
        return view

    def segments_in_order(self) -> list[Segment]:
        """Return all segments of the tree from top to bottom, even those in folded branches."""
        order: list[Segment] = []
        stack = self.index.roots[::-1]
        while stack:
            segment = stack.pop()
            order.append(segment)
            stack += segment.children[::-1]
        return order

    def has_rows_of(self, other: "Outline") -> bool:
        """Return True if both outlines have the same rows, regardless of which are folded."""
        return self.by_segment is other.by_segment or (
            len(self.by_segment) == len(other.by_segment)
            and all(map(is_, self.by_segment, other.by_segment))
        )

    def row_numbers(self, segment: Segment) -> list[int]:
        """Return the row number of each entry of a segment.

        For an entry that the filter hides, the number is -1.
        """
        numbers = self._numbers.get(segment.number)
        if numbers is None:
            numbers = self.by_segment[segment.number].numbers(len(segment.headers))
            self._numbers[segment.number] = numbers
        return numbers


def _cropped(guide: str) -> str:
    limit = 2 * MAX_DEPTH
    if len(guide) <= limit:
        return guide
    return "‥" + guide[-limit + 1 :]
