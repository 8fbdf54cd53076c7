"""What is typed into the prompt is sent in the order in which it was typed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.app.test_race_commands import Told, controller_of
from tests.support.agents import make_agent, ports_of
from tests.support.scripted_client import Reply, ScriptedClient
from tests.support.ui_app import until
from tui_agent.agent import preparing
from tui_agent.agent.agent import Agent
from tui_agent.agent.attachments import Prepared
from tui_agent.app.controller import SWITCHED, Controller
from tui_agent.app.services import OpenRequest
from tui_agent.session.entries import UserEntry, typed_text
from tui_agent.session.errors import StoreError
from tui_agent.session.session import Session


async def test_a_message_does_not_overtake_one_whose_files_are_being_read(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, ScriptedClient([Reply("Yes.")] * 3))
    (Path(harness.session.info.cwd) / "big.txt").write_text("line\n" * 10_000)
    controller = await controller_of(harness)
    for text in ("read @big.txt", "then this", "and @big.txt again"):
        await controller.outbox.send(text)

    def sent() -> list[str]:
        return [typed_text(entry.parts) for entry in harness.path() if isinstance(entry, UserEntry)]

    await until(lambda: len(sent()) == 3)
    assert sent() == ["read @big.txt", "then this", "and @big.txt again"]


async def beside(tmp_path: Path, *replies: Reply) -> Controller:
    """Return a controller with an open session; each ``OpenRequest()`` opens another, new one."""
    harness = make_agent(tmp_path, ScriptedClient(list(replies)))
    project = Path(harness.session.info.cwd)

    def open_session(request: OpenRequest) -> Session:
        session_id = request.session_id or harness.store.create_session(project).id
        session = Session(harness.store, session_id, estimate=lambda _entry: 10)
        session.hold()
        return session

    def agent_of(session: Session) -> Agent:
        return Agent(session, ports_of(session, harness.client, project), model="test/model")

    controller = Controller(Told(), lambda _event: None)
    controller.attach(
        harness.services(
            open_session=open_session, make_agent=agent_of, close_session=Session.release
        )
    )
    await controller.open_or_raise(OpenRequest())
    return controller


def words_of(controller: Controller) -> list[str]:
    assert isinstance(controller.frontend, Told)
    return controller.frontend.words


async def test_a_message_whose_files_are_read_does_not_go_to_a_session_opened_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await beside(tmp_path, Reply("Yes."))
    load = controller.outbox.load
    may_read = asyncio.Event()

    async def slow(text: str) -> Prepared:
        await may_read.wait()
        return await load(text)

    monkeypatch.setattr(controller.outbox, "load", slow)
    await controller.outbox.send("read @big.txt")
    await controller.outbox.send("then this")
    await asyncio.sleep(0)
    await controller.open(OpenRequest())
    may_read.set()
    await controller.tasks_done()
    assert controller.open_agent.session.path() == []
    assert not controller.open_agent.running
    assert words_of(controller)[-4:] == [
        "Not sent: read @big.txt",
        SWITCHED,
        "Not sent: then this",
        SWITCHED,
    ]
    await controller.close()


async def test_a_message_whose_files_can_t_be_read_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await beside(tmp_path, Reply("Yes."))

    async def full(_text: str) -> Prepared:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(controller.outbox, "load", full)
    await controller.outbox.send("read @big.txt")
    await controller.tasks_done()
    assert words_of(controller)[-2:] == ["Not sent: read @big.txt", "The disk is full."]
    await controller.close()


async def test_a_skill_s_message_does_not_go_to_a_session_opened_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await beside(tmp_path, Reply("Yes."))
    prepare = preparing.prepare_command
    may_read = asyncio.Event()

    async def slow(*given: Any) -> Prepared | None:
        await may_read.wait()
        return await prepare(*given)

    monkeypatch.setattr(preparing, "prepare_command", slow)
    controller.begin("review", "the tests")
    await asyncio.sleep(0)
    await controller.open(OpenRequest())
    may_read.set()
    await controller.tasks_done()
    assert not controller.open_agent.running
    assert words_of(controller)[-2:] == ["Not sent: /review the tests", SWITCHED]
    await controller.close()
