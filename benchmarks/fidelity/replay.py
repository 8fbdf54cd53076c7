"""Replays a trace through a policy and looks, at the same points for all, at what of the future is still there."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from benchmarks.fidelity.policies import Health, Policy
from benchmarks.fidelity.references import References, entry_text, rules_of
from benchmarks.fidelity.traces import Trace
from tui_agent.session.entries import AssistantEntry, Entry

POINTS = 16
"""Places per trace and window at which the view is looked into."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is there at one point. Shares, of identifiers that the agent uses again, but for ``rules``."""

    in_view: float
    recalled: float
    """In view or in an entry whose address is."""
    called: float
    """In view, or one call away: a recall, or the same reading again."""
    rules: float
    """Sentences of the user with must, never, don't, always that are in view word for word."""
    by_chance: float
    """Identifiers of another session's future in view: what a view of this size gets by chance."""


@dataclass(frozen=True, slots=True)
class Result:
    """One replay. ``kept`` is the mean size of history, in tokens, since the session has outgrown its budget."""

    trace: str
    window: int
    policy: str
    looks: tuple[Look, ...]
    kept: float
    read_again: int
    """Tokens of the outputs that hold what the agent uses and no longer has before it, had it to get them again."""
    health: Health
    trace_tokens: int

    def share(self, name: str) -> float:
        """Return the mean of one of a look's shares."""
        return float(mean(getattr(look, name) for look in self.looks))

    @property
    def stability(self) -> float:
        """Share of each request's prefix that the next one repeats."""
        return self.health.kept_prefix / self.health.could_keep if self.health.could_keep else 1.0


def points_of(trace: Trace, budget: int) -> list[int]:
    """Return where to look: spread over the part in which the session no longer fits, before an answer."""
    total = 0
    crowded: list[int] = []
    for place, entry in enumerate(trace.entries):
        if total > budget and isinstance(entry, AssistantEntry):
            crowded.append(place)
        total += entry.tokens
    return crowded[:: max(1, len(crowded) // POINTS)][:POINTS]


def replay(trace: Trace, policy: Policy, references: References, other: References) -> Result:
    """Run one trace through one policy. ``other`` are the references of another trace."""
    points = set(points_of(trace, policy.budget))
    looks: list[Look] = []
    kept: list[int] = []
    having = _Having(trace, references)
    raw = 0
    for place, entry in enumerate(trace.entries):
        if isinstance(entry, AssistantEntry):
            policy.request(entry.created_at)
            having.before(place, policy)
            if raw > policy.budget:
                kept.append(policy.history)
            if place in points and (wanted := references.used_after(place)):
                foreign = other.used_after(other.length * place // len(trace.entries))
                strange = {word for word in foreign if not references.has_told(word, place)}
                looks.append(_look(_Seen(trace.entries[:place], references, wanted, strange), policy))
        policy.append(entry)
        having.after(entry)
        raw += entry.tokens
    return Result(
        trace=trace.name,
        window=policy.window,
        policy=policy.name,
        looks=tuple(looks),
        kept=mean(kept) if kept else 0.0,
        read_again=having.tokens,
        health=policy.health,
        trace_tokens=trace.tokens,
    )


class _Having:
    """Follows what an agent has before it, and what it would have to get again to do what it did."""

    def __init__(self, trace: Trace, references: References) -> None:
        self._entries = trace.entries
        self._references = references
        self._text = ""
        self._changes = 0
        self.tokens = 0

    def before(self, place: int, policy: Policy) -> None:
        """Look at an action before it is appended."""
        changes = policy.health.prunes + policy.health.compactions
        if changes != self._changes:
            self._changes, self._text = changes, _unescaped(policy.view_text())
        if changes:
            missing = {word for word in self._references.known(place) if word not in self._text}
            for source in {self._references.source(word, place) for word in missing}:
                self.tokens += self._entries[source].tokens
                self._text += entry_text(self._entries[source])

    def after(self, entry: Entry) -> None:
        """Take in what is appended."""
        if self._changes:
            self._text += f"\n{entry_text(entry)}"


@dataclass(frozen=True, slots=True)
class _Seen:
    """A point of a trace: what came before it, what is used after it, and what another session uses."""

    entries: Sequence[Entry]
    references: References
    wanted: set[str]
    strange: set[str]


def _look(seen: _Seen, policy: Policy) -> Look:
    text = _unescaped(policy.view_text())
    places = {entry.id: place for place, entry in enumerate(seen.entries)}
    shown = {word for word in seen.wanted if word in text}

    def share(ids: set[int]) -> float:
        found = set().union(*(seen.references.words(places[i]) for i in ids if i in places))
        return len(shown | (found & seen.wanted)) / len(seen.wanted)

    recalled = set(policy.recalled(text))
    rules = [rule for entry in seen.entries for rule in rules_of(entry)]
    return Look(
        in_view=len(shown) / len(seen.wanted),
        recalled=share(recalled),
        called=share(recalled | set(policy.repeated(text))),
        rules=sum(rule in text for rule in rules) / len(rules) if rules else 1.0,
        by_chance=sum(word in text for word in seen.strange) / len(seen.strange) if seen.strange else 0.0,
    )


def _unescaped(text: str) -> str:
    """Return text in which line breaks of JSON strings do not glue words together."""
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
