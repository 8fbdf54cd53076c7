"""Problems as checkers print them, and which of them are new. Pure but for asking whether a file is there."""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tui_agent.lazy import LazyPattern, dataclass

_PLACED = LazyPattern(
    r"""
    ^[ \t]*(?:[a-z]+:\s)?                                      # go vet begins with its name
    (?P<path>[^\s:][^:\n]*?)
    (?: :(?P<line>\d+)(?::\d+)*(?:-\d+(?::\d+)?)?:?             # path:line:column:
      | \((?P<line_in_brackets>\d+)(?:,\d+)?\):                 # path(line,column):
    )
    \s+(?:-\s+)?(?P<message>\S.*)$
    """,
    re.VERBOSE | re.MULTILINE,
)
_ASIDE = LazyPattern(r"(?:note|help|info|hint)\b", re.IGNORECASE)
"""Begins a message that only goes on with the one before."""
_NUMBERED = LazyPattern(r"\b(lines?|column|col) \d+|:\d+(?::\d+)?\b")
"""Places within messages: they move with the lines."""

MAX_MESSAGE = 240
"""Characters of a message that are kept."""

Origins = Mapping[str, Sequence[int | None]]
"""By file: for each line, counted from 0, the line that it was before, None for one that is new."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that a checker found. ``path`` is relative to the project, ``line`` counts from 1."""

    path: str
    line: int
    message: str

    @property
    def key(self) -> tuple[str, str]:
        """What stays the same when lines move."""
        return self.path, _NUMBERED.sub("", self.message)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def parse_problems(output: str, where: Path, root: Path) -> list[Problem]:
    """Return the problems of a checker that ran in ``where``, those of files of the project ``root`` only."""
    from tui_agent.secret_detector import remove_secrets

    names: dict[str, str] = {}
    found: list[Problem] = []
    for match in _PLACED.finditer(output):
        message = " ".join(match["message"].split())
        if _ASIDE.match(message):
            continue
        written = match["path"]
        if written not in names:
            names[written] = _name(written, where, root)
        if names[written]:
            line = int((match["line"] or match["line_in_brackets"])[:9])
            found.append(Problem(names[written], line, remove_secrets(message[:MAX_MESSAGE])))
    return found


def _name(written: str, where: Path, root: Path) -> str:
    """Return a file's path in the project, "" for what is none."""
    path = os.path.normpath(where / written)
    inside = path.startswith(f"{root}{os.sep}") and os.path.isfile(path)  # noqa: PTH113 - a text
    return Path(path).relative_to(root).as_posix() if inside else ""


def new_problems(before: Iterable[Problem], after: Iterable[Problem], origins: Origins) -> list[Problem]:
    """Return the problems that were not there before, in order.

    A problem is known if the same was said of the line that its line was before, or else as often as the same was
    said of lines that are gone.
    """
    known: dict[tuple[str, str], Counter[int | None]] = defaultdict(Counter)
    for problem in before:
        known[problem.key][problem.line] += 1
    unplaced = []
    for problem in after:
        lines, was = known[problem.key], _line_before(problem, origins)
        if lines[was]:
            lines[was] -= 1
        else:
            unplaced.append(problem)
    left = Counter({key: lines.total() for key, lines in known.items()})
    new = []
    for problem in unplaced:
        if left[problem.key]:
            left[problem.key] -= 1
        else:
            new.append(problem)
    return new


def problems_on_new_lines(after: Iterable[Problem], origins: Origins) -> list[Problem]:
    """Return the problems on lines that were written just now: all that is sure where nothing is known of before."""
    return [problem for problem in after if problem.path in origins and _line_before(problem, origins) is None]


def _line_before(problem: Problem, origins: Origins) -> int | None:
    lines = origins.get(problem.path)
    if lines is None:
        return problem.line
    # A checker may name the line after the last one.
    at = min(problem.line, len(lines)) - 1
    was = lines[at] if at >= 0 else 0
    return None if was is None else was + 1
