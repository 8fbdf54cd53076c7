"""What is killed: a row says how to get ready, what to do, and what may be left."""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.faults.scene import Place, an_agent, files, oldest, script, work
from tests.support.scripted_client import ScriptedClient
from tui_agent.agent.agent import Agent
from tui_agent.app.exporting import ExportOrder, format_of, write_export
from tui_agent.app.importing import import_all
from tui_agent.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    PruneEntry,
    TextPart,
    UserEntry,
)
from tui_agent.session.schema import SCHEMA_VERSION
from tui_agent.session.session import Session
from tui_agent.session.store import Store

Tell = Callable[..., None]
"""Reports what is true from now on; ``tell("begin")`` says that what is to be killed begins."""
TURNS = 6
"""Turns of the session that everything happens to."""


@dataclass(frozen=True)
class Row:
    """One kind of work to be killed.

    ``act`` runs in a process of its own until it is killed or done. ``look`` is given the place, what it was like
    before, and what ``act`` told; it returns what is wrong.
    """

    name: str
    act: Callable[[Place, Tell], Awaitable[None]]
    look: Callable[[Place, "Before", list[list[Any]]], list[str]]
    times: int = 20


@dataclass(frozen=True)
class Before:
    """A place before anything was killed in it."""

    entries: dict[int, str]
    leaf: int | None
    files: dict[str, bytes]


async def _get_ready(place: Place) -> None:
    async with an_agent(place, ScriptedClient(script(TURNS))) as agent:
        await work(agent, [f"Change the files, turn {turn}." for turn in range(TURNS)])


def prepare(place: Place) -> Before:
    """Fill a place with a session of a few turns."""
    place.project.mkdir(parents=True)
    for number in range(30):
        (place.project / f"file{number}.txt").write_text(f"file {number}\n" * 20)
    asyncio.run(_get_ready(place))
    with place.session() as session:
        return Before(
            {one.id: one.preview for one in session.skeleton()}, session.leaf, files(place.project)
        )


def turn_of(session: Session, number: int) -> int:
    """Return the entry that a turn of the user begins with, counted from 0, wherever the leaf is by now."""
    there = session.entries(sorted(header.id for header in session.skeleton()))
    typed = [entry.id for entry in there if isinstance(entry, UserEntry) and not entry.synthetic]
    return typed[number]


def _new(place: Place, before: Before) -> list[Any]:
    with place.session() as session:
        return session.entries(
            sorted(one.id for one in session.skeleton() if one.id not in before.entries)
        )


# -- a busy run -----------------------------------------------------------------------------------------------


async def _busy(place: Place, tell: Tell) -> None:
    async with an_agent(place, ScriptedClient(script(40))) as agent:
        agent.channel.subscribe(lambda _event: tell("leaf", agent.session.leaf))
        tell("begin")
        await work(agent, [f"Busy turn {turn}." for turn in range(40)])
        tell("end")


def _busy_left(place: Place, _before: Before, told: list[list[Any]]) -> list[str]:
    with place.session() as session:
        there = {one.id for one in session.skeleton()}
    return [
        f"#{leaf} was the leaf and is gone"
        for kind, *rest in told
        if kind == "leaf"
        for leaf in rest
        if leaf not in (None, *there)
    ]


# -- what changes the view ------------------------------------------------------------------------------------


async def _compact(place: Place, tell: Tell) -> None:
    async with an_agent(place, ScriptedClient(script(0))) as agent:
        tell("begin")
        outcome = await agent.compact()
        tell("end", outcome.problem)


def _at_most_one(kind: type) -> Callable[[Place, Before, list[list[Any]]], list[str]]:
    def look(place: Place, before: Before, told: list[list[Any]]) -> list[str]:
        found = [entry for entry in _new(place, before) if isinstance(entry, kind)]
        ended = [rest for word, *rest in told if word == "end"]
        wrong = [f"there are {len(found)} of {kind.__name__}"] if len(found) > 1 else []
        if ended and ended[0][0] is None and not found:
            wrong.append(f"it was told as done and there is no {kind.__name__}")
        return wrong

    return look


