"""Detects doom loops: tool calls that the model repeats without learning anything new.

Detection is a pure function of the entries on the session path, so it works the same after a
restart. Only calls since the user's last message count. They count as a doom loop if many of them
have returned only a few different results, whichever tools were called and in whichever order.
``calls.repetition`` decides what happens to a loop.
"""

from collections.abc import Hashable, Sequence
from dataclasses import field

from tui_agent.agent.news import (
    UNREADABLE,
    Call,
    ComparedCall,
    ProblemOf,
    calls_of,
    compare_calls,
    unreadable,
)
from tui_agent.lazy import dataclass, frozen
from tui_agent.session.entries import Entry, ToolStatus

CYCLE_LENGTHS = (1, 2, 3)
"""Lengths of the call sequences that count as doom loops even if their results change."""
STALE_ROUNDS = 3
"""Number of rounds of equal calls without a new result after which they count as a doom loop.

The current call is counted, too.
"""
AIM_ROUNDS = 5
"""Number of rounds without a new result that count as a doom loop even if something was changed.

This is also the number of failed attempts to change one file that count as a doom loop.
"""
VARIED_ROUNDS = 6
"""Number of rounds without a new result after which differing calls count as a doom loop."""
CHANGING_CALLS = 20
"""Number of rounds of equal calls that count as a doom loop even if their results differ.

Each multiple of this number is reported as a loop again. An agent that polls something usually
stops before that.
"""


@frozen
class DoomLoop:
    """A doom loop that the newest call would continue.

    ``keys`` are the texts that identify the repeated calls; a loop is not reported if the user
    allowed all of them. ``reason`` is a clause for the user. ``call_ids`` are the loop's calls so
    far.
    """

    keys: tuple[str, ...]
    reason: str
    call_ids: frozenset[str]

    @property
    def pattern(self) -> str:
        """The repeated calls as one text, against which ``doom_loop`` rules are matched."""
        return " → ".join(self.keys)


@frozen
class LoopRules:
    """Parameters for the detection of doom loops.

    ``allowed`` are the keys of calls that the user allowed for the session. ``problem_of`` returns
    why a call's arguments can't be read, "" if they can.
    """

    allowed: frozenset[str] = frozenset()
    problem_of: ProblemOf = unreadable


DEFAULT_LOOP_RULES = LoopRules()


def detect(
    path: Sequence[Entry], call_id: str, rules: LoopRules = DEFAULT_LOOP_RULES
) -> DoomLoop | None:
    """Return the doom loop that the call ``call_id`` would continue; None if there is none."""
    calls = _calls_until(path, call_id, rules)
    if calls:
        return _detect(calls, rules)
    return None


def was_refused(path: Sequence[Entry], call_id: str, rules: LoopRules = DEFAULT_LOOP_RULES) -> bool:
    """Return True if an earlier call since the user's last message was denied as a doom loop."""
    calls = _calls_until(path, call_id, rules)
    for count, call in enumerate(calls[:-1], 1):
        is_denied = call.answer is not None and call.answer.status is ToolStatus.DENIED
        if is_denied and _detect(calls[:count], rules):
            return True
    return False


def _calls_until(path: Sequence[Entry], call_id: str, rules: LoopRules) -> list[Call]:
    calls = calls_of(path, rules.problem_of)
    while calls and calls[-1].part.call_id != call_id:
        calls.pop()
    return calls


def _detect(calls: Sequence[Call], rules: LoopRules) -> DoomLoop | None:
    *before, newest = compare_calls(calls)
    call = newest.call
    found = _stale(call, before)
    if found is None and call.aim:
        found = _stale(call, [one for one in before if _has_aim_of(call, one)])
    if found is None and not call.waits:
        found = _changing(calls)
    if found is None or all(key in rules.allowed for key in found.keys):
        return None
    return found


def _has_aim_of(newest: Call, one: ComparedCall) -> bool:
    if newest.is_unreadable:
        return one.call.part.tool == newest.part.tool
    return one.call.aim == newest.aim


def _stale(newest: Call, before: Sequence[ComparedCall]) -> DoomLoop | None:
    stretch = _Stretch(newest)
    for one in reversed(before):
        stretch.add(one)
        found = stretch.loop
        if found is not None:
            return found
    return None


