"""Budgets of a run: money, tokens and time, counted with what subagents use up, and everything kept."""

import io
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_subagents import branches, is_child, task, with_subagents
from tests.support.agents import MODEL, make_agent
from tests.support.headless import run_headless
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.channel import Journal
from tui_agent.agent.events import CostKnown, RunEnded, TitleChanged
from tui_agent.agent.run_budget import BudgetMeter, RunBudget, Used
from tui_agent.agent.small_questions import MAX_TOKENS, ask_small_model
from tui_agent.agent.titles import clean_title
from tui_agent.cli.output import ExitCode
from tui_agent.context.request import ModelRequest
from tui_agent.model.demo import DEMO_MODEL
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import AssistantEntry, Usage

LOOK = Call("ls", '{"path": "."}')
STEP = Reply("Looking.", calls=(LOOK,), usage=Usage(input=1_000, output=50), cost=0.04)


async def test_a_run_stops_before_the_request_that_money_is_gone_for(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [STEP], budget=RunBudget(cost=0.10))
    ended = await harness.say("go")
    assert (ended.reason, ended.budget, ended.steps) == ("budget", "cost", 4)
    assert ended.error == "Stopped: $0.1200 of the budget of $0.1000 is spent."
    assert harness.kinds()[-1] == "tool_result", "what was asked for last was still done"
    assert sum(isinstance(entry, AssistantEntry) for entry in harness.path()) == 3


async def test_with_what_was_used_before_one_budget_is_for_all_runs(tmp_path: Path) -> None:
    meter = BudgetMeter(before=Used(cost=0.01, tokens=10))
    harness = make_agent(
        tmp_path, [STEP, STEP, Reply("Done.", cost=0.01)], budget=RunBudget(cost=0.08), meter=meter
    )
    assert (await harness.say("go")).budget == "cost"
    sent = len(harness.client.requests)
    ended = await harness.say("go on")
    assert (ended.budget, len(harness.client.requests)) == ("cost", sent)
    assert "$0.0900 of the budget of $0.0800 is spent" in str(ended.error)


async def test_a_request_that_tokens_do_not_suffice_for_is_not_sent(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [STEP], budget=RunBudget(tokens=1))
    ended = await harness.say("go")
    assert (ended.reason, ended.budget, harness.client.requests) == ("budget", "tokens", [])
    assert ended.error.startswith(
        "Stopped: 0 of 1 tokens are used, and the next request takes about "
    )


async def test_a_model_of_unknown_price_keeps_no_budget_of_money(tmp_path: Path) -> None:
    harness = make_agent(
        tmp_path, [STEP], budget=RunBudget(cost=5), meter=BudgetMeter(lambda _model: False)
    )
    ended = await harness.say("go")
    assert (ended.budget, harness.client.requests) == ("cost", [])
    assert "is unknown" in str(ended.error)


async def test_time_stops_an_answer_in_the_middle_and_keeps_it(tmp_path: Path) -> None:
    harness = make_agent(
        tmp_path, [Reply("As far as it came.", hang=True)], budget=RunBudget(seconds=0.3)
    )
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
    [
        (RunBudget(cost=0.05), ExitCode.BUDGET, "cost"),
        (RunBudget(seconds=0.3), ExitCode.TIMEOUT, "time"),
    ],
)
async def test_a_run_without_a_screen_says_so_and_has_an_exit_code_for_it(
    tmp_path: Path, budget: RunBudget, code: ExitCode, kind: str
) -> None:
    script: Any = [STEP] if kind == "cost" else [Reply("Slow.", hang=True)]
    harness = make_agent(tmp_path, script, answer=None, budget=budget)
    err = io.StringIO()
    assert await run_headless(harness, "go", err=err) == code
    assert "Stopped: " in err.getvalue()
    assert "tui-agent -c" in err.getvalue()
    assert harness.of(RunEnded)[-1].budget == kind


SMALL = "test/small"


def script(title: Reply):
    def answer(request: ModelRequest) -> Reply:
        return title if request.max_output_tokens == MAX_TOKENS else Reply("Done.")

    return answer


