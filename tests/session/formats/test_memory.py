"""A file of any size is taken in within little memory, measured in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ALLOWED = 150
"""Megabytes resident at most, whatever the size."""
MORE = 7
"""Megabytes that a file of 10 may take more than one of 1. In memory as a whole it would be well over 10."""

TAKE = """
import sys
from pathlib import Path
from tui_agent.app.importing import Importer, summary_of
from tui_agent.session.store import Store

store = Store(Path(sys.argv[1]) / "sessions.db")
importer = Importer(store)
for _ in range(2):
    [imported] = importer.take(Path(sys.argv[2]))
    print(imported.came.value, imported.entries)
store.close()
# Not ru_maxrss: a process begins with that of the one that started it.
print(next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def write(path: Path, megabytes: int) -> int:
    """Write a session of Pi with so many megabytes; returns its entries."""
    text = "The total is wrong where a row has no price. " * 200
    written = entries = 0
    with path.open("w", encoding="utf-8") as file:
        header = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-02T03:04:05Z", "cwd": "/shop"}
        file.write(json.dumps(header) + "\n")
        while written < megabytes * 1_000_000:
            role = {"role": "user", "content": f"{entries} {text}"}
            line = {"type": "message", "id": f"{entries:08x}", "parentId": f"{entries - 1:08x}" if entries else None,
                    "timestamp": "2026-01-02T03:04:05Z", "message": role}  # fmt: skip
            written += file.write(json.dumps(line) + "\n")
            entries += 1
    return entries


def peak(tmp_path: Path, megabytes: int) -> int:
    """Import a file of so many megabytes twice in a process of its own; returns the most it took, in megabytes."""
    directory = tmp_path / str(megabytes)
    directory.mkdir()
    entries = write(directory / "session.jsonl", megabytes)
    ran = subprocess.run(
        [sys.executable, "-c", TAKE, directory, directory / "session.jsonl"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    first, second, used = ran.stdout.splitlines()
    assert (first, second) == (f"new {entries}", "known 0")
    return int(used)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell a process's memory there")
def test_importing_takes_little_memory_whatever_the_size(tmp_path: Path) -> None:
    small, large = peak(tmp_path, 1), peak(tmp_path, 10)
    assert large < ALLOWED
    assert large - small < MORE
