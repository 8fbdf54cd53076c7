"""kill -9 at any moment loses nothing that was committed."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.thoroughness import NIGHTLY

ROOT = Path(__file__).parents[2]
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
