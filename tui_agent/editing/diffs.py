"""Compares two versions of a text line by line: unified diff, line counts, changed lines."""

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher

from tui_agent.lazy import frozen
from tui_agent.text_files.encodings import odd_bytes_shown
from tui_agent.text_files.lines import lines_of

CONTEXT_LINES = 3
"""Number of unchanged lines shown before and after each change."""
MAX_DIFF_CHARS = 400_000
"""A longer diff is cut after this many characters, because diffs are stored in the session and
drawn."""

_MAX_COMPARED = 4_000
"""Maximum number of lines in a changed part for it to be compared line by line. Longer parts count
as replaced."""
_MAX_PAIRS = 200_000
"""If there are more pairs of equal lines than this, very frequent lines are not matched."""
_MAX_STEPS = 1_000_000
"""Maximum number of pairs of equal lines that are compared, which takes about 0.3 s. Lines that
were not compared by then count as replaced."""

Opcode = tuple[str, int, int, int, int]
"""Tag, start and end in the old lines, start and end in the new lines; see ``difflib``."""


@frozen
class FileDiff:
    """The difference between two versions of a file."""

    text: str
    """The unified diff, cut after ``MAX_DIFF_CHARS``; "" if the versions are equal."""
    additions: int
    """Number of added lines."""
    deletions: int
    """Number of deleted lines."""
    changed: tuple[range, ...]
    """Ranges of changed lines in the new version, from 0; empty where lines were deleted."""


def diff_texts(shown: str, before: str | None, after: str) -> FileDiff:
    """Return the difference between two versions of a file, including line endings.

    ``shown`` is the file's name in the diff; ``before`` is None for a new file. Bytes that aren't
    text are shown as U+FFFD.
    """
    old = lines_of(before or "")
    new = lines_of(after)
    codes = opcodes_between(old, new)
    additions = 0
    deletions = 0
    changed: list[range] = []
    for tag, old_start, old_end, new_start, new_end in codes:
        if tag == "equal":
            continue
        additions += new_end - new_start
        deletions += old_end - old_start
        changed.append(range(new_start, new_end))
    if not changed:
        return FileDiff("", additions=0, deletions=0, changed=())
    text = odd_bytes_shown(_render(shown, codes, old, new, is_new=before is None))
    return FileDiff(text, additions=additions, deletions=deletions, changed=tuple(changed))


def line_origins(before: str, after: str) -> list[int | None]:
    """Return for each line of ``after`` its index in ``before``, None for a new or changed line."""
    new = lines_of(after)
    origins: list[int | None] = [None] * len(new)
    for tag, old_start, _, start, end in opcodes_between(lines_of(before), new):
        if tag == "equal":
            origins[start:end] = range(old_start, old_start + end - start)
    return origins


def opcodes_between(old: list[str], new: list[str]) -> list[Opcode]:
    """Return the steps from the old to the new lines, like `SequenceMatcher.get_opcodes`.

    Only the part between the common start and end is compared. It is small for most edits.
    """
    start = _common_start(old, new)
    end = _common_start(old[start:][::-1], new[start:][::-1])
    old_middle = old[start : len(old) - end]
    new_middle = new[start : len(new) - end]
    if max(len(old_middle), len(new_middle)) > _MAX_COMPARED:
        inner: list[Opcode] = [("replace", 0, len(old_middle), 0, len(new_middle))]
    else:
        counted = Counter(new_middle)
        # Lines that occur very often would take minutes to compare; autojunk ignores them.
        repeats = sum(counted[line] for line in old_middle) > _MAX_PAIRS
        inner = list(BoundedMatcher(old_middle, new_middle, autojunk=repeats).get_opcodes())
    codes: list[Opcode] = []
    if start:
        codes.append(("equal", 0, start, 0, start))
    for tag, a, b, c, d in inner:
        codes.append((tag, a + start, b + start, c + start, d + start))
    if end:
        codes.append(("equal", len(old) - end, len(old), len(new) - end, len(new)))
    return codes


class BoundedMatcher(SequenceMatcher[str]):
    """A `SequenceMatcher` that looks at no more than about ``steps`` pairs of equal items.

    Items that are not compared because of this limit count as different. Without this limit,
    repetitive texts would take minutes.
    """

    def __init__(
        self, old: Sequence[str], new: Sequence[str], *, autojunk: bool, steps: int = _MAX_STEPS
    ) -> None:
        super().__init__(None, old, new, autojunk=autojunk)
        self._old = old
        self._left = steps

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        places: dict[str, list[int]] = self.b2j  # type: ignore[attr-defined]  # Python's documentation names it
        for piece in self._old[alo:ahi]:
            self._left -= len(places.get(piece, ())) + 1
        if self._left < 0:
            return Match(alo, blo, 0)
        return super().find_longest_match(alo, ahi, blo, bhi)


def _common_start(old: list[str], new: list[str]) -> int:
    for index, (left, right) in enumerate(zip(old, new, strict=False)):
        if left != right:
            return index
    return min(len(old), len(new))


def _render(
    shown: str, opcodes: list[Opcode], old: list[str], new: list[str], *, is_new: bool
) -> str:
    out = ["--- /dev/null\n" if is_new else f"--- a/{shown}\n", f"+++ b/{shown}\n"]
    size = 0
    matcher = SequenceMatcher(None, "", "")
    matcher.get_opcodes = opcodes.copy  # type: ignore[assignment, method-assign]  # they are computed already
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        old_start = group[0][1]
        old_end = group[-1][2]
        new_start = group[0][3]
        new_end = group[-1][4]
        out.append(f"@@ -{_span(old_start, old_end)} +{_span(new_start, new_end)} @@\n")
        for mark, line in _hunk_lines(group, old, new):
            out.append(f"{mark}{line}")
            if not line.endswith("\n"):
                out[-1] += "\n\\ No newline at end of file\n"
            size += len(out[-1])
            if size > MAX_DIFF_CHARS:
                out.append("\\ The rest of the diff is too long to be shown.\n")
                return "".join(out)
    return "".join(out)


def _hunk_lines(group: list[Opcode], old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    for tag, old_start, old_end, new_start, new_end in group:
        mark = " " if tag == "equal" else "-"
        for line in old[old_start:old_end]:
            yield mark, line
        if tag == "equal":
            continue
        for line in new[new_start:new_end]:
            yield "+", line


def _span(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    if length == 0:
        return f"{start},0"
    return f"{start + 1},{length}"
