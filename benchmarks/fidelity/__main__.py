"""``python -m benchmarks.fidelity [--json] [--window N]... [--no-summaries] [--own-constants] [--by-trace]``."""

import argparse
import json
import sys
import time

from benchmarks.fidelity.policies import LEANER, LITERAL, POLICIES
from benchmarks.fidelity.report import (
    WINDOWS,
    as_json,
    by_trace,
    gauge_errors,
    gauge_table,
    means,
    results,
    same_size,
    table,
)


def main() -> int:
    """Print the tables, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print every replay as JSON")
    parser.add_argument("--by-trace", action="store_true", help="print every trace apart")
    parser.add_argument("--window", type=int, action="append", help="only this window; may be given again")
    parser.add_argument("--no-summaries", action="store_true", help="compactions carry no summary at all")
    parser.add_argument(
        "--own-constants", action="store_true", help="rivals too with the constants of their programs (takes minutes)"
    )
    options = parser.parse_args()
    start = time.perf_counter()
    policies = (*POLICIES, *(LITERAL if options.own_constants else ()), *LEANER)
    found = list(results(options.window or WINDOWS, policies, summaries=not options.no_summaries))
    gauge = gauge_errors()
    if options.json:
        print(json.dumps(as_json(found, gauge), indent=1, ensure_ascii=False))
        return 0
    rows = means(found)
    parts = [by_trace(found)] if options.by_trace else []
    print("\n\n".join([*parts, table(rows), same_size(rows), gauge_table(gauge)]))
    print(f"{len(found)} replays in {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
