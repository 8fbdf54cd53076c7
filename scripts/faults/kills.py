"""Kills work at random moments. What works and what looks are processes of their own, forked where no thread is."""

import asyncio
import json
import os
import random
import select
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from scripts.faults.rows import Before, Row, prepare
from scripts.faults.scene import Place, go_on

LONGEST = 60.0
"""Seconds after which work that is not killed counts as hung."""


@dataclass
class Outcome:
    """What came out of a row."""

    name: str
    kills: int = 0
    finished: int = 0
    new_entries: int = 0
    wrong: list[str] = field(default_factory=list)


def in_process(
    work: Callable[[Callable[..., None]], None],
    until: Callable[[list[list[Any]]], float | None],
    longest: float = LONGEST,
) -> list[list[Any]]:
    """Run ``work`` in a process, which reports lists; return them when it ended or was killed.

    ``until`` is called with what was reported so far whenever there is news, and returns the moment to kill it.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read_end)
            os.setsid()
            work(lambda *what: os.write(write_end, (json.dumps(what) + "\n").encode()) and None)
            code = 0
        except BaseException:  # noqa: BLE001 - whatever it is, the parent is told
            os.write(write_end, (json.dumps(["failed", traceback.format_exc()]) + "\n").encode())
        finally:
            os._exit(code)
    os.close(write_end)
    heard, told = b"", []
    last = time.monotonic() + longest
    kill_at: float | None = None
    while time.monotonic() < last:
        wait = min(last, kill_at or last) - time.monotonic()
        if kill_at is not None and wait <= 0:
            break
        if not select.select([read_end], [], [], max(wait, 0))[0]:
            break
        if not (piece := os.read(read_end, 65_536)):
            break
        heard += piece
        *lines, heard = heard.split(b"\n")
        told += [json.loads(line) for line in lines]
        kill_at = until(told) or kill_at
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while piece := os.read(read_end, 65_536) if select.select([read_end], [], [], 0)[0] else b"":
        heard += piece
    os.close(read_end)
    return told + [json.loads(line) for line in heard.split(b"\n") if line.endswith(b"]")]


def wrong_in(told: list[list[Any]]) -> list[str]:
    """Return what was reported as wrong, or went wrong in the process itself."""
    return [str(rest[0]) for word, *rest in told if word in ("wrong", "failed")]


def never(_told: list[list[Any]]) -> float | None:
    return None


def working(row: Row, place: Place) -> Callable[[Callable[..., None]], None]:
    return lambda tell: asyncio.run(row.act(place, tell))  # type: ignore[arg-type]  # an async function's call


def look(
    row: Row, place: Place, before: Before, told: list[list[Any]], tell: Callable[..., None]
) -> None:
    for fault in row.look(place, before, told):
        tell("wrong", fault)
    look_at(place, before, tell)


def look_at(place: Place, before: Before, tell: Callable[..., None]) -> None:
    """Report what is wrong with what is left, and whether work goes on."""
    with place.store() as store:
        if broken := store.damage():
            tell("wrong", f"the file is damaged: {broken}")
    with place.session() as session:
        there = {one.id: one for one in session.skeleton()}
        lost = [
            at
            for at, preview in before.entries.items()
            if at not in there or there[at].preview != preview
        ]
        if lost:
            tell("wrong", f"entries {lost[:5]} are lost")
        if session.reader.damaged or [one.id for one in session.path()] != list(
            session.path_outline().ids
        ):
            tell("wrong", "the path can't be read as a whole")
        if any(one.parent_id is not None and one.parent_id >= at for at, one in there.items()):
            tell("wrong", "a parent is younger than its child")
        tell("entries", len(there) - len(before.entries))
    asyncio.run(go_on(place))
    tell("looked")


@contextmanager
def ground() -> Iterator[tuple[Place, Before]]:
    """A place with a session of a few turns, of which each round gets a copy."""
    with tempfile.TemporaryDirectory(prefix="tui-agent-faults-") as name:
        base = Place(Path(name) / "base")
        yield base, _prepared(base)


def run(row: Row, base: Place, before: Before, times: int, seed: int) -> Outcome:
    """Kill a row's work so many times, each in a copy of ``base``."""
    chance = random.Random(seed)
    outcome = Outcome(row.name)
    duration = _duration(row, base)
    for number in range(times):
        place = Place(base.root.with_name(f"round{number}"))
        shutil.copytree(base.root, place.root)
        delay = chance.uniform(0, duration * 1.05)
        wrong = _round(row, place, before, delay, outcome)
        outcome.wrong += [f"round {number}, killed after {delay:.3f} s: {fault}" for fault in wrong]
        shutil.rmtree(place.root)
    return outcome


def _round(row: Row, place: Place, before: Before, delay: float, outcome: Outcome) -> list[str]:
    """Kill a row's work once; return what is wrong with what is left."""
    told = in_process(working(row, place), lambda told: _kill_at(told, delay))
    words = [one[0] for one in told]
    outcome.kills += 1
    outcome.finished += "end" in words
    looked = in_process(lambda tell: look(row, place, before, told, tell), never)
    outcome.new_entries += sum(rest[0] for word, *rest in looked if word == "entries")
    wrong = wrong_in([*told, *looked])
    if ["looked"] not in looked and not wrong:
        wrong = ["looking at it hung"]
    return wrong + _left_over(place)


def _prepared(base: Place) -> Before:
    def work(tell: Callable[..., None]) -> None:
        before = prepare(base)
        kept = {name: data.decode() for name, data in before.files.items()}
        tell("before", list(before.entries.items()), before.leaf, kept)

    told = in_process(work, never)
    if told[-1][0] != "before":
        raise RuntimeError(f"the session could not be made: {told[-1]}")
    _word, entries, leaf, kept = told[-1]
    return Before(dict(entries), leaf, {name: text.encode() for name, text in kept.items()})


def _duration(row: Row, base: Place) -> float:
    """Return the seconds a row's work takes from its beginning, unkilled; work without an end is given a second."""
    place = Place(base.root.with_name("whole"))
    shutil.copytree(base.root, place.root)
    at: list[float] = []

    def note(told: list[list[Any]]) -> float | None:
        if not at and ["begin"] in [one[:1] for one in told]:
            at.append(time.monotonic())
        return at[0] + 1.5 if at else None

    told = in_process(working(row, place), note)
    took = time.monotonic() - at[0] if at else 0
    shutil.rmtree(place.root)
    if not at or told[-1][0] == "failed":
        raise RuntimeError(f"{row.name} does not work without being killed: {told[-1:]}")
    return took


def _kill_at(told: list[list[Any]], delay: float) -> float | None:
    """Return when to kill, once the beginning was heard."""
    return time.monotonic() + delay if len(told) == 1 and told[0][0] == "begin" else None


def _left_over(place: Place) -> list[str]:
    """Return processes that still work in a place, and end them."""
    wrong = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(place.root) and process.pid != os.getpid():
                wrong.append(f"{process.name()} still runs there")
                process.kill()
        except (psutil.Error, OSError):
            continue
    return wrong
