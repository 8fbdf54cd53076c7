"""A run of one short answer loads no encoding; where a rule of thumb could be wrong about the room, it is loaded."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.agents import MODEL, FixedDirectory, Harness, make_agent
from tests.support.scripted_client import Reply, call
from tui_agent.context import tokens
from tui_agent.context.tokens import Encodings, TokenCounter
from tui_agent.session.entries import Usage, UserEntry

SMALL = Usage(input=1_600, output=10)


class HastyDirectory(FixedDirectory):
    """Counts as in a run without a screen."""

    def counter(self, model: str) -> TokenCounter:
        return replace(super().counter(model), exact=False)


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "ENCODINGS", Encodings())


def hasty(tmp_path: Path, *replies: Reply, window: int = 100_000) -> Harness:
    return make_agent(tmp_path, list(replies), directory=HastyDirectory(window))


async def test_a_short_run_loads_none_and_teaches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looking = Reply(calls=(call("ls", path="."),), usage=SMALL)
    harness = hasty(tmp_path, looking, Reply("Done.", usage=SMALL))
    await harness.say("hi")
    assert harness.agent.counter.is_rough
    assert harness.directory.learnt == []
    monkeypatch.undo()  # what other tests have loaded counts exactly
    exact = TokenCounter(MODEL)
    for entry in harness.path():
        assert abs(entry.tokens - exact.estimate(entry)) <= 10 + entry.tokens / 3


async def test_a_long_message_is_counted_exactly(tmp_path: Path) -> None:
    harness = hasty(tmp_path, Reply("Done.", usage=SMALL))
    await harness.say("a 1 " * 5_000)
    [said] = harness.entries(UserEntry)
    assert said.tokens == TokenCounter(MODEL).estimate(said)


async def test_it_is_loaded_before_the_window_may_be_full(tmp_path: Path) -> None:
    harness = hasty(tmp_path, Reply("Done.", usage=SMALL), window=6_000)
    await harness.say("hi " * 500)
    assert not harness.agent.counter.is_rough
