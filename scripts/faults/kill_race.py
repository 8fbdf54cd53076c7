"""Kills races at random moments, counts what is lost or left: ``python scripts/faults/kill_race.py [ROUNDS]``.

Each round is a race of the real program without a screen, against a scripted server on this machine: three runners
that write files and have them checked, in a repository with uncommitted changes. It is killed (SIGKILL) at a random
moment between its start and its end, and begun anew on what is left. Then is looked at:

- the project: bytes, index and branches as before, or, killed while one was taken, its changes whole or not yet there;
- the session: it opens, and every answer that was told of before the kill is there;
- the race: the next one works as if nothing had been, and one of its runners is taken whole;
- the copies: none is left after it.

With ``--full`` nothing is killed: the disk that everything of the race is on has no more room than a random number of
bytes while it goes on, and enough again before anybody looks.

Prints one line a round and a count at the end; the exit code is 1 when anything was wrong.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scripts.faults.full_disk import ROOMY, leave_room, mount, own_mounts, used  # noqa: E402
from tests.support.model_script import Call, Recorded, Turn  # noqa: E402 - the tests' server is beside the program
from tests.support.model_server import ModelServer  # noqa: E402
from tests.support.place import Place  # noqa: E402
from tests.support.races import make_project, state_of  # noqa: E402
from tui_agent.cli.sessions import DATABASE  # noqa: E402
from tui_agent.session.session import Session  # noqa: E402
from tui_agent.session.store import Store  # noqa: E402

ARGUMENTS = ("-p", "begin: make it", "--race", "3", "--check", "test -f made.txt", "--pick", "best")
MADE = {"made.txt": b"made\n", "f0.txt": b"file 0\nmore\n"}


@dataclass
class Life:
    """One race: what it had told, the seconds it lived, its exit code, and its bytes on the disk at the most."""

    told: list[int]
    seconds: float
    code: int
    most: int

    @property
    def was_killed(self) -> bool:
        return self.code < 0


def play(request: Recorded) -> Turn:
    """Answer as a runner that does a little work in several steps."""
    if "begin" not in json.dumps(request.json["messages"]):
        return Turn(text="Hello.")
    # A call that was cut off is not repeated by this model, so each does all of the work.
    work = r"echo made > made.txt; printf 'file 0\nmore\n' > f0.txt"
    commands = {1: work, 2: f"{work}; cat f0.txt", 3: f"{work}; ls"}
    steps = json.dumps(request.json["messages"]).count("I begin step ")
    if steps < len(commands):
        text = f"I begin step {steps + 1}, and say a few words about it first."
        return Turn(
            text=text, delay=0.01, tool_calls=(Call("bash", {"command": commands[steps + 1]}),)
        )
    return Turn(text="All of it is done now.", delay=0.01)


def live(place: Place, seconds: float, *, running: bool = False) -> Life:
    """Start a race and kill it after some seconds; with ``running`` they are counted from when its runners begin."""
    with place.report(*ARGUMENTS) as process:
        assert process.stdout
        began, most = time.monotonic(), used(place.root)
        timer = threading.Timer(seconds, process.kill)
        if not running:
            timer.start()
        told = []
        for line in process.stdout:
            if running and '"race_started"' in line:
                began = time.monotonic()
                timer.start()
            most = max(most, used(place.root))
            if (leaf := _leaf_in(line)) is not None:
                told.append(leaf)
        timer.cancel()
    return Life(told, time.monotonic() - began, process.returncode, most)


def _leaf_in(line: str) -> int | None:
    """Return the entry that a line says a runner has come to."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event["runner"]["leaf"] if event["type"] == "runner_changed" else None


def look(
    place: Place, before: dict[str, tuple[int, bytes]], life: Life, phases: Counter[str]
) -> list[str]:
    """Return what is wrong after a kill."""
    wrong = _in_project(place, before)
    wrong += _in_session(place, life)
    phases[
        (
            "killed"
            if life.was_killed
            else "ended by itself"
            if life.code == 0
            else "met the full disk"
        )
    ] += 1
    homes = place.root / "data" / "cache" / "races"
    for home in homes.iterdir() if homes.exists() else ():
        os.utime(home, (1, 1))  # as old as what a killed program left
    again = place.run(*ARGUMENTS)
    made = {
        name: (place.project / name).read_bytes()
        for name in MADE
        if (place.project / name).exists()
    }
    if "Took " not in again.stderr or made != MADE:
        wrong.append(f"the next race was not taken whole, {sorted(made)}: {again.stderr[-300:]}")
    if left := list(homes.iterdir()):
        wrong.append(f"left behind: {[path.name for path in left]}")
    return wrong


