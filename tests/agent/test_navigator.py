"""Moving in the tree: what comes along, what is told, what a failure leaves."""

from pathlib import Path

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Reply
from tui_agent.agent.navigator import NavigationError
from tui_agent.context.request import ModelRequest, request_bytes
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import BranchSummaryEntry, UserEntry

SUMMARY = "## Goal\nTried middleware; it did not work because of the order.\n"


def summarises(request) -> bool:
    return not request.tools


async def two_branches(tmp_path: Path, summary: Reply | None = None) -> Harness:
    told = summary or Reply(SUMMARY)
    harness = make_agent(tmp_path, lambda request: told if summarises(request) else Reply("Answer."))
    await harness.say("first question")
    await harness.say("try middleware")
    return harness


def user(harness: Harness, text: str) -> UserEntry:
    return next(e for e in harness.path() if isinstance(e, UserEntry) and e.text == text)


async def test_a_summary_of_what_is_left_is_told_to_the_other_branch(tmp_path: Path) -> None:
    harness = await two_branches(tmp_path)
    left = harness.session.leaf
    plan = harness.agent.navigator.plan(user(harness, "try middleware").id)
    pieces: list[str] = []
    await harness.agent.navigator.move(plan, focus="why it failed", progress=pieces.append)
    entry = harness.path()[-1]
    assert isinstance(entry, BranchSummaryEntry)
    assert entry.from_id == left
    assert "middleware" in entry.summary
    assert entry.model == "test/model"
    assert "".join(pieces) == SUMMARY
    await harness.say("something else")
    sent = request_bytes(harness.agent.ports.client.requests[-1]).decode()
    assert "because of the order" in sent
    assert "try middleware" not in sent
    asked = next(r for r in harness.agent.ports.client.requests if summarises(r))
    assert "why it failed" in asked.messages[-1].text


async def test_a_long_branch_is_read_where_the_provider_remembers_it(tmp_path: Path) -> None:
    asked: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Reply:
        asked.append(request)
        is_summary = "begins-with" in request.messages[-1].text or summarises(request)
        return Reply(SUMMARY) if is_summary else Reply("An answer at length. " * 600)

    harness = make_agent(tmp_path, answer)
    for text in ("first question", "try middleware", "go on", "and on"):
        await harness.say(text)
    before = asked[-1]
    await harness.agent.navigator.move(harness.agent.navigator.plan(user(harness, "try middleware").id), focus="")
    live = asked[-1]
    assert live.tools == before.tools
    assert request_bytes(live).startswith(request_bytes(before))
    assert "<begins-with>\n[Assistant]: An answer at length." in live.messages[-1].text
    assert isinstance(harness.path()[-1], BranchSummaryEntry)


async def test_a_failed_summary_changes_nothing(tmp_path: Path) -> None:
    harness = await two_branches(tmp_path, Reply(error=ModelError(ErrorKind.AUTH, "The key was refused.")))
    leaf, count = harness.session.leaf, len(harness.session.skeleton())
    with pytest.raises(NavigationError, match="key was refused"):
        await harness.agent.navigator.move(harness.agent.navigator.plan(user(harness, "try middleware").id), focus="")
    assert harness.session.leaf == leaf
    assert len(harness.session.skeleton()) == count


async def test_a_branch_can_be_merged_back_without_moving(tmp_path: Path) -> None:
    harness = await two_branches(tmp_path)
    other = harness.session.leaf
    assert other is not None
    await harness.agent.navigator.go(user(harness, "try middleware").parent_id)
    await harness.say("another way")
    before = harness.session.leaf
    entry = await harness.agent.navigator.merge(other)
    assert entry.parent_id == before
    assert entry.from_id == other
    with pytest.raises(NavigationError, match="nothing"):
        await harness.agent.navigator.merge(harness.path()[1].id)


async def test_nothing_moves_while_the_agent_works(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("x"), Reply("half", hang=True)])
    await harness.say("one")
    harness.agent.submit("two")
    await harness.client.hanging.wait()
    with pytest.raises(NavigationError, match="interrupt"):
        await harness.agent.navigator.go(1)
    with pytest.raises(NavigationError, match="interrupt"):
        await harness.agent.navigator.undo()
    await harness.agent.aclose()
