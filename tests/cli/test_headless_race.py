"""Races without a screen: ``-p PROMPT --race 3 --check COMMAND --pick first-green``."""

import io
import json
from pathlib import Path

import pytest

from tests.support.agents import Harness
from tests.support.races import RacingClient, racing_agent, runs, state_of, writes
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.app.race_commands import RaceWish
from tui_agent.app.services import OpenRequest
from tui_agent.cli.headless import HeadlessRun
from tui_agent.cli.output import ExitCode
from tui_agent.context.request import ModelRequest
from tui_agent.errors import CommandError
from tui_agent.session.entries import RaceEntry


def play(number: int, step: int) -> Reply:
    if step == 0:
        return Reply(
            calls=(writes("n.txt", f"{number}\n"), runs(f"test {number} = 2 && touch ok; true")),
            cost=0.01,
        )
    return Reply("Done.")


async def race(
    harness: Harness, wish: RaceWish, session: str | None = None, *, as_json: bool = False
) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    run = HeadlessRun(harness.services(), as_json=as_json, out=out, err=err)
    await run.open(OpenRequest(session))
    code = await run.race(wish)
    return code, out.getvalue(), err.getvalue()


async def test_the_best_is_taken_and_told(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, RacingClient(play), answer=None)
    code, out, err = await race(
        harness, RaceWish("Go.", "3", check="test -f ok", pick="best", cost=0.5)
    )
    assert code == ExitCode.DONE, err
    assert "at most $0.50 each, $1.50 together" in err
    assert (tmp_path / "project" / "n.txt").read_text() == "2\n"
    assert out.count("✗ failed") == 2
    assert "← taken" in out


async def test_nothing_green_takes_nothing(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, RacingClient(play), answer=None)
    before = state_of(tmp_path / "project")
    code, _out, err = await race(harness, RaceWish("Go.", "2", check="false", pick="first-green"))
    assert code == ExitCode.FAILED
    assert "No changes were taken" in err
    assert state_of(tmp_path / "project") == before


async def test_each_runner_is_told_in_json(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, RacingClient(play), answer=None)
    code, out, _err = await race(harness, RaceWish("Go.", "2", check=""), as_json=True)
    lines = [json.loads(line) for line in out.splitlines()]
    kinds = [line["type"] for line in lines]
    assert code == ExitCode.DONE
    assert kinds.index("race_started") < kinds.index("runner_changed") < kinds.index("race_ended")
    states = {
        line["number"]: line["runner"]["state"]
        for line in lines
        if line["type"] == "runner_changed"
    }
    assert states == {1: "done", 2: "done"}
    last = harness.path()[-1]
    assert isinstance(last, RaceEntry)
    assert last.taken is None


def knows(request: ModelRequest) -> Reply:
    """Say whether the word is in what was sent."""
    if not request.tools:
        return Reply("## Goal\nTalk.")
    text = "\n".join(message.text for message in request.messages)
    return Reply("I see the word." if "xylophone" in text else "I see no word.")


async def what_if(tmp_path: Path, runners: str) -> tuple[int, str, str]:
    harness = racing_agent(tmp_path, ScriptedClient(knows), answer=None)
    await harness.say("The word is xylophone.")
    return await race(harness, RaceWish("What is the word?", runners), harness.session.id)


async def test_runners_with_other_contexts_are_named_by_them_and_their_answers_printed(
    tmp_path: Path,
) -> None:
    code, out, err = await what_if(tmp_path, "whole; without #2; compacted")

    assert code == ExitCode.DONE, err
    assert "Each starts with at most" in err
    answers = out.split("\n\n")[1:]
    assert [answer.strip().splitlines()[0] for answer in answers] == [
        "whole",
        "without #2",
        "compacted",
    ]
    assert "I see the word." in answers[0]
    assert "I see no word." in answers[1]
    assert "I see" not in answers[2], (
        "an earlier answer is not that of a runner which could not begin"
    )
    assert "history" in answers[2].lower()


@pytest.mark.parametrize("entry", [1, 99])
async def test_what_the_model_is_not_sent_can_not_be_left_out(tmp_path: Path, entry: int) -> None:
    with pytest.raises(CommandError, match=f"#{entry} is not in the context where the race begins"):
        await what_if(tmp_path, f"whole; without #{entry}")
