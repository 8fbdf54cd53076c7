"""``/btw``: asked beside the work, shown over it, and kept, taken or dropped."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.real_stage import RealStage, real_stage
from tests.support.scripted_client import Call, Reply
from tests.support.ui_app import until
from tui_agent.agent.side_question import SideQuestion
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import AssistantEntry, UserEntry
from tui_agent.session.errors import StoreError
from tui_agent.session.session import Session
from tui_agent.ui.screens.dialogs import ChoiceScreen, LineScreen


def texts(stage: RealStage) -> list[str]:
    kinds = (UserEntry, AssistantEntry)
    return [entry.text for entry in stage.harness.path() if isinstance(entry, kinds)]


def everything(stage: RealStage) -> list[str]:
    """Return what was said on all branches."""
    session = stage.harness.session
    entries = session.reader.load(range(1, session.info.entry_count + 1))
    return [entry.text for entry in entries if isinstance(entry, (UserEntry, AssistantEntry))]


async def asked(stage: RealStage, pilot: object) -> None:
    stage.main.controller.begin("btw", "why a list?")
    await until(lambda: isinstance(stage.screen, ChoiceScreen), pilot)
    await stage.until_text("Order matters.", pilot)


def staged(tmp_path: Path) -> RealStage:
    return real_stage(tmp_path, [Reply("Hello."), Reply("Order matters."), Reply("Onward.")])


async def test_it_is_asked_with_the_whole_context_and_without_tools(tmp_path: Path) -> None:
    stage = staged(tmp_path)
    async with stage.run(after=["hi"]) as pilot:
        await asked(stage, pilot)
        request = stage.client.requests[-1]
        assert request.tool_choice == "none"
        assert "Hello." in [message.text for message in request.messages]
        assert "why a list?" in request.messages[-1].text
        assert texts(stage) == ["hi", "Hello."]


@pytest.mark.parametrize("key", ["escape", "4"])
async def test_dropped_it_leaves_no_trace(tmp_path: Path, key: str) -> None:
    stage = staged(tmp_path)
    async with stage.run(after=["hi"]) as pilot:
        await asked(stage, pilot)
        await pilot.press(key)
        await until(lambda: stage.screen is stage.main, pilot)
        assert everything(stage) == ["hi", "Hello."]


async def test_enter_keeps_it_as_a_branch_and_the_conversation_stays(tmp_path: Path) -> None:
    stage = staged(tmp_path)
    async with stage.run(after=["hi"]) as pilot:
        await asked(stage, pilot)
        await pilot.press("enter")
        await stage.until_text("Kept as a branch", pilot)
        assert texts(stage) == ["hi", "Hello."]
        assert everything(stage) == ["hi", "Hello.", "why a list?", "Order matters."]
        await stage.say("go on", pilot)
        assert texts(stage)[-2:] == ["go on", "Onward."]
        assert not any("list" in message.text for message in stage.client.requests[-1].messages[1:])


async def test_t_puts_it_into_the_context(tmp_path: Path) -> None:
    stage = staged(tmp_path)
    async with stage.run(after=["hi"]) as pilot:
        await asked(stage, pilot)
        await pilot.press("t")
        await stage.until_text("from its next request on", pilot)
        await stage.say("go on", pilot)
        sent = "\n".join(message.text for message in stage.client.requests[-1].messages[1:])
        assert "why a list?" in sent
        assert "Order matters." in sent


async def test_a_second_question_knows_the_first_and_both_are_kept(tmp_path: Path) -> None:
    stage = staged(tmp_path)
    async with stage.run(after=["hi"]) as pilot:
        await asked(stage, pilot)
        # Somebody who types on at once asks on.
        await pilot.press("a")
        await until(lambda: isinstance(stage.screen, LineScreen), pilot)
        await pilot.press(*"nd more")
        await pilot.press("enter")
        await stage.until_text("Onward.", pilot)
        sent = [message.text for message in stage.client.requests[-1].messages[-3:]]
        assert "why a list?" in sent[0]
        assert sent[1] == "Order matters."
        assert "nd more" in sent[2]
        await pilot.press("enter")
        await stage.until_text("Kept as a branch", pilot)
        assert everything(stage)[2:] == ["why a list?", "Order matters.", "nd more", "Onward."]


def spent(stage: RealStage) -> float:
    """Return what the session costs by its entries and by calls without an entry, in US dollars."""
    session = stage.harness.session
    return sum(session.reader.costs().values()) + session.info.side_cost


async def ask_on(stage: RealStage, pilot: Any) -> None:
    await pilot.press("a")
    await until(lambda: isinstance(stage.screen, LineScreen), pilot)
    await pilot.press(*"and more")
    await pilot.press("enter")


async def test_a_further_question_that_fails_leaves_the_choice_about_the_answers(
    tmp_path: Path,
) -> None:
    broken = ModelError(ErrorKind.UNKNOWN, "The provider is down.")
    replies = [Reply("Hello."), Reply("Order matters.", cost=0.5), Reply(error=broken, cost=0.25)]
    stage = real_stage(tmp_path, replies)
    async with stage.run(after=["hi"]) as pilot:
        await asked(stage, pilot)
        await ask_on(stage, pilot)
        await until(lambda: len(stage.client.requests) == 3, pilot)
        await until(lambda: isinstance(stage.screen, ChoiceScreen), pilot)
        await stage.until_text("Order matters.", pilot)
        assert "The provider is down." in stage.text()
        await pilot.press("enter")
        await stage.until_text("Kept as a branch", pilot)
        assert everything(stage)[2:] == ["why a list?", "Order matters."]
        assert spent(stage) == 0.75


async def test_an_answer_that_cannot_be_stored_is_asked_about_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = real_stage(tmp_path, [Reply("Hello."), Reply("Order matters.", cost=0.5)])
    async with stage.run(after=["hi"]) as pilot:
        await asked(stage, pilot)
        with monkeypatch.context() as patched:
            patched.setattr(Session, "append_many", full)
            await pilot.press("enter")
            await until(lambda: "disk is full" in stage.main.notice.message, pilot)
        await until(lambda: isinstance(stage.screen, ChoiceScreen), pilot)
        await pilot.press("t")
        await stage.until_text("from its next request on", pilot)
        assert "Order matters." in texts(stage)[-1]
        assert spent(stage) == 0.5


def full(*_arguments: object) -> None:
    raise StoreError("The disk is full.")


async def test_what_nobody_decided_about_is_kept_as_a_branch(tmp_path: Path) -> None:
    replies = [Reply("Hello."), Reply("Order matters.", cost=0.5), Reply("It", hang=True)]
    stage = real_stage(tmp_path, replies)
    async with stage.run(after=["hi"]) as pilot:
        side = SideQuestion(stage.harness.agent)
        await side.ask("why a list?")
        side.close()
        side.close()
        await pilot.pause()
        assert everything(stage)[2:] == ["why a list?", "Order matters."]
        assert spent(stage) == 0.5


async def test_while_a_call_runs_it_is_taken_before_the_next_step(tmp_path: Path) -> None:
    call = Call("bash", '{"command": "sleep 60"}')
    replies = [Reply("I run it.", calls=(call,)), Reply("Order matters."), Reply("Onward.")]
    stage = real_stage(tmp_path, replies)
    async with stage.run() as pilot:
        agent = stage.harness.agent
        agent.submit("hi")
        await until(lambda: any("I run it." in text for text in texts(stage)), pilot)
        await asked(stage, pilot)
        await pilot.press("t")
        await until(lambda: stage.screen is stage.main, pilot)
        assert not any("Order matters." in text for text in texts(stage)), (
            "no call loses its result"
        )
        agent.interrupt()
        await agent.wait_idle()
        await stage.say("go on", pilot)
        sent = "\n".join(message.text for message in stage.client.requests[-1].messages)
        assert "Order matters." in sent


async def test_without_a_question_it_says_how(tmp_path: Path) -> None:
    stage = staged(tmp_path)
    async with stage.run() as pilot:
        stage.main.controller.begin("btw", "")
        await stage.until_text("/btw QUESTION", pilot)
