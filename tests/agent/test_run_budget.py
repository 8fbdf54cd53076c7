"""Budgets of a run: money, tokens and time, counted with what subagents use up, and everything kept."""

import io
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_subagents import branches, is_child, task, with_subagents
from tests.support.agents import make_agent
from tests.support.headless import run_headless
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.events import RunEnded
from tui_agent.agent.run_budget import BudgetMeter, RunBudget, Used
from tui_agent.cli.output import ExitCode
from tui_agent.context.request import ModelRequest
from tui_agent.session.entries import AssistantEntry, Usage

LOOK = Call("ls", '{"path": "."}')
STEP = Reply("Looking.", calls=(LOOK,), usage=Usage(input=1_000, output=50), cost=0.04)


async def test_a_run_stops_before_the_request_that_money_is_gone_for(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, ScriptedClient([STEP]), budget=RunBudget(cost=0.10))
    ended = await harness.say("go")
    assert (ended.reason, ended.budget, ended.steps) == ("budget", "cost", 4)
    assert ended.error == "Stopped: $0.1200 of $0.1000 are spent."
    assert harness.kinds()[-1] == "tool_result", "what was asked for last was still done"
    assert sum(isinstance(entry, AssistantEntry) for entry in harness.path()) == 3


async def test_with_what_was_used_before_one_budget_is_for_all_runs(tmp_path: Path) -> None:
    client = ScriptedClient([STEP, STEP, Reply("Done.", cost=0.01)])
    meter = BudgetMeter(before=Used(cost=0.01, tokens=10))
    harness = make_agent(tmp_path, client, budget=RunBudget(cost=0.08), meter=meter)
    assert (await harness.say("go")).budget == "cost"
    sent = len(client.requests)
    ended = await harness.say("go on")
    assert (ended.budget, len(client.requests)) == ("cost", sent)
    assert "$0.0900 of $0.0800 are spent" in str(ended.error)


async def test_a_request_that_tokens_do_not_suffice_for_is_not_sent(tmp_path: Path) -> None:
    client = ScriptedClient([STEP])
    harness = make_agent(tmp_path, client, budget=RunBudget(tokens=1))
    ended = await harness.say("go")
    assert (ended.reason, ended.budget, client.requests) == ("budget", "tokens", [])
    assert ended.error is not None
    assert ended.error.startswith("Stopped: 0 of 1 tokens are used, and the next request takes about ")


async def test_a_model_of_unknown_price_keeps_no_budget_of_money(tmp_path: Path) -> None:
    client = ScriptedClient([STEP])
    harness = make_agent(tmp_path, client, budget=RunBudget(cost=5), meter=BudgetMeter(lambda _model: False))
    ended = await harness.say("go")
    assert (ended.budget, client.requests) == ("cost", [])
    assert "is not known" in str(ended.error)


async def test_time_stops_an_answer_in_the_middle_and_keeps_it(tmp_path: Path) -> None:
    client = ScriptedClient([Reply("As far as it came.", hang=True)])
    harness = make_agent(tmp_path, client, budget=RunBudget(seconds=0.3))
    ended = await harness.say("go")
    assert (ended.reason, ended.budget) == ("budget", "time")
    last = harness.path()[-1]
    assert isinstance(last, AssistantEntry)
    assert (last.text, last.interrupted) == ("As far as it came.", True)


async def test_what_subagents_use_up_counts(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> Reply:
        if is_child(request):
            return STEP
        return Reply(calls=(task("explore", "look"),), cost=0.01)

    harness = with_subagents(tmp_path, ScriptedClient(script), budget=RunBudget(cost=0.10))
    ended = await harness.say("go")
    assert (ended.reason, ended.budget) == ("budget", "cost")
    assert ended.steps == 2, "the subagent was stopped, and its agent before its next request"
    assert sum(isinstance(entry, AssistantEntry) for entry in branches(harness)[0].path()) == 3


@pytest.mark.parametrize(
    ("budget", "code", "kind"),
    [(RunBudget(cost=0.05), ExitCode.BUDGET, "cost"), (RunBudget(seconds=0.3), ExitCode.TIMEOUT, "time")],
)
async def test_a_run_without_a_screen_says_so_and_has_an_exit_code_for_it(
    tmp_path: Path, budget: RunBudget, code: ExitCode, kind: str
) -> None:
    script: Any = [STEP] if kind == "cost" else [Reply("Slow.", hang=True)]
    harness = make_agent(tmp_path, ScriptedClient(script), answer=None, budget=budget)
    err = io.StringIO()
    assert await run_headless(harness, "go", err=err) == code
    assert "Stopped: " in err.getvalue()
    assert "tui-agent -c" in err.getvalue()
    assert harness.of(RunEnded)[-1].budget == kind
