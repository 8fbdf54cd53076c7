"""Runs all replays and puts them into a table, JSON, or rows of the benchmarks' report."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

from benchmarks.fidelity.gauge import Error, errors
from benchmarks.fidelity.policies import LEANER, POLICIES, OpenCodeLike, Ours, PiLike, Policy
from benchmarks.fidelity.references import References
from benchmarks.fidelity.replay import Result, replay
from benchmarks.fidelity.traces import RECORDED, Trace, all_traces
from benchmarks.report import Row

WINDOWS = (8_192, 16_384, 32_768, 131_072, 200_000)
NAME = "fidelity"
RIVALS: tuple[type[Policy], ...] = (OpenCodeLike, PiLike)


@dataclass(frozen=True, slots=True)
class Mean:
    """One policy at one window, over all traces. Shares are 0 to 1, sizes tokens, totals millions of tokens."""

    window: int
    policy: str
    in_view: float
    reachable: float
    kept: float
    stability: float
    compactions: float
    missed: float
    over: float
    sent: float
    cost: float


def results(
    windows: Sequence[int] = WINDOWS,
    policies: Sequence[type[Policy]] = POLICIES,
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


def means(found: Sequence[Result]) -> list[Mean]:
    """Return the means over all traces, by window and policy, in the order of the replays."""
    keys = sorted({result.window for result in found})
    names = list(dict.fromkeys(result.policy for result in found))
    return [_mean([r for r in found if (r.window, r.policy) == (w, name)]) for w in keys for name in names]


def at_the_size_of(rival: Mean, rows: Sequence[Mean]) -> Mean | None:
    """Return our row that keeps most and still no more than the rival, None when all keep more."""
    ours = {Ours.name, *(policy.name for policy in LEANER)}
    smaller = [r for r in rows if r.window == rival.window and r.policy in ours and r.kept <= rival.kept]
    return max(smaller, key=lambda row: row.kept, default=None)


def run() -> Iterator[Row]:
    """Yield what the whole set of benchmarks reports; a target is a rival's number at no fewer tokens."""
    rows = means(list(results(policies=(*RIVALS, Ours, *LEANER))))
    for window in sorted({row.window for row in rows}):
        ours = _find(rows, window, Ours.name)
        note = f"{ours.in_view:.0%} in view, {ours.reachable:.0%} with one recall, {ours.kept:,.0f} tokens kept"
        yield Row(NAME, f"gone from view, {window:,} window", 100 * (1 - ours.in_view), "%", None, note)
        yield Row(NAME, f"compactions that miss their goal, {window:,} window", 100 * ours.missed, "%", 0)
        for rival in (_find(rows, window, policy.name) for policy in RIVALS):
            match = at_the_size_of(rival, rows)
            if match is not None:
                what = f"gone from view at the size of {rival.policy}, {window:,} window"
                note = f"{match.kept:,.0f} tokens kept, the rival {rival.kept:,.0f}"
                yield Row(NAME, what, 100 * (1 - match.in_view), "%", 100 * (1 - rival.in_view), note)
    for error in gauge_errors():
        yield Row(NAME, f"gauge error, {error.what}", 100 * error.ours, "%", 100 * error.by_characters)


def gauge_errors() -> list[Error]:
    """Return the gauge's errors."""
    return list(errors(next((trace for trace in all_traces() if trace.name == RECORDED), None)))


def table(rows: Sequence[Mean]) -> str:
    """Lay the means out."""
    head = f"{'window':>8}  {'policy':<29} {'in view':>8} {'+recall':>8} {'kept':>8} {'prefix':>7} {'cmp/100k':>8}"
    lines = [f"{head} {'missed':>7} {'over':>6} {'sent':>8} {'cost':>7}"]
    lines += [
        f"{row.window:>8,}  {row.policy:<29} {row.in_view:>8.1%} {row.reachable:>8.1%} {row.kept:>8,.0f}"
        f" {row.stability:>7.1%} {row.compactions:>8.2f} {row.missed:>7.0%} {row.over:>6.0%} {row.sent:>7.1f}M"
        f" {row.cost:>6.1f}M"
        for row in rows
        if not row.policy.startswith(f"{Ours.name} at")
    ]
    return "\n".join(lines)


def same_size(rows: Sequence[Mean]) -> str:
    """Compare in-view shares at no more tokens than each rival keeps."""
    lines = ["At no more tokens than the rival keeps, in view:"]
    for rival in rows:
        match = at_the_size_of(rival, rows) if rival.policy in {policy.name for policy in RIVALS} else None
        if match is not None:
            lines.append(
                f"{rival.window:>8,}  {rival.policy:<14} {rival.in_view:>6.1%} at {rival.kept:>7,.0f}"
                f"   {match.policy:<18} {match.in_view:>6.1%} at {match.kept:>7,.0f}"
            )
    return "\n".join(lines)


def gauge_table(found: Sequence[Error]) -> str:
    """Lay the gauge's errors out."""
    lines = ["Gauge error (characters / 4 beside it):"]
    return "\n".join([*lines, *(f"{e.what:<20} {e.ours:>7.2%} {e.by_characters:>7.1%}" for e in found)])


def by_trace(found: Sequence[Result]) -> str:
    """Return in-view shares and kept tokens per trace."""
    lines = [f"{'trace':<14} {'window':>8}  {'policy':<29} {'in view':>8} {'+recall':>8} {'kept':>8}"]
    lines += [
        f"{r.trace:<14} {r.window:>8,}  {r.policy:<29} {r.in_view:>8.1%} {r.in_view + r.in_reach:>8.1%} {r.kept:>8,.0f}"
        for r in found
        if not r.policy.startswith(f"{Ours.name} at")
    ]
    return "\n".join(lines)


def as_json(found: Sequence[Result], gauge: Sequence[Error]) -> dict[str, Any]:
    """Return every replay, their means and the gauge's errors."""
    return {
        "replays": [asdict(result) for result in found],
        "means": [asdict(row) for row in means(found)],
        "gauge": [asdict(error) for error in gauge],
    }


def _find(rows: Sequence[Mean], window: int, policy: str) -> Mean:
    return next(row for row in rows if (row.window, row.policy) == (window, policy))


def _mean(rows: Sequence[Result]) -> Mean:
    compactions = sum(row.health.compactions for row in rows)
    return Mean(
        window=rows[0].window,
        policy=rows[0].policy,
        in_view=mean(row.in_view for row in rows),
        reachable=mean(row.in_view + row.in_reach for row in rows),
        kept=mean(row.kept for row in rows),
        stability=mean(row.stability for row in rows),
        compactions=mean(row.compactions_per_100k for row in rows),
        missed=sum(row.health.violations for row in rows) / compactions if compactions else 0.0,
        over=sum(row.health.over_window for row in rows) / sum(row.health.requests for row in rows),
        sent=sum(row.health.sent for row in rows) / 1e6,
        cost=sum(row.cost for row in rows) / 1e6,
    )
