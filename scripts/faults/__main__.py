"""Runs rows of faults and prints what they counted."""

import argparse
import json
import sys

from scripts.faults.kills import Outcome, ground, run
from scripts.faults.others import RACE, TESTS, run_races, run_tests
from scripts.faults.pairs import run_pairs
from scripts.faults.rows import ROWS, Before
from scripts.faults.scene import Place

PAIRS = "two programs"
RACES = 20


def _outcome(name: str, base: Place, before: Before, times: int, seed: int) -> Outcome:
    if name in TESTS:
        return run_tests(name)
    if name == RACE:
        return run_races(times or RACES, seed)
    if name == PAIRS:
        return run_pairs(base, before, times or 1, seed)
    (row,) = (row for row in ROWS if row.name == name)
    return run(row, base, before, times or row.times, seed)


def main() -> int:
    """Return 1 if anything was wrong."""
    names = [*(row.name for row in ROWS), RACE, PAIRS, *TESTS]
    parser = argparse.ArgumentParser(prog="python -m scripts.faults", description=__doc__)
    parser.add_argument("row", nargs="*", help=f"which to run, all without any: {', '.join(names)}")
    parser.add_argument("--times", type=int, default=0, help="how often each is killed, or each pair meets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one line of JSON for each row")
    arguments = parser.parse_args()
    if unknown := set(arguments.row) - set(names):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    failed = False
    if not arguments.json:
        print(
            f"{'fault, or kill during':<22}{'rounds':>7}{'unfinished':>12}{'finished':>10}{'entries':>9}{'wrong':>7}",
            flush=True,
        )
    with ground() as (base, before):
        for name in arguments.row or names:
            outcome = _outcome(name, base, before, arguments.times, arguments.seed)
            failed |= bool(outcome.wrong)
            if arguments.json:
                print(json.dumps(vars(outcome)), flush=True)
                continue
            unfinished = outcome.kills - outcome.finished
            numbers = f"{outcome.kills:>7}{unfinished:>12}{outcome.finished:>10}{outcome.new_entries:>9}"
            print(f"{outcome.name:<22}{numbers}{len(outcome.wrong):>7}", flush=True)
            for fault in outcome.wrong:
                print(fault, file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
