"""Chooses which lines to show of a text that is too long to be shown whole.

They are the text's beginning, the lines with names that the conversation still uses, and an outline
of the rest: whole lines with names not shown yet, then lines cut to such names, then the lines
after the beginning. The same text, names and limits always give the same lines. The ``recall`` tool
shows entries this way, and large files are shortened the same way when they are sent again after a
compaction.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from heapq import heapify, heappop, heapreplace

from tui_agent.context.anchors import find_anchors, names_in
from tui_agent.context.truncation import NOTE_BYTES, OutputLimits, fitting_bytes, utf8_size
from tui_agent.context.view import ContextView
from tui_agent.lazy import LazyPattern
from tui_agent.session.tool_traits import TraitsByName

_HEAD_SHARE = 0.05
"""The beginning of the text may take this share of the output."""
_USED_SHARE = 0.1
"""After the text's first lines, lines with names in use may take this share of the remaining
room."""
_NAMES_SHARE = 0.7
"""After the lines with names in use, this share of the remaining room is reserved for lines that
are cut to their names."""
_CUT = "… "
"""Written before the names in a line that is cut to its names, and after the text in a line that is
cut to its beginning."""
_NUMBER_BYTES = 8
"""Number of bytes assumed for the line number before a line of the output."""
_WORD = LazyPattern(r"[\w$@][\w$@./:#-]{2,198}[\w$]")
_PLAIN = LazyPattern(r"[A-Z]?[a-z]+(?:-[a-z]+)*|[A-Z]+|[\d.:-]+")
"""Matches an ordinary word or a number. Neither of these counts as a name."""
_JUDGED = 200
"""Number of lines at the beginning of a text that are used to estimate the text's bytes per
token."""
_LONGEST = 300
"""Only a line with at most this many characters can be chosen to be shown whole because of the
names in use or the new names in it."""

_ROOMY = 6_000
"""Up to this many tokens, a recalled entry may be three times as long as other outputs."""


def names_in_use(view: ContextView, tools: TraitsByName) -> dict[str, float]:
    """Return the names (and other anchors) in a view's entries, with their scores.

    A higher score means that the name is more likely to be used again.
    """
    return {anchor.text: anchor.score for anchor in find_anchors(view.entries, tools)}


def recall_limits(limits: OutputLimits) -> OutputLimits:
    """Return the limits for the text of a recalled entry, which may be longer than other outputs.

    ``limits`` are the limits of other outputs.
    """
    return replace(limits, tokens=max(limits.tokens, min(3 * limits.tokens, _ROOMY)))


def fits(lines: Sequence[str], limits: OutputLimits) -> bool:
    return len(lines) <= limits.lines and sum(utf8_size(line) + 1 for line in lines) <= _room(
        lines, limits
    )


def outline(
    lines: Sequence[str], names: Mapping[str, float], limits: OutputLimits
) -> list[tuple[int, str]]:
    """Return (index, text) of each line of an overlong text to show, by ascending index.

    Lines are chosen in five rounds:

    - the beginning of the text;
    - lines with names in use, those with the highest scores for their size first (a name in many
      lines counts less in each);
    - lines with the most names that no chosen line has;
    - the other lines, cut to such names;
    - the lines after the beginning, while there is room.

    If a long line follows the beginning, it is cut to its own beginning and its new names.
    ``names`` are the names in use with their scores.
    """
    made = _Outline(lines, limits)
    made.add_beginning()
    made.add_names_in_use(names)
    made.add_new_names()
    made.add_cut_lines()
    made.fill()
    return sorted(made.shown.items())


class _Outline:
    """Builds the outline of a text. ``shown`` maps the index of each line to show to its text."""

    def __init__(self, lines: Sequence[str], limits: OutputLimits) -> None:
        self.shown: dict[int, str] = {}
        self._lines = lines
        self._limits = limits
        self._left = _room(lines, limits) - NOTE_BYTES
        """Number of bytes that are left for more lines."""
        self._names = {at: _names_of(line) for at, line in enumerate(lines)}
        self._short = {at: names for at, names in self._names.items() if len(lines[at]) <= _LONGEST}
        self._long: int | None = None
        """Index of the long line of which only the beginning and some names are shown."""
        self._names_of_long = ""
        """The names that are shown after the beginning of the long line."""

    def add_beginning(self) -> None:
        spared = round(self._left * (1 - _HEAD_SHARE))
        for at, line in enumerate(self._lines):
            if self._add(at, utf8_size(line) + 1, spared):
                continue
            if at == 0 and len(line) <= _LONGEST:
                self._add(at, utf8_size(line) + 1, 0)
            elif len(line) > _LONGEST and len(self.shown) < self._limits.lines:
                self._long = at
                self._show_part(at, _LONGEST)
            break

    def add_names_in_use(self, used: Mapping[str, float]) -> None:
        spared = round(self._left * (1 - _USED_SHARE))
        for at in _by_value(self._lines, self._short, used):
            if at not in self.shown:
                self._add(at, _cost(self._lines[at]), spared)

    def add_new_names(self) -> None:
        spared = round(self._left * _NAMES_SHARE)
        whole = frozenset(filter(self._is_whole, self.shown))
        for at in _by_new_names(self._lines, self._short, whole):
            if not self._add(at, _cost(self._lines[at]), spared):
                break

    def add_cut_lines(self) -> None:
        known = set[str]()
        for at, text in self.shown.items():
            known |= self._names[at] if self._is_whole(at) else _names_of(text)
        said = "\n".join(self.shown.values())
        for at, names in self._names.items():
            row = self._cut_to_names(names - known, said)
            if not row or (at != self._long and len(self.shown) >= self._limits.lines):
                continue
            if at == self._long:
                self._names_of_long = row
                self._show_part(at, _LONGEST)
            else:
                row = min(self._lines[at], row, key=len)
                self.shown[at] = row
                self._left -= _cost(row)
            said += row
            known |= names

    def fill(self) -> None:
        """Fill the remaining room with the lines after the beginning and more of the long line."""
        has_gap = False
        for at, line in enumerate(self._lines):
            # The lines at the beginning are shown without numbers, up to the first cut line.
            has_gap = has_gap or (at in self.shown and not self._is_whole(at))
            cost = _cost(line) if has_gap else utf8_size(line) + 1
            if at not in self.shown and not self._add(at, cost, 0):
                break
        if self._long is not None:
            self._show_part(self._long, self._limits.line_chars)

    def _add(self, at: int, cost: int, spared: int) -> bool:
        """Show a whole line and return True, or return False if the line doesn't fit.

        A line fits if the limit of lines is not reached and at least ``spared`` bytes are left
        afterwards.
        """
        if len(self.shown) >= self._limits.lines or self._left - cost < spared:
            return False
        self.shown[at] = self._lines[at]
        self._left -= cost
        return True

    def _is_whole(self, at: int) -> bool:
        return self.shown.get(at) == self._lines[at]

    def _show_part(self, at: int, chars: int) -> None:
        """Show at most ``chars`` characters of the long line's beginning, and its names."""
        if at in self.shown:
            self._left += _cost(self.shown[at])
        end = self._names_of_long or _CUT.rstrip()
        room = self._left - _cost(end)
        chars = min(chars, self._limits.line_chars - len(end))
        self.shown[at] = f"{_first_bytes(self._lines[at][:chars], room)}{end}"
        self._left -= _cost(self.shown[at])

    def _cut_to_names(self, names: AbstractSet[str], said: str) -> str:
        """Return the names that fit and aren't in ``said``, as one line; "" if there are none."""
        row = ""
        for name in sorted(names, key=lambda name: (-len(name), name)):
            longer = f"{row}, {name}" if row else f"{_CUT}{name}"
            if _cost(longer) > self._left or len(longer) > self._limits.line_chars // 2:
                break
            if name not in said and name not in row:
                row = longer
        return row


