"""Draws mutants, runs the tests on them and prints the survivors. Needs what ``make mutations`` installs."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from threading import Timer
from typing import Any

import mutmut.__main__ as mutmut
from mutmut import stats
from mutmut.mutation import mutators
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.state import state
from mutmut.utils.file_utils import walk_mutatable_files
from mutmut.utils.format_utils import mangled_name_from_mutant_name
from mutmut.workers.isolation import ForkServerRunner

from scripts.mutations.mutants import (
    OUTCOMES,
    ROOT,
    Mutant,
    Outcome,
    accepted,
    change_of,
    chosen,
    drawn,
)

PLACE = Path(sys.prefix) / "mutations" / "project"
"""Where the changed program is made; it is removed before each run."""
NEEDED = (
    "benchmarks", "docs", "prompts", "pyproject.toml", "README.md", "scripts", "styles", "tests", "tui_agent",
)  # fmt: skip
"""What of the project the tests need."""
SHOWN_FILES = 6
"""Test files named for a survivor."""


def main() -> int:
    """Return 1 if a mutant that is not accepted survived."""
    parser = argparse.ArgumentParser(prog="python -m scripts.mutations", description=__doc__)
    parser.add_argument(
        "module",
        nargs="*",
        help="such as context/files or shell, or a mutant's name; all without any",
    )
    parser.add_argument("--mutants", type=int, default=150, help="how many to draw")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at a time")
    parser.add_argument("--minutes", type=float, default=30, help="limit of the whole run")
    arguments = parser.parse_args()
    started = time.monotonic()
    own = os.getpid()
    # A shell that starts this in the background has it ignore interruptions, which end the run in time.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with place_of_the_run(), interrupted_after(arguments.minutes * 60):
        found = list(made())
        try:
            mutants = drawn(chosen(found, arguments.module), arguments.mutants, arguments.seed)
        except ValueError as error:
            parser.error(str(error))
        print(f"== {len(mutants)} of {len(found):,} mutants, seed {arguments.seed}", flush=True)
        try:
            mutmut.run.callback([mutant.name for mutant in mutants], max_children=arguments.jobs)
        except KeyboardInterrupt:
            if os.getpid() != own:
                # Ctrl+C interrupts the processes that try mutants, too.
                os._exit(1)
            print("Interrupted before the first mutant was tried: allow more minutes.")
            return 1
        survived = report(mutants)
    print(f"{(time.monotonic() - started) / 60:.0f} minutes")
    return 1 if survived else 0


@contextmanager
def place_of_the_run() -> Iterator[None]:
    """Work in a fresh directory that shows the project to mutmut, with a home for temporary files beside it."""
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    for name in NEEDED:
        (PLACE / name).symlink_to(ROOT / name)
    # The changed program is the only one that can be imported.
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != ROOT]
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as temporary:
        # Workers end without removing theirs.
        os.environ["PYTEST_DEBUG_TEMPROOT"] = temporary
        os.chdir(PLACE)
        try:
            yield
        finally:
            os.chdir(ROOT)


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Interrupt mutmut after so many seconds: it ends what runs, and keeps what is known."""
    timer = Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def made() -> Iterator[Mutant]:
    """Make the changed program, and yield its mutants."""
    mutators.mutation_operators[:] = [
        (kind, names_changed if change is mutators.operator_string else change)
        for kind, change in mutators.mutation_operators
    ]
    # The run that records which tests call which functions has shown that the tests pass.
    ForkServerRunner.run_clean_tests = passed
    if not sys.stdout.isatty():
        mutmut.print_status = stats.print_status = say_nothing
    with mutmut.CatchOutput(spinner_title="Making mutants"):
        mutmut.copy_src_dir()
        mutmut.copy_also_copy_files()
        mutmut.setup_source_paths()
        mutmut.create_mutants(os.cpu_count() or 2)
    for path in walk_mutatable_files():
        for name in loaded(path).exit_code_by_key:
            yield Mutant(name, str(path))


def names_changed(node: Any) -> Iterable[Any]:
    """Change a string that programs read, in one way. No test holds the words that people read: those have spaces."""
    if " " in getattr(node, "value", " "):
        return []
    return islice(mutators.operator_string(node), 1)


def say_nothing(*_: object, **__: object) -> None:
    """Replace what mutmut draws on a terminal."""


def passed(_runner: ForkServerRunner, tests: Iterable[str]) -> int:
    """Replace mutmut's run of the unchanged program; return pytest's exit code."""
    del tests
    return 0


def loaded(path: Path | str) -> SourceFileMutationData:
    data = SourceFileMutationData(path=path)
    data.load()
    return data


def report(mutants: list[Mutant]) -> int:
    """Print what became of mutants, and return how many of them survived without being accepted."""
    known = accepted()
    outcomes = Counter[Outcome]()
    by_path = {path: loaded(path) for path in {mutant.path for mutant in mutants}}
    for mutant in mutants:
        code = by_path[mutant.path].exit_code_by_key[mutant.name]
        outcome = OUTCOMES.get(stats.status_by_exit_code[code], Outcome.CRASHED)
        if outcome in (Outcome.KILLED, Outcome.NOT_TRIED):
            outcomes[outcome] += 1
            continue
        diff = get_diff_for_mutant(mutant.name, path=mutant.path).splitlines()
        if outcome is Outcome.SURVIVED and change_of(mutant.function, diff) in known:
            outcomes[Outcome.ACCEPTED] += 1
            continue
        outcomes[outcome] += 1
        print(f"\n{outcome}: {mutant.function}  [{mutant.name}]")
        if outcome is Outcome.SURVIVED:
            print(f"tests: {tests_of(mutant)}")
        print("\n".join(line for line in diff if not line.startswith(("---", "+++"))))
    print()
    print(", ".join(f"{outcomes[outcome]} {outcome}" for outcome in Outcome if outcomes[outcome]))
    return outcomes[Outcome.SURVIVED]


def tests_of(mutant: Mutant) -> str:
    """Name the files of the tests that ran, with how many of each."""
    tests = state().tests_by_mangled_function_name[mangled_name_from_mutant_name(mutant.name)]
    files = Counter(test.partition("::")[0] for test in tests).most_common()
    named = [f"{name} {count}" for name, count in files[:SHOWN_FILES]]
    if left := files[SHOWN_FILES:]:
        named.append(f"{len(left)} more files")
    return ", ".join(named)


if __name__ == "__main__":
    sys.exit(main())
