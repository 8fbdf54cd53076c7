"""Making room: what happens when a conversation outgrows its window."""

import asyncio
import importlib
import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.context.test_anchors import long_texts
from tests.support.agents import Harness, make_agent
from tests.support.request_sizes import request_size
from tests.support.request_validator import validate
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tests.support.thoroughness import NIGHTLY, thorough
from tests.tools.test_read import png
from tui_agent.agent.compaction_drafts import Draft
from tui_agent.agent.compaction_outcome import CompactionOutcome
from tui_agent.agent.events import (
    AgentEvent,
    CompactionEnded,
    CompactionProgress,
    CompactionStarted,
    Notice,
    RequestStarted,
    RunEnded,
)
from tui_agent.agent.permissions import Action, Rule
from tui_agent.context.compaction_policy import NO_FAILURES
from tui_agent.context.pruning import Moment
from tui_agent.context.request import ImageRef, ModelRequest, request_bytes
from tui_agent.context.settings import (
    CompactionSettings,
    ContextSettings,
    ImageSettings,
    PruneSettings,
)
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    FilePart,
    ImagePart,
    PruneEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    Usage,
    UserEntry,
)
from tui_agent.session.session import Session

SUMMARY = "## Goal\nKeep the build green.\n\n## Next Steps\n1. Go on with the next file.\n"


def is_summary_call(request: ModelRequest) -> bool:
    return not request.tools or "<length>" in request.messages[-1].text


class Worker:
    """A model that reads one file after the other and never tires, until it was asked often enough."""

    def __init__(self, steps: int, *, usage: str = "honest", summary: Reply | None = None) -> None:
        self.steps = steps
        self.usage = usage
        self.summary = summary or Reply(SUMMARY)
        self.step = 0
        self.sizes: list[int] = []
        self.requests: list[ModelRequest] = []
        self.summaries = 0

    def __call__(self, request: ModelRequest) -> Reply:
        size = request_size(request)
        self.sizes.append(size)
        if is_summary_call(request):
            self.summaries += 1
            return self.summary
        self.requests.append(request)
        self.step += 1
        usage = {
            "honest": Usage(input=size, output=40),
            "missing": None,
            "zero": Usage(),
            "absurd": Usage(input=90_000_000, output=3),
            "absurd answer": Usage(input=size, output=90_000_000),
        }[self.usage]
        if self.step >= self.steps:
            return Reply("All files are read.", usage=usage)
        calls = (
            Call("read", json.dumps({"path": f"file{self.step % 7}.txt"})),
            Call("bash", json.dumps({"command": f"seq 1 {40 + self.step % 300}"})),
            Call("grep", json.dumps({"pattern": f"line {self.step % 10}"})),
        )
        return Reply(f"Step {self.step}.", calls=(calls[self.step % 3],), usage=usage)


USAGES = ("honest", "missing", "zero", "absurd", "absurd answer")
ALIKE = ("zero", "absurd answer")
"""Reports for which others stand by day."""


@pytest.mark.parametrize(
    ("window", "usage"),
    [
        *((15_500, usage) for usage in USAGES if NIGHTLY or usage not in ALIKE),
        *((32_000, usage) for usage in USAGES if NIGHTLY),
    ],
)
async def test_long_work_in_a_small_window_never_overflows_and_never_thrashes(
    tmp_path: Path, window: int, usage: str
) -> None:
    steps = (120 if usage != "honest" else 300) if NIGHTLY else 40
    worker = Worker(steps, usage=usage)
    harness = at_work(tmp_path, worker, window=window)
    ended = await harness.say("Read everything and tell me when you are done. Never stop early.")
    assert ended.reason == "done", ended
    assert worker.step == worker.steps
    assert max(worker.sizes) < window
    for request in worker.requests:
        validate(request)
    assert_a_step_between_compactions(harness)
    kinds = harness.kinds()
    assert kinds.index("prune") < kinds.index("compaction"), "what is cheaper comes first"
    assert "Never stop early" in request_bytes(worker.requests[-1]).decode()


