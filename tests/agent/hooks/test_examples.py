"""Every example in docs/examples/hooks, in a real agent, as its configuration says."""

import json
import os
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.hooks import from_settings
from tests.support.scripted_client import Reply, call
from tui_agent.agent.events import MessageRefused, PermissionAsked
from tui_agent.agent.hooks.hooks import Hooks
from tui_agent.agent.hooks.payloads import ANSWERS
from tui_agent.agent.hooks.settings import HookSettings
from tui_agent.agent.navigator import NavigationError
from tui_agent.context.request import request_bytes
from tui_agent.context.settings import CompactionSettings, ContextSettings
from tui_agent.session.entries import BranchSummaryEntry, CompactionEntry, ToolStatus

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "hooks"
SMALL = ContextSettings(compaction=CompactionSettings(keep_recent=200))

Start = Callable[..., Harness]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    def make(script: list[Reply] | Callable[..., Reply], **ports: object) -> Harness:
        project = tmp_path / "project"
        shutil.copytree(EXAMPLES, project / "hooks")
        rows = tomllib.loads((EXAMPLES / "config.toml").read_text())["hooks"]
        settings = [HookSettings(**row) for row in rows]
        assert {row.event for row in settings} == set(ANSWERS)
        environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        hooks = Hooks(lambda: from_settings(settings, project, environment))
        return make_agent(tmp_path, script, hooks=hooks, **ports)

    return make


def lines(harness: Harness, name: str) -> list[dict[str, object]]:
    text = (harness.agent.ports.project / name).read_text()
    return [json.loads(line) for line in text.splitlines() if line]


def sent(harness: Harness) -> str:
    return request_bytes(harness.agent.ports.client.requests[-1]).decode()


async def test_user_prompt_refuses_and_explains(start: Start) -> None:
    harness = start([Reply("Hello.")])
    ended = await harness.say("use sk-abcdefghijklmnopqrst please")
    assert (ended.reason, harness.agent.ports.client.requests) == ("stopped", [])
    assert "There is a key in it" in (ended.error or "")
    assert harness.of(MessageRefused)[0].text == "use sk-abcdefghijklmnopqrst please"
    assert "user" not in harness.kinds()
    await harness.say("fix SHOP-12")
    assert "tickets/NAME.md: SHOP-12" in sent(harness)


async def test_before_tool_refuses_allows_and_changes(start: Start) -> None:
    commands = ("git push origin main", "make test", "npm install || true")
    harness = start(
        [*(Reply(calls=(call("bash", command=text),)) for text in commands), Reply("Done.")]
    )
    (harness.agent.ports.project / "Makefile").write_text("test:\n\t@echo all green\n")
    await harness.say("go")
    pushed, tested, installed = harness.results()
    assert pushed.status is ToolStatus.DENIED
    assert "Pushing is the user's business" in pushed.output
    assert "all green" in tested.output
    assert [event.request.title for event in harness.of(PermissionAsked)] == ["npm ci || true"]
    assert 'changed the arguments to {"command": "npm ci || true"}' in installed.output


async def test_before_and_after_compact(start: Start) -> None:
    harness = start([Reply("An answer. " + "word " * 400)], settings=SMALL, window=8_000)
    await harness.say("first question about the cart")
    await harness.say("second question about the till")
    hold = harness.agent.ports.project / "HOLD"
    hold.touch()
    outcome = await harness.agent.compact()
    assert "HOLD is there" in (outcome.problem or "")
    hold.unlink()
    requests = len(harness.agent.ports.client.requests)
    assert (await harness.agent.compact()).problem is None
    assert len(harness.agent.ports.client.requests) == requests, "no model was asked"
    entry = harness.entries(CompactionEntry)[0]
    assert "first question about the cart" in entry.summary
    assert entry.model is None
    assert entry.tokens_after < entry.tokens_before
    await harness.agent.aclose()
    (told,) = lines(harness, "summaries.jsonl")
    assert told["entry"] == entry.id
    assert told["summary"] == entry.summary


