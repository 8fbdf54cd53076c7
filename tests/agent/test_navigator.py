"""Moving in the tree: what comes along, what is told, what a failure leaves."""

from pathlib import Path

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Reply
from tui_agent.agent.navigator import NavigationError
from tui_agent.context.branch_summary import MovePlan
from tui_agent.context.request import ModelRequest, request_bytes
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import BranchSummaryEntry, UserEntry

SUMMARY = "## Goal\nTried middleware; it did not work because of the order.\n"


async def two_branches(tmp_path: Path, summary: Reply | None = None) -> tuple[Harness, MovePlan]:
    """Return an agent, and the plan of a move to before its second question."""
    told = summary or Reply(SUMMARY)
    harness = make_agent(tmp_path, lambda request: Reply("Answer.") if request.tools else told)
    await harness.say("first question")
    await harness.say("try middleware")
    return harness, harness.agent.navigator.plan(harness.entries(UserEntry)[1].id)


async def beside_a_branch(tmp_path: Path) -> tuple[Harness, int]:
    """Return an agent on a second branch, and the end of the first."""
    harness, plan = await two_branches(tmp_path)
    other = harness.session.leaf
    assert other is not None
    await harness.agent.navigator.go(plan.leaf)
    await harness.say("another way")
    return harness, other


async def test_a_summary_of_what_is_left_is_told_to_the_other_branch(tmp_path: Path) -> None:
    harness, plan = await two_branches(tmp_path)
    pieces: list[str] = []
    await harness.agent.navigator.move(plan, focus="why it failed", progress=pieces.append)
    entry = harness.path()[-1]
    assert isinstance(entry, BranchSummaryEntry)
    assert (entry.from_id, entry.model) == (plan.from_id, "test/model")
    assert "middleware" in entry.summary
    assert "".join(pieces) == SUMMARY
    assert "why it failed" in harness.client.requests[-1].messages[-1].text
    await harness.say("something else")
    sent = request_bytes(harness.client.requests[-1]).decode()
    assert "because of the order" in sent
    assert "try middleware" not in sent


async def test_a_long_branch_is_read_where_the_provider_remembers_it(tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> Reply:
        is_summary = "begins-with" in request.messages[-1].text or not request.tools
        return Reply(SUMMARY) if is_summary else Reply("An answer at length. " * 600)

    harness = make_agent(tmp_path, answer)
    for text in ("first question", "try middleware", "go on", "and on"):
        await harness.say(text)
    plan = harness.agent.navigator.plan(harness.entries(UserEntry)[1].id)
    await harness.agent.navigator.move(plan, focus="")
    before, live = harness.client.requests[-2:]
    assert live.tools == before.tools
    assert request_bytes(live).startswith(request_bytes(before))
    assert "<begins-with>\n[Assistant]: An answer at length." in live.messages[-1].text
    assert isinstance(harness.path()[-1], BranchSummaryEntry)


async def test_a_failed_summary_changes_nothing(tmp_path: Path) -> None:
    harness, plan = await two_branches(
        tmp_path, Reply(error=ModelError(ErrorKind.AUTH, "The key was refused."))
    )
    before = harness.session.leaf, len(harness.session.skeleton())
    with pytest.raises(NavigationError, match="key was refused"):
        await harness.agent.navigator.move(plan, focus="")
    assert (harness.session.leaf, len(harness.session.skeleton())) == before


async def test_a_branch_can_be_merged_back_without_moving(tmp_path: Path) -> None:
    harness, other = await beside_a_branch(tmp_path)
    before = harness.session.leaf
    entry = await harness.agent.navigator.merge(other)
    assert (entry.parent_id, entry.from_id) == (before, other)
    with pytest.raises(NavigationError, match="already on this branch"):
        await harness.agent.navigator.merge(harness.path()[1].id)


async def test_the_cost_of_a_branch_summary_that_failed_counts(tmp_path: Path) -> None:
    refused = ModelError(ErrorKind.AUTH, "The key was refused.")
    harness, plan = await two_branches(tmp_path, Reply("x", error=refused, cost=0.02))
    with pytest.raises(NavigationError, match="key was refused"):
        await harness.agent.navigator.move(plan, focus="")
    tried = [request for request in harness.client.requests if not request.tools]
    assert harness.agent.session_cost() == pytest.approx(0.02 * len(tried))


async def test_the_cost_of_a_branch_summary_counts_once(tmp_path: Path) -> None:
    harness, plan = await two_branches(tmp_path, Reply(SUMMARY, cost=0.02))
    await harness.agent.navigator.move(plan, focus="")
    entry = harness.path()[-1]
    assert isinstance(entry, BranchSummaryEntry)
    assert entry.cost == 0.02
    assert harness.agent.session_cost() == pytest.approx(0.02)


async def test_nothing_moves_while_the_agent_works(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("x"), Reply("half", hang=True)])
    await harness.say("one")
    harness.agent.submit("two")
    await harness.client.hanging.wait()
    for move in (harness.agent.navigator.go(1), harness.agent.navigator.undo()):
        with pytest.raises(NavigationError, match="interrupt"):
            await move
    await harness.agent.aclose()


async def test_a_branch_summary_is_not_put_where_the_user_went_meanwhile(tmp_path: Path) -> None:
    harness, plan = await two_branches(tmp_path)
    navigator = harness.agent.navigator
    other = harness.session.leaf
    await navigator.go(plan.leaf)
    await harness.say("another way")
    elsewhere = plan.leaf

    def move_away(_piece: str) -> None:
        harness.session.move(elsewhere)

    here = harness.session.leaf
    moves = (
        lambda: navigator.merge(other, progress=move_away),
        lambda: navigator.move(navigator.plan(other), focus="", progress=move_away),
    )
    for move in moves:
        harness.session.move(here)
        with pytest.raises(NavigationError, match="You moved to another branch meanwhile"):
            await move()
        assert harness.session.leaf == elsewhere


async def test_a_merge_does_not_get_between_a_run_and_its_results(tmp_path: Path) -> None:
    harness, other = await beside_a_branch(tmp_path)
    answer = harness.client.script
    harness.client.script = lambda request: (
        Reply("half", hang=True) if request.tools else answer(request)
    )
    with pytest.raises(NavigationError, match="interrupt it first"):
        await harness.agent.navigator.merge(
            other, progress=lambda _piece: harness.agent.submit("go on")
        )
    await harness.agent.aclose()
    assert harness.entries(BranchSummaryEntry) == []
