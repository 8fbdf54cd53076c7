"""Replays a trace through a policy and looks, before each action, at what of the past that it uses is still there."""

from dataclasses import dataclass
from statistics import mean

from benchmarks.fidelity.policies import Health, Policy
from benchmarks.fidelity.references import References, Use, entry_text, rules_of, single_spaced
from benchmarks.fidelity.traces import Trace
from tui_agent.session.entries import AssistantEntry, Entry

FAR = 4
"""A mention is far when more than this part of the window lies between it and its use."""


@dataclass(frozen=True, slots=True)
class Result:
    """One replay. ``kept`` is the mean size of history, in tokens, since the session has outgrown its budget.

    Shares are of ``uses``, the far uses of identifiers since then: the ``line`` of the last mention is in the request
    word for word, the identifier is (``far``), one call of ``recall`` brings it. ``rules`` is the share of the user's
    sentences with must, never, don't, always that are there; ``chance`` of another session's far identifiers.
    """

    trace: str
    half: str
    window: int
    policy: str
    uses: int
    line: float
    far: float
    recall: float
    rules: float
    chance: float
    kept: float
    health: Health
    trace_tokens: int

    @property
    def price(self) -> float:
        """Return the price of all requests and summaries in uncached tokens, where a cache lasts five minutes."""
        return self.health.costs[0] + self.health.summarised

    @property
    def stability(self) -> float:
        """Share of each request's prefix that the next one repeats."""
        return self.health.kept_prefix / self.health.could_keep if self.health.could_keep else 1.0


def outgrows(trace: Trace, budget: int, references: References, window: int) -> bool:
    """Whether a trace has far uses where it no longer fits."""
    total = 0
    for place, entry in enumerate(trace.entries):
        if total > budget and references.far(place, window // FAR):
            return True
        total += entry.tokens
    return False


def replay(trace: Trace, policy: Policy, references: References, other: References) -> Result:
    """Run one trace through one policy. ``other`` are the references of another trace."""
    shown = _Shown()
    tally = _Tally()
    kept: list[int] = []
    raw, back = 0, policy.window // FAR
    for place, entry in enumerate(trace.entries):
        if isinstance(entry, AssistantEntry):
            policy.request(entry.created_at)
            if raw > policy.budget:
                kept.append(policy.history)
                if uses := references.far(place, back):
                    shown.follow(policy)
                    foreign = other.far(other.length * place // references.length, back)
                    tally.look(
                        _Point(trace, place, uses, references), shown.text, shown.spaced, policy
                    )
                    tally.strangers([use.word for use in foreign], shown.text)
        policy.append(entry)
        shown.add(policy.path[-1])
        raw += entry.tokens
    return Result(
        trace=trace.name,
        half=trace.half,
        window=policy.window,
        policy=policy.name,
        uses=tally.uses,
        line=tally.share(tally.lines),
        far=tally.share(tally.words),
        recall=tally.share(tally.recalled),
        rules=mean(tally.rules) if tally.rules else 1.0,
        chance=mean(tally.strange) if tally.strange else 0.0,
        kept=mean(kept) if kept else 0.0,
        health=policy.health,
        trace_tokens=trace.tokens,
    )


class _Shown:
    """What the model is shown, as one text; built anew only when the policy changed what had been sent."""

    def __init__(self) -> None:
        self.text = ""
        self.spaced = ""
        self._changes = -1
        self._new: list[str] = []

    def follow(self, policy: Policy) -> None:
        changes = policy.health.prunes + policy.health.compactions
        if changes != self._changes:
            self._changes = changes
            self.text = _unescaped(policy.view_text())
            self.spaced = single_spaced(self.text)
        elif self._new:
            added = "\n".join(["", *self._new])
            self.text += added
            self.spaced += single_spaced(added)
        self._new.clear()

    def add(self, entry: Entry) -> None:
        self._new.append(entry_text(entry))


@dataclass(frozen=True, slots=True)
class _Point:
    """An action of a trace and its far uses."""

    trace: Trace
    place: int
    uses: list[Use]
    references: References


class _Tally:
    """Counts what is there."""

    def __init__(self) -> None:
        self.uses = self.lines = self.words = self.recalled = 0
        self.rules: list[float] = []
        self.strange: list[float] = []

    def look(self, point: _Point, text: str, spaced: str, policy: Policy) -> None:
        uses = point.uses
        self.uses += len(uses)
        missing = [use for use in uses if use.word not in text]
        self.words += len(uses) - len(missing)
        self.lines += sum(use.line in spaced for use in uses)
        self.recalled += len(uses) - len(missing)
        if missing:
            brought = policy.recalled(text)
            self.recalled += sum(use.word in brought for use in missing)
        rules = [rule for entry in point.trace.entries[: point.place] for rule in rules_of(entry)]
        if rules:
            self.rules.append(sum(rule in text for rule in rules) / len(rules))

    def strangers(self, words: list[str], text: str) -> None:
        if words:
            self.strange.append(sum(word in text for word in words) / len(words))

    def share(self, number: int) -> float:
        return number / self.uses if self.uses else 0.0


def _unescaped(text: str) -> str:
    """Return text in which line breaks of JSON strings do not glue words together."""
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
