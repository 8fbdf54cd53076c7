"""Every command, key and page action where the session can't be written: a sentence, never a crash."""

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

from tests.support.real_stage import RealStage, real_stage, working_script, write_modules
from tests.support.scripted_client import Reply
from tests.support.stores import open_store
from tests.support.thoroughness import NIGHTLY
from tests.support.ui_app import press, run_command
from tui_agent.app.commands import command_table
from tui_agent.session.session import Session
from tui_agent.session.store import Store

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "mode": ("", "plan", "auto-edit"),
    "rename": ("", "another title"),
    "label": ("", "a label"),
    "model": ("", "openai/gpt-5-mini"),
    "compact": ("", "the redirect"),
    "export": ("markdown",),
    "import": ("nothing.jsonl",),
    "copy": ("", "all", "#1", "#999"),
    "agent": ("build", "nobody"),
    "theme": ("textual-dark",),
}
"""What is typed after a command; the others are run without anything."""
SKIPPED_KEYS = {"ctrl+q", "ctrl+c", "ctrl+d", "ctrl+z", "ctrl+x"}
"""Keys that quit, suspend or start an editor."""

Trouble = Callable[[RealStage], AbstractContextManager[None]]


@contextmanager
def locked(stage: RealStage) -> Iterator[None]:
    """Another program writes and does not come to an end."""
    other = sqlite3.connect(stage.harness.store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


@contextmanager
def full(stage: RealStage) -> Iterator[None]:
    """The disk has no room."""
    with stage.harness.store.reader() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    yield


@contextmanager
def deleted(stage: RealStage) -> Iterator[None]:
    """The session file is gone."""
    for path in stage.harness.store.path.parent.glob(f"{stage.harness.store.path.name}*"):
        if path.is_file():
            path.unlink()
    yield


@contextmanager
def read_only(stage: RealStage) -> Iterator[None]:
    """Another program has taken the session over."""
    stage.harness.session.hold()
    with Store(stage.harness.store.path) as store:
        Session(store, stage.harness.session.id, estimate=lambda _entry: 1).hold(take_over=True)
        yield


TROUBLES: dict[str, Trouble] = {
    "locked": locked,
    "full": full,
    "deleted": deleted,
    "read only": read_only,
}

COMMANDS_IN = TROUBLES if NIGHTLY else ("full", "deleted", "read only")
"""Where every command is tried; by day each in one of them."""
KEYS_IN = TROUBLES if NIGHTLY else {"locked": locked}
"""Where every key of every page is tried; before its keys each page is opened by its command."""


def defects(records: list[logging.LogRecord]) -> list[str]:
    """Return what was logged as a defect of the program."""
    return [
        str(record.exc_info and record.exc_info[1])
        for record in records
        if record.levelno >= logging.ERROR
    ]


async def leave_pages(stage: RealStage, pilot: Any) -> None:
    for _ in range(12):
        if stage.screen is stage.main:
            return
        await press(pilot, "escape")
    raise AssertionError(f"{stage.screen} can't be left")


def keys_of(screen: Screen[Any], tried: set[tuple[type, str]]) -> list[str]:
    """Return the keys that do something on a screen now; by day only those whose action was not tried elsewhere."""
    keys = []
    for key, active in screen.active_bindings.items():
        what = (type(active.node), active.binding.action)
        if key in SKIPPED_KEYS or key.startswith("ctrl+p") or (what in tried and not NIGHTLY):
            continue
        tried.add(what)
        keys.append(key)
    return keys


LEAVING = {"quit", "detach"}
"""Commands that end the program."""


@pytest.fixture
def stage(tmp_path: Path) -> RealStage:
    write_modules(tmp_path)
    # Nobody is to be waited for.
    return real_stage(
        tmp_path, working_script(2), store=open_store(tmp_path / "sessions.db", busy_timeout=1)
    )


@pytest.mark.parametrize("number", range(len(COMMANDS_IN)), ids=COMMANDS_IN)
async def test_every_command_goes_on_in_trouble(
    stage: RealStage, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    trouble = TROUBLES[[*COMMANDS_IN][number]]
    commands = command_table() if NIGHTLY else command_table()[number :: len(COMMANDS_IN)]
    async with stage.run(after=["look at it"]) as pilot:
        with trouble(stage):
            for command in commands:
                for argument in (
                    () if command.name in LEAVING else ARGUMENTS.get(command.name, ("",))
                ):
                    await run_command(stage, pilot, command.name, argument)
                    assert stage.app.is_running, command.name
                    assert defects(caplog.records) == [], command.name
                    await leave_pages(stage, pilot)


@pytest.mark.parametrize("trouble", KEYS_IN.values(), ids=KEYS_IN)
async def test_every_key_of_every_page_goes_on_in_trouble(
    stage: RealStage, trouble: Trouble, caplog: pytest.LogCaptureFixture
) -> None:
    tried: set[tuple[type, str]] = set()
    async with stage.run(after=["look at it"]) as pilot:
        with trouble(stage):
            for command in command_table():
                if command.name in LEAVING:
                    continue
                await run_command(stage, pilot, command.name, "")
                for key in keys_of(stage.screen, tried) if stage.screen is not stage.main else ():
                    await pilot.press(key)
                    assert stage.app.is_running, (command.name, key)
                    assert defects(caplog.records) == [], (command.name, key)
                    if stage.screen is stage.main:
                        await run_command(stage, pilot, command.name, "")
                await leave_pages(stage, pilot)


async def test_what_could_not_be_read_is_counted_and_told(tmp_path: Path) -> None:
    (tmp_path / "stage").mkdir()
    stage = real_stage(tmp_path, [Reply("Fine.")])
    for number in range(3):
        await stage.harness.say(f"Message {number}.")
    with sqlite3.connect(tmp_path / "sessions.db") as database:
        keys = [row[0] for row in database.execute("SELECT key FROM bodies ORDER BY key")]
        database.execute("UPDATE bodies SET body = 'no entry' WHERE key = ?", (keys[3],))
    damaged = Session(
        Store(tmp_path / "sessions.db"), stage.harness.session.id, estimate=lambda _entry: 1
    )
    stage.harness.agent.session = damaged
    async with stage.run() as pilot:
        await stage.until_text("Recovered 6 of 7 entries", pilot)
        assert "Message 2." in stage.text()
        assert "could not be read; the other entries are intact" in stage.text()
