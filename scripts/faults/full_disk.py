"""The same work on a disk that is full after some bytes: a small one of its own, in memory, for each round.

It is mounted where only the process that does the round sees it, which needs no rights where user namespaces are
allowed. The disk has room until the work begins, and has it again before anybody looks at what is left.
"""

import asyncio
import ctypes
import logging
import os
import random
import shutil
import traceback
from functools import partial
from pathlib import Path

from scripts.faults.kills import LONGEST, Outcome, in_process, look, never, working, wrong_in
from scripts.faults.rows import Before, Row, Tell
from scripts.faults.scene import Place
from tui_agent.errors import problem_of

PREFIX = "full disk, "
NO_DISK = "a process may not have mounts of its own here"
TIMES = 10
ROOMY = 256 << 20
"""Bytes of a disk that nothing here fills."""
_NEW_USER, _NEW_MOUNTS, _REMOUNT = 0x10000000, 0x00020000, 32


def run_full(row: Row, base: Place, before: Before, times: int, seed: int) -> Outcome:
    """Do a row's work so many times on a disk that is full at a random moment of it.

    ``finished`` counts the rounds for which the room was enough.
    """
    chance = random.Random(f"{seed} {row.name}")
    outcome = Outcome(PREFIX + row.name)
    needed = _needed(row, base)
    for number in range(times):
        room = int(chance.uniform(0, needed * 1.5))
        told = in_process(partial(_round, row, base, before, room), never, longest=4 * LONGEST)
        words = [one[0] for one in told]
        outcome.kills += 1
        outcome.finished += "enough" in words
        outcome.new_entries += sum(rest[0] for word, *rest in told if word == "entries")
        wrong = wrong_in(told)
        if "done" not in words and not wrong:
            wrong = ["the round hung"]
        outcome.wrong += [f"round {number}, {room:,} bytes of room: {fault}" for fault in wrong]
    return outcome


def _needed(row: Row, base: Place) -> int:
    """Return how many bytes a row's work takes from its beginning on, at the most."""

    def measure(tell: Tell) -> None:
        place = _on_a_disk(base)
        start = 0

        def note(*_told: object) -> None:
            nonlocal start
            start = start or used(place.root)
            tell("used", used(place.root) - start)

        asyncio.run(row.act(place, note))  # type: ignore[arg-type]  # an async function's call
        tell("used", used(place.root) - start)

    told = in_process(measure, never)
    if told[-1:] and told[-1][0] == "failed":
        raise RuntimeError(f"{row.name} does not work on a disk of its own: {told[-1][1]}")
    return max(4096, *(rest[0] for word, *rest in told if word == "used"))


def _round(row: Row, base: Place, before: Before, room: int, tell: Tell) -> None:
    place = _on_a_disk(base)
    told = in_process(lambda tell: _act(row, place, room, tell), never)
    leave_room(place.root, ROOMY)
    words = [one[0] for one in told]
    if not {"refused", "failed"} & set(words) and all(
        rest[-1:] in ([], [None]) for word, *rest in told if word == "end"
    ):
        tell("enough")
    for word, *rest in told:
        if word == "failed":
            tell("failed", f"on the full disk: {rest[0]}")
    if "begin" not in words:
        tell("wrong", "it did not begin")
        return
    for word, *rest in in_process(lambda tell: look(row, place, before, told, tell), never):
        if word in ("wrong", "failed", "entries"):
            tell(word, *rest)
    if stray := sorted(
        path.name for path in place.root.iterdir() if not path.name.startswith(_KNOWN)
    ):
        tell("wrong", f"left over: {stray}")
    for word, *rest in in_process(working(row, place), never):
        if word == "failed":
            tell("failed", f"with room again: {rest[0]}")
    tell("done")


_KNOWN = ("sessions.db", "project", "out.jsonl", "source.jsonl")


def _act(row: Row, place: Place, room: int, tell: Tell) -> None:
    """Do a row's work and leave it ``room`` bytes once it begins; what it can't do it has to say in a sentence."""

    class Defects(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            tell("failed", self.format(record)[-1_500:])

    logging.getLogger("tui_agent").addHandler(Defects(logging.ERROR))

    def note(word: str, *rest: object) -> None:
        tell(word, *rest)
        if word == "begin":
            leave_room(place.root, room)

    try:
        asyncio.run(row.act(place, note))  # type: ignore[arg-type]  # an async function's call
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        problem = problem_of(error)
        tell("refused", problem.sentence) if problem.expected else tell(
            "failed", traceback.format_exc()[-1_500:]
        )


def own_mounts() -> None:
    """Let this process, which has one thread, mount what nobody else sees.

    Raises:
        OSError: user namespaces are not allowed here.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_USER | _NEW_MOUNTS):
        raise OSError(ctypes.get_errno(), NO_DISK)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def mount(root: Path) -> None:
    """Put a disk with much room where a directory is."""
    _mount(root, 0, ROOMY)


def leave_room(root: Path, room: int) -> None:
    """Leave so many bytes on a disk."""
    _mount(root, _REMOUNT, used(root) + room)


def used(root: Path) -> int:
    """Return how many bytes of a disk are in use."""
    state = os.statvfs(root)
    return (state.f_blocks - state.f_bfree) * state.f_frsize


def _mount(root: Path, flags: int, size: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(root), b"tmpfs", flags, f"size={size}".encode()):
        raise OSError(ctypes.get_errno(), "a disk of its own can't be mounted", str(root))


def _on_a_disk(base: Place) -> Place:
    """Give this process a disk that nobody else sees, with a copy of ``base`` on it."""
    own_mounts()
    place = Place(base.root.with_name("small"))
    place.root.mkdir(exist_ok=True)
    mount(place.root)
    shutil.copytree(base.root, place.root, dirs_exist_ok=True)
    return place