def at_work(tmp_path: Path, worker: Worker, **ports: Any) -> Harness:
    project = tmp_path / "project"
    project.mkdir()
    for number in range(7):
        lines = (f"line {line} of file {number}: value = {line * number}" for line in range(120))
        (project / f"file{number}.txt").write_text("\n".join(lines))
    given = {"window": 16_000, "max_steps": 1_000, "rules": (Rule("*", "*", Action.ALLOW, "flag"),)}
    return make_agent(tmp_path, worker, **given | ports)


def assert_a_step_between_compactions(harness: Harness) -> None:
    answered = True
    for entry in harness.path():
        if isinstance(entry, AssistantEntry) and not entry.error:
            answered = True
        if isinstance(entry, CompactionEntry) and entry.model:
            assert answered, f"#{entry.id} follows a compaction without a step in between"
            assert entry.tokens_after <= entry.tokens_before * 0.9
            answered = False


async def test_two_hundred_overflows_end_in_two_attempts_and_a_clear_choice(tmp_path: Path) -> None:
    overflow = ModelError(
        ErrorKind.CONTEXT_OVERFLOW, "The request is too long for the model.", window=12_000
    )
    client = ScriptedClient(
        lambda request: Reply(SUMMARY) if is_summary_call(request) else Reply(error=overflow)
    )
    harness = make_agent(tmp_path, client, window=100_000)
    remember(harness)
    first = await harness.say("and now?")
    assert first.reason == "stopped"
    assert "/model" in (first.error or "")
    sent = [request for request in client.requests if not is_summary_call(request)]
    assert len(sent) == 2
    assert sum(isinstance(entry, CompactionEntry) for entry in harness.path()) == 1
    assert harness.directory.windows == {"test/model": 12_000}


def remember(harness: Harness) -> None:
    for number in range(8):
        text = f"Question {number}: " + "word " * 400
        harness.session.append(UserEntry(parts=({"type": "text", "text": text},)))
        harness.session.append(
            AssistantEntry(parts=({"type": "text", "text": "Answer. " * 300},), model="test/model")
        )


async def with_past(
    tmp_path: Path, *, hangs: bool = False, **ports: Any
) -> tuple[Harness, ScriptedClient]:
    summary = Reply(SUMMARY, hang=hangs)
    client = ScriptedClient(lambda request: summary if is_summary_call(request) else Reply("Fine."))
    harness = make_agent(tmp_path, client, window=20_000, **ports)
    remember(harness)
    await harness.say("and now?")
    return harness, client


async def test_automatic_compaction_that_is_off_stops_at_the_limit(tmp_path: Path) -> None:
    settings = ContextSettings(
        compaction=CompactionSettings(auto=False), prune=PruneSettings(when="off")
    )
    worker = Worker(300)
    harness = at_work(tmp_path, worker, settings=settings)
    ended = await harness.say("Read everything.")
    assert ended.reason == "stopped"
    assert "/compact" in (ended.error or "")
    assert worker.summaries == 0
    assert max(worker.sizes) < 16_000


async def test_a_summariser_that_only_fails_does_not_stop_the_work(tmp_path: Path) -> None:
    broken = Reply(error=ModelError(ErrorKind.UNKNOWN, "The summariser is broken."))
    worker = Worker(40, summary=broken)
    settings = ContextSettings(prune=PruneSettings(when="off"))
    harness = at_work(tmp_path, worker, settings=settings)
    ended = await harness.say("Read everything.")
    assert ended.reason == "done"
    assert max(worker.sizes) < 16_000
    by_rule = harness.entries(CompactionEntry)
    assert by_rule
    assert all(entry.model is None for entry in by_rule)
    assert any("Compacted without a model" in event.message for event in harness.of(Notice))
    failed = [event for event in harness.of(CompactionEnded) if event.error]
    assert {event.trigger for event in failed} == {"threshold"}


