"""A message that is sent again and again: while the session is idle, until it is ended."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.test_race_commands import controller_of, do
from tests.support.agents import make_agent
from tests.support.scripted_client import Reply
from tui_agent.agent.repeated_message import MAX_ROUNDS, RepeatedMessage
from tui_agent.session.entries import UserEntry


class Session:
    """Counts what is sent to it; ``busy`` are the looks at which it works."""

    def __init__(self, busy: frozenset[int] = frozenset(), *, fails: bool = False) -> None:
        self.busy = busy
        self.fails = fails
        self.looks = 0
        self.sent: list[str] = []
        self.pauses: list[float] = []
        self.said: list[str] = []
        self.repeated_message = RepeatedMessage(
            self.submit, self.is_running, self.said.append, self.pause
        )

    def submit(self, message: str) -> None:
        if self.fails:
            raise ValueError(message)
        self.sent.append(message)

    def is_running(self) -> bool:
        self.looks += 1
        return self.looks in self.busy

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)

    async def ends(self) -> None:
        for _turn in range(10 * MAX_ROUNDS):
            if self.said:
                return
            await asyncio.sleep(0)


@given(st.frozensets(st.integers(1, 50)))
def test_it_sends_only_while_idle_and_ends_after_many_rounds(busy: frozenset[int]) -> None:
    async def run() -> Session:
        session = Session(busy)
        session.repeated_message.begin("look", 600)
        await session.ends()
        return session

    session = asyncio.run(run())
    assert session.sent == ["look"] * MAX_ROUNDS
    assert set(session.pauses) == {600}
    assert session.looks == MAX_ROUNDS + len(busy)
    assert session.said == [f"The loop ended after {MAX_ROUNDS} rounds. /loop starts it again."]
    assert session.repeated_message.words == ""


async def test_a_message_that_cannot_be_sent_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    session = Session(fails=True)
    session.repeated_message.begin("look", 600)
    await session.ends()
    assert [text.partition(":")[0] for text in session.said] == ["The loop ended"]
    assert session.repeated_message.message == ""
    caplog.clear()


async def test_the_command_begins_it_at_once_and_escape_ends_it(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("Looked.")])
    controller = await controller_of(harness)
    said = controller.frontend.words  # type: ignore[attr-defined]
    assert await do(controller, "loop")
    assert said[-1].startswith("There is no loop.")
    assert await do(controller, "loop", "10m look at the build")
    assert (await harness.ended()).reason == "done"
    assert [entry.text for entry in harness.entries(UserEntry)] == ["look at the build"]
    assert await do(controller, "loop")
    assert said[-1] == f"The loop, round 1 of {MAX_ROUNDS}: look at the build"
    harness.agent.interrupt()
    assert harness.agent.repeated_message.words == ""


@pytest.mark.parametrize("wrong", ["10m", "look", "5s x", "25h x", "99999h x", "1d x", "-5m x"])
async def test_an_interval_that_is_none_is_refused(tmp_path: Path, wrong: str) -> None:
    harness = make_agent(tmp_path, [])
    controller = await controller_of(harness)
    assert not await do(controller, "loop", wrong)
    assert harness.agent.repeated_message.message == ""
