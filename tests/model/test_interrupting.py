"""Interrupting the wait for a model's words, in the very moment in which some arrive."""

import asyncio

import pytest

from tests.support.model_client import HOSTED_MODEL, ask, collect, host_client
from tests.support.model_server import ModelServer
from tui_agent.model.hosted import lines
from tui_agent.model.hosted.link import Inbox


class SilentLink:
    """The line to a host that accepts every request and says what it is told to."""

    is_alive = True

    def __init__(self) -> None:
        self.inbox = Inbox()
        self.inbox.put_nowait([lines.ACCEPTED])
        self.given_up = False

    def open(self, _number: int) -> Inbox:
        return self.inbox

    async def wait_ready(self) -> dict[str, object]:
        return {"version": lines.VERSION}

    def close(self, _number: int) -> None: ...

    def send(self, _line: dict[str, object]) -> None: ...

    def cancel(self, _number: int) -> None:
        self.given_up = True


@pytest.mark.parametrize("turns", range(6))
async def test_an_interrupt_that_comes_with_words_is_not_lost(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    client, link = host_client(server), SilentLink()

    async def start(*_arguments: object) -> SilentLink:
        return link

    monkeypatch.setattr("tui_agent.model.hosted.client.start", start)
    reading = asyncio.create_task(collect(client, ask(HOSTED_MODEL)))
    for _ in range(20):
        await asyncio.sleep(0)
    link.inbox.put_nowait([lines.CHUNK, '{"choices": [{"delta": {"content": "a word"}}]}'])
    for _ in range(turns):
        await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait([reading], timeout=60)
    assert reading.cancelled()
    assert link.given_up
