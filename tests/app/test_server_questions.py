"""What a person is asked for a server: each field with its kind of question, wrong values again, going back ends it."""

from types import SimpleNamespace
from typing import Any

import pytest

from tui_agent.agent.mcp.questions import Answer, FormField, ServerForm, ServerLink
from tui_agent.app.frontend import Choice
from tui_agent.app.server_questions import ask

FORM = ServerForm(
    "inn",
    "Who\x1b comes?",
    (
        FormField("name", "Name", "as on the card", required=True),
        FormField("guests", "Guests", kind="integer", default=2, most=8),
        FormField("room", "Room", kind="choice", options=(("q", "quiet"), ("l", "loud")), default="l"),
        FormField("late", "Late", kind="yes_no"),
    ),
)


class Person:
    """A controller whose person gives these answers, one after the other."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.said: list[str] = []
        self.frontend = SimpleNamespace(announce=self.said.append)

    async def ask(self, question):
        self.asked.append(question)
        answer = self.answers.pop(0)
        assert answer is None or not isinstance(question, Choice) or answer in dict(question.answers)
        return answer

    def say(self, text, _severity="information"):
        self.said.append(text)


async def test_a_form_is_asked_field_by_field():
    person = Person("accept", "Ann", "many", "3", "q", "\0skip")
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
    ("answers", "action"), [([None], "cancel"), (["decline"], "decline"), (["accept", "Ann", None], "cancel")]
)
async def test_going_back_is_a_cancel_and_declining_is_said(answers, action):
    assert await ask(Person(*answers), FORM) == Answer(action)


async def test_a_page_is_named_with_its_address():
    person = Person("accept")
    assert (await ask(person, ServerLink("inn", "Pay.", "https://pay.example/1"))).action == "accept"
    assert person.asked[0].details == "https://pay.example/1"
    assert person.said == ["Open https://pay.example/1"]
