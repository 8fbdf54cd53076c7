"""Completion in the prompt: which word is being completed, and which candidates fit it best. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from textual.fuzzy import FuzzySearch

LIMIT = 50
"""Candidates shown at most."""
_SCORED = 300
"""Candidates that go through the exact scorer."""
_WAYS = 2_000
"""Ways to match one candidate that the exact scorer may have to try; repeated letters make very many."""

_FILE = re.compile(r'(?:^|(?<=[\s(]))@(?:"([^"\n]*)|([^\s"]*))$')


@dataclass(frozen=True, slots=True)
class Token:
    """The word at the cursor that can be completed: columns ``start`` to ``end`` of its line."""

    kind: Literal["command", "file"]
    query: str
    row: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CommandName:
    """A command as completion knows it."""

    name: str
    help: str
    takes_argument: bool = False
    """Whether it is useless without an argument."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of the popup: what it inserts and shows. ``offsets`` are the matched characters of ``label``."""

    insert: str
    label: str
    help: str = ""
    offsets: tuple[int, ...] = ()
    takes_argument: bool = False
    """For a command: whether Enter should wait for more after it."""


def token_at(lines: Sequence[str], row: int, column: int) -> Token | None:
    """Return what could be completed at a cursor position, None when nothing could."""
    before = lines[row][:column]
    if row == 0 and before.startswith("/") and not re.search(r"[\s/]", before[1:]):
        return Token("command", before[1:], row, 0, column)
    if match := _FILE.search(before):
        query = match[1] if match[1] is not None else match[2]
        return Token("file", query, row, match.start(), column)
    return None


def rank_files(query: str, paths: Iterable[str]) -> list[Candidate]:
    """Return the paths that contain the query's letters in order, best first.

    A cheap order (name before directory, shorter before longer) picks who goes through the fuzzy scorer, so that a
    hundred thousand paths take tenths of a second, not minutes.
    """
    wanted = query.lower()
    if not wanted:
        shallow = sorted(paths, key=lambda path: (path.count("/"), path))
        return [Candidate(_file_text(path), path) for path in shallow[:LIMIT]]
    matches = re.compile("[^\n]*?".join(re.escape(letter) for letter in wanted)).search
    found = [path for path in paths if matches(path.lower())]
    found.sort(key=lambda path: _rough(wanted, path))
    search = FuzzySearch()
    scored = [(_match(search, wanted, path), path) for path in found[:_SCORED]]
    scored.sort(key=lambda item: (-_score(item[0][0], wanted, item[1]), len(item[1]), item[1]))
    return [Candidate(_file_text(path), path, offsets=tuple(match[1])) for match, path in scored[:LIMIT]]


def rank_names(query: str, commands: Sequence[CommandName]) -> list[Candidate]:
    """Return the commands whose name fits the query, best first; without a query all, in their order."""
    search = FuzzySearch()
    scored: list[tuple[float, int, Candidate]] = []
    for order, command in enumerate(commands):
        score, offsets = search.match(query, command.name) if query else (1.0, ())
        if score:
            boost = 100.0 if command.name.startswith(query.lower()) else 0.0
            marked = tuple(offset + 1 for offset in offsets)
            name = f"/{command.name}"
            candidate = Candidate(f"{name} ", name, command.help, marked, command.takes_argument)
            scored.append((-(score + boost), order, candidate))
    scored.sort(key=lambda item: item[:2])
    return [candidate for _, _, candidate in scored]


def _match(search: FuzzySearch, wanted: str, path: str) -> tuple[float, Sequence[int]]:
    """Score exactly, unless trying every way to match would take long; then the first way counts."""
    lower = path.lower()
    if wanted in lower or prod(lower.count(letter) for letter in wanted) <= _WAYS:
        return search.match(wanted, path)
    offsets: list[int] = []
    for letter in wanted:
        offsets.append(lower.index(letter, offsets[-1] + 1 if offsets else 0))
    return 1.0, offsets


def _file_text(path: str) -> str:
    return f'@"{path}" ' if re.search(r'[\s"]', path) else f"@{path} "


def _rough(wanted: str, path: str) -> tuple[bool, bool, int]:
    lower = path.lower()
    return (wanted not in lower.rsplit("/", 1)[-1], wanted not in lower, len(path))


def _score(score: float, wanted: str, path: str) -> float:
    name = path.lower().rsplit("/", 1)[-1]
    return score * (2.0 if name.startswith(wanted) else 1.5 if wanted in name else 1.0)
