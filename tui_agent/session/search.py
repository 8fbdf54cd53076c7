"""Computes the text to index for an entry, the query for typed words, and snippets.

The functions are pure. ``entry_table`` and ``forking`` write the index, and ``store_reader`` runs
the queries.

The index is FTS5 with the ``unicode61`` tokenizer, over text prepared as below. The ``trigram``
tokenizer would need about four times as much space as the text, and can't find words of two
characters, which most Chinese words are. Preparing the text means:

- spaces are put around each character of a script without spaces, so that each is a word and a run
  of them is a phrase;
- ``myCamelCase`` is indexed as its parts, and as the rest of the word from each part on, so that
  ``case``, ``camelc`` and ``mycamelcase`` all find it (``snake_case`` is split by the tokenizer).
"""

import re

from tui_agent.lazy import LazyPattern
from tui_agent.safe_text import valid
from tui_agent.session.entries import Entry
from tui_agent.session.rows import text_of

INDEXED_CHARS = 20_000
"""Maximum number of characters of one entry that are indexed, of which three fifths are from the
entry's beginning and the rest from its end."""

_NAME_CHARS = 64
_NAME_PARTS = 8
"""Maximum number of characters, and of parts, of a word whose parts are indexed, too. Longer words
are data, not names."""

_SNIPPET_BEFORE = 30
_SNIPPET_CHARS = 140

_RANKED_WORDS = 32
"""Maximum number of words of a query that are used to rank entries. The longest words are used."""
_LINES_AROUND = 1
"""Number of lines that a passage contains before and after a matching line."""
_PASSAGE_CHARS = 240
"""Maximum number of characters that are kept of a line in a passage."""

_UNSPACED = (
    "\u0e00-\u0eff",
    "\u1000-\u109f",
    "\u1780-\u17ff",
    "\u3040-\u30ff",
    "\u31f0-\u31ff",
    "\u3400-\u4dbf",
    "\u4e00-\u9fff",
    "\uac00-\ud7af",
    "\uf900-\ufaff",
    "\U00020000-\U0003ffff",
)
"""Character ranges of scripts that don't put spaces between words. This isn't a regular expression,
because compiling one would take 3 ms."""
_WORD = LazyPattern(r"[A-Za-z0-9]+")
_CAMEL_BREAK = LazyPattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def index_text(entry: Entry) -> str:
    """Return the text to index for an entry.

    Changing the result needs a new schema version, because FTS5 needs the same text to remove a
    row from the index.
    """
    text = text_of(entry)
    if len(text) > INDEXED_CHARS:
        head = INDEXED_CHARS * 3 // 5
        text = f"{text[:head]}\n{text[head - INDEXED_CHARS :]}"
    text = valid(text)
    joined: set[str] = set()
    for word in set(_WORD.findall(text)):
        if word.islower() or len(word) > _NAME_CHARS:
            continue
        parts = _CAMEL_BREAK.split(word)
        if len(parts) <= _NAME_PARTS:
            joined.update("".join(parts[start:]) for start in range(len(parts) - 1))
    return " ".join([_separate(text), *sorted(joined)])


def match_expression(query: str) -> str | None:
    """Return the FTS5 expression for typed words, None if there are no words.

    All words must occur. If the last one ends with a letter or digit, it also matches longer words
    that begin with it. Every word is quoted, so that no character has a special meaning.
    """
    words = _words(valid(query))
    if not words:
        return None
    every = " AND ".join(map(_quoted, words))
    if words[-1][-1].isalnum():
        return f"{every}*"
    return every


def ranked_expression(query: str) -> str | None:
    """Return the FTS5 expression for entries with any word of the query; None if it has no words.

    Only the longest words of a long query are used.
    """
    chosen = sorted(dict.fromkeys(_words(valid(query))), key=len, reverse=True)[:_RANKED_WORDS]
    return " OR ".join(map(_quoted, chosen)) or None


def passage(text: str, query: str, most_lines: int) -> list[tuple[int, str]]:
    """Return the lines that best match a query, each with its number from 1, in the text's order.

    The weight of a line is the sum of the weights of its query words; rare words weigh more. Lines
    next to a chosen line are included if ``most_lines`` permits. Long lines are cut. If no line
    matches, the first two lines are returned.
    """
    lines = text.split("\n")
    lowered = [line.lower() for line in lines]
    values: dict[int, float] = {}
    for word in {one.lower() for one in query.split() if any(map(str.isalnum, one))}:
        found = [at for at, line in enumerate(lowered) if word in line]
        for at in found:
            values[at] = values.get(at, 0.0) + 1 / len(found)
    chosen: set[int] = set()
    for at in sorted(values, key=lambda at: (-values[at], at)):
        around = set(range(max(0, at - _LINES_AROUND), min(len(lines), at + _LINES_AROUND + 1)))
        if len(chosen | around) > most_lines:
            around = {at}
        if len(chosen | around) > most_lines:
            break
        chosen |= around
    chosen = chosen or set(range(min(2, len(lines))))
    return [(at + 1, lines[at].rstrip()[:_PASSAGE_CHARS]) for at in sorted(chosen)]


def snippet(entry: Entry, query: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return a line around the first match in an entry, and where each match in it starts and ends.

    If none of the words occurs as typed, the line is the beginning of the entry's text.
    """
    words = sorted(_words(query), key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    text = text_of(entry) or entry.preview
    start = 0
    if found := pattern.search(text):
        start = max(0, found.start() - _SNIPPET_BEFORE)
    # More text is read than is shown, because whitespace is collapsed.
    piece = " ".join(text[start : start + 4 * _SNIPPET_CHARS].split())[:_SNIPPET_CHARS]
    line = ("…" if start else "") + piece
    return line, tuple(match.span() for match in pattern.finditer(line))


def _quoted(word: str) -> str:
    return f'"{_separate(word)}"'


def _words(query: str) -> list[str]:
    return [word for word in query.replace('"', " ").split() if any(map(str.isalnum, word))]


def _is_unspaced(char: str) -> bool:
    return any(span[0] <= char <= span[-1] for span in _UNSPACED)


def _separate(text: str) -> str:
    """Return text with spaces added, so that FTS5 finds words that no space separates.

    Spaces are put around each character of a script without spaces, and between the parts of
    camelCase words.
    """
    if not text.isascii():
        letters = filter(_is_unspaced, set(text))
        text = text.translate({ord(char): f" {char} " for char in letters})
    return _CAMEL_BREAK.sub(" ", text)
