"""Runs one task per line of a file on a Ray cluster and gathers the patches.

    ray job submit -- python ray_fleet.py tasks.txt https://git.example.org/app.git /shared/fleet

A task that a lost node was working on is tried again by Ray; with `--key` it continues where it was cut off.
"""

import os
import subprocess
import sys
from pathlib import Path

import ray


@ray.remote(num_cpus=1, max_retries=3)
def work(key: str, task: str, repository: str, shared: str) -> tuple[str, int]:
    """Do a task in a checkout of its own; return its key and the run's exit code."""
    place, checkout = Path(shared) / key, Path(shared) / key / "app"
    if not checkout.exists():
        subprocess.run(
            ["git", "clone", "--quiet", "--depth", "1", repository, checkout], check=True
        )
    options = [
        "--key",
        key,
        "--mode",
        "auto-edit",
        "--cwd",
        checkout,
        "--result",
        place / "result.patch",
    ]
    done = subprocess.run(
        ["tui-agent", "-p", task, *options, "--max-tokens", "2000000", "--timeout", "30m"],
        env={**os.environ, "TUI_AGENT_DATA_DIR": str(place / "data")},
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return key, done.returncode


if __name__ == "__main__":
    tasks, repository, shared = Path(sys.argv[1]).read_text().splitlines(), *sys.argv[2:4]
    ray.init()
    waiting = [
        work.remote(f"task-{number}", task, repository, shared) for number, task in enumerate(tasks)
    ]
    while waiting:
        ready, waiting = ray.wait(waiting)
        print(*ray.get(ready[0]), flush=True)