ENGINE = (
    ("tui_agent.agent.compaction_drafts", "plan_compaction"),
    ("tui_agent.agent.compaction_drafts", "plan_commit"),
    ("tui_agent.agent.compaction_drafts", "summarise"),
    ("tui_agent.agent.compaction_drafts", "blocks_of"),
    ("tui_agent.context.compaction", "carried_details"),
    ("tui_agent.context.preserved", "choose_lines"),
    ("tui_agent.context.plain_compaction", "digest"),
)


@pytest.mark.parametrize("error", [StopIteration, ValueError, RecursionError])
@pytest.mark.parametrize(("module", "name"), ENGINE)
async def test_whatever_the_engine_raises_there_is_a_summary_by_rule(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    module: str,
    name: str,
    error: type[Exception],
) -> None:
    def broken(*_given: object, **_named: object) -> object:
        raise error

    harness, client = await with_past(tmp_path)
    monkeypatch.setattr(module + "." + name, broken)
    if name == "digest":
        monkeypatch.setattr("tui_agent.agent.compaction_drafts.plan_compaction", broken)
    outcome = await harness.agent.compact()
    assert outcome.problem is None
    (summary,) = harness.entries(CompactionEntry)
    assert summary.tokens_after < summary.tokens_before
    assert "Question 0" in "".join(summary.details.user_messages)
    assert any("Compacted without a model" in notice for notice in harness.notices())
    assert any(record.exc_info for record in caplog.records)
    assert (await harness.say("go on")).reason == "done"
    validate(client.requests[-1])


@pytest.mark.parametrize(
    "said", ["I can't help with that request.", "Sure! Next I will write the parser.", ""]
)
async def test_a_summary_that_is_none_is_asked_for_again_and_then_written_by_rule(
    tmp_path: Path, said: str
) -> None:
    client = ScriptedClient(
        lambda request: Reply(said) if is_summary_call(request) else Reply("Fine.")
    )
    harness = make_agent(tmp_path, client, window=20_000)
    remember(harness)
    await harness.say("and now?")
    before = len(client.requests)
    assert (await harness.agent.compact()).problem is None
    assert len(client.requests) - before <= 3
    (summary,) = harness.entries(CompactionEntry)
    assert "Sure" not in summary.summary
    assert "can't help" not in summary.summary
    assert "Answer." in summary.summary
    assert any("Compacted without a model" in notice for notice in harness.notices())


async def test_the_cost_of_a_summary_that_is_not_used_counts(tmp_path: Path) -> None:
    said = Reply("I can't help with that request.", cost=0.02)
    client = ScriptedClient(lambda request: said if is_summary_call(request) else Reply("Fine."))
    harness = make_agent(tmp_path, client, window=20_000)
    remember(harness)
    await harness.say("and now?")
    before = len(client.requests)
    await harness.agent.compact()
    refused = len(client.requests) - before
    (summary,) = harness.entries(CompactionEntry)
    assert summary.cost is None
    assert harness.agent.session_cost() == pytest.approx(0.02 * refused)


async def test_the_cost_of_a_summary_counts_once_and_also_before_it_is_committed(
    tmp_path: Path,
) -> None:
    said = Reply(SUMMARY, cost=0.02)
    client = ScriptedClient(lambda request: said if is_summary_call(request) else Reply("Fine."))
    harness = make_agent(tmp_path, client, window=20_000)
    remember(harness)
    await harness.say("and now?")
    compactor = harness.agent.context.compactor
    draft = await compactor.draft(harness.agent.context.order("manual"))
    assert isinstance(draft, Draft)
    assert harness.agent.session_cost() == pytest.approx(0.02), "the user may discard it"
    await compactor.commit(draft)
    (summary,) = harness.entries(CompactionEntry)
    assert summary.cost == 0.02
    assert harness.agent.session_cost() == pytest.approx(0.02)
    assert harness.session.info.side_cost == pytest.approx(0)