async def _prune(place: Place, tell: Tell) -> None:
    async with an_agent(place, ScriptedClient(script(0))) as agent:
        tell("begin")
        freed = await agent.prune()
        tell("end", None if freed else "nothing")


async def _move(place: Place, tell: Tell) -> None:
    async with an_agent(place, ScriptedClient(script(0))) as agent:
        plan = agent.navigator.plan(turn_of(agent.session, 2))
        tell("begin")
        await agent.navigator.move(plan, focus="")
        tell("end", None)


# -- files ----------------------------------------------------------------------------------------------------


async def going_back(agent: Agent, target: int | None) -> None:
    """Move with the files, as the controller does it."""
    plan = await agent.files.plan(target)
    await agent.navigator.go(target)
    await agent.files.restore(plan)


async def _restore(place: Place, tell: Tell) -> None:
    async with an_agent(place, ScriptedClient(script(0))) as agent:
        target = agent.session.entry(turn_of(agent.session, 1)).parent_id
        tell("begin", target)
        await going_back(agent, target)
        tell("end")


def _restore_left(place: Place, before: Before, told: list[list[Any]]) -> list[str]:
    """Each file is as it was or as it was to be, and going there again finishes what was begun."""
    target = next((rest[0] for word, *rest in told if word == "begin"), None)

    async def finish() -> tuple[dict[str, bytes], dict[str, bytes]]:
        async with an_agent(place, ScriptedClient(script(0))) as agent:
            if agent.session.leaf != target:
                await going_back(agent, target)
            else:  # it had moved: what is left of the files is worked out from where it came
                await agent.navigator.go(before.leaf)
                await going_back(agent, target)
            after = files(place.project)
            await going_back(agent, before.leaf)
            return after, files(place.project)

    found = files(place.project)
    after, back = asyncio.run(finish())
    wrong = [
        f"{name} is neither old nor new"
        for name, data in found.items()
        if data not in (before.files.get(name), after.get(name))
    ]
    if back != before.files:
        wrong.append(
            f"it does not come back: {sorted(set(back.items()) ^ set(before.files.items()))[:3]}"
        )
    if any(b"line 1\n" in data for data in after.values()):
        wrong.append("going there again does not finish it")
    return wrong


# -- files of others ------------------------------------------------------------------------------------------


async def _import(place: Place, tell: Tell) -> None:
    source = _export_to(place, "source.jsonl")
    store = place.store()
    tell("begin", len(store.sessions()))
    failed = sum(import_all(store, source)[2] for _ in range(3))
    tell("end", f"{failed} failed" if failed else None)


def _import_left(place: Place, before: Before, _told: list[list[Any]]) -> list[str]:
    """A session that came in is whole, or it is not there."""
    wrong = []
    with place.store() as store:
        for info in store.sessions():
            session = Session(store, info.id, estimate=lambda _entry: 1)
            if len(list(session.skeleton())) != len(before.entries):
                wrong.append(
                    f"session {info.title!r} has {len(list(session.skeleton()))} entries of {len(before.entries)}"
                )
    return wrong


def _export_to(place: Place, name: str) -> Path:
    with place.store() as store:
        path = place.root / name
        kind = format_of(name)
        assert kind is not None
        write_export(store, ExportOrder(oldest(store), kind), path, replaces=True)
    return path


async def _export(place: Place, tell: Tell) -> None:
    (place.root / "out.jsonl").write_text("old\n")
    tell("begin")
    for _ in range(10):
        _export_to(place, "out.jsonl")
    tell("end")


def _export_left(place: Place, before: Before, _told: list[list[Any]]) -> list[str]:
    data = (place.root / "out.jsonl").read_text()
    if data == "old\n":
        return []
    lines = [json.loads(line) for line in data.splitlines()]
    return (
        []
        if len(lines) > len(before.entries)
        else [f"the file has {len(lines)} lines of {len(before.entries) + 1}"]
    )


# -- whole sessions -------------------------------------------------------------------------------------------


