"""One-shot runs without a screen: cold, and with a model host that is still warm."""

import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.program import Sandbox, sandbox
from benchmarks.report import Row, milliseconds

NAME = "headless"
ROUNDS = 3


def run() -> Iterator[Row]:
    """Measure `-p` against a server that answers at once, beside a bare import of litellm."""
    bare = milliseconds(_seconds_of([sys.executable, "-c", "import litellm"], {}) for _ in range(ROUNDS))
    with sandbox() as box:
        cold = milliseconds(_one_shot(box) for _ in range(ROUNDS))
    yield Row(NAME, "-p, cold host", cold, "ms", bare + 500, f"`import litellm` alone: {bare:.0f} ms")
    with sandbox(keep_warm=60) as box:
        _one_shot(box)
        warm = milliseconds(_one_shot(box) for _ in range(ROUNDS + 2))
        yield Row(NAME, "-p, warm host", warm, "ms", 600)


def _one_shot(box: Sandbox) -> float:
    return _seconds_of([sys.executable, "-m", "tui_agent", "-p", "hello", "--cwd", str(box.project)], box.env)


def _seconds_of(command: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(
        command,
        env={"PATH": "/usr/bin:/bin", "LITELLM_LOCAL_MODEL_COST_MAP": "True", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode:
        raise AssertionError(done.stderr)
    return time.perf_counter() - start
