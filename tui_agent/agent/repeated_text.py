"""Detects that a streaming answer repeats itself: equal text, similar sentences, equal calls. Pure.

`Answerer` checks an answer while it streams, stops it and cuts the repetition;
``calls.repetition`` decides whether answers are stopped at all, and what follows.
"""

import re
from collections.abc import Collection, Sequence

from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import Entry, UserEntry

CHECKED_CHARS = 200
"""Characters streamed between two checks for repetition."""
MIN_REPEATED_CHARS = 1_200
"""Shortest repetition of prose that stops an answer, in characters; phrases need fewer."""
MIN_REPEATED_ROUNDS = 4
"""Fewest times a text must follow itself to be a repetition."""
_PHRASE_ROUNDS = 18
_PHRASE_CHARS = 300
"""A phrase must be repeated this often, with this many characters in all, to stop an answer."""
_DATA_CHARS = 6_000
"""Shortest repetition of data that stops an answer, in characters.

Equal rows of a table, dump, drawing, JSON or code in a fence may be intended.
"""
_PHRASE_WORDS = 2
"""Minimum words of a repeated phrase, and maximum words of a repeated row of data."""
MAX_EQUAL_CALLS = 3
"""Number of consecutive equal lines with tool calls that stops an answer."""
MAX_LIKE_CALLS = 12
"""Number of consecutive lines with tool calls, differing only in digits, that stops an answer."""
MAX_REPEATED_ANSWERS = 5
"""Number of repeating answers since the user's last message that ends the run."""
REPEATING = "repeating"
"""``UserEntry.synthetic`` of the message that follows an answer stopped for repeating itself."""
LOOKED_AT_CHARS = 16_000
"""Characters at the end of an answer that are searched for repetition."""
_SUFFIX = 64
"""Characters at a text's end that are searched for earlier in the text, to find the repeated
part."""
MAX_SAID = 12
"""How often, on average, each of a few sentences must be said in a row to stop an answer.

Sentences that differ only in digits or the order of words count as the same.
"""
_SENTENCE_WORDS = 4
"""Minimum words of repeated sentences, on average; shorter ones are taken for rows of data."""
_WORD = LazyPattern(r"[^\W\d_]{2,}")
_RECORD = LazyPattern(r"\s*[\[{(<\"'].*[\]})>\"'],?\s*", re.DOTALL)
"""A row of JSON, of a list in code or of XML."""
_CALL_ROW = LazyPattern(r"\s*(?:<[\w|]+>\s*)?[\[{].*[\]}\w\">]")
"""A row that may be a call in JSON, whole or without its last brace."""
_QUOTED_NAME = LazyPattern(r"\"(?:name|tool|function)\"\s*:\s*\"([\w.:-]+)\"")
_SENTENCE = LazyPattern(r"[^\n.!?]*(?:[.!?](?=\S)[^\n.!?]*)*(?:[.!?\n]\s*|$)")
_NUMBERS = LazyPattern(r"\d+")


@frozen
class Repetition:
    """A repetition at the end of an answer: the text ``unit``, ``rounds`` times.

    ``extra`` is the number of characters after the second round.
    """

    unit: str
    rounds: int
    extra: int
    is_exact: bool = True
    """False if the rounds differ in digits or the order of words; ``unit`` is then one of them."""

    @property
    def reason(self) -> str:
        """Why the answer was stopped, as a clause for messages after "Stopped:"."""
        return f"the model is repeating itself: {self.amount}"

    @property
    def amount(self) -> str:
        if self.is_exact:
            return f"the same {len(self.unit):,} characters {self.rounds} times in a row"
        return (
            f"{self.rounds} times in a row the same text, except for numbers and the order of words"
        )


def repeated_answers(path: Sequence[Entry]) -> int:
    """Return the number of answers since the user's last message that were stopped for repetition."""
    count = 0
    for entry in reversed(path):
        if isinstance(entry, UserEntry):
            if entry.synthetic is None:
                break
            count += entry.synthetic == REPEATING
    return count


def find_repetition(text: str) -> Repetition | None:
    """Return the repetition of text or sentences at a text's end; None if there is none."""
    return _find_period(text) or _find_said(text)


def _find_period(text: str) -> Repetition | None:
    """Return the repetition of exactly the same text; None if there is none or it is too short."""
    tail = text[-LOOKED_AT_CHARS:]
    before = -1
    if len(tail) > _PHRASE_CHARS:
        before = tail.rfind(tail[-_SUFFIX:], 0, len(tail) - 1)
    if before < 0:
        return None
    period = len(tail) - _SUFFIX - before
    unit = tail[-period:]
    rounds = 1
    start = len(text) - period
    while start >= period and text[start - period : start] == unit:
        rounds = rounds + 1
        start = start - period
    if not _is_enough(text, start, unit, rounds):
        return None
    return Repetition(unit, rounds, (rounds - 2) * period)


