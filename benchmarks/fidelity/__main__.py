"""``python -m benchmarks.fidelity [--json] [--window N]... [--no-summaries] [--trace NAME]...``."""

import argparse
import json
import sys
import time

from benchmarks.fidelity.gauge import errors, gauge_table
from benchmarks.fidelity.loops import loop_table
from benchmarks.fidelity.policies import Summaries
from benchmarks.fidelity.report import WINDOWS, as_json, cost_table, difference_table, fidelity_table, results
from benchmarks.fidelity.traces import all_traces


def main() -> int:
    """Print the tables, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print every replay as JSON")
    parser.add_argument("--window", type=int, action="append", help="only this window; may be given again")
    parser.add_argument("--trace", action="append", help="only traces of which this is a part of the name")
    parser.add_argument("--no-summaries", action="store_true", help="compactions carry no summary at all")
    options = parser.parse_args()
    start = time.perf_counter()
    every = tuple(all_traces())
    traces = [t for t in every if not options.trace or any(part in t.name for part in options.trace)]
    summaries: Summaries = "none" if options.no_summaries else "extractive"
    found = list(results(options.window or WINDOWS, summaries=summaries, traces=traces))
    if options.json:
        print(json.dumps(as_json(found), indent=1, ensure_ascii=False))
        return 0
    parts = [fidelity_table(found), difference_table(found), cost_table(found)]
    print("\n\n".join([*parts, gauge_table(list(errors(every))), loop_table(every)]))
    print(f"{len(found)} replays of {len(traces)} traces in {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
