"""Budgets of a session and a day: asked about when they are used up, kept where nobody is there."""

import io
from pathlib import Path

import pytest

from tests.support.agents import YES, make_agent
from tests.support.headless import run_headless
from tests.support.scripted_client import Reply
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionAsked
from tui_agent.agent.run_budget import RunBudget
from tui_agent.cli.output import ExitCode
from tui_agent.session.records import Purpose
from tui_agent.ui.gauge_reading import budget_words

NO = PermissionAnswer(Decision.DENY)
BUDGETS = [RunBudget(session=1.0), RunBudget(day=1.0)]
ANSWER = Reply("Yes.", cost=0.6)


@pytest.mark.parametrize("budget", BUDGETS)
async def test_a_used_up_budget_asks_and_each_yes_is_for_as_much_again(
    tmp_path: Path, budget: RunBudget
) -> None:
    harness = make_agent(tmp_path, [ANSWER], budget=budget, answer=YES)
    asked = []
    for number in range(5):
        assert (await harness.say(f"question {number}")).reason == "done"
        asked.append(len(harness.of(PermissionAsked)))
    assert asked == [0, 0, 1, 1, 2]
    assert "1.20" in harness.of(PermissionAsked)[0].request.question
    assert "$3.00 of $1.00" in " ".join(harness.agent.allowance.lines())


@pytest.mark.parametrize("budget", BUDGETS)
async def test_a_no_ends_the_run_before_the_request(tmp_path: Path, budget: RunBudget) -> None:
    harness = make_agent(tmp_path, [ANSWER], budget=budget, answer=NO)
    await harness.say("one")
    await harness.say("two")
    ended = await harness.say("three")
    assert (ended.reason, ended.budget) == ("budget", "cost")
    assert len(harness.client.requests) == 2


async def test_without_anybody_to_ask_it_stops_with_its_exit_code(tmp_path: Path) -> None:
    harness = make_agent(
        tmp_path, [Reply("Yes.", cost=2.0)], budget=RunBudget(day=1.0), answer=None
    )
    assert await run_headless(harness, "one") is ExitCode.DONE
    err = io.StringIO()
    again = make_agent(
        tmp_path, [ANSWER], budget=RunBudget(day=1.0), answer=None, store=harness.store
    )
    assert await run_headless(again, "two", err=err) is ExitCode.BUDGET
    assert "budget.day" in err.getvalue()
    assert again.client.requests == []


async def test_what_is_spent_today_is_known_between_requests_too(tmp_path: Path) -> None:
    budget = RunBudget(session=9.0, day=5.0)
    before = make_agent(tmp_path, [ANSWER], budget=budget)
    await before.say("one")
    harness = make_agent(tmp_path, [ANSWER], budget=budget, store=before.store)
    assert budget_words(harness.agent.allowance) == (" of $9.00", "")
    await harness.agent.warm()
    assert budget_words(harness.agent.allowance) == (" of $9.00", "$0.60 of $5.00 today")
    await harness.say("two")
    assert budget_words(harness.agent.allowance) == (" of $9.00", "$1.20 of $5.00 today")
    harness.session.add_cost(0.3, Purpose.GOALS)
    assert budget_words(harness.agent.allowance) == (" of $9.00", "$1.50 of $5.00 today")
    assert harness.agent.allowance.spent("day") == pytest.approx(1.5), "calls beside it count too"


def test_without_budgets_the_status_line_says_nothing_of_them(tmp_path: Path) -> None:
    assert budget_words(make_agent(tmp_path, [ANSWER]).agent.allowance) == ("", "")
