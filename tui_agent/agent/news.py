"""Compares the results of tool calls, and decides which results are new. Pure.

Used by ``doom_loop``, which decides what is a loop, and by ``goals`` (`brings_news`).

Results that differ only in times, addresses and counters count as equal. Words that a failure
repeats from its call are ignored, too, so different calls with the same failure have equal results.
Successful changes are not compared, nor are calls that look again at what was changed.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import takewhile
from typing import Any

from tui_agent.context.arguments import parse_object
from tui_agent.context.files import call_path
from tui_agent.lazy import LazyPattern, cached_property, dataclass, frozen
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
    is_by_user,
)
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.registry import tool_traits

MAX_CALLS_EXAMINED = 80
"""Maximum number of tool calls that are examined; older calls are ignored."""
TELLING_CHARS = 40
"""Minimum length, in characters, of a result that is compared with results of different calls.

Shorter results ("yes") are compared only with the results of equal calls.
"""
TELLING_ERROR_CHARS = 8
"""Minimum length, in characters, of failures that are compared, without the words repeated from the
call."""
COMPARED_CHARS = 4_000
"""Number of characters at the beginning, and at the end, of a long result that are compared."""

_TIMES = LazyPattern(
    r"\b\d+(?:\.\d+)?\s?(?:ms|µs|ns|s|m|min|sec|secs|seconds?|minutes?)\b"
    r"|\b\d{4}-\d\d-\d\d(?=\b|T)|\bT?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?Z?\b"
)
"""Matches durations, dates and times of day."""
_PASSING = LazyPattern(
    r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f-]*\d)[0-9a-f]{6,}(?:-[0-9a-f]{4,})*\b|/tmp/\S+"
    r"|\b(?:attempt|try|retry|request|run|pid|port|process|thread|chunk id)[\s=:#]*\d+\b(?!\s*(?:of\b|/))",
    re.IGNORECASE,
)
"""Matches addresses, identifiers, temporary files and counters, which differ from call to call."""
_PLACES = LazyPattern(
    r":\s?\d+(?=[:,)\s])|\bline \d+|\bexit(?:ed)?(?: with)?(?: code| status):? \d+"
)
"""Matches line numbers and exit codes. They are not compared, because they say little about an
error."""
_FAILED = LazyPattern(
    r"^(?:.* )?[1-9]\d* (?:failed|errors?|failures?)\b|^(?:FAILED|ERROR|Traceback)\b|^\w*[eE]rror:",
    re.MULTILINE,
)
_WORD = LazyPattern(r"\w+")
_ECHO = LazyPattern(r"\s*(?:;|&&|\|\|)\s*echo\b[^;&|]*$")
_WAITING = LazyPattern(
    r"\bsleep\s+[\d.$]|\bwait(?:-for)?\b|\bwatch\b|\btail\s+-\w*[fF]|\binotifywait\b"
)
"""Matches parts of a command line that wait for something. If such calls have equal results, this
is no sign of a loop."""
_COMMANDS = ("command", "cmd")
"""Names of arguments whose values are command lines."""
_PACE = ("timeout", "timeout_ms", "yield_time_ms", "description")
"""Names of arguments that are ignored in comparisons, because they don't change what a call does:
timeouts and descriptions."""
_SILENT = ("", "[No output.]")

UNREADABLE = "unreadable"
"""Value of `ComparedCall.mark` for every call whose arguments can't be read."""

ProblemOf = Callable[[str, str], str]
"""Function that returns why a tool, given by name, can't read a JSON text as its arguments; "" if
it can."""


def call_key(tool: str, arguments: str) -> str:
    """Return a text that is the same for equal calls: the tool and its arguments as canonical JSON.

    A command's spaces, an ``echo`` at its end and its timeout are ignored. Arguments that aren't a
    JSON object are used unchanged.
    """
    values = parse_object(arguments or "{}")
    if values is None:
        return f"{tool} {arguments.strip()}"
    meant = {name: value for name, value in values.items() if name not in _PACE}
    for name in _COMMANDS:
        if isinstance(meant.get(name), str):
            meant[name] = " ".join(_ECHO.sub("", meant[name]).split())
    return f"{tool} {json.dumps(meant, sort_keys=True, separators=(',', ':'), ensure_ascii=False)}"


def unreadable(_tool: str, arguments: str) -> str:
    """Return what is wrong with the arguments of an unknown tool; "" if they are a JSON object."""
    return "not a JSON object" if parse_object(arguments or "{}") is None else ""


