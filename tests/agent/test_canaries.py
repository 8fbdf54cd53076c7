"""What runs unasked cannot harm, whatever it is called: random lines are really run among canaries.

`TUI_AGENT_CANARY_LINES=5000` runs thousands of lines of each kind, `TUI_AGENT_CANARY_SEED` chooses others.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.canaries import Seen
from tests.support.contained import FORMS, state_of
from tests.support.thoroughness import NIGHTLY
from tui_agent.sandbox.detection import bubblewraps

ROOT = Path(__file__).parents[2]
LINES = int(os.environ.get("TUI_AGENT_CANARY_LINES", "0"))
SEED = int(os.environ.get("TUI_AGENT_CANARY_SEED", "20260"))


def watched(place: Path, *, lines: int, form: str) -> Seen:
    """Run lines inside a bubblewrap that can write to a scratch directory and reach nothing."""
    bubblewrap = next(bubblewraps(), None)
    if bubblewrap is None:
        pytest.skip("bubblewrap keeps the machine safe from what is tested here")
    outer = (
        bubblewrap, "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--dev", "/dev",
        "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run", "--ro-bind", str(ROOT), str(ROOT),
        "--ro-bind", sys.prefix, sys.prefix, "--bind", str(place), str(place), "--chdir", str(ROOT),
    )  # fmt: skip
    done = subprocess.run(
        [*outer, sys.executable, "-m", "tests.agent.canaries"],
        input=json.dumps(
            {"place": str(place), "seed": SEED, "lines": lines, "form": form}
        ).encode(),
        capture_output=True,
        check=False,
        timeout=500 if not LINES else None,
    )
    assert done.returncode == 0, done.stderr.decode()[-2_000:]
    return Seen(**json.loads(done.stdout))


@pytest.mark.timeout(600 if not LINES else 7_200)
@pytest.mark.parametrize("form", ["none", *FORMS])
def test_no_line_that_runs_unasked_harms_a_canary(tmp_path: Path, form: str) -> None:
    lines = LINES or (250 if NIGHTLY else 12)
    if form in FORMS:
        state_of(form, tmp_path)
    seen = watched(tmp_path, lines=lines, form=form)
    assert seen.faults == []
    assert seen.held_by == form
    assert seen.ran >= lines
