"""Many runs side by side, and their sessions in one place."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.place import Place
from tests.support.thoroughness import NIGHTLY

ROOT = Path(__file__).parents[2]
RUNS = 6 if NIGHTLY else 2


def test_runs_side_by_side_end_up_in_one_store(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "scripts/fleet.py", "--runs", str(RUNS), "--directory", str(tmp_path / "fleet")],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["imported"], report["opened"], len(set(report["listed"]))) == (RUNS, RUNS, RUNS)
    assert (report["exit codes"], report["the second time"]) == ([0], ["known"])
    assert "user: " in report["tree"]


def test_what_is_no_store_is_passed_over(own_place: Place) -> None:
    (own_place.root / "data/other.db").write_bytes(b"SQLite format 3\0" + b"\0" * 100)
    (own_place.root / "data/text.db").write_text("no database")
    done = own_place.run("sessions", "import", str(own_place.root / "data"))
    assert "Traceback" not in done.stderr
    assert own_place.run("sessions", "list").stdout.startswith("There are no sessions yet.")