@dataclass(frozen=True)
class Call:
    """A tool call and its result (``answer``, None while there is none)."""

    part: ToolCallPart
    answer: ToolResultEntry | None
    problem_of: ProblemOf
    back: int
    """Number of the model's answers that came after the answer with this call."""

    @cached_property
    def key(self) -> str:
        """The text that identifies equal calls; see `call_key`."""
        return call_key(self.part.tool, self.part.arguments)

    @cached_property
    def file(self) -> str | None:
        return call_path(self.part.arguments)

    @property
    def traits(self) -> ToolTraits:
        return tool_traits()[self.part.tool]

    @cached_property
    def is_unreadable(self) -> bool:
        """Whether the tool can't read the call's arguments. This is False if the call succeeded."""
        if self.answer is not None and not self.failed:
            return False
        return bool(self.problem_of(self.part.tool, self.part.arguments))

    @property
    def aim(self) -> str:
        """What the call attempts ("edit a.py"), to find attempts that all fail; "" for most calls.

        Only calls that change a file, or whose arguments the tool can't read, have one.
        """
        if self.is_unreadable:
            return f"{self.part.tool} (unreadable arguments)"
        if self.traits.writes and self.file:
            return f"{self.part.tool} {self.file}"
        return ""

    @property
    def waits(self) -> bool:
        """Whether the call waits for something slow.

        In that case, equal results are no sign of a loop.
        """
        if self.traits.waits:
            return True
        return self._runs and bool(_WAITING.search(self.part.arguments))

    @property
    def _runs(self) -> bool:
        """Whether the call may run a program; also True for an unknown tool."""
        return self.traits.kind in {"execute", "other"} and not self.traits.reads

    @cached_property
    def failed(self) -> bool:
        """Whether the call failed, or the output of a program that it ran shows a failure."""
        if self.answer is None or self.answer.status is ToolStatus.ERROR:
            return self.answer is not None
        if self.waits or not self._runs:
            return False
        return bool(_FAILED.search(self.answer.output[-COMPARED_CHARS:]))

    @property
    def said(self) -> ToolResultEntry | None:
        """The call's result if it has content of its own.

        None if there is no result, if the call was denied or interrupted, or if the result only
        refers to an earlier one.
        """
        if self.answer is None or self.answer.metadata.is_known:
            return None
        if self.answer.status in {ToolStatus.DENIED, ToolStatus.INTERRUPTED}:
            return None
        return self.answer


@frozen
class ComparedCall:
    """A tool call, compared with the calls before it.

    ``mark`` is equal for calls with equal results, and None for a call that is not compared.
    ``is_news`` is True if no earlier call had that mark, or if the call is not compared.
    """

    call: Call
    mark: Hashable | None
    is_news: bool
    changes: bool = False
    """Whether the call changed something, and no other compared call is equal to it."""


def calls_of(path: Sequence[Entry], problem_of: ProblemOf) -> list[Call]:
    """Return the newest ``MAX_CALLS_EXAMINED`` calls since the user's last message, oldest first."""
    results: dict[str, ToolResultEntry] = {}
    found: list[Call] = []
    back = -1
    for entry in reversed(path):
        if is_by_user(entry):
            break
        if isinstance(entry, ToolResultEntry):
            results.setdefault(entry.call_id, entry)
        elif isinstance(entry, AssistantEntry):
            back += 1
            for part in reversed(entry.tool_calls):
                found.append(Call(part, results.pop(part.call_id, None), problem_of, back))
        if len(found) >= MAX_CALLS_EXAMINED:
            break
    return found[:MAX_CALLS_EXAMINED][::-1]


def compare_calls(calls: Sequence[Call]) -> Iterator[ComparedCall]:
    """Compare each call's result with earlier ones; yield the compared calls, oldest first."""
    comparer = _Comparer(Counter(call.key for call in calls))
    return map(comparer.compare, calls)


