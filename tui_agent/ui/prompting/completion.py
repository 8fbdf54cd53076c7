"""Completion in the prompt: which word is being completed, and which candidates fit it best. Pure."""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Literal

from textual.fuzzy import FuzzySearch

from tui_agent.agent.mentions import IMAGE_SUFFIXES
from tui_agent.lazy import LazyPattern, dataclass

if TYPE_CHECKING:
    from tui_agent.app.commands import Command

_MAX_MATCHINGS = 2_000
"""Ways to match that are tried; Textual's search tries them all, and their number grows exponentially."""


def fuzzy_match(search: FuzzySearch, query: str, text: str) -> tuple[float, Sequence[int]]:
    """Return a score and the offsets that matched; 0 where the letters don't stand in the text in this order.

    The best way to match counts, the first one where trying all would take long.
    """
    wanted, lower = query.lower(), text.lower()
    if wanted in lower or prod(lower.count(letter) for letter in wanted) <= _MAX_MATCHINGS:
        return search.match(wanted, text)
    offsets: list[int] = []
    for letter in wanted:
        at = lower.find(letter, offsets[-1] + 1 if offsets else 0)
        if at < 0:
            return 0.0, ()
        offsets.append(at)
    return 1.0, offsets


LIMIT = 50
"""Candidates shown at most."""
_SCORED = 300
"""Candidates that go through the exact scorer."""

SIGNS = frozenset("/@#")
"""First characters of words that can be completed."""
_MENTION = LazyPattern(r'(?:^|(?<=[\s(]))@(?:"([^"\n]*)|([^\s"]*))$')
_ENTRY = LazyPattern(r"(?:^|(?<=[\s(\[]))#([^\s#]*)$")


@dataclass(frozen=True, slots=True)
class Token:
    """The word at the cursor that can be completed: columns ``start`` to ``end`` of its line."""

    kind: Literal["command", "mention", "entry"]
    """Begun by ``/``, ``@`` or ``#``."""
    query: str
    row: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of the popup. ``offsets`` are the matched characters of ``label``."""

    insert: str
    label: str
    help: str = ""
    offsets: tuple[int, ...] = ()
    takes_argument: bool = False
    """For a command: whether Enter should wait for more after it."""
    score: float = 0.0
    """How well it fits, to put the candidates of several sources in one order. Without a query all score 0."""


CompletionSource = tuple[Literal["mention", "entry"], Callable[[str], Awaitable[Sequence[Candidate]]]]
"""Something that can be completed: the kind of token, and a function from its query to the candidates, best first.

Slow work in it belongs in a thread. Candidates of all sources of a kind are shown in one list, ordered by ``score``
and, where that is the same, in the order of the sources.
"""


def token_at(lines: Sequence[str], row: int, column: int) -> Token | None:
    """Return the token to complete at a cursor position, None without one."""
    before = lines[row][:column]
    if row == 0 and before.startswith("/") and not re.search(r"[\s/]", before[1:]):
        return Token("command", before[1:], row, 0, column)
    if match := _MENTION.search(before):
        query = match[1] if match[1] is not None else match[2]
        return Token("mention", query, row, match.start(), column)
    if match := _ENTRY.search(before):
        return Token("entry", match[1], row, match.start(), column)
    return None


def merged(found: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Return the candidates of several sources in one order; without a query every source keeps some of the room."""
    share = max(1, LIMIT // max(1, sum(1 for candidates in found if candidates)))
    is_scored = any(candidate.score for candidates in found for candidate in candidates)
    together = [candidate for candidates in found for candidate in candidates[: LIMIT if is_scored else share]]
    return sorted(together, key=lambda item: (-item.score, len(item.label) if item.score else 0))[:LIMIT]


def rank_labels(query: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates whose label fits the query, best first; without a query all, in their order."""
    if not query:
        return list(candidates)
    search, wanted = FuzzySearch(), query.lower()
    found = [_rated(search, wanted, candidate) for candidate in candidates]
    return sorted((candidate for candidate in found if candidate.score), key=lambda candidate: -candidate.score)


def _rated(search: FuzzySearch, wanted: str, candidate: Candidate) -> Candidate:
    """Return a candidate with how well its label fits, best where the name at its end does."""
    score, offsets = fuzzy_match(search, wanted, candidate.label)
    name = candidate.label.lower().rstrip("/").rsplit("/", 1)[-1]
    boost = 2.0 if name.startswith(wanted) else 1.5 if wanted in name else 1.0
    return replace(candidate, offsets=tuple(offsets), score=score * boost)


def rank_files(query: str, paths: Iterable[str]) -> list[Candidate]:
    """Return the paths that contain the query's letters in order, best first; those of directories end in a slash.

    A cheap order (name before directory, shorter before longer) picks who goes through the fuzzy scorer, so that a
    hundred thousand paths take tenths of a second, not minutes.
    """
    wanted = query.lower()
    if not wanted:
        shallow = sorted(paths, key=lambda path: (path.rstrip("/").count("/"), path))
        return [_file(path) for path in shallow[:LIMIT]]
    matches = re.compile("[^\n]*?".join(re.escape(letter) for letter in wanted)).search
    found = [path for path in paths if matches(path.lower())]
    found.sort(
        key=lambda path: (
            wanted not in path.lower().rstrip("/").rsplit("/", 1)[-1],
            wanted not in path.lower(),
            len(path),
        )
    )
    search = FuzzySearch()
    scored = [_rated(search, wanted, _file(path)) for path in found[:_SCORED]]
    scored.sort(key=lambda item: (-item.score, len(item.label), item.label))
    return scored[:LIMIT]


def with_directories(paths: Iterable[str]) -> list[str]:
    """Return paths of files and of every directory above one, which ends in a slash."""
    listed = list(paths)
    directories: set[str] = set()
    for path in listed:
        end = path.rfind("/")
        while end > 0 and (directory := path[: end + 1]) not in directories:
            directories.add(directory)
            end = path.rfind("/", 0, end)
    return [*listed, *sorted(directories)]


def _file(path: str) -> Candidate:
    kind = "directory" if path.endswith("/") else "image" if path.lower().endswith(tuple(IMAGE_SUFFIXES)) else "file"
    return Candidate(mention(path), path, kind)


def mention(name: str) -> str:
    """Return the mention of a file, an agent or a resource in a message, with a space after it."""
    return f'@"{name}" ' if re.search(r'[\s"]', name) else f"@{name} "


def rank_names(query: str, commands: "Sequence[Command]") -> list[Candidate]:
    """Return the commands whose name fits the query, best first; without a query all, in their order."""
    search = FuzzySearch()
    scored: list[tuple[float, int, Candidate]] = []
    for order, command in enumerate(commands):
        score, offsets = fuzzy_match(search, query, command.name) if query else (1.0, ())
        if score:
            boost = 100.0 if command.name.startswith(query.lower()) else 0.0
            marked = tuple(offset + 1 for offset in offsets)
            name = f"/{command.name}"
            candidate = Candidate(f"{name} ", name, command.help, marked, command.takes_argument)
            scored.append((-(score + boost), order, candidate))
    scored.sort(key=lambda item: item[:2])
    return [candidate for _, _, candidate in scored]
