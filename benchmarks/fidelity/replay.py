"""Replays a trace through a policy and looks, at the same points for all, at what of the future is still there."""

from dataclasses import dataclass

from benchmarks.fidelity.policies import Health, Policy
from benchmarks.fidelity.references import References, entry_text, identifiers
from benchmarks.fidelity.traces import Trace
from tui_agent.session.entries import AssistantEntry

POINTS = 24
"""Places per trace and window at which the view is looked into."""


@dataclass(frozen=True, slots=True)
class Result:
    """One replay. Shares are of identifiers the agent uses again.

    ``kept`` is the mean size of history, in tokens, over all requests after the session has outgrown its budget.
    """

    trace: str
    window: int
    policy: str
    in_view: float
    in_reach: float
    lost: float
    kept: float
    points: int
    health: Health
    cost: float
    trace_tokens: int

    @property
    def compactions_per_100k(self) -> float:
        """Compactions per 100,000 tokens of the session."""
        return 100_000 * self.health.compactions / self.trace_tokens

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


def replay(trace: Trace, policy: Policy, references: References) -> Result:
    """Run one trace through one policy."""
    points = set(points_of(trace, policy.budget))
    looks: list[tuple[float, float]] = []
    kept: list[int] = []
    raw = 0
    for place, entry in enumerate(trace.entries):
        if isinstance(entry, AssistantEntry):
            policy.request()
            if raw > policy.budget:
                kept.append(policy.history)
            if place in points and (wanted := references.used_after(place)):
                looks.append(_look(trace, policy, wanted))
        policy.append(entry)
        raw += entry.tokens
    number = max(1, len(looks))
    in_view = sum(look[0] for look in looks) / number
    in_reach = sum(look[1] for look in looks) / number
    return Result(
        trace=trace.name,
        window=policy.window,
        policy=policy.name,
        in_view=in_view,
        in_reach=in_reach,
        lost=1 - in_view - in_reach,
        kept=sum(kept) / max(1, len(kept)),
        points=len(looks),
        health=policy.health,
        cost=policy.cost,
        trace_tokens=trace.tokens,
    )


def _look(trace: Trace, policy: Policy, wanted: set[str]) -> tuple[float, float]:
    """Return the shares in view and within one call's reach."""
    text = _unescaped(policy.view_text())
    shown = {word for word in wanted if word in text}
    missing = wanted - shown
    by_id = {entry.id: entry for entry in trace.entries}
    reach: set[str] = set()
    for entry_id in set(policy.recalled(text)):
        if entry_id in by_id:
            reach |= missing & identifiers(entry_text(by_id[entry_id]))
    return len(shown) / len(wanted), len(reach) / len(wanted)


def _unescaped(text: str) -> str:
    """Return text in which line breaks of JSON strings do not glue words together."""
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
