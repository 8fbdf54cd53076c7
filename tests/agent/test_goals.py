"""A goal: judged when the model stops, worked towards until it is reached, given up where nothing is done."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.test_race_commands import controller_of, do
from tests.support.agents import Harness, make_agent
from tests.support.headless import run_headless
from tests.support.scripted_client import Call, Reply, call
from tui_agent.agent.goals import IDLE_ROUNDS, MAX_ROUNDS, read_judgement
from tui_agent.cli.output import ExitCode
from tui_agent.context.request import ModelRequest, request_bytes
from tui_agent.session.entries import UserEntry

LOOK = Reply(calls=(Call("ls", "{}"),))


def is_judge(request: ModelRequest) -> bool:
    return not request.tools


class Script:
    """A model that works as told, with a judge beside it."""

    def __init__(self, work: list[Reply], judgements: list[str]) -> None:
        self.work = work
        self.judgements = judgements
        self.judged: list[str] = []

    def __call__(self, request: ModelRequest) -> Reply:
        if is_judge(request):
            self.judged.append(request_bytes(request).decode())
            return Reply(self.judgements.pop(0) if self.judgements else "no\nIt is not there.")
        return self.work.pop(0) if self.work else Reply("Done.")


def start(tmp_path: Path, script: Script) -> Harness:
    return make_agent(tmp_path, script, small_model="test/small")


async def test_it_goes_on_until_the_goal_is_reached(tmp_path: Path) -> None:
    script = Script(
        [LOOK, Reply("All green."), LOOK, Reply("Now really.")],
        ["no\nNobody ran the tests.", "Yes.\nThe tests passed."],
    )
    harness = start(tmp_path, script)
    controller = await controller_of(harness)
    assert await do(controller, "goal", "the tests are green")
    ended = await harness.ended()
    assert ended.reason == "done"
    assert len(script.judged) == 2
    assert "the tests are green" in script.judged[0]
    assert "All green." in script.judged[0]
    assert "ls" in script.judged[0], "the judge sees what was done"
    sent = [entry.text for entry in harness.entries(UserEntry)]
    assert "What is missing: Nobody ran the tests." in sent[-1]
    assert "The goal is reached: The tests passed." in harness.notices()
    assert harness.agent.goals.words == ""


async def test_it_gives_up_where_nothing_is_done(tmp_path: Path) -> None:
    script = Script([LOOK], [])
    harness = start(tmp_path, script)
    harness.agent.goals.begin("the moon is blue")
    await harness.say("go")
    assert len(script.judged) == IDLE_ROUNDS
    assert harness.agent.goals.ended.startswith("The goal is not reached: 3 rounds brought")


async def test_it_gives_up_where_each_round_looks_at_the_same(tmp_path: Path) -> None:
    script = Script([LOOK, Reply("Done.")] * (MAX_ROUNDS + 2), [])
    harness = start(tmp_path, script)
    harness.agent.goals.begin("the moon is blue")
    await harness.say("go")
    assert len(script.judged) == IDLE_ROUNDS


async def test_it_gives_up_after_many_rounds(tmp_path: Path) -> None:
    writes = [
        Reply(calls=(call("write", path=f"{number}.txt", content="blue"),))
        for number in range(MAX_ROUNDS + 2)
    ]
    work = [reply for write in writes for reply in (write, Reply("Done."))]
    script = Script(work, [])
    harness = start(tmp_path, script)
    harness.agent.goals.begin("the moon is blue")
    await harness.say("go")
    assert len(script.judged) == MAX_ROUNDS
    assert f"after {MAX_ROUNDS} rounds" in harness.agent.goals.ended


async def test_escape_ends_it(tmp_path: Path) -> None:
    script = Script([Reply("I wait.", hang=True)], [])
    harness = start(tmp_path, script)
    harness.agent.goals.begin("the moon is blue")
    harness.agent.submit("go")
    await harness.until(lambda: harness.agent.live is not None and harness.agent.live.text != "")
    harness.agent.interrupt()
    await harness.ended()
    assert harness.agent.goals.goal == ""
    assert script.judged == []


async def test_the_command_says_where_it_stands(tmp_path: Path) -> None:
    harness = start(tmp_path, Script([], ["yes\nIt is."]))
    controller = await controller_of(harness)
    said = controller.frontend.words  # type: ignore[attr-defined]
    assert await do(controller, "goal")
    assert said[-1].startswith("There is no goal.")
    harness.agent.goals.begin("the moon is blue")
    assert await do(controller, "goal")
    assert said[-1] == f"The goal, round 1 of {MAX_ROUNDS}: the moon is blue"
    assert await do(controller, "goal", "off")
    assert harness.agent.goals.goal == ""


@pytest.mark.parametrize(
    ("judgement", "code"), [("yes\nIt is.", ExitCode.DONE), ("", ExitCode.STOPPED)]
)
async def test_without_a_screen_a_missed_goal_is_no_success(
    tmp_path: Path, judgement: str, code: ExitCode
) -> None:
    harness = start(tmp_path, Script([LOOK], [judgement] if judgement else []))
    harness.agent.goals.begin("the moon is blue")
    out, err = io.StringIO(), io.StringIO()
    assert await run_headless(harness, "go", out=out, err=err) == code
    assert ("The goal is not reached" in err.getvalue()) is (code is ExitCode.STOPPED)


@pytest.mark.parametrize(
    ("text", "reached", "reason"),
    [
        ("yes\nThe tests passed.", True, "The tests passed."),
        ("**No.**\n- Two tests fail.", False, "Two tests fail."),
        ("No, two tests fail.", False, "two tests fail"),
        ("Perhaps.", False, "Perhaps."),
        ("", False, "the judging model said nothing"),
        ("yes", True, "no reason given"),
    ],
)
def test_what_a_judge_says(text: str, reached: bool, reason: str) -> None:
    judged = read_judgement(text)
    assert (judged.is_reached, judged.reason) == (reached, reason)


@given(st.text(max_size=200))
def test_any_answer_of_a_judge_is_read(text: str) -> None:
    judged = read_judgement(text)
    if judged.is_reached:
        assert text.strip(" \t\n*#`>-").lower().startswith("yes")


@pytest.mark.parametrize("judgement", ["yes\nIt is.", "no\nIt is not."])
async def test_a_goal_that_is_replaced_while_it_is_judged_is_not_the_one_judged(
    tmp_path: Path, judgement: str
) -> None:
    script = Script([LOOK], [judgement, "yes\nBlue."])
    harness = start(tmp_path, script)
    goals = harness.agent.goals

    def play(request: ModelRequest) -> Reply:
        if is_judge(request) and not script.judged:
            goals.begin("the moon is blue")
        return script(request)

    harness.client.script = play
    goals.begin("the tests are green")
    await harness.say("go")
    assert "the moon is blue" in script.judged[1]
    assert harness.notices() == ["The goal is reached: Blue."]


async def test_a_goal_that_is_dropped_while_it_is_judged_sends_nobody_back(tmp_path: Path) -> None:
    script = Script([LOOK], ["no\nIt is not."])
    harness = start(tmp_path, script)

    def play(request: ModelRequest) -> Reply:
        if is_judge(request):
            harness.agent.goals.drop()
        return script(request)

    harness.client.script = play
    harness.agent.goals.begin("the tests are green")
    await harness.say("go")
    assert [entry.text for entry in harness.entries(UserEntry)] == ["go"]
    assert harness.notices() == []