@dataclass
class _Stretch:
    """The calls before the newest one, as far back as they were examined."""

    newest: Call
    calls: list[Call] = field(default_factory=list)
    """The calls that count towards a doom loop, newest first."""
    marks: set[Hashable] = field(default_factory=set)
    """The different contents of the results of the calls in `calls`."""
    asked: set[tuple[int, Hashable]] = field(default_factory=set)
    """Pairs that identify an answer and the content of one of its results.

    With them, different calls of one answer with equal results are counted only once.
    """
    equal: int = 0
    """Number of calls in `calls` that are equal to the newest call."""
    is_changed: bool = False
    """Whether any of the examined calls changed something, for example a file."""

    def add(self, one: ComparedCall) -> None:
        if one.mark is None:
            self.is_changed |= one.changes
            return
        is_equal = self._is_equal(one)
        if not is_equal and (one.call.back, one.mark) in self.asked:
            return
        self.asked.add((one.call.back, one.mark))
        self.calls.append(one.call)
        self.marks.add(one.mark)
        self.equal += is_equal

    def _is_equal(self, one: ComparedCall) -> bool:
        if one.call.key == self.newest.key:
            return True
        is_same_tool = one.call.part.tool == self.newest.part.tool
        return one.mark == UNREADABLE and is_same_tool and self.newest.is_unreadable

    @property
    def loop(self) -> DoomLoop | None:
        """The doom loop that the newest call would continue; None if there is no doom loop yet."""
        if not self.calls:
            return None
        known = len(self.marks)
        count = len(self.calls)
        if self.equal > 1 and not self.is_changed and count >= STALE_ROUNDS * known - 1:
            return self._circle((count + 1) // known)
        if count >= (AIM_ROUNDS - 1) * known and self._has_aim:
            return self._attempt(count + 1)
        if count >= (VARIED_ROUNDS - 1) * known and self._is_related:
            told = "the same thing" if known == 1 else f"only {known} different things"
            reason = f"the last {count} calls returned {told}"
            return self._found((f"{self.newest.part.tool} (nothing new)",), reason)
        return None

    @property
    def _has_aim(self) -> bool:
        """Whether the newest call repeats what earlier calls tried to do.

        That is so if it was made twice before, or if the oldest call failed with the same aim.
        """
        if self.equal > 1:
            return True
        first = self.calls[-1]
        return bool(self.newest.aim) and first.failed and first.aim == self.newest.aim

    @property
    def _is_related(self) -> bool:
        if self.newest.is_unreadable and UNREADABLE in self.marks:
            return True
        return any(call.part.tool == self.newest.part.tool for call in self.calls)

    def _circle(self, rounds: int) -> DoomLoop:
        tool = self.newest.part.tool
        if self.newest.is_unreadable:
            reason = f"{rounds} {tool} calls in a row with arguments that cannot be read"
            return self._found((self.newest.aim,), reason)
        others = dict.fromkeys(call.key for call in self.calls if call.key != self.newest.key)
        keys = (*reversed(others), self.newest.key)
        reason = f"the same {len(keys)} calls {rounds} times in a row"
        if not others:
            reason = f"the same {tool} call {rounds} times in a row, with the same result"
        return self._found(keys, reason)

    def _attempt(self, number: int) -> DoomLoop:
        aim = self.newest.aim
        if aim and self.calls[-1].failed:
            return self._found((aim,), f"attempt {number} to {aim}, after all others failed")
        reason = f"the same {self.newest.part.tool} call again, with nothing new in {number} calls"
        return self._found((self.newest.key,), reason)

    def _found(self, keys: tuple[str, ...], reason: str) -> DoomLoop:
        return DoomLoop(keys, reason, frozenset(call.part.call_id for call in self.calls))


def _changing(calls: Sequence[Call]) -> DoomLoop | None:
    """Return the doom loop that consists of equal calls with different results.

    None if there is no such loop, or if its number of rounds is not a multiple of `CHANGING_CALLS`.
    """
    for length in CYCLE_LENGTHS:
        keys = [call.key for call in calls[-length:]]
        if length > 1 and len(set(keys)) == 1:
            continue
        rounds = _rounds(calls, keys)
        if rounds == 0 or rounds % CHANGING_CALLS:
            continue
        reason = f"the same {length} calls {rounds} times in a row"
        if length == 1:
            reason = f"the same {calls[-1].part.tool} call {rounds} times in a row"
        earlier = frozenset(call.part.call_id for call in calls[-length * rounds :])
        return DoomLoop(tuple(keys), reason, earlier)
    return None


def _rounds(calls: Sequence[Call], last: Sequence[str]) -> int:
    """Return how many times in a row the calls with the keys ``last`` were made, up to now."""
    rounds = 0
    for end in range(len(calls), len(last) - 1, -len(last)):
        if [call.key for call in calls[end - len(last) : end]] != last:
            break
        rounds += 1
    return rounds