def _in_project(place: Place, before: dict[str, tuple[int, bytes]]) -> list[str]:
    """Look at the project; what a runner made may be in it where it was being taken, each file whole."""
    now = state_of(place.project)
    changed = [name for name in now.keys() | before.keys() if now.get(name) != before.get(name)]
    return [
        f"changed: {name}"
        for name in changed
        if name not in MADE or now.get(name, (0, b""))[1] != MADE[name]
    ]


def _in_session(place: Place, life: Life) -> list[str]:
    if not life.told:
        return []
    with Store(place.root / "data" / DATABASE) as store:
        if damage := store.damage():
            return [f"damaged: {damage}"]
        sessions = store.sessions()
        if not sessions:
            return ["the session is gone"]
        session = Session(store, sessions[0].id, estimate=lambda _entry: 1, read_only=True)
        known = {header.id for header in session.skeleton()}
    return [f"#{entry} was told of and is gone" for entry in sorted(set(life.told) - known)]


def main() -> int:
    """Run the rounds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rounds", nargs="?", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--full", action="store_true", help="let the disk be full instead")
    options = parser.parse_args()
    if options.full:
        own_mounts()
    chance, wrong = random.Random(options.seed), 0
    phases: Counter[str] = Counter()
    with ModelServer(play) as server:
        for number in range(options.rounds + 1):
            with (
                tempfile.TemporaryDirectory(prefix="ta-") as name,
                _disk(Path(name), is_small=options.full) as root,
            ):
                place = Place(root)
                place.configure(server.openai_url)
                make_project(place.project)
                before = state_of(place.project)
                if number == 0:
                    whole = live_whole(place)
                    continue
                if options.full:
                    life = live_on(place, chance.randint(0, whole.room))
                else:
                    # Much of the time goes by before a runner begins: most kills come later.
                    running = number % 5 > 0
                    life = live(
                        place,
                        chance.uniform(0.0, whole.runners if running else whole.seconds),
                        running=running,
                    )
                found = look(place, before, life, phases) + _defects(place)
            wrong += bool(found)
            print(
                f"{number:4}  {life.seconds:5.2f} s  {'; '.join(found) or 'nothing wrong'}",
                flush=True,
            )
    print(
        f"{options.rounds} rounds, {wrong} wrong; "
        + ", ".join(f"{n} {phase}" for phase, n in phases.items())
    )
    return int(wrong > 0)


@contextmanager
def _disk(root: Path, *, is_small: bool) -> Iterator[Path]:
    if not is_small:
        yield root
        return
    mount(root)
    try:
        yield root
    finally:
        subprocess.run(["umount", "--lazy", root], check=True, timeout=30)


def live_on(place: Place, room: int) -> Life:
    """Start a race on a disk with so many bytes of room, which has room again when it is over."""
    leave_room(place.root, room)
    life = live(place, 120)
    leave_room(place.root, ROOMY)
    return life


def _defects(place: Place) -> list[str]:
    """Return what the program logged as its own mistake."""
    logs = [path.read_text("utf-8", "replace") for path in (place.root / "data").rglob("*.log*")]
    return sorted(
        {line[-300:] for log in logs for line in log.splitlines() if "internal error" in line}
    )


@dataclass(frozen=True)
class Whole:
    """What a race takes that nothing happens to: seconds, all of it and its runners alone, and bytes on the disk."""

    seconds: float
    runners: float
    room: int


def live_whole(place: Place) -> Whole:
    """Have a race that nobody kills."""
    began, at_first = time.monotonic(), used(place.root)
    life = live(place, 120, running=True)
    return Whole(time.monotonic() - began, life.seconds, life.most - at_first)


if __name__ == "__main__":
    sys.exit(main())