async def _fork(place: Place, tell: Tell) -> None:
    store = place.store()
    session = Session(store, oldest(store), estimate=lambda _entry: 1)
    tell("begin")
    for _ in range(10):
        tell("forked", store.fork(session.id, session.leaf).id)
    tell("end")


def _fork_left(place: Place, before: Before, told: list[list[Any]]) -> list[str]:
    wrong = []
    with place.store() as store:
        ids = {info.id for info in store.sessions()}
        wrong += [
            f"fork {rest[0]} was told of and is gone"
            for word, *rest in told
            if word == "forked" and rest[0] not in ids
        ]
        for info in store.sessions():
            session = Session(store, info.id, estimate=lambda _entry: 1)
            path = [one.preview for one in session.path()]
            if info.parent_session is not None and (len(path), path[-1]) != (
                len(before.entries),
                before.entries[before.leaf or 0],
            ):
                wrong.append(f"a fork has {len(path)} of {len(before.entries)} entries")
    return wrong


async def _delete(place: Place, tell: Tell) -> None:
    with place.store() as store:
        forked = [store.fork(oldest(store), None).id for _ in range(30)]
        forked += [store.fork(oldest(store), 3).id for _ in range(10)]
        tell("begin")
        for one in forked:
            store.delete(one)
            tell("deleted", one)
        store.purge()
        tell("end")


def _delete_left(place: Place, before: Before, told: list[list[Any]]) -> list[str]:
    with place.store() as store:
        shown = {info.id for info in store.sessions()}
        back = [
            f"{rest[0]} was deleted and is there"
            for word, *rest in told
            if word == "deleted" and rest[0] in shown
        ]
        store.purge()
    with place.session() as session:
        kept = {one.id: one.preview for one in session.skeleton()} == before.entries
    return back if kept else [*back, "the session that stays lost something"]


# -- the file itself ------------------------------------------------------------------------------------------


NEWER = {
    SCHEMA_VERSION: (
        "ALTER TABLE sessions ADD COLUMN notes TEXT NOT NULL DEFAULT ''",
        "UPDATE sessions SET notes = 'migrated'",
    )
}


async def _migrate(place: Place, tell: Tell) -> None:
    tell("begin")
    Store(place.file, migrations=NEWER).close()
    tell("end")


def _migrate_left(place: Place, before: Before, _told: list[list[Any]]) -> list[str]:
    with Store(place.file, migrations=NEWER) as store:
        session = Session(store, oldest(store), estimate=lambda _entry: 1)
        same = {one.id: one.preview for one in session.skeleton()} == before.entries
    left = [path.name for path in place.root.iterdir() if "migrating" in path.name]
    (backup,) = sorted(place.root.glob("*.bak*"))[:1] or (None,)
    wrong = [] if same else ["entries are not as they were"]
    wrong += [f"left over: {left}"] if left else []
    # What follows goes on with the program's own schema.
    if backup is None:
        return [*wrong, "there is no backup"]
    for path in place.root.glob("sessions.db*"):
        if path != backup and path.is_file():
            path.unlink()
    shutil.move(backup, place.file)
    return wrong


async def _take_over(place: Place, tell: Tell) -> None:
    tell("begin")
    for number in range(15):
        with place.store() as store:
            session = Session(store, oldest(store), estimate=lambda _entry: 1)
            session.hold(take_over=True)
            tell(
                "leaf", session.append(UserEntry(parts=(TextPart(text=f"taken over {number}"),))).id
            )
    tell("end")


ROWS = (
    Row("busy run", _busy, _busy_left, times=200),
    Row("compaction", _compact, _at_most_one(CompactionEntry)),
    Row("prune", _prune, _at_most_one(PruneEntry)),
    Row("move with summary", _move, _at_most_one(BranchSummaryEntry)),
    Row("restore", _restore, _restore_left),
    Row("import", _import, _import_left),
    Row("export", _export, _export_left),
    Row("fork", _fork, _fork_left),
    Row("delete", _delete, _delete_left),
    Row("migration", _migrate, _migrate_left),
    Row("take-over", _take_over, _busy_left),
)
