"""Completion in the prompt: which word is being completed, and which candidates fit it best.

Pure.
"""

import heapq
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from tui_agent.agent.mentions import IMAGE_SUFFIXES
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.ui.prompting.fuzzy import fuzzy_match, shifted

if TYPE_CHECKING:
    from tui_agent.app.commands import Command

CompletionSource: TypeAlias = (
    'tuple[Literal["mention", "entry"], Callable[[str], Awaitable[Sequence[Candidate]]]]'
)
"""Something that can be completed: the kind of token, and a function from its query to the candidates, best first.

Slow work in it belongs in a thread. Candidates of all sources of a kind are shown in one list,
ordered by ``score`` and, where that is the same, in the order of the sources.
"""

_CAPITALS = LazyPattern("[A-Z]")
LIMIT = 50
"""Candidates shown at most."""
_SCORED = 150
"""Candidates that go through the exact scorer."""
_NAME_BONUS = 12
"""Points for letters that are all in the name at the end of a path, and for each of them."""
_NAME_LETTER_BONUS = 6

_OTHER_WORD = 3
"""Letters from which commands are found by other words than their names."""

SIGNS = frozenset("/@#")
"""First characters of words that can be completed."""
_MENTION = LazyPattern(r'(?:^|(?<=[\s(]))@(?:"([^"\n]*)|([^\s"]*))$')
_ENTRY = LazyPattern(r"(?:^|(?<=[\s(\[]))#([^\s#]*)$")


@frozen
class Token:
    """The word at the cursor that can be completed: columns ``start`` to ``end`` of its line."""

    kind: Literal["command", "mention", "entry"]
    """Begun by ``/``, ``@`` or ``#``."""
    query: str
    row: int
    start: int
    end: int


@frozen
class Candidate:
    """One row of the popup. ``offsets`` are the matched characters of ``label``."""

    insert: str
    label: str
    help: str = ""
    offsets: tuple[int, ...] = ()
    takes_argument: bool = False
    """For a command: whether Enter should wait for more after it."""
    is_meant: bool = True
    """For a command: whether its name begins with what was typed, or is another name of it. Enter
    runs only these; any other is put into the prompt."""
    score: float = 0.0
    """How well it fits, to put the candidates of several sources in one order. Without a query all
    score 0."""


def token_at(lines: Sequence[str], row: int, column: int) -> Token | None:
    """Return the token to complete at a cursor position, None without one."""
    before = lines[row][:column]
    if row == 0 and before.startswith("/") and not re.search(r"[\s/]", before[1:]):
        return Token("command", before[1:], row, 0, column)
    if match := _MENTION.search(before):
        if match[1] is not None:
            query = match[1]
        else:
            query = match[2]
        return Token("mention", query, row, match.start(), column)
    if match := _ENTRY.search(before):
        return Token("entry", match[1], row, match.start(), column)
    return None


