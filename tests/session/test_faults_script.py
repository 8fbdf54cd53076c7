"""Rows of ``scripts/faults``, all of them every night, done once; the script itself does as many as one likes."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.faults.full_disk import NO_DISK, PREFIX
from scripts.faults.rows import ROWS
from tests.support.thoroughness import NIGHTLY

ROOT = Path(__file__).parents[2]
KILLED = ("compaction", "move with summary", "restore", "import", "migration")
"""Rows killed by day; the others write once, and a run, whose writes are those of the others: see `kill_rounds.py`."""
FULL = ("compaction", "export")
NAMES = tuple(row.name for row in ROWS)


def once(names: Sequence[str]) -> dict[str, list[str]]:
    """Do each row once; return what was wrong by name."""
    command = [sys.executable, "-m", "scripts.faults", *names, "--times", "1", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    outcomes = {outcome["name"]: outcome for outcome in map(json.loads, done.stdout.splitlines())}
    assert set(outcomes) == set(names), done.stderr
    wrong = {name: outcome["wrong"] for name, outcome in outcomes.items() if outcome["wrong"]}
    assert all(outcome["kills"] == 1 for name, outcome in outcomes.items() if name not in wrong)
    return wrong


def test_work_killed_at_a_random_moment_leaves_nothing_broken() -> None:
    assert once(NAMES if NIGHTLY else KILLED) == {}


def test_work_on_a_disk_that_is_full_leaves_nothing_broken() -> None:
    wrong = once([PREFIX + name for name in (NAMES if NIGHTLY else FULL)])
    if any(NO_DISK in fault for faults in wrong.values() for fault in faults):
        pytest.skip(NO_DISK)
    assert wrong == {}


ROUNDS = int(os.environ.get("TUI_AGENT_TEST_KILLS", "500" if NIGHTLY else "50"))
SEED = 20_250_607


def test_a_killed_writer_loses_nothing_it_had_committed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.session.kill_rounds", str(tmp_path / "s.db"), str(ROUNDS), str(SEED)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["wrong"] == []
    assert outcome["rounds"] == ROUNDS
    assert outcome["reports"] > 5 * ROUNDS
    assert outcome["drafts"] > ROUNDS // 20
