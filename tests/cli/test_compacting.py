"""``tui-agent compact`` says what it did in the numbers that the session keeps of it."""

from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.cli.context import compact
from tui_agent.session.entries import CompactionEntry, UserEntry

LONG = "Fine. " + " ".join(f"word{number}" for number in range(400))
"""An answer that fills the window and does not repeat itself."""


async def test_the_numbers_are_those_of_the_entry_and_the_way_back_leads_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = ScriptedClient(lambda request: Reply(LONG if request.tools else "## Goal\nWords."))
    harness = make_agent(tmp_path, client, window=20_000)
    for number in range(6):
        await harness.say(f"Question {number}")
    before = harness.session.leaf
    assert await compact(harness.agent) == 0
    entry = harness.path()[-1]
    assert isinstance(entry, CompactionEntry)
    told = capsys.readouterr().out
    assert f"{entry.tokens_before:,} → {entry.tokens_after:,} tokens of history." in told
    assert f"#{before} in /tree" in told


async def test_it_ends_where_it_is_told_to(tmp_path: Path) -> None:
    summary = "## Goal\nFind out why the redirect loses its query string, and write a test that holds it."
    client = ScriptedClient(lambda request: Reply(LONG if request.tools else summary))
    harness = make_agent(tmp_path, client, window=20_000)
    for number in range(4):
        await harness.say(f"Question {number}")
    third = [entry.id for entry in harness.path() if isinstance(entry, UserEntry)][2]
    assert await compact(harness.agent, up_to=third) == 0
    entry = harness.path()[-1]
    assert isinstance(entry, CompactionEntry)
    assert entry.first_kept_id == third