def asked(client: ScriptedClient) -> list[ModelRequest]:
    return [request for request in client.requests if request.max_output_tokens == MAX_TOKENS]


async def test_a_small_model_is_asked_once_after_the_first_run(tmp_path: Path) -> None:
    client = ScriptedClient(script(Reply('"Fix login redirect."', cost=0.25)))
    harness = make_agent(tmp_path, client, titles=True, small_model=SMALL)
    await harness.say("the login redirect loses its query\nplease fix it")
    assert harness.session.info.title == "the login redirect loses its query"
    await harness.until(lambda: harness.session.info.title == "Fix login redirect")
    await harness.say("thanks")
    assert [request.model for request in asked(client)] == [SMALL]
    (request,) = asked(client)
    assert "please fix it" in request.messages[-1].text
    assert request.tools == ()
    assert harness.of(TitleChanged) == [TitleChanged("Fix login redirect")]
    assert harness.agent.session_cost() == 0.25
    assert CostKnown() in harness.of(CostKnown)
    assert harness.kinds().count("assistant") == 2


async def test_without_a_small_model_the_conversations_is_asked(tmp_path: Path) -> None:
    client = ScriptedClient(script(Reply("A title")))
    harness = make_agent(tmp_path, client, titles=True)
    await harness.say("hello there")
    await harness.until(lambda: harness.session.info.title == "A title")
    assert [request.model for request in asked(client)] == [MODEL]


async def test_a_title_of_the_users_is_never_replaced(tmp_path: Path) -> None:
    harness = make_agent(
        tmp_path, script(Reply("A title", hang=False)), titles=True, small_model=SMALL
    )
    harness.agent.submit("hello there")
    harness.session.set_title("Mine")
    await harness.ended()
    await harness.until(lambda: harness.client.closed == 2)
    await harness.agent.aclose()
    assert harness.session.info.title == "Mine"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(error=ModelError(ErrorKind.RATE_LIMIT, "no")),
        Reply("Half a tit", finish="length"),
        Reply("Sure!\nHere is a title:"),
    ],
)
async def test_failure_is_silent_and_leaves_the_first_message(tmp_path: Path, reply: Reply) -> None:
    client = ScriptedClient(script(reply))
    harness = make_agent(tmp_path, client, titles=True, small_model=SMALL)
    assert (await harness.say("hello there")).reason == "done"
    await harness.until(lambda: client.closed == 2)
    assert len(asked(client)) == 1
    assert harness.session.info.title == "hello there"
    assert harness.of(TitleChanged) == []


async def test_closing_does_not_wait_for_a_title(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, script(Reply("A", hang=True)), titles=True, small_model=SMALL)
    await harness.say("hello there")
    await harness.until(harness.client.hanging.is_set)
    await harness.agent.aclose()
    assert harness.session.info.title == "hello there"


@pytest.mark.parametrize("arguments", [{"titles": False}, {"titles": True, "model": DEMO_MODEL}])
async def test_nothing_is_asked_where_it_is_not_wanted(
    tmp_path: Path, arguments: dict[str, object]
) -> None:
    client = ScriptedClient(script(Reply("A title")))
    harness = make_agent(tmp_path, client, small_model=SMALL, **arguments)
    await harness.say("hello there")
    await harness.agent.aclose()
    assert asked(client) == []


@pytest.mark.parametrize(
    ("answer", "title"),
    [("  “Fix the race.” \n", "Fix the race"), ("one\ntwo", ""), ("bad\x1b[31m", "")],
)
def test_what_counts_as_a_title(answer: str, title: str) -> None:
    assert clean_title(answer) == title


async def test_a_question_outside_the_conversation_counts(tmp_path: Path) -> None:
    meter = BudgetMeter()
    harness = make_agent(tmp_path, [Reply("Yes.", cost=0.04)], meter=meter)
    agent = harness.agent
    journal = Journal(agent.session, agent.channel)
    answer = await ask_small_model(
        "Is it so?", "title", journal, agent.ports, model=agent.model, seconds=5
    )
    assert answer.text == "Yes."
    assert meter.cost == pytest.approx(0.04)
