"""Rows of ``scripts/faults``, all of them every night, killed once; the script itself kills as often as one likes."""

import json
import subprocess
import sys
from pathlib import Path

from scripts.faults.rows import ROWS
from tests.support.thoroughness import NIGHTLY

ROOT = Path(__file__).parents[2]
BY_NIGHT = {"busy run", "prune", "export", "fork", "delete", "take-over"}
"""Rows that write once, and a run, whose writes are those of the others; see also `test_crash.py`."""


def test_work_killed_at_a_random_moment_leaves_nothing_broken() -> None:
    names = [row.name for row in ROWS if NIGHTLY or row.name not in BY_NIGHT]
    command = [sys.executable, "-m", "scripts.faults", *names, "--times", "1", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    outcomes = {outcome["name"]: outcome for outcome in map(json.loads, done.stdout.splitlines())}
    assert set(outcomes) == set(names), done.stderr
    assert {name: outcome["wrong"] for name, outcome in outcomes.items() if outcome["wrong"]} == {}
    assert all(outcome["kills"] == 1 for outcome in outcomes.values())
