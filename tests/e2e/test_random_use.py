"""The program used at random in a real terminal, against a provider that misbehaves."""

import os
import subprocess
import sys

import pytest

from tests.support.thoroughness import NIGHTLY

MINUTES = float(os.environ.get("TUI_AGENT_RANDOM_MINUTES", "5"))


@pytest.mark.skipif(not NIGHTLY, reason="takes minutes: make nightly, or python -m scripts.random_use")
@pytest.mark.parametrize("seed", range(1, 4))
def test_nothing_breaks(seed: int) -> None:
    command = [sys.executable, "-m", "scripts.random_use", "--seed", str(seed), "--minutes", str(MINUTES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MINUTES * 60 + 300, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-4_000:]