def _first_bytes(text: str, most: int) -> str:
    return text.encode("utf-8", "surrogatepass")[: max(0, most)].decode("utf-8", "ignore")


def _names_of(line: str) -> set[str]:
    names = names_in(line)
    names.update(word for word in _WORD.findall(line) if not _PLAIN.fullmatch(word))
    return names


def _room(lines: Sequence[str], limits: OutputLimits) -> int:
    return fitting_bytes("\n".join(lines[:_JUDGED]), limits)


def _cost(line: str) -> int:
    return utf8_size(line) + _NUMBER_BYTES


def _by_value(
    lines: Sequence[str], names_of: Mapping[int, set[str]], used: Mapping[str, float]
) -> list[int]:
    """Return the indexes of the lines that contain names in use, best value per byte first."""
    places: dict[str, list[int]] = {}
    for at, names in names_of.items():
        for name in names & used.keys():
            places.setdefault(name, []).append(at)
    values: dict[int, float] = {}
    for name, found in sorted(places.items()):
        for at in found:
            values[at] = values.get(at, 0.0) + used[name] / len(found)
    return sorted(values, key=lambda at: (-values[at] / _cost(lines[at]), at))


def _by_new_names(
    lines: Sequence[str], names_of: Mapping[int, set[str]], shown: AbstractSet[int]
) -> Iterator[int]:
    """Yield the indexes of lines, beginning with the lines with the most new names per byte.

    A name is new if it is in no line of ``shown`` and in no line yielded before.
    """
    known: set[str] = set()
    heap: list[tuple[float, int]] = []
    for at, names in names_of.items():
        if at in shown:
            known |= names
        elif names:
            heap.append((-len(names) / _cost(lines[at]), at))
    heapify(heap)
    while heap:
        worth, at = heap[0]
        now = -len(names_of[at] - known) / _cost(lines[at])
        if not now:
            heappop(heap)
        elif now > worth:
            heapreplace(heap, (now, at))
        else:
            known |= names_of[at]
            yield heappop(heap)[1]
