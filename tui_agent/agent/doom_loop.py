"""Notices that the model repeats itself: pure, from the entries of the path, so it survives a restart.

A call's key is its tool and its arguments as canonical JSON. Only calls since the user last said
something count. The results distinguish progress from a loop: the same call with a new result is
polling. A result that differs in nothing but times is not new.
"""

import json
import re
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from hashlib import sha256

from tui_agent.context.arguments import parse_object
from tui_agent.context.files import call_path
from tui_agent.lazy import LazyPattern, dataclass
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)

CYCLE_LENGTHS = (1, 2, 3)
"""Calls of the circles that are looked for."""
STALE_ROUNDS = 3
"""The round of a circle that asks when each of its calls keeps giving the same result."""
CHANGING_CALLS = 20
"""Every so many rounds of a circle are asked about when results differ: polling ends before, as a
rule."""
PARSE_FAILURES = 3
"""The unreadable call of one tool that asks."""
FAILED_EDITS = 5
"""The change of one file that asks when all of them failed since one succeeded, whatever they were
to change."""
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
MAX_CALLS_EXAMINED = 80
"""Calls looked at: a multiple of ``CHANGING_CALLS``, so that a longer loop is asked about each
time."""

_WORD = LazyPattern(r"[^\W\d_]{2,}")
_RECORD = LazyPattern(r"\s*[\[{(<\"'].*[\]})>\"'],?\s*", re.DOTALL)
"""A row of JSON, of a list in code or of XML."""
_CALL_ROW = LazyPattern(r"\s*(?:<[\w|]+>\s*)?[\[{].*[\]}\w\">]")
"""A row that may be a call in JSON, whole or without its last brace."""
_QUOTED_NAME = LazyPattern(r"\"(?:name|tool|function)\"\s*:\s*\"([\w.:-]+)\"")
_NUMBERS = LazyPattern(r"\d+")
_TIMES = LazyPattern(
    r"\b\d+(?:\.\d+)?\s?(?:ms|µs|ns|s|sec|secs|seconds?)\b|\b\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?\b"
)
"""Durations and times of day: that a command took longer than before is no news."""


@dataclass(frozen=True, slots=True)
class DoomLoop:
    """A call that would go round in a circle.

    ``keys`` are the calls of the circle; allowing all of them for the session silences it.
    ``count`` is the call or round that is about to run. ``reason`` is one sentence for a person.
    """

    keys: tuple[str, ...]
    count: int
    reason: str

    @property
    def pattern(self) -> str:
        return " → ".join(self.keys)


def call_key(tool: str, arguments: str) -> str:
    """Return the identity of a call: canonical JSON; other arguments count as they were written."""
    values = parse_object(arguments or "{}")
    if values is None:
        return f"{tool} {arguments.strip()}"
    return f"{tool} {json.dumps(values, sort_keys=True, separators=(',', ':'), ensure_ascii=False)}"


@dataclass(frozen=True, slots=True)
class LoopRules:
    """Exempts calls from detection.

    ``allowed`` holds the keys the user allowed for this session. ``problem_of`` says why a tool
    can't read these arguments (tool name, JSON text), "" where it can.
    """

    allowed: frozenset[str] = frozenset()
    changes: Callable[[str], bool] = lambda _tool: False
    """Whether a tool changes the file that its call names."""
    problem_of: Callable[[str, str], str] = lambda _tool, arguments: (
        "not a JSON object" if parse_object(arguments or "{}") is None else ""
    )


DEFAULT_LOOP_RULES = LoopRules()


def detect(
    path: Sequence[Entry], call_id: str, rules: LoopRules = DEFAULT_LOOP_RULES
) -> DoomLoop | None:
    """Return the loop that the newest call of that id would continue, or None; the end of a path is enough."""
    calls = _calls(path, rules.problem_of, call_id)
    if calls:
        return _detect(calls, rules)
    return None


def was_refused(path: Sequence[Entry], call_id: str, rules: LoopRules = DEFAULT_LOOP_RULES) -> bool:
    """Return True if a loop was refused since the user's last word: without a user, the next one ends the run."""
    calls = _calls(path, rules.problem_of, call_id)
    return any(
        call.answer is not None
        and call.answer.status is ToolStatus.DENIED
        and _detect(calls[: index + 1], rules)
        for index, call in enumerate(calls[:-1])
    )


