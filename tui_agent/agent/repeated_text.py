"""Notices an answer that says one thing over and over."""

import re
from collections.abc import Collection, Sequence

from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import Entry, UserEntry

CHECKED_CHARS = 200
"""Characters of text or reasoning after which it is looked at for repetition."""
MIN_REPEATED_CHARS = 1_200
"""Characters at the end of an answer that have to be one text again and again: 1,500 less those
between looks."""
MIN_REPEATED_ROUNDS = 4
_PHRASE_ROUNDS = 18
_PHRASE_CHARS = 300
"""Rounds and characters of words that are enough."""
_DATA_CHARS = 6_000
"""Characters of equal rows of a table, a dump, a drawing, JSON, or of code in a fence: those may be
meant."""
_PHRASE_WORDS = 2
MAX_EQUAL_CALLS = 3
"""The equal row in a text that ends it, where rows call a tool: those are no data."""
MAX_LIKE_CALLS = 12
"""The same of rows that differ in numbers only."""
MAX_REPEATED_ANSWERS = 5
"""The repeating answer since the user's last word that ends the run, whatever was said to those
before."""
REPEATING = "repeating"
"""Why a message follows an answer that was stopped because it repeats itself."""
LOOKED_AT_CHARS = 16_000
"""The end of an answer in which repetition is looked for."""
_SUFFIX = 64
MAX_SAID = 12
"""The sentence that ends a text, where it was said before but for numbers and the order of words."""
_SENTENCE_WORDS = 4
"""Words on average of what are sentences and no rows of data."""
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
    """The end of an answer that is ``unit`` over and over.

    ``extra`` are its characters after the second round.
    """

    unit: str
    rounds: int
    extra: int

    @property
    def reason(self) -> str:
        """Clause for a message, to follow "Stopped:"."""
        return f"the model is repeating itself: {self.amount}"

    @property
    def amount(self) -> str:
        return f"the same {len(self.unit):,} characters {self.rounds} times in a row"


def repeated_answers(path: Sequence[Entry]) -> int:
    count = 0
    for entry in reversed(path):
        if isinstance(entry, UserEntry):
            if entry.synthetic is None:
                break
            count += entry.synthetic == REPEATING
    return count


def find_repetition(text: str) -> Repetition | None:
    """Return the repetition at a text's end, None while it says something new.

    Looks at little more than its end.
    """
    return _find_period(text) or _find_said(text)


def _find_period(text: str) -> Repetition | None:
    """Return the one text that stands at a text's end again and again."""
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
    is_long = _is_enough(text, start, unit, rounds)
    if is_long:
        return Repetition(unit, rounds, (rounds - 2) * period)
    return None


def _find_said(text: str) -> Repetition | None:
    """Return the few sentences that a text's end says again and again, numbers and order of words aside."""
    tail = text[-LOOKED_AT_CHARS // 4 :]
    said = [(match[0], _WORD.findall(match[0].lower())) for match in _SENTENCE.finditer(tail)]
    sentences = [(sentence, words) for sentence, words in said[:-1] if words]
    marks: set[frozenset[str]] = set()
    words_said = 0
    chars = 0
    for count, (sentence, words) in enumerate(reversed(sentences), start=1):
        if "|" in sentence or _RECORD.fullmatch(sentence):
            return None
        marks.add(frozenset(words))
        words_said += len(words)
        chars += len(sentence)
        if count < MAX_SAID * len(marks) or chars < MIN_REPEATED_CHARS:
            continue
        if words_said < _SENTENCE_WORDS * count or _is_fenced(text):
            return None
        later = chars - sum(len(sentence) for sentence, _ in sentences[-count:][: 2 * len(marks)])
        return Repetition(sentence.strip(), count // len(marks), later)
    return None


def find_repeated_calls(text: str, tools: Collection[str]) -> Repetition | None:
    """Return the repetition at a text's end of rows that call one of the tools.

    None where there is none.
    """
    tail = text[-LOOKED_AT_CHARS:]
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
    return Repetition(last, rounds, len(text) - second_end)


def _names_tool(row: str, tools: Collection[str]) -> bool:
    return any(name in tools for name in _QUOTED_NAME.findall(row))


def _run_at_end(same: Sequence[bool]) -> int:
    """Return how many values at the end are true."""
    count = 0
    for value in reversed(same):
        if not value:
            break
        count += 1
    return count


def _is_enough(text: str, start: int, unit: str, rounds: int) -> bool:
    """Tell whether so many rounds of a unit, from ``start`` on, are no table, drawing or poem."""
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
    """Tell whether a text ends in a fence.

    One character is found at the speed of memory, three are not.
    """
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