def _find_said(text: str) -> Repetition | None:
    """Return the repetition of the same few sentences at a text's end; None if there is none.

    The rounds may differ in digits and word order.
    """
    tail = text[-LOOKED_AT_CHARS // 4 :]
    sentences: list[str] = _SENTENCE.findall(tail)[:-1]
    if len(sentences) < MAX_SAID:
        return None
    marks: set[frozenset[str]] = set()
    lengths: list[int] = []
    words_said = 0
    chars = 0
    for sentence in reversed(sentences):
        words = _WORD.findall(sentence.lower())
        if not words:
            continue
        if "|" in sentence or _RECORD.fullmatch(sentence):
            return None
        marks.add(frozenset(words))
        if MAX_SAID * len(marks) > len(sentences):
            return None  # too many different sentences for the number that could still follow
        words_said += len(words)
        lengths.append(len(sentence))
        chars += len(sentence)
        count = len(lengths)
        if count < MAX_SAID * len(marks) or chars < MIN_REPEATED_CHARS:
            continue
        if words_said < _SENTENCE_WORDS * count or _is_fenced(text):
            return None
        first_rounds = sum(lengths[-2 * len(marks) :])
        said = {one.strip() for one in sentences[-count:]}
        exact = len(said) == 1
        return Repetition(
            sentence.strip(), count // len(marks), chars - first_rounds, is_exact=exact
        )
    return None


def find_repeated_calls(text: str, tools: Collection[str]) -> Repetition | None:
    """Return the repetition of lines at a text's end that call one of the ``tools``; None if none.

    The lines are equal, or differ only in digits.
    """
    tail = text[-LOOKED_AT_CHARS:]
    if "{" not in tail and "[" not in tail:
        return None
    rows: list[tuple[str, int]] = []
    at = len(text) - len(tail)
    for line in tail.splitlines(keepends=True):
        at += len(line)
        if line.endswith("\n") and _CALL_ROW.match(line):
            rows.append((line.strip(), at))
    if not rows or not _names_tool(rows[-1][0], tools):
        return None
    last = rows[-1][0]
    equal = _run_at_end([row == last for row, _ in rows])
    like = _run_at_end([_NUMBERS.sub("0", row) == _NUMBERS.sub("0", last) for row, _ in rows])
    if equal < MAX_EQUAL_CALLS and like < MAX_LIKE_CALLS:
        return None
    rounds = equal if equal >= MAX_EQUAL_CALLS else like
    second_end = rows[len(rows) - rounds + 1][1]
    return Repetition(last, rounds, len(text) - second_end, is_exact=rounds == equal)


def _names_tool(row: str, tools: Collection[str]) -> bool:
    return any(name in tools for name in _QUOTED_NAME.findall(row))


def _run_at_end(same: Sequence[bool]) -> int:
    """Return how many values in a row are true at the end."""
    count = 0
    for value in reversed(same):
        if not value:
            break
        count += 1
    return count


def _is_enough(text: str, start: int, unit: str, rounds: int) -> bool:
    """Return True if the rounds of a unit from ``start`` on are enough to stop the answer.

    Rows of data and text in a code fence may be repeated more often than prose.
    """
    chars = rounds * len(unit)
    words = len(_WORD.findall(unit))
    rows = "\n" in unit.strip() or unit.endswith("\n") or unit.startswith("\n")
    last, _, first = unit.partition("\n")
    is_row = words <= _PHRASE_WORDS or "|" in unit or _RECORD.fullmatch(first + last)
    is_data = (rows and unit.strip() and is_row) or _is_fenced(text[:start])
    if rounds < MIN_REPEATED_ROUNDS or is_data:
        return rounds >= MIN_REPEATED_ROUNDS and chars >= _DATA_CHARS
    is_phrase = words >= _PHRASE_WORDS and rounds >= _PHRASE_ROUNDS and chars >= _PHRASE_CHARS
    return is_phrase or chars >= MIN_REPEATED_CHARS


def _is_fenced(text: str) -> bool:
    """Return True if a text ends inside a code fence (```)."""
    # ``str.find`` is far faster for one backtick than for three.
    is_open = False
    place = text.find("`")
    while place >= 0:
        before = text[text.rfind("\n", 0, place) + 1 : place]
        end = text.find("\n", place)
        is_open ^= text.startswith("```", place) and not before.strip(" \t")
        place = -1
        if end >= 0:
            place = text.find("`", end)
    return is_open