async def test_an_engine_that_always_fails_ends_no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: object, **_named: object) -> object:
        raise StopIteration

    monkeypatch.setattr("tui_agent.context.preserved.choose_lines", broken)
    monkeypatch.setattr("tui_agent.context.kept_lines.write_notes", broken)
    worker = Worker(30)
    harness = at_work(tmp_path, worker)
    ended = await harness.say("Read everything and tell me when you are done. Never stop early.")
    assert ended.reason == "done", ended
    assert max(worker.sizes) < 16_000
    for request in worker.requests:
        validate(request)


@thorough
@given(said=st.lists(long_texts, min_size=1, max_size=3))
@example(said=["word " * 70 + "took 30\nms in all"])
async def test_any_text_can_be_compacted(
    tmp_path_factory: pytest.TempPathFactory, said: list[str]
) -> None:
    client = ScriptedClient(
        lambda request: Reply(SUMMARY) if is_summary_call(request) else Reply("Fine.")
    )
    harness = make_agent(tmp_path_factory.mktemp("any"), client, window=20_000)
    remember(harness)
    for text in said:
        harness.session.append(UserEntry(parts=(TextPart(text=text),)))
        harness.session.append(AssistantEntry(parts=(TextPart(text=text),), model="test/model"))
    remember(harness)
    outcome = await harness.agent.compact()
    assert outcome.problem is None
    assert not any("Compacted without a model" in notice for notice in harness.notices())
    assert (await harness.say("go on")).reason == "done"
    validate(client.requests[-1])
    harness.store.close()


async def test_nothing_stands_still_while_long_plans_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: dict[str, bool] = {}

    def noted(module: str, name: str) -> None:
        original = getattr(importlib.import_module(module), name)

        def planned(*arguments: object, **named: object) -> object:
            places[name] = threading.current_thread() is threading.main_thread()
            return original(*arguments, **named)

        monkeypatch.setattr(f"{module}.{name}", planned)

    noted("tui_agent.agent.context_keeper", "plan_prune")
    noted("tui_agent.agent.compaction_drafts", "plan_compaction")
    noted("tui_agent.agent.compaction_drafts", "plan_commit")
    harness, _client = await with_past(tmp_path)
    assert (await harness.agent.compact("numbers")).problem is None
    await harness.agent.context.plan_prune(Moment(asked=True))
    assert places == {"plan_prune": False, "plan_compaction": False, "plan_commit": False}


async def test_instructions_that_eat_the_window_are_named_before_the_first_answer(
    tmp_path: Path,
) -> None:
    small = make_agent(tmp_path, [Reply("Hello.")], window=4_096)
    await small.say("hi")
    (notice,) = small.of(Notice)
    assert re.match(
        r"Instructions and tools take 1\.\dk of the window's 4\.1k tokens: tools ", notice.message
    )  # the directory is counted too
    assert "agent prompt" in notice.message
    assert notice.action == "context"


async def test_an_overflow_does_not_compact_where_compaction_is_off(tmp_path: Path) -> None:
    overflow = ModelError(
        ErrorKind.CONTEXT_OVERFLOW,
        "prompt is too long: 21000 tokens > 20000 maximum",
        window=20_000,
    )
    talk = Reply("word " * 4_000, usage=None)
    off = ContextSettings(compaction=CompactionSettings(auto=False))
    harness = make_agent(tmp_path, [talk, talk, talk, Reply("", error=overflow)], settings=off)
    for text in ("one", "two", "three"):
        await harness.say(text)
    ended = await harness.say("four")
    assert ended.reason == "stopped"
    assert "Automatic compaction is off." in (ended.error or "")
    assert "/compact" in (ended.error or "")
    assert "compaction" not in harness.kinds()
    assert not any(is_summary_call(request) for request in harness.client.requests)


