"""What servers ask a person, by a form or a page; nobody is no answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

import pytest
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel, Field

from tests.support.agents import make_agent
from tests.support.mcp_place import Place, served
from tests.support.scripted_client import Reply
from tui_agent.errors import ToolError
from tui_agent.tools.questions import Answer, FormField, ServerForm, ServerLink, question_of
from tui_agent.web.callback import free_port


class Booking(BaseModel):
    name: str = Field(description="Who comes.", min_length=2)
    guests: int = Field(default=2, ge=1, le=8)
    room: Literal["quiet", "loud"] = "quiet"
    late: bool = False


def asking() -> MCPServer:
    server = MCPServer("inn", log_level="ERROR")

    @server.tool()
    async def book(ctx: Context) -> str:
        result = await ctx.elicit("Who is it for?", Booking)
        return f"{result.action}: {getattr(result, 'data', None)!r}"

    @server.tool()
    async def pay(ctx: Context) -> str:
        return (await ctx.elicit_url("Pay first.", "https://pay.example/1", "e1")).action

    return server


@asynccontextmanager
async def inn(tmp_path: Path, *, seconds: float) -> AsyncIterator[Place]:
    found, port = Place(tmp_path), free_port()
    async with served(
        asking(), port, sse=True
    ):  # servers of the newest protocol ask in another way
        found.add("inn", url=f"http://127.0.0.1:{port}/sse", type="sse", timeout=seconds)
        await found.hub.settle()
        yield found
        await found.hub.aclose()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with inn(tmp_path, seconds=60) as found:
        yield found


def agent(tmp_path: Path, place: Place, *replies: Reply):
    return make_agent(tmp_path, list(replies), mcp=place.hub)


async def test_forms_and_pages_are_asked_and_what_is_answered_goes_back(tmp_path, place):
    asked = []
    given = {"name": "Ann", "guests": 3, "room": "loud", "late": True}
    answers = [Answer("accept", given), Answer("decline"), Answer("cancel"), Answer("accept")]

    async def answer(question):
        asked.append(question)
        return answers[len(asked) - 1]

    made = agent(tmp_path, place).agent
    assert (await place.call("inn_book")).output == "cancel: None", "nobody can be asked"
    made.person.asker = answer
    result = await place.call("inn_book")
    assert result.output == "accept: Booking(name='Ann', guests=3, room='loud', late=True)"
    assert (await place.call("inn_book")).output == "decline: None"
    assert (await place.call("inn_book")).output == "cancel: None"
    assert (await place.call("inn_pay")).output == "accept"
    form, *_, page = asked
    assert page == ServerLink("inn", "Pay first.", "https://pay.example/1")
    assert (form.server, form.message) == ("inn", "Who is it for?")
    assert [(field.name, field.kind, field.required) for field in form.fields] == [
        ("name", "text", True),
        ("guests", "integer", False),
        ("room", "choice", False),
        ("late", "yes_no", False),
    ]
    assert form.fields[2].options == (("quiet", "quiet"), ("loud", "loud"))


async def test_the_time_of_a_person_does_not_count(tmp_path: Path) -> None:
    """A call may take longer each time until a loaded machine brings the question to the person at all."""
    asked = 0.0
    for seconds in (0.5, 5.0, 30.0):

        async def answer(_question: object, seconds: float = seconds) -> Answer:
            nonlocal asked
            asked = seconds
            await asyncio.sleep(seconds * 1.3)
            return Answer("accept", {"name": "Ann"})

        (tmp_path / str(seconds)).mkdir()
        async with inn(tmp_path / str(seconds), seconds=seconds) as place:
            agent(tmp_path / str(seconds), place).agent.person.asker = answer
            with suppress(ToolError):
                assert (await place.call("inn_book")).output.startswith("accept: ")
                return
        assert asked != seconds, "the time of the person counted"
    raise AssertionError("no question within half a minute")


@pytest.mark.parametrize(
    ("field", "typed", "value"),
    [
        (FormField("a", "A", kind="integer", least=1, most=5), "4", 4),
        (FormField("a", "A", kind="number"), "1.5", 1.5),
        (FormField("a", "A"), "", None),
        (
            FormField("a", "A", kind="choices", options=(("r", "Red"), ("g", "Green"))),
            "Red, g",
            ["r", "g"],
        ),
        (FormField("a", "A", kind="yes_no"), "no", False),
        (FormField("a", "A", kind="yes_no"), "True", True),
        (FormField("a", "A", kind="choices", options=(("r", "Red"),)), "Red, r, Red", ["r"]),
        (FormField("a", "A", kind="choices", options=(("r", "g"), ("g", "r"))), "r", ["r"]),
        (FormField("a", "A", kind="choice", options=((" r", "Red"),)), "Red", " r"),
        (FormField("a", "A", kind="choice", options=(("r", "Red"),), is_free=True), "x", "x"),
    ],
)
def test_what_is_typed_becomes_a_value(field, typed, value):
    assert field.read(typed) == value


@pytest.mark.parametrize(
    ("field", "typed", "told"),
    [
        (FormField("a", "Age", kind="integer"), "x", "Age has to be a whole number."),
        (FormField("a", "Age", kind="integer", most=5), "6", "Age has to be 5 or less."),
        (FormField("a", "Name", required=True), " ", "Name is required."),
        (FormField("a", "Name", least=3), "ab", "Name needs at least 3 characters."),
        (
            FormField("a", "Colours", kind="choices", options=(("r", "Red"),)),
            "blue",
            "“blue” is not one of: Red.",
        ),
        (
            FormField("a", "Colour", kind="choice", options=(("r", "Red"),)),
            "blue",
            "“blue” is not one of: Red.",
        ),
        (
            FormField("a", "Two", kind="choices", options=(("r", "Red"),), least=2),
            "Red, r",
            "Two needs at least 2 choices.",
        ),
        (
            FormField("a", "Some", kind="choices", options=(("r", "Red"),), required=True),
            ", ,",
            "Some is required.",
        ),
        (FormField("a", "Age", kind="number", most=5), "nan", "Age has to be a number."),
        (FormField("a", "Age", kind="number"), "1e999", "Age has to be a number."),
        (FormField("a", "Age", kind="integer"), "1_0", "Age has to be a whole number."),
        (FormField("a", "Late", kind="yes_no"), "maybe", "Late has to be yes or no."),
    ],
)
def test_what_is_no_value_is_told_in_a_sentence(field, typed, told):
    with pytest.raises(ValueError, match=told):
        field.read(typed)


def test_every_way_to_write_an_enumeration_is_read():
    from mcp.types import ElicitRequestFormParams

    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "enum": ["x", "y"], "enumNames": ["Ex", "Why"]},
            "b": {"type": "string", "oneOf": [{"const": "x", "title": "Ex"}]},
            "c": {
                "type": "array",
                "items": {"anyOf": [{"const": "x", "title": "Ex"}]},
                "maxItems": 1,
                "default": ["x"],
            },
            "d": {"enum": ["x", "x", ""]},
            "odd": 7,
        },
        "required": ["a"],
    }
    form = question_of("s", ElicitRequestFormParams(message="m", requested_schema=schema))
    assert isinstance(form, ServerForm)
    assert [(row.name, row.kind, row.options, row.most) for row in form.fields] == [
        ("a", "choice", (("x", "Ex"), ("y", "Why")), None),
        ("b", "choice", (("x", "Ex"),), None),
        ("c", "choices", (("x", "Ex"),), 1),
        ("d", "choice", (("x", "x"), ("", "")), None),
    ]
