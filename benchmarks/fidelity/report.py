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
from benchmarks.fidelity.replay import Result, outgrows, replay
from benchmarks.fidelity.rivals import RIVALS
from benchmarks.fidelity.traces import Trace, all_traces, in_a_row

WINDOWS = (8_192, 16_384, 32_768, 65_536, 131_072, 200_000)
FULLNESS = tuple(percent / 100 for percent in range(98, 29, -4))
"""Parts of its threshold that this product is held to in turn, until it keeps no more than the smallest rival."""
RESAMPLES = 2_000
CYCLES = 10
"""Compactions at each end of a replay whose freed shares are compared, where there are twice as many."""
SHARES = ("line", "far", "recall", "rules")


@dataclass(frozen=True, slots=True)
class Difference:
    """What of ``share`` is there with this product and with a rival, at the tokens the rival keeps on each trace.

    ``low`` and ``high`` bound 95 % of the ratios of means over resampled traces; ``price`` is the ratio of prices;
    ``traces`` is on how many it could be compared.
    """

    window: int
    rival: str
    share: str
    ours: float
    theirs: float
    low: float
    high: float
    price: float
    traces: int
    left_out: int
    """Traces on which this product keeps more than the rival however it is held."""

    @property
    def ratio(self) -> float:
        """Return how many times as much is there."""
        return self.ours / self.theirs if self.theirs else float("inf")


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
        budget = Ours(window).budget
        if trace.parts:
            # What counts by itself is not counted once more.
            short = [
                part
                for part in trace.parts
                if not outgrows(part, budget, References(part.entries), window)
            ]
            if not short:
                return []
            trace = in_a_row(short)
        references, foreign = References(trace.entries), References(other.entries)
        if not outgrows(trace, budget, references, window):
            return []
        rivals: tuple[type[Policy], ...] = RIVALS
        found = [replay(trace, kind(window, cls.summaries), references, foreign) for kind in rivals]
        smallest = min(result.kept for result in found)
        for fullness in (1.0, *FULLNESS):
            ours = cls.make(window, cls.summaries, fullness=fullness)
            if fullness < 1:
                ours.name = f"{Ours.name} at {fullness:.0%}"
            found.append(replay(trace, ours, references, foreign))
            if found[-1].kept <= smallest:
                break
        return found


def differences(found: Sequence[Result]) -> Iterator[Difference]:
    """Compare this product with each rival, trace by trace, at the size of the rival's history."""
    for window in sorted({result.window for result in found}):
        here = [result for result in found if result.window == window]
        for rival in RIVALS:
            pairs: list[tuple[list[Result], Result]] = []
            theirs = [result for result in here if result.policy == rival.name]
            for one in theirs:
                ours = [result for result in here if result.trace == one.trace and is_ours(result)]
                if min(result.kept for result in ours) <= one.kept:
                    pairs.append((ours, one))
            if not pairs:
                continue
            price = sum(at_size(a, b.kept, "price") for a, b in pairs) / sum(
                b.price for _, b in pairs
            )
            for share in SHARES:
                values = [(at_size(a, b.kept, share), getattr(b, share)) for a, b in pairs]
                low, high = interval(values)
                yield Difference(
                    window=window,
                    rival=rival.name,
                    share=share,
                    ours=mean(a for a, _ in values),
                    theirs=mean(b for _, b in values),
                    low=low,
                    high=high,
                    price=price,
                    traces=len(pairs),
                    left_out=len(theirs) - len(pairs),
                )


def at_size(replays: Sequence[Result], kept: float, field: str) -> float:
    """Return a field of replays at a size of history: on the line between the two beside it, or of the largest."""
    below = max(
        (result for result in replays if result.kept <= kept), key=lambda result: result.kept
    )
    above = min(
        (result for result in replays if result.kept > kept),
        key=lambda result: result.kept,
        default=below,
    )
    part = (kept - below.kept) / (above.kept - below.kept) if above is not below else 0.0
    low, high = getattr(below, field), getattr(above, field)
    return float(low + part * (high - low))