async def test_a_report_that_cannot_be_true_changes_nothing_and_is_told_of_once(
    tmp_path: Path,
) -> None:
    replies = [
        Reply("Yes.", usage=Usage(input=12, output=10)),
        Reply("Yes.", usage=Usage(input=12, output=10)),
    ]
    harness = make_agent(tmp_path, replies)
    await harness.say("Is all of this in the window?")
    size = harness.agent.context_size()
    assert size.estimated
    assert size.total > 1_000
    await harness.say("And now?")
    assert harness.agent.context_size().total > size.total
    assert harness.directory.learnt == []
    told = [event.message for event in harness.events if isinstance(event, Notice)]
    assert [
        message for message in told if "reports 12 tokens" in message and "not used" in message
    ] == told
    assert len(told) == 1


@pytest.mark.parametrize(("reported", "silent"), [(21_000, True), (90_000_000, False)])
async def test_a_server_that_takes_more_than_the_window_has_overflowed(
    tmp_path: Path, reported: int, silent: bool
) -> None:
    last = [Usage(input=4_000, output=10)] * 3 + [Usage(input=reported, output=10)]

    def script(request: ModelRequest) -> Reply:
        return (
            Reply(SUMMARY)
            if is_summary_call(request)
            else Reply("word " * 700, usage=last.pop(0) if last else None)
        )

    harness = make_agent(tmp_path, script, window=20_000)
    for number in range(4):
        await harness.say(f"Message {number}. " + "detail " * 600)
    assert "compaction" not in harness.kinds()
    told = [event.message for event in harness.of(Notice) if "reports" in event.message]
    assert len(told) == 1
    assert ("may have left out the oldest messages" in told[0]) is silent
    await harness.say("Go on.")
    triggers = [entry.trigger for entry in harness.path() if isinstance(entry, CompactionEntry)]
    assert triggers == (["overflow"] if silent else [])
    assert harness.kinds()[-1] == "assistant"
    await harness.say("And on.")
    assert harness.kinds().count("compaction") == silent, (
        "room was made: the old answer asks for no more of it"
    )


@pytest.mark.parametrize("moment", ["while it answers", "when it is done"])
async def test_a_compaction_asked_for_during_a_run_is_there_when_it_has_ended(
    tmp_path: Path, moment: str
) -> None:
    settings = ContextSettings(prune=PruneSettings(when="run_end"))
    harness, _client = await with_past(tmp_path, settings=settings)
    assert "compaction" not in harness.kinds()
    asked: list[asyncio.Task[CompactionOutcome]] = []

    def ask() -> None:
        if not asked:
            asked.append(
                asyncio.get_running_loop().create_task(harness.agent.compact("the numbers"))
            )

    if moment == "while it answers":
        harness.agent.channel.subscribe(
            lambda event: ask() if isinstance(event, RequestStarted) else None
        )
    else:
        harness.directory.learn = lambda *_args, **_more: ask()  # type: ignore[method-assign]
    ended = await harness.say("and now?")
    assert ended.reason == "done"
    (compaction,) = harness.entries(CompactionEntry)
    assert (compaction.trigger, compaction.instructions) == ("manual", "the numbers")
    assert harness.kinds()[-1] == "compaction", "nobody is told to go on after a finished answer"
    told = [
        type(event) for event in harness.events if isinstance(event, CompactionEnded | RunEnded)
    ]
    assert told == [RunEnded, CompactionEnded, RunEnded]


async def test_escape_during_a_compaction_at_the_end_of_a_run_leaves_the_work_done(
    tmp_path: Path,
) -> None:
    harness, client = await with_past(tmp_path, hangs=True)
    harness.agent.channel.subscribe(
        lambda event: (
            asyncio.ensure_future(harness.agent.compact())
            if isinstance(event, RequestStarted)
            else None
        )
    )
    harness.agent.submit("one more")
    await asyncio.wait_for(client.hanging.wait(), 60)
    harness.agent.interrupt()
    assert (await harness.ended()).reason == "done"
    assert "compaction" not in harness.kinds()
    assert harness.of(CompactionEnded)[-1].error == "Interrupted."


