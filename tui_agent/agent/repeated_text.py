"""Detects that a streaming answer repeats itself: equal text, similar sentences, equal calls. Pure.

`Answerer` checks an answer while it streams, stops it and cuts off the repetition;
``calls.repetition`` decides whether answers are stopped at all, and what follows.
"""

import re
from collections.abc import Collection, Sequence

from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import Entry, UserEntry

CHECKED_CHARS = 200
"""An answer is checked for repetition whenever this many more characters were streamed."""
MIN_REPEATED_CHARS = 1_200
"""Minimum length, in characters, of repeated prose that stops an answer. Phrases need fewer."""
MIN_REPEATED_ROUNDS = 4
"""Minimum number of times in a row that a text must appear to be a repetition."""
_PHRASE_ROUNDS = 18
_PHRASE_CHARS = 300
_PHRASE_WORDS = 2
"""A repeated phrase stops an answer if it reaches these values: the number of repetitions, their
total number of characters, and the number of words in the phrase."""
_DATA_CHARS = 6_000
"""Minimum length, in characters, of repeated data that stops an answer.

Equal rows of a table, dump, drawing, JSON or code in a fence may be intended, as may sentences that
differ in numbers, such as a list of results.
"""
_ROW_WORDS = 2
"""Maximum number of words in a repeated row for the row to count as data, unless other signs show
that it is data."""
MAX_EQUAL_CALLS = 3
"""An answer is stopped after this many consecutive equal lines with tool calls, outside code
fences."""
MAX_LIKE_CALLS = 12
"""An answer is stopped after this many consecutive lines with tool calls if the lines differ only
in digits, or are in a code fence, where they may be a log."""
MAX_REPEATED_ANSWERS = 5
"""A run ends when it has this many repetitive answers since the user's last message."""
REPEATING = "repeating"
"""Value of ``UserEntry.synthetic`` in the message sent after an answer that was stopped because it
repeats itself."""
LOOKED_AT_CHARS = 16_000
"""Number of characters at the end of an answer that are searched for repetition."""
_SAID_CHARS = 4_000
"""Number of characters at the end of an answer that are searched for repeated sentences. If the
sentences differ in numbers, `LOOKED_AT_CHARS` are searched instead."""
_SUFFIX = 64
"""To find the repeated part, this many characters at the end of a text are searched for in the text
before them."""
MAX_SAID = 12
"""An answer is stopped if it repeats a few sentences this many times each, on average.

Sentences that differ only in digits or word order count as the same; if they differ in digits, the
repetition must be as long as a repetition of data.
"""
_SENTENCE_WORDS = 4
"""Minimum average number of words in repeated sentences. Shorter ones count as rows of data."""
_WORD = LazyPattern(r"[^\W\d_]{2,}")
_RECORD = LazyPattern(r"\s*[\[{(<\"'].*[\]})>\"'],?\s*", re.DOTALL)
"""Matches a row of JSON, of a list in code or of XML."""
_CALL_ROW = LazyPattern(r"\s*(?:<[\w|]+>\s*)?[\[{].*[\]}\w\">]")
"""Matches a row that may be a tool call in JSON, whole or without its last brace."""
_BETWEEN_CALLS = LazyPattern(r"\s*(?:</?[\w|]+>|```\w*)?\s*")
"""Matches a line that may be between tool calls: empty, a tag, the start or end of a code fence."""
_CALL_STARTS = ("{", "[", "<", "`")
"""First characters of lines that may become a tool call or part of one."""
_QUOTED_NAME = LazyPattern(r"\"(?:name|tool|function)\"\s*:\s*\"([\w.:-]+)\"")
_SENTENCE = LazyPattern(r"[^\n.!?]*(?:[.!?](?=\S)[^\n.!?]*)*(?:[.!?\n]\s*|$)")
_SENTENCE_ENDS = (".", "!", "?", "\n")
_NUMBERS = LazyPattern(r"\d+")


