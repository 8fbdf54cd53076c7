"""Notices calls that go round in a circle: pure, from the entries of the path, so it survives a restart.

Only calls since the user last said something count. The last calls are a circle where they told
only a few different things, again and again: whatever was asked, in whatever order.
"""

from collections.abc import Hashable, Sequence
from dataclasses import field

from tui_agent.agent.news import (
    UNREADABLE,
    Call,
    ProblemOf,
    Told,
    calls_of,
    told_by,
    unreadable,
)
from tui_agent.lazy import dataclass, frozen
from tui_agent.session.entries import Entry, ToolStatus

CYCLE_LENGTHS = (1, 2, 3)
"""Calls of the circles with changing results that are looked for."""
STALE_ROUNDS = 3
"""The round of equal calls that asks when they tell nothing new."""
AIM_ROUNDS = 5
"""The same where something was changed between, and for changes of one file that all fail."""
VARIED_ROUNDS = 6
"""The same of calls that differ."""
CHANGING_CALLS = 20
"""Every so many rounds of a circle are asked about when results differ: polling ends before, as a
rule."""


@frozen
class DoomLoop:
    """A call that would go round in a circle.

    ``keys`` are the calls of the circle; allowing all of them for the session silences it.
    ``reason`` is one sentence for a person. ``call_ids`` are the calls so far.
    """

    keys: tuple[str, ...]
    reason: str
    call_ids: frozenset[str]

    @property
    def pattern(self) -> str:
        return " → ".join(self.keys)


@frozen
class LoopRules:
    """Exempts calls from detection.

    ``allowed`` holds the keys the user allowed for this session.
    """

    allowed: frozenset[str] = frozenset()
    problem_of: ProblemOf = unreadable


DEFAULT_LOOP_RULES = LoopRules()


def detect(
    path: Sequence[Entry], call_id: str, rules: LoopRules = DEFAULT_LOOP_RULES
) -> DoomLoop | None:
    """Return the loop that the newest call of that id would continue, or None.

    The end of a path is enough.
    """
    calls = _calls_until(path, call_id, rules)
    if calls:
        return _detect(calls, rules)
    return None


def was_refused(path: Sequence[Entry], call_id: str, rules: LoopRules = DEFAULT_LOOP_RULES) -> bool:
    """Return True if a loop was refused since the user's last word: without a user, the next one ends the run."""
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
    *before, newest = told_by(calls)
    call = newest.call
    found = _stale(call, before)
    if found is None and call.aim:
        found = _stale(call, [one for one in before if _has_aim_of(call, one)])
    if found is None and not call.waits:
        found = _changing(calls)
    if found is None or all(key in rules.allowed for key in found.keys):
        return None
    return found


def _has_aim_of(newest: Call, one: Told) -> bool:
    if newest.is_unreadable:
        return one.call.part.tool == newest.part.tool
    return one.call.aim == newest.aim


def _stale(newest: Call, before: Sequence[Told]) -> DoomLoop | None:
    stretch = _Stretch(newest)
    for one in reversed(before):
        stretch.add(one)
        found = stretch.loop
        if found is not None:
            return found
    return None


@dataclass
class _Stretch:
    """The last calls, as far back as they were looked at."""

    newest: Call
    calls: list[Call] = field(default_factory=list)
    """Those that count, newest first."""
    marks: set[Hashable] = field(default_factory=set)
    asked: set[tuple[int, Hashable]] = field(default_factory=set)
    """Which answer asked for which; what one answer asks for at once counts once."""
    equal: int = 0
    """Those of them that are the newest call once more."""
    is_changed: bool = False
    """Whether something was changed among them."""

    def add(self, one: Told) -> None:
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

    def _is_equal(self, one: Told) -> bool:
        if one.call.key == self.newest.key:
            return True
        is_same_tool = one.call.part.tool == self.newest.part.tool
        return one.mark == UNREADABLE and is_same_tool and self.newest.is_unreadable

    @property
    def loop(self) -> DoomLoop | None:
        """The loop that the newest call would go on with."""
        if not self.calls:
            return None
        known = len(self.marks)
        count = len(self.calls)
        if self.equal > 1 and not self.is_changed and count >= STALE_ROUNDS * known - 1:
            return self._circle((count + 1) // known)
        if count >= (AIM_ROUNDS - 1) * known and self._has_aim:
            return self._attempt(count + 1)
        if count >= (VARIED_ROUNDS - 1) * known and self._is_related:
            told = "the same" if known == 1 else f"only {known} different things"
            reason = f"the last {count} calls told {told}"
            return self._found((f"{self.newest.part.tool} (nothing new)",), reason)
        return None

    @property
    def _has_aim(self) -> bool:
        """Whether the newest call is made once more, or changes the file that couldn't be changed."""
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
        reason = f"the same {len(keys)} calls in round {rounds}"
        if not others:
            reason = f"the same {tool} call {rounds} times in a row, with the same result"
        return self._found(keys, reason)

    def _attempt(self, number: int) -> DoomLoop:
        aim = self.newest.aim
        if aim and self.calls[-1].failed:
            return self._found((aim,), f"attempt {number} to {aim}, all of them failed")
        reason = f"the same {self.newest.part.tool} call again, with nothing new in {number} calls"
        return self._found((self.newest.key,), reason)

    def _found(self, keys: tuple[str, ...], reason: str) -> DoomLoop:
        return DoomLoop(keys, reason, frozenset(call.part.call_id for call in self.calls))


def _changing(calls: Sequence[Call]) -> DoomLoop | None:
    """Return the circle of equal calls that goes on although their results differ."""
    for length in CYCLE_LENGTHS:
        keys = [call.key for call in calls[-length:]]
        if length > 1 and len(set(keys)) == 1:
            continue
        rounds = _rounds(calls, keys)
        if rounds == 0 or rounds % CHANGING_CALLS:
            continue
        reason = f"the same {length} calls in round {rounds}"
        if length == 1:
            reason = f"the same {calls[-1].part.tool} call {rounds} times in a row"
        earlier = frozenset(call.part.call_id for call in calls[-length * rounds :])
        return DoomLoop(tuple(keys), reason, earlier)
    return None


def _rounds(calls: Sequence[Call], last: Sequence[str]) -> int:
    """Return how many times the last calls were made in a row, the pending round included."""
    rounds = 0
    for end in range(len(calls), len(last) - 1, -len(last)):
        if [call.key for call in calls[end - len(last) : end]] != last:
            break
        rounds += 1
    return rounds
