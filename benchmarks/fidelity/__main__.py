"""``python -m benchmarks.fidelity [--json] [--window N]... [--no-summaries] [--by-trace]``."""

import argparse
import json
import sys
import time

from benchmarks.fidelity.report import WINDOWS, as_json, by_trace, results, table


def main() -> int:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print every replay as JSON")
    parser.add_argument("--by-trace", action="store_true", help="print every trace apart")
    parser.add_argument("--window", type=int, action="append", help="only this window; may be given again")
    parser.add_argument("--no-summaries", action="store_true", help="compactions carry no summary at all")
    options = parser.parse_args()
    start = time.perf_counter()
    found = list(results(options.window or WINDOWS, summaries=not options.no_summaries))
    if options.json:
        print(json.dumps(as_json(found), indent=1, ensure_ascii=False))
        return 0
    if options.by_trace:
        print(by_trace(found))
    print(table(found))
    print(f"{len(found)} replays in {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
