"""Runs the demo by the dozen: one-shot runs side by side, their sessions gathered into one store and looked at.

`python scripts/fleet.py --runs 50` says whether all of them can be opened afterwards, and what it took. Each run has a
data directory of its own, as in a container; `docs/automation.md` shows the same with real containers.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

TASKS = ("fix the bug", "explain", "run the tests", "show markdown")
SAMPLE_SECONDS = 0.2


def program(data: Path) -> tuple[list[str], dict[str, str]]:
    """Return what starts the program, and its environment: with data of its own."""
    own = {"TUI_AGENT_DATA_DIR": str(data), "TUI_AGENT_CONFIG_DIR": str(data.parent / "config")}
    return [sys.executable, "-m", "tui_agent"], {**os.environ, **own}


async def run_one(place: Path, number: int) -> tuple[str, int]:
    """Do one task; returns the session and the exit code."""
    command, environment = program(place / f"run-{number}")
    (place / "config").mkdir(exist_ok=True)
    task = TASKS[number % len(TASKS)]
    process = await asyncio.create_subprocess_exec(
        *command, "--demo", "--json", "--mode", "auto-edit", "--timeout", "5m", "-p", task,
        cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        limit=16_000_000,
    )  # fmt: skip
    out, _ = await process.communicate()
    first = json.loads(out.split(b"\n", 1)[0])
    return str(first["id"]), process.returncode or 0


async def run_all(place: Path, runs: int) -> tuple[list[tuple[str, int]], float, int]:
    """Do all tasks at once; returns their sessions and exit codes, the seconds it took and the most memory in bytes."""
    began = time.monotonic()
    peak = 0

    async def watch() -> None:
        nonlocal peak
        while True:
            used = 0
            for child in psutil.Process().children(recursive=True):
                try:
                    used += child.memory_full_info().pss
                except psutil.Error:
                    continue
            peak = max(peak, used)
            await asyncio.sleep(SAMPLE_SECONDS)

    watching = asyncio.ensure_future(watch())
    done = await asyncio.gather(*(run_one(place, number) for number in range(runs)))
    watching.cancel()
    return list(done), time.monotonic() - began, peak


def ask(data: Path, *words: str) -> str:
    """Run a subcommand on a data directory and return what it prints."""
    command, environment = program(data)
    done = subprocess.run(
        [*command, *words], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"tui-agent {' '.join(words)}: {done.stderr or done.stdout}")
    return done.stdout


def gather(place: Path, runs: int) -> dict[str, object]:
    """Take the sessions of all runs into one store, twice, and look at each."""
    store = place / "gathered"
    began = time.monotonic()
    folders = [str(place / f"run-{number}") for number in range(runs)]
    first = ask(store, "sessions", "import", str(place), "--json").splitlines()
    seconds = time.monotonic() - began
    again = {
        json.loads(line)["came"]
        for line in ask(store, "sessions", "import", str(place), "--json").splitlines()
    }
    listed = [json.loads(line) for line in ask(store, "sessions", "list", "--json").splitlines()]
    opened = [info["id"] for info in listed if ask(store, "sessions", "export", info["id"]).strip()]
    tree = ask(store, "tree", listed[0]["id"]) if listed else ""
    return {
        "data directories": len(folders), "imported": len(first), "the second time": sorted(again),
        "listed": [info["id"] for info in listed], "opened": len(opened), "tree": tree,
        "gather seconds": round(seconds, 1),
    }  # fmt: skip


def main() -> int:
    """Do what the arguments say; 0 when every session arrived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--directory", type=Path, help="where; default: a temporary one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tui-agent-fleet-") as scratch:
        place = (arguments.directory or Path(scratch)).resolve()
        place.mkdir(parents=True, exist_ok=True)
        done, seconds, peak = asyncio.run(run_all(place, arguments.runs))
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        report = gather(place, arguments.runs)
        report |= {
            "runs": arguments.runs, "exit codes": sorted({code for _, code in done}), "wall seconds": round(seconds, 1),
            "cpu seconds": round(used.ru_utime + used.ru_stime, 1), "peak memory MB": round(peak / 1e6),
        }  # fmt: skip
        complete = {session for session, _ in done} == set(report["listed"])  # type: ignore[call-overload]
    print(json.dumps(report, indent=2, ensure_ascii=False))
    return 0 if complete and report["opened"] == arguments.runs else 1


if __name__ == "__main__":
    sys.exit(main())
