from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.entry_strategies import paths
from tests.support.request_validator import validate
from tests.support.session_paths import PathBuilder
from tests.support.thoroughness import EXAMPLES, NIGHTLY
from tui_agent.context.budget import ContextSize, estimate_path
from tui_agent.context.commit_plan import Commit, Measures, plan_commit, plan_cuts, provisional
from tui_agent.context.compaction import (
    CompactionPlan,
    PlanOptions,
    Refusal,
    RefusalReason,
    plan_compaction,
)
from tui_agent.context.compaction_policy import is_due
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.pruning import Moment, PruneRules, occasion, plan_prune, under_pressure
from tui_agent.context.settings import ContextSettings
from tui_agent.context.tokens import TokenCounter
from tui_agent.context.truncation import limits_for, truncate
from tui_agent.context.view import resolve
from tui_agent.session.entries import (
    INTERRUPTED_OUTPUT,
    AssistantEntry,
    Entry,
    ShellEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.tools.registry import tool_traits

SETTINGS = ContextSettings()
TRAITS = ModelTraits("test/model")


def tokens(text: str) -> int:
    return len(text) // 4


def history(path) -> int:
    """Measure what is really sent, without the head: characters / 4."""
    request = project(path, TRAITS)
    return (
        sum(
            len(message.text)
            + sum(len(call.arguments) + len(call.tool) for call in message.tool_calls)
            for message in request.messages
            if message.role != "system"
        )
        // 4
    )


def entry_tokens(entry) -> int:
    return history([entry]) if entry.kind != "tool_result" else max(1, len(entry.output) // 4)


MEASURES = Measures(size_of=history, text=tokens, entry=entry_tokens)


def size_for(path, budget: int, fixed: int = 1_000) -> ContextSize:
    used = history(path)
    return ContextSize(
        fixed, used, fixed + used, fixed + budget + 500, 500, fixed + budget, None, estimated=True
    )


def attempt(
    build,
    budget,
    summary="## Goal\nport the theme",
    keep=None,
    settings=SETTINGS,
    trigger="threshold",
):
    path = build.path
    size = size_for(path, budget)
    options = PlanOptions(tool_traits(), keep_recent=keep, count=entry_tokens, trigger=trigger)
    plan = plan_compaction(path, settings, size, options)
    assert isinstance(plan, CompactionPlan), plan
    return plan, plan_commit(
        path, plan, summary, MEASURES, size, (("tools", 700), ("AGENTS.md", 200))
    )


def long_session(turns: int = 20, answer: int = 1_000) -> PathBuilder:
    build = PathBuilder()
    build.system()
    for number in range(turns):
        build.user(f"question {number}")
        build.say(f"answer {number} " + "word " * (answer * 4 // 5))
    return build


def test_a_summary_that_saves_a_tenth_is_committed_alone_and_measured():
    build = long_session()
    plan, commit = attempt(build, 20_000)
    assert [entry.kind for entry in commit.entries] == ["compaction"]
    assert commit.steps == ()
    entry = commit.entries[0]
    assert entry.first_kept_id == plan.first_kept_id
    assert (entry.tokens_before, entry.tokens_after) == (history(build.path), commit.tokens_after)
    assert commit.tokens_after == history(provisional(build.path, commit.entries))
    assert commit.tokens_after <= 0.6 * 20_000

    build = long_session()
    before = history(build.path)
    _, commit = attempt(build, 10 * before, keep=round(0.94 * before), trigger="manual")
    assert commit.steps[:1] == ("kept fewer recent messages",)
    assert commit.tokens_after <= 0.9 * before


def test_old_outputs_of_the_tail_are_pruned_along_so_that_it_reaches_further_back():
    build = long_session(20)
    for number in range(12):
        build.run("read", {"path": f"{number}.py"}, "y" * 4_000)
    whole, _ = attempt(build, 20_000, keep=8_000, settings=ContextSettings(prune=False))
    thinned, commit = attempt(build, 20_000, keep=8_000)
    assert commit.steps == ()
    assert [entry.kind for entry in commit.entries] == ["prune", "compaction"]
    assert len(thinned.kept) > len(whole.kept)
    assert set(commit.entries[0].targets) <= {entry.id for entry in thinned.kept}

    _, commit = attempt(build, 20_000, keep=14_000, settings=ContextSettings(prune=False))
    assert commit.steps == ("cleared kept outputs",)
    assert [entry.kind for entry in commit.entries] == ["prune", "compaction"]
    kept = {entry.id for entry in build.path if entry.kind == "tool_result"}
    assert set(commit.entries[0].targets) <= kept


def test_then_kept_outputs_and_long_arguments_are_cut_to_their_ends():
    build = long_session(10)
    asked = build.call(*[("read", {"path": f"{number}.py"}) for number in range(4)])
    for call in asked.tool_calls:
        build.result(call.call_id, "HEAD" + "y" * 20_000 + "TAIL", "read")
    _, commit = attempt(build, 20_000, keep=21_000)
    assert commit.steps == ("cut kept outputs",)
    prune = commit.entries[0]
    assert prune.keep_chars == 2_000
    request = project(provisional(build.path, commit.entries), TRAITS)
    outputs = [message.text for message in request.messages if message.role == "tool"]
    assert len(outputs) == 4
    assert all(
        text.startswith("HEAD") and text.endswith("TAIL") and len(text) < 2_300 for text in outputs
    )

    build = long_session(6)
    for number in range(3):
        build.run("bash", {"command": f"make {number}"}, "ok")
    written = build.call(("write", {"path": "big.py", "content": "HEAD" + "y" * 20_000 + "TAIL"}))
    build.result(written.tool_calls[0].call_id, "Wrote 20,008 bytes.", "write")
    _, commit = attempt(build, 6_000, keep=5_500)
    assert commit.steps[-1] == "cut kept arguments"
    prune = commit.entries[-2]
    assert (prune.targets, prune.keep_chars) == ((written.id,), 990)
    assert prune.tokens_freed == pytest.approx(19_000 / 4, rel=0.05)
    request = project(provisional(build.path, commit.entries), TRAITS)
    sent = [call.arguments for message in request.messages for call in message.tool_calls]
    assert '"make 2"' in sent[-2], "the steps before it stay"
    assert "HEADyyy" in sent[-1]
    assert "yyyTAIL" in sent[-1]
    assert len(sent[-1]) < 1_200


def test_then_the_oldest_kept_turns_go():
    build = long_session(6, answer=100)
    build.user("the big one")
    build.say("w " * 6_000)
    build.user("and now?")
    _, commit = attempt(build, 4_000, keep=3_500)
    assert "dropped the oldest kept turn" in commit.steps
    assert commit.entries[-1].first_kept_id == build.path[-1].id
    assert any("the big one" in text for text in commit.entries[-1].details.user_messages)


def test_hundreds_of_short_turns_are_few_rungs():
    build = long_session(6, answer=100)
    for _ in range(400 if NIGHTLY else 200):
        build.user("yyyy")
        build.say("nnnn")
    weighed: list[int] = []

    def always_too_large(path) -> int:
        weighed.append(len(path))
        return 50_000

    size = size_for(build.path, 4_000)
    plan = plan_compaction(
        build.path, SETTINGS, size, PlanOptions(tool_traits(), keep_recent=500, count=entry_tokens)
    )
    assert isinstance(plan, CompactionPlan)
    refusal = plan_commit(
        build.path, plan, "## Goal", replace(MEASURES, size_of=always_too_large), size
    )
    assert isinstance(refusal, Refusal)
    assert len(weighed) < 30


def test_a_message_that_is_too_large_by_itself_gives_up_its_middle_and_keeps_its_address():
    build = long_session(3, answer=100)
    big = build.user("FIRST " + "w " * 30_000 + "LAST")
    _, commit = attempt(build, 8_000, keep=100, trigger="threshold")
    assert commit.steps[-1] == "cut the newest entries"
    assert commit.tokens_after <= 0.85 * 8_000
    sent = project(provisional(build.path, commit.entries), TRAITS).messages[-1].text
    assert sent.startswith("FIRST")
    assert sent.endswith("LAST")
    assert f"#{big.id}]" in sent


def test_what_a_person_asks_for_cuts_no_message_of_theirs_and_what_takes_the_room_is_named():
    build = long_session(3, answer=100)
    big = build.user("w " * 30_000)
    _, refusal = attempt(build, 8_000, keep=100, trigger="manual")
    assert refusal.reason is RefusalReason.NO_PROGRESS
    assert f"#{big.id} (user) alone takes" in refusal.message

    build = long_session(3, answer=100)
    build.user("w " * 3_000)
    _, refusal = attempt(build, 900, keep=100, trigger="manual")
    assert refusal.reason is RefusalReason.FIXED_OVERHEAD
    assert refusal.message.endswith(
        "Instructions and tools take 1.0k of the window's 2.4k tokens: tools 700, AGENTS.md 200."
    )

    build = long_session(8, answer=300)
    _, refusal = attempt(build, 20_000, "word " * 1_500, keep=100, trigger="manual")
    assert refusal.reason is RefusalReason.NO_PROGRESS
    assert "would free too little, so it was refused" in refusal.message
    assert "clear or hide entries in /context" in refusal.message

    build = long_session(10)
    for entry in [entry for entry in build.path if isinstance(entry, AssistantEntry)]:
        build.edit(entry.id, "pin")
    _, refusal = attempt(build, 10_000)
    assert refusal.reason is RefusalReason.PINNED


def test_compaction_is_no_ratchet():
    """What is carried fills its budgets once; after that every cycle frees the same."""
    build = PathBuilder()
    build.system()
    freed = []
    for cycle in range(32):
        for number in range(10):
            path = f"src/module_{cycle}_{number}.py"
            build.user(f"question {cycle}.{number} about {path}")
            build.run("read", {"path": path}, f"def name_{cycle}_{number}(): " + "z" * 3_000)
            build.say("done " * 200)
        before = history(build.path)
        _, commit = attempt(build, 16_000, summary="## Goal\nall of it " * 20)
        for entry in commit.entries:
            build.add(entry)
        freed.append(1 - commit.tokens_after / before)
        assert commit.tokens_after <= 0.6 * 16_000
    assert min(freed) > 0.45
    assert freed[-1] == pytest.approx(freed[-6], abs=0.03)


@pytest.mark.parametrize("budget", [800, 3_000, 12_000])
@given(
    path=paths(max_size=25),
    keep=st.integers(0, 2_000),
    summary=st.sampled_from(["", "## Goal\ngo on"]),
)
@settings(max_examples=EXAMPLES // 3, deadline=None)
def test_the_postcondition_holds_or_the_refusal_is_named(path, keep, summary, budget):
    size = size_for(path, budget)
    plan = plan_compaction(
        path, SETTINGS, size, PlanOptions(tool_traits(), keep_recent=keep, count=entry_tokens)
    )
    if isinstance(plan, Refusal):
        if plan.prunes:
            validate(project(provisional(path, [prune.entry() for prune in plan.prunes]), TRAITS))
        cuts = plan_cuts(path, plan, SETTINGS, MEASURES, size)
        if isinstance(cuts, Commit):
            cut_path = provisional(path, cuts.entries)
            validate(project(cut_path, TRAITS))
            assert history(cut_path) == cuts.tokens_after < history(path)
        return
    result = plan_commit(path, plan, summary, MEASURES, size)
    assert result == plan_commit(list(path), replace(plan), summary, MEASURES, size)
    if isinstance(result, Refusal):
        assert result.message
        return
    before = history(path)
    after_path = provisional(path, result.entries)
    after = history(after_path)
    assert after == result.tokens_after
    assert after < before
    assert after <= round(0.85 * budget) or after <= size.window - size.fixed
    request = project(after_path, TRAITS)
    validate(request)
    interrupted = [m for m in project(path, TRAITS).messages if m.text == INTERRUPTED_OUTPUT]
    assert len([m for m in request.messages if m.text == INTERRUPTED_OUTPUT]) <= len(interrupted)
    again = plan_compaction(
        after_path,
        SETTINGS,
        size_for(after_path, budget),
        PlanOptions(tool_traits(), count=entry_tokens),
    )
    assert isinstance(again, Refusal)


COUNTER = TokenCounter("gpt-4o")
HEAD = 1_600
WORDS = {
    "english": "the cursor of load_config in src/app.py moves on to the next branch\n",
    "code": "    value = merge_token(cursor, limit=8123)  # see src/theme/cache.py\n",
    "chinese": "上下文窗口是有限的，所以旧的工具输出会被占位符代替。\n",
    "hex": "7f454c4602010100 0000000000000000 03003e0001000000 b010000000000000\n",
}


class Work:
    """A session in a window of so many tokens, driven as the agent drives it, without a model."""

    def __init__(self, window: int, seed: int = 0) -> None:
        self.window = window
        self.random = Random(seed)
        self.path: list[Entry] = []
        self.calls = 0
        self.stops: list[str] = []
        self.over: list[int] = []
        self.reserve = SETTINGS.compaction.reserve(window, 32_000)

    def size(self) -> ContextSize:
        used = self.measured(self.path)
        threshold = SETTINGS.compaction.threshold_at(self.window, self.reserve)
        return ContextSize(
            HEAD, used, HEAD + used, self.window, self.reserve, threshold, None, estimated=True
        )

    def measured(self, path) -> int:
        return estimate_path(path, COUNTER, ModelTraits("gpt-4o")).history

    def add(self, *entries: Entry) -> None:
        counted = (
            entry.model_copy(update={"tokens": COUNTER.estimate(entry)}) for entry in entries
        )
        self.path = provisional(self.path, list(counted))

    def text(self, tokens: int, words: str | None = None) -> str:
        line = WORDS[words or self.random.choice(list(WORDS))]
        return line * max(1, tokens // max(1, COUNTER.text(line)))

    def step(self, parallel: int = 1, tokens: int | None = None, words: str | None = None) -> None:
        """Answer with calls in parallel, each with an output; it is truncated when it is born."""
        calls, rng = [], self.random
        for _ in range(parallel):
            self.calls += 1
            arguments = f'{{"path": "src/{self.calls}.py"}}'
            calls.append(
                ToolCallPart(call_id=f"call_{self.calls}", tool="read", arguments=arguments)
            )
        said = self.text(rng.choice((5, 30, 200))) if rng.random() < 0.7 else ""
        parts = (*((TextPart(text=said),) if said else ()), *calls)
        self.add(AssistantEntry(parts=parts, model="gpt-4o", finish="tool_calls"))
        for call in calls:
            size = rng.choice((5, 50, 400, 1_500, 8_000, 40_000)) if tokens is None else tokens
            limits = limits_for(
                self.window, self.size().budget - self.size().history, SETTINGS.truncation
            )
            output = truncate(self.text(size, words), "ends", limits).text
            self.add(
                ToolResultEntry(
                    call_id=call.call_id, tool="read", status=ToolStatus.COMPLETED, output=output
                )
            )

    def anything(self) -> None:
        """Do one thing at random."""
        rng, chance = self.random, self.random.random()
        if chance < 0.12:
            self.add(
                UserEntry(parts=(TextPart(text=self.text(rng.choice((10, 100, 3_000, 27_000)))),))
            )
        elif chance < 0.17:
            self.add(
                ShellEntry(
                    command="cat log",
                    output=self.text(rng.choice((10, 2_000, 27_000))),
                    exit_code=0,
                )
            )
        elif chance < 0.27:
            content = self.text(rng.choice((500, 4_000))).replace("\n", "\\n")
            call = ToolCallPart(
                call_id=f"w{len(self.path)}", tool="write", arguments=f'{{"content": "{content}"}}'
            )
            self.add(AssistantEntry(parts=(call,), model="gpt-4o", finish="tool_calls"))
            self.add(
                ToolResultEntry(
                    call_id=call.call_id,
                    tool="write",
                    status=ToolStatus.COMPLETED,
                    output="Wrote it.",
                )
            )
        elif chance < 0.4:
            self.step(parallel=rng.choice((2, 5, 12)))
        else:
            self.step()

    def request(self) -> None:
        """Make room as the agent does before a request, then look at what would be sent."""
        if not self.path:
            return
        size = self.size()
        why = occasion(SETTINGS.prune, size, Moment())
        if why is not None:
            pressure = under_pressure(SETTINGS.prune, size)
            wanted = SETTINGS.prune.wanted_tokens(size.history, size.budget)
            rules = PruneRules(SETTINGS.prune, size.budget, tool_traits(), pressure, wanted=wanted)
            plan = plan_prune(resolve(self.path), rules, why)
            if plan is not None:
                self.add(plan.entry())
        if is_due(self.size()):
            self.compact()
        sent = HEAD + self.measured(self.path)
        if sent > self.window - 256:
            self.over.append(sent)

    def compact(self) -> None:
        size = self.size()
        measures = Measures(self.measured, COUNTER.text, COUNTER.entry)
        plan = plan_compaction(self.path, SETTINGS, size, PlanOptions(tool_traits()))
        if isinstance(plan, CompactionPlan):
            commit = plan_commit(self.path, plan, "", measures, size)
        else:
            commit = plan_cuts(self.path, plan, SETTINGS, measures, size)
        if isinstance(commit, Commit):
            self.add(*commit.entries)
        else:
            self.stops.append(commit.message)


@pytest.mark.parametrize("window", [4_096, 8_192, 16_384, 32_768])
def test_no_work_stops_and_no_request_is_over_the_window(window):
    work = Work(window, seed=window)
    work.add(UserEntry(parts=(TextPart(text="Fix load_config. Never touch src/theme/cache.py."),)))
    for step in range(max(60, EXAMPLES // 4)):
        work.anything()
        work.request()
        if step % 20 == 0:
            validate(project(work.path, ModelTraits("gpt-4o")))
    assert work.stops == []
    assert work.over == []


@pytest.mark.parametrize(
    ("window", "parallel"), [(16_384, 24), (32_768, 48), (8_192, 24), (4_096, 16)]
)
@pytest.mark.parametrize("words", ["code", "chinese", "hex"])
def test_many_outputs_of_the_newest_step_are_cut_until_they_fit(window, parallel, words):
    work = Work(window)
    work.add(UserEntry(parts=(TextPart(text="Read them all."),)))
    work.step(parallel=parallel, tokens=1_500, words=words)
    work.request()
    assert work.stops == []
    assert work.over == []
    validate(project(work.path, ModelTraits("gpt-4o")))


def test_a_long_output_of_the_users_own_command_does_not_become_the_whole_tail():
    work = Work(32_768)
    for _ in range(8):
        work.step(tokens=1_000)
    work.add(ShellEntry(command="cat log", output=work.text(27_000, "code"), exit_code=0))
    work.request()
    assert (work.stops, work.over) == ([], [])
    shown = project(work.path, ModelTraits("gpt-4o")).messages
    assert "characters left out" in shown[-1].text
    assert sum(COUNTER.message(message) for message in shown) < 0.7 * 32_768


@pytest.mark.parametrize(("window", "parallel"), [(32_768, 12), (131_072, 40)])
def test_what_no_answer_has_seen_fills_the_room_there_is(window, parallel):
    """A quarter of the history budget was left of it before."""
    work = Work(window)
    work.add(UserEntry(parts=(TextPart(text="Read them."),)))
    work.step(parallel=parallel, tokens=3_000 if window < 100_000 else 11_000, words="code")
    work.request()
    assert not work.over
    assert work.size().total > 0.45 * window
