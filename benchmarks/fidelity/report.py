"""Runs all replays and puts them into a table, JSON, or rows of the benchmarks' report."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import mean
from typing import Any

from benchmarks.fidelity.policies import LITERAL, POLICIES, Ours, Policy
from benchmarks.fidelity.references import References
from benchmarks.fidelity.replay import Result, replay
from benchmarks.fidelity.traces import Trace, all_traces
from benchmarks.report import Row

WINDOWS = (8_192, 16_384, 32_768, 131_072, 200_000)
NAME = "fidelity"


def results(
    windows: Sequence[int] = WINDOWS,
    policies: Sequence[type[Policy]] = (*POLICIES, *LITERAL),
    *,
    summaries: bool = True,
    traces: Sequence[Trace] | None = None,
) -> Iterator[Result]:
    """Replay every trace through every policy at every window it does not fit into."""
    for trace in traces or tuple(all_traces()):
        references = References(trace.entries)
        for window in windows:
            for policy in policies:
                result = replay(trace, policy(window, summaries=summaries), references)
                if result.points:
                    yield result


def run() -> Iterator[Row]:
    """Yield what the whole set of benchmarks reports: our recall against the better rival's, per window."""
    found = list(results(policies=POLICIES))
    for window in sorted({result.window for result in found}):
        ours, rivals = _summary(found, window, Ours.name), [
            _summary(found, window, policy.name) for policy in POLICIES[1:] if policy is not Ours
        ]
        best = max(rival["in_view"] for rival in rivals)
        note = f"in view {ours['in_view']:.0%} at {ours['kept']:,.0f} tokens, rivals at most {best:.0%}"
        yield Row(NAME, f"lost of what is used again, {window:,} window", 100 * ours["lost"], "%", None, note)
        yield Row(NAME, f"compactions that miss their goal, {window:,} window", ours["violations"], "", 0)


def table(found: Sequence[Result]) -> str:
    """Return the means over all traces, per window and policy."""
    lines = [
        f"{'window':>8}  {'policy':<29} {'in view':>8} {'+recall':>8} {'lost':>6} {'kept':>8}"
        f" {'prefix':>7} {'cmp/100k':>8} {'missed':>7} {'over':>6} {'sent':>8} {'cost':>7}"
    ]
    for window in sorted({result.window for result in found}):
        for policy in dict.fromkeys(result.policy for result in found):
            row = _summary(found, window, policy)
            lines.append(
                f"{window:>8,}  {policy:<29} {row['in_view']:>8.1%} {row['reachable']:>8.1%} {row['lost']:>6.1%}"
                f" {row['kept']:>8,.0f} {row['stability']:>7.1%} {row['compactions']:>8.2f} {row['missed']:>7.0%}"
                f" {row['over']:>6.0%} {row['sent']:>7.1f}M {row['cost']:>6.1f}M"
            )
    return "\n".join(lines)


def by_trace(found: Sequence[Result]) -> str:
    """Return in-view shares and kept tokens per trace."""
    lines = [f"{'trace':<14} {'window':>8}  {'policy':<29} {'in view':>8} {'+recall':>8} {'kept':>8}"]
    lines += [
        f"{r.trace:<14} {r.window:>8,}  {r.policy:<29} {r.in_view:>8.1%} {r.in_view + r.in_reach:>8.1%} {r.kept:>8,.0f}"
        for r in found
    ]
    return "\n".join(lines)


def as_json(found: Sequence[Result]) -> list[dict[str, Any]]:
    """Return every replay."""
    return [asdict(result) for result in found]


def _summary(found: Sequence[Result], window: int, policy: str) -> dict[str, float]:
    rows = [result for result in found if (result.window, result.policy) == (window, policy)]
    compactions = sum(row.health.compactions for row in rows)
    requests = sum(row.health.requests for row in rows)
    return {
        "in_view": mean(row.in_view for row in rows),
        "reachable": mean(row.in_view + row.in_reach for row in rows),
        "lost": mean(row.lost for row in rows),
        "kept": mean(row.kept for row in rows),
        "stability": mean(row.stability for row in rows),
        "compactions": mean(row.compactions_per_100k for row in rows),
        "violations": sum(row.health.violations for row in rows),
        "missed": sum(row.health.violations for row in rows) / compactions if compactions else 0,
        "over": sum(row.health.over_window for row in rows) / requests,
        "sent": sum(row.health.sent for row in rows) / 1e6,
        "cost": sum(row.cost for row in rows) / 1e6,
    }
