"""``python -m benchmarks [--json] [--compare] [NAME...]``: run benchmarks and print one table, or JSON."""

import argparse
import compileall
import importlib
import json
import os
import sys
import time
from collections.abc import Iterator

import tui_agent
from benchmarks.machine import describe
from benchmarks.report import Row, beside, table

BENCHMARKS = {
    "start-up": "start_up",
    "first-turn": "first_turn",
    "keys": "keys",
    "turns": "turns",
    "wires": "wires",
    "streaming": "streaming",
    "racing": "racing",
    "idle": "idle",
    "sessions": "sessions",
    "tree": "tree",
    "files": "files",
    "sandbox": "sandboxed",
    "race": "race",
    "context": "context",
    "waiting": "waiting",
    "headless": "headless",
}
"""Name on the command line and module of each benchmark, in the order they run."""
COMPARED = "compare"
COMPARISON = "peers"
"""The module that runs other agents; only where that was asked for."""


def main() -> int:
    """Run what the arguments name; the exit code is 1 when a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}; all without one"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--compare",
        action="store_true",
        help="take other agents that are installed through a few cases",
    )
    parser.add_argument(
        "--why", action="store_true", help="print what a start imports, compiles and builds"
    )
    options = parser.parse_args()
    if options.why:
        from benchmarks.why import explain

        print(explain())
        return 0
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    _compile()
    machine = describe()
    start = time.perf_counter()
    failed: list[str] = []
    chosen = options.names or ([] if options.compare else list(BENCHMARKS))
    rows = list(_measured([*chosen, *([COMPARISON] if options.compare else [])], failed))
    seconds = time.perf_counter() - start
    if options.json:
        print(
            json.dumps(
                {"machine": machine, "seconds": seconds, "rows": [row.as_json() for row in rows]},
                indent=1,
            )
        )
    else:
        print("\n".join(f"{name}: {value}" for name, value in machine.items()))
        print(f"\n{table([row for row in rows if row.benchmark != COMPARED])}")
        if options.compare:
            print(f"\n{beside([row for row in rows if row.benchmark == COMPARED])}")
        print(f"\n{len(rows)} numbers in {seconds:.0f} s; medians unless the note says otherwise")
    return int(bool(failed) or any(row.ok is False for row in rows))


def _compile() -> None:
    """Compile the program as an installation does, and let its processes do so: the compiler is not measured."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for folder in tui_agent.__path__:
        compileall.compile_dir(folder, quiet=1)


def _measured(names: list[str], failed: list[str]) -> Iterator[Row]:
    """Yield the rows of each benchmark; one that fails says why and is left out, the others still run."""
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            yield from importlib.import_module(f"benchmarks.{BENCHMARKS.get(name, name)}").run()
        except AssertionError as error:
            failed.append(name)
            print(f"{name} failed: {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
