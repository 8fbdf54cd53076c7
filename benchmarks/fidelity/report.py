"""Runs all replays, compares at the same size, and lays the numbers out."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from random import Random
from statistics import mean
from typing import Any

from benchmarks.fidelity.policies import Policy, Summaries
from benchmarks.fidelity.product import Ours
from benchmarks.fidelity.references import References
from benchmarks.fidelity.replay import Result, points_of, replay
from benchmarks.fidelity.rivals import RIVALS, AppendOnly
from benchmarks.fidelity.traces import Trace, all_traces

WINDOWS = (4_096, 8_192, 16_384, 32_768, 131_072, 200_000)
FULLNESS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
"""Parts of its threshold that this product is held to in turn, until it keeps no more than the smallest rival."""
RESAMPLES = 2_000
CYCLES = 10
"""Compactions at each end of a replay whose freed shares are compared, where there are twice as many."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more of ``share`` is there with this product than with a rival, at no more tokens on any trace.

    ``low`` and ``high`` bound 95 % of means over resampled traces; ``traces`` is on how many it could be compared.
    """

    window: int
    rival: str
    share: str
    ours: float
    theirs: float
    low: float
    high: float
    traces: int
    left_out: int
    """Traces on which this product keeps more than the rival however it is held."""


def results(
    windows: Sequence[int] = WINDOWS,
    *,
    summaries: Summaries = "extractive",
    traces: Sequence[Trace] | None = None,
    make: Callable[..., Ours] = Ours,
    jobs: int | None = None,
) -> Iterator[Result]:
    """Replay every trace through every policy at every window it does not fit into."""
    _Work.traces = tuple(traces or all_traces())
    _Work.summaries, _Work.make = summaries, staticmethod(make)
    places = [(place, window) for window in windows for place in range(len(_Work.traces))]
    jobs = jobs or min(2, os.cpu_count() or 1)
    if jobs == 1:
        for place in places:
            yield from _Work.replays(place)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        for found in pool.map(_Work.replays, places):
            yield from found


class _Work:
    """What forked processes work on; it is too large to be sent to them."""

    traces: tuple[Trace, ...]
    summaries: Summaries
    make: Callable[..., Ours]

    @classmethod
    def replays(cls, which: tuple[int, int]) -> list[Result]:
        """Replay one trace at one window through every policy, this product at ever smaller sizes."""
        place, window = which
        trace, other = cls.traces[place], cls.traces[(place + 1) % len(cls.traces)]
        if not points_of(trace, Ours(window).budget):
            return []
        references, foreign = References(trace.entries), References(other.entries)
        rivals: tuple[type[Policy], ...] = (AppendOnly, *RIVALS)
        found = [replay(trace, kind(window, cls.summaries), references, foreign) for kind in rivals]
        smallest = min(result.kept for result in found[1:])
        for fullness in (1.0, *FULLNESS):
            ours = cls.make(window, cls.summaries, fullness=fullness)
            if fullness < 1:
                ours.name = f"{Ours.name} at {fullness:.0%}"
            found.append(replay(trace, ours, references, foreign))
            if found[-1].kept <= smallest:
                break
        return found


def differences(found: Sequence[Result]) -> Iterator[Difference]:
    """Compare this product with each rival, trace by trace, at the largest size that is no larger than the rival's."""
    for window in sorted({result.window for result in found}):
        here = [result for result in found if result.window == window]
        for rival in RIVALS:
            pairs: list[tuple[Result, Result]] = []
            theirs = [result for result in here if result.policy == rival.name]
            for one in theirs:
                ours = [r for r in here if r.trace == one.trace and is_ours(r) and r.kept <= one.kept]
                if ours:
                    pairs.append((max(ours, key=lambda r: r.kept), one))
            if not pairs:
                continue
            for share in ("in_view", "recalled", "called", "rules"):
                values = [(a.share(share), b.share(share)) for a, b in pairs]
                low, high = interval([a - b for a, b in values])
                yield Difference(
                    window,
                    rival.name,
                    share,
                    mean(a for a, _ in values),
                    mean(b for _, b in values),
                    low,
                    high,
                    len(pairs),
                    len(theirs) - len(pairs),
                )


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the bounds of 95 % of the means of resampled values; the same every time."""
    chance = Random(0)
    means = sorted(mean(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return means[RESAMPLES // 40], means[-RESAMPLES // 40]


def is_ours(result: Result) -> bool:
    """Whether a replay is this product's, at any size."""
    return result.policy.startswith(Ours.name)


def grouped(found: Sequence[Result]) -> Iterator[list[Result]]:
    """Yield the replays of each window and policy, this product at its own size only."""
    names = [AppendOnly.name, *(rival.name for rival in RIVALS), Ours.name]
    for window in sorted({result.window for result in found}):
        for name in names:
            rows = [result for result in found if (result.window, result.policy) == (window, name)]
            if rows:
                yield rows


