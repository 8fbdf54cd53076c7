"""Commands in a run without a screen: what the controller can do works there too, and nobody is waited for."""

import io
import json
import logging
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.headless import run_headless
from tests.support.real_stage import SUMMARY
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.diagnostics.settings import DiagnosticSettings
from tui_agent.app.commands import command_table
from tui_agent.app.controller import READ_ONLY
from tui_agent.app.status_commands import status_lines
from tui_agent.cli.output import ExitCode
from tui_agent.errors import CommandError
from tui_agent.session.entries import CompactionEntry, EffortChangeEntry, UserEntry
from tui_agent.session.session import Session
from tui_agent.session.store import Store

ARGUMENTS = {
    "export": "markdown",
    "rename": "another title",
    "label": "here",
    "import": "nothing.jsonl",
}
"""What is written after a command; the others are run without anything."""


@dataclass
class Place:
    """An agent that has answered twice."""

    harness: Harness
    out: io.StringIO = field(default_factory=io.StringIO)
    err: io.StringIO = field(default_factory=io.StringIO)

    async def run(self, message: str, piped: str = "", *, as_json: bool = False) -> int:
        self.out, self.err = io.StringIO(), io.StringIO()
        return await run_headless(
            self.harness, message, piped, out=self.out, err=self.err, as_json=as_json
        )


@pytest.fixture
async def place(tmp_path: Path) -> Place:
    replies = [
        Reply("First answer."),
        Reply("Second answer."),
        Reply("## Goal\n\nShort.\n"),
        Reply("Once more."),
    ]
    made = Place(make_agent(tmp_path, ScriptedClient(replies), answer=None))
    for text in ("one", "two"):
        assert await made.run(text) == ExitCode.DONE
    return made


async def test_mode_effort_and_title_are_kept(place: Place) -> None:
    assert await place.run("/mode plan") == ExitCode.DONE
    assert place.harness.agent.mode == "plan"
    assert await place.run("/effort high") == ExitCode.DONE
    assert "Effort high from the next request on." in place.err.getvalue()
    assert isinstance(place.harness.path()[-1], EffortChangeEntry)
    assert await place.run("/rename", "A better title") == ExitCode.DONE
    assert place.harness.session.info.title == "A better title"


@pytest.mark.parametrize(
    "message", ["/octest z", "/octest", "/modle plan", "/octest\nover two lines"]
)
async def test_a_command_that_there_is_not_is_never_sent(place: Place, message: str) -> None:
    before = place.harness.path()
    with pytest.raises(
        CommandError, match=f"There is no command {message.split(maxsplit=1)[0]}"
    ) as refused:
        await place.run(message)
    assert ("type a space first" in str(refused.value)) is (len(message.split()) > 1)
    assert place.harness.path() == before


@pytest.mark.parametrize(
    "message", ["/usr/lib/x.py is broken", " /octest z", "/ something", "/usr/lib/x.py"]
)
async def test_paths_and_what_follows_a_space_are_messages(place: Place, message: str) -> None:
    assert await place.run(message) == ExitCode.DONE
    asked = [entry for entry in place.harness.path() if isinstance(entry, UserEntry)][-1]
    assert message.strip() in str(asked.parts[0])


async def test_a_report_is_the_output(place: Place) -> None:
    assert await place.run("/help") == ExitCode.DONE
    assert "/undo" in place.out.getvalue()
    assert "change the colours" not in place.out.getvalue()
    assert "(f5)" not in place.out.getvalue()
    assert await place.run("/cost", as_json=True) == ExitCode.DONE
    rows = [json.loads(line) for line in place.out.getvalue().splitlines()]
    assert [row["type"] for row in rows] == ["session", "page"]
    assert rows[1]["title"] == "Cost of this session"


@pytest.mark.parametrize("wanted", ["context", "/CONTEXT"])
async def test_help_on_a_command_is_about_it_only(place: Place, wanted: str) -> None:
    assert await place.run(f"/help {wanted}") == ExitCode.DONE
    rows = [line.split()[0] for line in place.out.getvalue().splitlines() if "/" in line]
    assert rows == ["/context"]