@dataclass
class _Comparer:
    """Compares each tool call with earlier ones; pass all calls to `compare`, oldest first."""

    times: Counter[str]
    """Number of times that each call is made, by the call's key."""
    changes: int = 0
    """Number of successful changes in the calls so far."""
    changed: Counter[str | None] = field(default_factory=Counter)
    """Number of changes so far, by file."""
    looked: dict[str, int] = field(default_factory=dict)
    """For each file, the value of ``changes`` when a call last read it.

    For each call without a file, by the call's key, the value when the call was last made.
    """
    marks: dict[str, Hashable] = field(default_factory=dict)
    """The mark of the last result, by the call's key and, for a call with a file, by the file."""
    known: set[Hashable] = field(default_factory=set)
    """The marks of all calls compared so far."""

    def compare(self, call: Call) -> ComparedCall:
        said = call.said
        if said is None:
            mark = self._earlier_mark(call)
        elif call.failed:
            mark = self._failure(call, said)
        elif call.waits:
            return ComparedCall(call, None, is_news=True)
        elif self._acts(call, said):
            self.changes += 1
            self.changed[call.file] += 1
            return ComparedCall(call, None, is_news=True, changes=True)
        elif self._note_look(call):
            return ComparedCall(call, None, is_news=True)
        else:
            mark = self._success(call, said)
        is_news = mark not in self.known
        self.known.add(mark)
        self.marks[call.key] = mark
        if call.file:
            self.marks[call.file] = mark
        return ComparedCall(call, mark, is_news=is_news)

    def _earlier_mark(self, call: Call) -> Hashable:
        """Return the mark of a call whose result has no content of its own (see `Call.said`).

        This is the last mark of an equal call. If there is none, and the result refers to an
        earlier result, it is the last mark of the call's file. Otherwise it is a mark that only
        equal calls share.
        """
        subject = call.key
        is_known = call.answer is not None and call.answer.metadata.is_known
        if is_known and call.file and subject not in self.marks:
            subject = call.file
        return self.marks.get(subject, ("unknown", call.key))

    def _acts(self, call: Call, said: ToolResultEntry) -> bool:
        """Return True if a successful call was made only once and probably changed something.

        Calls that write, or that printed nothing, probably changed something.
        """
        is_silent = said.output.strip() in _SILENT and not said.attachments
        return self.times[call.key] == 1 and (call.traits.writes or is_silent)

    def _note_look(self, call: Call) -> bool:
        """Record that a call looks at its file; return True if anything changed since last time.

        For a call without a file, this is the last time that an equal call was made. Always returns
        False for calls that write or whose tool has a ``state`` trait; these are not recorded.
        """
        if call.traits.writes or call.traits.state:
            return False
        subject = call.file or call.key
        before = self.looked.get(subject, self.changes)
        self.looked[subject] = self.changes
        return before < self.changes

    def _failure(self, call: Call, said: ToolResultEntry) -> Hashable:
        if call.is_unreadable:
            return UNREADABLE
        if call.traits.writes:
            return (call.aim, self.changed[call.file])
        own = {*_WORD.findall(_decoded(call.part.arguments)), call.part.tool}
        text = _PLACES.sub("", _plain(said.output))
        left = " ".join(word for word in _WORD.findall(text) if word not in own)
        if len(left) < TELLING_ERROR_CHARS:
            return (call.key, text)
        return ("failed", left)

    def _success(self, call: Call, said: ToolResultEntry) -> Hashable:
        if call.traits.state == "list":
            return (call.part.tool, said.title, self.changes)
        asked = _decoded(call.part.arguments)
        images = tuple(image.blob for image in said.attachments)
        lines = _plain(said.output).splitlines()
        new = frozenset(line for line in lines if line not in asked)
        if sum(map(len, new)) < TELLING_CHARS:
            return (call.key, new, images, self.changes)
        return (new, images, self.changes)


def _decoded(arguments: str) -> str:
    values: dict[str, Any] | None = parse_object(arguments)
    return arguments if values is None else "\n".join(map(str, values.values()))


def _plain(output: str) -> str:
    """Return a tool's output without times, addresses and counters.

    Of a long output, only the beginning and the end are returned.
    """
    if len(output) > 2 * COMPARED_CHARS:
        output = output[:COMPARED_CHARS] + output[-COMPARED_CHARS:]
    return _without_passing(output)


@lru_cache(maxsize=2 * MAX_CALLS_EXAMINED)
def _without_passing(text: str) -> str:
    return _PASSING.sub("", _TIMES.sub("", text))


def brings_news(path: Sequence[Entry]) -> bool:
    """Return True if a call since the newest message brought something new.

    The newest message may be the user's or one that the program sent.
    """
    newer = takewhile(lambda entry: not isinstance(entry, UserEntry), reversed(path))
    answers = sum(isinstance(entry, AssistantEntry) for entry in newer)
    compared = compare_calls(calls_of(path, unreadable))
    return any(one.is_news and one.call.said for one in compared if one.call.back < answers)