def fidelity_table(found: Sequence[Result]) -> str:
    """Lay out what is there of what is used again, means over the traces."""
    head = ("window", "policy", "in view", "+recall", "+any call", "rules", "chance", "kept", "traces")
    rows = [
        (
            f"{rows[0].window:,}",
            rows[0].policy,
            *(f"{mean(r.share(s) for r in rows):.1%}" for s in ("in_view", "recalled", "called", "rules", "by_chance")),
            f"{mean(r.kept for r in rows):,.0f}",
            str(len(rows)),
        )
        for rows in grouped(found)
    ]
    return _columns(
        "Of what the agent uses again: in view, with one recall, with one call of any kind (recall or reading again);"
        "\nthe user's rules word for word; what another session's future would find; tokens of history kept",
        [head, *rows],
    )


def difference_table(found: Sequence[Result]) -> str:
    """Lay out the comparison at the same size."""
    head = ("window", "rival", "in view", "95 % of", "+recall", "+any call", "95 % of", "rules", "traces")
    rows = []
    by_rival: dict[tuple[int, str], dict[str, Difference]] = {}
    for one in differences(found):
        by_rival.setdefault((one.window, one.rival), {})[one.share] = one
    for (window, rival), shares in by_rival.items():
        view, called = shares["in_view"], shares["called"]
        left = f" (-{view.left_out})" if view.left_out else ""
        rows.append(
            (
                f"{window:,}",
                rival,
                _pair(view),
                f"{view.low:+.1%} … {view.high:+.1%}",
                _pair(shares["recalled"]),
                _pair(called),
                f"{called.low:+.1%} … {called.high:+.1%}",
                _pair(shares["rules"]),
                f"{view.traces}{left}",
            )
        )
    return _columns(
        "tui-agent against each rival at no more tokens than it keeps, trace by trace: ours / theirs, bounds of gains",
        [head, *rows],
    )


def cost_table(found: Sequence[Result]) -> str:
    """Lay out what it costs: tokens sent, prices with a cache, outputs to get again, and how compactions fare."""
    head = (
        "window",
        "policy",
        "sent",
        "×trace",
        "price 5 min",
        "1 h",
        "again",
        "prefix",
        "breaks",
        "prunes",
        "cmp/100k",
        "missed",
        "in vain",
        "freed first",
        "last",
        "over",
    )
    rows = []
    for group in grouped(found):
        whole = sum(row.trace_tokens for row in group)
        health = [row.health for row in group]
        compactions = sum(h.compactions for h in health)
        long = [h.freed for h in health if len(h.freed) >= 2 * CYCLES]
        rows.append(
            (
                f"{group[0].window:,}",
                group[0].policy,
                f"{sum(h.sent for h in health) / 1e6:.1f}M",
                f"{sum(h.sent + h.summarised for h in health) / whole:.0f}",
                *(f"{sum(h.costs[at] + h.summarised for h in health) / 1e6:.2f}M" for at in (0, 1)),
                f"{sum(row.read_again for row in group) / whole:.0%}",
                f"{mean(row.stability for row in group):.1%}",
                f"{sum(h.breaks for h in health)}",
                f"{sum(h.prunes for h in health)}",
                f"{1e5 * compactions / whole:.1f}",
                f"{sum(h.violations for h in health) / compactions:.0%}" if compactions else "-",
                f"{sum(h.no_progress for h in health)}",
                f"{mean(mean(freed[:CYCLES]) for freed in long):.0%}" if long else "-",
                f"{mean(mean(freed[-CYCLES:]) for freed in long):.0%}" if long else "-",
                f"{sum(h.over_window for h in health) / sum(h.requests for h in health):.0%}",
            )
        )
    return _columns(
        "Tokens sent, and with what a summariser reads as a multiple of the traces; prices in uncached tokens where a\n"
        "cache lasts 5 minutes or an hour; outputs to get again, of the traces; share of requests that the next ones\n"
        "repeat; compactions that miss their goal, or follow another at once; what the first and the last ten free",
        [head, *rows],
    )


def as_json(found: Sequence[Result]) -> dict[str, Any]:
    """Return every replay and every comparison."""
    return {
        "replays": [asdict(result) for result in found],
        "differences": [asdict(one) for one in differences(found)],
    }


def _pair(one: Difference) -> str:
    return f"{one.ours:.1%} / {one.theirs:.1%}"


def _columns(title: str, rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if at == 1 else cell.rjust(width) for at, (cell, width) in enumerate(pairs)
        ).rstrip()
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    return "\n".join([title, *lines])
