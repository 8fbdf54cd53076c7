"""Finds the word at the prompt's cursor, and ranks the candidates that can complete it.

All functions in this module are pure.
"""

import heapq
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from tui_agent.agent.mentions import IMAGE_SUFFIXES, escaped, mention_of
from tui_agent.app.format import lower_case
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.ui.prompting.fuzzy import fuzzy_match, shifted

if TYPE_CHECKING:
    from tui_agent.app.commands import Command

CompletionSource: TypeAlias = (
    'tuple[Literal["mention", "entry", "path"], Callable[[str], Awaitable[Sequence[Candidate]]]]'
)
"""A source of completions: a kind of token, and a function that returns candidates for it.

The function receives a query and returns its candidates, best first. It runs on the event loop, so
it has to do slow work in a thread. `merged` combines the candidates of all sources of one kind.
"""

_CAPITALS = LazyPattern("[A-Z]")
LIMIT = 50
"""Maximum number of completion candidates that are shown."""
_SCORED = 150
"""Maximum number of completion candidates for which the exact score is computed."""
_NAME_BONUS = 12
"""Points for a path whose name (its last part) contains all letters after the last slash of the
query. `_NAME_LETTER_BONUS` is added for each of these letters."""
_NAME_LETTER_BONUS = 6

_MIN_WORD_QUERY = 3
"""Minimum number of letters in a query with which commands are also found by an alias or a search
word."""

SIGNS = frozenset("/@#?$")
"""First characters of the words for which the completion list opens."""
_SKILL = LazyPattern(r"\$([A-Za-z][\w:-]*)?$")
"""Matches the name of a skill as in Codex, ``$name``, at the start of a message."""
_MENTION = LazyPattern(r'(?:^|(?<=[\s(]))@(?:"((?:[^"\n]|"")*)|([^\s"]*))$')
_SHELL_SIGNS = LazyPattern("!{0,2}")
"""Matches the exclamation marks that begin a shell command in the prompt."""
_PATH = LazyPattern(r"""(?:"[^"]*|'[^']*|(?:\\.|[^\s"'|&;<>()=`])*)$""")
"""Matches the part of a shell command, possibly quoted, that is completed as a path at the
cursor."""
_ENTRY = LazyPattern(r"(?:^|(?<=[\s(\[]))#([^\s#]*)$")


class _Likeness(IntEnum):
    """How well a command matches the typed text, from the best match to the worst."""

    SAME_NAME = 0
    ALIAS = 1
    BEGINNING = 2
    OTHER = 3


@frozen
class Token:
    """A word at the prompt's cursor that can be completed.

    It is at columns ``start`` to ``end`` of line ``row``.
    """

    kind: Literal["command", "mention", "entry", "path", "keys"]
    """The kind of token: ``command`` for a word after ``/`` or a skill after ``$``, ``mention``
    after ``@``, ``entry`` after ``#``, ``path`` in a shell command, and ``keys`` for ``?``
    alone."""
    query: str
    row: int
    start: int
    end: int


@frozen
class Candidate:
    """A row of the completion list.

    ``insert`` replaces the token if the row is chosen; ``label`` and ``help`` are shown.
    ``offsets`` are the characters of ``label`` that match the query.
    """

    insert: str
    label: str
    help: str = ""
    offsets: tuple[int, ...] = ()
    needs_argument: bool = False
    """Whether the candidate is a command that still needs an argument, so that Enter doesn't run it
    yet. False if the command's whole name or an alias was typed."""
    is_meant: bool = True
    """Whether the candidate is a command that the user probably means: its name begins with the
    typed text, or one of its aliases equals it. Enter runs only such a command; any other is
    inserted into the prompt."""
    score: float = 0.0
    """How well the candidate matches the query; 0 if it was not scored. The candidates of several
    sources are sorted by this score."""


def token_at(lines: Sequence[str], row: int, column: int) -> Token | None:
    """Return the token that ends at the cursor and can be completed; None if there is none.

    ``row`` and ``column`` count from 0. A command is only found at the start of the first line.
    """
    before = lines[row][:column]
    if list(lines) == ["?"] == [before]:
        return Token("keys", "", row, 0, column)
    if row == 0 and before.startswith("/") and not re.search(r"[\s/]", before[1:]):
        return Token("command", before[1:], row, 0, column)
    if row == 0 and (match := _SKILL.match(before)):
        from tui_agent.session.entries import SKILL_PREFIX

        return Token("command", f"{SKILL_PREFIX}{match[1] or ''}", row, 0, column)
    if match := _MENTION.search(before):
        if match[1] is not None:
            query = match[1].replace('""', '"')
        else:
            query = match[2]
        return Token("mention", query, row, match.start(), column)
    if match := _ENTRY.search(before):
        return Token("entry", match[1], row, match.start(), column)
    return None


def path_at(lines: Sequence[str], row: int, column: int) -> Token | None:
    """Return the token for the word of a shell command that ends at the cursor.

    The token's query is the word without quotes and backslashes.
    """
    start = 0
    if row == 0 and (signs := _SHELL_SIGNS.match(lines[0])):
        start = signs.end()
    match = _PATH.search(lines[row][start:column])
    if match is None:
        return None
    query = match[0].lstrip("\"'").replace("\\", "")
    return Token("path", query, row, start + match.start(), column)


def as_path(candidate: Candidate, query: str) -> Candidate:
    """Return a copy of a file candidate that inserts the path in a shell command, quoted if needed.

    A space follows unless the path is a directory, which the user may continue. A ``./`` at the
    beginning of the query is kept.
    """
    path = candidate.label
    if query.startswith("./"):
        path = f"./{path}"
    word = shlex.quote(path)
    if not path.endswith("/"):
        word += " "
    return replace(candidate, insert=word)