async def test_no_summary_is_paid_for_where_not_even_the_shortest_would_help(
    tmp_path: Path,
) -> None:
    early = ContextSettings(compaction=CompactionSettings(threshold=2_000))
    harness = at_work(tmp_path, Worker(20), window=100_000, max_steps=99, settings=early)
    assert (await harness.say("Read everything.")).reason == "done"
    first = harness.of(Notice)[0].message
    assert "Compaction starts at 2,000 tokens (compaction.threshold)" in first, (
        "what makes it so small is named at the start"
    )
    paid, failed = False, 0
    for event in harness.events:
        paid = (paid or isinstance(event, CompactionProgress)) and not isinstance(
            event, CompactionStarted
        )
        if isinstance(event, CompactionEnded) and event.error:
            failed += 1
            assert not paid, event.error
    assert failed


async def test_a_run_can_end_with_a_compaction(tmp_path: Path) -> None:
    settings = ContextSettings(compaction=CompactionSettings(resume=False))
    harness = make_agent(
        tmp_path,
        lambda request: (
            Reply(SUMMARY)
            if is_summary_call(request)
            else Reply(
                "word " * 400,
                calls=(Call("ls", json.dumps({"path": "." * (1 + len(request.messages))})),),
            )
        ),
        window=16_000,
        settings=settings,
    )

    ended = await harness.say("Work on.")

    assert ended.reason == "stopped"
    assert "compaction.resume is off" in (ended.error or "")
    assert harness.kinds()[-1] != "user"


async def test_files_in_hand_come_back_from_disk_after_a_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    worker = Worker(60)

    def change(event: AgentEvent) -> None:
        if isinstance(event, CompactionStarted):
            for file in project.glob("file*.txt"):
                file.write_text("all of it is new\n")

    early = ContextSettings(
        compaction=CompactionSettings(threshold=30_000), prune=PruneSettings(when="off")
    )
    harness = at_work(tmp_path, worker, window=65_536, max_steps=99, settings=early)
    harness.agent.channel.subscribe(change)
    with monkeypatch.context() as patched:
        patched.setattr(Session, "path", lambda *_: pytest.fail("all of the session is read"))
        assert (await harness.say("Read everything.")).reason == "done"
    going_on = [e for e in harness.path() if isinstance(e, UserEntry) and e.synthetic == "continue"]
    assert going_on
    files = [part for part in going_on[0].parts if isinstance(part, FilePart)]
    assert files
    assert len({part.path for part in files}) == len(files) <= 5
    assert {part.text for part in files} == {"1\tall of it is new"}
    for request in worker.requests:
        validate(request)


def images(request: ModelRequest) -> int:
    return sum(
        isinstance(part, ImageRef) for message in request.messages for part in message.content
    )


def draw(tmp_path: Path, count: int, size: tuple[int, int] = (8, 8)) -> list[Call]:
    (tmp_path / "project").mkdir(exist_ok=True)
    for number in range(count):
        (tmp_path / "project" / f"{number}.png").write_bytes(png(*size) + bytes([number]))
    return [Call("read", json.dumps({"path": f"{number}.png"})) for number in range(count)]


def limited(**fields: float) -> ContextSettings:
    return ContextSettings(images=ImageSettings(**fields))


async def test_images_read_one_after_another_never_pass_the_setting(tmp_path: Path) -> None:
    harness = make_agent(
        tmp_path, [*(Reply(calls=(call,)) for call in draw(tmp_path, 25)), Reply("All seen.")]
    )
    await harness.say("Look at all of them.")
    assert [images(request) for request in harness.client.requests] == [*range(21), *range(10, 15)]
    (prune,) = harness.entries(PruneEntry)
    assert (len(prune.targets), prune.reason) == (11, "too many images")
    told = harness.client.requests[-1].messages
    assert any(
        "0.png" in message.text and "recall" in message.text
        for message in told
        if message.role == "tool"
    )