async def test_before_and_after_tree(start: Start) -> None:
    write = Reply(calls=(call("write", path="a.txt", content="one\n"),))
    harness = start([Reply("Hello."), write, Reply("Written."), Reply("Fine.")])
    await harness.say("hi")
    here = harness.session.leaf
    await harness.say("write a file")
    plan = harness.agent.navigator.plan(here)
    with pytest.raises(NavigationError, match=r"a\.txt changed there; move with a summary"):
        await harness.agent.navigator.move(plan)
    assert harness.session.leaf == plan.from_id
    requests = len(harness.agent.ports.client.requests)
    await harness.agent.navigator.move(plan, focus="")
    assert len(harness.agent.ports.client.requests) == requests, "no model was asked"
    summary = harness.path()[-1]
    assert isinstance(summary, BranchSummaryEntry)
    assert summary.summary.startswith(f"A short attempt from #{here}")
    assert "a.txt" in summary.details.modified_files
    await harness.agent.aclose()
    (told,) = lines(harness, "moves.jsonl")
    assert (told["leaf"], told["old_leaf"]) == (here, plan.from_id)


async def test_moves_without_a_plan_ask_and_tell_hooks_too(start: Start) -> None:
    write = Reply(calls=(call("write", path="a.txt", content="one\n"),))
    harness = start([Reply("Hello."), Reply("Hello again."), write, Reply("Written.")])
    await harness.say("hi")
    here = harness.session.leaf
    await harness.say("hi again")
    end = harness.session.leaf
    await harness.agent.navigator.go(here)
    assert await harness.agent.navigator.undo() == end
    assert await harness.agent.navigator.redo() == here
    await harness.say("write a file")
    written = harness.session.leaf
    for move in (harness.agent.navigator.go(end), harness.agent.navigator.undo()):
        with pytest.raises(NavigationError, match=r"a\.txt changed there"):
            await move
    assert harness.session.leaf == written
    await harness.agent.aclose()
    told = [(row["leaf"], row["old_leaf"]) for row in lines(harness, "moves.jsonl")]
    assert sorted(told) == sorted([(here, end), (end, here), (here, end)])


async def test_session_start_tells_the_model_once_and_run_end_is_told_how_it_went(
    start: Start,
) -> None:
    harness = start([Reply("Hello there.")])
    (harness.agent.ports.project / "FREEZE").touch()
    await harness.say("hi")
    await harness.say("again")
    assert sent(harness).count("Releases are frozen: change nothing") == 1
    assert harness.notices() == ["Releases are frozen."]
    await harness.agent.aclose()
    told, _again = lines(harness, "runs.jsonl")
    assert (told["reason"], told["answer"], told["steps"]) == ("done", "Hello there.", 1)
    assert told["about"]["session"] == harness.session.id  # type: ignore[index]
    assert told["about"]["model"] == "test/model"  # type: ignore[index]


async def test_before_end_sends_back_what_is_missing(start: Start) -> None:
    harness = start([Reply("Done."), Reply("Really.")])
    (harness.agent.ports.project / "WANTED").write_text("report.md\n")
    harness.agent.submit("write the report")
    (await harness.ended())
    assert "Still missing: report.md." in sent(harness)


async def test_permission_answers_for_the_user_and_the_others_are_told(start: Start) -> None:
    writes = [call("write", path=f"{place}/a.txt", content="x") for place in ("vendor", "notes")]
    harness = start([Reply(calls=tuple(writes)), Reply("Done.")])
    await harness.say("write both")
    assert [result.status for result in harness.results()] == [
        ToolStatus.DENIED,
        ToolStatus.COMPLETED,
    ]
    assert harness.of(PermissionAsked) == []
    await harness.agent.aclose()
    assert lines(harness, "notification.jsonl")[-1]["kind"] == "idle"
    assert len(lines(harness, "session_end.jsonl")) == 1