async def test_help_on_words_has_the_commands_that_they_describe(place: Place) -> None:
    assert await place.run("/help revert files") == ExitCode.DONE
    assert "/undo" in place.out.getvalue()
    assert "/cost" not in place.out.getvalue()
    assert await place.run("/help zebra") != ExitCode.DONE


async def test_a_compaction_is_told_in_the_numbers_of_its_entry(tmp_path: Path) -> None:
    long = "Fine. " + " ".join(f"word{number}" for number in range(400))
    client = ScriptedClient(lambda request: Reply(long if request.tools else SUMMARY))
    harness = make_agent(tmp_path, client, window=20_000, answer=None)
    for number in range(6):
        await harness.say(f"Question {number}")
    place, before = Place(harness), len(harness.path())
    assert await place.run("/compact --preview") == ExitCode.DONE
    assert "Summarised  " in place.out.getvalue()
    assert len(harness.path()) == before
    third = [entry.id for entry in harness.path() if isinstance(entry, UserEntry)][2]
    assert await place.run(f"/compact #{third}") == ExitCode.DONE
    entry = harness.path()[-1]
    assert isinstance(entry, CompactionEntry)
    assert entry.first_kept_id == third
    assert (
        f"{entry.tokens_before:,} → {entry.tokens_after:,} tokens of history"
        in place.err.getvalue()
    )


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("/undoo", "Did you mean /undo?"),
        ("/mode nonsense", "There is no mode"),
        ("/label", "This run is non-interactive"),
        ("/effort", "The answers are: default"),
        ("/permissions", "only the full-screen program shows this"),
        ("/context --at", "--at needs a value"),
        ("/context --window 0", "--window needs a number of at least 1"),
        ("/sessions 1234", "tui-agent -r 1234"),
    ],
)
async def test_what_can_not_be_done_is_a_sentence_and_a_failure(
    place: Place, message: str, why: str
) -> None:
    entries = len(place.harness.path())
    try:
        code = await place.run(message)
        told = place.err.getvalue()
    except Exception as error:  # noqa: BLE001 - the edge around a run makes a sentence of it
        code, told = ExitCode.FAILED, str(error)
    assert (code, len(place.harness.path())) == (ExitCode.FAILED, entries)
    assert why in told


@pytest.mark.parametrize("is_read_only", [False, True], ids=["writable", "read only"])
async def test_every_command_ends(
    place: Place, caplog: pytest.LogCaptureFixture, *, is_read_only: bool
) -> None:
    harness = place.harness
    if is_read_only:
        harness.session.hold()
        with Store(harness.store.path) as store:
            Session(store, harness.session.id, estimate=lambda _entry: 1).hold(take_over=True)
        harness.session.check_for_take_over()
        assert await place.run("/compact") == ExitCode.FAILED
        assert READ_ONLY in place.err.getvalue()
    for command in command_table():
        if not command.needs_screen:
            line = f"/{command.name} {ARGUMENTS.get(command.name, '')}".rstrip()
            assert await place.run(line) in {ExitCode.DONE, ExitCode.FAILED, 3}, line
    assert [record.exc_info for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_diagnostics_are_told_and_switched(tmp_path: Path) -> None:
    settings = DiagnosticSettings(commands={"*.txt": "check {files}"})
    harness = make_agent(tmp_path, ScriptedClient([Reply("Done.")]), diagnostics=settings)
    out, err = io.StringIO(), io.StringIO()

    async def do(command: str, code: int = 0) -> None:
        assert await run_headless(harness, command, out=out, err=err) == code

    await do("/diagnostics")
    assert "Edits are checked." in out.getvalue()
    assert "*.txt: check {files}" in out.getvalue()
    assert "*.py *.pyi: mypy" in out.getvalue()
    await do("/diagnostics off")
    assert not harness.agent.tools.diagnostics.enabled
    assert "diagnostics.enabled = false in the settings" in err.getvalue()
    assert any(
        "diagnostics" in line and "off" in line for line in status_lines(harness.agent, "none")
    )
    await do("/diagnostics on")
    assert harness.agent.tools.diagnostics.enabled
    await do("/diagnostics maybe", 1)
    assert "Use /diagnostics" in err.getvalue()
    await do("/diff nonsense", 1)
    assert "Use /diff" in err.getvalue()