async def test_a_message_with_more_than_are_allowed_says_so(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("I see none.")], settings=limited(max_count=3))
    blobs = [harness.store.put_blob(png(8, 8) + bytes([number])) for number in range(5)]
    images_sent = (
        ImagePart(blob=blob, mime="image/png", width=8, height=8, path=f"{blob[:4]}.png")
        for blob in blobs
    )
    harness.agent.submit((TextPart(text="look"), *images_sent))
    await harness.ended()
    assert images(harness.client.requests[0]) == 0
    (notice,) = harness.of(Notice)
    assert "5 new images are not sent: requests are limited to 3 images" in notice.message


async def test_a_pruned_image_is_recalled_as_an_image(tmp_path: Path) -> None:
    calls = draw(tmp_path, 3)
    found: list[int] = []

    def script(request: ModelRequest) -> Reply:
        step = len(client.requests)
        if step <= 3:
            return Reply(calls=(calls[step - 1],))
        if step == 4:
            found.extend(entry.id for entry in harness.path() if isinstance(entry, ToolResultEntry))
            return Reply(calls=(Call("recall", json.dumps({"what": f"#{found[0]}"})),))
        return Reply("Seen.")

    client = ScriptedClient(script)
    harness = make_agent(tmp_path, client, settings=limited(max_count=2))
    await harness.say("Look.")
    results = harness.results()
    assert found[0] in harness.entries(PruneEntry)[0].targets
    assert results[3].attachments == results[0].attachments
    assert images(client.requests[-1]) == 2
    assert not harness.of(CompactionEnded)


async def test_the_first_message_of_an_imported_session_switches_no_model(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("Done.")])
    for turn in range(6):
        call = ToolCallPart(call_id=f"c{turn}", tool="bash", arguments='{"command": "x"}')
        harness.agent.session.append(UserEntry(parts=(TextPart(text="go"),)))
        harness.agent.session.append(AssistantEntry(model="another/model", parts=(call,)))
        harness.agent.session.append(
            ToolResultEntry(
                call_id=call.call_id,
                tool="bash",
                status=ToolStatus.COMPLETED,
                title="x",
                output="word " * 12_000,
            )
        )
        harness.agent.session.append(
            AssistantEntry(model="another/model", parts=(TextPart(text="ok"),))
        )
    await harness.say("Go on.")
    assert [prune.reason for prune in harness.entries(PruneEntry)] == ["prompt cache is cold"]


@pytest.mark.parametrize("has_past", [True, False])
async def test_a_message_longer_than_the_window_is_shortened_with_a_warning(
    tmp_path: Path, has_past: bool
) -> None:
    def script(request: ModelRequest) -> Reply:
        return Reply(SUMMARY if is_summary_call(request) else "Noted.")

    harness = make_agent(tmp_path, script, window=20_000)
    if has_past:
        for number in range(4):
            await harness.say(f"Message {number}. " + "detail " * 600)
    pasted = " ".join(f"line{number}" for number in range(40_000))
    await harness.say(pasted)

    sent = next(e for e in harness.path() if isinstance(e, UserEntry) and e.text == pasted)
    warned = [one.message for one in harness.of(Notice) if one.severity == "warning"]
    assert [one for one in warned if one.startswith(f"Your message #{sent.id} is too long")]
    prunes = [e for e in harness.path() if isinstance(e, PruneEntry) and sent.id in e.targets]
    assert prunes
    assert all(prune.effect.startswith("shortened") for prune in prunes)


async def test_a_summary_is_not_put_on_the_branch_to_which_the_user_moved_meanwhile(
    tmp_path: Path,
) -> None:
    harness, _client = await with_past(tmp_path)
    earlier = harness.entries(AssistantEntry)[0].id

    def move_away(event: AgentEvent) -> None:
        if isinstance(event, CompactionProgress):
            harness.session.move(earlier)

    harness.agent.channel.subscribe(move_away)
    outcome = await harness.agent.compact()
    assert outcome.problem == "Not compacted: you moved to another branch meanwhile."
    assert harness.session.leaf == earlier
    assert harness.agent.context.compactor.failures == NO_FAILURES