def merged(found: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Return the candidates of several sources in one order; without a query every source keeps some of the room."""
    share = max(1, LIMIT // max(1, sum(1 for candidates in found if candidates)))
    is_scored = any(candidate.score for candidates in found for candidate in candidates)
    together: list[Candidate] = []
    for candidates in found:
        together += candidates[: LIMIT if is_scored else share]
    return sorted(together, key=lambda item: (-item.score, len(item.label) if item.score else 0))[
        :LIMIT
    ]


def rank_labels(query: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates whose label fits the query, best first; without a query all, in their order."""
    if not query:
        return list(candidates)
    found = [_rated(query, candidate) for candidate in candidates]
    return sorted(
        (candidate for candidate in found if candidate.score),
        key=lambda candidate: -candidate.score,
    )


def _rated(query: str, candidate: Candidate) -> Candidate:
    """Return a candidate with how well its label fits, best where the name at its end does."""
    label = candidate.label
    start = label.rstrip("/").rfind("/") + 1
    end_of_folder = query.rfind("/") + 1
    wanted = query[end_of_folder:]
    in_name = shifted(fuzzy_match(wanted, label[start:]), start)
    above = fuzzy_match(query[:end_of_folder], label[:start])
    if in_name.offsets and (above.offsets or not end_of_folder):
        bonus = _NAME_BONUS + _NAME_LETTER_BONUS * len(wanted)
        score = above.score + in_name.score + bonus
        return replace(candidate, offsets=(*above.offsets, *in_name.offsets), score=score)
    match = fuzzy_match(query, label)
    return replace(candidate, offsets=match.offsets, score=match.score)


def rank_files(query: str, paths: Iterable[str]) -> list[Candidate]:
    """Return the paths that contain the query's letters in order, best first; those of directories end in a slash.

    A cheap order picks who goes through the fuzzy scorer, so that a hundred thousand paths take
    tenths of a second.
    """
    if not query:
        shallow = sorted(paths, key=lambda path: (path.rstrip("/").count("/"), path))
        return [_file(path) for path in shallow[:LIMIT]]
    coarse = _CoarseOrder(query)
    found = [(key, path) for path in paths if (key := coarse.key(path)) is not None]
    scored = [_rated(query, _file(path)) for _key, path in heapq.nsmallest(_SCORED, found)]
    scored.sort(key=lambda item: (-item.score, len(item.label), item.label))
    return scored[:LIMIT]


class _CoarseOrder:
    """Which paths fit a query at all, and which of them probably best: those whose name has the letters."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._wanted = query.lower()
        self._in_order = _letters_in_order(self._wanted)
        self._as_written: Callable[..., re.Match[str] | None] | None = None
        has_capitals = query != self._wanted
        if has_capitals:
            self._as_written = _letters_in_order(query)

    def key(self, path: str) -> tuple[int, int, int] | None:
        """Return what a path is sorted by, None where the letters don't stand in it in this order."""
        lower = path.lower()
        if self._in_order(lower) is None:
            return None
        start = path.rfind("/", 0, len(path) - 1) + 1
        name = lower[start:]
        if self._wanted in name or (self._as_written is not None and self._as_written(path, start)):
            group = 0
        elif self._in_order(name) is not None:
            is_initials = "".join(_CAPITALS.findall(path, start)).lower().startswith(self._wanted)
            group = 0 if is_initials else 1
        else:
            group = 2 if self._wanted in lower else 3
        return group, len(name), len(path)


def _letters_in_order(text: str) -> Callable[..., re.Match[str] | None]:
    """Return a search for the letters of a text with anything in between.

    Its time is linear: each gap ends at the first place of the next letter.
    """
    first, *others = map(re.escape, text)
    return re.compile(first + "".join(f"[^{letter}]*{letter}" for letter in others)).search


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
    if path.endswith("/"):
        kind = "directory"
    elif path.lower().endswith(tuple(IMAGE_SUFFIXES)):
        kind = "image"
    else:
        kind = "file"
    return Candidate(mention(path), path, kind)


def mention(name: str) -> str:
    """Return the mention of a file, an agent or a resource in a message, with a space after it."""
    if re.search(r'[\s"]', name):
        return f'@"{name}" '
    return f"@{name} "


def rank_names(query: str, commands: "Sequence[Command]") -> list[Candidate]:
    """Return the commands whose name fits the query, best first, then those found by another word.

    Without a query all, in their order. A name that other programs have gets none, so that Enter
    says what there is instead.
    """
    scored: list[tuple[bool, float, int, Candidate]] = []
    for order, command in enumerate(commands):
        match = fuzzy_match(query, command.name)
        is_meant = command.name.startswith(query.lower()) or query.lower() in command.aliases
        if query and not (match.offsets or is_meant or _is_called(command, query)):
            continue
        name = f"/{command.name}"
        offsets = shifted(match, 1).offsets
        candidate = Candidate(
            f"{name} ",
            name,
            command.help,
            offsets=offsets,
            takes_argument=command.takes_argument,
            is_meant=is_meant and bool(query),
        )
        scored.append((not is_meant, -match.score, order, candidate))
    scored.sort(key=lambda item: item[:3])
    found = [candidate for *_key, candidate in scored]
    if any(candidate.is_meant for candidate in found):
        return found
    from tui_agent.app.names_elsewhere import ELSEWHERE

    if query.lower() in ELSEWHERE:
        return []
    return found


def _is_called(command: "Command", query: str) -> bool:
    """Whether a query begins another word that a command is looked for by."""
    words = " ".join((*command.aliases, command.words)).lower().split()
    return len(query) >= _OTHER_WORD and any(word.startswith(query.lower()) for word in words)