def merged(found: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Return the best candidates of several sources, at most `LIMIT`, the highest score first.

    With equal scores, candidates with shorter labels come first. If no candidate is scored, each
    source with candidates has an equal share of the list, in the order of the sources.
    """
    share = max(1, LIMIT // max(1, sum(1 for candidates in found if candidates)))
    is_scored = any(candidate.score for candidates in found for candidate in candidates)
    together: list[Candidate] = []
    for candidates in found:
        together += candidates[: LIMIT if is_scored else share]
    return sorted(together, key=lambda item: (-item.score, len(item.label) if item.score else 0))[
        :LIMIT
    ]


def rank_labels(query: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates whose label matches the query, with their scores, best first.

    For an empty query, return all candidates in the given order.
    """
    if not query:
        return list(candidates)
    found = [_rated(query, candidate) for candidate in candidates]
    return sorted(
        (candidate for candidate in found if candidate.score),
        key=lambda candidate: -candidate.score,
    )


def _rated(query: str, candidate: Candidate) -> Candidate:
    """Return the candidate with its score and offsets for the query; 0 and () without a match.

    A match in the name, that is, the part of the label after its last slash, scores more.
    """
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
    """Return candidates for the paths that contain the query's letters in order, best first.

    Returns at most `LIMIT`; for an empty query, the paths nearest to the root. Directories end in
    "/". A cheap sort key selects the `_SCORED` paths that are scored, so 100,000 paths take only
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
    """Creates sort keys that put paths roughly in the order of their fuzzy scores.

    A key is much cheaper to compute than a score.
    """

    def __init__(self, query: str) -> None:
        self._query = query
        self._wanted = lower_case(query)
        self._in_order = _letters_in_order(self._wanted)
        self._as_written: Callable[..., re.Match[str] | None] | None = None
        has_capitals = query != self._wanted
        if has_capitals:
            self._as_written = _letters_in_order(query)

    def key(self, path: str) -> tuple[int, int, int] | None:
        """Return a path's sort key; the better the path matches, the smaller the key.

        Returns None if the path doesn't contain the query's letters in order.
        """
        lower = lower_case(path)
        if self._in_order(lower) is None:
            return None
        start = path.rfind("/", 0, len(path) - 1) + 1
        name = lower[start:]
        if self._wanted in name or (self._as_written is not None and self._as_written(path, start)):
            group = 0
        elif self._in_order(name) is not None:
            is_initials = lower_case("".join(_CAPITALS.findall(path, start))).startswith(
                self._wanted
            )
            group = 0 if is_initials else 1
        else:
            group = 2 if self._wanted in lower else 3
        return group, len(name), len(path)


def _letters_in_order(text: str) -> Callable[..., re.Match[str] | None]:
    """Return a function that finds the letters of ``text`` in order, with any gaps between them.

    The search takes linear time.
    """
    first, *others = map(re.escape, text)
    return re.compile(first + "".join(f"[^{letter}]*{letter}" for letter in others)).search


def with_directories(paths: Iterable[str]) -> list[str]:
    """Return the given paths, followed by all directories that contain them.

    The directories are sorted, and each ends in a slash.
    """
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
    return Candidate(mention(path), escaped(path), kind)


def mention(name: str) -> str:
    """Return the mention of a file, agent or resource, quoted if needed and followed by a space."""
    return f"{mention_of(name)} "


def rank_names(query: str, commands: "Sequence[Command]") -> list[Candidate]:
    """Return candidates for the commands that match the query, best first.

    The order is: the command with exactly this name; commands with the query as an alias; commands
    whose name begins with the query; fuzzy matches of the name; commands with an alias or search
    word that begins with the query. For an empty query, returns all commands in the given order.
    Returns an empty list if the query is a command of another program and only the last two kinds
    of matches are found. Enter then runs the query, and a message names this program's command.
    """
    scored: list[tuple[_Likeness, float, int, Candidate]] = []
    for order, command in enumerate(commands):
        match = fuzzy_match(query, command.name)
        likeness = _likeness(command, query.lower())
        is_meant = likeness is not _Likeness.OTHER
        if query and not (match.offsets or is_meant or _has_word(command, query)):
            continue
        name = f"/{command.name}"
        offsets = shifted(match, 1).offsets
        candidate = Candidate(
            f"{name} ",
            name,
            command.help,
            offsets=offsets,
            needs_argument=command.needs_argument and likeness > _Likeness.ALIAS,
            is_meant=is_meant and bool(query),
        )
        scored.append((likeness, -match.score, order, candidate))
    scored.sort(key=lambda item: item[:3])
    found = [candidate for *_key, candidate in scored]
    if any(candidate.is_meant for candidate in found):
        return found
    from tui_agent.app.names_elsewhere import ELSEWHERE

    if query.lower() in ELSEWHERE:
        return []
    return found


def _likeness(command: "Command", query: str) -> _Likeness:
    name = command.name.lower()
    if name == query:
        return _Likeness.SAME_NAME
    if query in command.aliases:
        return _Likeness.ALIAS
    if name.startswith(query):
        return _Likeness.BEGINNING
    return _Likeness.OTHER


def _has_word(command: "Command", query: str) -> bool:
    """Return True if an alias or search word of a command begins with the query.

    Returns False for queries shorter than `_MIN_WORD_QUERY`.
    """
    words = " ".join((*command.aliases, command.words)).lower().split()
    return len(query) >= _MIN_WORD_QUERY and any(word.startswith(query.lower()) for word in words)
