"""``python -m benchmarks.fidelity [--json] [--window N]... [--half HALF] [--trace NAME]...``."""

import argparse
import json
import sys
import time
from typing import get_args

from benchmarks.fidelity.gauge import errors, gauge_table
from benchmarks.fidelity.loops import loop_table
from benchmarks.fidelity.policies import Summaries
from benchmarks.fidelity.report import (
    WINDOWS,
    as_json,
    cost_table,
    difference_table,
    fidelity_table,
    results,
)
from benchmarks.fidelity.traces import Half, Trace, all_traces


def _wanted(trace: Trace, parts: list[str] | None) -> bool:
    return not parts or any(part in trace.name for part in parts)


def main() -> int:
    """Print the tables, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print every replay as JSON")
    parser.add_argument(
        "--window", type=int, action="append", help="only this window; may be given again"
    )
    parser.add_argument(
        "--trace", action="append", help="only traces of which this is a part of the name"
    )
    parser.add_argument(
        "--no-summaries", action="store_true", help="compactions carry no summary at all"
    )
    parser.add_argument(
        "--half", choices=("both", *get_args(Half)), default="held out", help="which traces"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    start = time.perf_counter()
    every = tuple(all_traces())
    halves = get_args(Half) if options.half == "both" else (options.half,)
    traces = [t for t in every if t.half in halves and _wanted(t, options.trace)]
    summaries: Summaries = "none" if options.no_summaries else "extractive"
    found = list(
        results(options.window or WINDOWS, summaries=summaries, traces=traces, jobs=options.jobs)
    )
    if options.json:
        print(json.dumps(as_json(found), indent=1, ensure_ascii=False))
        return 0
    for title, recorded in (("Recorded sessions", True), ("Generated sessions", False)):
        names = {trace.name for trace in traces if trace.recorded is recorded}
        rows = [result for result in found if result.trace in names]
        if rows:
            told = f"{title} ({options.half})"
            print(
                "\n\n".join(
                    [fidelity_table(rows, told), difference_table(rows, told), cost_table(rows)]
                ),
                end="\n\n",
            )
    print("\n\n".join([gauge_table(list(errors(every))), loop_table(every)]))
    print(
        f"{len(found)} replays of {len(traces)} traces in {time.perf_counter() - start:.0f} s",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