@frozen
class Repetition:
    """A repetition at the end of an answer: the text ``unit``, repeated ``rounds`` times.

    ``extra`` is the number of characters after the second of these rounds, up to the text's end.
    """

    unit: str
    rounds: int
    extra: int
    is_exact: bool = True
    """Whether all repetitions are equal. False if they differ in digits or the order of words, or
    if they consist of several different sentences, of which ``unit`` is one."""

    @property
    def reason(self) -> str:
        """A clause that says why the answer was stopped, for messages after "Stopped:"."""
        return f"the model is repeating itself: {self.amount}"

    @property
    def amount(self) -> str:
        if self.is_exact:
            return f"the same {len(self.unit):,} characters {self.rounds} times in a row"
        return (
            f"the same text {self.rounds} times in a row, except for numbers and the order of words"
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
    """Return the repetition of text or of sentences at a text's end; None if there is none."""
    return _find_period(text) or _find_said(text)


def _find_period(text: str) -> Repetition | None:
    """Return the repetition of equal text; None if there is none or it is too short."""
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


@frozen
class _Sentence:
    """A sentence of an answer.

    ``end`` is the position in the answer after the sentence and the white space that follows.
    """

    text: str
    end: int
    word_count: int
    kind: frozenset[str]
    """The sentence's words, in lower case. Sentences with the same words are of the same kind."""
    numbers: tuple[str, ...]


def _find_said(text: str) -> Repetition | None:
    """Return the repetition of a few sentences, which may differ in digits and word order.

    Returns None if there is none.
    """
    run = _few_at_end(text, _SAID_CHARS)
    least = MIN_REPEATED_CHARS
    if run and _differ_in_numbers(run):
        run = _few_at_end(text, LOOKED_AT_CHARS)
        least = _DATA_CHARS
    chars = sum(len(sentence.text) for sentence in run)
    if chars < least or not _is_prose(run) or _is_fenced(text):
        return None
    kinds = len({sentence.kind for sentence in run})
    second_end = run[2 * kinds - 1].end
    return Repetition(
        run[0].text.strip(),
        len(run) // kinds,
        len(text) - second_end,
        is_exact=len({sentence.text.strip() for sentence in run}) == 1,
    )


def _few_at_end(text: str, chars: int) -> list[_Sentence]:
    """Return the longest run of sentences at a text's end in which a few sentences are repeated.

    Looks at the last ``chars`` characters. Returns [] if none is repeated often enough. An
    unfinished last sentence and sentences without words are left out.
    """
    tail = text[-chars:]
    matches = list(_SENTENCE.finditer(tail))
    if len(matches) < MAX_SAID:
        return []
    kinds: set[frozenset[str]] = set()
    run: list[_Sentence] = []
    for match in reversed(matches):
        is_unfinished = match.end() == len(tail) and not tail.rstrip(" \t").endswith(_SENTENCE_ENDS)
        words = _WORD.findall(match[0].lower())
        if not words or is_unfinished:
            continue
        kind = frozenset(words)
        if kind not in kinds and run and len(run) >= MAX_SAID * len(kinds):
            break
        kinds.add(kind)
        if MAX_SAID * len(kinds) > len(matches):
            return []
        end = len(text) - len(tail) + match.end()
        numbers = tuple(_NUMBERS.findall(match[0]))
        run.append(_Sentence(match[0], end, len(words), kind, numbers))
    if len(run) < MAX_SAID * len(kinds):
        return []
    return run[::-1]


def _differ_in_numbers(run: Sequence[_Sentence]) -> bool:
    """Return True if sentences repeat often enough only because their numbers are ignored."""
    versions = {(sentence.kind, sentence.numbers) for sentence in run}
    return len(run) < MAX_SAID * len(versions)


def _is_prose(run: Sequence[_Sentence]) -> bool:
    """Return True if sentences are prose, not short items, table rows, JSON, code or XML."""
    if sum(sentence.word_count for sentence in run) < _SENTENCE_WORDS * len(run):
        return False
    texts = [sentence.text for sentence in run]
    return not any("|" in text or _RECORD.fullmatch(text) for text in texts)


def find_repeated_calls(text: str, tools: Collection[str]) -> Repetition | None:
    """Return the repetition of lines that call ``tools`` at a text's end; None if there is none.

    The lines are equal, or differ only in digits. Between them are only tags, fences and empty
    lines. They may be followed by the beginning of another line that may become a call.
    """
    tail = text[-LOOKED_AT_CHARS:]
    if "{" not in tail and "[" not in tail:
        return None
    rows = _call_rows_at_end(text)
    if not rows or not _names_tool(rows[-1].text, tools):
        return None
    last = rows[-1].text
    equal = _run_at_end([row.text == last for row in rows])
    like = _run_at_end([_without_numbers(row.text) == _without_numbers(last) for row in rows])
    is_fenced = _is_fenced(text[: rows[-1].end])
    is_exact = equal >= (MAX_LIKE_CALLS if is_fenced else MAX_EQUAL_CALLS)
    if not is_exact and like < MAX_LIKE_CALLS:
        return None
    rounds = equal if is_exact else like
    second_end = rows[len(rows) - rounds + 1].end
    return Repetition(last, rounds, len(text) - second_end, is_exact=rounds == equal)


@frozen
class _Row:
    """A line of an answer that may be a tool call; ``end`` is the position where it ends."""

    text: str
    end: int


def _call_rows_at_end(text: str) -> list[_Row]:
    """Return the consecutive lines at a text's end that may be tool calls, in the text's order."""
    *lines, unfinished = text[-LOOKED_AT_CHARS:].split("\n")
    if unfinished.strip() and not unfinished.lstrip().startswith(_CALL_STARTS):
        return []
    rows: list[_Row] = []
    end = len(text) - len(unfinished)
    for line in reversed(lines):
        if _CALL_ROW.match(line):
            rows.append(_Row(line.strip(), end))
        elif not _BETWEEN_CALLS.fullmatch(line):
            break
        end -= len(line) + 1
    return rows[::-1]


def _without_numbers(row: str) -> str:
    return _NUMBERS.sub("0", row)


def _names_tool(row: str, tools: Collection[str]) -> bool:
    return any(name in tools for name in _QUOTED_NAME.findall(row))


def _run_at_end(same: Sequence[bool]) -> int:
    """Return the number of consecutive true values at the end of a sequence."""
    count = 0
    for value in reversed(same):
        if not value:
            break
        count += 1
    return count


def _is_enough(text: str, start: int, unit: str, rounds: int) -> bool:
    """Return True if a text is repeated often enough from ``start`` on to stop the answer.

    Rows of data and text in a code fence may be repeated more often than prose.
    """
    if rounds < MIN_REPEATED_ROUNDS:
        return False
    chars = rounds * len(unit)
    words = len(_WORD.findall(unit))
    if _is_row(unit, words) or _is_fenced(text[:start]):
        return chars >= _DATA_CHARS
    is_phrase = words >= _PHRASE_WORDS and rounds >= _PHRASE_ROUNDS and chars >= _PHRASE_CHARS
    return is_phrase or chars >= MIN_REPEATED_CHARS


def _is_row(unit: str, words: int) -> bool:
    """Return True if a repeated text is a row of data, such as a table, dump, JSON or XML."""
    if "\n" not in unit or not unit.strip():
        return False
    # The repeated text may begin in the middle of a row, whose beginning is then at the text's end.
    end_of_row, _, start_of_row = unit.partition("\n")
    is_record = _RECORD.fullmatch(start_of_row + end_of_row) is not None
    return words <= _ROW_WORDS or "|" in unit or is_record


def _is_fenced(text: str) -> bool:
    """Return True if a text ends inside a code fence (```)."""
    # ``str.find`` finds one backtick far faster than three.
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