@dataclass(frozen=True)
class _Call:
    """A call and its result.

    Looking into either takes time, and is done only for those that may be a circle.
    """

    part: ToolCallPart
    answer: ToolResultEntry | None
    problem_of: Callable[[str, str], str]

    @cached_property
    def key(self) -> str:
        return call_key(self.part.tool, self.part.arguments)

    @cached_property
    def file(self) -> str | None:
        return call_path(self.part.arguments)

    @cached_property
    def readable(self) -> bool:
        return not self.problem_of(self.part.tool, self.part.arguments)

    @cached_property
    def result(self) -> str | None:
        """Digest of the result; None where that is no news: unknown, not let through, or all of it known before."""
        if self.answer is None or self.answer.status in {ToolStatus.DENIED, ToolStatus.INTERRUPTED}:
            return None
        if self.answer.metadata.is_known:
            return None
        images = " ".join(image.blob for image in self.answer.attachments)
        text = f"{self.answer.status} {images} {_TIMES.sub('', self.answer.output)}"
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _calls(
    path: Sequence[Entry], problem_of: Callable[[str, str], str], call_id: str
) -> list[_Call]:
    """Return the calls since the user's last word up to one, oldest first, at most ``MAX_CALLS_EXAMINED``."""
    results: dict[str, ToolResultEntry] = {}
    found: list[_Call] = []
    for entry in reversed(path):
        if isinstance(entry, UserEntry) and entry.synthetic is None:
            break
        if isinstance(entry, ToolResultEntry):
            results.setdefault(entry.call_id, entry)
        elif isinstance(entry, AssistantEntry):
            found += [
                _Call(call, results.pop(call.call_id, None), problem_of)
                for call in reversed(entry.tool_calls)
            ]
        if len(found) >= MAX_CALLS_EXAMINED:
            break
    found = found[:MAX_CALLS_EXAMINED]
    index = next((i for i, call in enumerate(found) if call.part.call_id == call_id), len(found))
    return found[index:][::-1]


def _detect(calls: Sequence[_Call], rules: LoopRules) -> DoomLoop | None:
    found = _unreadable(calls) or _circle(calls) or _failed_edits(calls, rules)
    if found is None or all(key in rules.allowed for key in found.keys):
        return None
    return found


def _unreadable(calls: Sequence[_Call]) -> DoomLoop | None:
    tool = calls[-1].part.tool
    count = 0
    for call in reversed(calls):
        if call.part.tool != tool:
            continue
        if call.readable:
            break
        count += 1
    if count < PARSE_FAILURES:
        return None
    reason = f"{count} {tool} calls in a row with arguments that cannot be read"
    return DoomLoop((f"{tool} (unreadable arguments)",), count, reason)


def _failed_edits(calls: Sequence[_Call], rules: LoopRules) -> DoomLoop | None:
    tool = calls[-1].part.tool
    file = calls[-1].file
    if file is None or not rules.changes(tool):
        return None
    count = 1
    for call in reversed(calls[:-1]):
        if call.file != file or not rules.changes(call.part.tool):
            continue
        if call.answer is None or call.answer.status is not ToolStatus.ERROR:
            break
        count += 1
    if count < FAILED_EDITS:
        return None
    return DoomLoop(
        (f"{tool} {file}",), count, f"attempt {count} to {tool} {file}, all of them failed"
    )


def _circle(calls: Sequence[_Call]) -> DoomLoop | None:
    for length in CYCLE_LENGTHS:
        keys = tuple(call.key for call in calls[-length:])
        if length > 1 and len(set(keys)) == 1:
            continue
        rounds = _rounds(calls, length)
        is_stale = _stale_rounds(calls, length, rounds) >= STALE_ROUNDS
        if not is_stale and (rounds == 0 or rounds % CHANGING_CALLS):
            continue
        reason = f"the same {length} calls in round {rounds}"
        if length == 1:
            known = ", with the same result" if is_stale else ""
            reason = f"the same {calls[-1].part.tool} call {rounds} times in a row{known}"
        return DoomLoop(keys, rounds, reason)
    return None


def _stale_rounds(calls: Sequence[_Call], length: int, rounds: int) -> int:
    """Return how many of the last rounds, the pending one included, brought nothing new."""
    for stale in range(1, rounds + 1):
        known = calls[len(calls) - length * stale :]
        results = (
            {call.result for call in known[place::length] if call.result} for place in range(length)
        )
        if any(len(different) > 1 for different in results):
            return stale - 1
    return rounds


def _rounds(calls: Sequence[_Call], length: int) -> int:
    """Return how many times the last ``length`` calls were made in a row, the pending round included."""
    last = [call.key for call in calls[-length:]]
    rounds = 0
    for end in range(len(calls), length - 1, -length):
        if [call.key for call in calls[end - length : end]] != last:
            break
        rounds += 1
    return rounds


@dataclass(frozen=True, slots=True)
class Repetition:
    """The end of an answer that is ``unit`` over and over; ``extra`` are its characters after the second round."""

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
    """Return the repetition at a text's end, None while it says something new; looks at little more than its end."""
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


def find_repeated_calls(text: str, tools: Collection[str]) -> Repetition | None:
    """Return the repetition at a text's end of rows that call one of the tools; None where there is none."""
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
