"""When a model is overloaded, out of quota or gone another one stands in, and the chosen one comes back."""

from collections.abc import Callable
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Reply
from tui_agent.context.request import ModelRequest
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import ModelChangeEntry

FIRST, SECOND, THIRD = "test/first", "test/second", "test/third"
MINUTE = 60_000


class Provider:
    """Answers for every model but those that are out."""

    def __init__(self, **out: ModelError) -> None:
        self.out = {f"test/{name}": error for name, error in out.items()}

    def __call__(self, request: ModelRequest) -> Reply:
        error = self.out.get(request.model)
        return Reply(error=error) if error is not None else Reply(f"I am {request.model}.")


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


def agent(
    tmp_path: Path, script: Callable[[ModelRequest], Reply], clock: Clock, *chain: str
) -> Harness:
    return make_agent(
        tmp_path, script, model=FIRST, fallback_models=chain or (SECOND, THIRD), sleep=AsyncMock(), clock=clock,
        session_clock=clock,
    )  # fmt: skip


def failed(kind: ErrorKind, **fields: float) -> ModelError:
    return ModelError(kind, f"It failed: {kind}.", **fields)


@pytest.mark.parametrize(
    "kind", [ErrorKind.OVERLOADED, ErrorKind.RATE_LIMIT, ErrorKind.QUOTA, ErrorKind.NOT_FOUND]
)
async def test_another_model_answers_and_it_is_said_once_and_stands_on_the_path(
    tmp_path: Path, kind: ErrorKind
) -> None:
    harness = agent(tmp_path, Provider(first=failed(kind)), Clock())
    first, second = await harness.say("hi"), await harness.say("and now?")

    assert (first.reason, second.reason) == ("done", "done")
    assert [entry.label for entry in harness.entries(ModelChangeEntry)] == [
        f"{SECOND}, standing in for {FIRST}"
    ]
    assert (harness.agent.model, harness.agent.stands_in_for) == (SECOND, FIRST)
    assert sum("answers instead of" in notice for notice in harness.notices()) == 1
    assert harness.client.requests[-1].model == SECOND


async def test_the_chosen_model_comes_back_when_it_may_work(tmp_path: Path) -> None:
    clock, provider = Clock(), Provider(first=failed(ErrorKind.OVERLOADED))
    harness = agent(tmp_path, provider, clock)
    await harness.say("hi")
    clock.now += 4 * MINUTE
    await harness.say("still?")
    provider.out.clear()
    clock.now += 2 * MINUTE
    await harness.say("and now?")

    assert [request.model for request in harness.client.requests][-3:] == [SECOND, SECOND, FIRST]
    assert (harness.agent.model, harness.agent.stands_in_for) == (FIRST, None)
    assert f"Trying {FIRST} again." in harness.notices()


async def test_a_quota_that_comes_back_in_days_is_not_asked_before(tmp_path: Path) -> None:
    clock = Clock()
    harness = agent(
        tmp_path, Provider(first=failed(ErrorKind.QUOTA, retry_after=2 * 86_400.0)), clock
    )
    await harness.say("hi")
    clock.now += 24 * 60 * MINUTE
    await harness.say("tomorrow")

    assert [request.model for request in harness.client.requests].count(FIRST) == 1


@pytest.mark.parametrize("is_last_out", [False, True])
async def test_the_chain_goes_on_and_ends_with_the_last_error(
    tmp_path: Path, *, is_last_out: bool
) -> None:
    out = failed(ErrorKind.QUOTA)
    provider = Provider(first=out, second=out, **({"third": out} if is_last_out else {}))
    harness = agent(tmp_path, provider, Clock())
    ended = await harness.say("hi")

    assert (ended.reason, ended.error) == (
        ("error", "It failed: quota.") if is_last_out else ("done", None)
    )
    assert [request.model for request in harness.client.requests] == [FIRST, SECOND, THIRD]


@pytest.mark.parametrize(
    "kind", [ErrorKind.AUTH, ErrorKind.INVALID_REQUEST, ErrorKind.CONTENT_FILTER]
)
async def test_what_another_model_does_not_help_is_an_error(
    tmp_path: Path, kind: ErrorKind
) -> None:
    harness = agent(tmp_path, Provider(first=failed(kind)), Clock())

    assert (await harness.say("hi")).reason == "error"
    assert harness.entries(ModelChangeEntry) == []


async def test_an_answer_that_was_begun_is_not_begun_again_by_another(tmp_path: Path) -> None:
    def script(_request: ModelRequest) -> Reply:
        return Reply("Half of", error=failed(ErrorKind.QUOTA))

    harness = agent(tmp_path, script, Clock())

    assert (await harness.say("hi")).reason == "error"
    assert harness.agent.model == FIRST


async def test_without_a_chain_nothing_is_switched(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, Provider(first=failed(ErrorKind.QUOTA)), model=FIRST)

    assert (await harness.say("hi")).reason == "error"
    assert harness.agent.model == FIRST


async def test_a_fallback_model_without_a_key_is_passed_over(tmp_path: Path) -> None:
    provider = Provider(first=failed(ErrorKind.OVERLOADED), second=failed(ErrorKind.AUTH))
    harness = agent(tmp_path, provider, Clock())

    assert (await harness.say("hi")).reason == "done"
    assert (harness.agent.model, harness.agent.stands_in_for) == (THIRD, FIRST)
