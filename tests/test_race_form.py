"""What a race is to be like is asked one by one."""

from typing import Any

import pytest

from tests.app.test_server_questions import Person
from tui_agent.agent.race.race import RaceOrder
from tui_agent.agent.race.specs import RunnerSpec
from tui_agent.app.frontend import Choice
from tui_agent.app.race_form import ask_for_order
from tui_agent.session.effort import Effort

HERE = RunnerSpec("anthropic/claude-sonnet-4-5", None, "build")
SAME = RunnerSpec()


async def asked(*answers: str | None, task: str = "fix it", runners: int = 3) -> tuple[RaceOrder | None, Person]:
    order, controller = RaceOrder(task, (), (SAME,) * runners, None, "make test"), Person(*answers)
    found: Any = controller
    price = lambda wanted: f"At most ${len(wanted.specs) * (wanted.cost or 0.4):.2f} for all."  # noqa: E731
    return await ask_for_order(found, order, HERE, ("plan", "yolo"), price, "Race"), controller


@pytest.mark.parametrize(
    ("answers", "specs"),
    [
        ((), (SAME, SAME, SAME)),
        (("add",), (SAME,) * 4),
        (("runner 1", "remove"), (SAME, SAME)),
        (("runner 1", "model", "openai/gpt-5-mini"), (SAME, RunnerSpec("openai/gpt-5-mini"), SAME)),
        (("runner 1", "model", HERE.model), (SAME, SAME, SAME)),
        (("runner 2", "effort", "high"), (SAME, SAME, RunnerSpec(effort=Effort.HIGH))),
        (("runner 0", "mode", "yolo"), (RunnerSpec(mode="yolo"), SAME, SAME)),
        (("runner 0", "context", "compacted"), (RunnerSpec(context="compacted"), SAME, SAME)),
        (("runner 0", "effort", None, "runner 0", None), (SAME, SAME, SAME)),
    ],
)
async def test_runners_are_changed(answers: tuple[str | None, ...], specs: tuple[RunnerSpec, ...]) -> None:
    order, _ = await asked(*answers, "start")
    assert order is not None
    assert order.specs == specs


async def test_task_check_limit_and_rule_are_changed_and_the_price_follows() -> None:
    order, controller = await asked(
        "task", "fix all", "check", "", "limit", "much", "$2", "take", "first-green", "check", None, "start"
    )
    assert order == RaceOrder("fix all", (), (SAME,) * 3, None, "", "first-green", 2.0)
    assert isinstance(controller.asked[-1], Choice)
    assert controller.asked[-1].details == "At most $6.00 for all."
    assert controller.asked[-1].at == "check", "the cursor stays where it was"


async def test_a_race_has_two_to_eight_runners_and_a_task() -> None:
    _, controller = await asked("start", runners=8)
    assert isinstance(controller.asked[0], Choice)
    assert "add" not in dict(controller.asked[0].answers)
    _, controller = await asked("runner 0", None, "start", runners=2)
    assert isinstance(controller.asked[1], Choice)
    assert "remove" not in dict(controller.asked[1].answers)
    assert (await asked(None, task=""))[0] is None
    order, _ = await asked("do it", "start", task="")
    assert order is not None
    assert order.prompt == "do it"
    assert (await asked("add", None))[0] is None, "Escape begins nothing"
