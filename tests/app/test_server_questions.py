"""What a person is asked for a server: each field by its kind, wrong values again; going back keeps answers."""

from types import SimpleNamespace
from typing import Any

import pytest

from tui_agent.agent.race.race import RaceOrder
from tui_agent.agent.race.specs import RunnerSpec
from tui_agent.app.frontend import Choice, ModelPick
from tui_agent.app.race_form import ask_for_order
from tui_agent.app.server_questions import ask
from tui_agent.session.effort import Effort
from tui_agent.tools.questions import Answer, FormField, ServerForm, ServerLink

FORM = ServerForm(
    "inn",
    "Who\x1b comes?",
    (
        FormField("name", "Name", "as on the card", required=True),
        FormField("guests", "Guests", kind="integer", default=2, most=8),
        FormField(
            "room", "Room", kind="choice", options=(("q", "quiet"), ("l", "loud")), default="l"
        ),
        FormField("late", "Late", kind="yes_no"),
    ),
)


class UserContact:
    """A controller whose person gives these answers, one after the other."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.said: list[str] = []
        self.frontend = SimpleNamespace(announce=self.said.append)

    async def ask(self, question):
        self.asked.append(question)
        answer = self.answers.pop(0)
        assert (
            answer is None or not isinstance(question, Choice) or answer in dict(question.answers)
        )
        return answer

    def say(self, text, _severity="information"):
        self.said.append(text)


async def test_a_form_is_asked_field_by_field():
    person = UserContact("y", "Ann", "many", "3", "q", "\0skip")
    answer = await ask(person, FORM)
    assert answer == Answer("accept", {"name": "Ann", "guests": 3, "room": "q"})
    assert person.said == ["Guests has to be a whole number."]
    first, name, guests, again, room, late = person.asked
    assert "The MCP server inn asks: Who" in first.question
    assert "\x1b" not in first.question
    assert "as on the card" in name.question
    assert (guests.text, again.text) == ("2", "many")
    assert (room.at, [key for key, _text in room.answers]) == ("l", ["q", "l", "\0skip"])
    assert [key for key, _text in late.answers] == ["yes", "no", "\0skip"]


@pytest.mark.parametrize(
    ("answers", "action"),
    [
        ([None], "cancel"),
        (["n"], "decline"),
        (["y", None, None], "cancel"),
        (["y", "Ann", None, None, "n"], "decline"),
    ],
)
async def test_going_back_from_the_first_field_asks_whether_to_answer(answers, action):
    person = UserContact(*answers)
    assert await ask(person, FORM) == Answer(action)
    assert person.answers == []


async def test_going_back_keeps_what_was_answered():
    person = UserContact("y", "Ann", "3", "q", None, None, None, "Bea", "4", "l", "yes")
    answer = await ask(person, FORM)
    assert answer == Answer("accept", {"name": "Bea", "guests": 4, "room": "l", "late": True})
    _opening, _name, _guests, _room, _late, room, guests, name, *_again = person.asked
    assert (room.at, guests.text, name.text) == ("q", "3", "Ann")


async def test_going_back_selects_that_a_field_was_left_out():
    person = UserContact("y", "Ann", "3", "\0skip", None, "\0skip", "no")
    answer = await ask(person, FORM)
    assert answer == Answer("accept", {"name": "Ann", "guests": 3, "late": False})
    assert person.asked[5].at == "\0skip"


@pytest.mark.parametrize("required", [True, False])
async def test_an_option_may_be_the_empty_string(required):
    options = (("", "none"), (" s", "soup"))
    fields = [
        FormField(name, name, kind="choice", options=options, required=required) for name in "ab"
    ]
    person = UserContact("y", "", None, "", " s")
    answer = await ask(person, ServerForm("inn", "Which?", tuple(fields)))
    assert answer == Answer("accept", {"a": "", "b": " s"})
    assert [question.at for question in person.asked[1:]] == [None, None, "", None]


@pytest.mark.parametrize(
    ("default", "at"),
    [(True, "yes"), ("true", "yes"), ("no", "no"), (False, "no"), ("maybe", None), (None, None)],
)
async def test_the_default_of_a_yes_or_no_field_is_selected(default, at):
    field = FormField("late", "Late", kind="yes_no", default=default, required=True)
    person = UserContact("y", "yes")
    assert await ask(person, ServerForm("inn", "When?", (field,))) == Answer(
        "accept", {"late": True}
    )
    assert person.asked[1].at == at


async def test_a_field_is_titled_once():
    options = (("r", "Red"), ("g", "Green"))
    field = FormField("colours", "Colours", kind="choices", options=options)
    person = UserContact("y", "r")
    await ask(person, ServerForm("inn", "Which?", (field,)))
    assert person.asked[1].question == "inn: Colours · Red, Green"


async def test_a_page_is_named_with_its_address():
    person = UserContact("y")
    assert (
        await ask(person, ServerLink("inn", "Pay.", "https://pay.example/1"))
    ).action == "accept"
    assert person.asked[0].details == "https://pay.example/1"
    assert person.said == ["Open https://pay.example/1"]


HERE = RunnerSpec("anthropic/claude-sonnet-4-5", None, "build")
SAME = RunnerSpec()


async def asked(
    *answers: str | None, task: str = "fix it", runners: int = 3
) -> tuple[RaceOrder | None, UserContact]:
    order, controller = (
        RaceOrder(task, (), (SAME,) * runners, None, "make test"),
        UserContact(*answers),
    )
    found: Any = controller
    price = lambda wanted: f"At most ${len(wanted.specs) * (wanted.cost or 0.4):.2f} for all."  # noqa: E731
    return await ask_for_order(found, order, HERE, ("plan", "yolo"), price, "Race"), controller


@pytest.mark.parametrize(
    ("answers", "specs"),
    [
        ((), (SAME, SAME, SAME)),
        (("add",), (SAME,) * 4),
        (("runner 1", "remove"), (SAME, SAME)),
        (
            ("runner 1", "model", ModelPick("openai/gpt-5-mini")),
            (SAME, RunnerSpec("openai/gpt-5-mini"), SAME),
        ),
        (("runner 1", "model", ModelPick(HERE.model)), (SAME, SAME, SAME)),
        (("runner 2", "effort", "high"), (SAME, SAME, RunnerSpec(effort=Effort.HIGH))),
        (("runner 0", "mode", "yolo"), (RunnerSpec(mode="yolo"), SAME, SAME)),
        (("runner 0", "context", "compacted"), (RunnerSpec(context="compacted"), SAME, SAME)),
        (("runner 0", "context", "pruned"), (RunnerSpec(context="pruned"), SAME, SAME)),
        (("runner 0", "effort", None, "runner 0", None), (SAME, SAME, SAME)),
    ],
)
async def test_runners_are_changed(
    answers: tuple[str | ModelPick | None, ...], specs: tuple[RunnerSpec, ...]
) -> None:
    order, _ = await asked(*answers, "start")
    assert order is not None
    assert order.specs == specs


async def test_task_check_limit_and_rule_are_changed_and_the_price_follows() -> None:
    order, controller = await asked(
        "task",
        "fix all",
        "check",
        "",
        "limit",
        "much",
        "$2",
        "steps",
        "0",
        "3",
        "take",
        "first-green",
        "check",
        None,
        "start",
    )
    assert order == RaceOrder("fix all", (), (SAME,) * 3, None, "", "first-green", 2.0, 3)
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