def interval(values: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the bounds of 95 % of the ratios of means of resampled pairs; the same every time."""
    chance = Random(0)
    ratios = []
    for _ in range(RESAMPLES):
        chosen = chance.choices(values, k=len(values))
        ratios.append(sum(a for a, _ in chosen) / max(1e-9, sum(b for _, b in chosen)))
    ratios.sort()
    return ratios[RESAMPLES // 40], ratios[-RESAMPLES // 40]


def is_ours(result: Result) -> bool:
    """Whether a replay is this product's, at any size."""
    return result.policy.startswith(Ours.name)


def grouped(found: Sequence[Result]) -> Iterator[list[Result]]:
    """Yield the replays of each window and policy, this product at its own size only."""
    names = [*(rival.name for rival in RIVALS), Ours.name]
    for window in sorted({result.window for result in found}):
        for name in names:
            rows = [result for result in found if (result.window, result.policy) == (window, name)]
            if rows:
                yield rows


def fidelity_table(found: Sequence[Result], title: str) -> str:
    """Lay out what is there of what is used again, means over the traces."""
    head = (
        "window",
        "policy",
        "line",
        "far",
        "one recall",
        "rules",
        "chance",
        "kept",
        "traces",
        "uses",
    )
    rows = [
        (
            f"{rows[0].window:,}",
            rows[0].policy,
            *(f"{mean(getattr(r, s) for r in rows):.1%}" for s in (*SHARES, "chance")),
            f"{mean(r.kept for r in rows):,.0f}",
            str(len(rows)),
            f"{sum(r.uses for r in rows):,}",
        )
        for rows in grouped(found)
    ]
    return _columns(
        f"{title}: of identifiers used again after more than a quarter of the window, the whole line of their last\n"
        "mention is in the request, they themselves are, one recall brings them; the user's rules word for word;\n"
        "what another session's would find by chance; tokens of history kept",
        [head, *rows],
    )


def difference_table(found: Sequence[Result], title: str) -> str:
    """Lay out the comparison at the same size."""
    head = (
        "window",
        "rival",
        "line",
        "times",
        "95 % of",
        "far",
        "times",
        "95 % of",
        "rules",
        "price",
        "traces",
    )
    rows = []
    by_rival: dict[tuple[int, str], dict[str, Difference]] = {}
    for one in differences(found):
        by_rival.setdefault((one.window, one.rival), {})[one.share] = one
    for (window, rival), shares in by_rival.items():
        line, far = shares["line"], shares["far"]
        left = f" (-{line.left_out})" if line.left_out else ""
        rows.append(
            (
                f"{window:,}",
                rival,
                *(
                    cell
                    for one in (line, far)
                    for cell in (_pair(one), f"{one.ratio:.2f}", _bounds(one))
                ),
                _pair(shares["rules"]),
                f"× {line.price:.2f}",
                f"{line.traces}{left}",
            )
        )
    return _columns(
        f"{title}: tui-agent against each rival at the tokens it keeps, trace by trace: ours / theirs",
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
        "prefix",
        "breaks",
        "steps between",
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
                f"{mean(row.stability for row in group):.1%}",
                f"{sum(h.breaks for h in health)}",
                f"{sum(h.requests for h in health) / max(1, sum(h.breaks for h in health)):.1f}",
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
        "cache lasts 5 minutes or an hour; share of requests that the next ones repeat, steps between breaks of it;\n"
        "compactions that miss their goal, or follow another at once; what the first and the last ten free",
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


def _bounds(one: Difference) -> str:
    return f"{one.low:.2f} … {one.high:.2f}"


def _columns(title: str, rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if at == 1 else cell.rjust(width)
            for at, (cell, width) in enumerate(pairs)
        ).rstrip()
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    return "\n".join([title, *lines])
