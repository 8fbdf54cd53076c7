"""Runs rows of faults and prints what they counted."""

import argparse
import json
import subprocess
import sys

from scripts.faults.full_disk import PREFIX, TIMES, run_full
from scripts.faults.kills import Outcome, ground, run
from scripts.faults.others import FULL_RACE, RACE, TESTS, run_races, run_tests
from scripts.faults.pairs import run_pairs
from scripts.faults.rows import ROWS, Before
from scripts.faults.scene import Place

PAIRS = "two programs"
RACES = 20


def _outcome(name: str, base: Place, before: Before, times: int, seed: int) -> Outcome:
    """Run a row; one that can't be run, or hangs, is wrong and holds up none of the others."""
    try:
        return _run(name, base, before, times, seed)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return Outcome(name, wrong=[str(error)])


def _run(name: str, base: Place, before: Before, times: int, seed: int) -> Outcome:
    if name in TESTS:
        return run_tests(name)
    if name in (RACE, FULL_RACE):
        return run_races(name, times or RACES, seed)
    if name == PAIRS:
        return run_pairs(base, before, times or 1, seed)
    (row,) = (row for row in ROWS if row.name == name.removeprefix(PREFIX))
    if name.startswith(PREFIX):
        return run_full(row, base, before, times or TIMES, seed)
    return run(row, base, before, times or row.times, seed)


def main() -> int:
    """Return 1 if anything was wrong."""
    names = [
        *(row.name for row in ROWS),
        *(PREFIX + row.name for row in ROWS),
        RACE,
        FULL_RACE,
        PAIRS,
        *TESTS,
    ]
    parser = argparse.ArgumentParser(prog="python -m scripts.faults", description=__doc__)
    parser.add_argument("row", nargs="*", help=f"which to run, all without any: {', '.join(names)}")
    parser.add_argument(
        "--times", type=int, default=0, help="how often each is killed, or each pair meets"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one line of JSON for each row")
    arguments = parser.parse_args()
    if unknown := set(arguments.row) - set(names):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    failed = False
    if not arguments.json:
        print(
            f"{'fault, or kill during':<28}{'rounds':>7}{'unfinished':>12}{'finished':>10}{'entries':>9}{'wrong':>7}",
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
            numbers = (
                f"{outcome.kills:>7}{unfinished:>12}{outcome.finished:>10}{outcome.new_entries:>9}"
            )
            print(f"{outcome.name:<28}{numbers}{len(outcome.wrong):>7}", flush=True)
            for fault in outcome.wrong:
                print(fault, file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
