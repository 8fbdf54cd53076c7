"""A session whose file was damaged opens with what is left, and says how much that is."""

import sqlite3
from pathlib import Path

from tests.support.real_stage import real_stage
from tests.support.scripted_client import Reply
from tui_agent.session.session import Session
from tui_agent.session.store import Store


async def test_what_could_not_be_read_is_counted_and_told(tmp_path: Path) -> None:
    (tmp_path / "stage").mkdir()
    stage = real_stage(tmp_path, [Reply("Fine.")])
    for number in range(3):
        await stage.harness.say(f"Message {number}.")
    with sqlite3.connect(tmp_path / "sessions.db") as database:
        keys = [row[0] for row in database.execute("SELECT key FROM bodies ORDER BY key")]
        database.execute("UPDATE bodies SET body = 'no entry' WHERE key = ?", (keys[3],))
    damaged = Session(Store(tmp_path / "sessions.db"), stage.harness.session.id, estimate=lambda _entry: 1)
    stage.harness.agent.session = damaged
    async with stage.run() as pilot:
        await stage.until_text("Recovered 6 of 7 entries", pilot)
        assert "Message 2." in stage.text()
        assert "could not be read; the rest is there" in stage.text()
