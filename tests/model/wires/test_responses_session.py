"""Sessions with a model that speaks Responses: what is interrupted, switched, cleared and cut off."""

from pathlib import Path
from typing import Any

import pytest

from tests.model.wires.responses_checker import check
from tests.support.agents import Harness, make_agent
from tests.support.model_script import Recorded
from tests.support.model_server import Fault, ModelServer, Turn
from tests.support.responses_wire import Item, function_call, message, reasoning, response, stream
from tui_agent.agent.permissions import Action, Rule
from tui_agent.model.client import ProviderClient

pytestmark = pytest.mark.asyncio(loop_scope="session")

MODEL = "openai/gpt-5.4"
ALLOW_ALL = (Rule("*", "*", Action.ALLOW, "flag"),)


class Thinker:
    """Plays a model that thinks before each call and each answer, and keeps what it gave and was sent."""

    def __init__(self) -> None:
        self.given: list[list[Item]] = []
        self.sent: list[Recorded] = []
        self.faults: dict[int, Fault] = {}
        """Faults by the number of the request."""

    def __call__(self, request: Recorded) -> Turn:
        if not request.json.get("tools"):
            return Turn("A title")
        number = len(self.sent) * 10
        self.sent.append(request)
        thought = reasoning(number, encrypted=f"g{number}", summary=["First this.", "Then that."])
        asked = request.json["input"][-1].get("role") == "user"
        items = (
            [thought, message(number + 1, "I look.", phase="commentary"), function_call(number + 2, "ls", "{}")]
            if asked
            else [thought, message(number + 1, "It is so.", phase="final_answer")]
        )
        self.given.append(items)
        return Turn(events=stream(response(items)), fault=self.faults.get(len(self.sent) - 1))

    def thoughts(self, number: int) -> list[str]:
        """The encrypted reasoning a request held."""
        items = self.sent[number].json["input"]
        return [item["encrypted_content"] for item in items if item.get("type") == "reasoning"]

    def check(self) -> None:
        for request in self.sent:
            check(request.json, self.given)


def make(tmp_path: Path, client: ProviderClient, **options: Any) -> Harness:
    return make_agent(tmp_path, client, model=MODEL, rules=ALLOW_ALL, **options)


@pytest.mark.parametrize("after", [5, 9, 13, 17, 22])
async def test_after_an_interrupted_answer_the_next_request_is_taken(
    tmp_path: Path, client: ProviderClient, server: ModelServer, after: int
) -> None:
    thinker = Thinker()
    thinker.faults[1] = Fault("stall", after=after)
    server.play_function(thinker)
    harness = make(tmp_path, client)

    harness.agent.submit("Look.")
    await harness.until(lambda: len(thinker.sent) == 2 and harness.agent.live is not None)
    await harness.until(lambda: bool(harness.agent.live and (harness.agent.live.text or harness.agent.live.reasoning)))
    harness.agent.interrupt()
    await harness.ended()
    assert (await harness.say("Go on.")).error is None

    thinker.check()
    assert thinker.thoughts(2) == ["g0"]
