"""``/compact`` without a screen says what it did in the numbers that the session keeps of it."""

import io
from pathlib import Path

from tests.support.agents import Harness, make_agent
from tests.support.headless import run_headless
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.session.entries import CompactionEntry, UserEntry

LONG = "Fine. " + " ".join(f"word{number}" for number in range(400))
"""An answer that fills the window and does not repeat itself."""
SUMMARY = "## Goal\nFind out why the redirect loses its query string, and write a test that holds it."


async def talked(tmp_path: Path) -> Harness:
    client = ScriptedClient(lambda request: Reply(LONG if request.tools else SUMMARY))
    harness = make_agent(tmp_path, client, window=20_000, answer=None)
    for number in range(6):
        await harness.say(f"Question {number}")
    return harness


async def test_the_numbers_are_those_of_the_entry(tmp_path: Path) -> None:
    harness, err, out = await talked(tmp_path), io.StringIO(), io.StringIO()
    before = len(harness.path())
    assert await run_headless(harness, "/compact --preview", out=out) == 0
    assert "Summarised: " in out.getvalue()
    assert len(harness.path()) == before
    assert await run_headless(harness, "/compact", err=err) == 0
    entry = harness.path()[-1]
    assert isinstance(entry, CompactionEntry)
    assert f"{entry.tokens_before:,} → {entry.tokens_after:,} tokens of history" in err.getvalue()


async def test_it_ends_where_it_is_told_to(tmp_path: Path) -> None:
    harness = await talked(tmp_path)
    third = [entry.id for entry in harness.path() if isinstance(entry, UserEntry)][2]
    assert await run_headless(harness, f"/compact #{third}") == 0
    entry = harness.path()[-1]
    assert isinstance(entry, CompactionEntry)
    assert entry.first_kept_id == third
